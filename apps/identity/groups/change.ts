import { and, asc, eq, gt, inArray } from 'drizzle-orm'
import type { FastifyRequest } from 'fastify'
import type { Db, Queryable } from '../../../db/client.ts'
import { getGroup, membersOf } from '../../../db/identity/queries.ts'
import { grants, group_members, groups, users } from '../../../db/identity/tables.ts'
import { pick } from '../../shared/data/pick.ts'
import { AppError, notFound } from '../../shared/errors.ts'
import { keepingAnAdmin, lockControl } from '../control/dual.ts'
import type { ChangeDeps } from '../deps.ts'
import { keepGiven } from '../federation/rights.ts'
import { changeOnce, rolesChanged } from '../mutations.ts'
import { refuseVersion, throwIf } from '../rules.ts'
import { findUser, viewOf } from '../users/change.ts'
import { lockGroup } from './measures.ts'

export const groupViews = async (db: Queryable, list: readonly (typeof groups.$inferSelect)[]) => {
  const keys = list.map(({ group_key }) => group_key)
  const rows = await db
    .select({ ...pick(group_members, 'group_key', 'added_by'), user: users })
    .from(group_members)
    .innerJoin(users, eq(users.id, group_members.user_id))
    .where(inArray(group_members.group_key, keys))
    .orderBy(asc(users.username))
  const members = Map.groupBy(rows, ({ group_key }) => group_key)
  return list.map((group) => ({
    ...pick(group, 'group_key', 'name', 'description'),
    members: (members.get(group.group_key) ?? []).map(({ user, added_by }) => ({ ...viewOf(user), added_by })),
    version: group.version,
    created_at: new Date(group.created_at).toISOString(),
  }))
}
const groupView = async (db: Queryable, group: typeof groups.$inferSelect) => (await groupViews(db, [group]))[0]

/** Groups ordered by key, starting after one of them. */
export const listGroups = (db: Db, after: string | undefined, limit: number) =>
  db
    .select()
    .from(groups)
    .where(after ? gt(groups.group_key, after) : undefined)
    .orderBy(asc(groups.group_key))
    .limit(limit)

type Texts = { name?: string; description?: string | null }

export const createGroup = (
  deps: ChangeDeps,
  req: FastifyRequest,
  { group_key, name, description }: { group_key: string; name: string; description?: string },
) =>
  changeOnce(deps, req, { arming: true }, async (tx) => {
    const [group] = await tx
      .insert(groups)
      .values({ group_key, name, description: description ?? null })
      .onConflictDoNothing()
      .returning()
    if (!group) throw new AppError('version_conflict', 'group_exists', `The group ${group_key} already exists.`)
    const view = await groupView(tx, group)
    const said = { version: group.version, after: view, details: { name } }
    return { status: 201, body: view, action: 'group.created', object: `group:${group_key}`, ...said }
  })

export const updateGroup = (deps: ChangeDeps, req: FastifyRequest, group_key: string, texts: Texts) =>
  changeOnce(deps, req, { arming: true }, async (tx) => {
    const before = await lockGroup(tx, group_key)
    throwIf(refuseVersion(before, req.headers['if-match']))
    const { name = before.name, description = before.description } = texts
    const set = { name, description, version: before.version + 1 }
    const [group] = await tx.update(groups).set(set).where(eq(groups.group_key, group_key)).returning()
    const view = await groupView(tx, group ?? before)
    const said = { version: set.version, before, after: view, details: { name, was: before.name } }
    return { status: 200, body: view, action: 'group.changed', object: `group:${group_key}`, ...said }
  })

export const deleteGroup = (deps: ChangeDeps, req: FastifyRequest, group_key: string) =>
  changeOnce(deps, req, { arming: false }, async (tx) => {
    await lockControl(deps, tx)
    const group = await lockGroup(tx, group_key)
    throwIf(refuseVersion(group, req.headers['if-match']))
    const before = await groupView(tx, group)
    const members = await membersOf(tx, group_key)
    await keepingAnAdmin(tx, async () => {
      await tx.delete(grants).where(and(eq(grants.subject_type, 'group'), eq(grants.subject_id, group_key)))
      await tx.delete(group_members).where(eq(group_members.group_key, group_key))
      await tx.delete(groups).where(eq(groups.group_key, group_key))
    })
    await rolesChanged(tx, req, members)
    const said = { before, details: { name: group.name, members: members.length } }
    return { status: 204, body: undefined, action: 'group.deleted', object: `group:${group_key}`, ...said }
  })

export const removeMember = (
  deps: ChangeDeps,
  req: FastifyRequest,
  { group_key, user_id }: { group_key: string; user_id: string },
) =>
  changeOnce(deps, req, { arming: false }, async (tx) => {
    await lockControl(deps, tx)
    if (!(await getGroup(tx, group_key))) throw notFound('group', group_key, 'not_found')
    await findUser(tx, user_id)
    const membership = and(eq(group_members.group_key, group_key), eq(group_members.user_id, user_id))
    const [there] = await tx.select({ giver: group_members.added_by }).from(group_members).where(membership)
    if (there) await keepGiven(deps, tx, { ...there, user_id, group_key })
    const removed = await keepingAnAdmin(tx, () => tx.delete(group_members).where(membership).returning())
    if (removed.length > 0) await rolesChanged(tx, req, [user_id])
    const said = { before: { user_id }, details: { user_id } }
    return { status: 204, body: undefined, action: 'group.member_removed', object: `group:${group_key}`, ...said }
  })
