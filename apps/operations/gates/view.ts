import type { GateRow } from '../../../db/operations/gates/rows.ts'
import type { GateFacts } from '../../../workflows/operation/rules/facts.ts'
import { refuseGateApprove, refuseGateReject } from '../../../workflows/operation/rules/gates.ts'
import { missingVotes } from '../../../workflows/operation/rules/quorum.ts'
import type { Caller } from '../../shared/auth/caller.ts'
import type { Principal } from '../../shared/auth/principals.ts'
import type { Place } from '../../shared/auth/scope.ts'
import type { GateSummary } from '../../shared/contracts/operations/gates.ts'
import type { RefusalCode } from '../../shared/contracts/operations/graph.ts'
import { pick } from '../../shared/data/pick.ts'
import { type Authority, allowedAction, refuseByPolicy } from '../policies/authority.ts'
import type { PolicyAction } from '../policies/cedar.ts'
import {
  externalOnly,
  footingOf,
  gateFacts,
  gateObject,
  involvedIn,
  type Measure,
  operationFactsOf,
  votingGroups,
} from '../policies/footing.ts'
import { lossOf, refuseTainted } from '../policies/lost-rights.ts'

const ELIGIBLE_SHOWN = 50

/** An intervention is decided by another person than its author or those behind a machine, and cannot be bypassed. */
export const refuseAuthor = (
  { author_id, author_behind }: GateRow['gate'],
  user_id: string,
): RefusalCode | undefined =>
  author_id === user_id || author_behind.includes(user_id)
    ? {
        category: 'policy_denied',
        code: 'second_person',
        detail: 'You asked for this intervention. Another person must approve it.',
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
    ...pick(gate, 'kind', 'question', 'status', 'round', 'guards'),
    policy: { ...gate.policy },
    votes: gate.votes.map(({ user_id: _, ...vote }) => vote),
    missing: missingOf(facts),
    eligible: approvers
      .filter((person) => couldVote(person, row, measure))
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
        refuseBypass(gate) ?? may('gate.break_glass'),
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

const couldVote = (person: Principal, row: GateRow, measure: Measure): boolean =>
  !(row.gate.policy.four_eyes && involvedIn(row).includes(person.user.id)) &&
  lossOf(person, footingOf(row, person.user.id, measure)) === undefined

/** Resources that are added, changed and removed behind the gate. */
export const changeCounts = (changes: GateRow['gate']['changes']) => ({
  added: changes.filter(({ change }) => change === 'create').length,
  changed: changes.filter(({ change }) => change === 'update' || change === 'replace' || change === 'unknown').length,
  removed: changes.filter(({ change }) => change === 'delete').length,
})
