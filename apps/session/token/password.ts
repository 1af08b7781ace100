import type { FastifyRequest } from 'fastify'
import { type Caller, refuseStaleAuth } from '../../shared/auth/caller.ts'
import { foldUsername } from '../../shared/auth/username.ts'
import { UserStatus } from '../../shared/contracts/gen/auth_pb.ts'
import { sha256Hex } from '../../shared/data/digest.ts'
import { AppError, weakPassword } from '../../shared/errors.ts'
import { throwFromRpc, withRequestId } from '../../shared/rpc/client.ts'
import { rateLimited } from '../../shared/web/rates.ts'
import { byPerson, type Client } from '../browser/client.ts'
import type { SessionDeps, Uses } from '../deps.ts'
import { endSession, endUserSessions } from '../sessions/end.ts'
import type { Method } from '../store/store.ts'
import { authTimeIn, type TokenPair } from './issue.ts'

/** `jti`: of the access token in the request. */
export type PasswordRequest = { caller: Caller; client: Client; request_id: string; jti?: string | undefined }

/** 20 wrong current passwords in one session within a day end it: the last one finds the bucket empty. */
const WRONG_PASSWORDS = { count: 19, seconds: 86_400, burst: 19 }

/** Whether this person's password is taken; with AUTH__LOCAL__LOGIN=break_glass only those of emergency accounts are. */
export const takesPassword = ({ config }: Uses<'config'>, username: string): boolean =>
  config.break_glass?.has(foldUsername(username)) ?? true

/** Where others sign in instead; undefined while every password is taken. */
export const elsewhere = ({ config, providers }: Uses<'config' | 'providers'>): string | undefined => {
  if (!config.break_glass) return undefined
  const titles = new Intl.ListFormat('en', { type: 'disjunction' }).format(providers.list().map(({ title }) => title))
  return `Passwords are for emergency accounts. Sign in through ${titles || 'your provider'}.`
}

export const passwordClosed = (deps: Uses<'config' | 'providers'>) => {
  const hint = elsewhere(deps)
  return new AppError('policy_denied', 'local_login_closed', 'This account does not sign in by password.', {
    ...(hint !== undefined && { hint }),
  })
}

/** Charges the limit that password change and reauthentication share. */
export const chargePassword = async (deps: SessionDeps, { caller }: PasswordRequest): Promise<void> => {
  const wait = await deps.store.limit([{ key: `password:${caller.user_id}`, rate: deps.config.limits.password }])
  if (wait === undefined) return
  deps.counts.rate_limited.inc({ class: 'password' })
  throw rateLimited(wait)
}

/** A password change; answers stored by an older release have no version. */
export type Changed = { revoked_sessions: number; password_version?: number }

/**
 * Changes the password and ends all other sessions. `change_id` makes a repeat harmless in credential; the outbox row
 * there repeats the revocation if session dies in between.
 */
export const changePassword = async (
  deps: SessionDeps,
  request: PasswordRequest & { current_password: string; new_password: string; change_id: string },
): Promise<Changed> => {
  const { caller, request_id } = request
  if (!takesPassword(deps, caller.username)) throw passwordClosed(deps)
  await chargePassword(deps, request)
  await refuseEnded(deps, request)
  const reply = await deps.credential
    .changePassword(
      {
        userId: caller.user_id,
        username: caller.username,
        currentPassword: request.current_password,
        newPassword: request.new_password,
        keepSessionId: caller.session_id,
        changeId: request.change_id,
        queueKey: `user:${caller.user_id}`,
      },
      withRequestId(request_id),
    )
    .catch(throwFromRpc('credential'))
  if (reply.violations.length > 0) throw weakPassword(reply.violations)
  if (!reply.currentIsValid) throw await refuseWrongPassword(deps, request, 'change_password')
  const by = { actor_type: 'user', actor_id: caller.user_id, request_id } as const
  const { passwordVersion: password_version } = reply
  const kept = { user_id: caller.user_id, keep_session_id: caller.session_id, password_version }
  const revoked_sessions = await endUserSessions(deps, kept, 'password_changed', by)
  await note(deps, request, 'change_password', 'done')
  return { revoked_sessions, password_version }
}

/**
 * New tokens for the session that changed its password, unless it has them already. Then the same key again returns the
 * same refresh token within the retry window, and later none: a stored answer contains no secret.
 */
