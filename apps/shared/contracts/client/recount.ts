import { canonicalJson } from './canonical.ts'
import {
  type Fields,
  filling,
  type GateRules,
  gateName,
  isStricter,
  listOf,
  short,
  textOf,
  type Vote,
} from './votes.ts'

/**
 * Recounts an evidence chain (operations.md 6.3): by whose votes each gate was passed, under the rules that the chain
 * states at its start. Each node behind a gate must have begun after the gate passed, with its voters proved just
 * before. Pure, so that server, console and command line get the same result. A chain of an older build states no
 * rules, so only the order of decisions and starts can be checked.
 */
export type Recounted = {
  /** How the operation ended; null: the chain continues, or was cut. */
  ended: { status: string | null; at: string } | null
  /** False: an older build wrote this chain, without the rights by which its gates were passed. */
  counted: boolean
  /** Gates that were passed, and nodes that began behind one. */
  decisions: number
  /** The digests on which the gates were passed. */
  approved: string[]
  starts: number
  /** The longest time between the proof of voters and such a start. */
  oldest_ms: number
  /** The programs that agents ran, by their own word; none in a chain of an older build. */
  executed: Ran[]
}
/** The program that an agent ran for a node, and the digests of the approvals on which the node began. */
export type Ran = Fields & { id: string; digests: string[] }
/** The longest time for which a platform can be configured to accept a proof of voters. */
const STANDING_MS = 60_000

type Round = Map<string, Vote>
type Decision = { at: string; passed: boolean; people: boolean }
type Patch = { proposers: string[]; digest: string; votes: Round; passed: boolean }
type Entry = { kind: unknown; at: unknown; actor: Fields; subject: Fields }

/** The chain's statements so far. */
type Chain = {
  rules: Map<string, GateRules>
  rounds: Map<string, Round>
  patches: Map<string, Patch>
  decisions: Map<string, Decision[]>
  involved: Set<string>
  /** The ends of the freezes that hold the operation; null: an older build stated none. */
  freezes: Fields | null
  /** Starts behind gates: several records may report the same one. */
  begun: Set<string>
  told: Recounted
}

export const createRecount = () => {
  const chain: Chain = {
    rules: new Map(),
    rounds: new Map(),
    patches: new Map(),
    decisions: new Map(),
    involved: new Set(),
    freezes: null,
    begun: new Set(),
    told: { ended: null, counted: false, decisions: 0, approved: [], starts: 0, oldest_ms: 0, executed: [] },
  }

  return {
    /** Returns why a record does not follow from those before it; `undefined` if it does, or is not about gates. */
    take: (given: Fields): string | undefined => {
      const { kind, at, actor, subject } = given
      if (!isFields(subject)) return undefined
      const record: Entry = { kind, at, actor: isFields(actor) ? actor : {}, subject }
      if (isFields(subject.freezes)) chain.freezes = subject.freezes
      if (kind === 'start') start(chain, record)
      if (kind === 'end') chain.told.ended = { status: textOf(subject.status), at: String(at) }
      if (subject.type === 'patch') return patched(chain, record)
      if (subject.type === 'node') return node(chain, record)
      if (subject.type !== 'gate') return undefined
      learn(chain, subject)
      if (subject.decision !== undefined) return vote(chain, roundOf(chain, subject.id, subject.round), record)
      return subject.status === undefined ? undefined : decide(chain, record)
    },
    result: (): Recounted => ({ ...chain.told, starts: chain.begun.size }),
  }
}

const roundOf = (chain: Chain, gate_id: unknown, round: unknown): Round => {
  const key = canonicalJson([gate_id ?? null, round ?? null])
  const known = chain.rounds.get(key) ?? new Map<string, Vote>()
  chain.rounds.set(key, known)
  return known
}

/** A later record can only make the rules of a gate stricter. */
const learn = (chain: Chain, subject: Fields) => {
  for (const rule of listOf(subject.rules) as GateRules[]) {
    const known = chain.rules.get(rule.gate_id)
    if (!known || isStricter(rule, known)) chain.rules.set(rule.gate_id, rule)
  }
}

const start = (chain: Chain, { subject }: Entry) => {
  if (subject.authority !== 1) return
  chain.told.counted = true
  join(chain, subject)
  learn(chain, subject)
}

