import type * as en from '../../words/frame/audit.ts'
import { count } from './plural.ts'

const lines = (rows: number): string => count(rows, '{n} Zeile', '{n} Zeilen')
const decimal = new Intl.NumberFormat('de', { maximumFractionDigits: 1 })

/** The German texts for the audit logs. */
export const audit: typeof en.audit = {
  title: 'Prüfprotokoll',
  intro: 'Wer was mit welchem Ergebnis tat, Neuestes zuerst. Einträge werden nie geändert.',
  sources_label: 'Protokoll',
  sources: { operations: 'Vorgänge', catalog: 'Katalog', users: 'Benutzer', 'sign-ins': 'Anmeldungen' },
  columns: {
    at: 'Wann',
    who: 'Wer',
    roles: 'Damalige Rollen',
    action: 'Aktion',
    object: 'Objekt',
    outcome: 'Ergebnis',
    reason: 'Begründung',
    request: 'Anfrage',
  },
  outcomes: { done: 'Erledigt', applied: 'Angewendet', noted: 'Vermerkt', denied: 'Verweigert' },
  caption: 'Einträge in diesem Protokoll',
  empty: 'Noch keine Einträge.',
  no_match: 'Keine passenden Einträge.',
  clear: 'Filter zurücksetzen',
  actor: 'Wer, etwa olga oder svc:worker',
  action: 'Aktion, etwa gate_decided',
  object: 'Objekt, etwa resource:eu1-web-01',
  from: 'Ab Tag (UTC)',
  to: 'Vor Tag (UTC)',
  cut: (rows: number, source: string) =>
    `Neueste ${lines(rows)} gespeichert. Alle exportieren: signalbox audit export --source ${source}`,
}

/** The German texts for the health page. */
export const health: typeof en.health = {
  title: 'Zustand',
  resources: 'Ressourcen, die nicht in Ordnung sind',
  all_well: 'Alle Ressourcen sind in Ordnung oder haben ihren Zustand nicht gemeldet.',
  caption: 'Ressourcen, schlechtester Zustand zuerst',
  see_all: 'Alle ansehen',
  place: 'Ort',
  since: 'Geändert',
  parts: 'Prozesse der Plattform',
  parts_note: 'Die letzte Meldung jedes Prozesses.',
  parts_caption: 'Prozesse und ihr Status',
  columns: {
    part: 'Prozess',
    instance: 'Instanz',
    status: 'Status',
    since: 'Seit',
    not_ready: 'Nicht bereit',
    lags: 'Rückstand',
  },
  status: { ready: 'Bereit', degraded: 'Eingeschränkt', unready: 'Nicht bereit', silent: 'Ohne Meldung' },
  as_of: 'Stand:',
  /** Lags are named with their unit: `catalog_projection_s`. */
  lag: (name: string, value: number) => {
    const [, words = name, unit = ''] = /^(.*)_(s|ms)$/.exec(name) ?? []
    return `${words.replaceAll('_', ' ')} ${decimal.format(value)}${unit && ` ${unit}`}`
  },
}
