import { type Catalogue, en } from './en.ts'

/** The words of the chosen language. Set before the first paint; a change of language reloads the page. */
export const t: Catalogue = en
export type { Catalogue }
