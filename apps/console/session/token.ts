import { claimsOf, codeOf, retryAfter, type SecondStep, secondStepOf } from './answer.ts'
import { askSiblings, type Goodbye, hear, type Session, say, type Token } from './siblings.ts'
import { nextDelay, sleep } from './wait.ts'

/**
 * The session of this tab (console.md section 3). The access token exists only in one variable of this module;
 * sessionStorage holds the CSRF token. Tabs share one refresh through a Web Lock and send each other the result.
 */
export type Phase =
  | { name: 'starting' }
  | { name: 'signed_in' }
  /** The session ended while a page is open; the session dialog covers it. */
  | { name: 'ended' }
  | { name: 'signed_out'; reason: 'none' | Goodbye }
export type Refreshed = 'ok' | 'over' | 'unreachable' | { retry_after_ms: number }
/** A session may exist but could not be resumed; includes the time to retry, if the server named it. */
export class SessionAway extends Error {
  readonly retry_at: number | undefined
  constructor(outcome: Exclude<Refreshed, 'ok' | 'over'>) {
    super('the session cannot be resumed')
    if (outcome !== 'unreachable') this.retry_at = Date.now() + outcome.retry_after_ms
  }
}
export type SignIn =
  | { ok: true }
  | { ok: false; status: number | null; code?: string; retry_after_ms: number; step?: SecondStep }

const CSRF = 'csrf_token'
const SIGNED_OUT = 'signalbox.signed_out'
const LOCK = 'signalbox-token'
const RETRIES_MS = [0, 300, 1000, 3000]
const RETRY_WINDOW_MS = 10_000
const FETCH_LIMIT_MS = 10_000
const ENOUGH_LIFE_MS = 60_000

let held: Session | null = null
/** The person of this page, who stays known while the session dialog asks for the password. */
let person: { user_id: string; username: string } | null = null
let phase: Phase = { name: 'starting' }
/** This tab is signing out. */
let leaving = false
let timer: ReturnType<typeof setTimeout> | undefined
const phaseListeners = new Set<() => void>()
const tokenListeners = new Set<() => void>()

export const accessToken = (): string | null => held?.access_token ?? null
/** Whether this session may only set up a second factor. */
export const isEnrolling = (): boolean => held !== null && claimsOf(held.access_token).scope !== undefined
export const csrfToken = (): string | null => sessionStorage.getItem(CSRF)
export const sessionPhase = (): Phase => phase
export const currentUser = (): { user_id: string; username: string } | null => person

export const onPhase = (listener: () => void): (() => void) => {
  phaseListeners.add(listener)
  return () => void phaseListeners.delete(listener)
}

/** Called when the access token is replaced, so that the stream can continue with the new one. */
export const onToken = (listener: () => void): (() => void) => {
  tokenListeners.add(listener)
  return () => void tokenListeners.delete(listener)
}

/** Starts a tab's session: another tab's token, otherwise a refresh by cookie. `over` means: show the login page. */
export const startSession = (): Promise<Refreshed> =>
  locked(async () => {
    if (held !== null && lifeOf(held) > 0) return 'ok'
    if (localStorage.getItem(SIGNED_OUT) !== null) return finishSignOut()
    const shared = await askSiblings()
    if (shared !== null && lifeOf(shared.session) >= ENOUGH_LIFE_MS) {
      adopt(shared.session, shared.csrf_token)
      return 'ok'
    }
    const outcome = await refreshLocked()
    // Does not call the listeners, because the caller shows the login page.
    if (outcome === 'over' && phase.name === 'starting') phase = { name: 'signed_out', reason: 'none' }
    return outcome
  })

/** Gets a token other than the refused one. First checks whether another tab or an earlier call has brought one. */
export const renew = (refused: string | null): Promise<Refreshed> => {
  if (held !== null && held.access_token !== refused) return Promise.resolve('ok')
  return locked(async () => {
    if (held !== null && held.access_token !== refused) return 'ok'
    const outcome = await refreshLocked()
    if (outcome === 'over') endSession()
    return outcome
  })
}

