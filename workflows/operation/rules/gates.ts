import type { CodeOf } from '../../../apps/shared/contracts/codes.ts'
import type { RefusalCode } from '../../../apps/shared/contracts/operations/graph.ts'
import { type GateFacts, hasEnded, type OperationFacts, refusal, refuseLost, wrongState } from './facts.ts'

const notWaiting = (code: CodeOf<'gate_not_waiting'>, detail: string, extra?: Record<string, unknown>) =>
  refusal('gate_not_waiting', code, detail, extra ? { extra } : {})

const expired = () => notWaiting('expired', 'The time to decide has passed.')

/** Returns why the gate takes no decision in this round; `undefined` while it is waiting. */
const refuseRound = (gate: GateFacts, round: number): RefusalCode | undefined => {
  if (gate.status === 'armed') return notWaiting('not_reached', 'The operation has not reached this gate yet.')
  if (gate.status === 'cancelled') return notWaiting('cancelled', 'The gate is closed: no node waits behind it.')
  if (round !== gate.round)
    return notWaiting('round_superseded', `You decided on round ${round}; the gate is in round ${gate.round}.`, {
      round: gate.round,
    })
  if (gate.status === 'expired') return expired()
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
  refuseRound(gate, round) ??
  refuseDeciding(facts) ??
  refuseLost(facts) ??
  (gate.overdue ? expired() : undefined) ??
  (gate.outdated
    ? wrongState('intervention_not_applicable', 'It has changed since the intervention was requested.')
    : undefined)

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

/** One right, one vote: the person's own, else the first of those to whom the person delegated. */
const countedOnce = (votes: GateFacts['votes']): GateFacts['votes'] =>
  votes.filter(({ in_place_of: by }, index) => {
    if (by === undefined) return true
    const first = votes.findIndex((vote) => vote.in_place_of === by)
    return first === index && !votes.some(({ user_id }) => user_id === by)
  })

/** Returns the outcome of a round's votes: approved at quorum and group minimums, rejected by rule, else waiting. */
export const outcomeOfVotes = ({
  policy,
  votes: all,
}: Pick<GateFacts, 'policy' | 'votes'>): 'approved' | 'rejected' | 'waiting' => {
  const votes = countedOnce(all)
  const rejections = votes.filter(({ decision }) => decision === 'reject').length
  const needed = policy.reject_rule === 'any' ? 1 : Math.floor(policy.quorum / 2) + 1
  if (rejections >= needed) return 'rejected'
  const missing = missingVotes({ policy, votes })
  return missing.count === 0 && missing.groups.length === 0 ? 'approved' : 'waiting'
}

/** Returns how many approvals are missing in total, and of which groups. */
export const missingVotes = ({ policy, votes }: Pick<GateFacts, 'policy' | 'votes'>) => {
  const approvals = countedOnce(votes).filter(({ decision }) => decision === 'approve')
  const groups = policy.groups
    .map(({ group, min }) => ({ group, count: min - approvals.filter(({ group_key }) => group_key === group).length }))
    .filter(({ count }) => count > 0)
  return { count: Math.max(0, policy.quorum - approvals.length), groups }
}

/** Returns these approvals as votes that satisfy the policy, with the group each fills; `undefined` if not enough. */
export const fillGate = <A extends { user_id: string; groups: readonly string[] }>(
  policy: GateFacts['policy'],
  approvals: readonly A[],
): (A & { decision: 'approve'; group_key: string | null })[] | undefined => {
  const eligible = policy.groups.map(({ group }) => group)
  const votes: (A & { decision: 'approve'; group_key: string | null })[] = []
  for (const approval of approvals) {
    const { groups } = approval
    if (eligible.length > 0 && !groups.some((group) => eligible.includes(group))) continue
    const group_key = groupOfVote({ policy, votes }, eligible, groups)
    votes.push({ ...approval, decision: 'approve', group_key })
  }
  return outcomeOfVotes({ policy, votes }) === 'approved' ? votes : undefined
}

/** The group that a vote fills: the named one, else the first lacking votes, else any of theirs. People count once. */
export const groupOfVote = (
  gate: Pick<GateFacts, 'policy' | 'votes'>,
  eligible_groups: readonly string[],
  caller_groups: readonly string[],
  as_group?: string,
): string | null => {
  const own = eligible_groups.filter((group) => caller_groups.includes(group))
  if (as_group !== undefined && own.includes(as_group)) return as_group
  const missing = missingVotes(gate).groups.find(({ group }) => own.includes(group))
  return missing?.group ?? own[0] ?? null
}
