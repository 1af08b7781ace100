import { timestampDate } from '@bufbuild/protobuf/wkt'
import Type from 'typebox'
import { allow } from '../../shared/auth/http.ts'
import type { Passkey } from '../../shared/contracts/gen/auth_pb.ts'
import { Attestation, PasskeyChallenge, PasskeyList, PasskeyView } from '../../shared/contracts/session/passkeys.ts'
import { LINE, text } from '../../shared/contracts/shapes.ts'
import { AppError, notFound } from '../../shared/errors.ts'
import { CommandHeaders, type Router, routes } from '../../shared/http/routes.ts'
import { fromRpc, throwFromRpc, withRequestId } from '../../shared/rpc/client.ts'
import type { SessionDeps } from '../deps.ts'
import { answerOnce, NO_CONTENT } from '../sessions/commands.ts'
import { assertionInvalid, methodsOf, newChallenge, spendChallenge } from '../token/passkeys.ts'
import { liftLimits, refuseStale } from '../token/password.ts'
import { refuseHalfProved } from '../token/second-factor.ts'
import { hasPassword, lastWayIn } from './ways-in.ts'

const EXAMPLE = {
  name: 'MacBook of eva',
  attestation: {
    id: 'q1w2e3r4t5z6u7i8',
    rawId: 'q1w2e3r4t5z6u7i8',
    type: 'public-key',
    response: { clientDataJSON: 'eyJ0eXBlIjoid2ViYXV0aG4uY3JlYXRl', attestationObject: 'o2NmbXRkbm9uZWdhdHRTdG10' },
    clientExtensionResults: {},
  },
}

/** The caller's passkeys, and the challenge that any passkey answers (federation.md 8). */
export const passkeyRoutes = routes<SessionDeps>('passkeys', (app, { deps }) => {
  app.post('/v1/token/passkey-options', {
    preHandler: allow('none', { kind: 'R' }),
    operationId: 'createPasskeyChallenge',
    summary: 'Get a challenge for a passkey',
    description: 'Returns a challenge that one passkey may answer once: to sign in, to confirm, or to be added.',
    response: { 200: PasskeyChallenge },
    handler: () => newChallenge(deps),
  })

  app.get('/v1/users/me/passkeys', {
    preHandler: allow('self', { kind: 'R', enrols: true }),
    operationId: 'listPasskeys',
    summary: 'List your passkeys',
    description: 'The passkeys of the caller, oldest first; at most 10.',
    response: { 200: PasskeyList },
    handler: async (req) => {
      const request = { userId: req.caller.user_id }
      const { passkeys } = await deps.identity
        .listPasskeys(request, withRequestId(String(req.id)))
        .catch(throwFromRpc('identity'))
      return { items: passkeys.map(viewOf) }
    },
  })
  changeRoutes(app, deps)
})

const changeRoutes = (app: Router, deps: SessionDeps) => {
  app.post('/v1/users/me/passkeys', {
    preHandler: allow('self', { kind: 'W', enrols: true }),
    operationId: 'addPasskey',
    summary: 'Add a passkey',
    'x-errors': [403, 409],
    description: 'Registers a passkey for the caller, who must have signed in within the last 5 minutes.',
    headers: CommandHeaders,
    body: Type.Object(
      { name: Type.String({ minLength: 1, maxLength: 64, pattern: LINE }), attestation: Attestation },
      { additionalProperties: false, examples: [EXAMPLE] },
    ),
    response: { 201: PasskeyView },
    handler: async (req, reply) => {
      refuseStale(deps, req.caller)
      const { name, attestation } = req.body
      const add = async () => {
        await refuseHalfProved(deps, req)
        const challenge = await spendChallenge(deps, attestation.response.clientDataJSON)
        const request = { userId: req.caller.user_id, name, challenge, attestation: JSON.stringify(attestation) }
        const added = await deps.identity
          .addPasskey(request, withRequestId(String(req.id)))
          .catch(async (error: unknown) => {
            // The same request is to be sent again.
            await deps.flows.ask(challenge)
            throw fromRpc('identity', error)
          })
        if (!added.passkey) throw refusalOf(added.refused)
        await liftLimits(deps, req, methodsOf(added.passkey))
        return { status: 201, body: viewOf(added.passkey) }
      }
      return answerOnce(deps, req, reply, add, { needs_row: true })
    },
  })

  app.delete('/v1/users/me/passkeys/:passkey_id', {
    preHandler: allow('self', { kind: 'W' }),
    operationId: 'removePasskey',
    summary: 'Remove a passkey',
    'x-errors': [403, 404, 409],
    description: 'Removes a passkey of the caller, who must have signed in within the last 5 minutes.',
    params: Type.Object({ passkey_id: text('0195f0c2-0000-7000-8000-000000000021', { maxLength: 64 }) }),
    headers: CommandHeaders,
    response: { 204: Type.Null() },
    handler: async (req, reply) => {
      refuseStale(deps, req.caller)
      const { user_id: userId } = req.caller
      const id = req.params.passkey_id
      return answerOnce(deps, req, reply, async () => {
        await refuseHalfProved(deps, req)
        const request = { userId, id, hasPassword: await hasPassword(deps, req.caller, String(req.id)) }
        const answer = await deps.identity
          .removePasskey(request, withRequestId(String(req.id)))
          .catch(throwFromRpc('identity'))
        if (answer.refused) throw lastWayIn()
        if (!answer.removed) throw notFound('passkey', id, 'not_found')
        return NO_CONTENT
      })
    },
  })
}

const refusalOf = (code: string) => {
  if (code === 'passkey_known')
    return new AppError('version_conflict', code, 'This passkey is already registered.', { hint: 'Use it.' })
  if (code === 'too_many_passkeys')
    return new AppError('version_conflict', code, 'You have 10 passkeys.', { hint: 'Remove one first.' })
  return assertionInvalid()
}

const viewOf = ({ id, credentialId, name, createdAt, lastUsedAt, backedUp }: Passkey): PasskeyView => ({
  id,
  credential_id: credentialId,
  name,
  created_at: createdAt ? timestampDate(createdAt).toISOString() : '',
  last_used_at: lastUsedAt ? timestampDate(lastUsedAt).toISOString() : null,
  backed_up: backedUp,
})
