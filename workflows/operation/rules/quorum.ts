import type { GateFacts } from './facts.ts'

/** Returns the outcome of a round's votes: approved at quorum and group minimums, rejected by rule, else waiting. */
export const outcomeOfVotes = ({
  policy,
  votes,
}: Pick<GateFacts, 'policy' | 'votes'>): 'approved' | 'rejected' | 'waiting' => {
  const rejections = votes.filter(({ decision }) => decision === 'reject').length
  const needed = policy.reject_rule === 'any' ? 1 : Math.floor(policy.quorum / 2) + 1
  if (rejections >= needed) return 'rejected'
  const missing = missingVotes({ policy, votes })
  return missing.count === 0 && missing.groups.length === 0 ? 'approved' : 'waiting'
}

/** Returns how many approvals are missing in total, and of which groups. */
export const missingVotes = ({ policy, votes }: Pick<GateFacts, 'policy' | 'votes'>) => {
  const approvals = votes.filter(({ decision }) => decision === 'approve')
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

/**
 * Returns the group that a vote fills: the named one, else the first that still lacks votes, else any that the person
 * is in. A person counts once.
 */
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
