import type { OperationFacts } from '../../../workflows/operation/rules/facts.ts'
import { refuseOperationIntervention } from '../../../workflows/operation/rules/nodes.ts'
import type { Caller } from '../../shared/auth/caller.ts'
import {
  type AllowedAction,
  OPERATION_INTERVENTIONS,
  type OperationIntervention,
  type RefusalCode,
} from '../../shared/contracts/operations/graph.ts'
import { refusal } from '../../shared/errors.ts'
import {
  type Authority,
  actionOf,
  allowedAction,
  type Governed,
  operationObject,
  refuseByPolicy,
} from '../policies/authority.ts'

/** The objects that interventions on the whole operation can act on. */
export type Offered = {
  leases: number
  open_gates: number
  /** Freezes that hold the operation now. */
  freezes: readonly { freeze_id: string; approvers: readonly string[] }[]
}

/** Returns whether the caller may intervene in the whole operation, by type; payload objects are checked later. */
export const operationInterventions = (
  authority: Authority,
  caller: Caller,
  operation: Governed,
  facts: OperationFacts,
  offered: Offered,
): AllowedAction[] => {
  const object = operationObject(operation)
  return OPERATION_INTERVENTIONS.map((type) => {
    const may = refuseByPolicy(authority, caller, actionOf(type), object, operation.places)
    return allowedAction(type, may, refuseOperationIntervention(facts, type), NEEDS[type](offered, caller))
  })
}

const nothing = (detail: string) => refusal('invalid_state_transition', 'intervention_not_applicable', detail)

const NEEDS: Record<OperationIntervention, (offered: Offered, caller: Caller) => RefusalCode | undefined> = {
  // An external agent's attempt may have a deadline, too; its node says so.
  extend_deadline: () => undefined,
  set_limits: () => undefined,
  release_leases: ({ leases }) => (leases > 0 ? undefined : nothing('The operation holds no leases.')),
  delegate_gate: ({ open_gates }) => (open_gates > 0 ? undefined : nothing('No gate waits for a decision.')),
  override_freeze: ({ freezes }, { groups }) => {
    if (freezes.length === 0) return nothing('No freeze holds this operation now.')
    const own = freezes.some(({ approvers }) => approvers.length === 0 || approvers.some((key) => groups.includes(key)))
    if (own) return undefined
    const all = [...new Set(freezes.flatMap(({ approvers }) => approvers))].join(', ')
    return refusal('policy_denied', 'not_eligible', `Only members of ${all} can override the freeze.`)
  },
}
