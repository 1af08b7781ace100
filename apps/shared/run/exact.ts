/**
 * Integers beyond 2^53 are marked texts in this program. As numbers they would lose digits, so that two of them might look
 * the same, and an undo would write other digits.
 */
const MARK = '\u0000integer:'
const MARKED = /"\\u0000integer:(-?\d+)"/g
/** A whole number of at least 16 digits. */
const WIDE = /(?<![\d.eE+-])-?\d{16}\d*(?![\d.eE])/g
/** The same, or any number with an exponent or behind such a whole part. */
const LOSSY = /(?<![\d.eE+-])-?(?:\d{16}\d*(?:\.\d+)?(?:[eE][+-]?\d+)?|\d+(?:\.\d+)?[eE][+-]?\d+)/g

const parsing =
  (numbers: RegExp, mark: string) =>
  (text: string): unknown =>
    JSON.parse(marked(text, numbers, mark))

/** Whether it is beyond double range, or a whole number beyond 2^53. */
export const isLost = (value: number): boolean =>
  Number.isInteger(value) ? !Number.isSafeInteger(value) : !Number.isFinite(value)

/** Looks only for quotes between such numbers: an expression over a long text of many escapes runs out of stack. */
const marked = (text: string, numbers: RegExp, mark: string): string => {
  let made = ''
  let taken = 0
  let past = 0
  let quote = text.indexOf('"')
  for (const { 0: token, index } of text.matchAll(numbers)) {
    while (quote >= 0 && quote < index) {
      past = endOf(text, quote)
      quote = text.indexOf('"', past)
    }
    if (index < past || !isLost(Number(token))) continue
    made += text.slice(taken, index) + JSON.stringify(mark + token)
    taken = index + token.length
  }
  return made + text.slice(taken)
}

/** Where the text that begins with this quote ends. */
const endOf = (text: string, quote: number): number => {
  let end = quote
  do end = text.indexOf('"', end + 1)
  while (end >= 0 && isEscaped(text, end))
  return end < 0 ? text.length : end + 1
}

const isEscaped = (text: string, at: number): boolean => {
  let first = at
  while (text[first - 1] === '\\') first -= 1
  return (at - first) % 2 === 1
}

export const parseExact = parsing(WIDE, MARK)

/** A number beyond the range of a double, and a whole one beyond 2^53, becomes its text, for readers that write no JSON. */
export const parseDigits = parsing(LOSSY, '')

export const writeExact = (value: unknown): string => JSON.stringify(value).replace(MARKED, '$1')

/** Such an integer as people read it, and any other text as it is. */
export const digitsOf = (text: string): string => (text.startsWith(MARK) ? text.slice(MARK.length) : text)
