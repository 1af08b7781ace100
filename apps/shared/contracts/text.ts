import Type, { type TStringOptions } from 'typebox'

/** No control characters, no line ends, and none that cannot be seen, such as U+200B or a change of direction. */
const HIDDEN = '\\p{Cc}\\p{Cf}\\p{Zl}\\p{Zp}\\p{DI}'
const START = `^[\\p{Zs}]*[^\\s${HIDDEN}]`
/** A name that tells things apart: one line that shows, and two that look alike are alike. Takes linear time. */
export const NAME = `${START}[^${HIDDEN}]*$`
/** One line that is only read: joiners of letters and emoji may be in it. */
export const LINE = `${START}(?:[^${HIDDEN}]|[\\u200c\\u200d\\ufe0f])*$`

/** A text with an example of it: every text of a reply shows what stands there (example.ts makes whole replies of them). */
export const text = (example: string, options: TStringOptions = {}) => Type.String({ ...options, examples: [example] })
