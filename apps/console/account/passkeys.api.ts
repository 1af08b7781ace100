import { type Problem, problemFrom } from '../../shared/contracts/client/problem.ts'
import { problemOf, withSession } from '../api/client.ts'

/** Adds or removes a passkey of one's own. Returns the refusal, or null. */
export const sendPasskey = async (method: 'POST' | 'DELETE', path: string, body?: unknown): Promise<Problem | null> => {
  try {
    const headers = { 'idempotency-key': crypto.randomUUID(), ...(body ? { 'content-type': 'application/json' } : {}) }
    const request = new Request(`/api/v1/users/me/passkeys${path}`, {
      method,
      headers,
      ...(body ? { body: JSON.stringify(body) } : {}),
    })
    const answer = await withSession(request)
    if (answer.ok) return null
    return problemFrom(answer.status, await answer.json().catch(() => null), answer.headers.get('retry-after'))
  } catch (thrown) {
    return problemOf(thrown)
  }
}
