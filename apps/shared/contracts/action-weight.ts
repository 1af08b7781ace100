const HEAVIEST_FIRST = ['delete', 'replace', 'forget', 'update', 'create', 'import', 'move', 'read']

/** Orders the actions of a preview: what destroys comes first. */
export const byActionWeight = (a: string, b: string): number => HEAVIEST_FIRST.indexOf(a) - HEAVIEST_FIRST.indexOf(b)
