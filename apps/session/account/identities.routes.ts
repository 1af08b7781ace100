import { timestampDate } from '@bufbuild/protobuf/wkt'
import type { FastifyReply, FastifyRequest } from 'fastify'
import Type from 'typebox'
import { allow } from '../../shared/auth/http.ts'
import { ExternalIdentityList, ProviderParams } from '../../shared/contracts/session/sso.ts'
import { text } from '../../shared/contracts/shapes.ts'
import { notFound } from '../../shared/errors.ts'
import { CommandHeaders, type Router, routes, sendStored } from '../../shared/http/routes.ts'
import { throwFromRpc, withRequestId } from '../../shared/rpc/client.ts'
import type { SessionDeps } from '../deps.ts'
import { findUser } from '../sessions/admin.routes.ts'
import { commandOf, removeOnce } from '../sessions/commands.ts'
import { endUserSessions } from '../sessions/end.ts'
import { byUser } from '../sessions/routes.ts'
import { refuseStale } from '../token/password.ts'
import { hasPassword, lastWayIn } from './ways-in.ts'

const UserParams = Type.Object({ user_id: text('0195f0c2-0000-7000-8000-000000000003', { maxLength: 64 }) })

/** People's identities at providers. They are here and not in identity because unlinking ends sessions. */
export const identitiesRoutes = routes<SessionDeps>('sso', (app, { deps }) => {
  app.get('/v1/users/me/identities', {
    preHandler: allow('self', { kind: 'R' }),
    operationId: 'listIdentities',
    summary: 'List your identities at providers',
    description: 'Lists the provider identities by which the caller may sign in.',
    response: { 200: ExternalIdentityList },
    handler: (req) => listOf(deps, req, req.caller.user_id),
  })

  app.delete('/v1/users/me/identities/:provider', {
    preHandler: allow('self', { kind: 'W' }),
    operationId: 'unlinkIdentity',
    summary: 'Unlink your identity at a provider',
    'x-errors': [403, 404, 409],
    description:
      'Unlinks an identity and ends all other sessions. It takes a sign-in within the last 5 minutes, and a password or another provider.',
    params: ProviderParams,
    headers: CommandHeaders,
    response: { 204: Type.Null() },
    handler: async (req, reply) => {
      refuseStale(deps, req.caller)
      const { user_id, session_id } = req.caller
      return unlink(deps, req, reply, { user_id, keep_session_id: session_id }, req.params.provider)
    },
  })
  adminRoutes(app, deps)
})

const adminRoutes = (app: Router, deps: SessionDeps) => {
  app.get('/v1/admin/users/:user_id/identities', {
    preHandler: allow('identity:read', { kind: 'R' }),
    operationId: 'listUserIdentities',
    summary: 'List the identities of a user',
    tags: ['administration'],
    description: 'Lists the provider identities by which a user may sign in.',
    params: UserParams,
    response: { 200: ExternalIdentityList },
    handler: async (req) => {
      await findUser(deps, req.params.user_id, String(req.id))
      return listOf(deps, req, req.params.user_id)
    },
  })

  app.delete('/v1/admin/users/:user_id/identities/:provider', {
    preHandler: allow('identity:admin', { kind: 'S' }),
    operationId: 'unlinkUserIdentity',
    summary: 'Unlink an identity of a user',
    tags: ['administration'],
    'x-errors': [404],
    description:
      "Unlinks an identity, takes the rights that it gave, and ends all sessions of the user. Of a deleted account it also frees the directory's externalId.",
    params: Type.Object({ ...UserParams.properties, ...ProviderParams.properties }),
    headers: CommandHeaders,
    response: { 204: Type.Null() },
    handler: (req, reply) => {
      const { user_id, provider } = req.params
      return unlink(deps, req, reply, { user_id }, provider)
    },
  })
}

const listOf = async (deps: SessionDeps, req: FastifyRequest, user_id: string): Promise<ExternalIdentityList> => {
  const trace = withRequestId(String(req.id))
  const { identities } = await deps.identity.listExternal({ userId: user_id }, trace).catch(throwFromRpc('identity'))
  return {
    items: identities.map(({ providerId: provider, subject, createdAt }) => ({
      ...{ provider, subject },
      linked_at: createdAt ? timestampDate(createdAt).toISOString() : '',
    })),
  }
}

/** Sessions end after the identity is removed: a sign-in that found it earlier checks again before it gets tokens. */
const unlink = async (
  deps: SessionDeps,
  req: FastifyRequest,
  reply: FastifyReply,
  kept: { user_id: string; keep_session_id?: string },
  provider: string,
) => {
  const remove = async (repeated: boolean) => {
    const { user_id: userId } = kept
    const by = req.caller.user_id
    const has = by === userId && (await hasPassword(deps, req.caller, String(req.id)))
    const keepSessionId = kept.keep_session_id ?? ''
    const request = { userId, providerId: provider, by, hasPassword: has, keepSessionId }
    const trace = withRequestId(String(req.id))
    const { removed, refused } = await deps.identity.unlinkExternal(request, trace).catch(throwFromRpc('identity'))
    if (refused) throw lastWayIn()
    // The request that removed it may have died before the sessions ended.
    if (removed || repeated) await endUserSessions(deps, kept, kept.keep_session_id ? 'logout' : 'admin', byUser(req))
    return removed
  }
  const there = async () => (await listOf(deps, req, kept.user_id)).items.some((one) => one.provider === provider)
  const missing = () => notFound('identity', provider, 'not_found')
  return sendStored(reply, await removeOnce(deps, commandOf(req), { there, remove, missing }, { needs_row: true }))
}
