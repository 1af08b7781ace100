import type { Redis } from 'ioredis'
import {
  isRedisOutage,
  LIMIT_SCRIPT,
  loadScripts,
  type Script,
  type ScriptObserver,
} from '../../../db/redis/scripts.ts'
import type { Revocation } from '../../../db/session/tables.ts'
import { AppError, unavailable } from '../../shared/errors.ts'
import { type Rate, rateArguments } from '../../shared/web/rates.ts'

const NAMES = [
  'create_session',
  'machine_session',
  'activate_session',
  'rotate',
  'rotate_current',
  'revoke_session',
  'revoke_user',
  'touch_auth_time',
  'end_older',
  'login_begin',
  'login_success',
  'login_refund',
  'reapply',
] as const

/** Why a session ended early (auth.md 10). */
export type RevokeReason =
  | 'logout'
  | 'replay'
  | 'binding'
  | 'suspicious'
  | 'password_changed'
  | 'user_disabled'
  | 'user_deleted'
  | 'admin'
  | 'evicted'
  | 'credential_revoked'

/** Who ends a session, for the event and the audit log. */
export type Cause = { actor_type: 'user' | 'service' | 'system'; actor_id?: string | undefined; request_id: string }

/** How the session's person was authenticated (RFC 8176); `fed`: by a provider. */
export type Method = 'pwd' | 'otp' | 'hwk' | 'swk' | 'mfa' | 'fed'

/** A session record. Times are microseconds since the epoch. */
export type SessionRecord = {
  session_id: string
  user_id: string
  username: string
  mode: 'json' | 'cookie' | 'machine'
  state: 'pending' | 'active'
  refresh_token_hash: string | null
  created_at: number
  expires_at: number
  last_used_at: number
  auth_time: number
  amr: Method[]
  user_agent: string | null
  ip_address: string | null
  metadata: Record<string, unknown> | null
  ua_family: string | null
  ip_prefix: string | null
  /** Keys of `osid:`, for a session that began at a provider. */
  indexes: string[] | null
  /** When that provider vouched for it, in seconds. */
  proved_at: number | null
  /** The version of the password that it proved, if it began with one. */
  password_version: number | null
  /** When it last ended its person's other sessions. */
  ended_others_at: number | null
}

export type NewSession = Pick<SessionRecord, 'session_id' | 'user_id' | 'username'> & {
  mode: 'json' | 'cookie'
  amr?: Method[]
  user_agent?: string | undefined
  ip_address?: string | undefined
  metadata?: string | undefined
  ua_hash?: string | undefined
  ua_family?: string | undefined
  ip_prefix?: string | undefined
  /** The version of the password that the login proved; absent for a session created by a service. */
  password_version?: number | undefined
  /** When an earlier request began this sign-in (microseconds of Redis): it is void if all sessions have ended since. */
  begun_at?: number
  /** The session that opens this one: the cap never evicts it. */
  keep_session_id?: string
} & Federated

/**
 * What a sign-in through a provider adds: the session's end, when the person was authenticated, when the provider said
 * so (seconds of its clock), and the keys by which a logout finds it.
 */
export type Federated = { max_s?: number; auth_time?: number; proved_at?: number; indexes?: string[] }

export type MachineSession = Pick<NewSession, 'session_id' | 'user_id' | 'username' | 'user_agent' | 'ip_address'> & {
  /** When its credential was presented: an end before that is over. */
  asked_ms: number
}
/** Longer than the lifetime of its tokens. */
const MACHINE_S = 960

/** A refresh token as stored: its hash, and the values that reproduce it byte for byte. */
export type Successor = { hash: string; succ_jti: string; succ_iat: string; succ_kid: string }
export type RepeatToken = { jti: string; iat: string; kid: string }
export type Rotation =
  | { outcome: 'rotated' | 'gone' | 'expired' | 'current' }
  | { outcome: 'retry'; repeat: RepeatToken }
  | { outcome: 'replay'; revoked: Revocation }

