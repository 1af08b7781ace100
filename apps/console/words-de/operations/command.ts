import type * as en from '../../words/operations/command.ts'
import { count, list } from '../frame/plural.ts'

const finishing = (running: number): string =>
  running === 0
    ? 'Kein Schritt läuft'
    : count(running, 'Ein laufender Schritt endet noch', '{n} laufende Schritte enden noch')
/** The German texts for the dialogs of commands. */
export const command: typeof en.command = {
  reason: 'Begründung',
  reason_needed: 'Begründung eingeben.',
  sending: 'Wird gesendet …',
  asking: 'Wirkung wird geprüft …',
  no_dry_run: 'Der Server konnte die Wirkung nicht vorab zeigen.',
  accepted_start: 'Aufgezeichnet um',
  accepted_end: 'Der Workflow hat es noch nicht bestätigt. Bis dahin gilt es hier als ausstehend.',
  unknown: 'Ob dies gewirkt hat, ist unbekannt.',
  ask_again: 'Erneut nachfragen',
  not_possible: 'Jetzt nicht möglich',
  possible: (actions: string[]) => `Jetzt möglich: ${list.format(actions)}.`,
  confirm_word: (word: string) => `Zur Bestätigung ${word} eingeben`,
  confirm_needed: (word: string) => `${word} eingeben.`,
  offline: 'Offline sind keine Befehle möglich.',
  pause: {
    title: 'Diesen Vorgang anhalten?',
    button: 'Vorgang anhalten',
    effect: (running: number, rest: number) =>
      `${finishing(running)}; bis zum Fortsetzen ${count(rest, 'startet einer nicht', 'starten {n} nicht')}.`,
  },
  resume: {
    title: 'Diesen Vorgang fortsetzen?',
    button: 'Vorgang fortsetzen',
    effect: (next: string[]) =>
      next.length === 0
        ? 'Kein Schritt startet sofort: Freigaben und Fehlschläge warten noch.'
        : `Als Nächstes starten: ${list.format(next)}.`,
    drifted: (names: string[]) => `Seit dem Plan im Katalog geändert: ${list.format(names)}.`,
    acknowledge: 'Geprüft. Die neuen Werte verwenden.',
  },
  cancel: {
    title: 'Diesen Vorgang abbrechen?',
    button: 'Vorgang abbrechen',
    mode: 'Art',
    graceful: 'Stoppen: Laufende Schritte enden noch, nichts startet neu, nichts wird zurückgebaut',
    force: 'Sofort stoppen: Laufende Schritte werden aufgegeben, ihr Ergebnis ist unbekannt',
    compensate: 'Stoppen und zurückbauen: erfolgreiche Schritte in umgekehrter Reihenfolge',
    effect: (running: number, rest: number) =>
      `${finishing(running)}; ${count(rest, 'einer startet nicht mehr', '{n} starten nicht mehr')}.`,
    compensations: (n: number) =>
      n === 0
        ? 'Kein Schritt ist zurückzubauen.'
        : count(n, 'Ein Schritt wird zurückgebaut.', '{n} Schritte werden zurückgebaut.'),
  },
  retry: {
    title: 'Diesen Schritt wiederholen?',
    button: 'Schritt wiederholen',
    effect: (names: string[]) =>
      `${count(names.length, 'Dieser Schritt läuft', 'Diese Schritte laufen')} erneut: ${list.format(names)}.`,
    gates: (names: string[]) =>
      `${count(names.length, 'Diese Freigabe ist', 'Diese Freigaben sind')} erneut nötig: ${list.format(names)}.`,
    other_inputs: 'Mit anderen Eingaben',
    found: 'Das Ergebnis des letzten Versuchs ist unbekannt. Was ist am Ziel zu sehen?',
    findings: {
      effect_absent: 'Er hat nicht gewirkt',
      effect_present: 'Er hat vollständig gewirkt',
      effect_partial: 'Er hat teilweise gewirkt',
    },
  },
}
