import { clockTime } from '../api/format.ts'
import { display } from '../api/prefs.ts'
import type { SignIn } from '../api/token.ts'
import { t } from '../i18n/index.ts'

/** The one sentence for a sign-in that did not succeed: the same for every cause that a guesser could use. */
export const signInError = (result: Extract<SignIn, { ok: false }>): string => {
  if (result.status === null) return t.login.no_answer
  if (result.status === 429) return t.login.later(clockTime(Date.now() + result.retry_after_ms, display().zone, true))
  return result.status >= 500 ? t.login.failed : t.login.wrong
}
