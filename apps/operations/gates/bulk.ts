import type { GateRow } from '../../../db/operations/gates/rows.ts'
import type { Alone } from '../../shared/contracts/operations/gates.ts'
import type { RefusalCode } from '../../shared/contracts/operations/graph.ts'
import type { OperationsConfig } from '../config.ts'

type Most = OperationsConfig['OPERATIONS__GATES__BULK_APPROVE']
type Verdict = 'approve' | 'reject'

/** Levels of risk up to which approvals are given together. */
const RISKS: Record<Most, readonly string[]> = { off: [], low: ['low'], medium: ['low', 'medium'] }

/** Why a gate is decided alone; null if it may be decided together with others (console-2.md 1). */
export const aloneOf = ({ gate, operation }: GateRow, verdict: Verdict, most: Most): Alone | null => {
  if (gate.kind !== 'approval') return 'kind'
  if (gate.policy.signature === 'required') return 'signature'
  if (verdict === 'reject') return null
  if (gate.policy.bulk === false) return 'policy'
  if (gate.policy.comment_on_approve) return 'comment'
  return RISKS[most].includes(operation.risk_level) ? null : 'risk'
}

const WHY: Record<Alone, string> = {
  kind: 'Only approval gates are decided together.',
  signature: 'This gate needs a passkey for each approval.',
  policy: 'The policy of this gate keeps it out of bulk decisions.',
  comment: 'The policy of this gate asks for a comment of its own.',
  risk: 'The risk of this operation is above the limit for bulk approvals.',
}

/** The refusal of a vote that is one of several decided together. */
export const refuseBulk = (row: GateRow, verdict: Verdict, most: Most): RefusalCode | undefined => {
  const why = aloneOf(row, verdict, most)
  return why === null ? undefined : { category: 'policy_denied', code: 'bulk_not_allowed', detail: WHY[why] }
}
