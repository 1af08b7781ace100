import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Revocation } from '../../../db/session/tables.ts'
import { foldUsername } from '../../shared/auth/username.ts'
import { UserStatus } from '../../shared/contracts/gen/auth_pb.ts'
import { AppError } from '../../shared/errors.ts'
import { uuidv5, uuidv7 } from '../../shared/ids.ts'
import { refuseLate } from '../../shared/process/deadline.ts'
import { throwFromRpc, withRequestId } from '../../shared/rpc/client.ts'
import { addressKey, networkOf } from '../../shared/web/addresses.ts'
import { type Client, whereOf } from '../browser/client.ts'
import type { SessionDeps } from '../deps.ts'
import { CHALLENGE_S, type HalfSignedIn, providerIn } from '../store/flows.ts'
import type { Charge, Federated, Method, NewSession } from '../store/store.ts'
import { holdsRole, type TokenPair } from './issue.ts'
import { elsewhere, passwordClosed, takesPassword } from './password.ts'

export type LoginRequest = {
  username: string
  password: string
  mode: 'json' | 'cookie'
  client: Client
  device_token: string | undefined
  request_id: string
}
export type Login = TokenPair & {
  session_id: string
  user_id: string
  folded_name: string
  /** Whether the request came from a known device. */
  known_device: boolean
}

/** Unknown names get ids too, so that credential never takes two of them for one. */
const GHOSTS = 'f2b5a0d4-51c3-5f0e-9f0b-6a3c1d7e8b92'
const TICK_MS = 50
const BLOCK_S = 3600
/** How long the last step of a sign-in may take. */
const ANSWER_MS = 500
/** More names than these, failing from one network in this time, are guesses (auth.md 8). */
const SPRAY_NAMES = 50
const SPRAY_S = 600

/**
 * Signs a user in, in the order of the specification. Whether the name, status or password is wrong, the answer is the
 * same 401 after the same work. The charge comes first, the hash always runs, and the reply waits for the next tick.
 */
export const login = async (deps: SessionDeps, request: LoginRequest): Promise<Login> => {
  const started = performance.now()
  const folded_name = foldUsername(request.username)
  const charge = await beginAttempt(deps, request, folded_name)
  const { user, ok, cause, password_version, totp } = await refunded(deps, charge, () =>
    checkPassword(deps, request, charge),
  )
  if (!ok || !user) throw await refuseLogin(deps, request, charge, started, cause, user?.id)
  // Only now: no guesser learns which accounts are for emergencies.
  if (!takesPassword(deps, user.username)) {
    await refuseLogin(deps, request, charge, started, 'local_login_closed', user.id)
    throw passwordClosed(deps)
  }
  const half = {
    user: { user_id: user.id, username: user.username, mode: request.mode, password_version },
    folded_name,
    charge,
    tries: 0,
    left_s: CHALLENGE_S,
  }
  const asked = await refunded(deps, charge, () => secondFactorOf(deps, half, totp, request.request_id))
  if (asked) throw asked
  const done = await finishLogin(deps, half, request, ['pwd'])
  if (!done) throw await refuseLogin(deps, request, charge, started, 'overtaken', user.id)
  return done
}

/** Opens the session of a person who has proved everything required; `undefined` if the account changed meanwhile. */
export const finishLogin = async (
  deps: SessionDeps,
  { user, folded_name, charge }: HalfSignedIn,
  request: Pick<LoginRequest, 'client' | 'request_id'>,
  amr: Method[],
  details?: Record<string, string>,
): Promise<Login | undefined> => {
  await deps.store.loginSucceeded(charge)
  const opened = await openSession(deps, { ...user, amr }, request.client, request.request_id)
  if (!opened) return undefined
  const glass = deps.config.break_glass && amr.includes('pwd') && { break_glass: user.username }
  const who = { user_id: user.user_id, folded_name, device: charge.device }
  return noteLogin(deps, opened, who, request, { ...details, ...glass })
}

/** A sign-in without a name, whose device is known by the token that came with it. */
export const byDevice = (deps: SessionDeps, user_id: string, username: string, device_token: string | undefined) => {
  const folded_name = foldUsername(username)
  return { user_id, folded_name, device: deps.devices.knownFor(device_token, folded_name) }
}

/** Counts and audits a finished sign-in. `device`: the id of the known one; people are notified of new ones. */
export const noteLogin = async (
  deps: SessionDeps,
  opened: TokenPair & { session_id: string },
  { user_id, folded_name, device }: ReturnType<typeof byDevice>,
  request: Pick<LoginRequest, 'client' | 'request_id'>,
  details: Record<string, unknown>,
): Promise<Login> => {
  deps.counts.logins.inc()
  await deps.audit({
    action: 'login',
    outcome: 'done',
    actor: `user:${user_id}`,
    user_id,
    session_id: opened.session_id,
    ...whereOf(request),
    details: { ...details, device: device === undefined ? 'new' : 'known' },
  })
  return { ...opened, user_id, folded_name, known_device: device !== undefined }
}

