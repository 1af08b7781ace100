import type { GateRules } from '../contracts/client/votes.ts'
import type { PlanGate } from '../contracts/operations/graph.ts'
import { pick } from '../data/pick.ts'

/** The rules of a gate as evidence states them: everything needed to count its votes again. */
export const rulesOf = ({ gate_id, kind, policy }: Pick<PlanGate, 'gate_id' | 'kind' | 'policy'>): GateRules => ({
  gate_id,
  kind,
  ...pick(policy, 'quorum', 'groups'),
  more_groups: [...new Set(policy.escalation.flatMap(({ add_groups }) => add_groups))],
  ...pick(policy, 'four_eyes', 'reject_rule', 'on_timeout'),
  ...(policy.on_voter_loss && { on_voter_loss: policy.on_voter_loss }),
  ...(kind === 'freeze' && { freeze_id: policy.key }),
  ...(policy.check && { service: policy.check.service }),
  ...(policy.signature && { signature: policy.signature }),
})
