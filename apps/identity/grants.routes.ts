import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox'
import { and, asc, eq, gt, lte, sql } from 'drizzle-orm'
import Type from 'typebox'
import type { Tx } from '../../db/client.ts'
import { membersOf } from '../../db/identity/queries.ts'
import { type GrantRow, grants } from '../../db/identity/tables.ts'
import { allow } from '../shared/auth/http.ts'
import { PERMISSIONS, ROLES, roleHas } from '../shared/auth/permissions.ts'
import { NewSubjectGrant, PageQuery, pageOf, SubjectGrantView } from '../shared/contracts/identity/users.ts'
import { text } from '../shared/contracts/text.ts'
import { AppError, notFound } from '../shared/errors.ts'
import { CommandHeaders, errorReplies } from '../shared/http/app.ts'
import { createPages } from '../shared/http/pages.ts'
import { isUuid, uuidv7 } from '../shared/ids.ts'
import type { IdentityDeps } from './deps.ts'
import { keepingAnAdmin, lockGroup } from './groups.routes.ts'
import { actorOf, change, rolesChanged } from './mutations.ts'
import { refuseScope, refuseSelfGrant, throwIf } from './rules.ts'
import { findLivingUser } from './users/change.ts'

const viewOf = ({ id, subject_type, subject_id, role, scope, expires_at }: GrantRow) => ({
  id,
  subject_type,
  subject_id,
  role,
  scope,
  expires_at: expires_at && new Date(expires_at).toISOString(),
})

/** A grant that has ended is not in the way of the same one anew. */
const removeEnded = (tx: Tx, of: Pick<GrantRow, 'subject_type' | 'subject_id' | 'role'>) =>
  tx
    .delete(grants)
    .where(
      and(
        eq(grants.subject_type, of.subject_type),
        eq(grants.subject_id, of.subject_id),
        eq(grants.role, of.role),
        lte(grants.expires_at, sql`clock_timestamp()`),
      ),
    )

/** Grants give roles to users and groups, everywhere or in a scope. Roles come from nowhere else. */
export const grantsRoutes: FastifyPluginCallbackTypebox<{ deps: IdentityDeps }> = (app, { deps }, done) => {
  const pages = createPages([deps.keys.page])
  const read = allow('identity:read', { kind: 'R' })

  app.get(
    '/v1/admin/grants',
    {
      schema: {
        operationId: 'listGrants',
        summary: 'List grants',
        tags: ['grants'],
        description: 'Grants in the order in which they were made.',
        querystring: PageQuery,
        response: { 200: pageOf(SubjectGrantView), ...errorReplies },
      },
      preHandler: read,
    },
    async (req) => {
      const list = { route: 'grants' }
      const { page_size, page_token } = req.query
      const [after] = pages.after(page_token, list) ?? []
      const rows = await deps.db
        .select()
        .from(grants)
        .where(after ? gt(grants.id, after) : undefined)
        .orderBy(asc(grants.id))
        .limit(page_size + 1)
      const { items, next_page_token } = pages.cut(rows, page_size, list, ({ id }) => [id])
      return { items: items.map(viewOf), next_page_token, as_of: deps.clock.now().toISOString() }
    },
  )

  app.post(
    '/v1/admin/grants',
    {
      schema: {
        operationId: 'createGrant',
        summary: 'Grant a role',
        tags: ['grants'],
        description: 'Gives a role to a user or a group.',
        headers: CommandHeaders,
        body: NewSubjectGrant,
        response: { 201: SubjectGrantView, ...errorReplies },
      },
      preHandler: allow('identity:admin', { kind: 'A' }),
    },
    (req, reply) =>
      change(deps, req, reply, { arming: true }, async (tx) => {
        const { subject_type, subject_id, role, scope, expires_at } = req.body
        throwIf(refuseSelfGrant(req.caller, { type: subject_type, id: subject_id }))
        throwIf(refuseScope(role, scope))
        if (subject_type === 'group') await lockGroup(tx, subject_id)
        const affected =
          subject_type === 'user' ? [(await findLivingUser(tx, subject_id)).id] : await membersOf(tx, subject_id)
        await removeEnded(tx, { subject_type, subject_id, role })
        const [row] = await tx
          .insert(grants)
          .values({
            id: uuidv7(),
            subject_type,
            subject_id,
            role,
            scope: scope ?? {},
            expires_at: expires_at ?? null,
            created_by: actorOf(req),
          })
          .onConflictDoNothing()
          .returning()
        if (!row) throw new AppError('version_conflict', 'grant_exists', 'This grant is there already.')
        await rolesChanged(tx, req, affected)
        return {
          status: 201,
          body: viewOf(row),
          action: 'grant.created',
          object: `grant:${row.id}`,
          after: viewOf(row),
        }
      }),
  )

  app.delete(
    '/v1/admin/grants/:grant_id',
    {
      schema: {
        operationId: 'deleteGrant',
        summary: 'Withdraw a grant',
        tags: ['grants'],
        description: 'Takes a grant away.',
        params: Type.Object({ grant_id: text('0195f0c2-0000-7000-8000-000000000008', { maxLength: 64 }) }),
        headers: CommandHeaders,
        response: { 204: Type.Null(), ...errorReplies },
      },
      preHandler: allow('identity:admin', { kind: 'S' }),
    },
    (req, reply) =>
      change(deps, req, reply, { arming: false }, async (tx) => {
        const { grant_id } = req.params
        const [row] = isUuid(grant_id)
          ? await keepingAnAdmin(tx, () => tx.delete(grants).where(eq(grants.id, grant_id)).returning())
          : []
        if (!row) throw notFound('grant', grant_id, 'not_found')
        await rolesChanged(
          tx,
          req,
          row.subject_type === 'user' ? [row.subject_id] : await membersOf(tx, row.subject_id),
        )
        return { status: 204, body: undefined, action: 'grant.deleted', object: `grant:${row.id}`, before: viewOf(row) }
      }),
  )

  const RolesReply = Type.Object({
    items: Type.Array(Type.Object({ role: text('operator'), permissions: Type.Array(Type.String()) })),
  })
  app.get(
    '/v1/admin/roles',
    {
      schema: {
        operationId: 'listRoles',
        summary: 'List roles',
        tags: ['grants'],
        description: 'The roles and what each may do.',
        response: { 200: RolesReply, ...errorReplies },
      },
      preHandler: read,
    },
    async () => ({
      items: ROLES.map((role) => ({
        role,
        permissions: PERMISSIONS.filter((permission) => roleHas(role, permission)),
      })),
    }),
  )

  done()
}
