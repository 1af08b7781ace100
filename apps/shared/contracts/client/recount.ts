import { canonicalJson } from './canonical.ts'

/**
 * Counts an evidence chain again (operations.md 6.3): by whose votes each gate was passed, under the rules that the chain
 * itself states at its start, and that each node behind a gate began on a passed one whose voters were proved just
 * before. Pure, so that server, console and command line come to the same. A chain of an older build states no rules:
 * of it only the order of decisions and starts can be checked.
 */
export type Recounted = {
  /** How the operation ended; null: the chain goes on, or was cut. */
  ended: { status: string | null; at: string } | null
  /** False: an older build wrote this chain, and nothing in it says by whose right its gates were passed. */
  counted: boolean
  /** Gates that were passed, and nodes that began behind one. */
  decisions: number
  starts: number
  /** How long before such a start its voters had been proved, at most. */
  oldest_ms: number
}
/** The longest time that a platform can be set to take a proof of voters for fresh. */
const STANDING_MS = 60_000
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
  /** The service that answers instead of people. */
  service?: string
  /** Of an intervention: who asked for it, and so cannot agree to it. */
  author?: string
}

type Vote = { name: string; decision: string; digest: string; groups: (string | null)[]; involved: boolean }
type Round = Map<string, Vote>
type Decision = { at: string; passed: boolean; people: boolean }
type Patch = { proposer: string; digest: string; votes: Round; passed: boolean }
type Entry = { kind: unknown; at: unknown; actor: Fields; subject: Fields }

