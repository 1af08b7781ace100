import { claimsOf } from './answer.ts'
import { csrfToken, dropCsrf, isTokens, keepCsrf, post, refreshed, type TokenBody, type Unrefreshed } from './cookie.ts'
import { askSiblings, type Goodbye, hear, type Logout, type Session, say, type Token } from './siblings.ts'
import { nextDelay } from './wait.ts'

/**
 * The session of this tab (console.md section 3). The access token exists only in one variable of this module.
 * Tabs share one refresh through a Web Lock and send each other the result.
 */
export type Phase =
  | { name: 'starting' }
  | { name: 'signed_in' }
  /** The session ended while a page is open; the session dialog covers it. */
  | { name: 'ended' }
  | { name: 'signed_out'; reason: 'none' | Goodbye }
export type Refreshed = 'ok' | Unrefreshed
/** A session may exist but could not be resumed; includes the time to retry, if the server named it. */
export class SessionAway extends Error {
  readonly retry_at: number | undefined
  constructor(outcome: Exclude<Unrefreshed, 'over'>) {
    super('the session cannot be resumed')
    if (outcome !== 'unreachable') this.retry_at = Date.now() + outcome.retry_after_ms
  }
}
export const SIGNED_OUT = 'signalbox.signed_out'
/** Kept by a tab while it is away at a provider. */
export const AT_PROVIDER = 'at_provider'
const LOCK = 'signalbox-token'
const ENOUGH_LIFE_MS = 60_000

let held: Session | null = null
/** The person of this page, who stays known while the session dialog asks for the password. */
let person: { user_id: string; username: string } | null = null
let phase: Phase = { name: 'starting' }
/** This tab is signing out. */
let leaving = false
/** How often a session of this tab was signed out: a refresh that began before is not taken. */
let departures = 0
let timer: ReturnType<typeof setTimeout> | undefined
const phaseListeners = new Set<() => void>()
const tokenListeners = new Set<() => void>()

export const accessToken = (): string | null => held?.access_token ?? null
/** Whether this session may only set up a second factor. */
export const isEnrolling = (): boolean => held !== null && claimsOf(held.access_token).scope !== undefined
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
    const ending = localStorage.getItem(SIGNED_OUT)
    if (ending !== null) return finishSignOut(ending)
    // Who returns from a provider has a newer sign-in than the tokens of the other tabs.
    const returned = sessionStorage.getItem(AT_PROVIDER)
    sessionStorage.removeItem(AT_PROVIDER)
    const shared = returned ? null : await askSiblings()
    if (shared !== null && lifeOf(shared.session) >= ENOUGH_LIFE_MS) {
      adopt(shared.session, shared.csrf_token)
      return 'ok'
    }
    const outcome = await refreshLocked()
    // Does not call the listeners, because the caller shows the login page.
    if (outcome === 'over' && phase.name === 'starting') phase = { name: 'signed_out', reason: 'none' }
    return outcome
  })

/**
 * Gets a token other than the refused one. First checks whether another tab or an earlier call has brought one.
 * `over` after a sign-out: the cookie of a sign-out that the server did not confirm would sign the person in again.
 */
export const renew = (refused: string | null): Promise<Refreshed> => {
  if (held !== null && held.access_token !== refused) return Promise.resolve('ok')
  return locked(async () => {
    if (held !== null && held.access_token !== refused) return 'ok'
    if (phase.name === 'signed_out') return 'over'
    const outcome = await refreshLocked()
    if (outcome !== 'over') return outcome
    // A session that began meanwhile lives on.
    if (held !== null && held.access_token !== refused) return 'ok'
    endSession()
    return outcome
  })
}

/** Signs out in every tab, whatever the server answers. Unless it confirms the end, the call is repeated later. */
export const signOut = async (): Promise<void> => {
  leaving = true
  const { session_id = '' } = held ?? {}
  const told = await endAtServer(session_id).finally(() => {
    leaving = false
  })
  if (!told) localStorage.setItem(SIGNED_OUT, session_id)
  const reason = told ? 'signed_out' : 'not_told'
  say({ kind: 'logout', reason })
  leave(reason)
}

/**
 * The server reported that this session was revoked: news to every tab except the one that ended it. If a sign-in in
 * another tab has replaced it, this tab takes the new one.
 */
