import { clockTime } from '../kit/format.ts'
import { display } from '../kit/prefs.ts'
import type { SignIn } from '../session/token.ts'
import { t } from '../words/index.ts'

/** The one sentence for a sign-in that did not succeed: the same for every cause that a guesser could use. */
export const signInError = (result: Extract<SignIn, { ok: false }>): string => {
  if (result.status === null) return t.login.no_answer
  if (result.status === 429) return t.login.later(clockTime(Date.now() + result.retry_after_ms, display().zone, true))
  return result.status >= 500 ? t.login.failed : t.login.wrong
}