/** A user whose sessions end, and the ones to keep. `occurred_at`: microseconds since 1970 if the cause is not new. */
export type Kept = { user_id: string; keep_session_id?: string; password_version?: number; occurred_at?: number }

export type Attempt = { name: string; device?: string | undefined }
/** `failures`: of the bucket, with this attempt; `lock_now`: until when it locks the name (microseconds), or 0. */
export type Charge = Attempt & { bucket: string; lock_before: string; lock_now: string; failures: string }
export type LockoutSettings = { free: number; max_s: number; close_at: number }

type RotateInput = {
  user_id: string
  session_id: string
  retry_key_hash?: string | undefined
  ua_hash: string
  window_s: number
}

/** The session records in Redis. Each write is one script; durations and TTLs use Redis' clock. */
export const createStore = (
  redis: Redis,
  {
    prefix,
    wait_replicas,
    idle_s,
    observe,
  }: { prefix: string; wait_replicas: number; idle_s: number; observe?: ScriptObserver },
) => {
  const files = Object.fromEntries(NAMES.map((name) => [name, new URL(`../scripts/${name}.lua`, import.meta.url)]))
  const scripts = loadScripts(redis, files as Record<Name, URL>, observe)
  const run: Run = async <T>(name: Name, input: object) =>
    (await scripts[name]([], [prefix, JSON.stringify({ ...input, idle_s })])) as T

  /** Waits until this many replicas have every change so far, if the deployment requires it. */
  const replicated = async (): Promise<void> => {
    if (wait_replicas > 0 && (await redis.wait(wait_replicas, 300)) < wait_replicas)
      throw new Error(`fewer than ${wait_replicas} Redis replicas have the changes`)
  }
  const place = { redis, prefix, run, replicated }
  return guarded({
    ...sessionCalls(place),
    ...loginCalls(place, loadScripts(redis, { limit: LIMIT_SCRIPT }, observe)),
    reapply: (rows: { user_id: string; session_id: string; deny: boolean }[], epoch?: string) =>
      run<number>('reapply', { rows, ...(epoch !== undefined && { done: true, epoch }) }),
    replicated,
    hasEpoch: async () => (await redis.exists(`${prefix}auth:epoch`)) === 1,
    appendAudit: (row: string) => appendBounded(redis, `${prefix}auth:audit`, row),
  })
}
export type Store = ReturnType<typeof createStore>

const MOST_AUDITED = 100_000
/** Adds a row to a stream, whose oldest rows go if the relay has not stored them for long; returns how many went. */
const appendBounded = async (redis: Redis, stream: string, row: string): Promise<number> => {
  const add = redis.multi().xlen(stream).xadd(stream, 'MAXLEN', '~', MOST_AUDITED, '*', 'row', row).xlen(stream)
  const answers = (await add.exec()) ?? []
  for (const [error] of answers) if (error) throw error
  return Number(answers[0]?.[1]) + 1 - Number(answers[2]?.[1])
}

type Name = (typeof NAMES)[number]
type Run = <T>(name: Name, input: object) => Promise<T>
type Place = { redis: Redis; prefix: string; run: Run; replicated: () => Promise<void> }

