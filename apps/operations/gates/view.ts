import type { GateRow } from '../../../db/operations/gates/rows.ts'
import {
  type GateFacts,
  missingVotes,
  refuseGateApprove,
  refuseGateReject,
  statusOf,
} from '../../../workflows/operation/rules.ts'
import type { Caller } from '../../shared/auth/caller.ts'
import type { Principal } from '../../shared/auth/principals.ts'
import type { Place } from '../../shared/auth/scope.ts'
import type { GateSummary } from '../../shared/contracts/operations/gates.ts'
import type { RefusalCode } from '../../shared/contracts/operations/graph.ts'
import { type Authority, allowedAction, operationObject, refuseByPolicy } from '../policies/authority.ts'
import type { PolicyAction, PolicyObject } from '../policies/cedar.ts'
import { type Footing, lossOf, refuseTainted, type Taint } from '../policies/voters.ts'

const ELIGIBLE_SHOWN = 50

/** Groups whose members' votes count now: those of the policy and those that escalation has added. None: everybody's. */
export const eligibleGroups = ({ policy, escalation_level }: GateRow['gate']): string[] =>
  policy.groups.length === 0
    ? []
    : [
        ...new Set([
          ...policy.groups.map(({ group }) => group),
          ...policy.escalation.slice(0, escalation_level).flatMap(({ add_groups }) => add_groups),
        ]),
      ]

/** Groups that a person's vote can stand for: their own, and by delegation all that the gate asks. */
export const votingGroups = (
  gate: GateRow['gate'],
  { user_id, groups }: { user_id: string; groups: readonly string[] },
  now: string,
): string[] => (isDelegated(gate, user_id, now) ? [...new Set([...groups, ...eligibleGroups(gate)])] : [...groups])

export const isDelegated = ({ delegations }: GateRow['gate'], user_id: string, now: string): boolean =>
  delegations.some((given) => given.user_id === user_id && Date.parse(given.until) > Date.parse(now))

export const gateFacts = ({ gate }: Pick<GateRow, 'gate'>): GateFacts => ({
  gate_id: gate.gate_id,
  kind: gate.kind,
  status: gate.status,
  round: gate.round,
  digest: gate.digest,
  consumed: gate.consumed_at !== null,
  policy: gate.policy,
  votes: gate.votes
    .filter(({ round }) => round === gate.round)
    .map(({ user_id, decision, group }) => ({ user_id, decision, group_key: group })),
})

export const operationFactsOf = ({ operation }: Pick<GateRow, 'operation'>) => ({
  status: statusOf(operation.control, operation.engine_status),
  control: operation.control,
  cancel_mode: operation.cancel_mode,
  cancelled_at: operation.cancelled_at,
  pause_reason: operation.pause_reason,
  unknown_nodes: 0,
})

/** Whom four eyes excludes: who asked for the operation or started it; of an intervention only its author. */
const involvedIn = ({ gate, operation }: GateRow): readonly string[] =>
  gate.author_id === null ? operation.involved : [gate.author_id]

/** Whose gifts do not count on a gate with four eyes, and since when: the plan's time, which they chose, less a while. */
export const taintOf = (row: GateRow, lookback_s: number): Taint | undefined =>
  row.gate.policy.four_eyes
    ? {
        involved: involvedIn(row),
        since: new Date(Date.parse(row.operation.planned_at) - 1000 * lookback_s).toISOString(),
      }
    : undefined

/** What the vote of a person rests on: the right to decide, and a group that the gate asks. */
export const footingOf = (row: GateRow, user_id: string, { places, now, lookback_s }: Measure): Footing => {
  const groups = eligibleGroups(row.gate)
  return {
    permissions: ['gate:decide'],
    places,
    groups: groups.length === 0 || isDelegated(row.gate, user_id, now) ? undefined : groups,
    taint: taintOf(row, lookback_s),
  }
}

/** The places of the operation's targets, the time of Postgres, and for how long the operation may have been known of. */
export type Measure = { places: readonly Place[]; now: string; lookback_s: number }

/** An intervention is seen by somebody else than its author, and nobody passes it over. */
export const refuseAuthor = ({ author_id }: GateRow['gate'], user_id: string): RefusalCode | undefined =>
  author_id === user_id
    ? {
        category: 'policy_denied',
        code: 'second_person',
        detail: 'You asked for this intervention; somebody else has to see it.',
      }
    : undefined