export const signIn = async (username: string, password: string): Promise<SignIn> => {
  const answer = await post('/v1/token?response_mode=cookie', { grant_type: 'password', username, password })
  const step = answer?.status === 403 ? await secondStepOf(answer.clone()) : undefined
  if (step === undefined) return entered(answer)
  // If an app is available, the person chooses; a passkey alone is requested at once.
  return step.factors.includes('totp')
    ? { ok: false, status: 403, retry_after_ms: 0, step }
    : signInByPasskey(step.factor_token)
}

/** Completes a sign-in with a code of the authenticator app. */
export const signInByCode = async ({ factor_token }: SecondStep, totp: string): Promise<SignIn> =>
  entered(await post('/v1/token?response_mode=cookie', { grant_type: 'second_factor', factor_token, totp }))

/** Signs in with a passkey: alone, or after the password whose answer contained this factor token. */
export const signInByPasskey = async (factor_token?: string): Promise<SignIn> => {
  const assertion = await provedKey()
  if (assertion === null) return { ok: false, status: 403, code: 'assertion_invalid', retry_after_ms: 0 }
  const grant = factor_token === undefined ? { grant_type: 'passkey' } : { grant_type: 'second_factor', factor_token }
  return entered(await post('/v1/token?response_mode=cookie', { ...grant, assertion }))
}

/** The passkey code loads on first use. */
const provedKey = () => import('./passkeys.ts').then(({ proveKey }) => proveKey()).catch(() => null)

const entered = async (answer: Response | null): Promise<SignIn> => {
  if (answer === null) return { ok: false, status: null, retry_after_ms: 0 }
  if (!answer.ok) {
    const code = await codeOf(answer)
    return { ok: false, status: answer.status, retry_after_ms: retryAfter(answer), ...(code && { code }) }
  }
  localStorage.removeItem(SIGNED_OUT)
  const before = person?.user_id
  take(await answer.json())
  // A different person has signed in on this page: clear all data of the previous one.
  if (before !== undefined && before !== person?.user_id) location.reload()
  return { ok: true }
}

/** Proves one of the person's passkeys again. Returns whether it was accepted. */
export const confirmPasskey = async (): Promise<boolean> => {
  const assertion = await provedKey()
  const answer = assertion && (await post('/v1/token/reauth', { assertion }, { bearer: true }))
  if (answer?.ok) take(await answer.json())
  return answer?.ok === true
}

/** Checks a password or a code and takes a token with a fresh authentication time. Returns the status, or null. */
export const confirmBy = async (proof: { password: string } | { totp: string }): Promise<number | null> => {
  const answer = await post('/v1/token/reauth', proof, { bearer: true })
  if (answer?.ok) take(await answer.json())
  return answer?.status ?? null
}

/** Signs out in every tab, whatever the server answers. A lost answer is remembered and the call repeated. */
export const signOut = async (): Promise<void> => {
  leaving = true
  const answer = await post('/auth/logout', undefined, { bearer: true }).finally(() => {
    leaving = false
  })
  const told = answer !== null && (answer.status < 500 || answer.status === 401)
  if (!told) localStorage.setItem(SIGNED_OUT, '1')
  const reason = told ? 'signed_out' : 'not_told'
  say({ kind: 'logout', reason })
  leave(reason)
}

/** The server reported that this session was revoked: news to every tab except the one that ended it. */
export const revoked = (): void => {
  if (leaving || phase.name === 'signed_out') return
  say({ kind: 'logout', reason: 'revoked' })
  leave('revoked')
}

hear((message) => {
  if (message.kind === 'ask' && held !== null) say({ kind: 'token', session: held, csrf_token: csrfToken() })
  if (message.kind === 'logout' && !leaving && saysMore(message.reason)) leave(message.reason)
  if (message.kind === 'token') meetSibling(message)
})

/** The stream may report the end before the tab that caused it does, and only that tab knows the reason. */
const saysMore = (reason: Goodbye): boolean =>
  phase.name !== 'signed_out' || (phase.reason === 'revoked' && reason !== 'revoked')

