const PLAIN = /^[\w ./:@+-]*$/
/** Returns a text as JSON; most of ours are plain, and the check is cheaper than the call. */
const quoted = (text: string): string => (text.length < 64 && PLAIN.test(text) ? `"${text}"` : JSON.stringify(text))

/**
 * Canonical JSON (RFC 8785, JCS): equal data gives equal text. Pure, so that server, console and command line
 * compute the same digests. Members with the value `undefined` are left out, as JSON.stringify does.
 */
export const canonicalJson = (value: unknown): string => {
  if (typeof value === 'string') return quoted(value)
  if (value === null || typeof value === 'boolean') return String(value)
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw new TypeError('canonical JSON cannot represent a number that is not finite')
    return JSON.stringify(value)
  }
  if (Array.isArray(value)) return `[${value.map((item) => canonicalJson(item === undefined ? null : item)).join(',')}]`
  if (typeof value === 'object') {
    const members = value as Record<string, unknown>
    let text = ''
    for (const key of Object.keys(members).sort()) {
      const member = members[key]
      if (member !== undefined) text += `${text === '' ? '' : ','}${quoted(key)}:${canonicalJson(member)}`
    }
    return `{${text}}`
  }
  throw new TypeError(`canonical JSON cannot represent ${typeof value}`)
}