/**
 * The second factors of which this person must prove one after the password; empty if none is asked for. Whoever set up
 * an authenticator app is always asked. A passkey is asked of the roles that the setting names, and of emergency accounts:
 * one who has none of both signs in to add one, and may do no more (`issue.ts`).
 */
export const factorsOf = async (
  deps: SessionDeps,
  user_id: string,
  totp: boolean,
  request_id: string,
): Promise<Factor[]> => {
  const roles: readonly string[] = deps.config.SESSION__SECOND_FACTOR__ROLES
  const emergency = deps.config.break_glass !== undefined
  if (roles.length === 0 && !totp && !emergency) return []
  const asked = [
    deps.identity.getPrincipal({ userId: user_id }, withRequestId(request_id)),
    deps.identity.listPasskeys({ userId: user_id }, withRequestId(request_id)),
  ] as const
  const [{ principal }, { passkeys }] = await Promise.all(asked).catch(throwFromRpc('identity'))
  if (!totp && !emergency && !holdsRole(principal, roles)) return []
  return [...(passkeys.length > 0 ? (['passkey'] as const) : []), ...(totp ? (['totp'] as const) : [])]
}

type Factor = 'passkey' | 'totp'
/** The refusal that asks for a second factor; `undefined` if none is asked for. */
const secondFactorOf = async (deps: SessionDeps, half: HalfSignedIn, totp: boolean, request_id: string) => {
  const factors = await factorsOf(deps, half.user.user_id, totp, request_id)
  if (factors.length === 0) return undefined
  const factor_token = randomBytes(32).toString('base64url')
  await deps.flows.halve(factor_token, half)
  return new AppError('policy_denied', 'second_factor_required', 'The password is right. Now prove a second factor.', {
    extra: { factor_token, factors },
  })
}

const lockoutOf = ({ config }: SessionDeps) => ({
  free: config.SESSION__LOCKOUT__FREE,
  max_s: config.SESSION__LOCKOUT__MAX_S,
  close_at: config.SESSION__LOCKOUT__CLOSE_AT,
})

/** Charges the attempt before any lookup, so that parallel guesses cannot outrun the lock. */
const beginAttempt = async (deps: SessionDeps, request: LoginRequest, folded_name: string): Promise<Charge> => {
  const attempt = { name: deps.nameOf(folded_name), device: deps.devices.knownFor(request.device_token, folded_name) }
  const begun = await deps.store.beginLogin(attempt, lockoutOf(deps))
  if ('charge' in begun) return begun.charge
  deps.counts.login_failures.inc({ cause: 'locked' })
  await deps.audit({ action: 'login', outcome: 'denied', reason: 'locked', actor: 'system', ...whereOf(request) })
  // A name that no one has is answered alike.
  throw begun.locked_ms === undefined
    ? new AppError('rate_limited', 'login_locked', 'Too many failed attempts. This name is closed.', {
        hint: 'Ask an administrator to unlock the account.',
      })
    : new AppError('rate_limited', 'login_locked', 'Too many failed attempts. Try again later.', {
        retryable: true,
        retry_after_ms: begun.locked_ms,
      })
}

/** How the audit row of a failure describes the lockout, because the row of a locked attempt names no account. */
const lockoutWord = ({ config }: SessionDeps, { bucket, failures, lock_now }: Charge) =>
  bucket === 'name' && {
    details: {
      failures: Number(failures),
      ...(Number(failures) >= config.SESSION__LOCKOUT__CLOSE_AT && { closed: true }),
      locked_until: lock_now === '0' ? null : new Date(Number(lock_now) / 1000).toISOString(),
    },
  }

/** Runs a step of a login; if it fails, takes the charge back: an outage is no wrong password. */
const refunded = async <T>(deps: SessionDeps, charge: Charge, step: () => Promise<T>): Promise<T> => {
  try {
    return await step()
  } catch (error) {
    await deps.store.refundLogin(charge, lockoutOf(deps))
    throw error
  }
}

/** Looks the user up and always checks the password, against a dummy user's if needed. */
const checkPassword = async (deps: SessionDeps, request: LoginRequest, charge: Charge) => {
  const { user } = await deps.identity
    .getUserByUsername({ username: request.username }, withRequestId(request.request_id))
    .catch(throwFromRpc('identity'))
  const { isValid, passwordVersion, totp } = await deps.credential
    .verifyPassword(
      {
        userId: user?.id ?? uuidv5(GHOSTS, charge.name),
        password: request.password,
        queueKey: queueKeyOf(deps, request.client, charge.device),
        urgent: charge.bucket === 'device',
      },
      withRequestId(request.request_id),
    )
    .catch(throwFromRpc('credential'))
  const active = user?.status === UserStatus.ACTIVE
  const cause = !user ? 'unknown' : !active ? 'not_active' : 'wrong_password'
  return { user, ok: active && isValid, cause, password_version: passwordVersion, totp }
}

