import type { FastifyReply, FastifyRequest } from 'fastify'
import Type from 'typebox'
import { listUsers } from '../../../db/identity/queries.ts'
import { allow } from '../../shared/auth/http.ts'
import { Pending } from '../../shared/contracts/identity/changes.ts'
import {
  CurrentUser,
  Enrol,
  Enrolment,
  ListQuery,
  NewUser,
  Reason,
  SessionsEnded,
  UserDetail,
  UserList,
  UserMoved,
  UserParams,
} from '../../shared/contracts/identity/users.ts'
import { hmacSha256 } from '../../shared/data/digest.ts'
import { createPages } from '../../shared/http/pages.ts'
import { CommandHeaders, markReplayed, routes } from '../../shared/http/routes.ts'
import { addressKey } from '../../shared/web/addresses.ts'
import type { ChangeDeps, ReadDeps } from '../deps.ts'
import { detailOf, detailsOf, findUser } from './change.ts'
import { createEnrolment, createUser, enableUser, endUser } from './commands.ts'
import { enrol } from './enrol.ts'

/** People: the caller, and all. */
export const usersRoutes = routes<ReadDeps>('users', (app, { deps }) => {
  const pages = createPages(deps.keys.page)

  app.get('/v1/users/me', {
    operationId: 'getCurrentUser',
    summary: 'Read the current user',
    description: 'Returns the caller with roles, groups and grants.',
    response: { 200: CurrentUser },
    preHandler: allow('self', { kind: 'R', machines: true }),
    handler: async (req) => {
      const { user_id, session_id, mode, auth_time } = req.caller
      return {
        ...(await detailOf(deps.db, await findUser(deps.db, user_id))),
        session: { id: session_id, mode, auth_time },
      }
    },
  })

  app.get('/v1/admin/users', {
    operationId: 'listUsers',
    summary: 'List users',
    description: 'Users by name.',
    querystring: ListQuery,
    response: { 200: UserList },
    preHandler: allow('identity:read', { kind: 'R' }),
    handler: async (req) => {
      const { page_size, page_token, status, q } = req.query
      const list = { route: 'users', status, q }
      const [username, id] = pages.after(page_token, list) ?? []
      const rows = await listUsers(deps.db, {
        limit: page_size + 1,
        ...(status && { status }),
        ...(q && { q }),
        ...(username && id && { after: { username, id } }),
      })
      const { items, next_page_token } = pages.cut(rows, page_size, list, (row) => [row.username, row.id])
      return { items: await detailsOf(deps.db, items), next_page_token, as_of: deps.clock.now().toISOString() }
    },
  })

  app.get('/v1/admin/users/:user_id', {
    operationId: 'getUser',
    summary: 'Read a user',
    description: 'Returns one user with all current roles, groups and grants.',
    'x-reply-headers': ['etag'],
    params: UserParams,
    response: { 200: UserDetail },
    preHandler: allow('identity:read', { kind: 'R' }),
    handler: async (req, reply) => {
      const user = await findUser(deps.db, req.params.user_id)
      reply.header('etag', `"${user.version}"`)
      return detailOf(deps.db, user)
    },
  })
})

/** The first or a new password, by a one-time link. */
export const enrolRoutes = routes<ChangeDeps>('users', (app, { deps }) => {
  app.post('/v1/users/enrol', {
    operationId: 'enrolUser',
    summary: 'Set a password by an enrolment token',
    description: 'Sets the first password, or a new one, by a one-time enrolment token.',
    headers: CommandHeaders,
    body: Enrol,
    response: { 204: Type.Null() },
    preHandler: allow('none', { kind: 'W' }),
    handler: async (req, reply) => {
      const address = String(req.headers['x-forwarded-for'] ?? req.ip)
      const queue_key = hmacSha256(deps.keys.fingerprint[0], addressKey(address)).toString('base64url').slice(0, 22)
      const replayed = await enrol(deps, req.body, {
        request_id: String(req.id),
        queue_key,
        key: req.headers['idempotency-key'],
        route: `POST ${req.routeOptions.url}`,
      })
      markReplayed(reply, { replayed })
      return reply.code(204).send(null)
    },
  })
})

