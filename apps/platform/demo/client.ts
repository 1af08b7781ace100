import { setTimeout as delay } from 'node:timers/promises'
import { retryAfterMs } from '../../shared/contracts/client/problem.ts'
import { uuidv5, uuidv7 } from '../../shared/ids.ts'
import { createScreen } from '../base/screen.ts'

export type Account = { username: string; password: string; roles: string[] }

export const accountOf = (accounts: readonly Account[], username: string, remedy: string): Account => {
  const account = accounts.find((candidate) => candidate.username === username)
  if (!account) throw new Error(`the demo account ${username} is missing: ${remedy}`)
  return account
}

/** A refusal of the API as an error with the parts that a person needs: category, code, detail, hint, request id. */
export class ApiError extends Error {
  readonly status: number
  readonly body: Record<string, unknown>
  /** When the refusal says to retry. */
  readonly retry_after_ms: number | undefined
  constructor(what: string, status: number, body: Record<string, unknown>, headers?: Headers) {
    super(
      `${what}: ${status} ${body.category ?? ''}/${body.code ?? ''}: ${body.detail ?? ''} ${body.hint ?? ''} (request ${body.request_id ?? '?'})`,
    )
    this.status = status
    this.body = body
    this.retry_after_ms = Number(body.retry_after_ms ?? retryAfterMs(headers?.get('retry-after'))) || undefined
  }
}

export type Reply<T> = { status: number; headers: Headers; body: T }

/** Names every command of the demo, so that an interrupted seed resumes with the same keys. */
const DEMO_NAMESPACE = '6f3c5b0e-7c1d-5e38-9d55-2b1c8a4f7e10'
const demoKey = (name: string): string => uuidv5(DEMO_NAMESPACE, name)

/** How long a person retries while a part is busy or unavailable. */
export type Patience = { tries: number; ms: number; tell?: { every_ms: number; line: (text: string) => void } }
const PATIENCE: Patience = { tries: 8, ms: 60_000 }
/** The patience of a caller that can only wait. */
export const ENDLESS: Patience = {
  tries: Number.POSITIVE_INFINITY,
  ms: Number.POSITIVE_INFINITY,
  tell: { every_ms: 30_000, line: (text) => createScreen().line('demo', text, 'yellow') },
}
const PAUSE_MS = 1000

/** A briefly busy or unavailable part, or a broken connection, as the first requests on a loaded machine meet. */
const isPassing = (error: unknown): boolean => {
  if (error instanceof ApiError) return error.body.retryable === true || error.status === 429
  const { name, message } = error as Error
  return name === 'TimeoutError' || (name === 'TypeError' && /^(fetch failed|terminated)$/.test(message))
}

/** The delay that the refusal asks for, plus jitter, so that clients refused together do not return together. */
const pauseAfter = (error: unknown): number => {
  const asked = error instanceof ApiError ? error.retry_after_ms : undefined
  return (asked ?? PAUSE_MS) * (1 + Math.random() / 4)
}

/** Tells the reason of a long wait now and then: otherwise a wait for a person, as on a full disk, looks like a hang. */
const teller = ({ tell }: Patience) => {
  let told = performance.now()
  return (error: unknown) => {
    if (!tell || performance.now() - told < tell.every_ms) return
    told = performance.now()
    tell.line(`waits and tries again: ${(error as Error).message}`)
  }
}

/** Repeats a repeatable act while its refusals are temporary, after the delay that each names. */
export const soon = async <T>(act: () => Promise<T>, patience: Patience = PATIENCE): Promise<T> => {
  const end = performance.now() + patience.ms
  const tell = teller(patience)
  for (;;) {
    try {
      return await act()
    } catch (error) {
      const pause = pauseAfter(error)
      if (!isPassing(error) || performance.now() + pause > end) throw error
      tell(error)
      await delay(pause)
    }
  }
}

/** One signed-in person of the public API: JSON tokens, refreshed when they expire; repeats keep a command's key. */
export const signIn = async (gateway_url: string, account: Account, patience: Patience = PATIENCE) => {
  let access_token = ''
  const login = async () => {
    const reply = await send<{ access_token: string }>('POST', '/v1/token', {
      grant_type: 'password',
      username: account.username,
      password: account.password,
    })
    access_token = reply.body.access_token
  }

  const send = async <T>(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Reply<T>> => {
    const reply = await fetch(`${gateway_url}${path}`, {
      method,
      headers: {
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...(access_token && { authorization: `Bearer ${access_token}` }),
        ...headers,
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(15_000),
    })
    const text = await reply.text()
    const parsed = (text ? JSON.parse(text) : {}) as Record<string, unknown>
    if (!reply.ok) throw new ApiError(`${method} ${path}`, reply.status, parsed, reply.headers)
    return { status: reply.status, headers: reply.headers, body: parsed as T }
  }

  /** Repeats a call after a busy or missing part, an expired token, or a duplicate that is still running. */
  const call = async <T>(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Reply<T>> => {
    let signed_in = false
    const tell = teller(patience)
    for (let tries = 1; ; tries++) {
      try {
        return await send<T>(method, path, body, headers)
      } catch (error) {
        if (error instanceof ApiError && error.status === 401 && !signed_in) {
          signed_in = true
          await soon(login, patience)
        } else if (tries >= patience.tries || !isPassing(error)) throw error
        else {
          tell(error)
          await delay(pauseAfter(error))
        }
      }
    }
  }

  await soon(login, patience)
  return {
    username: account.username,
    get: <T>(path: string) => call<T>('GET', `/api${path}`).then((reply) => reply.body),
    /** Sends a command; `name` makes its key, so that the same step never runs twice. Without a name the key is new. */
    post: <T>(path: string, body: unknown, name?: string) =>
      call<T>('POST', `/api${path}`, body, { 'idempotency-key': name ? demoKey(name) : uuidv7() }),
    put: <T>(path: string, body: unknown, name?: string) =>
      call<T>('PUT', `/api${path}`, body, { 'idempotency-key': name ? demoKey(name) : uuidv7() }),
  }
}
export type Person = Awaited<ReturnType<typeof signIn>>

/** Reads until `done` returns true; throws with the last reading otherwise. */
export const waitUntil = async <T>(
  what: string,
  read: () => Promise<T>,
  done: (value: T) => boolean,
  timeout_ms = 60_000,
  every_ms = 200,
): Promise<T> => {
  const end = performance.now() + timeout_ms
  for (;;) {
    const value = await read()
    if (done(value)) return value
    if (performance.now() > end)
      throw new Error(
        `${what} did not happen within ${timeout_ms / 1000} s; last seen: ${JSON.stringify(value).slice(0, 400)}`,
      )
    await delay(every_ms)
  }
}
