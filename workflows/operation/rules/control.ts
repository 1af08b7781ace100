import type { CancelMode, RefusalCode } from '../../../apps/shared/contracts/operations/graph.ts'
import { cancelling, hasEnded, type OperationFacts, refusal, refuseLost, terminal, wrongState } from './facts.ts'

export const refuseEnded = ({ status }: Pick<OperationFacts, 'status'>): RefusalCode | undefined =>
  hasEnded(status) ? terminal(status) : undefined

export const refusePause = ({ status, cancel_mode }: OperationFacts): RefusalCode | undefined => {
  if (hasEnded(status)) return terminal(status)
  if (status === 'cancelling') return cancelling(cancel_mode)
  if (status === 'pausing' || status === 'paused')
    return wrongState('already_paused', `The operation is already ${status}.`)
  return undefined
}

export const refuseResume = (facts: OperationFacts, { acknowledge_drift }: { acknowledge_drift: boolean }) => {
  const { status, cancel_mode, pause_reason, unknown_nodes } = facts
  if (hasEnded(status)) return terminal(status)
  if (status === 'cancelling') return cancelling(cancel_mode)
  if (status !== 'pausing' && status !== 'paused')
    return wrongState('not_paused', `The operation is ${status}, not paused.`)
  const lost = refuseLost(facts)
  if (lost) return lost
  if (unknown_nodes > 0)
    return wrongState(
      'outcome_unknown_open',
      `Nodes with an unknown outcome: ${unknown_nodes}. Resolve each one first (retry, skip or mark).`,
    )
  if (pause_reason === 'catalog_drift' && !acknowledge_drift)
    return refusal(
      'stale_catalog_projection',
      'drift_unacknowledged',
      'Targets have changed since the plan. Resume with acknowledge_drift: true to take their new values.',
    )
  return undefined
}

export type CancelCommand = { mode: CancelMode; now: string; cooloff_s: number }

export const refuseCancel = (facts: OperationFacts, { mode, now, cooloff_s }: CancelCommand) => {
  const { status, cancel_mode, cancelled_at } = facts
  if (hasEnded(status)) return terminal(status)
  if (status !== 'cancelling')
    return mode === 'force'
      ? wrongState('force_needs_cancel_first', 'Force is for a cancel that does not end: cancel gracefully first.')
      : undefined
  if (cancel_mode === mode) return cancelling(cancel_mode)
  if (cancel_mode === 'force')
    return wrongState('mode_not_allowed', 'The operation is being cancelled by force; no other mode can follow.')
  if (mode === 'graceful')
    return wrongState('mode_not_allowed', 'The operation is already being cancelled with compensation.')
  if (mode === 'force' && cancelled_at !== null) {
    const available_at = new Date(Date.parse(cancelled_at) + cooloff_s * 1000).toISOString()
    if (Date.parse(now) < Date.parse(available_at))
      return wrongState('cooloff_not_elapsed', `Force is possible ${cooloff_s} s after the first cancel.`, {
        available_at,
        extra: { available_at },
      })
  }
  return undefined
}