export const revoked = async (): Promise<void> => {
  if (leaving || phase.name === 'signed_out') return
  const refused = accessToken()
  const session_id = held?.session_id
  const outcome = await locked(async () => (accessToken() === refused ? refreshLocked() : 'ok'))
  if (outcome === 'ok' || leaving || sessionPhase().name === 'signed_out') return
  say({ kind: 'logout', reason: 'revoked', session_id })
  leave('revoked')
}

hear((message) => {
  if (message.kind === 'ask' && held !== null) say({ kind: 'token', session: held, csrf_token: csrfToken() })
  if (message.kind === 'logout' && !leaving && saysMore(message.reason) && isOurs(message)) leave(message.reason)
  if (message.kind === 'token') meetSibling(message)
})

/** The stream may report the end before the tab that caused it does, and only that tab knows the reason. */
const saysMore = (reason: Goodbye): boolean =>
  phase.name !== 'signed_out' || (phase.reason === 'revoked' && reason !== 'revoked')

/** A revoked session is no matter of a tab that holds another or is still getting its own. */
const isOurs = ({ reason, session_id }: Logout): boolean =>
  reason !== 'revoked' || session_id === undefined || session_id === held?.session_id || phase.name === 'ended'

/** Another tab signed in or refreshed: this tab takes its token if the person is the same, otherwise it reloads. */
function meetSibling({ session, csrf_token }: Token): void {
  // That tab has not heard yet that this session was signed out.
  if (session.session_id === localStorage.getItem(SIGNED_OUT)) return
  if (isSomeoneElse(session.user_id)) startAnew()
  else if (held === null || session.expires_at > held.expires_at) adopt(session, csrf_token)
}

const isSomeoneElse = (user_id: string): boolean => person !== null && person.user_id !== user_id

/** All data of the previous person leaves the page, which has no say in it. */
function startAnew(): void {
  drop()
  phase = { name: 'signed_out', reason: 'none' }
  location.reload()
}

async function refreshLocked(): Promise<Refreshed> {
  const before = departures
  const tokens = await refreshed()
  if (!isTokens(tokens)) return tokens
  if (before !== departures) return 'over'
  if (isSomeoneElse(claimsOf(tokens.access_token).sub)) {
    startAnew()
    return 'unreachable'
  }
  take(tokens)
  return 'ok'
}

/** Ends the held session; a token that the server refuses is renewed once. Returns whether the session is over there. */
async function endAtServer(session_id: string): Promise<boolean> {
  const answer = await post('/auth/logout', undefined, { token: accessToken() })
  if (answer?.status !== 401 && answer?.status !== 403) return answer?.ok === true
  return (await locked(() => endByCookie(session_id))) !== 'unreachable'
}

/** The length of a session's id; an older build left a mark that names none. */
const ID_LENGTH = 36

/** Ends this session with tokens of the cookie. A newer session, whose tokens it returns, lives on. */
async function endByCookie(session_id: string): Promise<TokenBody | 'over' | 'unreachable'> {
  const tokens = await refreshed()
  if (!isTokens(tokens)) return tokens === 'over' ? tokens : 'unreachable'
  if (session_id.length === ID_LENGTH && claimsOf(tokens.access_token).session_id !== session_id) return tokens
  const answer = await post('/auth/logout', undefined, { token: tokens.access_token })
  return answer?.ok || answer?.status === 401 ? 'over' : 'unreachable'
}

/** Repeats a sign-out that the server did not confirm. */
async function finishSignOut(session_id: string): Promise<Refreshed> {
  const outcome = await endByCookie(session_id)
  if (outcome !== 'unreachable') localStorage.removeItem(SIGNED_OUT)
  if (!isTokens(outcome)) {
    dropCsrf()
    return 'over'
  }
  take(outcome)
  return 'ok'
}

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
  if (csrf !== null) keepCsrf(csrf)
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
  dropCsrf()
  if (phase.name === 'signed_in') setPhase({ name: 'ended' })
}

function leave(reason: Goodbye): void {
  departures += 1
  drop()
  person = null
  setPhase({ name: 'signed_out', reason })
}

/** Shows the login page without a reason, as in a fresh tab. */
export const showLogin = (): void => setPhase({ name: 'signed_out', reason: 'none' })

function drop(): void {
  held = null
  clearTimeout(timer)
  dropCsrf()
}

function setPhase(next: Phase): void {
  phase = next
  for (const listener of phaseListeners) listener()
}

const lifeOf = (session: Session): number => session.expires_at - Date.now()
/** Runs work that changes the tokens, in one tab at a time; not reentrant. */
export const locked = <T>(work: () => Promise<T>): Promise<T> => navigator.locks.request(LOCK, work) as Promise<T>
