import { ACCESS } from './codes/access.ts'
import { REQUEST } from './codes/request.ts'
import { SERVICE } from './codes/service.ts'
import { STATE } from './codes/state.ts'

export type { Entry } from './codes/entry.ts'

/**
 * Every refusal of the API: by category, then by code. /docs/errors is rendered from this table. Adding a code is one
 * line in the file of its category, and `npm run check` asks for a source and a test of it.
 */
export const CODES = { ...REQUEST, ...ACCESS, ...STATE, ...SERVICE } as const

/** What kind of refusal it is: the closed set of categories. */
export type Category = keyof typeof CODES
/** Which refusal it is exactly: the codes of a category, or of any. */
export type CodeOf<C extends Category> = C extends Category ? keyof (typeof CODES)[C] & string : never
export type Code = CodeOf<Category>
