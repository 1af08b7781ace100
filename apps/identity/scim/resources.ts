import { and, eq } from 'drizzle-orm'
import type { Queryable } from '../../../db/client.ts'
import {
  freeName,
  isOneOf,
  type Known,
  mapColumn,
  peopleOf,
  queueUnaligned,
  type ScimType,
  scimAdoptable,
  scimBy,
  scimById,
  scimGroupNames,
  scimMembersOf,
  updateScim,
} from '../../../db/identity/scim.ts'
import { type ScimRow, scim_members, scim_resources } from '../../../db/identity/tables.ts'
import { foldUsername } from '../../shared/auth/username.ts'
import { AppError } from '../../shared/errors.ts'
import { tagsOf } from '../../shared/http/routes.ts'
import { uuidv7 } from '../../shared/ids.ts'
import type { Uses } from '../deps.ts'
import { alignIn, MOST_AT_ONCE } from '../federation/rights.ts'
import { isEmergency } from '../rules.ts'
import { scimError } from './errors.ts'
import { accountFor, DELETED_HERE, moveStatus, refuseName } from './people.ts'
import type { Wanted } from './read.ts'
import { note, type Sync } from './source.ts'

const versionOf = ({ row, user }: Known) => `W/"${row.version}${user ? `.${user.version}` : ''}"`

/** A person or a group as the directory reads it; without members if it excludes them. */
export const viewOf = ({ config }: Uses<'config'>, known: Known, members?: readonly string[]) => {
  const { row, user } = known
  const at = `${config.GATEWAY__HTTP__PUBLIC_ORIGIN}/scim/v2`
  const { id, type: resourceType, external_id, name, display_name } = row
  return {
    schemas: [`urn:ietf:params:scim:schemas:core:2.0:${resourceType}`],
    id,
    ...(external_id !== null && { externalId: external_id }),
    ...(user && { userName: name, active: user.status === 'ACTIVE' }),
    ...(user ? display_name !== null && { displayName: display_name } : { displayName: name }),
    ...(members && { members: members.map((value) => ({ value, $ref: `${at}/Users/${value}`, type: 'User' })) }),
    meta: {
      resourceType,
      created: new Date(row.created_at).toISOString(),
      lastModified: new Date(row.updated_at).toISOString(),
      location: `${at}/${resourceType}s/${id}`,
      version: versionOf(known),
    },
  }
}

/** A resource that this directory manages. It sees no others: not local accounts, nor those of other providers. */
export const findScim = async (deps: Seen, provider: string, type: ScimType, id: string): Promise<Known> => {
  const known = await scimById(deps.db, provider, type, id)
  if (!known || (known.user && isEmergency(deps.config, known.user)))
    throw new AppError('not_found', 'not_found', `This directory has no ${type.toLowerCase()} "${id}".`)
  return known
}

type Seen = Uses<'config'> & { db: Queryable }
const seenBy = ({ deps, tx }: Sync): Seen => ({ config: deps.config, db: tx })

const membersOf = async (db: Queryable, id: string) => (await scimMembersOf(db, [id])).map(({ user_id }) => user_id)
/** Their kinds in the audit log. */
const ABOUT = { User: 'user', Group: 'directory_group' }

/** A person's name has one spelling here. A group's stays as sent: the map names it by its exact text. */
const nameAs = (type: ScimType, name: string): string => (type === 'User' ? name.normalize('NFKC') : name)

