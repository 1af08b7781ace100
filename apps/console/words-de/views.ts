import type * as en from '../words/views.ts'
import { count } from './frame/plural.ts'

const lines = (rows: number): string => count(rows, '{n} Zeile', '{n} Zeilen')

/** The German texts for saved views. */
export const tViews: typeof en.tViews = {
  title: 'Gespeicherte Ansichten',
  save: 'Ansicht speichern',
  save_title: 'Diese Ansicht speichern',
  replace: 'Ansicht ersetzen',
  replaces: (name: string) => `Das ersetzt die Filter von ${name}.`,
  name: 'Name',
  shared: 'Sichtbar für',
  alone: 'Nur mich',
  shared_by: (owner: string, group: string) => `${owner} teilt diese Ansicht mit ${group}.`,
  shared_with: (group: string) => `Geteilt mit ${group}.`,
  change: 'Ansicht ändern',
  change_one: (name: string) => `${name} ändern`,
  delete: 'Löschen',
  delete_one: (name: string) => `${name} löschen`,
  deletes: 'Nur die Ansicht wird gelöscht. Die Liste bleibt.',
  deletes_shared: (group: string) => `Die Mitglieder von ${group} verlieren die Ansicht. Die Liste bleibt.`,
  failed: 'Gespeicherte Ansichten konnten nicht geladen werden.',
}

/** The German texts for the export of lists. */
export const tExport: typeof en.tExport = {
  csv: 'Als CSV exportieren',
  jsonl: 'Als JSON Lines exportieren',
  exporting: (rows: number) => `Wird gelesen … ${lines(rows)}`,
  exported: (rows: number) => `${lines(rows)} gespeichert.`,
  cut: (rows: number) => `Erste ${lines(rows)} gespeichert. Für weitere die Liste filtern.`,
}
