import type { Permission } from '../../shared/auth/permissions.ts'
import type { Principal } from '../../shared/auth/principals.ts'
import type { Place } from '../../shared/auth/scope.ts'
import { unavailable } from '../../shared/errors.ts'
import type { Trust } from '../deps.ts'
import { isInScope } from './visibility.ts'

/** Why an approval no longer counts (federation.md 6). */
export type VoterLoss = 'voter_disabled' | 'voter_lost_right' | 'voter_tainted'
export type LostVote = { user_id: string; name: string; why: VoterLoss }

/** What an approval rests on: permissions over every target, and the group that it fills (null: nobody's). */
export type Footing = { permissions: readonly Permission[]; places: readonly Place[]; group: string | null }

/** Why a person's approval does not count now, or undefined while it does. */
export const lossOf = (
  person: Principal | undefined,
  { permissions, places, group }: Footing,
): VoterLoss | undefined => {
  if (person?.user.status !== 'ACTIVE') return 'voter_disabled'
  const viewer = { user_id: person.user.id, grants: person.grants }
  const inScope = permissions.every((permission) => isInScope(viewer, permission, places))
  return inScope && (group === null || person.group_keys.includes(group)) ? undefined : 'voter_lost_right'
}

const BECAUSE: Record<VoterLoss, string> = {
  voter_disabled: 'the account is no longer active',
  voter_lost_right: 'the right to decide here is gone',
  voter_tainted: 'someone who takes part in this operation gave the right to decide here',
}

/** Lost votes in words, for timeline and evidence. */
export const wordsOf = (lost: readonly Pick<LostVote, 'name' | 'why'>[]): string =>
  lost.map(({ name, why }) => `The approval of ${name} no longer counts: ${BECAUSE[why]}.`).join(' ')

/** What identity said of people a moment ago, by user id; undefined: there is no such user. */
export type People = ReadonlyMap<string, Principal | undefined>

/** Identity was not asked about these people yet. */
class Unasked extends Error {
  readonly user_ids: readonly string[]
  constructor(user_ids: readonly string[]) {
    super('identity was not asked about these people')
    this.user_ids = user_ids
  }
}
const TRIES = 5

/** Throws where identity was not asked about one of them; withPeople asks and runs again. */
export const requireAsked = (user_ids: readonly string[], people: People): void => {
  const unasked = user_ids.filter((user_id) => !people.has(user_id))
  if (unasked.length > 0) throw new Unasked(unasked)
}

/**
 * Runs `work`, which may find out that it needs people: its transaction is undone, identity is asked about them without
 * a lock being held, and it runs again. Throws 503 while identity is away.
 */
export const withPeople = async <T>(
  { principals }: Pick<Trust, 'principals'>,
  work: (people: People) => Promise<T>,
): Promise<T> => {
  const people = new Map<string, Principal | undefined>()
  for (let tries = 0; tries < TRIES; tries++) {
    try {
      return await work(people)
    } catch (error) {
      if (!(error instanceof Unasked)) throw error
      const asked = error.user_ids.map(async (user_id) => [user_id, await principals.ask(user_id)] as const)
      for (const [user_id, person] of await Promise.all(asked)) people.set(user_id, person)
    }
  }
  throw unavailable('Votes change faster than their voters can be proved.')
}