/** Another tab signed in or refreshed: this tab takes its token if the person is the same, otherwise it reloads. */
function meetSibling({ session, csrf_token }: Token): void {
  if (person !== null && person.user_id !== session.user_id) {
    drop()
    location.reload()
    return
  }
  if (held === null || session.expires_at > held.expires_at) adopt(session, csrf_token)
}

async function refreshLocked(): Promise<Refreshed> {
  const key = crypto.randomUUID()
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
      take(await answer.json())
      return 'ok'
    }
    if (answer?.status === 401) return 'over'
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
    sessionStorage.setItem(CSRF, csrf_token)
    return csrf_token
  } catch {
    return undefined
  }
}

/** Repeats a sign-out that did not reach the server; gets a token only for that. */
async function finishSignOut(): Promise<Refreshed> {
  const outcome = await refreshLocked()
  if (outcome === 'ok') {
    const answer = await post('/auth/logout', undefined, { bearer: true })
    drop()
    if (answer === null || answer.status >= 500) return 'over'
  }
  if (outcome === 'ok' || outcome === 'over') localStorage.removeItem(SIGNED_OUT)
  return 'over'
}

export async function post(
  path: string,
  body: unknown,
  more: { bearer?: boolean; csrf?: string; key?: string } = {},
): Promise<Response | null> {
  const headers = new Headers()
  if (body !== undefined) headers.set('content-type', 'application/json')
  if (more.bearer && held !== null) headers.set('authorization', `Bearer ${held.access_token}`)
  const csrf = more.csrf ?? (more.bearer ? csrfToken() : null)
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

type TokenBody = { access_token: string; expires_in: number; csrf_token?: string }

/** Keeps the tokens of an answer and gives them to the other tabs. */
export function take(body: TokenBody): void {
  const claims = claimsOf(body.access_token)
  const session: Session = {
    access_token: body.access_token,
    expires_at: Date.now() + body.expires_in * 1000,
    session_id: claims.session_id,
    user_id: claims.sub,
    username: claims.username,
  }
  adopt(session, body.csrf_token ?? csrfToken())
  say({ kind: 'token', session, csrf_token: csrfToken() })
}

function adopt(session: Session, csrf: string | null): void {
  held = session
  person = { user_id: session.user_id, username: session.username }
  if (csrf !== null) sessionStorage.setItem(CSRF, csrf)
  clearTimeout(timer)
  timer = setTimeout(refreshInTime, Math.max(1000, lifeOf(session) - ENOUGH_LIFE_MS - Math.random() * 10_000))
  for (const listener of tokenListeners) listener()
  setPhase({ name: 'signed_in' })
}

async function refreshInTime(): Promise<void> {
  const outcome = await renew(accessToken())
  if (outcome === 'ok' || outcome === 'over') return
  clearTimeout(timer)
  timer = setTimeout(refreshInTime, outcome === 'unreachable' ? nextDelay(3) : outcome.retry_after_ms)
}

function endSession(): void {
  held = null
  clearTimeout(timer)
  sessionStorage.removeItem(CSRF)
  if (phase.name === 'signed_in') setPhase({ name: 'ended' })
}

function leave(reason: Goodbye): void {
  drop()
  person = null
  setPhase({ name: 'signed_out', reason })
}

/** Shows the login page without a reason, as in a fresh tab. */
export const showLogin = (): void => setPhase({ name: 'signed_out', reason: 'none' })

function drop(): void {
  held = null
  clearTimeout(timer)
  sessionStorage.removeItem(CSRF)
}

function setPhase(next: Phase): void {
  phase = next
  for (const listener of phaseListeners) listener()
}

const lifeOf = (session: Session): number => session.expires_at - Date.now()
/** Runs work that changes the tokens, in one tab at a time; not reentrant. */
export const locked = <T>(work: () => Promise<T>): Promise<T> => navigator.locks.request(LOCK, work) as Promise<T>
