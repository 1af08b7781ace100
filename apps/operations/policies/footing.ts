import { SYSTEM, type TimelineEvent } from '../../../db/operations/facts/state.ts'
import type { GateRow, Vote } from '../../../db/operations/gates/rows.ts'
import { type GateFacts, statusOf } from '../../../workflows/operation/rules/facts.ts'
import type { Caller } from '../../shared/auth/caller.ts'
import type { Permission } from '../../shared/auth/permissions.ts'
import type { Principal } from '../../shared/auth/principals.ts'
import { giverOf } from '../../shared/auth/providers.ts'
import type { Place } from '../../shared/auth/scope.ts'
import type { RefusalCode } from '../../shared/contracts/operations/graph.ts'
import { digest } from '../../shared/data/digest.ts'
import { pick, pluck } from '../../shared/data/pick.ts'
import { refusal, unavailable } from '../../shared/errors.ts'
import type { Trust } from '../deps.ts'
import { isInScope, operationObject } from './authority.ts'
import type { PolicyObject } from './cedar.ts'

/** Returns groups whose members' votes count: the policy's and those added by escalation. Empty if anyone's count. */
export const eligibleGroups = ({ policy, escalation_level }: GateRow['gate']): string[] =>
  policy.groups.length === 0
    ? []
    : [
        ...new Set([
          ...policy.groups.map(({ group }) => group),
          ...policy.escalation.slice(0, escalation_level).flatMap(({ add_groups }) => add_groups),
        ]),
      ]

type Member = { user_id: string; groups: readonly string[] }

/** Returns the groups that a person's vote can fill: their own, else by delegation those of the person who delegated. */
export const votingGroups = (gate: GateRow['gate'], person: Member, now: string, people: People = NOBODY): string[] => {
  const given = delegationTo(gate, person, now)
  return given ? [...(people.get(given.by.id)?.group_keys ?? eligibleGroups(gate))] : [...person.groups]
}

export const delegationsOf = ({ delegations }: GateRow['gate'], user_id: string, now: string) =>
  delegations.filter((given) => given.user_id === user_id && Date.parse(given.until) > Date.parse(now))

/** The delegation by which a person votes; `undefined` for a person who votes by an own right, or not at all. */
export const delegationTo = (gate: GateRow['gate'], { user_id, groups }: Member, now: string) =>
  mayByGroup(gate, groups) ? undefined : delegationsOf(gate, user_id, now)[0]

/** Whether a member of these groups needs no delegation: the gate asks one of them, or none. */
export const mayByGroup = (gate: GateRow['gate'], groups: readonly string[]): boolean => {
  const eligible = eligibleGroups(gate)
  return eligible.length === 0 || eligible.some((group) => groups.includes(group))
}

/** Why an approval by delegation does not count: the person who delegated has lost the right, or it was used. */
export const refuseDelegated = (
  row: GateRow,
  person: Member,
  people: People,
  measure: Measure,
): RefusalCode | undefined => {
  const given = delegationTo(row.gate, person, measure.now)
  if (!given) return undefined
  const { id, name } = given.by
  const denied = (why: string) => refusal('policy_denied', 'not_eligible', `${name} delegated this gate to you, ${why}`)
  if (lossOfDelegator(row, id, eligibleGroups(row.gate), people, measure)) return denied('but can no longer decide it.')
  const used = votesOf(row).some(
    ({ user_id, actor }) => user_id === id || (actor.in_place_of === id && user_id !== person.user_id),
  )
  return used ? denied('and that vote has been given already: the two of you count as one.') : undefined
}

const lossOfDelegator = (
  row: GateRow,
  user_id: string,
  groups: readonly string[],
  people: People,
  { places, lookback_s }: Measure,
): VoterLoss | undefined => {
  requireAsked([user_id], people)
  if (row.gate.policy.four_eyes && involvedIn(row).includes(user_id)) return 'voter_lost_right'
  const taint = taintOf(row, lookback_s)
  return lossOf(people.get(user_id), { permissions: ['gate:decide'], places, groups, taint })
}

