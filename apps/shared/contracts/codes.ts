import { ACCESS } from './codes/access.ts'
import { REQUEST } from './codes/request.ts'
import { SERVICE } from './codes/service.ts'
import { STATE } from './codes/state.ts'

export type { Entry } from './codes/entry.ts'

/**
 * Every refusal of the API, by category, then by code. /docs/errors is rendered from this table. To add a code, add a
 * line to the file of its category; `npm run check` requires a source and a test of it.
 */
export const CODES = { ...REQUEST, ...ACCESS, ...STATE, ...SERVICE } as const

/** The kind of refusal: the closed set of categories. */
export type Category = keyof typeof CODES
/** The exact refusal: the codes of one category, or of any. */
export type CodeOf<C extends Category> = C extends Category ? keyof (typeof CODES)[C] & string : never
export type Code = CodeOf<Category>
