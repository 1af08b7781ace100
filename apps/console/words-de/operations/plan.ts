import type * as en from '../../words/operations/plan.ts'
import { count, list, number } from '../frame/plural.ts'

type Values = Record<string, string | number>
/** Risk factors and warnings without numbers or names. */
const PLAIN = new Map([
  ['environment', 'Das Label environment ist prod.'],
  ['procedure', 'Eigene Einstufung der Prozedur.'],
  ['nothing_to_do', 'Alle Ziele haben schon den gewünschten Zustand; der Plan hat keine Schritte.'],
])
const WITH_VALUES = new Map<string, (values: Values) => string>([
  [
    'delete_or_replace',
    (of) => counted(of, '1 Ressource wird gelöscht oder ersetzt.', '{n} Ressourcen werden gelöscht oder ersetzt.'),
  ],
  ['targets', (of) => counted(of, '1 Ziel.', '{n} Ziele.')],
  ['dependents', (of) => counted(of, '1 Ressource hängt davon ab.', '{n} Ressourcen hängen davon ab.')],
  [
    'not_idempotent',
    (of) => counted(of, '1 Schritt ist nicht einfach wiederholbar.', '{n} Schritte sind nicht einfach wiederholbar.'),
  ],
  [
    'not_compensable',
    (of) =>
      counted(
        of,
        '1 Schritt nach der ersten Änderung lässt sich nicht zurückbauen.',
        '{n} Schritte nach der ersten Änderung lassen sich nicht zurückbauen.',
      ),
  ],
  ['gate_without_nodes', ({ gate }) => `Die Freigabe „${gate}“ hält hier keinen Schritt zurück.`],
  ['batch_by_absent', ({ by }) => `Kein Ziel hat „${by}“, wonach die Gruppen gebildet werden sollen.`],
  ['silence_rejects', ({ gate }) => `Ohne Entscheidung wird die Freigabe „${gate}“ hier abgelehnt, nicht erteilt.`],
  ['order_cycle', ({ resource }) => `Die Abhängigkeiten bilden einen Kreis; er beginnt hier bei „${resource}“.`],
  ['preview_unguarded', ({ node }) => `„${node}“ führt eine Vorschau aus, die keine Freigabe prüft.`],
  [
    'no_eligible_approver',
    ({ gate, groups }) =>
      `Über die Freigabe „${gate}“ darf zurzeit niemand entscheiden${groups ? ` (Gruppen: ${groups})` : ''}.`,
  ],
  [
    'no_agent',
    ({ pool, labels, steps, seen }) =>
      `Kein Agent des Pools „${pool}“${labels ? ` mit ${labels}` : ''} fragt zurzeit nach Arbeit; diese Schritte würden warten: ${steps}. Zuletzt gesehen: ${seen || 'nie'}.`,
  ],
])
const counted = (values: Values, one: string, many: string) => count(Number(values.count), one, many)