export const refuseBypass = ({ kind }: GateRow['gate']): RefusalCode | undefined =>
  kind === 'intervention'
    ? {
        category: 'policy_denied',
        code: 'break_glass_not_allowed',
        detail: 'An intervention is approved by a second person or not done.',
      }
    : undefined

/** A gate as policies see it. */
export const gateObject = ({ gate, operation }: GateRow, places: readonly Place[]): PolicyObject => ({
  ...operationObject({ ...operation, places }),
  type: 'Gate',
  id: `${gate.operation_id}/${gate.gate_id}`,
  four_eyes: gate.policy.four_eyes,
  involved: involvedIn({ gate, operation }),
  groups: eligibleGroups(gate),
})

/** A gate for its readers: votes, who is missing, and whether this caller may decide, by the rules that decide it. */
export const viewGate = (
  authority: Authority & { lookback_s: number },
  caller: Caller,
  row: GateRow,
  places: readonly Place[],
  approvers: readonly Principal[],
): GateSummary => {
  const { gate, operation } = row
  const facts = gateFacts(row)
  const operationFacts = operationFactsOf(row)
  const object = gateObject(row, places)
  const groups = votingGroups(gate, caller, authority.clock.now().toISOString())
  const may = (action: PolicyAction) => refuseByPolicy(authority, caller, action, object, places, groups)
  const now = { round: gate.round, user_id: caller.user_id }
  const measure = { places, now: authority.clock.now().toISOString(), lookback_s: authority.lookback_s }
  const approve =
    refuseAuthor(gate, caller.user_id) ??
    may('gate.approve') ??
    refuseTainted(caller, footingOf(row, caller.user_id, measure))
  const ineligible = [approve].find((refusal) => refusal !== undefined && refusal.code !== 'reauth_required')
  const rejecting = refuseGateReject(operationFacts, facts, now)
  return {
    gate_id: gate.gate_id,
    operation_id: gate.operation_id,
    operation_title: operation.title,
    kind: gate.kind,
    question: gate.question,
    status: gate.status,
    round: gate.round,
    guards: gate.guards,
    policy: { ...gate.policy },
    votes: gate.votes.map(({ user_id: _, ...vote }) => vote),
    missing: missingOf(facts),
    eligible: approvers
      .filter((person) => couldVote(person, row, measure))
      .slice(0, ELIGIBLE_SHOWN)
      .map(({ user }) => ({ id: user.id, name: user.username })),
    eligible_me: ineligible === undefined,
    why_not_me: ineligible?.detail ?? null,
    digest: gate.digest,
    waiting_since: gate.waiting_since,
    deadline_at: gate.deadline_at,
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
        refuseBypass(gate) ?? may('gate.break_glass'),
        refuseGateApprove(operationFacts, facts, now),
      ),
    ],
  }
}

/** Gates of outer checks are answered by their service, not by people. */
export const externalOnly = (kind: string): RefusalCode | undefined =>
  kind === 'external_check'
    ? { category: 'policy_denied', code: 'not_eligible', detail: 'This gate is answered by an external check.' }
    : undefined

const missingOf = (facts: GateFacts) => {
  if (facts.status !== 'waiting' && facts.status !== 'armed') return []
  const { count, groups } = missingVotes(facts)
  const ofGroups = groups.reduce((sum, group) => sum + group.count, 0)
  const rest = count - ofGroups
  return [...groups, ...(rest > 0 ? [{ group: null, count: rest }] : [])]
}

const couldVote = (person: Principal, row: GateRow, measure: Measure): boolean =>
  !(row.gate.policy.four_eyes && involvedIn(row).includes(person.user.id)) &&
  lossOf(person, footingOf(row, person.user.id, measure)) === undefined

/** Resources that are added, changed and removed behind the gate. */
export const changeCounts = (changes: GateRow['gate']['changes']) => ({
  added: changes.filter(({ change }) => change === 'create').length,
  changed: changes.filter(({ change }) => change === 'update' || change === 'replace' || change === 'unknown').length,
  removed: changes.filter(({ change }) => change === 'delete').length,
})
