import type * as en from '../../words/operations/evidence.ts'
import { count, number } from '../frame/plural.ts'

/** The German texts for evidence: the records that prove an operation. */
export const evidence: typeof en.evidence = {
  title: 'Nachweise',
  sentence: (n: number) =>
    count(
      n,
      'Ein Eintrag, per Hash mit dem freigegebenen Plan verkettet.',
      '{n} Einträge, jeder per Hash mit dem vorigen verkettet. Der erste hängt am gestarteten Plan.',
    ),
  empty: 'Noch keine Einträge. Der erste entsteht mit dem Start des Vorgangs.',
  caption: 'Nachweise in der Reihenfolge der Kette',
  head: 'Ende der Kette',
  begins: 'Beginnt bei Plan',
  columns: {
    seq: 'Nr.',
    at: 'Zeit',
    kind: 'Art',
    statement: 'Aussage',
    who: 'Wer',
    subject: 'Prüfsumme des Gegenstands',
    hash: 'Hash',
  },
  executed: {
    ran: (program: string, agent: string, exit: number | undefined) =>
      `${agent === '' ? 'Ein Agent' : agent} hat ${program} ausgeführt${exit === undefined ? '' : `, Exit-Code ${exit}`}`,
    program: 'Programm',
    plan: 'Gespeicherter Plan',
    commit: 'Commit',
  },
  print: 'Drucken',
  partly: (n: number, all: number) =>
    `Einträge 1 bis ${number(n)} von ${number(all)}. „Drucken“ auf dieser Seite druckt alle.`,
  verify: 'In diesem Browser prüfen',
  not_verified: 'Vor dem Drucken nicht in diesem Browser geprüft.',
  verifying: 'Alle Einträge werden gelesen und nachgerechnet …',
  holds: (n: number, hash: string) =>
    count(n, 'Der eine Eintrag stimmt', 'Alle {n} Einträge stimmen').concat(
      `: vom Plan bis zum Ende der Kette ${hash} …`,
    ),
  broken: (seq: number) =>
    seq === 0 ? 'Die Kette endet nicht mit dem genannten Eintrag.' : `Eintrag ${seq} besteht die Prüfung nicht.`,
  why: {
    number: 'Seine Nummer ist außer der Reihe: Ein Eintrag fehlt oder wurde verschoben.',
    operation: 'Er gehört zu einem anderen Vorgang.',
    hash: 'Sein Inhalt passt nicht zu seinem Hash: Er wurde geändert.',
    link: 'Er ist nicht mit dem Eintrag davor verkettet.',
    head: 'Der Vorgang nennt einen anderen Eintrag als letzten.',
    authority: 'Er widerspricht den zuvor aufgezeichneten Stimmen und Regeln.',
  },
  ended: 'Die Kette ist vollständig: Der Vorgang ist beendet.',
  not_ended: 'Die Kette ist nicht vollständig: Der Vorgang ist noch nicht beendet.',
  counted: (decisions: number, starts: number) =>
    [
      count(decisions, 'Eine Entscheidung', '{n} Entscheidungen'),
      'aus den aufgezeichneten Stimmen und Regeln nachgezählt,',
      count(starts, 'ein Start', '{n} Starts'),
      'hinter Freigaben.',
    ].join(' '),
  not_counted: 'Diese Kette stammt von einer älteren Version. Sie nennt keine Stimmen zu ihren Freigaben.',
  expected: 'Erwartet',
  found: 'Gefunden',
  proves: [
    'Ihr Browser hat die Kette des Servers nachgerechnet.',
    'Seither wurde kein Eintrag geändert, entfernt oder verschoben.',
    'Das beweist nicht, dass der Server allen dieselbe Kette zeigt.',
    'Dafür die signierte Datei aufbewahren: Sie lässt sich ohne diesen Server prüfen.',
  ].join(' '),
  export: 'Signierte Datei herunterladen',
  exported: 'Gespeichert. Mit den Befehlen unten überall prüfbar.',
  commands: 'Auf der Befehlszeile',
  commands_note: [
    'Den Client signalbox gibt es bei den Betreibern dieser Installation: als Tarball oder als Programm.',
    'Die Schlüssel getrennt von der Datei aufbewahren, die sie prüfen.',
    'Die Prüfung läuft offline und nennt die erste fehlerhafte Zeile.',
  ].join(' '),
}

/** The German texts for artifacts. */
export const artifacts: typeof en.artifacts = {
  title: 'Artefakte',
  caption: 'Artefakte dieses Vorgangs',
  empty: 'Noch keine Artefakte.',
  empty_node: 'Dieser Schritt hat keine Artefakte.',
  columns: {
    name: 'Name',
    kind: 'Art',
    node: 'Schritt',
    size: 'Größe',
    sha256: 'SHA-256',
    at: 'Gespeichert',
    get: 'Inhalt',
  },
  pending: 'Angekündigt, noch nicht hochgeladen',
  gone: 'Aufbewahrungsfrist abgelaufen',
  elsewhere: 'Anderswo gespeichert',
  download_one: (name: string) => `${name} herunterladen`,
  preview: 'Vorschau',
  preview_one: (name: string) => `Vorschau von ${name}`,
  matches: (name: string) => `${name}: Der Inhalt passt zur aufgezeichneten Prüfsumme.`,
  differs: (name: string) =>
    `${name}: Der Inhalt passt nicht zur aufgezeichneten Prüfsumme. Er wurde nicht gespeichert.`,
  too_large: 'Über 2 MB, zu groß für die Vorschau. Stattdessen herunterladen.',
  no_preview: 'Für diese Art von Inhalt gibt es keine Vorschau. Stattdessen herunterladen.',
  source: 'Als Quelltext gezeigt; darin läuft kein Code.',
}