const send = (
  reply: FastifyReply,
  { replayed, status, body }: { replayed: boolean; status: number; body: unknown },
) => {
  markReplayed(reply, { replayed })
  return reply.code(status).send(body) as never
}

const LINKS = [
  {
    path: 'enrolment-token',
    kind: 'user.reset',
    operationId: 'createEnrolmentToken',
    summary: 'Create an enrolment token',
    description: 'Creates a one-time link to set a password; 202 if another administrator must confirm it.',
    response: { 201: Type.Object({ enrolment: Enrolment }), 202: Pending },
  },
  {
    path: 'recovery',
    kind: 'user.recover',
    operationId: 'recoverUser',
    summary: 'Recover a user who lost every passkey',
    description:
      'Ends passkeys, app, identities at providers, sessions and password, and gives a one-time link. An account of a provider loses passkeys, app and sessions, and gets no link (200). 202 if another administrator must confirm it.',
    response: {
      200: Type.Object({ user: UserDetail, sessions: SessionsEnded }),
      201: Type.Object({ enrolment: Enrolment, sessions: SessionsEnded }),
      202: Pending,
    },
  },
] as const

export const newUsersRoutes = routes<ChangeDeps>('users', (app, { deps }) => {
  app.post('/v1/admin/users', {
    operationId: 'createUser',
    summary: 'Create a user',
    description: 'Creates a user and a link to set the first password; 202 if another administrator must confirm it.',
    headers: CommandHeaders,
    body: NewUser,
    response: { 201: Type.Object({ user: UserDetail, enrolment: Enrolment }), 202: Pending },
    preHandler: allow('identity:admin', { kind: 'A' }),
    handler: async (req, reply) => send(reply, await createUser(deps, req, req.body)),
  })

  for (const { path, kind, ...about } of LINKS)
    app.post(`/v1/admin/users/:user_id/${path}`, {
      ...about,
      params: UserParams,
      headers: CommandHeaders,
      preHandler: allow('identity:admin', { kind: 'A' }),
      handler: async (req, reply) => send(reply, await createEnrolment(deps, req, req.params.user_id, kind)),
    })
})

const MOVES = [
  {
    verb: 'disable',
    operationId: 'disableUser',
    summary: 'Disable a user',
    kind: 'S',
    description: 'Disables a user and ends all sessions.',
    response: { 200: UserMoved, 202: UserMoved },
    move: (deps: ChangeDeps, req: FastifyRequest, user_id: string, reason: string) =>
      endUser(deps, req, user_id, 'DISABLED', reason),
  },
  {
    verb: 'delete',
    operationId: 'deleteUser',
    summary: 'Delete a user',
    kind: 'S',
    description: 'Deletes a user for good and ends all sessions; the name is never used again.',
    response: { 200: UserMoved, 202: UserMoved },
    move: (deps: ChangeDeps, req: FastifyRequest, user_id: string, reason: string) =>
      endUser(deps, req, user_id, 'DELETED', reason),
  },
  {
    verb: 'enable',
    operationId: 'enableUser',
    summary: 'Enable a user',
    kind: 'A',
    description:
      'Enables a disabled user; revives no session. 202 with a change if another administrator must confirm it.',
    response: { 200: UserMoved, 202: Type.Union([UserMoved, Pending]) },
    move: enableUser,
  },
] as const

export const movesRoutes = routes<ChangeDeps>('users', (app, { deps }) => {
  for (const { verb, kind, response, move, ...about } of MOVES) {
    app.post(`/v1/admin/users/:user_id/${verb}`, {
      ...about,
      params: UserParams,
      headers: CommandHeaders,
      body: Reason,
      response,
      preHandler: allow('identity:admin', { kind }),
      handler: async (req, reply) => send(reply, await move(deps, req, req.params.user_id, req.body.reason)),
    })
  }
})
