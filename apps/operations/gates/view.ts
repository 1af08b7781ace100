import { type Db, together } from '../../../db/client.ts'
import { getBrief } from '../../../db/operations/gates/brief.ts'
import { type GateRow, getGate, getGateContext } from '../../../db/operations/gates/rows.ts'
import { getReachOf } from '../../../db/operations/plans/rows.ts'
import type { GateFacts } from '../../../workflows/operation/rules/facts.ts'
import { missingVotes, refuseGateApprove, refuseGateReject } from '../../../workflows/operation/rules/gates.ts'
import type { Caller } from '../../shared/auth/caller.ts'
import type { Principal } from '../../shared/auth/principals.ts'
import type { Place } from '../../shared/auth/scope.ts'
import type { Alone } from '../../shared/contracts/operations/common.ts'
import type { Gate, GateSummary } from '../../shared/contracts/operations/gates.ts'
import type { OperationStatus, RefusalCode } from '../../shared/contracts/operations/graph.ts'
import { pick } from '../../shared/data/pick.ts'
import { notFound, refusal } from '../../shared/errors.ts'
import type { Uses } from '../deps.ts'
import { requireVisible } from '../operations/read.ts'
import { aloneBy, type Most, type Verdict } from '../patches/bulk.ts'
import { listConflicts } from '../plans/conflicts.ts'
import {
  type Authority,
  actionOf,
  allowedAction,
  impactFor,
  isInScope,
  isVisible,
  loadPlaces,
  placesFor,
  placesForAll,
  refuseByPolicy,
} from '../policies/authority.ts'
import { PERMISSION_OF, type PolicyAction } from '../policies/cedar.ts'
import {
  bypassFooting,
  externalOnly,
  footingOf,
  gateFacts,
  gateObject,
  involvedIn,
  lossOf,
  type Measure,
  operationFactsOf,
  type People,
  refuseDelegated,
  refuseTainted,
  requireAsked,
  votingGroups,
} from '../policies/footing.ts'
import { briefFor } from './brief.ts'

const ELIGIBLE_SHOWN = 50

/** Someone other than an intervention's author, or the people behind a machine author, decides it. No bypass exists. */
export const refuseAuthor = (
  { author_id, author_behind }: GateRow['gate'],
  user_id: string,
): RefusalCode | undefined =>
  author_id === user_id || author_behind.includes(user_id)
    ? refusal('policy_denied', 'second_person', 'You requested this intervention. Another person must approve it.')
    : undefined

/** An intervention is that of two people, so its author must still be allowed to ask for it. */
export const refuseLostAuthor = (
  { author_id, intervention }: GateRow['gate'],
  { places }: Pick<Measure, 'places'>,
  people: People,
): RefusalCode | undefined => {
  if (author_id === null) return undefined
  requireAsked([author_id], people)
  const { user, grants = [] } = people.get(author_id) ?? {}
  const needed = PERMISSION_OF[actionOf(intervention)]
  if (user?.status === 'ACTIVE' && isInScope({ user_id: author_id, grants }, needed, places)) return undefined
  const detail = 'The person who requested this intervention may no longer do so. Request it yourself.'
  return refusal('policy_denied', 'not_eligible', detail)
}

export const refuseBypass = ({ kind }: GateRow['gate']): RefusalCode | undefined =>
  kind === 'intervention'
    ? refusal('policy_denied', 'break_glass_not_allowed', 'An intervention needs the approval of a second person.')
    : undefined

/** Why no one can approve the intervention that this gate asks about; undefined while identity is away: the vote asks. */
const lostAuthorOf = async (deps: Uses<'db' | 'trust'>, { gate, operation }: GateRow) => {
  const { author_id } = gate
  if (author_id === null || gate.status !== 'waiting') return undefined
  const author = await deps.trust.principals.get(author_id).catch(() => null)
  if (author === null) return undefined
  const places = await loadPlaces(deps.db, operation.resource_ids)
  return refuseLostAuthor(gate, { places }, new Map([[author_id, author]]))
}

/**
 * Returns a gate for readers: votes, missing votes, and whether the caller may decide, by the rules that decide it.
 * `lost`: why no one may. `places`: those of the targets, for the caller and the approvers alike.
 */
