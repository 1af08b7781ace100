import type * as en from '../../words/admin/work.ts'
import { count } from '../frame/plural.ts'

/** The German texts for freezes, agents and packs. */
export const freeze: typeof en.freeze = {
  title: 'Änderungssperren',
  what: 'Solange eine Sperre gilt, beginnt auf ihren Ressourcen kein Schritt. Laufende Schritte enden.',
  empty: 'Keine Sperre gilt oder ist geplant.',
  columns: {
    freeze: 'Sperre',
    status: 'Status',
    from: 'Ab',
    to: 'Bis',
    covers: 'Umfasst',
    approvers: 'Freigebende',
    by: 'Angelegt von',
    end: 'Ende',
  },
  in_force: 'Gilt',
  planned: 'Geplant',
  file: 'Eine Datei dieser Installation',
  create: 'Neue Sperre',
  submit: 'Sperre anlegen',
  create_effect: 'Sie gilt ab ihrem Beginn, in neuen und in laufenden Vorgängen.',
  reason: 'Titel: warum sich nichts ändern darf',
  approvers: 'Gruppen, die freigeben, nach Schlüssel',
  begins: (zone: string) => `Ab (${zone}), leer: sofort`,
  ends: (zone: string) => `Bis (${zone})`,
  conditions_note: 'Aus den Bedingungen erzeugt, frei änderbar. „true“ umfasst jede Ressource.',
  covers: (targets: number, operations: number) =>
    targets === 0
      ? 'Sie umfasst derzeit keine Ressource.'
      : `${count(targets, 'Sie umfasst derzeit eine Ressource', 'Sie umfasst derzeit {n} Ressourcen')} und hält ${operations === 0 ? 'keinen offenen Vorgang' : count(operations, 'einen offenen Vorgang', '{n} offene Vorgänge')} auf.`,
  uncounted: 'Zu viele Ressourcen, um den Umfang zu zählen.',
  may_end: (names: string[]) =>
    names.length === 0
      ? 'Niemand könnte sie derzeit beenden: In diesen Gruppen gibt niemand frei.'
      : `Beenden können sie: ${names.join(', ')}.`,
  end: 'Beenden',
  end_one: (title: string) => `Beenden: ${title}`,
  end_effect: 'Die Sperre endet für jeden Vorgang. Aufgehaltene Schritte beginnen von selbst.',
  when: 'Sie endet',
  whens: { now: 'Sofort', later: 'Später, aber vor ihrem geplanten Ende' },
  ends_at: (zone: string) => `Neues Ende (${zone})`,
  shorten: 'Verkürzen',
  shorten_effect: 'Die Sperre endet dann am',
  outside: 'Wählen Sie einen Zeitpunkt nach ihrem Beginn, vor ihrem geplanten Ende und nicht in der Vergangenheit.',
  end_instead: (groups: string[]) =>
    `Damit ein einzelner Vorgang weitergeht, kann ${groups.join(' oder ')} seine Freigabe der Sperre erteilen.`,
}

export const agent: typeof en.agent = {
  title: 'Agenten',
  about: 'Agenten fragen nach der Arbeit ihrer Pools. Ein stummer Agent bleibt sieben Tage in der Liste.',
  empty: 'Noch kein Agent hat nach Arbeit gefragt.',
  columns: {
    agent: 'Agent',
    status: 'Status',
    pools: 'Pools',
    labels: 'Labels',
    version: 'Version',
    places: 'Gleichzeitig',
    seen: 'Zuletzt gesehen',
    work: 'Aktuelle Arbeit',
  },
  status: { idle: 'Frei', working: 'Arbeitet', draining: 'Läuft aus', silent: 'Stumm' },
  sharing: (n: number) => `${n} Prozesse verwenden diesen Namen. Geben Sie jedem einen eigenen.`,
  others: (n: number) =>
    count(n, 'eine weitere, die Sie nicht sehen dürfen', '{n} weitere, die Sie nicht sehen dürfen'),
}

export const pack: typeof en.pack = {
  title: 'Pakete',
  what: 'Pakete enthalten die Prozeduren, aus denen Pläne entstehen. Sie ändern sich mit einem Release: Mit einem fehlerhaften Paket startet operations nicht.',
  check: 'nennt den Fehler und seine Stelle vorher.',
  empty: 'Keine Pakete geladen.',
  version: (version: string) => `Version ${version}`,
  versions_of: (pack: string) => `Versionen von ${pack}`,
  procedures_of: (pack: string) => `Prozeduren von ${pack}`,
  columns: {
    version: 'Version',
    status: 'Status',
    used: 'Verwendet von',
    loaded: 'Zuerst geladen',
    digest: 'Prüfsumme',
    procedure: 'Prozedur',
    kind: 'Art',
    type: 'Ressourcentyp',
    steps: 'Schritte',
    gates: 'Freigaben',
  },
  status: {
    current: 'Aktuell: gilt für neue Pläne',
    loaded: 'Geladen, nicht die neueste',
    retired: 'Nicht mehr geladen',
  },
  kind: { change: 'Änderung', action: 'Aktion', runbook: 'Runbook' },
  used: ({ operations, schedules }: { operations: number; schedules: number }) =>
    [
      ...(operations > 0 ? [count(operations, 'ein offener Vorgang', '{n} offene Vorgänge')] : []),
      ...(schedules > 0 ? [count(schedules, 'ein Zeitplan', '{n} Zeitpläne')] : []),
    ].join(', ') || 'Nicht verwendet',
}
