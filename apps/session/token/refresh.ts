import { UserStatus } from '../../shared/contracts/gen/auth_pb.ts'
import { crashPoint } from '../../shared/crash.ts'
import { sha256Hex } from '../../shared/data/digest.ts'
import { AppError, unavailable } from '../../shared/errors.ts'
import type { RefreshClaims } from '../../shared/jwt/claims.ts'
import { kidOf, TokenRejected } from '../../shared/jwt/verifier.ts'
import { refuseLate } from '../../shared/process/deadline.ts'
import { throwFromRpc, withRequestId } from '../../shared/rpc/client.ts'
import { csrfFailed } from '../../shared/web/origins.ts'
import { rateLimited } from '../../shared/web/rates.ts'
import { type Client, whereOf } from '../browser/client.ts'
import type { SessionDeps } from '../deps.ts'
import { isOver } from '../sessions/end.ts'
import type { RevokeReason, SessionRecord, Successor } from '../store/store.ts'
import { hashOf, type TokenPair } from './issue.ts'

export type RefreshRequest = {
  refresh_token: string
  mode: 'json' | 'cookie'
  /** Checked in cookie mode. */
  csrf_token: string | undefined
  /** The Idempotency-Key, which proves that a request is a repeat. */
  retry_key: string | undefined
  client: Client
  request_id: string
}
/** How long the store may take to swap a token. */
const SWAP_MS = 1000

export type Refreshed = TokenPair & { session_id: string }

/**
 * Rotates a refresh token. A token that does not verify never reaches Redis, so garbage cannot end a session. One that
 * verifies but is neither current nor a proven retry ends its whole family, at any age (auth.md 4, 7).
 */
export const refresh = async (deps: SessionDeps, request: RefreshRequest): Promise<Refreshed> => {
  deps.counts.refresh_attempts.inc()
  try {
    const { outcome, ...refreshed } = await decide(deps, request)
    if (outcome === 'rotated') deps.counts.refreshed.inc()
    deps.counts.refresh_outcomes.inc({ outcome })
    return refreshed
  } catch (error) {
    deps.counts.refresh_outcomes.inc({ outcome: outcomeOf(error) })
    throw error
  }
}

/** The outcome label of a request: the reason of its refusal, or the error's code. */
const outcomeOf = (error: unknown): string =>
  error instanceof GrantRefused ? error.outcome : error instanceof AppError ? error.code : 'unexpected'

type Decided = Refreshed & { outcome: 'rotated' | 'retry' }

const decide = async (deps: SessionDeps, request: RefreshRequest): Promise<Decided> => {
  const claims = await verify(deps, request)
  if (request.mode === 'cookie' && !deps.csrf.verify(claims.session_id, request.csrf_token)) {
    deps.counts.csrf_errors.inc()
    throw csrfFailed()
  }
  // The read has no effect, so it need not wait for the charge.
  const [record] = await Promise.all([
    deps.store.get(claims.sub, claims.session_id),
    chargeSession(deps, claims.session_id),
  ])
  if (!record) throw refuseGrant(deps, request, 'gone')
  if (record.mode !== request.mode) throw await refuseMode(deps, record, request)
  await checkUser(deps, record, request)
  const owner = await checkBinding(deps, record, request)
  // A token that is not current ends the session or repeats an answer; both require token's confirmation.
  if (record.refresh_token_hash !== hashOf(request.refresh_token)) await confirm(deps, request)
  return rotate(deps, owner, request)
}

const verify = async (deps: SessionDeps, request: RefreshRequest): Promise<RefreshClaims> => {
  try {
    return await deps.verifyRefresh(request.refresh_token)
  } catch (error) {
    if (!(error instanceof TokenRejected)) throw error
    deps.counts.rejected.inc({ cause: error.reason })
    throw refuseGrant(deps, request, 'not_valid')
  }
}

/**
 * Asks token whether it still accepts the presented token before that token ends anything. A key may just have been
 * killed, and its thief must not be able to end sessions.
 */
const confirm = async (deps: SessionDeps, request: RefreshRequest): Promise<void> => {
  if (await deps.issuer.believes(request.refresh_token, request.request_id)) return
  deps.counts.rejected.inc({ cause: 'unknown_key' })
  throw refuseGrant(deps, request, 'not_valid')
}

const chargeSession = async (deps: SessionDeps, session_id: string) => {
  const wait = await deps.store.limit([{ key: `refresh_session:${session_id}`, rate: deps.config.limits.refresh }])
  if (wait === undefined) return
  deps.counts.rate_limited.inc({ class: 'refresh_session' })
  throw rateLimited(wait)
}

/** The same body for every cause. */
class GrantRefused extends AppError {
  readonly outcome: string
  constructor(outcome: string, set_cookie?: string) {
    super('invalid_token', 'invalid_grant', 'The refresh token is not valid.', {
      headers: { 'www-authenticate': 'Bearer', ...(set_cookie && { 'set-cookie': set_cookie }) },
    })
    this.outcome = outcome
  }
}

/** The session lives, or ended before: then a newer sign-in may have replaced it, and with it the cookie. */
const NOT_ENDED = new Set(['not_valid', 'not_repeatable', 'gone'])

/** The cookie is cleared only if this request ended its session. */
const refuseGrant = (deps: SessionDeps, request: RefreshRequest, outcome: string): AppError => {
  const expire = request.mode === 'cookie' && !NOT_ENDED.has(outcome)
  return new GrantRefused(outcome, expire ? deps.cookies.expired() : undefined)
}