const join = (chain: Chain, subject: Fields) => {
  for (const id of listOf(subject.involved)) chain.involved.add(String(id))
}

const vote = (chain: Chain, votes: Round, { actor, subject }: Entry): string | undefined => {
  const voter = String(subject.voter)
  const { decision } = subject
  const in_place_of = textOf(actor.in_place_of)
  if (decision === 'void') {
    votes.delete(voter)
    return undefined
  }
  if (actor.id !== subject.voter) return `the vote of ${JSON.stringify(voter)} was cast by another person`
  // The newest vote counts, and comes last.
  votes.delete(voter)
  votes.set(voter, {
    name: String(actor.name),
    decision: String(decision),
    digest: String(subject.digest),
    groups: 'groups' in subject ? listOf(subject.groups).map(String) : [textOf(subject.group)],
    involved: chain.involved.has(voter) || chain.involved.has(in_place_of ?? voter),
    in_place_of,
    signed: isFields(subject.signature),
  })
  return undefined
}

/** Carries votes of earlier rounds over into this one; a gate whose change was withdrawn may have skipped rounds. */
const carry = (chain: Chain, { subject }: Entry): string | undefined => {
  const now = roundOf(chain, subject.id, subject.round)
  for (const voter of listOf(subject.kept).map(String)) {
    let known: Vote | undefined
    for (let round = Number(subject.round) - 1; round > 0 && !known; round--)
      known = roundOf(chain, subject.id, round).get(voter)
    if (!known) return `the vote of ${JSON.stringify(voter)}, which ${gateName(subject)} carries over, was never given`
    if (!now.has(voter)) now.set(voter, known)
  }
  return undefined
}

const decide = (chain: Chain, record: Entry): string | undefined => {
  const { subject, at } = record
  const { id, status, digest } = subject
  if (subject.kept !== undefined) {
    const lost = carry(chain, record)
    if (lost !== undefined) return lost
  }
  const passed = status === 'approved' || status === 'bypassed'
  const key = keyOf(id, digest)
  const before = chain.decisions.get(key) ?? []
  if (passed && chain.told.counted) {
    const fault = faultOf(chain, record)
    if (fault !== undefined) return fault
    chain.told.decisions += 1
  }
  if (passed && !chain.told.approved.includes(String(digest))) chain.told.approved.push(String(digest))
  const checked = status === 'approved' && chain.rules.get(String(id))?.service !== undefined
  const people = passed && !checked && (record.actor.kind === 'user' || subject.patch_id !== undefined)
  chain.decisions.set(key, [...before, { at: String(at), passed, people }])
  return undefined
}

/** Returns why a gate was not passed by anyone who may pass it. */
const faultOf = (chain: Chain, record: Entry): string | undefined => {
  const { kind, actor, subject } = record
  const rule = chain.rules.get(String(subject.id))
  if (!rule) return `no record gives the rules of ${gateName(subject)}`
  if (subject.status === 'bypassed') {
    if (kind !== 'exception' || actor.kind !== 'user') return `${gateName(subject)} was bypassed, but not by a person`
    const own = rule.four_eyes && chain.involved.has(String(actor.id))
    return own
      ? `${gateName(subject)} was bypassed by ${String(actor.name)}, who takes part in the operation`
      : undefined
  }
  if (subject.patch_id !== undefined) return byPatch(chain, rule, subject)
  if (actor.kind === 'system')
    return rule.on_timeout === 'approve' || (rule.kind === 'freeze' && isThawed(chain, rule, record))
      ? undefined
      : `${gateName(subject)} was approved by silence, which its rules do not allow`
  if (rule.service !== undefined)
    // A machine's key is a user with a name that no person can have.
    return actor.kind === (rule.service.startsWith('machine:') ? 'user' : 'service') && actor.name === rule.service
      ? undefined
      : `${gateName(subject)} was not answered by its service ${JSON.stringify(rule.service)}`
  return short(rule, subject, [...roundOf(chain, subject.id, subject.round)], String(subject.digest))
}

/**
 * Whether the freeze that a gate asks about is over: ended, overridden, or past its time. An older build stated no
 * freezes, so its word is taken.
 */