export const createRecount = () => {
  const rules = new Map<string, GateRules>()
  const rounds = new Map<string, Round>()
  const patches = new Map<string, Patch>()
  const decisions = new Map<string, Decision[]>()
  const involved = new Set<string>()
  /** Starts behind gates: several records may tell of one. */
  const begun = new Set<string>()
  const told: Recounted = { ended: null, counted: false, decisions: 0, starts: 0, oldest_ms: 0 }

  const roundOf = (gate_id: unknown, round: unknown): Round => {
    const key = canonicalJson([gate_id ?? null, round ?? null])
    const known = rounds.get(key) ?? new Map<string, Vote>()
    rounds.set(key, known)
    return known
  }

  /** Rules are stated once: no later record changes them. */
  const learn = (subject: Fields) => {
    for (const rule of listOf(subject.rules) as GateRules[]) if (!rules.has(rule.gate_id)) rules.set(rule.gate_id, rule)
  }

  const start = ({ subject }: Entry) => {
    if (subject.authority !== 1) return
    told.counted = true
    for (const id of listOf(subject.involved)) involved.add(String(id))
    learn(subject)
  }

  const vote = (votes: Round, { actor, subject }: Entry): string | undefined => {
    const voter = String(subject.voter)
    const { decision } = subject
    if (decision === 'void') {
      votes.delete(voter)
      return undefined
    }
    if (actor.id !== subject.voter) return `the vote of ${JSON.stringify(voter)} was given by somebody else`
    // The newest counts, and stands last.
    votes.delete(voter)
    votes.set(voter, {
      name: String(actor.name),
      decision: String(decision),
      digest: String(subject.digest),
      groups: 'groups' in subject ? listOf(subject.groups).map(String) : [textOf(subject.group)],
      involved: involved.has(voter),
    })
    return undefined
  }

  /** Votes of earlier rounds that go on in this one: a gate that was put back as it was may have passed over some. */
  const carry = ({ subject }: Entry): string | undefined => {
    const now = roundOf(subject.id, subject.round)
    for (const voter of listOf(subject.kept).map(String)) {
      let known: Vote | undefined
      for (let round = Number(subject.round) - 1; round > 0 && !known; round--)
        known = roundOf(subject.id, round).get(voter)
      if (!known)
        return `the vote of ${JSON.stringify(voter)}, which goes on in ${gateName(subject)}, was not given before`
      if (!now.has(voter)) now.set(voter, known)
    }
    return undefined
  }

  const decide = (record: Entry): string | undefined => {
    const { subject, at } = record
    const { id, status, digest } = subject
    if (subject.kept !== undefined) {
      const lost = carry(record)
      if (lost !== undefined) return lost
    }
    const passed = status === 'approved' || status === 'bypassed'
    const key = keyOf(id, digest)
    const before = decisions.get(key) ?? []
    if (passed && told.counted) {
      const fault = faultOf(record, before)
      if (fault !== undefined) return fault
      told.decisions += 1
    }
    const people = passed && (record.actor.kind === 'user' || subject.patch_id !== undefined)
    decisions.set(key, [...before, { at: String(at), passed, people }])
    return undefined
  }

  /** Why a gate was not passed by who or what may pass it. */
  const faultOf = (record: Entry, before: readonly Decision[]): string | undefined => {
    const { kind, actor, subject } = record
    const rule = rules.get(String(subject.id))
    if (!rule) return `no record says by which rules ${gateName(subject)} is decided`
    if (subject.status === 'bypassed') {
      if (kind !== 'exception' || actor.kind !== 'user') return `${gateName(subject)} was bypassed by nobody`
      const own = rule.four_eyes && involved.has(String(actor.id))
      return own
        ? `${gateName(subject)} was bypassed by ${String(actor.name)}, who takes part in the operation`
        : undefined
    }
    if (subject.patch_id !== undefined) return byPatch(rule, subject)
    if (actor.kind === 'system')
      return rule.on_timeout === 'approve'
        ? undefined
        : `${gateName(subject)} was approved by silence, which its rules do not allow`
    if (rule.service !== undefined)
      return actor.kind === 'service' && actor.name === rule.service
        ? undefined
        : `${gateName(subject)} was not answered by its service ${JSON.stringify(rule.service)}`
    if (actor.kind === 'engine')
      return before.at(-1)?.passed ? undefined : `${gateName(subject)} was carried over from no approval before`
    return short(rule, subject, [...roundOf(subject.id, subject.round)], String(subject.digest))
  }

  /** Why these votes do not pass a gate under its rules. */
  const short = (
    rule: GateRules,
    subject: Fields,
    votes: readonly (readonly [string, Vote])[],
    digest: string,
  ): string | undefined => {
    const eligible = new Set([...rule.groups.map(({ group }) => group), ...rule.more_groups])
    const out: string[] = []
    const counting = votes.filter(([voter, given]) => {
      if (given.decision !== 'approve' || given.digest !== digest) return false
      const own = rule.author === undefined ? given.involved : voter === rule.author
      if (rule.four_eyes && own) out.push(`${given.name} takes part in the operation`)
      else if (rule.groups.length > 0 && !given.groups.some((group) => group !== null && eligible.has(group)))
        out.push(`${given.name} is in none of its groups`)
      else return true
      return false
    })
    const because = out.length > 0 ? ` (${out.join(', ')})` : ''
    if (counting.length < rule.quorum)
      return `${gateName(subject)} was approved by ${counting.length} of ${rule.quorum} votes${because}`
    const missing = rule.groups.find(
      ({ group, min }) => counting.filter(([, { groups }]) => groups.includes(group)).length < min,
    )
    return (
      missing &&
      `${gateName(subject)} was approved without ${missing.min} of its group ${JSON.stringify(missing.group)}${because}`
    )
  }

  /** A used gate stands for what a patch changes only by that patch's votes, each for the group that it fills. */
  const byPatch = (rule: GateRules, subject: Fields): string | undefined => {
    const patch = patches.get(String(subject.patch_id))
    if (!patch?.passed) return `${gateName(subject)} stands by a patch that was not approved`
    if (rule.service !== undefined) return `${gateName(subject)} is answered by a service, and stands by a patch`
    const votes: [string, Vote][] = []
    for (const { voter, group } of listOf(subject.votes) as Fields[]) {
      const given = patch.votes.get(String(voter))
      const fills = textOf(group)
      if (given?.decision !== 'approve' || (fills !== null && !given.groups.includes(fills)))
        return `${gateName(subject)} stands by a vote that nobody gave for its patch`
      votes.push([String(voter), { ...given, groups: [fills] }])
    }
    return short(rule, subject, [...new Map(votes)], patch.digest)
  }

  const patched = (record: Entry): string | undefined => {
    const { subject } = record
    const id = String(subject.id)
    if (subject.status === 'awaiting_approval') {
      const digest = String(subject.digest)
      patches.set(id, { proposer: String(subject.proposer), digest, votes: new Map(), passed: false })
    }
    const patch = patches.get(id)
    if (!told.counted || !patch) return undefined
    if (subject.decision !== undefined) return vote(patch.votes, record)
    if (subject.status !== 'approved') return undefined
    const fault = unpassed(id, patch, listOf(subject.required) as GateRules[])
    if (fault !== undefined) return fault
    patch.passed = true
    involved.add(patch.proposer)
    learn(subject)
    return undefined
  }

  const unpassed = (
    id: string,
    { proposer, digest, votes }: Patch,
    required: readonly GateRules[],
  ): string | undefined => {
    const name = `the patch ${JSON.stringify(id)}`
    const approvals = [...votes].filter(
      ([voter, given]) => given.decision === 'approve' && given.digest === digest && voter !== proposer,
    )
    if (approvals.length === 0) return `${name} was approved by nobody but its proposer`
    for (const rule of required) {
      const fault = short(
        { ...rule, more_groups: [] },
        { id: rule.gate_id, round: null },
        filling(rule, approvals),
        digest,
      )
      if (fault !== undefined) return `${name} was approved against the rules of a gate that it touches: ${fault}`
    }
    return undefined
  }

  const node = ({ subject }: Entry): string | undefined => {
    for (const gate of listOf(subject.gates) as Fields[]) {
      const name = `the node ${JSON.stringify(subject.id)} began behind the gate ${JSON.stringify(gate.gate_id)}`
      const known = decisions.get(keyOf(gate.gate_id, gate.digest)) ?? []
      const last = known.findLast((decision) => decision.at <= (textOf(gate.at) ?? String(subject.began_at)))
      if (!last?.passed) return `${name}, which no record approves on that digest before`
      const kept = rules.get(String(gate.gate_id))?.on_voter_loss === 'keep_after_start'
      if (told.counted && last.people && !kept) {
        const age = Date.parse(String(gate.at)) - Date.parse(String(gate.standing_at))
        if (!(age <= STANDING_MS)) return `${name}, whose voters were not proved just before`
        told.oldest_ms = Math.max(told.oldest_ms, age)
      }
    }
    if (told.counted && listOf(subject.gates).length > 0) begun.add(keyOf(subject.id, subject.began_at))
    return undefined
  }

  return {
    /** Why a record does not follow from those before it; undefined if it does, or says nothing of gates. */
    take: (given: Fields): string | undefined => {
      const { kind, at, actor, subject } = given
      if (!isFields(subject)) return undefined
      const record: Entry = { kind, at, actor: isFields(actor) ? actor : {}, subject }
      if (kind === 'start') start(record)
      if (kind === 'end') told.ended = { status: textOf(subject.status), at: String(at) }
      if (subject.type === 'patch') return patched(record)
      if (subject.type === 'node') return node(record)
      if (subject.type !== 'gate') return undefined
      learn(subject)
      if (subject.decision !== undefined) return vote(roundOf(subject.id, subject.round), record)
      return subject.status === undefined ? undefined : decide(record)
    },
    result: (): Recounted => ({ ...told, starts: begun.size }),
  }
}
export type Recount = ReturnType<typeof createRecount>

/** Each approval for one group: the first that is still short, else any that the rule knows; who has none is left out. */
const filling = ({ groups }: GateRules, approvals: readonly [string, Vote][]): [string, Vote][] => {
  const filled: [string, Vote][] = []
  for (const [voter, given] of approvals) {
    const own = groups.filter(({ group }) => given.groups.includes(group))
    if (groups.length > 0 && own.length === 0) continue
    const short = own.find(({ group, min }) => filled.filter(([, other]) => other.groups[0] === group).length < min)
    filled.push([voter, { ...given, groups: [short?.group ?? own[0]?.group ?? null] }])
  }
  return filled
}

const keyOf = (gate_id: unknown, digest: unknown) => canonicalJson([gate_id ?? null, digest ?? null])
const gateName = ({ id, round }: Fields) =>
  `the gate ${JSON.stringify(id)}${round === null ? '' : ` in round ${String(round)}`}`
const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])
const textOf = (value: unknown): string | null => (typeof value === 'string' ? value : null)
