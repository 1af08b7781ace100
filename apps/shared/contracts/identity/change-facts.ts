/**
 * One thing that a change would do: a member of its request, or `part` of it, such as a claim. An empty value is a limit
 * that is not set.
 */
export type Fact = { name: string; part?: string; value: string }

type Change = { request: object; subject: { gives: readonly string[]; members: readonly string[] } }

/** Members that the subject of the change names. */
const NAMED = new Set(['username', 'user_id', 'subject_type', 'subject_id', 'machine_id', 'credential_id'])
/** Members that limit what the change gives: without them there is no limit, which is said. */
const LIMITS = new Set(['scope', 'networks', 'expires_at'])
/** Members whose parts someone else names. */
const FOREIGN = new Set(['claims', 'jwk'])

/** Characters that do not show, as their number: an issuer with one in it is another issuer. */
const shown = (text: string) =>
  text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (hidden) => `\\u{${hidden.codePointAt(0)?.toString(16)}}`)

/**
 * What a change would do: everything that a second administrator must see before the decision. It walks over the whole
 * request, so a member that a request gets later is not forgotten.
 */
export const factsOf = ({ request, subject: { gives, members } }: Change): Fact[] => [
  // A grant names its role itself.
  ...listed('gives', 'role' in request || 'grants' in request ? [] : gives),
  ...listed('members', members.length === 0 ? [] : [String(members.length)]),
  ...Object.entries(grantOf(request)).flatMap(([name, value]) => (NAMED.has(name) ? [] : factsIn(name, value))),
]

/** The same as lines for a terminal, by the names of the API. */
export const factLines = (change: Change): string[] =>
  factsOf(change).map(({ name, part, value }) => `${[name, part].filter(Boolean).join(' ')}: ${value || 'no limit'}`)

/** A grant without a place holds everywhere, and without an end for ever. */
const grantOf = (value: object): object => {
  if (!('role' in value)) return value
  const { scope = {}, expires_at = '' } = value as { scope?: object; expires_at?: string }
  return { ...value, scope, expires_at }
}

const listed = (name: string, values: readonly unknown[]): Fact[] =>
  values.length > 0 || LIMITS.has(name) ? [{ name, value: shown(values.join(', ')) }] : []

const factsIn = (name: string, value: unknown): Fact[] => {
  if (value === null || value === undefined) return []
  if (typeof value !== 'object') return listed(name, [value])
  if (Array.isArray(value))
    return value.some((one) => typeof one === 'object')
      ? value.flatMap((one) => factsIn(name, one))
      : listed(name, value)
  // A claim or a part of a key may have the name of a member of ours.
  const parts = Object.entries(FOREIGN.has(name) ? value : grantOf(value))
  if (parts.length === 0) return listed(name, [])
  return parts.flatMap(([part, one]) =>
    FOREIGN.has(name) ? [{ name, part, value: shown(String(one)) }] : factsIn(part, one),
  )
}