const isThawed = ({ freezes }: Chain, { freeze_id }: GateRules, { at, subject }: Entry): boolean => {
  const id = freeze_id ?? String(subject.freeze_id)
  return freezes === null || !Object.hasOwn(freezes, id) || Date.parse(String(freezes[id])) <= Date.parse(String(at))
}

/** For a patch's changes, a used gate is passed only by that patch's votes, each for the group that it fills. */
const byPatch = (chain: Chain, rule: GateRules, subject: Fields): string | undefined => {
  const patch = chain.patches.get(String(subject.patch_id))
  if (!patch?.passed) return `${gateName(subject)} relies on a patch that was not approved`
  if (rule.service !== undefined) return `${gateName(subject)} is answered by a service, but relies on a patch`
  const votes: [string, Vote][] = []
  for (const { voter, group } of listOf(subject.votes) as Fields[]) {
    const given = patch.votes.get(String(voter))
    const fills = textOf(group)
    if (given?.decision !== 'approve' || (fills !== null && !given.groups.includes(fills)))
      return `${gateName(subject)} relies on a vote that no one gave for its patch`
    votes.push([String(voter), { ...given, groups: [fills] }])
  }
  const fault = short(rule, subject, [...new Map(votes)], patch.digest)
  // From now on they are votes of this round, for all that the gate releases: void or kept like any other.
  const round = roundOf(chain, subject.id, subject.round)
  for (const [voter, given] of votes) round.set(voter, { ...given, digest: String(subject.digest) })
  return fault
}

const patched = (chain: Chain, record: Entry): string | undefined => {
  const { subject } = record
  const id = String(subject.id)
  if (subject.status === 'awaiting_approval') {
    const digest = String(subject.digest)
    const proposers = [String(subject.proposer), ...listOf(record.actor.behind).map(String)]
    chain.patches.set(id, { proposers, digest, votes: new Map(), passed: false })
  }
  const patch = chain.patches.get(id)
  if (!chain.told.counted || !patch) return undefined
  if (subject.decision !== undefined) return vote(chain, patch.votes, record)
  if (subject.status !== 'approved') return undefined
  const fault = unpassed(id, patch, listOf(subject.required) as GateRules[])
  if (fault !== undefined) return fault
  patch.passed = true
  for (const proposer of patch.proposers) chain.involved.add(proposer)
  learn(chain, subject)
  return undefined
}

const unpassed = (
  id: string,
  { proposers, digest, votes }: Patch,
  required: readonly GateRules[],
): string | undefined => {
  const name = `the patch ${JSON.stringify(id)}`
  const approvals = [...votes].filter(
    ([voter, given]) => given.decision === 'approve' && given.digest === digest && !proposers.includes(voter),
  )
  if (approvals.length === 0) return `${name} was approved by no one but its proposer`
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

const node = (chain: Chain, { subject }: Entry): string | undefined => {
  join(chain, subject)
  if (isFields(subject.executed)) {
    const digests = (listOf(subject.gates) as Fields[]).map(({ digest }) => String(digest))
    chain.told.executed.push({ ...subject.executed, id: String(subject.id), digests })
  }
  for (const gate of listOf(subject.gates) as Fields[]) {
    const name = `the node ${JSON.stringify(subject.id)} started behind the gate ${JSON.stringify(gate.gate_id)}`
    const known = chain.decisions.get(keyOf(gate.gate_id, gate.digest)) ?? []
    const last = known.findLast((decision) => decision.at <= (textOf(gate.at) ?? String(subject.began_at)))
    if (!last?.passed) return `${name}, which no earlier record approves on that digest`
    const kept = chain.rules.get(String(gate.gate_id))?.on_voter_loss === 'keep_after_start'
    if (chain.told.counted && last.people && !kept) {
      const age = Date.parse(String(gate.at)) - Date.parse(String(gate.standing_at))
      if (!(age <= STANDING_MS)) return `${name}, whose voters were not verified just before`
      chain.told.oldest_ms = Math.max(chain.told.oldest_ms, age)
    }
  }
  if (chain.told.counted && listOf(subject.gates).length > 0) chain.begun.add(keyOf(subject.id, subject.began_at))
  return undefined
}
const keyOf = (gate_id: unknown, digest: unknown) => canonicalJson([gate_id ?? null, digest ?? null])
const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
