import Type, { type TStringOptions } from 'typebox'

/** A text with an example of it: every text of a reply shows what stands there (example.ts makes whole replies of them). */
export const text = (example: string, options: TStringOptions = {}) => Type.String({ ...options, examples: [example] })
