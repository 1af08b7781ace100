import type { FastifyRequest } from 'fastify'
import Type from 'typebox'
import { refuseStaleAuth } from '../../shared/auth/caller.ts'
import { allow } from '../../shared/auth/http.ts'
import { SessionList } from '../../shared/contracts/session/sessions.ts'
import { text } from '../../shared/contracts/shapes.ts'
import { CommandHeaders, routes, sendStored } from '../../shared/http/routes.ts'
import type { SessionDeps } from '../deps.ts'
import { commandOf, runOnce } from './commands.ts'
import { endOwnSession, endUserSessions, isOver, viewOf } from './end.ts'

const SessionParams = Type.Object({ session_id: text('0195f0c2-0000-7000-8000-000000000009', { maxLength: 64 }) })
const Revoked = Type.Object({ revoked: Type.Integer() })

export const byUser = (req: FastifyRequest) =>
  ({ actor_type: 'user', actor_id: req.caller.user_id, request_id: String(req.id) }) as const

/** All sessions of a user that last fit on one page: there are at most SESSION__CAP__PER_USER. */
export const listOf = async (deps: SessionDeps, user_id: string, current?: string) => ({
  items: (await deps.store.list(user_id)).flatMap((one) => (isOver(deps, one) ? [] : [viewOf(one, current)])),
  next_page_token: null,
  as_of: deps.clock.now().toISOString(),
})

/** A person must have signed in recently to end their other sessions (ASVS 7.5.2). An administrator may at any time. */
const refuseUnconfirmed = ({ clock, config }: SessionDeps, { caller }: FastifyRequest): void => {
  const stale = refuseStaleAuth(caller, config.AUTH__REAUTH__MAX_AGE_S, clock.now())
  if (stale) throw stale
}

/** The caller's own sessions. */
export const sessionsRoutes = routes<SessionDeps>('sessions', (app, { deps }) => {
  app.get('/v1/sessions', {
    preHandler: allow('self', { kind: 'R' }),
    operationId: 'listSessions',
    summary: 'List your sessions',
    description: 'The sessions of the caller, newest first.',
    response: { 200: SessionList },
    handler: async (req) => {
      return listOf(deps, req.caller.user_id, req.caller.session_id)
    },
  })

  app.delete('/v1/sessions/:session_id', {
    preHandler: allow('self', { kind: 'S' }),
    operationId: 'revokeSession',
    summary: 'End one of your sessions',
    'x-errors': [403],
    description:
      'Ends one of the caller’s sessions; ending the current one signs out. Ending another one takes a recent sign-in.',
    params: SessionParams,
    headers: CommandHeaders,
    response: { 204: Type.Null() },
    handler: async (req, reply) => {
      const { user_id, session_id, mode } = req.caller
      const answer = await runOnce(deps, commandOf(req), async () => {
        if (req.params.session_id !== session_id) refuseUnconfirmed(deps, req)
        await endOwnSession(deps, { user_id, session_id: req.params.session_id }, 'logout', byUser(req))
        return { status: 204, body: undefined }
      })
      if (req.params.session_id === session_id && mode === 'cookie') reply.header('set-cookie', deps.cookies.expired())
      return sendStored(reply, answer)
    },
  })

  app.post('/v1/sessions/revoke-others', {
    preHandler: allow('self', { kind: 'S' }),
    operationId: 'revokeOtherSessions',
    summary: 'End your other sessions',
    'x-errors': [403],
    description: 'Ends all other sessions of the caller, who must have signed in recently.',
    headers: CommandHeaders,
    response: { 200: Revoked },
    handler: async (req, reply) => {
      const { user_id, session_id } = req.caller
      const answer = await runOnce(deps, commandOf(req), async () => {
        refuseUnconfirmed(deps, req)
        const revoked = await endUserSessions(deps, { user_id, keep_session_id: session_id }, 'logout', byUser(req))
        return { status: 200, body: { revoked } }
      })
      return sendStored(reply, answer)
    },
  })
})
