import { count, number } from './frame/plural.ts'

/** Texts for saved views. */
export const tViews = {
  title: 'Saved views',
  save: 'Save view',
  save_title: 'Save this view',
  replace: 'Replace view',
  replaces: (name: string) => `This replaces the filters of ${name}.`,
  name: 'Name',
  shared: 'Shown to',
  alone: 'Only me',
  shared_by: (owner: string, group: string) => `${owner} shares this view with ${group}.`,
  shared_with: (group: string) => `You share this view with ${group}.`,
  change: 'Change view',
  change_one: (name: string) => `Change ${name}`,
  delete: 'Delete',
  delete_one: (name: string) => `Delete ${name}`,
  deletes: 'Only the view is deleted. The list stays.',
  deletes_shared: (group: string) => `The members of ${group} lose the view. The list stays.`,
  failed: 'Saved views could not be loaded.',
}

/** Texts for the export of lists. */
export const tExport = {
  csv: 'Export as CSV',
  jsonl: 'Export as JSON Lines',
  exporting: (rows: number) => count(rows, 'Reading … {n} row', 'Reading … {n} rows'),
  exported: (rows: number) => count(rows, 'Saved one row.', 'Saved {n} rows.'),
  cut: (rows: number) => `Saved the first ${number(rows)} rows. Filter the list to export others.`,
}
