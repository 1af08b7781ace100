import type * as en from '../../words/operations/command.ts'
import { list } from '../frame/plural.ts'

/** The German texts for the dialogs of commands. */
export const tCommand: typeof en.tCommand = {
  reason: 'Begründung',
  required: 'Erforderlich',
  reason_needed: 'Begründung eingeben.',
  sending: 'Wird gesendet …',
  asking: 'Wirkung wird geprüft …',
  no_dry_run: 'Der Server konnte die Wirkung nicht vorab zeigen.',
  accepted_start: 'Aufgezeichnet um',
  accepted_end: 'Der Workflow hat es noch nicht bestätigt. Bis dahin gilt es hier als ausstehend.',
  unknown: 'Ob dies gewirkt hat, ist unbekannt.',
  ask_again: 'Erneut nachfragen',
  not_possible: 'Jetzt nicht möglich',
  held: 'Andere Vorgänge belegen seine Ressourcen.',
  possible: (actions: string[]) => `Jetzt möglich: ${list.format(actions)}.`,
  confirm_word: (word: string) => `Zur Bestätigung ${word} eingeben`,
  confirm_needed: (word: string) => `${word} eingeben.`,
  offline: 'Offline sind keine Befehle möglich.',
  leaving: {
    title: 'Diese Seite verlassen?',
    lost: 'Ihre Eingaben gehen verloren.',
    stay: 'Bleiben',
    leave: 'Verlassen',
  },
}