export const gateFacts = ({ gate }: Pick<GateRow, 'gate'>): GateFacts => ({
  ...pick(gate, 'gate_id', 'kind', 'status', 'round', 'digest', 'overdue', 'outdated', 'policy'),
  consumed: gate.consumed_at !== null,
  votes: gate.votes.filter(({ round }) => round === gate.round).map(voteFacts),
})

export const voteFacts = ({ user_id, decision, group, actor }: Vote) => ({
  user_id,
  decision,
  group_key: group,
  in_place_of: actor.in_place_of,
})

export const operationFactsOf = ({ operation }: Pick<GateRow, 'operation'>) => ({
  status: statusOf(operation.control, operation.engine_status),
  ...pick(operation, 'control', 'cancel_mode', 'cancelled_at', 'pause_reason'),
  unknown_nodes: 0,
})

/** Whom four eyes excludes, with people behind machines: requester and starter; for an intervention only its author. */
export const involvedIn = ({ gate, operation }: GateRow): readonly string[] =>
  gate.author_id === null ? operation.involved : [gate.author_id, ...gate.author_behind]

/** Returns whose grants a gate ignores, and since when: the plan's time (their choice) minus the lookback. */
export const taintOf = (row: GateRow, lookback_s: number): Taint | undefined => {
  const { four_eyes, new_members } = row.gate.policy
  if (!four_eyes && !new_members) return undefined
  const since = new Date(Date.parse(row.operation.planned_at) - 1000 * lookback_s).toISOString()
  return { involved: four_eyes ? involvedIn(row) : [], providers: new_members === 'refuse', since }
}

/** Returns the basis of a person's vote: the right to decide, and membership in a group that the gate asks. */
export const footingOf = (row: GateRow, user_id: string, { places, now, lookback_s }: Measure): Footing => {
  const groups = eligibleGroups(row.gate)
  return {
    permissions: ['gate:decide'],
    places,
    groups: groups.length === 0 || delegationsOf(row.gate, user_id, now).length > 0 ? undefined : groups,
    taint: taintOf(row, lookback_s),
  }
}

/** Returns the basis of a bypass: both rights, for no group. */
export const bypassFooting = (row: GateRow, { places, lookback_s }: Omit<Measure, 'now'>): Footing => ({
  permissions: ['gate:decide', 'operation:control'],
  places,
  groups: undefined,
  taint: taintOf(row, lookback_s),
})

/** The places of the operation's targets, Postgres's time, and for how long the operation may have been known. */
export type Measure = { places: readonly Place[]; now: string; lookback_s: number }

/** A gate as policies see it. */
export const gateObject = ({ gate, operation }: GateRow, places: readonly Place[]): PolicyObject => ({
  ...operationObject({ ...operation, places }),
  type: 'Gate',
  id: `${gate.operation_id}/${gate.gate_id}`,
  four_eyes: gate.policy.four_eyes,
  involved: involvedIn({ gate, operation }),
  groups: eligibleGroups(gate),
})

/** External checks' gates are answered by their service, not by people. */
export const externalOnly = (kind: string): RefusalCode | undefined =>
  kind === 'external_check'
    ? { category: 'policy_denied', code: 'not_eligible', detail: 'This gate is answered by an external check.' }
    : undefined

/** Why an approval no longer counts. */
export type VoterLoss = 'voter_disabled' | 'voter_lost_right' | 'voter_tainted'
export type LostVote = { user_id: string; name: string; why: VoterLoss }

/** The basis of an approval: permissions over every target, and one of these groups (undefined: no group is needed). */
export type Footing = {
  permissions: readonly Permission[]
  places: readonly Place[]
  groups: readonly string[] | undefined
  /** The participants of the operation whose grants do not count (undefined: all count). */
  taint: Taint | undefined
}
/** `since`: before this time nobody knew of the operation. `providers`: nor do rights count that a provider gave later. */
export type Taint = { involved: readonly string[]; providers: boolean; since: string }

