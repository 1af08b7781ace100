import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox'
import { and, asc, eq, gt } from 'drizzle-orm'
import Type from 'typebox'
import type { Queryable, Tx } from '../../db/client.ts'
import { getGroup, lastingAdmins, lockAdmins, membersOf } from '../../db/identity/queries.ts'
import { grants, group_members, groups, users } from '../../db/identity/tables.ts'
import { allow } from '../shared/auth/http.ts'
import { GroupKey, GroupPatch, GroupView, NewGroup, PageQuery, pageOf } from '../shared/contracts/identity/users.ts'
import { AppError, notFound } from '../shared/errors.ts'
import { CommandHeaders, errorReplies, VersionedHeaders } from '../shared/http/app.ts'
import { createPages } from '../shared/http/pages.ts'
import type { IdentityDeps } from './deps.ts'
import { actorOf, change, rolesChanged } from './mutations.ts'
import { refuseLastAdmin, refuseSelfGrant, refuseVersion, throwIf } from './rules.ts'
import { findLivingUser, findUser, viewOf } from './users/change.ts'

const GroupParams = Type.Object({ group_key: GroupKey })
const MemberParams = Type.Object({ group_key: GroupKey, user_id: Type.String({ format: 'uuid' }) })

const groupView = async (db: Queryable, group: typeof groups.$inferSelect) => {
  const rows = await db
    .select({ user: users })
    .from(group_members)
    .innerJoin(users, eq(users.id, group_members.user_id))
    .where(eq(group_members.group_key, group.group_key))
    .orderBy(asc(users.username))
  return {
    group_key: group.group_key,
    name: group.name,
    description: group.description,
    members: rows.map(({ user }) => viewOf(user)),
    version: group.version,
    created_at: new Date(group.created_at).toISOString(),
  }
}

const findGroup = async (db: Queryable, group_key: string) => {
  const group = await getGroup(db, group_key)
  if (!group) throw notFound('group', group_key, 'not_found')
  return group
}

/** The group, kept as it is until the transaction ends: nobody joins or is given rights by a group on its way out. */
export const lockGroup = async (tx: Tx, group_key: string) => {
  const [group] = await tx.select().from(groups).where(eq(groups.group_key, group_key)).for('update')
  if (!group) throw notFound('group', group_key, 'not_found')
  return group
}

/** Takes rights away and puts them back if that would leave nobody who can administer. */
export const keepingAnAdmin = async <T>(tx: Tx, take: () => Promise<T>): Promise<T> => {
  await lockAdmins(tx)
  const before = await lastingAdmins(tx)
  const result = await take()
  throwIf(refuseLastAdmin(before, await lastingAdmins(tx)))
  return result
}

