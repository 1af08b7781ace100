/** Escapes that Postgres rejects: U+0000 and unpaired surrogates. */
const UNSTORABLE = /\\u(0000|d[89a-f])/

/** Any output of targets and programs; a character that cannot be stored, also half of one that was cut, is U+FFFD. */
export const storableValue = <T>(value: T): T =>
  UNSTORABLE.test(JSON.stringify(value)) ? (storable(value) as T) : value

export const storableJson = (value: unknown): string => {
  const text = JSON.stringify(value)
  return UNSTORABLE.test(text) ? JSON.stringify(storable(value)) : text
}

export const storableText = (text: string): string => text.replaceAll('\0', '\uFFFD').toWellFormed()

const storable = (value: unknown): unknown => {
  if (typeof value === 'string') return storableText(value)
  if (Array.isArray(value)) return value.map(storable)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [storable(key), storable(member)]))
}

const LARGE = /\d{16}|\d[eE]/

/** Parses JSON of a target or a program. A number that double precision would alter or lose is its text (platform.md 7). */
export const parseOutput = (text: string): unknown =>
  LARGE.test(text)
    ? JSON.parse(text, (_name, value: unknown, context?: { source?: string }) =>
        typeof value === 'number' && context?.source !== undefined && isAltered(value, context.source)
          ? context.source
          : value,
      )
    : JSON.parse(text)

/** Whether a whole number is neither the one of its text, as 2^60 is, nor written like it, as 1e23 is. */
const isAltered = (value: number, source: string): boolean => {
  if (!Number.isInteger(value)) return !Number.isFinite(value)
  if (Number.isSafeInteger(value)) return false
  const stated = decimalOf(source)
  return stated !== decimalOf(String(value)) && stated !== decimalOf(String(BigInt(value)))
}

/** Equal for two texts of one number. */
const decimalOf = (text: string): string => {
  const [, sign = '', whole = '', part = '', exponent = '0'] = DECIMAL.exec(text) ?? []
  const digits = (whole + part).replace(/^0+/, '')
  let end = digits.length
  while (digits[end - 1] === '0') end -= 1
  return `${sign}${digits.slice(0, end)}e${Number(exponent) - part.length + digits.length - end}`
}
const DECIMAL = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/
