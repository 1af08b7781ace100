import { retryAfter } from './answer.ts'
import { sleep } from './wait.ts'

/** The calls by which the session's cookie gives tokens. sessionStorage holds the CSRF token. */
const CSRF = 'csrf_token'
const RETRY_KEY = 'retry_key'
const RETRIES_MS = [0, 300, 1000, 3000]
const RETRY_WINDOW_MS = 10_000
const FETCH_LIMIT_MS = 10_000

export type TokenBody = { access_token: string; expires_in: number; csrf_token?: string }
export const isTokens = (outcome: object | string): outcome is TokenBody =>
  typeof outcome === 'object' && 'access_token' in outcome
/** Why there are no new tokens. */
export type Unrefreshed = 'over' | 'unreachable' | { retry_after_ms: number }

export const csrfToken = (): string | null => sessionStorage.getItem(CSRF)
export const keepCsrf = (csrf_token: string): void => sessionStorage.setItem(CSRF, csrf_token)
export const dropCsrf = (): void => sessionStorage.removeItem(CSRF)

/** New tokens of the cookie's session; the caller holds the lock of the tabs. */
export async function refreshed(): Promise<TokenBody | Unrefreshed> {
  const key = retryKey()
  const start = Date.now()
  let csrf = csrfToken() ?? (await fetchCsrf())
  if (csrf === null) return 'over'
  let csrfRenewed = false
  for (let attempt = 0; attempt < RETRIES_MS.length; attempt += 1) {
    await sleep(RETRIES_MS[attempt] ?? 0)
    if (Date.now() - start > RETRY_WINDOW_MS) break
    const answer: Response | null =
      typeof csrf === 'string'
        ? await post('/v1/token?response_mode=cookie', { grant_type: 'refresh_token' }, { csrf, key })
        : null
    if (answer?.ok) {
      const tokens = (await answer.json()) as TokenBody
      localStorage.removeItem(RETRY_KEY)
      if (tokens.csrf_token !== undefined) keepCsrf(tokens.csrf_token)
      return tokens
    }
    if (answer?.status === 401) {
      localStorage.removeItem(RETRY_KEY)
      return 'over'
    }
    if (answer?.status === 429) return { retry_after_ms: retryAfter(answer) }
    if (answer?.status === 403 && csrfRenewed) return 'over'
    if (answer?.status === 403 || csrf === undefined) {
      csrfRenewed = answer?.status === 403
      csrf = await fetchCsrf()
      if (csrf === null) return 'over'
    }
  }
  return 'unreachable'
}

/** Kept until an answer comes, for all tabs: with another key the repeat of a refresh would be a replay. */
const retryKey = (): string => {
  const key = localStorage.getItem(RETRY_KEY) ?? crypto.randomUUID()
  localStorage.setItem(RETRY_KEY, key)
  return key
}

/** The CSRF token of the cookie's session; null if no session exists, `undefined` if the server did not answer. */
async function fetchCsrf(): Promise<string | null | undefined> {
  try {
    const answer = await fetch('/v1/token/csrf', {
      credentials: 'include',
      signal: AbortSignal.timeout(FETCH_LIMIT_MS),
    })
    if (answer.status === 401 || answer.status === 400) return null
    if (!answer.ok) return undefined
    const { csrf_token } = (await answer.json()) as { csrf_token: string }
    keepCsrf(csrf_token)
    return csrf_token
  } catch {
    return undefined
  }
}

/** Posts with this token, whose CSRF token goes with it. Returns null without an answer. */
export async function post(
  path: string,
  body: unknown,
  more: { token?: string | null; csrf?: string; key?: string } = {},
): Promise<Response | null> {
  const headers = new Headers()
  if (body !== undefined) headers.set('content-type', 'application/json')
  if (more.token) headers.set('authorization', `Bearer ${more.token}`)
  const csrf = more.csrf ?? (more.token ? csrfToken() : null)
  if (csrf !== null) headers.set('x-csrf-token', csrf)
  if (more.key !== undefined) headers.set('idempotency-key', more.key)
  try {
    return await fetch(path, {
      method: 'POST',
      headers,
      credentials: 'include',
      signal: AbortSignal.timeout(FETCH_LIMIT_MS),
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
  } catch {
    return null
  }
}
