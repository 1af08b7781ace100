import type { GateRow } from '../../../db/operations/gates/rows.ts'
import { type GateFacts, statusOf } from '../../../workflows/operation/rules/facts.ts'
import type { Place } from '../../shared/auth/scope.ts'
import type { RefusalCode } from '../../shared/contracts/operations/graph.ts'
import { pick } from '../../shared/data/pick.ts'
import { operationObject } from './authority.ts'
import type { PolicyObject } from './cedar.ts'
import type { Footing, Taint } from './lost-rights.ts'

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
  ...pick(gate, 'gate_id', 'kind', 'status', 'round', 'digest'),
  consumed: gate.consumed_at !== null,
  policy: gate.policy,
  votes: gate.votes
    .filter(({ round }) => round === gate.round)
    .map(({ user_id, decision, group }) => ({ user_id, decision, group_key: group })),
})

export const operationFactsOf = ({ operation }: Pick<GateRow, 'operation'>) => ({
  status: statusOf(operation.control, operation.engine_status),
  ...pick(operation, 'control', 'cancel_mode', 'cancelled_at', 'pause_reason'),
  unknown_nodes: 0,
})

/** Whom four eyes excludes: who asked for the operation or started it; of an intervention only its author, with the people behind a machine. */
export const involvedIn = ({ gate, operation }: GateRow): readonly string[] =>
  gate.author_id === null ? operation.involved : [gate.author_id, ...gate.author_behind]

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

/** A gate as policies see it. */
export const gateObject = ({ gate, operation }: GateRow, places: readonly Place[]): PolicyObject => ({
  ...operationObject({ ...operation, places }),
  type: 'Gate',
  id: `${gate.operation_id}/${gate.gate_id}`,
  four_eyes: gate.policy.four_eyes,
  involved: involvedIn({ gate, operation }),
  groups: eligibleGroups(gate),
})

/** Gates of outer checks are answered by their service, not by people. */
export const externalOnly = (kind: string): RefusalCode | undefined =>
  kind === 'external_check'
    ? { category: 'policy_denied', code: 'not_eligible', detail: 'This gate is answered by an external check.' }
    : undefined
