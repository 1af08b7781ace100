import type { Problem } from '../shared/contracts/client/problem.ts'
import { problemOf } from './problem.ts'

/** Sends one request once: a repeat sends a copy. */
export type Send = (request: Request) => Promise<Response>

const READS = new Set(['GET', 'HEAD'])

/** Gives a mutation an Idempotency-Key, which its repeats keep. */
export const withKey =
  (send: Send): Send =>
  (request) => {
    if (!READS.has(request.method) && !request.headers.has('idempotency-key'))
      request.headers.set('idempotency-key', crypto.randomUUID())
    return send(request)
  }

/** An access token, if there is one. */
export type Token = string | null | undefined
export type Tokens = {
  token: () => Token | Promise<Token>
  /** Returns a token to replace the refused one; if there is none, the 401 is the answer. */
  renew?: (refused: Token) => Promise<Token>
}

const ofTokens = new WeakSet<object>()
/** Whether `token` or `renew` threw it; a TypeError of theirs is one of the network. */
export const isOfTokens = (error: unknown): boolean =>
  typeof error === 'object' && error !== null && ofTokens.has(error)
const noting = async (asked: Token | Promise<Token>): Promise<Token> => {
  try {
    return await asked
  } catch (error) {
    if (error instanceof Error && !(error instanceof TypeError)) ofTokens.add(error)
    throw error
  }
}

/** Sends with the access token, and once more with a renewed one after a 401. */
export const withToken =
  (send: Send, { token, renew }: Tokens): Send =>
  async (request) => {
    const again = request.clone()
    const used = await noting(token())
    const answer = await send(bearing(request, used))
    if (answer.status !== 401 || !renew) return answer
    const other = await noting(renew(used))
    return other ? send(bearing(again, other)) : answer
  }

const bearing = (request: Request, token: Token): Request => {
  if (token) request.headers.set('authorization', `Bearer ${token}`)
  return request
}

/** When a refused request is sent again. */
export type Repeats = {
  times: number
  /** If the server asks for a longer wait than this, the refusal is the answer. */
  longest_wait_ms: number
  /** Called before each wait. */
  onRepeat?: (problem: Problem, wait_ms: number) => void
}

/** Repeats requests that the server refuses as retryable, each time after the wait that it names (Retry-After). */
export const withRepeats =
  (send: Send, { times, longest_wait_ms, onRepeat }: Repeats): Send =>
  async (request) => {
    for (let repeated = 0; ; repeated += 1) {
      const answer = await send(request.clone())
      if (answer.ok || repeated >= times) return answer
      const problem = await problemOf(answer.clone())
      const wait_ms = problem.retry_after_ms ?? 1000
      if (!problem.retryable || wait_ms > longest_wait_ms) return answer
      onRepeat?.(problem, wait_ms)
      await pause(wait_ms, request.signal)
    }
  }

/** Resolves after this time; ends early with the signal. */
export const pause = (ms: number, signal: AbortSignal | undefined): Promise<void> =>
  new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason)
    const end = () => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', end)
      resolve()
    }, ms)
    signal?.addEventListener('abort', end, { once: true })
  })
