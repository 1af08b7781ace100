import Type from 'typebox'
import { type Caller, refuseStaleAuth } from '../../shared/auth/caller.ts'
import { allow } from '../../shared/auth/http.ts'
import { foldUsername } from '../../shared/auth/username.ts'
import { SessionList } from '../../shared/contracts/session/sessions.ts'
import { text } from '../../shared/contracts/shapes.ts'
import { AppError, notFound } from '../../shared/errors.ts'
import { CommandHeaders, routes, sendStored } from '../../shared/http/routes.ts'
import { isUuid } from '../../shared/ids.ts'
import { throwFromRpc, withRequestId } from '../../shared/rpc/client.ts'
import type { SessionDeps } from '../deps.ts'
import { answerOnce, commandOf, NO_CONTENT, removeOnce } from './commands.ts'
import { actorOf, type By, endingOf, endUserSessions } from './end.ts'
import { byUser, listOf, SessionsQuery } from './routes.ts'

const UserParams = Type.Object({ user_id: text('0195f0c2-7c1d-7e38-9d55-2b1c8a4f7e10', { maxLength: 64 }) })
const UserSessionParams = Type.Object({
  user_id: text('0195f0c2-7c1d-7e38-9d55-2b1c8a4f7e10', { maxLength: 64 }),
  session_id: text('0195f0c2-0000-7000-8000-000000000009', { maxLength: 64 }),
})
const none = { 204: Type.Null() }

/** Administrators' actions on other people's sessions. */
export const adminRoutes = routes<SessionDeps>('administration', (app, { deps }) => {
  app.post('/v1/admin/users/:user_id/unlock', {
    preHandler: allow('session:admin', { kind: 'A' }),
    operationId: 'unlockUser',
    summary: 'Unlock a user',
    description: 'Clears the failed logins of a user.',
    params: UserParams,
    headers: CommandHeaders,
    response: none,
    handler: async (req, reply) => {
      const { user_id } = req.params
      const refusal =
        refuseUnlock(req.caller, user_id) ??
        refuseStaleAuth(req.caller, deps.config.AUTH__REAUTH__MAX_AGE_S, deps.clock.now())
      if (refusal) throw refusal
      return answerOnce(deps, req, reply, async () => {
        await unlockUser(deps, user_id, byUser(req))
        return NO_CONTENT
      })
    },
  })

  app.get('/v1/admin/users/:user_id/sessions', {
    preHandler: allow('session:admin', { kind: 'R' }),
    operationId: 'listUserSessions',
    summary: 'List the sessions of a user',
    description: 'The sessions of a user, newest first.',
    params: UserParams,
    querystring: SessionsQuery,
    response: { 200: SessionList },
    handler: async (req) => {
      const { user_id } = req.params
      await findUser(deps, user_id, String(req.id))
      return listOf(deps, { user_id, current: req.caller.session_id }, req.query)
    },
  })

  app.delete('/v1/admin/users/:user_id/sessions', {
    preHandler: allow('session:admin', { kind: 'S' }),
    operationId: 'revokeUserSessions',
    summary: 'End all sessions of a user',
    description: 'Ends all sessions of a user.',
    params: UserParams,
    headers: CommandHeaders,
    response: none,
    handler: async (req, reply) => {
      const { user_id } = req.params
      await findUser(deps, user_id, String(req.id)).catch((error: unknown) => {
        // Sessions can be ended even while identity cannot say whether the user exists.
        if (!isUuid(user_id) || (error as AppError).status !== 503) throw error
      })
      return answerOnce(deps, req, reply, async () => {
        const ended = await endUserSessions(deps, { user_id }, 'admin', byUser(req))
        if (ended === 0) await findUser(deps, user_id, String(req.id)).catch(unlessAway)
        return NO_CONTENT
      })
    },
  })

  app.delete('/v1/admin/users/:user_id/sessions/:session_id', {
    preHandler: allow('session:admin', { kind: 'S' }),
    operationId: 'revokeUserSession',
    summary: 'End one session of a user',
    description: 'Ends one session of a user.',
    params: UserSessionParams,
    headers: CommandHeaders,
    response: none,
    handler: async (req, reply) =>
      sendStored(reply, await removeOnce(deps, commandOf(req), endingOf(deps, req.params, 'admin', byUser(req)))),
  })
})

/** No one unlocks their own account. */
const refuseUnlock = ({ user_id }: Pick<Caller, 'user_id'>, target: string): AppError | undefined =>
  user_id === target ? new AppError('policy_denied', 'self_action', 'You cannot unlock your own account.') : undefined

/** Whether the user exists is checked last, and an outage of identity must not keep sessions alive. */
const unlessAway = (error: unknown): void => {
  if (!(error instanceof AppError) || error.status !== 503) throw error
}

/** The user; 404 if there is none. */
export const findUser = async (deps: SessionDeps, user_id: string, request_id: string) => {
  const { user } = isUuid(user_id)
    ? await deps.identity.getUser({ id: user_id }, withRequestId(request_id)).catch(throwFromRpc('identity'))
    : { user: undefined }
  if (!user) throw notFound('user', user_id, 'not_found')
  return user
}

export const unlockUser = async (deps: SessionDeps, user_id: string, by: By): Promise<void> => {
  const { username } = await findUser(deps, user_id, by.request_id)
  await deps.store.unlock(deps.nameOf(foldUsername(username)))
  await deps.audit({ action: 'unlock', outcome: 'done', actor: actorOf(by), user_id, request_id: by.request_id })
}
