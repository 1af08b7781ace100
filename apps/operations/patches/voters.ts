import type { Tx } from '../../../db/client.ts'
import { SYSTEM, type TimelineEvent } from '../../../db/operations/facts/state.ts'
import type { PatchRow, PatchVote } from '../../../db/operations/patches/rows.ts'
import { partiesOf } from '../../shared/contracts/operations/graph.ts'
import { digest } from '../../shared/data/digest.ts'
import { pluck } from '../../shared/data/pick.ts'
import type { Subject } from '../command/command.ts'
import { patchGroups } from '../plans/ahead.ts'
import { loadPlaces } from '../policies/authority.ts'
import { type Footing, type LostVote, lossOf, type People, requireAsked, wordsOf } from '../policies/footing.ts'

/** The basis of a vote for a patch: rights from its proposer do not count, nor with four eyes those of participants. */
export const patchFooting = (subject: Subject, { required, proposer }: PatchRow, lookback_s: number): Footing => {
  const groups = patchGroups(required)
  const involved = required.some(({ four_eyes }) => four_eyes) ? subject.involved : []
  return {
    permissions: ['patch:decide'],
    places: subject.places,
    groups: groups.length === 0 ? undefined : groups,
    taint: {
      involved: [...involved, ...partiesOf(proposer)],
      providers: required.some(({ new_members }) => new_members),
      since: new Date(Date.parse(subject.planned_at) - 1000 * lookback_s).toISOString(),
    },
  }
}

/** Returns which of these approvals no longer count. Throws if identity was not asked about a voter (withPeople). */
export const lostPatchVotes = async (
  tx: Tx,
  subject: Subject,
  approvals: readonly PatchVote[],
  people: People,
  footing: Footing,
): Promise<LostVote[]> => {
  requireAsked(pluck(approvals, 'user_id'), people)
  const places = approvals.length > 0 ? await loadPlaces(tx, subject.resource_ids) : []
  return approvals.flatMap(({ user_id, actor }) => {
    const why = lossOf(people.get(user_id), { ...footing, places })
    return why ? [{ user_id, name: actor.name, why }] : []
  })
}

/** The timeline and evidence entries of lost votes. */
export const voidedPatchVotes = (patch_id: string, lost: readonly LostVote[]): TimelineEvent[] =>
  lost.map(({ user_id, name, why }) => {
    const reason = wordsOf([{ name, why }])
    return {
      type: 'patch.vote_voided',
      actor: SYSTEM,
      reason,
      patch_id,
      data: { why, voter: { id: user_id, name } },
      evidence: {
        kind: 'vote',
        statement: `Patch ${patch_id}. ${reason}`,
        subject: { type: 'patch', id: patch_id, decision: 'void', voter: user_id, why },
        subject_digest: digest({ patch_id, decision: 'void', voter: user_id, why }),
      },
    }
  })
