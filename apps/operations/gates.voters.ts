import type { GateRow, Vote } from '../../db/operations/gates/rows.ts'
import type { Principal } from '../shared/auth/principals.ts'
import type { Place } from '../shared/auth/scope.ts'
import { eligibleGroups, votingGroups } from './gates/view.ts'
import { isInScope } from './policies/visibility.ts'

/** Why an approval no longer counts (federation.md 6). */
export type VoterLoss = 'voter_disabled' | 'voter_lost_right' | 'voter_tainted'
export type LostVote = { user_id: string; name: string; why: VoterLoss }

type Approval = Pick<Vote, 'user_id' | 'group'>
/** What a voter is measured by: the gate with its operation, the places of its targets, the time. */
export type Measure = { row: GateRow; places: readonly Place[]; now: string }

/**
 * Why this approval does not count now, or undefined while it does: its voter is active, holds gate:decide over every
 * target and is in the group that the vote fills, or has the gate delegated.
 */
export const lossOf = (
  person: Principal | undefined,
  { user_id, group }: Approval,
  { row: { gate }, places, now }: Measure,
): VoterLoss | undefined => {
  if (person?.user.status !== 'ACTIVE') return 'voter_disabled'
  const eligible = eligibleGroups(gate)
  const own = votingGroups(gate, { user_id, groups: person.group_keys }, now)
  const inGroup = eligible.length === 0 || eligible.some((key) => own.includes(key))
  const fills = group === null || own.includes(group)
  if (!inGroup || !fills || !isInScope({ user_id, grants: person.grants }, 'gate:decide', places))
    return 'voter_lost_right'
  return undefined
}

/** A broken glass stands while its person may still break it: both permissions over every target. */
export const lossOfBypass = (person: Principal | undefined, { places }: Measure): VoterLoss | undefined => {
  if (person?.user.status !== 'ACTIVE') return 'voter_disabled'
  const viewer = { user_id: person.user.id, grants: person.grants }
  const both = isInScope(viewer, 'gate:decide', places) && isInScope(viewer, 'operation:control', places)
  return both ? undefined : 'voter_lost_right'
}

const BECAUSE: Record<VoterLoss, string> = {
  voter_disabled: 'the account is no longer active',
  voter_lost_right: 'the right to decide here is gone',
  voter_tainted: 'somebody who takes part in this operation gave the right to decide here',
}

/** The loss of votes in words, for timeline and evidence. */
export const wordsOf = (lost: readonly Pick<LostVote, 'name' | 'why'>[]): string =>
  lost.map(({ name, why }) => `The approval of ${name} no longer counts: ${BECAUSE[why]}.`).join(' ')