/** The German texts for plans: the changes of an intent, and how they are carried out. */
export const plan: typeof en.plan = {
  starting: {
    title: 'Diesen Plan starten?',
    button: 'Vorgang starten',
    first: (names: string[]) =>
      names.length === 0 ? 'Kein Schritt startet sofort.' : `Zuerst starten: ${list.format(names)}.`,
    gate: (question: string) => `Die erste Freigabe fragt: ${question}`,
    held: 'Solange andere Vorgänge seine Ressourcen belegen',
    queue: 'Einreihen und warten',
    reject: 'Nicht starten',
  },
  title: 'Plan',
  digest: 'Prüfsumme des Plans',
  tabs: { changes: 'Änderungen', graph: 'Graph', gates: 'Freigaben', checks: 'Prüfungen', rehearsal: 'Probelauf' },
  tabs_label: 'Ansichten dieses Plans',
  time: 'Erwartete Dauer',
  drawing: 'Graph des Plans: alle Schritte, die laufen würden',
  no_nodes: 'Kein Schritt würde laufen.',
  gate_before: 'Freigabe davor',
  range: (low: string, high: string) => `${low} bis ${high}`,
  operation: 'Vorgang öffnen',
  start: 'Starten',
  again: 'Neue Vorschau',
  planning: 'Wird geplant …',
  status: {
    ready: 'Startbereit.',
    blocked_by_policy: 'Eine Richtlinie verbietet den Start; sie steht unter „Prüfungen“.',
    locked: 'Der Plan wird gestartet.',
    started: 'Der Plan wurde gestartet.',
    superseded: 'Ein neuerer Plan hat ihn ersetzt.',
    stale: 'Seine Ressourcen haben sich geändert; eine neue Vorschau zeigt den Unterschied.',
    expired: 'Der Plan ist abgelaufen; eine neue Vorschau ist nötig.',
  },
  newer: 'Neueren Plan öffnen',
  moved: (name: string, planned: number, now: number | null) =>
    now === null
      ? `${name} existiert nicht mehr; geplant war Version ${planned}`
      : `${name} ging von Version ${planned} auf ${now}`,
  moved_title: 'Seit dem Plan geändert',
  more_changes: (n: number) => `Die ersten ${number(n)} Ressourcen sind aufgeführt.`,

  rule: (rule, steps) => `Braucht ${rule}. Davor: ${steps}.`,
  no_gates: 'Keine Freigaben: läuft ohne Rückfrage durch.',
  who: (groups: string[]) =>
    groups.length === 0
      ? 'Alle mit gate:decide dürfen entscheiden.'
      : `Mitglieder von ${list.format(groups)} dürfen entscheiden.`,
  can_i: 'Sie gehören dazu.',
  cannot_i: 'Sie gehören nicht dazu.',

  risk: (level: string, score: number) => `Risiko: ${level}, ${count(score, 'ein Punkt', '{n} Punkte')}`,
  no_factors: 'Keine Risikofaktoren.',
  points: (n: number) => `+${n}`,
  impact: 'Auswirkung',
  dependents: (n: number) =>
    n === 0
      ? 'Keine andere Ressource hängt von den geänderten ab.'
      : count(n, 'Eine Ressource hängt von den geänderten ab.', '{n} Ressourcen hängen von den geänderten ab.'),
  affected: (n: number, at_least: boolean, unhealthy: number) =>
    n === 0
      ? 'Keine andere Ressource hängt von den geänderten ab.'
      : [
          'Beim Ausfall der geänderten betroffen: ',
          at_least ? 'mindestens ' : '',
          count(n, 'eine Ressource', '{n} Ressourcen'),
          unhealthy > 0 ? `, ${unhealthy} wäre${unhealthy > 1 ? 'n' : ''} gestört` : '',
          n > unhealthy ? `, ${n - unhealthy} wäre${n - unhealthy > 1 ? 'n' : ''} eingeschränkt` : '',
          '.',
        ].join(''),
  affected_columns: { type: 'Typ', health: 'Zustand jetzt', count: 'Anzahl', nearest: 'Nächstgelegene' },
  compensable: 'Jeder Schritt hat einen Rückbau: Abbruch mit Rückbau nimmt die Änderungen zurück.',
  not_compensable: 'Nicht jeder Schritt hat einen Rückbau.',
  policies: 'Richtlinien',
  no_policies: 'Keine Befunde der Richtlinien.',
  levels: { hard: 'hart: nicht übergehbar', soft: 'weich: übergehbar', advisory: 'Hinweis' },
  results: { passed: 'bestanden', forbids: 'verbietet' },
  conflicts: 'Konflikte',
  no_conflicts: 'Kein anderer Vorgang belegt diese Ressourcen.',
  windows: (names: string[]) => `Start nur innerhalb von ${list.format(names)}.`,
  warnings: 'Warnungen',
  // A plan of an earlier release carries no values: then the server's own text is shown.
  said: (code: string, values: Values) =>
    PLAIN.get(code) ?? (Object.keys(values).length > 0 ? WITH_VALUES.get(code)?.(values) : undefined),
  rehearsal: {
    none: [
      'Noch kein Probelauf.',
      'Er spielt den Plan mit virtueller Uhr durch, nach den Regeln der Engine.',
      'Kein Ziel wird berührt.',
    ].join(' '),
    run: 'Probelauf starten',
    again: 'Probelauf wiederholen',
    running: 'Probelauf läuft …',
    approval: 'Freigaben werden entschieden',
    delays: {
      '0': 'sofort',
      '600': 'nach 10 Minuten',
      '3600': 'nach einer Stunde',
      '28800': 'nach acht Stunden',
      never: 'nie',
    },
    fail: 'Simulierter Fehlschlag',
    fail_none: 'Keiner',
    ends: (how: string, time: string) => `Endet nach ${time}: ${how}.`,
    stands: (how: string, time: string) => `Steht nach ${time}: ${how}. Wartet auf eine Person.`,
    ended: {
      succeeded: 'erfolgreich',
      succeeded_with_exceptions: 'erfolgreich mit Ausnahmen',
      failed: 'fehlgeschlagen',
      cancelled: 'abgebrochen',
      timed_out: 'Zeit überschritten',
      blocked: 'blockiert',
      paused: 'angehalten',
    },
    assumed: (delay: string, failures: string[]) =>
      `Annahme: Freigaben werden ${delay} entschieden${failures.length > 0 ? `; ${list.format(failures)}` : ''}.`,
    failure: (node: string, attempt: number, why: string) => `${node} schlägt bei Versuch ${attempt} fehl (${why})`,
    seconds: (text: string) => `nach ${text}`,
    lanes: 'Ablauf',
    lanes_cut: (shown: number, all: number) => `Die ersten ${number(shown)} von ${number(all)} Läufen.`,
    gate_at: (gate: string, at: string, decided: string | null) =>
      decided === null ? `${gate}: offen ${at}, nicht entschieden` : `${gate}: offen ${at}, entschieden ${decided}`,
    gates: 'Freigaben',
    undone: (names: string[]) => `Zurückgebaut, in dieser Reihenfolge: ${list.format(names)}.`,
    attempt: (n: number) => (n === 0 ? 'wartet' : `Versuch ${n}`),
    bar: (node: string, attempt: string, from: string, to: string, failure: string | null) =>
      `${node}, ${attempt}: ${from} bis ${to}${failure === null ? '' : `, schlägt fehl: ${failure}`}`,
    warnings: 'Befunde',
  },
}