export const viewGate = (
  authority: Authority & { lookback_s: number },
  caller: Caller,
  row: GateRow,
  places: readonly Place[],
  approvers: readonly Principal[],
  lost?: RefusalCode,
): GateSummary => {
  const { gate, operation } = row
  const facts = gateFacts(row)
  const operationFacts = operationFactsOf(row)
  const object = gateObject(row, places)
  const groups = votingGroups(gate, caller, authority.clock.now().toISOString())
  const may = (action: PolicyAction) => refuseByPolicy(authority, caller, action, object, places, groups)
  const now = { round: gate.round, user_id: caller.user_id }
  const measure = { places, now: authority.clock.now().toISOString(), lookback_s: authority.lookback_s }
  const people = delegatorsOf(row, approvers)
  const approve =
    refuseAuthor(gate, caller.user_id) ??
    lost ??
    may('gate.approve') ??
    refuseTainted(caller, footingOf(row, caller.user_id, measure)) ??
    // Without identity's answer this view has no list; the vote itself asks.
    (approvers.length > 0 ? refuseDelegated(row, caller, people, measure) : undefined)
  const ineligible = [approve].find((refusal) => refusal !== undefined && refusal.code !== 'reauth_required')
  const rejecting = refuseGateReject(operationFacts, facts, now)
  return {
    gate_id: gate.gate_id,
    operation_id: gate.operation_id,
    operation_title: operation.title,
    ...pick(gate, 'kind', 'question', 'status', 'round', 'guards'),
    policy: { ...gate.policy },
    votes: gate.votes.map(({ user_id: _, ...vote }) => vote),
    missing: missingOf(facts),
    eligible: approvers
      .filter((person) => couldVote(person, row, measure, people))
      .slice(0, ELIGIBLE_SHOWN)
      .map(({ user }) => ({ id: user.id, name: user.username })),
    eligible_me: ineligible === undefined,
    why_not_me: ineligible?.detail ?? null,
    ...pick(gate, 'digest', 'waiting_since', 'deadline_at'),
    on_timeout: gate.policy.on_timeout,
    on_reject: gate.policy.on_reject,
    escalation: { level: gate.escalation_level, next_at: gate.next_escalation_at },
    consumed_at: gate.consumed_at,
    decided:
      gate.decided_by && gate.decided_at
        ? { by: gate.decided_by, at: gate.decided_at, command_id: gate.decided_command_id }
        : null,
    change_seq: operation.change_seq,
    allowed_actions: [
      allowedAction('approve', approve, externalOnly(gate.kind), refuseGateApprove(operationFacts, facts, now)),
      allowedAction('reject', may('gate.reject'), externalOnly(gate.kind), rejecting),
      allowedAction(
        'break_glass',
        refuseBypass(gate) ?? may('gate.break_glass') ?? refuseTainted(caller, bypassFooting(row, measure)),
        refuseGateApprove(operationFacts, facts, now),
      ),
    ],
  }
}

const missingOf = (facts: GateFacts) => {
  if (facts.status !== 'waiting' && facts.status !== 'armed') return []
  const { count, groups } = missingVotes(facts)
  const ofGroups = groups.reduce((sum, group) => sum + group.count, 0)
  const rest = count - ofGroups
  return [...groups, ...(rest > 0 ? [{ group: null, count: rest }] : [])]
}

export const couldVote = (person: Principal, row: GateRow, measure: Measure, people: People): boolean =>
  !(row.gate.policy.four_eyes && involvedIn(row).includes(person.user.id)) &&
  lossOf(person, footingOf(row, person.user.id, measure)) === undefined &&
  refuseDelegated(row, { user_id: person.user.id, groups: person.group_keys }, people, measure) === undefined

/** The people who delegated this gate; undefined for those who hold no right to decide now. */
export const delegatorsOf = ({ gate }: GateRow, approvers: readonly Principal[]): People =>
  new Map(gate.delegations.map(({ by }) => [by.id, approvers.find(({ user }) => user.id === by.id)]))

/** Counts of resources added, changed and removed behind the gate. */
export const changeCounts = (changes: GateRow['gate']['changes']) => ({
  added: changes.filter(({ change }) => change === 'create').length,
  changed: changes.filter(({ change }) => change === 'update' || change === 'replace' || change === 'unknown').length,
  removed: changes.filter(({ change }) => change === 'delete').length,
})

/**
 * Returns one gate with its subject and context, as this caller sees it. Throws not_found. The brief and the current
 * obstacles are looked up when the gate is read, for its page only (`for_page`), not in the answer to a vote.
 */
export const readGate = async (
  deps: Uses<'clock' | 'db' | 'library' | 'lookback_s' | 'policies' | 'trust'>,
  caller: Caller,
  operation_id: string,
  gate_id: string,
  { for_page = false } = {},
): Promise<{ view: Gate; operation_status: OperationStatus; row: GateRow }> => {
  const row = await getGate(deps.db, operation_id, gate_id)
  if (!row) {
    await requireVisible(deps, caller, operation_id)
    throw notFound('gate', gate_id)
  }
  const places = await placesFor(deps.db, caller, row.operation.resource_ids)
  if (!isVisible(caller, row.operation.requester_id, places)) throw notFound('operation', operation_id)
  const [[{ subject, context: read }, reach, found], approvers, lost] = await Promise.all([
    for_page
      ? readForPage(deps.db, operation_id, gate_id)
      : getGateContext(deps.db, operation_id, gate_id).then((context) => [context, undefined, undefined] as const),
    deps.trust.approvers.list(),
    for_page ? lostAuthorOf(deps, row) : undefined,
  ])
  const [measured, conflicts, brief] = await Promise.all([
    placesForAll(deps.db, [caller, ...approvers], row.operation.resource_ids),
    reach ? listConflicts(deps.db, deps, caller, reach, operation_id) : [],
    found ? briefFor(deps, caller, row.gate, found) : null,
  ])
  const { impact, ...context } = read
  const { dependents = [], affected = null } = impact ? await impactFor(deps.db, caller, impact) : {}
  const view = {
    ...viewGate(deps, caller, row, measured, approvers, lost),
    subject,
    context: { ...context, dependents, affected, conflicts },
    brief,
  }
  return { view, operation_status: operationFactsOf(row).status, row }
}

/** In one transaction: its statements go out together and are planned once. To plan the brief costs more than to run it. */
const readForPage = (db: Db, operation_id: string, gate_id: string) =>
  db.transaction((tx) =>
    together(
      getGateContext(tx, operation_id, gate_id),
      getReachOf(tx, operation_id),
      getBrief(tx, operation_id, gate_id),
    ),
  )

/** Returns why a gate must be decided alone; null if it may be decided together with others (console.md 5.2). */
export const aloneOf = ({ gate, operation }: GateRow, verdict: Verdict, most: Most): Alone | null =>
  gate.kind === 'approval' ? aloneBy([gate.policy], operation.risk_level, verdict, most) : 'kind'
