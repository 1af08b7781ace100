import { type Problem, problemFrom } from '../../shared/contracts/client/problem.ts'
import { post } from '../session/cookie.ts'
import { accessToken, locked, renew, take } from '../session/token.ts'

/**
 * Changes the password and takes the tokens that come with the new one. It holds the refresh lock: another tab that
 * refreshed meanwhile would present a token that the change has just replaced. The key belongs to these two passwords.
 * Returns the refusal, or null.
 */
export const changePassword = async (current: string, next: string, key: string): Promise<Problem | null> => {
  const used = accessToken()
  const first = await send(current, next, key)
  const answer = first?.status === 401 && (await renew(used)) === 'ok' ? await send(current, next, key) : first
  return refusalOf(answer)
}

/** The refusal in an answer, or in its absence; null if there is none. */
export const refusalOf = async (answer: Response | null): Promise<Problem | null> => {
  if (answer === null) return problemFrom(0, null)
  if (answer.ok) return null
  return problemFrom(answer.status, await answer.json().catch(() => null), answer.headers.get('retry-after'))
}

/** Sets a password with the token of a one-time link. Returns the refusal, or null. */
export const enrol = async (enrolment_token: string, new_password: string, key: string): Promise<Problem | null> =>
  refusalOf(await post('/api/v1/users/enrol', { enrolment_token, new_password }, { key }))

/** The messages below a refused new password: every rule that it breaks, otherwise the reason of the refusal. */
export const newPasswordErrors = (problem: Problem | null): string[] => {
  if (problem === null) return []
  const broken = (problem.violations ?? []).map(({ message }) => message)
  return broken.length > 0 ? [...new Set(broken)] : [[problem.detail, problem.hint].filter(Boolean).join(' ')]
}

const send = (current_password: string, new_password: string, key: string): Promise<Response | null> =>
  locked(async () => {
    const answer = await post(
      '/api/v1/users/me/password',
      { current_password, new_password },
      { token: accessToken(), key },
    )
    if (answer?.ok) {
      const body = await answer.clone().json()
      // A late repeat confirms the change without tokens; keep the current ones.
      if (body.access_token !== undefined) take(body)
    }
    return answer
  })
