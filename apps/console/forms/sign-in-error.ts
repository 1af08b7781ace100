import { clockTime, type Zone } from '../kit/format.ts'
import type { SignIn } from '../session/sign-in.ts'
import { tLogin } from '../words/frame/login.ts'

/** Why a sign-in failed and when to try again. All causes that would help someone guess share one text. */
export const signInError = (
  { status, code, retry_after_ms }: Extract<SignIn, { ok: false }>,
  zone: Zone,
  now = Date.now(),
): string => {
  if (status === null) return tLogin.no_answer
  const at = clockTime(now + retry_after_ms, zone, true)
  if (code === 'login_busy') return tLogin.busy(at)
  if (code === 'login_locked' && retry_after_ms === 0) return tLogin.locked
  if (status === 429) return tLogin.later(at)
  if (code === 'assertion_invalid') return tLogin.passkey_refused
  if (code === 'provider_required') return tLogin.provider_required
  if (code === 'local_login_closed') return tLogin.closed
  if (code === 'challenge_expired') return tLogin.expired
  if (code === 'totp_invalid') return tLogin.code_refused
  return status >= 500 ? tLogin.away(at) : tLogin.wrong
}
