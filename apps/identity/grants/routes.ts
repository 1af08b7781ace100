import { asc, eq, gt } from 'drizzle-orm'
import type { FastifyRequest } from 'fastify'
import Type from 'typebox'
import { membersOf, usersByIds } from '../../../db/identity/queries.ts'
import { grants } from '../../../db/identity/tables.ts'
import { allow } from '../../shared/auth/http.ts'
import { ALL_ROLES, PERMISSIONS, ROLES_OF, roleHas } from '../../shared/auth/permissions.ts'
import { Pending } from '../../shared/contracts/identity/changes.ts'
import {
  ListedGrant,
  NewSubjectGrant,
  PageQuery,
  pageOf,
  SubjectGrantView,
} from '../../shared/contracts/identity/users.ts'
import { ArrayOf, text } from '../../shared/contracts/shapes.ts'
import { notFound } from '../../shared/errors.ts'
import { createPages } from '../../shared/http/pages.ts'
import { CommandHeaders, routes, sendStored } from '../../shared/http/routes.ts'
import { isUuid } from '../../shared/ids.ts'
import { perform } from '../control/changes.ts'
import { keepingAnAdmin, lockControl } from '../control/dual.ts'
import type { ChangeDeps } from '../deps.ts'
import { keepGiven } from '../federation/rights.ts'
import { changeOnce, rolesChanged } from '../mutations.ts'
import { detailsOf, grantMeasure, viewOf } from './measures.ts'

/** Grants give roles to users and groups, everywhere or in a scope. They are the only source of roles. */
export const grantsRoutes = routes<ChangeDeps>('grants', (app, { deps }) => {
  const pages = createPages(deps.keys.page)
  app.get('/v1/admin/grants', {
    operationId: 'listGrants',
    summary: 'List grants',
    description: 'Grants in the order in which they were made.',
    querystring: PageQuery,
    response: { 200: pageOf(ListedGrant) },
    preHandler: allow('identity:read', { kind: 'R' }),
    handler: async (req) => {
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
      const ids = items.flatMap(({ subject_type, subject_id }) => (subject_type === 'user' ? [subject_id] : []))
      const names = new Map((await usersByIds(deps.db, ids)).map((user) => [user.id, user.username]))
      return {
        items: items.map((row) => ({ ...viewOf(row), subject_name: names.get(row.subject_id) ?? null })),
        next_page_token,
        as_of: deps.clock.now().toISOString(),
      }
    },
  })
  app.post('/v1/admin/grants', {
    operationId: 'createGrant',
    summary: 'Grant a role',
    description: 'Gives a role to a user or a group; 202 if a second administrator must confirm it.',
    headers: CommandHeaders,
    body: NewSubjectGrant,
    response: { 201: SubjectGrantView, 202: Pending },
    preHandler: allow('identity:admin', { kind: 'A' }),
    handler: async (req, reply) =>
      sendStored(reply, await perform(deps, req, { kind: 'grant.create', request: req.body }, grantMeasure)),
  })
  app.delete('/v1/admin/grants/:grant_id', {
    operationId: 'deleteGrant',
    summary: 'Withdraw a grant',
    description: 'Withdraws a grant; refused while a provider gives it, which ends there or by disabling the account.',
    params: Type.Object({ grant_id: text('0195f0c2-0000-7000-8000-000000000008', { maxLength: 64 }) }),
    headers: CommandHeaders,
    response: { 204: Type.Null() },
    preHandler: allow('identity:admin', { kind: 'S' }),
    handler: async (req, reply) => sendStored(reply, await deleteGrant(deps, req, req.params.grant_id)),
  })
})

const deleteGrant = (deps: ChangeDeps, req: FastifyRequest, grant_id: string) =>
  changeOnce(deps, req, { arming: false }, async (tx) => {
    await lockControl(deps, tx)
    const own = eq(grants.id, grant_id)
    const [there] = isUuid(grant_id) ? await tx.select().from(grants).where(own) : []
    if (there?.subject_type === 'user')
      await keepGiven(deps, tx, { giver: there.created_by, user_id: there.subject_id, id: there.id })
    const [row] = there ? await keepingAnAdmin(tx, () => tx.delete(grants).where(own).returning()) : []
    if (!row) throw notFound('grant', grant_id, 'not_found')
    await rolesChanged(tx, req, row.subject_type === 'user' ? [row.subject_id] : await membersOf(tx, row.subject_id))
    const said = { before: viewOf(row), details: detailsOf(row) }
    return { status: 204, body: undefined, action: 'grant.deleted', object: `grant:${row.id}`, ...said }
  })

const RolesReply = Type.Object({
  items: ArrayOf({
    role: text('operator'),
    permissions: Type.Array(Type.String()),
    people: Type.Boolean({ description: 'Whether a person can hold it.' }),
    machines: Type.Boolean({ description: 'Whether a machine can hold it.' }),
  }),
})

export const rolesRoutes = routes<unknown>('grants', (app) => {
  app.get('/v1/admin/roles', {
    operationId: 'listRoles',
    summary: 'List roles',
    description: 'The roles and what each may do.',
    response: { 200: RolesReply },
    preHandler: allow('identity:read', { kind: 'R' }),
    handler: async () => ({
      items: ALL_ROLES.map((role) => ({
        role,
        permissions: PERMISSIONS.filter((permission) => roleHas(role, permission)),
        people: ROLES_OF.person.has(role),
        machines: ROLES_OF.machine.has(role),
      })),
    }),
  })
})
