import type * as en from '../../words/operations/node.ts'
import { count, number } from '../frame/plural.ts'

/** The German texts for nodes and their logs. */
export const nodes: typeof en.nodes = {
  title: 'Schritte',
  caption: 'Schritte dieses Vorgangs, Fehlschläge zuerst',
  node: 'Schritt',
  target: 'Ziel',
  status: 'Status',
  attempt: 'Versuch',
  started: 'Begonnen',
  duration: 'Dauer',
  error: 'Fehler',
  filter: 'Anzeigen',
  every: 'Alle',
  no_match: 'Keine Schritte mit diesem Status.',
}

/** The German texts for one node. */
export const node: typeof en.node = {
  tabs: { summary: 'Übersicht', logs: 'Logs', io: 'Ein- und Ausgaben', artifacts: 'Artefakte' },
  tabs_label: 'Ansichten dieses Schritts',
  executor: 'Ausführung',
  target: 'Ziel',
  group: 'Welle',
  attempts: 'Versuche',
  attempt: (n: number) => `Versuch ${n}`,
  attempt_of: (n: number, total: number) => `Versuch ${n} von ${total}`,
  no_attempt: 'Dieser Schritt hat noch nicht begonnen.',
  started: 'Begonnen',
  ended: 'Beendet',
  duration: 'Dauer',
  progress: 'Fortschritt',
  error: 'Fehler',
  error_class: 'Klasse',
  retryable: 'Wiederholbar',
  yes: 'ja',
  no: 'nein',
  inputs: 'Eingaben',
  outputs: 'Ausgaben',
  spec: 'Spezifikation',
  no_outputs: 'Noch keine Ausgaben.',
  retry: 'Schritt wiederholen',
  gates: 'Freigaben',
  see_logs: 'Log ansehen',
}

/** The German texts for logs. */
export const logs: typeof en.logs = {
  label: 'Log',
  lines: 'Zeilen des Logs',
  empty: 'Dieser Versuch hat keine Logzeilen.',
  not_started: 'Dieser Schritt hat noch nicht begonnen, also gibt es kein Log.',
  new_lines: (n: number) => count(n, '{n} neue Zeile', '{n} neue Zeilen'),
  wrap: 'Zeilen umbrechen',
  times: 'Zeiten',
  download: 'Herunterladen',
  total: (n: number) => count(n, '{n} Zeile', '{n} Zeilen'),
  errors: (n) => count(n, '{n} Fehler', '{n} Fehler'),
  levels: { error: 'Fehler', warn: 'Warnung' },
  live: 'läuft mit',
  complete: 'vollständig',
  cut: 'Zeile beim Speichern auf 16 KiB gekürzt',
  line: (n: number) => `Zeile ${n}`,
  search: 'Log durchsuchen',
  matches: (at: number, n: number) =>
    n === 0 ? 'Keine Treffer' : `${number(at)} von ${number(n)}${n > 1 ? ', neueste zuerst' : ''}`,
  previous: 'Voriger Treffer',
  next: 'Nächster Treffer',
  select_first: 'Erst Zeilen auswählen, mit Umschalt und einer Pfeiltaste.',
  selected: (from: number, to: number) =>
    from === to ? `Zeile ${number(from)} ausgewählt` : `Zeilen ${number(from)} bis ${number(to)} ausgewählt`,
  no_error: 'Keine weiteren Fehler in dieser Richtung.',
  not_copied: 'Nicht kopiert. Dieser Seite die Zwischenablage erlauben, dann erneut versuchen.',
}

/** The German texts for two logs side by side. */
export const compare: typeof en.compare = {
  with: 'Vergleichen mit',
  none: 'keinem anderen Versuch',
  attempt: (n: number) => `Versuch ${n}`,
  label: (before: number, after: number) => `Versuche ${before} und ${after} im Vergleich`,
  differ: (n: number, all: number) =>
    `${number(n)} von ${count(all, '{n} Zeile', '{n} Zeilen')} ${n === 1 ? 'weicht ab' : 'weichen ab'}`,
  masked: 'Zeiten, Dauern und Kennungen zählen nicht.',
  only: 'Nur Abweichungen',
  same: 'Die Logs sind gleich.',
}