const sessionCalls = ({ redis, prefix, run, replicated }: Place) => ({
  /** Creates a pending session; the oldest ones above `cap` are revoked as `evicted`. */
  create: async (session: NewSession, cap: number, cause: Cause) => {
    const [created_at, expires_at, ...evicted] = await run<[string, string, ...string[][]]>('create_session', {
      ...session,
      ...cause,
      cap,
    })
    return { created_at: Number(created_at), expires_at: Number(expires_at), evicted: evicted.map(revocationOf) }
  },
  /** The session of a machine's credential, for as long as its tokens live. Returns false if it was just revoked. */
  openMachine: async (session: MachineSession) => {
    const outcome = await run<string>('machine_session', { ...session, ttl_s: MACHINE_S })
    await replicated()
    return outcome === 'ok'
  },
  /** Gives a pending session its first refresh token. Returns false if it was ended meanwhile. */
  activate: async (key: { user_id: string; session_id: string }, successor: Successor) =>
    (await run<string>('activate_session', { ...key, ...successor })) === 'ok',
  get: async (user_id: string, session_id: string): Promise<SessionRecord | undefined> =>
    recordOf(await redis.hgetall(`${prefix}sess:{${user_id}}:${session_id}`)),
  /** The active sessions of a user, newest first. */
  list: async (user_id: string): Promise<SessionRecord[]> => {
    const ids = await redis.zrevrange(`${prefix}usess:{${user_id}}`, 0, -1)
    if (ids.length === 0) return []
    const reads = redis.pipeline()
    for (const id of ids) reads.hgetall(`${prefix}sess:{${user_id}}:${id}`)
    const rows = (await reads.exec()) ?? []
    const found = rows.map(([error, row]) => {
      if (error) throw error
      return recordOf(row as Record<string, string>)
    })
    return found.filter((record) => record?.state === 'active') as SessionRecord[]
  },
  /** Does not rotate without its replicas: no client could be told. The caller waits for them again, having noted a replay. */
  rotate: async (input: RotateInput & { presented: string } & Partial<Successor> & Cause) => {
    if (input.hash) await replicated()
    return rotationOf(await run('rotate', input))
  },
  rotateCurrent: async (input: RotateInput & Partial<Successor> & { password_version?: number }) => {
    if (input.hash) await replicated()
    const rotation = rotationOf(await run('rotate_current', input))
    await replicated()
    return rotation
  },
  /** Ends a session. Returns `undefined` if it had already ended. The caller notes it, then waits for the replicas. */
  revoke: async (input: { session_id: string; user_id?: string; reason: RevokeReason } & Cause) => {
    const [outcome, event] = await run<[string, string[]?]>('revoke_session', input)
    return outcome === 'revoked' && event ? revocationOf(event) : undefined
  },
  /**
   * Ends all sessions of a user except the kept one and those that proved this password version or a newer one. The
   * caller notes it, then waits for the replicas.
   */
  revokeUser: async (input: Kept & { reason: RevokeReason } & Cause) =>
    (await run<string[][]>('revoke_user', input)).map(revocationOf),
  /**
   * Records when, how and from which client the person reauthenticated. Returns all the session's methods; `undefined` if
   * it ended.
   */
  touchAuthTime: async (
    key: { user_id: string; session_id: string },
    auth_time: number,
    amr: Method[] = [],
    { ua_family, ip_prefix }: Pick<NewSession, 'ua_family' | 'ip_prefix'> = {},
  ) => {
    const methods = await run<string>('touch_auth_time', { ...key, auth_time, amr, ua_family, ip_prefix })
    return methods === 'gone' ? undefined : methodsOf(methods)
  },
  /** Ends this access token, and all of the session whose authentication is older than this time (seconds). */
  endOlder: async (input: { user_id: string; session_id: string; before: number; jti?: string }) => {
    await run('end_older', input)
    await replicated()
  },
})

/** Logins, and the limits charged by logins and other calls. */
const loginCalls = ({ redis, prefix, run }: Place, limits: Record<'limit', Script>) => ({
  /** Charges a login attempt; for a locked name, returns the milliseconds to wait: none if only unlocking opens it. */
  beginLogin: async (
    attempt: Attempt,
    settings: LockoutSettings,
  ): Promise<{ charge: Charge } | { locked_ms: number | undefined }> => {
    const reply = await run<(string | number)[]>('login_begin', { ...attempt, ...settings })
    if (reply[0] === 'locked') return { locked_ms: reply[1] === 'closed' ? undefined : Number(reply[1]) }
    const [, bucket, lock_before, lock_now, failures] = reply.map(String) as [string, string, string, string, string]
    return { charge: { ...attempt, bucket, lock_before, lock_now, failures } }
  },
  loginSucceeded: (charge: Charge) => run('login_success', charge),
  refundLogin: (charge: Charge, { close_at }: LockoutSettings) => run('login_refund', { ...charge, close_at }),
  /** How many names failed from this network within so many seconds, this one too; a good estimate. */
  namesFailing: async (network: string, name: string, seconds: number): Promise<number> => {
    const key = `${prefix}spray:${network}`
    const replies = await redis.multi().pfadd(key, name).expire(key, seconds, 'NX').pfcount(key).exec()
    return Number(replies?.at(-1)?.[1] ?? 0)
  },
  unlock: (name: string) => redis.del(`${prefix}lock:name:${name}`),

  /** Charges one or more buckets, all or none. A number: the milliseconds to wait. */
  limit: async (buckets: readonly { key: string; rate: Rate }[], block?: { key: string; seconds: number }) => {
    const keys = [`${prefix}lim:block:${block?.key ?? 'none'}`, ...buckets.map(({ key }) => `${prefix}lim:${key}`)]
    const args = [block?.seconds ?? 0, ...buckets.flatMap(({ rate }) => rateArguments(rate))]
    const [outcome, ms] = (await limits.limit(keys, args)) as [string, number]
    return outcome === 'ok' ? undefined : ms
  },
})