/**
 * In any mode, an ended session is deleted and refused as such, and a used token is a replay. Redis' clock decides, so
 * the script checks it.
 */
const refuseMode = async (deps: SessionDeps, record: SessionRecord, request: RefreshRequest): Promise<AppError> => {
  const current = record.refresh_token_hash === hashOf(request.refresh_token)
  if (current && !isOver(deps, record)) return modeMismatch(record.mode)
  if (!current) await confirm(deps, request)
  const { outcome } = await swap(deps, record, request)
  const alive = outcome === 'current' || outcome === 'retry'
  return alive ? modeMismatch(record.mode) : refuseGrant(deps, request, outcome)
}

export const modeMismatch = (mode: string) =>
  new AppError('validation_error', 'session_mode_mismatch', `This session keeps its refresh token in ${mode} mode.`, {
    hint: `Send the request with response_mode=${mode}.`,
  })

const endSession = async (deps: SessionDeps, record: SessionRecord, request: RefreshRequest, reason: RevokeReason) => {
  const { user_id, session_id } = record
  const revoked = await deps.store.revoke({
    user_id,
    session_id,
    reason,
    actor_type: 'system',
    request_id: request.request_id,
  })
  await deps.revocations.record(revoked ? [revoked] : [])
  await note(deps, record, request, reason)
  await deps.store.replicated()
}

const note = (deps: SessionDeps, { user_id, session_id }: SessionRecord, request: RefreshRequest, reason: string) => {
  const outcome = reason === 'binding_changed' ? 'noted' : 'denied'
  return deps.audit({
    action: 'refresh',
    outcome,
    reason,
    actor: `user:${user_id}`,
    user_id,
    session_id,
    ...whereOf(request),
  })
}

const checkUser = async (deps: SessionDeps, record: SessionRecord, request: RefreshRequest) => {
  const { user } = await deps.identity
    .getUser({ id: record.user_id }, withRequestId(request.request_id))
    .catch(throwFromRpc('identity'))
  if (user?.status === UserStatus.ACTIVE) return
  await confirm(deps, request)
  await endSession(deps, record, request, user?.status === UserStatus.DELETED ? 'user_deleted' : 'user_disabled')
  throw refuseGrant(deps, request, 'not_active')
}

/** Compares the client with the one that signed in, and applies SESSION__BINDING__ACTION if it changed. */
const checkBinding = async (deps: SessionDeps, record: SessionRecord, request: RefreshRequest) => {
  const { SESSION__BINDING__MODE: mode, SESSION__BINDING__ACTION: action } = deps.config
  const { client } = request
  const agent_changed = record.ua_family !== null && record.ua_family !== client.ua_family
  const net_changed = mode === 'ua_ip' && record.ip_prefix !== null && record.ip_prefix !== client.ip_prefix
  if (mode === 'off' || !(agent_changed || net_changed)) return record
  if (action !== 'signal') await confirm(deps, request)
  deps.counts.binding_changed.inc({ action })
  if (action === 'revoke') {
    await endSession(deps, record, request, 'binding')
    throw refuseGrant(deps, request, 'binding')
  }
  await note(deps, record, request, 'binding_changed')
  if (action === 'signal') return record
  await deps.store.touchAuthTime({ user_id: record.user_id, session_id: record.session_id }, 0)
  return { ...record, auth_time: 0 }
}

/** The swap of the presented token for its successor, if it has one; a replay is recorded. */
const swap = async (deps: SessionDeps, record: SessionRecord, request: RefreshRequest, successor?: Successor) => {
  const rotation = await deps.store.rotate({
    user_id: record.user_id,
    session_id: record.session_id,
    presented: hashOf(request.refresh_token),
    ...successor,
    retry_key_hash: request.retry_key && sha256Hex(request.retry_key),
    ua_hash: request.client.ua_hash,
    window_s: deps.config.SESSION__REFRESH__RETRY_WINDOW_S,
    actor_type: 'system',
    request_id: request.request_id,
  })
  if (rotation.outcome === 'replay') {
    await deps.revocations.record([rotation.revoked])
    await note(deps, record, request, 'replay')
  }
  await deps.store.replicated()
  return rotation
}

/** Signs new tokens before the swap, and returns them only if the swap succeeded. */
const rotate = async (deps: SessionDeps, record: SessionRecord, request: RefreshRequest): Promise<Decided> => {
  const { session_id } = record
  const current = record.refresh_token_hash === hashOf(request.refresh_token)
  const next = current ? await deps.issuer.renew(record, kidOf(request.refresh_token), request.request_id) : undefined
  if (current && !next) throw refuseGrant(deps, request, 'not_valid')
  // Without its answer the repeat of a rotation without a key would be a replay.
  refuseLate(SWAP_MS)
  const rotation = await swap(deps, record, request, next?.successor)
  crashPoint('session.after_script')
  if (rotation.outcome === 'rotated' && next) {
    return { access_token: next.access_token, refresh_token: next.refresh_token, session_id, outcome: 'rotated' }
  }
  if (rotation.outcome === 'retry') {
    const pair = await deps.issuer.repeat(record, rotation.repeat, request.request_id)
    if (!pair) throw refuseGrant(deps, request, 'not_repeatable')
    return { ...pair, session_id, outcome: 'retry' }
  }
  // Current now but not a moment ago: an older Redis was restored meanwhile.
  if (rotation.outcome === 'current')
    throw unavailable('The session changed during this request.', undefined, 'unavailable')
  throw refuseGrant(deps, request, rotation.outcome)
}
