/** Escapes that Postgres rejects: U+0000 and unpaired surrogates. */
const UNSTORABLE = /\\u(0000|d[89a-f])/

/** The JSON of any output of targets and programs; a character that cannot be stored becomes U+FFFD. */
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
        typeof value === 'number' && (Number.isInteger(value) ? !Number.isSafeInteger(value) : !Number.isFinite(value))
          ? (context?.source ?? value)
          : value,
      )
    : JSON.parse(text)