/** Turns an outage of Redis into a 503 in every call. */
export const guarded = <O extends Record<string, (...args: never[]) => Promise<unknown>>>(calls: O): O => {
  const wrap =
    (call: (...args: never[]) => Promise<unknown>) =>
    async (...args: never[]) => {
      try {
        return await call(...args)
      } catch (error) {
        if (error instanceof AppError || !isRedisOutage(error)) throw error
        throw unavailable('The session store does not answer.', error, 'unavailable')
      }
    }
  return Object.fromEntries(Object.entries(calls).map(([name, call]) => [name, wrap(call)])) as O
}

const pairs = (flat: string[]): Record<string, string> => {
  const fields: Record<string, string> = {}
  for (let i = 0; i + 1 < flat.length; i += 2) fields[flat[i] as string] = flat[i + 1] as string
  return fields
}

const revocationOf = (flat: string[]): Revocation => {
  const fields = pairs(flat)
  return { ...fields, request_id: fields.request_id || null, actor_id: fields.actor_id || null } as Revocation
}

const rotationOf = (reply: unknown): Rotation => {
  const [outcome, ...more] = reply as [Rotation['outcome'], ...unknown[]]
  if (outcome === 'replay') return { outcome, revoked: revocationOf(more[0] as string[]) }
  if (outcome === 'retry') {
    const [jti, iat, kid] = more as [string, string, string]
    return { outcome, repeat: { jti, iat, kid } }
  }
  return { outcome }
}

/** A session of an older release has no methods: it began with a password. */
const methodsOf = (text = 'pwd') => text.split(' ') as Method[]

const recordOf = (fields: Record<string, string>): SessionRecord | undefined => {
  if (fields.session_id === undefined) return undefined
  return {
    session_id: fields.session_id,
    user_id: fields.user_id ?? '',
    username: fields.username ?? '',
    mode: fields.mode === 'cookie' || fields.mode === 'machine' ? fields.mode : 'json',
    state: fields.state === 'active' ? 'active' : 'pending',
    refresh_token_hash: fields.refresh_token_hash ?? null,
    created_at: Number(fields.created_at),
    expires_at: Number(fields.expires_at),
    last_used_at: Number(fields.last_used_at),
    auth_time: Number(fields.auth_time),
    amr: methodsOf(fields.amr),
    // A machine's script stores what is unknown as an empty text.
    user_agent: fields.user_agent || null,
    ip_address: fields.ip_address || null,
    metadata: fields.metadata ? (JSON.parse(fields.metadata) as Record<string, unknown>) : null,
    ua_family: fields.ua_family ?? null,
    ip_prefix: fields.ip_prefix ?? null,
    indexes: fields.indexes ? (JSON.parse(fields.indexes) as string[]) : null,
    proved_at: fields.proved_at ? Number(fields.proved_at) : null,
    password_version: fields.password_version ? Number(fields.password_version) : null,
    ended_others_at: fields.ended_others_at ? Number(fields.ended_others_at) : null,
  }
}
