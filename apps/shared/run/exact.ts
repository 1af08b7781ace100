/**
 * Integers beyond 2^53 are marked texts in this program. As numbers they would lose digits, so that two of them might look
 * the same, and an undo would write other digits.
 */
const MARK = '\u0000integer:'
const MARKED = /"\\u0000integer:(-?\d+)"/g
const WIDE = /^-?\d{16,}$/

const parsing =
  (mark: string) =>
  (text: string): unknown =>
    /\d{16}/.test(text)
      ? JSON.parse(text, (_name, value: unknown, context?: { source?: string }) =>
          typeof value === 'number' && context?.source !== undefined && isWide(context.source)
            ? mark + context.source
            : value,
        )
      : JSON.parse(text)
const isWide = (token: string): boolean => WIDE.test(token) && !Number.isSafeInteger(Number(token))

export const parseExact = parsing(MARK)

/** Such an integer becomes the text of its digits, for readers that write no JSON from it. */
export const parseDigits = parsing('')

export const writeExact = (value: unknown): string => JSON.stringify(value).replace(MARKED, '$1')

/** Such an integer as people read it, and any other text as it is. */
export const digitsOf = (text: string): string => (text.startsWith(MARK) ? text.slice(MARK.length) : text)