/** The German texts for the observations of a watch, and for the preview of a tool. */
export const tObserved: typeof en.tObserved = {
  title: 'Beobachtet von',
  check: 'Prüfung',
  bad: 'Schlechte Messungen',
  of: (n: number, all: number) => `${number(n)} von ${number(all)}`,
  last: 'Zuletzt',
  min: 'Minimum',
  max: 'Maximum',
  baseline: 'Die übrigen',
}

export const tPreview: typeof en.tPreview = {
  changes: (n: number) => count(n, 'Die Vorschau zeigt 1 Änderung', 'Die Vorschau zeigt {n} Änderungen'),
  exact: 'Genau diese Plandatei wird ausgeführt, Byte für Byte.',
  only: (targets: string[]) => `Nur dies und was es voraussetzt: ${list.format(targets)}.`,
  commit: 'Genau dieser Commit wird gepusht.',
  commit_id: 'Commit:',
  checked: 'Wird vor der Änderung erneut gelesen; bei Abweichung verweigert.',
  forecast: 'Eine Prognose: Das Werkzeug kann davon abweichen.',
  unforeseen: (n: number) => count(n, '1 Teil ist nicht vorhersehbar', '{n} Teile sind nicht vorhersehbar'),
  base: (serial: number) => `Erstellt auf State-Version ${serial}; Plandatei:`,
  cut: (shown: number, count: number) =>
    `Die ersten ${number(shown)} von ${number(count)} Änderungen; die Prüfsumme gilt für alle.`,
  fields: (shown: number, count: number) => `Die ersten ${number(shown)} von ${number(count)} Feldern.`,
  unknown: 'erst nach dem Anwenden bekannt',
  sensitive: 'vertraulich',
  sensitive_changes: 'ändert sich',
}
