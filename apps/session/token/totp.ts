import { AppError } from '../../shared/errors.ts'
import { fromRpc, withRequestId } from '../../shared/rpc/client.ts'
import type { Client } from '../browser/client.ts'
import type { SessionDeps } from '../deps.ts'
import { chargePassword, freshAccess, type PasswordRequest } from './password.ts'

type Context = { client: Client; request_id: string }
/** The methods that an authenticator app's code adds. */
export const BY_CODE = ['otp' as const, 'mfa' as const]

/** Throws the problem of a failed call to credential. */
export const orCredentialProblem = <T>(call: Promise<T>): Promise<T> =>
  call.catch((error: unknown) => {
    throw fromRpc('credential', error)
  })

/**
 * Proves a code of this person's authenticator app, which counts once. Refusals of `action` are audited with their
 * cause. The person is notified if wrong codes block the app for an hour; passkeys keep working.
 */
export const proveCode = async (
  deps: SessionDeps,
  code: string,
  { request_id, client }: Context,
  action: 'login' | 'reauth',
  user_id: string,
): Promise<void> => {
  const answer = await orCredentialProblem(
    deps.credential.verifyTotp({ userId: user_id, code }, withRequestId(request_id)),
  )
  if (answer.isValid) return
  const locked_ms = Number(answer.lockedMs)
  const { ip_address, user_agent } = client
  const who = { actor: 'system', user_id, request_id, ip_address, user_agent }
  const reason = locked_ms > 0 ? 'totp_locked' : 'totp_invalid'
  if (action === 'login') deps.counts.login_failures.inc({ cause: 'totp' })
  await deps.audit({ action, outcome: 'denied', reason, ...who, details: { cause: answer.cause } })
  if (answer.lockedNow) await deps.audit({ action: 'totp_locked', outcome: 'done', ...who })
  if (locked_ms === 0) throw totpInvalid()
  throw new AppError('rate_limited', 'totp_locked', 'Too many codes were wrong.', {
    retryable: true,
    retry_after_ms: locked_ms,
  })
}

export const totpInvalid = () => new AppError('policy_denied', 'totp_invalid', 'The code is wrong or was already used.')

/** Proves the caller by a code: a new access token with a fresh auth_time. */
export const reauthenticateByCode = async (deps: SessionDeps, request: PasswordRequest, code: string) => {
  await chargePassword(deps, request)
  await proveCode(deps, code, request, 'reauth', request.caller.user_id)
  return freshAccess(deps, request, BY_CODE)
}
