import { timestampDate } from '@bufbuild/protobuf/wkt'
import type { FastifyRequest } from 'fastify'
import Type from 'typebox'
import { allow } from '../../shared/auth/http.ts'
import type { Totp } from '../../shared/contracts/gen/auth_pb.ts'
import { TotpBody, TotpSetup, TotpView } from '../../shared/contracts/session/totp.ts'
import { AppError } from '../../shared/errors.ts'
import { CommandHeaders, type Router, routes, sendStored } from '../../shared/http/routes.ts'
import { throwFromRpc, withRequestId } from '../../shared/rpc/client.ts'
import { byPerson, clientOf } from '../browser/client.ts'
import type { SessionDeps } from '../deps.ts'
import { answerOnce, commandOf, removeOnce } from '../sessions/commands.ts'
import { liftLimits, refuseStale } from '../token/password.ts'
import { refuseHalfProved } from '../token/second-factor.ts'
import { BY_CODE, totpInvalid } from '../token/totp.ts'

/** The caller's authenticator app. Its secret is shown once and stored only in credential (federation.md 8). */
export const totpRoutes = routes<SessionDeps>('passkeys', (app, { deps }) => {
  app.get('/v1/users/me/totp', {
    preHandler: allow('self', { kind: 'R', enrols: true }),
    operationId: 'getTotp',
    summary: 'Read whether you have an authenticator app',
    description: 'Returns whether the caller has an authenticator app, since when, and when it was last used.',
    response: { 200: TotpView },
    handler: async (req) => viewOf(await appOf(deps, req)),
  })

  app.post('/v1/users/me/totp/setup', {
    preHandler: allow('self', { kind: 'R', enrols: true }),
    operationId: 'beginTotp',
    summary: 'Begin to set up an authenticator app',
    'x-errors': [403],
    description:
      'Makes a new secret for the caller, who must have signed in within the last 5 minutes. No app is set up until its first code is sent.',
    response: { 200: TotpSetup },
    handler: async (req) => {
      refuseStale(deps, req.caller)
      await refuseHalfProved(deps, req)
      const { user_id, username } = req.caller
      const issuer = `Signalbox ${new URL(deps.config.GATEWAY__HTTP__PUBLIC_ORIGIN).host.replaceAll(':', ' ')}`
      const begun = deps.credential.beginTotp({ userId: user_id, username, issuer }, withRequestId(String(req.id)))
      const { secret, uri, setup, expiresAt } = await begun.catch(throwFromRpc('credential'))
      return { secret, uri, setup, expires_at: timeOf(expiresAt) ?? '' }
    },
  })
  changeRoutes(app, deps)
})

const appOf = async (deps: SessionDeps, req: FastifyRequest) => {
  const found = deps.credential.getTotp({ userId: req.caller.user_id }, withRequestId(String(req.id)))
  return (await found.catch(throwFromRpc('credential'))).totp
}

const changeRoutes = (app: Router, deps: SessionDeps) => {
  app.put('/v1/users/me/totp', {
    preHandler: allow('self', { kind: 'W', enrols: true }),
    operationId: 'setTotp',
    summary: 'Set up an authenticator app',
    'x-errors': [403, 409],
    description:
      'Sets up the app that shows this first code, in place of any earlier one. The caller must have signed in within the last 5 minutes.',
    headers: CommandHeaders,
    body: TotpBody,
    response: { 200: TotpView },
    handler: async (req, reply) => {
      refuseStale(deps, req.caller)
      const request = { userId: req.caller.user_id, ...req.body }
      const set = async () => {
        await refuseHalfProved(deps, req)
        const { totp, refused } = await deps.credential
          .setTotp(request, withRequestId(String(req.id)))
          .catch(throwFromRpc('credential'))
        if (!totp) throw refused === 'totp_invalid' ? totpInvalid() : setupExpired()
        await liftLimits(deps, req, BY_CODE)
        await note(deps, req, 'set_totp')
        return { status: 200, body: viewOf(totp) }
      }
      return answerOnce(deps, req, reply, set, { needs_row: true })
    },
  })

  app.delete('/v1/users/me/totp', {
    preHandler: allow('self', { kind: 'W' }),
    operationId: 'removeTotp',
    summary: 'Remove your authenticator app',
    'x-errors': [403, 404],
    description: 'Removes the authenticator app of the caller, who must have signed in within the last 5 minutes.',
    headers: CommandHeaders,
    response: { 204: Type.Null() },
    handler: async (req, reply) => {
      refuseStale(deps, req.caller)
      const request = { userId: req.caller.user_id }
      const remove = async (repeated: boolean) => {
        await refuseHalfProved(deps, req)
        const { removed } = await deps.credential
          .removeTotp(request, withRequestId(String(req.id)))
          .catch(throwFromRpc('credential'))
        if (removed || repeated) await note(deps, req, 'remove_totp', removed ? undefined : 'repeated')
        return removed
      }
      const there = async () => (await appOf(deps, req)) !== undefined
      const missing = () =>
        new AppError('not_found', 'not_found', 'You have no authenticator app.', { hint: 'Set one up first.' })
      return sendStored(reply, await removeOnce(deps, commandOf(req), { there, remove, missing }, { needs_row: true }))
    },
  })
}

/** `repeated`: an earlier request may have removed the app, or been refused before another one did. */
const note = (deps: SessionDeps, req: FastifyRequest, action: 'set_totp' | 'remove_totp', reason?: 'repeated') => {
  const who = byPerson({ caller: req.caller, client: clientOf(req), request_id: String(req.id) })
  return deps.audit({ action, outcome: 'done', ...(reason && { reason }), ...who })
}

const setupExpired = () =>
  new AppError('version_conflict', 'challenge_expired', 'The set-up of the app has expired.', {
    hint: 'Begin again: the app gets a new code to scan.',
  })

const timeOf = (at: Totp['createdAt']): string | null => (at ? timestampDate(at).toISOString() : null)

const viewOf = (totp: Totp | undefined): TotpView => ({
  active: totp !== undefined,
  created_at: timeOf(totp?.createdAt),
  last_used_at: timeOf(totp?.lastUsedAt),
})
