import type * as en from '../words/views.ts'

/** The German texts for saved views. */
export const tViews: typeof en.tViews = {
  title: 'Gespeicherte Ansichten',
  save: 'Ansicht speichern',
  save_title: 'Diese Ansicht speichern',
  replace: 'Ansicht ersetzen',
  replaces: (name: string) => `Das ersetzt die Filter von ${name}.`,
  name: 'Name',
  rename: 'Umbenennen',
  rename_one: (name: string) => `${name} umbenennen`,
  delete: 'Löschen',
  delete_one: (name: string) => `${name} löschen`,
  deletes: 'Nur die Ansicht wird gelöscht. Die Liste bleibt.',
  failed: 'Gespeicherte Ansichten konnten nicht geladen werden.',
}
