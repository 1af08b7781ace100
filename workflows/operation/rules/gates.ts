import type { CodeOf } from '../../../apps/shared/contracts/codes.ts'
import type { RefusalCode } from '../../../apps/shared/contracts/operations/graph.ts'
import { type GateFacts, hasEnded, type OperationFacts, refusal } from './facts.ts'

const notWaiting = (code: CodeOf<'gate_not_waiting'>, detail: string, extra?: Record<string, unknown>) =>
  refusal('gate_not_waiting', code, detail, extra ? { extra } : {})

/** Returns why the gate takes no decision in this round; `undefined` while it is waiting. */
const refuseRound = (gate: GateFacts, round: number): RefusalCode | undefined => {
  if (gate.status === 'armed') return notWaiting('not_reached', 'The operation has not reached this gate yet.')
  if (gate.status === 'cancelled') return notWaiting('cancelled', 'The gate is closed: no node waits behind it.')
  if (round !== gate.round)
    return notWaiting('round_superseded', `You decided on round ${round}; the gate is in round ${gate.round}.`, {
      round: gate.round,
    })
  if (gate.status === 'expired') return notWaiting('expired', 'The time to decide has passed.')
  if (gate.consumed) return notWaiting('already_consumed', 'The gate is decided and its nodes have started.')
  if (gate.status !== 'waiting') return notWaiting('already_decided', `The gate is already ${gate.status}.`)
  return undefined
}

/** Whether the operation can still open gates at all. */
const refuseDeciding = ({ status, cancel_mode }: OperationFacts) => {
  if (hasEnded(status)) return notWaiting('cancelled', `The operation has ended (${status}).`)
  if (status === 'cancelling') return notWaiting('cancelled', `The operation is being cancelled (${cancel_mode}).`)
  return undefined
}

export type GateDecision = { round: number; user_id: string }

export const refuseGateApprove = (facts: OperationFacts, gate: GateFacts, { round }: GateDecision) =>
  refuseRound(gate, round) ?? refuseDeciding(facts)

/** Someone who approved may also reject, until a node behind the gate has started. */
export const refuseGateReject = (facts: OperationFacts, gate: GateFacts, { round, user_id }: GateDecision) =>
  (mayTakeBack(gate, user_id) && round === gate.round ? undefined : refuseRound(gate, round)) ?? refuseDeciding(facts)

export const mayTakeBack = (gate: GateFacts, user_id: string): boolean =>
  gate.status === 'approved' &&
  !gate.consumed &&
  gate.votes.some((vote) => vote.user_id === user_id && vote.decision === 'approve')

/** The digest that the person saw must be the gate's current one; checked after state, so strangers cannot probe it. */
export const refuseDigest = (gate: GateFacts, reviewed_digest: string): RefusalCode | undefined =>
  reviewed_digest === gate.digest
    ? undefined
    : refusal('version_conflict', 'digest_moved', 'The gate has changed since you reviewed it.', {
        status: 412,
        extra: { digest: gate.digest, round: gate.round },
      })