/** POST: a new person or group. Reuses a person with that external id whom the directory removed or who signed in. */
export const createScim = async (one: Sync, type: ScimType, wanted: Wanted & { name: string }) => {
  const { tx, req } = one
  const provider = req.directory.id
  const { external_id = null, display_name = null, active = true } = wanted
  const name = nameAs(type, wanted.name)
  const folded = foldUsername(name)
  const same = external_id === null ? undefined : await scimBy(tx, provider, type, { external_id })
  const spared = same?.user && isEmergency(one.deps.config, same.user)
  if (same?.row.removed && same.user?.status !== 'DELETED' && !spared) {
    await updateScim(tx, same.row.id, { removed: false })
    return move(one, await findScim(seenBy(one), provider, type, same.row.id), { ...wanted, active })
  }
  const passed = same !== undefined && (await passesOn(one, same))
  if (type === 'User' && (!same || passed)) await freeName(tx, provider, folded)
  if (same && !passed) await refuseTaken(one, type, { external_id })
  else if (isNameKey(one, type, external_id)) await refuseTaken(one, type, { folded })
  const id = type === 'User' ? await accountFor(one, { ...wanted, name }) : uuidv7()
  await tx.insert(scim_resources).values({ id, provider, type, external_id, name, folded, display_name })
  const made = await findScim(seenBy(one), provider, type, id)
  await note(one, { action: `${ABOUT[type]}.created`, object: `${ABOUT[type]}:${id}`, after: made.row })
  return move(one, made, { ...wanted, name, active })
}

/** Whether the record of an account that was deleted here gives its id to another one, which its person has linked. */
const passesOn = async ({ tx, req }: Sync, { row, user }: Known): Promise<boolean> => {
  if (user?.status !== 'DELETED' || row.external_id === null) return false
  if (!(await scimAdoptable(tx, req.directory, row.external_id))) return false
  await updateScim(tx, row.id, { external_id: null })
  return true
}

/** PUT and PATCH: `want` computes the new state from the current members, under the lock. */
export const changeScim = async (
  one: Sync,
  type: ScimType,
  id: string,
  want: (members: readonly string[]) => Wanted,
) => {
  const known = await findRead(one, type, id)
  return move(one, known, want(type === 'Group' ? await membersOf(one.tx, known.row.id) : []))
}

/** DELETE: deletes a group entirely. A person is disabled, leaves all groups and is no longer found by reads. */
export const removeScim = async (one: Sync, type: ScimType, given: string) => {
  const { deps, tx, req } = one
  const known = await findRead(one, type, given)
  const { id } = known.row
  await move(one, known, { active: false, members: new Set() })
  if (type === 'Group') await tx.delete(scim_resources).where(eq(scim_resources.id, id))
  else {
    await tx.delete(scim_members).where(eq(scim_members.user_id, id))
    await alignIn(deps, tx, req.directory, new Map([[id, []]]), String(req.id))
    await updateScim(tx, id, { removed: true })
  }
  await note(one, { action: `${ABOUT[type]}.removed`, object: `${ABOUT[type]}:${id}` })
}

/** If-Match names the version that was read; without it the change always applies. */
const findRead = async (one: Sync, type: ScimType, id: string): Promise<Known> => {
  const { req } = one
  const known = await findScim(seenBy(one), req.directory.id, type, id)
  const version = versionOf(known)
  const named = tagsOf(req.headers['if-match'] ?? '*')
  if (!named.some((tag) => tag === '*' || `W/${tag}` === version))
    throw new AppError('version_conflict', 'version_mismatch', `The current version is ${version}.`, { status: 412 })
  return known
}

const move = async (one: Sync, known: Known, wanted: Wanted): Promise<Known> => {
  const { tx } = one
  const { row, user } = known
  const set: Partial<ScimRow> = {}
  const name = nameAs(row.type, wanted.name ?? row.name)
  const { display_name = row.display_name, external_id, active, members } = wanted
  if (name !== row.name && (await takesName(one, known, name, active === false)))
    Object.assign(set, { name, folded: foldUsername(name) })
  if (user && display_name !== row.display_name) set.display_name = display_name
  if (external_id !== undefined && external_id !== row.external_id) {
    if (await takesId(one, row, external_id, active === false)) set.external_id = external_id
  }
  const status = user && active !== undefined ? await moveStatus(one, known, user, active) : undefined
  if (status) set.disabled_at = status.disabled_at
  const moves = user ? undefined : await movesOf(one, row, members)
  if (!moves?.changed && Object.keys(set).length === 0) return known
  const after = { row: await updateScim(tx, row.id, set), user: status ?? user }
  if (moves) await moveMembers(one, row, after.row, moves)
  const what = status ? (active ? 'enabled' : 'disabled') : 'changed'
  const about = ABOUT[row.type]
  await note(one, {
    action: `${about}.${what}`,
    object: `${about}:${row.id}`,
    before: row,
    after: { ...after.row, ...moves },
  })
  return after
}

