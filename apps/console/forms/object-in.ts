/** Parses a typed JSON object; empty text is an empty object. `undefined` for any other JSON. */
export const objectIn = (text: string): Record<string, unknown> | undefined => {
  if (text.trim() === '') return {}
  try {
    const value: unknown = JSON.parse(text)
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
    return isObject ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}
