/**
 * Canonical JSON (RFC 8785, JCS): equal data gives equal text. Pure, so that server, console and command line
 * compute the same digests. Members with the value `undefined` are left out, as JSON.stringify does.
 */
export const canonicalJson = (value: unknown): string => {
  if (value === null || typeof value === 'boolean' || typeof value === 'string') return JSON.stringify(value)
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw new TypeError('canonical JSON has no word for a number that is not finite')
    return JSON.stringify(value)
  }
  if (Array.isArray(value)) return `[${value.map((item) => canonicalJson(item === undefined ? null : item)).join(',')}]`
  if (typeof value === 'object') {
    const members = value as Record<string, unknown>
    const parts: string[] = []
    for (const key of Object.keys(members).sort()) {
      if (members[key] !== undefined) parts.push(`${JSON.stringify(key)}:${canonicalJson(members[key])}`)
    }
    return `{${parts.join(',')}}`
  }
  throw new TypeError(`canonical JSON has no word for ${typeof value}`)
}
