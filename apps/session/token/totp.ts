import { AppError } from '../../shared/errors.ts'
import { throwFromRpc, withRequestId } from '../../shared/rpc/client.ts'
import { type Client, whereOf } from '../browser/client.ts'
import type { SessionDeps } from '../deps.ts'
import { chargePassword, freshAccess, type PasswordRequest } from './password.ts'

type Context = { client: Client; request_id: string }
/** The methods that an authenticator app's code adds. */
export const BY_CODE = ['otp' as const, 'mfa' as const]

/**
 * Proves a code of this person's authenticator app, which counts once. Refusals of `action` are audited with their
 * cause. The person is notified if wrong codes block the app for an hour; passkeys keep working.
 */
export const proveCode = async (
  deps: SessionDeps,
  code: string,
  context: Context,
  action: 'login' | 'reauth',
  user_id: string,
): Promise<void> => {
  const answer = await deps.credential
    .verifyTotp({ userId: user_id, code }, withRequestId(context.request_id))
    .catch(throwFromRpc('credential'))
  if (answer.isValid) return
  const locked_ms = Number(answer.lockedMs)
  const who = { actor: 'system', user_id, ...whereOf(context) }
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