/** Returns why a person's approval does not count now; `undefined` if it counts. */
export const lossOf = (person: Principal | undefined, footing: Footing): VoterLoss | undefined => {
  if (person?.user.status !== 'ACTIVE') return 'voter_disabled'
  if (person.user.kind !== 'person') return 'voter_lost_right'
  if (!hasFooting(person.user.id, person, footing)) return 'voter_lost_right'
  return isTainted(person.user.id, person, footing) ? 'voter_tainted' : undefined
}

type Rights = Pick<Principal, 'grants' | 'group_keys' | 'memberships' | 'reset'>

const hasFooting = (user_id: string, { grants, group_keys }: Rights, { permissions, places, groups }: Footing) =>
  permissions.every((permission) => isInScope({ user_id, grants }, permission, places)) &&
  (groups === undefined || groups.some((group) => group_keys.includes(group)))

/** Whether this person may decide only through rights that a participant of the operation granted. */
const isTainted = (user_id: string, rights: Rights, footing: Footing): boolean =>
  footing.taint !== undefined && !hasFooting(user_id, untainted(rights, footing.taint), footing)

/**
 * Returns a person's rights without those that a participant, or a provider, granted since the operation could be known:
 * grants, memberships, and rights through these. None are left if a participant could have set the password.
 */
const untainted = ({ grants, group_keys, memberships, reset }: Rights, taint: Taint): Rights => {
  const given = (since: string | null | undefined, by: readonly string[] | undefined) =>
    since != null &&
    Date.parse(since) > Date.parse(taint.since) &&
    by?.some((id) => taint.involved.includes(id) || (taint.providers && id.startsWith(giverOf(''))))
  if (reset && given(reset.at, reset.by)) return { grants: [], group_keys: [], memberships: [], reset }
  const joined = new Set(memberships.flatMap(({ group_key, since, by }) => (given(since, by) ? [group_key] : [])))
  return {
    grants: grants.filter(
      ({ since, by, via_group_key }) =>
        !given(since, by) && !(via_group_key !== undefined && joined.has(via_group_key)),
    ),
    group_keys: group_keys.filter((key) => !joined.has(key)),
    memberships: memberships.filter(({ group_key }) => !joined.has(group_key)),
    reset,
  }
}

/** Returns those of a vote's groups that its voter still belongs to, without memberships that a participant gave. */
export const groupsLeft = (of_vote: readonly string[], person: Rights | undefined, { taint }: Footing): string[] => {
  if (!person) return []
  const { group_keys } = taint ? untainted(person, taint) : person
  return of_vote.filter((group) => group_keys.includes(group))
}

/** Returns the refusal of a vote whose right a participant of the operation granted, or `undefined`. */
export const refuseTainted = (caller: Caller, footing: Footing): RefusalCode | undefined =>
  isTainted(caller.user_id, { ...caller, group_keys: caller.groups }, footing)
    ? refusal(
        'policy_denied',
        'tainted_right',
        isTainted(caller.user_id, { ...caller, group_keys: caller.groups }, withoutProviders(footing))
          ? 'Someone who takes part in this operation gave you the right to decide here, or could have set your password. Another person must decide.'
          : 'An identity provider gave you the right to decide here after this operation could be known. Another person must decide.',
      )
    : undefined

const withoutProviders = ({ taint, ...footing }: Footing): Footing => ({
  ...footing,
  taint: taint && { ...taint, providers: false },
})

const BECAUSE: Record<VoterLoss, string> = {
  voter_disabled: 'the account is no longer active',
  voter_lost_right: 'the right to decide here is gone',
  voter_tainted: 'someone who takes part in this operation, or lately a provider, gave the right to decide here',
}

/** Describes lost votes, for timeline and evidence. */
export const wordsOf = (lost: readonly Pick<LostVote, 'name' | 'why'>[]): string =>
  lost.map(({ name, why }) => `The approval of ${name} no longer counts: ${BECAUSE[why]}.`).join(' ')

