/** The members of a JWK that are secret (RFC 7518, section 6). */
const PRIVATE = new Set(['d', 'k', 'p', 'q', 'dp', 'dq', 'qi', 'oth'])

/** Whether a value contains the private half of a key, at any depth, such as in a set of keys. Such a value is not sent. */
export const isPrivateKey = (value: unknown): boolean =>
  typeof value === 'object' &&
  value !== null &&
  Object.entries(value).some(([name, inner]) => (!Array.isArray(value) && PRIVATE.has(name)) || isPrivateKey(inner))
