import { canonicalJson } from './canonical.ts'

export type Fields = Record<string, unknown>

/** The rules of a gate as the chain states them. */
export type GateRules = {
  gate_id: string
  kind: string
  quorum: number
  groups: { group: string; min: number }[]
  /** Groups that escalation may add. */
  more_groups: string[]
  four_eyes: boolean
  reject_rule: string
  on_timeout: string
  on_voter_loss?: string
  /** For a gate that asks about a freeze: which one. Its end passes the gate without a vote. */
  freeze_id?: string
  /** The service that answers instead of people. */
  service?: string
  /** Whether each vote needs the voter's passkey. */
  signature?: string
  /** For an intervention: its author, who therefore cannot approve it. */
  author?: string
  /** The people behind the author, if it is a machine. */
  behind?: readonly string[]
}

export type Vote = {
  name: string
  decision: string
  digest: string
  groups: (string | null)[]
  involved: boolean
  signed: boolean
  /** The person who delegated it: the two count as one. */
  in_place_of: string | null
}

const unraised = (rule: GateRules) => canonicalJson({ ...rule, quorum: 0, groups: [], on_timeout: '' })

/** Whether rules differ from others at most by more votes, by groups that are needed, or by silence that rejects. */
export const isStricter = (rule: GateRules, than: GateRules): boolean =>
  unraised(rule) === unraised(than) &&
  rule.quorum >= than.quorum &&
  (rule.on_timeout === than.on_timeout || rule.on_timeout === 'reject') &&
  than.groups.every(({ group, min }) => rule.groups.some((other) => other.group === group && other.min >= min)) &&
  rule.groups.every(({ group, min }) => min > 0 || than.groups.some((other) => other.group === group))

/** Returns why these votes do not pass a gate under its rules. */
export const short = (
  rule: GateRules,
  subject: Fields,
  votes: readonly (readonly [string, Vote])[],
  digest: string,
): string | undefined => {
  const eligible = new Set([...rule.groups.map(({ group }) => group), ...rule.more_groups])
  const out: string[] = []
  const eligibleVotes = votes.filter(([voter, given]) => {
    if (given.decision !== 'approve' || given.digest !== digest) return false
    const own =
      rule.author === undefined ? given.involved : voter === rule.author || listOf(rule.behind).includes(voter)
    // No person has such a name.
    if (given.name.startsWith('machine:')) out.push(`${given.name} is a machine`)
    else if (rule.four_eyes && own) out.push(`${given.name} takes part in the operation`)
    else if (rule.signature === 'required' && !given.signed) out.push(`${given.name} did not sign with a passkey`)
    else if (rule.groups.length > 0 && !given.groups.some((group) => group !== null && eligible.has(group)))
      out.push(`${given.name} is in none of its groups`)
    else return true
    return false
  })
  const counting = eligibleVotes.filter(([voter, { name, in_place_of: by }]) => {
    if (by === null) return true
    const first = eligibleVotes.find(([, other]) => other.in_place_of === by)?.[0]
    const once = first === voter && !votes.some(([other]) => other === by)
    if (!once) out.push(`${name} voted in the place of someone whose vote was given already`)
    return once
  })
  const because = out.length > 0 ? ` (${out.join(', ')})` : ''
  if (counting.length < rule.quorum)
    return `${gateName(subject)} was approved by ${counting.length} of ${rule.quorum} votes${because}`
  const missing = rule.groups.find(
    ({ group, min }) => counting.filter(([, { groups }]) => groups.includes(group)).length < min,
  )
  return (
    missing &&
    `${gateName(subject)} was approved with fewer than ${missing.min} votes from its group ${JSON.stringify(missing.group)}${because}`
  )
}

/** Assigns each approval to one of the voter's groups: the first still lacking votes, else any. Others are left out. */
export const filling = ({ groups }: GateRules, approvals: readonly [string, Vote][]): [string, Vote][] => {
  const filled: [string, Vote][] = []
  for (const [voter, given] of approvals) {
    const own = groups.filter(({ group }) => given.groups.includes(group))
    if (groups.length > 0 && own.length === 0) continue
    const short = own.find(({ group, min }) => filled.filter(([, other]) => other.groups[0] === group).length < min)
    filled.push([voter, { ...given, groups: [short?.group ?? own[0]?.group ?? null] }])
  }
  return filled
}

export const gateName = ({ id, round }: Fields) =>
  `the gate ${JSON.stringify(id)}${round === null ? '' : ` in round ${String(round)}`}`
export const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])
export const textOf = (value: unknown): string | null => (typeof value === 'string' ? value : null)
