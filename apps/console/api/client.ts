import createClient from 'openapi-fetch'
import { ProblemError } from '../../client/problem.ts'
import type { paths } from '../../client/schema.d.ts'
import { withToken } from '../../client/send.ts'
import { type Problem, problemFrom } from '../../shared/contracts/client/problem.ts'
import { csrfToken } from '../session/cookie.ts'
import { accessToken, renew, sessionPhase } from '../session/token.ts'

export { ProblemError, read } from '../../client/problem.ts'

const ANSWER_LIMIT_MS = 12_000
const SESSION_OVER = problemFrom(401, {
  title: 'The session is over',
  detail: 'Sign in again; what is on the page stays.',
  category: 'invalid_token',
  code: 'invalid_token',
})
const UNSAFE = new Set(['POST', 'PUT', 'PATCH', 'DELETE'])

/**
 * Sends a request with the session's token. After a 401 it gets another token and repeats once, with the same
 * Idempotency-Key; if no token is available, the session dialog opens.
 */
export const withSession = async (request: Request, limit_ms = ANSWER_LIMIT_MS): Promise<Response> => {
  if (sessionPhase().name === 'ended') throw new ProblemError(SESSION_OVER)
  return withToken((one) => send(one, limit_ms), {
    token: accessToken,
    renew: async (refused = null) => ((await renew(refused)) === 'ok' ? accessToken() : null),
  })(request)
}

export type BelowApi = {
  [Path in keyof paths as Path extends `/api${infer Rest}` ? Rest : never]: paths[Path]
}

/** Typed reads of the public API; the base URL adds /api. */
export const api = createClient<BelowApi>({ baseUrl: '/api', fetch: (request) => withSession(request) })

/** The problem of any thrown value: the server's, or that of a missing answer. */
export const problemOf = (thrown: unknown): Problem =>
  thrown instanceof ProblemError ? thrown.problem : noAnswer(String(thrown))

const noAnswer = (detail: string, retryable = false): Problem =>
  problemFrom(0, { title: 'No answer', detail, category: 'unavailable', code: 'no_answer', retryable })

async function send(request: Request, limit_ms: number): Promise<Response> {
  const csrf = csrfToken()
  if (UNSAFE.has(request.method) && csrf !== null) request.headers.set('x-csrf-token', csrf)
  // A click begins a trace.
  const trace = crypto.randomUUID().replaceAll('-', '')
  if (UNSAFE.has(request.method)) request.headers.set('traceparent', `00-${trace}-${trace.slice(16)}-01`)
  const limits = [AbortSignal.timeout(limit_ms), request.signal]
  try {
    return await fetch(request, { credentials: 'include', signal: AbortSignal.any(limits) })
  } catch (thrown) {
    if (request.signal.aborted) throw thrown
    throw new ProblemError(noAnswer('The server did not answer. Check the network.', true))
  }
}