export const tokensAfterChange = async (
  deps: SessionDeps,
  { caller, client, request_id }: PasswordRequest,
  { change_id, password_version }: { change_id: string; password_version: number | undefined },
): Promise<TokenPair | undefined> => {
  const record = await deps.store.get(caller.user_id, caller.session_id)
  if (!record) return undefined
  const proof = {
    user_id: caller.user_id,
    session_id: caller.session_id,
    retry_key_hash: sha256Hex(change_id),
    ua_hash: client.ua_hash,
    window_s: deps.config.SESSION__REFRESH__RETRY_WINDOW_S,
  }
  const due = password_version !== undefined && (record.password_version ?? 0) < password_version
  const next = due ? await deps.issuer.issue(record, request_id) : undefined
  const rotation = await deps.store.rotateCurrent({
    ...proof,
    ...next?.successor,
    ...(password_version !== undefined && { password_version }),
  })
  if (rotation.outcome === 'rotated') return next
  return rotation.outcome === 'retry' ? deps.issuer.repeat(record, rotation.repeat, request_id) : undefined
}

/** Proves the password again: a new access token with a fresh auth_time. */
export const reauthenticate = async (
  deps: SessionDeps,
  request: PasswordRequest & { password: string },
): Promise<string> => {
  const { caller, request_id } = request
  if (!takesPassword(deps, caller.username)) throw passwordClosed(deps)
  await chargePassword(deps, request)
  const { isValid } = await deps.credential
    .verifyPassword(
      { userId: caller.user_id, password: request.password, queueKey: `user:${caller.user_id}`, urgent: true },
      withRequestId(request_id),
    )
    .catch(throwFromRpc('credential'))
  if (!isValid) throw await refuseWrongPassword(deps, request, 'reauth')
  return freshAccess(deps, request, ['pwd'])
}

/** A new access token for the session of a caller just reauthenticated by these methods. Older access tokens end. */
export const freshAccess = async (deps: SessionDeps, request: PasswordRequest, by: Method[]): Promise<string> => {
  const { caller, request_id } = request
  const mode = modeOfPerson(caller)
  await refuseEnded(deps, request)
  const auth_time = Math.floor(deps.clock.now().getTime() / 1000)
  const key = { user_id: caller.user_id, session_id: caller.session_id }
  const amr = await deps.store.touchAuthTime(key, auth_time, by, request.client)
  if (!amr) throw sessionGone()
  await note(deps, request, 'reauth', 'done')
  const fresh = await deps.issuer.access({ ...key, username: caller.username, mode, auth_time, amr }, request_id)
  await deps.store.endOlder({ ...key, before: authTimeIn(fresh), ...(request.jti && { jti: request.jti }) })
  return fresh
}

/** Counts a newly added factor for its session: one that could only add one gets all rights at the next refresh. */
export const liftLimits = async (
  deps: SessionDeps,
  { caller }: Pick<FastifyRequest, 'caller'>,
  by: Method[],
): Promise<void> => {
  const { user_id, session_id, auth_time } = caller
  await deps.store.touchAuthTime({ user_id, session_id }, auth_time, by)
}

/** Refuses an account that was ended or is being recovered: the relay may still have to end its sessions. */
const refuseEnded = async (deps: SessionDeps, { caller, request_id }: PasswordRequest): Promise<void> => {
  const asked = deps.identity.getUser({ id: caller.user_id }, withRequestId(request_id))
  const { user } = await asked.catch(throwFromRpc('identity'))
  if (user?.status !== UserStatus.ACTIVE) throw sessionGone()
}

/** How recently a person who changes a way to sign in must have been authenticated. */
const FRESH_S = 300

export const refuseStale = ({ clock }: Uses<'clock'>, caller: Caller): void => {
  const stale = refuseStaleAuth(caller, FRESH_S, clock.now())
  if (stale) throw stale
}

/** The mode of a person's session; its routes let no machine in. */
export const modeOfPerson = ({ mode }: Caller): 'json' | 'cookie' => {
  if (mode !== 'machine') return mode
  throw new Error('a machine passed a route of people')
}

const sessionGone = () =>
  new AppError('invalid_token', 'invalid_token', 'The session has ended.', {
    headers: { 'www-authenticate': 'Bearer error="invalid_token"' },
  })

/** 422, not 401: a client would answer a 401 by refreshing and repeating the guess. */
const refuseWrongPassword = async (
  deps: SessionDeps,
  request: PasswordRequest,
  action: 'reauth' | 'change_password',
) => {
  const { caller, request_id } = request
  await note(deps, request, action, 'denied', 'wrong_password')
  const spent = await deps.store.limit([{ key: `wrong_password:${caller.session_id}`, rate: WRONG_PASSWORDS }])
  if (spent !== undefined) {
    const session = { user_id: caller.user_id, session_id: caller.session_id }
    await endSession(deps, session, 'suspicious', { actor_type: 'system', request_id })
  }
  return new AppError('validation_error', 'current_password_wrong', 'The current password is wrong.', {
    hint: 'Type the password that you sign in with.',
  })
}

const note = (
  deps: SessionDeps,
  request: PasswordRequest,
  action: 'reauth' | 'change_password',
  outcome: 'done' | 'denied',
  reason?: string,
) => deps.audit({ action, outcome, ...(reason && { reason }), ...byPerson(request) })
