import { lastChanges } from '../../../db/catalog/resources/history.ts'
import type { ManagedField } from '../../shared/contracts/catalog/resources.ts'
import { pluck } from '../../shared/data/pick.ts'
import { AppError } from '../../shared/errors.ts'
import type { Uses } from '../deps.ts'
import { timeOrNull } from '../read/documents.ts'

type Reading = Uses<'db' | 'trust'>
type Owned = { path: string; owner: string }

/** The managers of fields by display name, and since when. */
export const managedFields = async (
  { db, trust }: Reading,
  resource_id: string,
  owned: readonly Owned[],
): Promise<ManagedField[]> => {
  const since = await lastChanges(db, resource_id, pluck(owned, 'path'))
  const names = await namesOf(trust, pluck(owned, 'owner'))
  return owned.map(({ path, owner }) => ({
    path,
    owner,
    name: names.get(owner) ?? owner,
    since: timeOrNull(since.get(path) ?? null),
  }))
}

/** Display names of those who manage or changed something, keyed by the stored manager name. */
export const namesOf = async (
  trust: Reading['trust'],
  actors: readonly string[],
): Promise<ReadonlyMap<string, string>> =>
  new Map(await Promise.all([...new Set(actors)].map(async (one) => [one, await nameOf(trust, one)] as const)))

/** A display name is optional: without identity, the stored manager name is used. */
const nameOf = async ({ principals }: Reading['trust'], owner: string): Promise<string> => {
  if (!owner.startsWith('user:')) return owner
  const principal = await principals.get(owner.slice('user:'.length)).catch(() => undefined)
  return principal?.user.username ?? owner
}

/** Adds to the refusal of a change the names of those who manage the fields, and since when. */
export const namingManagers = async <T>(deps: Reading, resource_id: string, change: Promise<T>): Promise<T> => {
  try {
    return await change
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'field_owned') throw error
    const { extra = {} } = error.options
    const conflicts = await managedFields(deps, resource_id, extra.conflicts as Owned[])
    const named = conflicts.slice(0, 3).map(({ path, name, since }) => `${path} (${name}${sinceText(since)})`)
    const more = Number(extra.conflict_count) - named.length
    const detail = `Other managers set different values: ${named.join(', ')}${more > 0 ? ` and ${more} more` : ''}.`
    throw new AppError(error.category, error.code, detail, { ...error.options, extra: { ...extra, conflicts } })
  }
}

const sinceText = (since: string | null): string => (since === null ? '' : `, since ${since.slice(0, 19)}Z`)