/** Identity's recent answers about people, by user id; undefined means that there is no such user. */
export type People = ReadonlyMap<string, Principal | undefined>
/** For acts that need no one to be proved. */
export const NOBODY: People = new Map()

/** Identity has not been asked about these people yet. */
class Unasked extends Error {
  readonly user_ids: readonly string[]
  constructor(user_ids: readonly string[]) {
    super('identity was not asked about these people')
    this.user_ids = user_ids
  }
}
const TRIES = 5

/** Throws if identity was not asked about one of them; withPeople then asks and runs again. */
export const requireAsked = (user_ids: readonly string[], people: People): void => {
  const unasked = user_ids.filter((user_id) => !people.has(user_id))
  if (unasked.length > 0) throw new Unasked(unasked)
}

/**
 * Runs `work`, which may find that it needs people. Its transaction is then rolled back, identity is asked about them
 * while no lock is held, and it runs again. Throws 503 while identity is away.
 */
export const withPeople = async <T>(
  trust: Pick<Trust, 'principals'>,
  work: (people: People) => Promise<T>,
  known: People = NOBODY,
): Promise<T> => {
  const people = new Map(known)
  for (let tries = 0; tries < TRIES; tries++) {
    try {
      return await work(people)
    } catch (error) {
      if (!(error instanceof Unasked)) throw error
      for (const [user_id, person] of await askPeople(trust, error.user_ids)) people.set(user_id, person)
    }
  }
  throw unavailable('Votes change faster than their voters can be proved.')
}

/** Asks identity about these people now. Throws 503 while it is away. */
export const askPeople = async (
  { principals }: Pick<Trust, 'principals'>,
  user_ids: readonly string[],
): Promise<People> =>
  new Map(await Promise.all([...new Set(user_ids)].map(async (id) => [id, await principals.ask(id)] as const)))

/** The votes of the gate's current round. */
export const votesOf = ({ gate }: Pick<GateRow, 'gate'>): Vote[] =>
  gate.votes.filter(({ round }) => round === gate.round)

/** The approvals among them. */
export const approvalsOf = (row: Pick<GateRow, 'gate'>): Vote[] =>
  votesOf(row).filter(({ decision }) => decision === 'approve')

/** Returns which of these approvals no longer count. Throws if identity was not asked about a voter (withPeople). */
export const lostAmong = (row: GateRow, approvals: readonly Vote[], people: People, measure: Measure): LostVote[] => {
  requireAsked(pluck(approvals, 'user_id'), people)
  const footing = {
    permissions: ['gate:decide'],
    places: measure.places,
    taint: taintOf(row, measure.lookback_s),
  } as const
  return approvals.flatMap(({ user_id, group, actor }) => {
    const person = people.get(user_id)
    let why = lossOf(person, { ...footing, groups: group === null ? undefined : [group] })
    const [given] = delegationsOf(row.gate, user_id, measure.now)
    if (why && group !== null && given && given.by.id === (actor.in_place_of ?? given.by.id))
      why =
        lossOf(person, { ...footing, groups: undefined }) ?? lossOfDelegator(row, given.by.id, [group], people, measure)
    return why ? [{ user_id, name: actor.name, why }] : []
  })
}

/** The timeline and evidence entries of lost votes. */
export const voidedEvents = ({ gate }: Pick<GateRow, 'gate'>, lost: readonly LostVote[]): TimelineEvent[] =>
  lost.map(({ user_id, name, why }) => {
    const { gate_id, round } = gate
    const reason = wordsOf([{ name, why }])
    return {
      type: 'gate.vote_voided',
      actor: SYSTEM,
      reason,
      gate_id,
      data: { round, why, voter: { id: user_id, name } },
      evidence: {
        kind: 'vote',
        statement: `Gate ${gate_id}, round ${round}. ${reason}`,
        subject: { type: 'gate', id: gate_id, round, decision: 'void', voter: user_id, why },
        subject_digest: digest({ gate_id, round, decision: 'void', voter: user_id, why }),
      },
    }
  })