/** Whose share of the hash queue this uses: the known device's, else the address's. */
const queueKeyOf = (deps: SessionDeps, { ip_address }: Client, device?: string): string =>
  device === undefined ? deps.nameOf(`address:${addressKey(ip_address ?? '')}`) : `device:${device}`

/** The single refusal of a login, sent on the next tick after the request's start; the true cause is not disclosed. */
const refuseLogin = async (
  deps: SessionDeps,
  request: LoginRequest,
  charge: Charge,
  started: number,
  cause: string,
  user_id?: string,
) => {
  deps.counts.login_failures.inc({ cause })
  await deps.audit({
    action: 'login',
    outcome: 'denied',
    reason: cause,
    actor: 'system',
    user_id,
    ...whereOf(request),
    ...lockoutWord(deps, charge),
  })
  if (charge.bucket !== 'device') await countFailure(deps, request, charge.name)
  const elapsed = performance.now() - started
  await delay(Math.ceil(elapsed / TICK_MS) * TICK_MS - elapsed)
  const hint = elsewhere(deps)
  return new AppError('invalid_credentials', 'invalid_credentials', 'Username or password is wrong.', {
    ...(hint !== undefined && { hint }),
  })
}

/** Counts a failure of an unknown person; an address with too many is blocked at the gateway, a network is reported. */
const countFailure = async (deps: SessionDeps, { client, request_id }: LoginRequest, name: string) => {
  const { nameOf, store, config } = deps
  const { ip_address = '' } = client
  const address = nameOf(`address:${addressKey(ip_address)}`)
  const bucket = { key: `login_failures:${address}`, rate: config.limits.login_failures }
  await store.limit([bucket], { key: address, seconds: BLOCK_S })
  const network = networkOf(ip_address)
  const hidden = nameOf(`network:${network}`)
  if ((await store.namesFailing(hidden, name, SPRAY_S)) <= SPRAY_NAMES) return
  if (!(await deps.flows.once(`spray:${hidden}`, SPRAY_S))) return
  const details = { network }
  await deps.audit({ action: 'spray_suspected', outcome: 'noted', actor: 'system', request_id, ip_address, details })
}

/** The owner of a new session: by a password of this version, or through a provider. */
export type SessionOwner = Pick<NewSession, 'user_id' | 'username' | 'mode' | 'begun_at'> & { amr: Method[] } & (
    | { password_version: number }
    | (Federated & {
        metadata: string
        provider_id?: string
        refresh_only?: boolean
        /** Chosen by the caller, so that a repeat finds the session. */
        session_id?: string
        keep_session_id?: string
      })
  )

/**
 * Opens a session and gives it its tokens. Undefined if the user stopped being active, the session was revoked, the
 * password replaced, the provider removed or the identity at `provider_id` unlinked in between: no race with these
 * leaves a session. With `refresh_only` no access token is made.
 */
export const openSession = async (
  deps: SessionDeps,
  user: SessionOwner,
  client: Client,
  request_id: string,
): Promise<(TokenPair & { session_id: string }) | undefined> => {
  const { provider_id, refresh_only, session_id, ...owned } = {
    ...{ provider_id: '', refresh_only: false, session_id: uuidv7() },
    ...user,
  }
  const cause = { actor_type: 'user', actor_id: user.user_id, request_id } as const
  // No session without its answer: nobody would have its tokens.
  refuseLate(ANSWER_MS)
  const { created_at, evicted } = await deps.store.create(
    { ...owned, session_id, ...client },
    deps.config.SESSION__CAP__PER_USER,
    cause,
  )
  await noteEvicted(deps, evicted, request_id)
  const key = { user_id: user.user_id, session_id }
  try {
    const again = await deps.identity
      .getUser({ id: user.user_id, providerId: provider_id }, withRequestId(request_id))
      .catch(throwFromRpc('identity'))
    // The file may have lost the provider meanwhile. The sweep of its sessions finds this one from here on.
    const indexes = ('indexes' in owned && owned.indexes) || []
    const known = indexes.every((index) => deps.providers.get(providerIn(index)))
    if (known && again.user?.status === UserStatus.ACTIVE) {
      const owner = { auth_time: Math.floor(created_at / 1_000_000), ...owned, session_id }
      const { successor, ...pair } = await deps.issuer.issue(owner, request_id, refresh_only)
      refuseLate(ANSWER_MS)
      if (await deps.store.activate(key, successor)) return { ...pair, session_id }
    }
  } catch (error) {
    await deps.store.revoke({ ...key, ...cause, reason: 'admin' }).catch(() => {})
    throw error
  }
  await deps.store.revoke({ ...key, ...cause, reason: 'user_disabled' })
  return undefined
}

/** Stores and audits the sessions evicted by a new one. */
export const noteEvicted = async (deps: SessionDeps, evicted: Revocation[], request_id: string) => {
  await deps.revocations.record(evicted)
  for (const { user_id, session_id } of evicted) {
    await deps.audit({
      action: 'revoke_session',
      outcome: 'done',
      reason: 'evicted',
      actor: 'system',
      user_id,
      session_id,
      request_id,
    })
  }
}
