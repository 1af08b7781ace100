import { type Problem, problemFrom } from '../../shared/contracts/client/problem.ts'
import { problemOf, withSession } from '../api/client.ts'

/** Signs another session of the same person out. Returns the refusal, or null. */
export const endSession = (session_id: string): Promise<Problem | null> =>
  send('DELETE', `/api/v1/sessions/${session_id}`)

/** Signs out all other sessions. */
export const endOtherSessions = (): Promise<Problem | null> => send('POST', '/api/v1/sessions/revoke-others')

/** Why a change was refused; null: it was done. */
export type Refusal = Problem | null

/** Sends a change of one's own account. */
export const send = async (method: 'POST' | 'PUT' | 'DELETE', path: string, body?: unknown): Promise<Refusal> => {
  try {
    const headers = { 'idempotency-key': crypto.randomUUID(), ...(body ? { 'content-type': 'application/json' } : {}) }
    const given = body ? { body: JSON.stringify(body) } : {}
    const answer = await withSession(new Request(path, { method, headers, ...given }))
    if (answer.ok) return null
    return problemFrom(answer.status, await answer.json().catch(() => null), answer.headers.get('retry-after'))
  } catch (thrown) {
    return problemOf(thrown)
  }
}
