import type { Alone } from '../../shared/contracts/operations/common.ts'
import type { GatePolicy, RefusalCode } from '../../shared/contracts/operations/graph.ts'
import type { OperationsConfig } from '../config.ts'

export type Most = OperationsConfig['OPERATIONS__GATES__BULK_APPROVE']
export type Verdict = 'approve' | 'reject'

/** Risk levels up to which approvals may be given together. */
const RISKS: Record<Most, readonly string[]> = { off: [], low: ['low'], medium: ['low', 'medium'] }

/** Why a gate or patch under these policies must be decided alone; null: it may be decided in bulk (console.md 5.2). */
export const aloneBy = (
  policies: readonly GatePolicy[],
  risk_level: string,
  verdict: Verdict,
  most: Most,
): Alone | null => {
  if (policies.some(({ signature }) => signature === 'required')) return 'signature'
  if (verdict === 'reject') return null
  if (policies.some(({ bulk }) => bulk === false)) return 'policy'
  if (policies.some(({ comment_on_approve }) => comment_on_approve)) return 'comment'
  return RISKS[most].includes(risk_level) ? null : 'risk'
}

const WHY: Record<Alone, string> = {
  kind: 'Only approval gates can be decided in bulk.',
  signature: 'Each approval needs a passkey.',
  policy: 'Its policy excludes it from bulk decisions.',
  comment: 'Its policy requires a separate comment.',
  risk: 'The risk of this operation is above the limit for bulk approvals.',
}

/** Returns the refusal of a vote that is part of a batch. */
export const refuseTogether = (why: Alone | null): RefusalCode | undefined =>
  why === null ? undefined : { category: 'policy_denied', code: 'bulk_not_allowed', detail: WHY[why] }
