import type * as en from '../../words/operations/gate-parts.ts'
import { count, list, number } from '../frame/plural.ts'

/** The German texts for what a watch observed, and for the preview of a tool. */
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