/** Whether the record gets its new name. */
const takesName = (one: Sync, { row, user }: Known, name: string, leaving: boolean): Promise<boolean> =>
  takes(leaving, async () => {
    const folded = foldUsername(name)
    if (user) await refuseName(one, name)
    if (user) await freeName(one.tx, row.provider, folded)
    if (isNameKey(one, row.type, row.external_id)) await refuseTaken(one, row.type, { folded }, row.id)
  })

/** Whether the record gets its externalId: with a second one, one person could take the place of another. */
const takesId = (one: Sync, row: ScimRow, external_id: string | null, leaving: boolean): Promise<boolean> =>
  takes(leaving, async () => {
    if (row.external_id !== null)
      throw scimError(400, 'mutability', 'externalId never changes. For another person, DELETE this one, then POST.')
    await refuseTaken(one, row.type, { external_id })
  })

/** A refused name or id keeps no leaver in: they leave under the old one. */
const takes = async (leaving: boolean, check: () => Promise<void>): Promise<boolean> => {
  try {
    await check()
    return true
  } catch (error) {
    if (leaving && error instanceof AppError) return false
    throw error
  }
}

/** Entra has groups of one name. Their ids tell them apart, also in the map; where it names groups, a name stays one. */
const isNameKey = ({ req }: Sync, type: ScimType, external_id: string | null): boolean =>
  type === 'User' || external_id === null || mapColumn(req.directory.scim) === 'name'

type By = { external_id?: string | null; folded?: string }
const refuseTaken = async ({ tx, req }: Sync, type: ScimType, by: By, own?: string): Promise<void> => {
  const holder = await scimBy(tx, req.directory.id, type, by)
  if (!holder || holder.row.id === own) return
  if (by.folded !== undefined) throw scimError(409, 'uniqueness', 'This name is taken.')
  const deleted = holder.user?.status === 'DELETED'
  throw scimError(409, 'uniqueness', deleted ? DELETED_HERE : 'This externalId is taken.')
}

/** Who joins and who leaves. Members must be people whom the same directory manages: it gives rights to no others. */
const movesOf = async ({ tx, req }: Sync, { id }: ScimRow, wanted: ReadonlySet<string> | undefined) => {
  const members = await membersOf(tx, id)
  const before = new Set(members)
  const added = [...(wanted ?? [])].filter((one) => !before.has(one))
  const left = wanted ? members.filter((one) => !wanted.has(one)) : []
  const people = await peopleOf(tx, req.directory.id, added)
  if (people.length < added.length) throw scimError(400, 'invalidValue', 'A member is not a user of this directory.')
  // The directory may still name one who was deleted here; to refuse that would keep all others from joining and leaving.
  const joined = people.filter(({ deleted }) => !deleted).map(({ id: user_id }) => user_id)
  return { members, joined, left, changed: joined.length + left.length > 0 }
}
type Moves = Awaited<ReturnType<typeof movesOf>>

/** Applies the member changes, and aligns the rights of members for whom the provider's map makes a difference. */
const moveMembers = async (one: Sync, before: ScimRow, after: ScimRow, { members, joined, left }: Moves) => {
  const { deps, tx, req } = one
  const rows = joined.map((user_id) => ({ group_id: before.id, user_id }))
  if (rows.length > 0) await tx.insert(scim_members).values(rows)
  await tx.delete(scim_members).where(and(eq(scim_members.group_id, before.id), isOneOf(scim_members.user_id, left)))
  const { groups, scim } = req.directory
  const column = mapColumn(scim)
  if (![before, after].some((row) => Object.hasOwn(groups?.map ?? {}, row[column] ?? ''))) return
  const same = before.name === after.name && before.external_id === after.external_id
  const people = same ? [...joined, ...left] : [...new Set([...members, ...joined])]
  if (people.length > MOST_AT_ONCE) await queueUnaligned(tx, people)
  else await alignIn(deps, tx, req.directory, await scimGroupNames(tx, req.directory, people), String(req.id))
}