/** Groups: flat, by a key that never changes, because gate policies name it. */
export const groupsRoutes: FastifyPluginCallbackTypebox<{ deps: IdentityDeps }> = (app, { deps }, done) => {
  const pages = createPages([deps.keys.page])
  const read = allow('identity:read', { kind: 'R' })
  const arm = allow('identity:admin', { kind: 'A' })
  const stop = allow('identity:admin', { kind: 'S' })

  app.get(
    '/v1/admin/groups',
    {
      schema: {
        operationId: 'listGroups',
        summary: 'List groups',
        tags: ['groups'],
        description: 'Groups by key, with their members.',
        querystring: PageQuery,
        response: { 200: pageOf(GroupView), ...errorReplies },
      },
      preHandler: read,
    },
    async (req) => {
      const list = { route: 'groups' }
      const { page_size, page_token } = req.query
      const [after] = pages.after(page_token, list) ?? []
      const rows = await deps.db
        .select()
        .from(groups)
        .where(after ? gt(groups.group_key, after) : undefined)
        .orderBy(asc(groups.group_key))
        .limit(page_size + 1)
      const { items, next_page_token } = pages.cut(rows, page_size, list, ({ group_key }) => [group_key])
      const views = await Promise.all(items.map((group) => groupView(deps.db, group)))
      return { items: views, next_page_token, as_of: deps.clock.now().toISOString() }
    },
  )

  app.post(
    '/v1/admin/groups',
    {
      schema: {
        operationId: 'createGroup',
        summary: 'Create a group',
        tags: ['groups'],
        description: 'Creates a group.',
        headers: CommandHeaders,
        body: NewGroup,
        response: { 201: GroupView, ...errorReplies },
      },
      preHandler: arm,
    },
    (req, reply) =>
      change(deps, req, reply, { arming: true }, async (tx) => {
        const { group_key, name, description } = req.body
        const [group] = await tx
          .insert(groups)
          .values({ group_key, name, description: description ?? null })
          .onConflictDoNothing()
          .returning()
        if (!group) throw new AppError('version_conflict', 'group_exists', `There is a group ${group_key} already.`)
        const view = await groupView(tx, group)
        return { status: 201, body: view, action: 'group.created', object: `group:${group_key}`, after: view }
      }),
  )

  app.patch(
    '/v1/admin/groups/:group_key',
    {
      schema: {
        operationId: 'updateGroup',
        summary: 'Change a group',
        tags: ['groups'],
        description: 'Changes name or description of a group. If-Match holds the version that was read.',
        params: GroupParams,
        headers: VersionedHeaders,
        body: GroupPatch,
        response: { 200: GroupView, ...errorReplies },
      },
      preHandler: arm,
    },
    (req, reply) =>
      change(deps, req, reply, { arming: true }, async (tx) => {
        const { group_key } = req.params
        const before = await lockGroup(tx, group_key)
        throwIf(refuseVersion(before, req.headers['if-match']))
        const { name = before.name, description = before.description } = req.body
        const set = { name, description, version: before.version + 1 }
        const [group] = await tx.update(groups).set(set).where(eq(groups.group_key, group_key)).returning()
        const view = await groupView(tx, group ?? before)
        return { status: 200, body: view, action: 'group.changed', object: `group:${group_key}`, before, after: view }
      }),
  )

  app.delete(
    '/v1/admin/groups/:group_key',
    {
      schema: {
        operationId: 'deleteGroup',
        summary: 'Delete a group',
        tags: ['groups'],
        description: 'Removes a group, its memberships and its grants.',
        params: GroupParams,
        headers: VersionedHeaders,
        response: { 204: Type.Null(), ...errorReplies },
      },
      preHandler: stop,
    },
    (req, reply) =>
      change(deps, req, reply, { arming: false }, async (tx) => {
        const { group_key } = req.params
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
        return { status: 204, body: undefined, action: 'group.deleted', object: `group:${group_key}`, before }
      }),
  )

  app.put(
    '/v1/admin/groups/:group_key/members/:user_id',
    {
      schema: {
        operationId: 'addGroupMember',
        summary: 'Add a member to a group',
        tags: ['groups'],
        description: 'Adds a user to a group.',
        params: MemberParams,
        headers: CommandHeaders,
        response: { 204: Type.Null(), ...errorReplies },
      },
      preHandler: arm,
    },
    (req, reply) =>
      change(deps, req, reply, { arming: true }, async (tx) => {
        const { group_key, user_id } = req.params
        throwIf(refuseSelfGrant(req.caller, { type: 'user', id: user_id }))
        await lockGroup(tx, group_key)
        await findLivingUser(tx, user_id)
        const added = await tx
          .insert(group_members)
          .values({ group_key, user_id, added_by: actorOf(req) })
          .onConflictDoNothing()
          .returning()
        if (added.length > 0) await rolesChanged(tx, req, [user_id])
        return {
          status: 204,
          body: undefined,
          action: 'group.member_added',
          object: `group:${group_key}`,
          after: { user_id },
        }
      }),
  )

  app.delete(
    '/v1/admin/groups/:group_key/members/:user_id',
    {
      schema: {
        operationId: 'removeGroupMember',
        summary: 'Remove a member from a group',
        tags: ['groups'],
        description: 'Takes a user out of a group.',
        params: MemberParams,
        headers: CommandHeaders,
        response: { 204: Type.Null(), ...errorReplies },
      },
      preHandler: stop,
    },
    (req, reply) =>
      change(deps, req, reply, { arming: false }, async (tx) => {
        const { group_key, user_id } = req.params
        await findGroup(tx, group_key)
        await findUser(tx, user_id)
        const removed = await keepingAnAdmin(tx, () =>
          tx
            .delete(group_members)
            .where(and(eq(group_members.group_key, group_key), eq(group_members.user_id, user_id)))
            .returning(),
        )
        if (removed.length > 0) await rolesChanged(tx, req, [user_id])
        return {
          status: 204,
          body: undefined,
          action: 'group.member_removed',
          object: `group:${group_key}`,
          before: { user_id },
        }
      }),
  )
  done()
}
