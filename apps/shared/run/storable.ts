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
