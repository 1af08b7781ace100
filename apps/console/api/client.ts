import createClient from 'openapi-fetch'
import { type Problem, problemFrom } from '../../shared/contracts/client/problem.ts'
import { accessToken, csrfToken, renew, sessionPhase } from '../session/token.ts'
import type { paths } from './paths.ts'

/** A refusal or an outage, with what the server said about it. Status 0: no answer came. */
export class ProblemError extends Error {
  readonly problem: Problem

  constructor(problem: Problem) {
    super(problem.detail)
    this.name = 'ProblemError'
    this.problem = problem
  }
}

const ANSWER_LIMIT_MS = 12_000
const SESSION_OVER = problemFrom(401, {
  title: 'The session is over',
  detail: 'Sign in again; what is on the page stays.',
  category: 'invalid_token',
  code: 'invalid_token',
})
const UNSAFE = new Set(['POST', 'PUT', 'PATCH', 'DELETE'])

/**
 * Sends a request with the session. A 401 takes another token and repeats once, with the same Idempotency-Key; the
 * session dialog opens when there is none to take.
 */
export const withSession = async (request: Request, limit_ms = ANSWER_LIMIT_MS): Promise<Response> => {
  if (sessionPhase().name === 'ended') throw new ProblemError(SESSION_OVER)
  const again = request.clone()
  const used = accessToken()
  const answer = await send(request, used, limit_ms)
  if (answer.status !== 401) return answer
  if ((await renew(used)) !== 'ok') return answer
  return send(again, accessToken(), limit_ms)
}

/** Typed reads of the public API; the browser puts /api in front. */
export const api = createClient<paths>({ baseUrl: '/api', fetch: (request) => withSession(request) })

/** The body of a read, or a ProblemError. */
export const read = async <T>(
  pending: Promise<{ data?: T; error?: unknown; response: Response }>,
): Promise<NonNullable<T>> => {
  const { data, error, response } = await pending
  if (data !== undefined && data !== null && response.ok) return data
  throw new ProblemError(problemFrom(response.status, error, response.headers.get('retry-after')))
}

/** A problem for whatever was thrown: the server's own, or that no answer came. */
export const problemOf = (thrown: unknown): Problem =>
  thrown instanceof ProblemError
    ? thrown.problem
    : problemFrom(0, { title: 'No answer', detail: String(thrown), category: 'unavailable', code: 'no_answer' })

async function send(request: Request, token: string | null, limit_ms: number): Promise<Response> {
  if (token !== null) request.headers.set('authorization', `Bearer ${token}`)
  const csrf = csrfToken()
  if (UNSAFE.has(request.method) && csrf !== null) request.headers.set('x-csrf-token', csrf)
  const limits = [AbortSignal.timeout(limit_ms), request.signal]
  try {
    return await fetch(request, { credentials: 'include', signal: AbortSignal.any(limits) })
  } catch (thrown) {
    if (request.signal.aborted) throw thrown
    throw new ProblemError(
      problemFrom(0, {
        title: 'No answer',
        detail: 'The server did not answer. Check the network.',
        category: 'unavailable',
        code: 'no_answer',
        retryable: true,
      }),
    )
  }
}
