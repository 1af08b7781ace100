import type { Intent, Plan } from '../../../db/operations/plans/rows.ts'
import type { Caller } from '../../shared/auth/caller.ts'
import type { Principal } from '../../shared/auth/principals.ts'
import type { Place } from '../../shared/auth/scope.ts'
import type { PlanGate, RefusalCode } from '../../shared/contracts/operations/graph.ts'
import type { PlanStatus } from '../../shared/contracts/operations/plans.ts'
import { refusal } from '../../shared/errors.ts'
import { refusePreview } from '../intents/create.ts'
import type { Risk } from '../planner/risk.ts'
import { operationObject } from '../policies/authority.ts'
import type { PolicyObject } from '../policies/cedar.ts'

/** A plan as the authorization policies see it. */
export const planObject = (
  plan: Pick<Plan, 'plan_id' | 'report'>,
  intent: Intent,
  places: readonly Place[],
): PolicyObject => ({
  ...operationObject({
    operation_id: plan.plan_id,
    requester_id: intent.requester_id,
    involved: [intent.requester_id],
    risk_level: (plan.report as { risk?: Risk }).risk?.level ?? 'low',
    environment: intent.labels.environment ?? null,
    labels: intent.labels,
    places,
  }),
  type: 'Plan',
})

/** Time passes without a write: a plan past its end is expired, whether or not the sweeper has marked it. */
export const statusNow = ({ status, is_due }: Pick<Plan, 'status' | 'is_due'>): PlanStatus =>
  is_due && (status === 'ready' || status === 'blocked_by_policy') ? 'expired' : (status as PlanStatus)

/** Returns why a plan cannot be started, by its own state and that of its intent (operations.md 2.2). */
export const refuseStart = (
  plan: Pick<Plan, 'status' | 'is_due' | 'operation_id' | 'status_reason' | 'document'>,
  intent: Pick<Intent, 'status' | 'operation_id'>,
): RefusalCode | undefined => {
  const status = statusNow(plan)
  if (status === 'locked' || status === 'started')
    return refusal('plan_locked', 'already_started', 'This plan has been started.', {
      extra: { operation_id: plan.operation_id },
    })
  const closed = refusePreview(intent)
  if (closed) return closed
  const not_ready = (detail: string) =>
    refusal('invalid_state_transition', 'plan_not_ready', detail, { extra: { plan_status: status } })
  if (status !== 'ready')
    return not_ready(`The plan is ${status}${plan.status_reason ? `: ${plan.status_reason}` : ''}; preview again.`)
  if (plan.document.nodes.length === 0)
    return not_ready('The plan has no steps: every target is in its desired state already.')
  return undefined
}

/** Returns a gate as a reader of the plan sees it: who may decide, and whether that is the reader. */
export const gateView = (
  { gate_id, kind, question, policy, guards }: PlanGate,
  caller: Caller,
  { requester_id }: Pick<Intent, 'requester_id'>,
) => {
  const who = policy.groups.map(({ group }) => group)
  const eligible = who.length === 0 || who.some((group) => caller.groups.includes(group))
  const own = policy.four_eyes && requester_id === caller.user_id
  return {
    gate_id,
    kind,
    question,
    policy: policy as unknown as Record<string, unknown>,
    guards,
    who,
    can_i: caller.permissions.has('gate:decide') && eligible && !own,
  }
}

/** Warns of gates that nobody could open now. Who may open one is looked up again when the gate asks. */
export const warnOfApprovers = (gates: PlanGate[], approvers: Principal[], { requester_id }: Intent) =>
  gates
    .filter(({ policy }) => {
      const groups = policy.groups.map(({ group }) => group)
      return !approvers.some(
        ({ user, group_keys }) =>
          !(policy.four_eyes && user.id === requester_id) &&
          (groups.length === 0 || groups.some((group) => group_keys.includes(group))),
      )
    })
    .map(({ gate_id, policy }) => ({
      code: 'no_eligible_approver',
      message: `Nobody may approve the gate "${gate_id}" now${policy.groups.length > 0 ? ` (groups ${policy.groups.map(({ group }) => group).join(', ')})` : ''}.`,
      values: { gate: gate_id, groups: policy.groups.map(({ group }) => group).join(', ') },
    }))
