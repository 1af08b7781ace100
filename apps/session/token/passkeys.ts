import { randomBytes } from 'node:crypto'
import { clientDataOf } from '../../shared/auth/client-data.ts'
import { rpIdOf } from '../../shared/auth/settings.ts'
import type { Footing, Passkey } from '../../shared/contracts/gen/auth_pb.ts'
import type { Assertion } from '../../shared/contracts/session/passkeys.ts'
import { AppError } from '../../shared/errors.ts'
import { fromRpc, withRequestId } from '../../shared/rpc/client.ts'
import { type Client, whereOf } from '../browser/client.ts'
import type { SessionDeps, Uses } from '../deps.ts'
import { CHALLENGE_S, indexOf } from '../store/flows.ts'
import type { Method } from '../store/store.ts'
import { byDevice, type Login, noteLogin, openSession } from './login.ts'
import { freshAccess, type PasswordRequest } from './password.ts'

type Request = { client: Client; request_id: string; mode: 'json' | 'cookie'; device_token?: string | undefined }
type Context = Omit<Request, 'mode' | 'device_token'>

/** A challenge that one passkey may answer once: to sign in, to confirm, or to be registered. */
export const newChallenge = async (deps: SessionDeps) => {
  const challenge = randomBytes(32).toString('base64url')
  await deps.flows.ask(challenge)
  return { challenge, rp_id: rpIdOf(deps.config), expires_in: CHALLENGE_S }
}

/** Spends the challenge in the browser's client data; it counts once, even if the rest is invalid. */
export const spendChallenge = async (deps: SessionDeps, client_data: string): Promise<string> => {
  const challenge = clientDataOf(client_data)?.challenge
  if (typeof challenge === 'string' && (await deps.flows.answer(challenge))) return challenge
  throw new AppError('version_conflict', 'challenge_expired', 'The request for a passkey has expired or was used.')
}

/** The person who signed with a passkey, and the methods that it proves; audits the refusals of `action`. */
export const provePasskey = async (
  deps: SessionDeps,
  assertion: Assertion,
  context: Context,
  action: 'login' | 'reauth',
  user_id = '',
) => {
  const { request_id } = context
  const refuse = async (cause: string, error = assertionInvalid()) => {
    if (action === 'login') deps.counts.login_failures.inc({ cause: 'passkey' })
    const who = { actor: 'system', user_id: user_id || undefined, ...whereOf(context) }
    await deps.audit({ action, outcome: 'denied', reason: error.code, ...who, details: { cause } })
    return error
  }
  const challenge = await spendChallenge(deps, assertion.response.clientDataJSON).catch(async (error: AppError) => {
    if (error.code === 'challenge_expired') await refuse(error.code)
    throw error
  })
  const request = { userId: user_id, challenge, assertion: JSON.stringify(assertion) }
  const answer = await deps.identity.verifyAssertion(request, withRequestId(request_id)).catch(async (error) => {
    // No one has judged the answer: the same one may come again.
    await deps.flows.ask(challenge)
    throw fromRpc('identity', error)
  })
  const { user, passkey, footing } = answer
  if (!user || !passkey)
    throw await refuse(answer.cause, footing ? providerRequired(deps, footing.providerId) : assertionInvalid())
  return { user, passkey, footing, amr: methodsOf(passkey) }
}

/** The passkey has verified its person, so it counts as two factors. */
export const methodsOf = ({ backedUp }: Passkey): Method[] => [backedUp ? 'swk' : 'hwk', 'mfa']

export const assertionInvalid = () =>
  new AppError('policy_denied', 'assertion_invalid', "The passkey's answer is refused.")

/** The provider has not said for too long that the person is still there. */
const providerRequired = ({ providers }: Uses<'providers'>, id: string) =>
  new AppError('policy_denied', 'provider_required', 'The provider of this account must sign you in again.', {
    hint: `Sign in through ${providers.get(id)?.title ?? `the provider ${id}`}, or ask an administrator to unlink it.`,
  })

/** Signs in by a passkey alone, which identifies its person: no password, no lockout of a name. */
export const signInByPasskey = async (deps: SessionDeps, assertion: Assertion, request: Request): Promise<Login> => {
  const { client, request_id, mode } = request
  const { user, passkey, amr, footing } = await provePasskey(deps, assertion, request, 'login')
  // identity may not have read the file yet.
  if (footing && !deps.providers.get(footing.providerId)) throw providerRequired(deps, footing.providerId)
  const metadata = JSON.stringify({ passkey: passkey.id })
  const owner = {
    user_id: user.id,
    username: user.username,
    mode,
    metadata,
    amr,
    ...(footing && boundBy(deps, footing)),
  }
  const opened = await openSession(deps, owner, client, request_id)
  if (!opened) throw assertionInvalid()
  const who = byDevice(deps, user.id, user.username, request.device_token)
  return noteLogin(deps, opened, who, request, { passkey: passkey.id })
}

/** The session ends when one through the provider would, and by the provider's logout. */
const boundBy = ({ clock }: Uses<'clock'>, { providerId: provider_id, subject, restS: max_s }: Footing) => {
  const proved_at = Math.floor(clock.now().getTime() / 1000)
  return { provider_id, max_s, proved_at, indexes: [indexOf(provider_id, 'sub', subject)] }
}

/** Proves one of the caller's passkeys again: a new access token with a fresh auth_time. */
export const reauthenticateByPasskey = async (deps: SessionDeps, request: PasswordRequest, assertion: Assertion) => {
  const { amr } = await provePasskey(deps, assertion, request, 'reauth', request.caller.user_id)
  return freshAccess(deps, request, amr)
}
