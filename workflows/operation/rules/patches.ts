import type { RefusalCode } from '../../../apps/shared/contracts/operations/graph.ts'
import { cancelling, hasEnded, type OperationFacts, refusal, refuseLost, terminal, wrongState } from './facts.ts'

/** Returns why the graph of an operation cannot be changed; `undefined` if it can (operations.md 2.6). */
export const refusePatch = (facts: OperationFacts): RefusalCode | undefined => {
  const { status, cancel_mode } = facts
  if (hasEnded(status)) return terminal(status)
  return status === 'cancelling' ? cancelling(cancel_mode) : refuseLost(facts)
}

export type PatchFacts = { status: string; status_reason: string | null; rebase: unknown; expires_at: string | null }

/** Why a patch takes no more votes; `undefined` if it does. If too late, carries the patch to propose instead. */
export const refusePatchDecision = (
  facts: OperationFacts,
  { status, status_reason, rebase, expires_at }: PatchFacts,
  now: Date,
): RefusalCode | undefined => {
  const moved = PATCH_CODES.find((code) => status === 'not_applicable' && code === status_reason)
  if (moved)
    return refusal('patch_not_applicable', moved, 'The graph has changed since this patch was proposed.', {
      extra: { rebase },
    })
  if (status !== 'awaiting_approval') return wrongState('patch_closed', closedAs(status, status_reason))
  // The sweeper may come later.
  if (expires_at !== null && Date.parse(expires_at) <= now.getTime())
    return wrongState('patch_closed', 'The patch has expired.')
  return refusePatch(facts)
}
const closedAs = (status: string, why: string | null): string => {
  if (status !== 'not_applicable') return `The patch is already ${status}.`
  return why === 'operation_ended'
    ? 'The operation has ended: the patch no longer applies.'
    : 'The patch no longer applies.'
}
const PATCH_CODES = ['base_revision_moved', 'node_already_dispatched', 'unsound'] as const

/** The digest that the person reviewed must be the patch's current digest. */
export const refuseDigestOf = (now: string, reviewed_digest: string): RefusalCode | undefined =>
  reviewed_digest === now
    ? undefined
    : refusal('version_conflict', 'digest_moved', 'The patch has changed since you reviewed it.', {
        status: 412,
        extra: { digest: now },
      })
