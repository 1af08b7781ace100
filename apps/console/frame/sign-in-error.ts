import { clockTime, type Zone } from '../kit/format.ts'
import type { SignIn } from '../session/token.ts'
import { t } from '../words/index.ts'

/** Why a sign-in failed and when to try again: one text for all causes that a guesser could use. */
export const signInError = (
  { status, code, retry_after_ms }: Extract<SignIn, { ok: false }>,
  zone: Zone,
  now = Date.now(),
): string => {
  if (status === null) return t.login.no_answer
  const at = clockTime(now + retry_after_ms, zone, true)
  if (code === 'login_busy') return t.login.busy(at)
  if (status === 429) return t.login.later(at)
  if (code === 'assertion_invalid') return t.login.passkey_refused
  if (code === 'challenge_expired') return t.login.expired
  if (code === 'totp_invalid') return t.login.code_refused
  return status >= 500 ? t.login.away(at) : t.login.wrong
}
