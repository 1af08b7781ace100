import type { Redis } from 'ioredis'
import { isRedisOutage, LIMIT_SCRIPT, loadScripts, type ScriptObserver } from '../../../db/redis/scripts.ts'
import { AppError } from '../../shared/errors.ts'
import { type AccessClaims, TOKEN_KINDS } from '../../shared/jwt/claims.ts'
import type { Logger } from '../../shared/telemetry.ts'
import { type Rate, rateArguments } from '../../shared/web/rates.ts'
import type { Kind, LimitClass } from '../routes/table.ts'

export type Bucket = { key: string; rate: Rate }
/** The claims by which Redis may deny a token. */
export type TokenFacts = Pick<AccessClaims, 'sub' | 'session_id' | 'iat' | 'auth_time' | 'jti'>
export type GateInput = { bucket: Bucket; claims: TokenFacts }
/** The verdict of Redis on a request; undefined while Redis is away. */
export type Verdict = { outcome: 'ok' | 'denied' | 'limited'; wait_ms: number }

const OPEN_MS = 1000
const FAILURES = 5
/** Tokens per script that asks about many, so that it keeps no request waiting. */
const MANY = 100

/** Redis as the gateway sees it. While away, calls return `undefined`; after five failures none tries for a second. */
export const createRedisGate = (
  redis: Redis,
  {
    prefix,
    observe,
    monotonic = () => performance.now(),
  }: { prefix: string; observe?: ScriptObserver; monotonic?: () => number },
) => {
  const files = {
    limit: LIMIT_SCRIPT,
    gate: new URL('../scripts/gate.lua', import.meta.url),
    ended: new URL('../scripts/ended.lua', import.meta.url),
  }
  const scripts = loadScripts(redis, files, observe)
  let failures = 0
  let open_until = 0

  const ask = async <T>(run: () => Promise<unknown>): Promise<T | undefined> => {
    if (monotonic() < open_until) return undefined
    try {
      const reply = (await run()) as T
      failures = 0
      return reply
    } catch (error) {
      if (!isRedisOutage(error)) throw error
      failures += 1
      if (failures >= FAILURES) open_until = monotonic() + OPEN_MS
      return undefined
    }
  }

  const judge = async (run: () => Promise<unknown>): Promise<Verdict | undefined> => {
    const reply = await ask<[Verdict['outcome'], number]>(run)
    return reply && { outcome: reply[0], wait_ms: reply[1] }
  }

  const denialKeys = ({ sub, session_id }: TokenFacts) => [
    `${prefix}deny:{${sub}}:${session_id}`,
    `${prefix}ub:{${sub}}`,
  ]
  const sessionKeys = ({ sub, session_id }: TokenFacts) => [
    `${prefix}sid:${session_id}`,
    `${prefix}old:{${sub}}:${session_id}`,
  ]
  const factsOf = ({ sub, iat, auth_time, jti }: TokenFacts) => [sub, iat, auth_time, jti]

  return {
    /** Charges all buckets or none; refuses at once while `block` is set. */
    limit: (buckets: readonly Bucket[], block = 'none') => {
      const keys = [`${prefix}lim:block:${block}`, ...buckets.map(({ key }) => `${prefix}lim:${key}`)]
      return judge(() => scripts.limit(keys, [0, ...buckets.flatMap(({ rate }) => rateArguments(rate))]))
    },
    /** Limits, the denylist, the user's revoked-before and the session's ended tokens in one round trip. */
    gate: ({ bucket, claims }: GateInput) => {
      const keys = [`${prefix}lim:${bucket.key}`, ...denialKeys(claims)]
      return judge(() =>
        scripts.gate(keys, [...rateArguments(bucket.rate), ...sessionKeys(claims), ...factsOf(claims)]),
      )
    },
    /** Which of these tokens are denied now. While Redis is away, none is known to be. */
    denied: async <T extends TokenFacts>(tokens: readonly T[]): Promise<T[]> => {
      const found: T[] = []
      for (let at = 0; at < tokens.length; at += MANY) {
        const some = tokens.slice(at, at + MANY)
        const facts = some.flatMap((token) => [...denialKeys(token), ...sessionKeys(token), ...factsOf(token)])
        const ended = await ask<number[]>(() => scripts.ended([], facts))
        found.push(...some.filter((_, index) => ended?.[index] === 1))
      }
      return found
    },
  }
}
export type RedisGate = ReturnType<typeof createRedisGate>

const MAX_LOCAL = 50_000

/** Limits of this process alone, at half the rate, for use while Redis is away. */
export const createLocalLimits = (monotonic: () => number = () => performance.now()) => {
  const arrivals = new Map<string, number>()
  /** Milliseconds to wait; undefined if the request may pass. */
  return (buckets: readonly Bucket[]): number | undefined => {
    const now = monotonic()
    const next = buckets.map(({ key, rate }) => {
      const interval = (2000 * rate.seconds) / rate.count
      const tat = Math.max(arrivals.get(key) ?? 0, now) + interval
      return { key, tat, wait: tat - interval * Math.max(1, rate.burst / 2) - now }
    })
    const wait = Math.max(0, ...next.map((bucket) => bucket.wait))
    if (wait > 0) return wait
    for (const { key, tat } of next) {
      arrivals.delete(key)
      if (arrivals.size >= MAX_LOCAL) arrivals.delete(arrivals.keys().next().value as string)
      arrivals.set(key, tat)
    }
    return undefined
  }
}
export type LocalLimits = ReturnType<typeof createLocalLimits>

const CAP = 100_000
const SWEEP_MS = 30_000
/** How long a denial must be remembered: the life of an access token plus the spread of clocks. */
export const DENY_MS = 960_000

type DenylistDeps = { onDenied?: (session_id: string) => void; onDropped?: () => void }

/**
 * The revoked sessions that this process knows, for the time that Redis is away. Revocation is final, so order and
 * repeats do not matter. Bounded: above the cap the oldest entry is dropped.
 */
export const createDenylist = ({ onDenied, onDropped }: DenylistDeps = {}) => {
  const until = new Map<string, number>()
  const sweep = setInterval(() => {
    const now = Date.now()
    for (const [session_id, end] of until) if (end < now) until.delete(session_id)
  }, SWEEP_MS).unref()
  return {
    add: (session_id: string, access_valid_until: string | undefined): void => {
      const end = Date.parse(access_valid_until ?? '')
      const last = Number.isFinite(end) ? end + DENY_MS - 1000 * TOKEN_KINDS.access.lifetime_s : Date.now() + DENY_MS
      if (last < Date.now()) return
      until.delete(session_id)
      if (until.size >= CAP) {
        until.delete(until.keys().next().value as string)
        onDropped?.()
      }
      until.set(session_id, last)
      onDenied?.(session_id)
    },
    /** Whether its tokens are denied. A machine's credential may count again: then those issued since are not. */
    has: ({ session_id, cm, iat }: Pick<AccessClaims, 'session_id' | 'cm' | 'iat'>): boolean => {
      const last = until.get(session_id)
      return last !== undefined && (cm !== 'machine' || iat * 1000 <= last - DENY_MS)
    },
    size: () => until.size,
    close: () => clearInterval(sweep),
  }
}
export type Denylist = ReturnType<typeof createDenylist>

const SERVERS = ['postgres', 'redis', 'nats', 'temporal'] as const
const READ_MS = 5000
/** Percent of free space: below the first it is reported, below the others acts are refused (reliability.md 2.2). */
export const LOW = 10
export const REFUSE_ARMING = 5
export const REFUSE_ALL = 2

const LOGINS: ReadonlySet<LimitClass> = new Set(['token', 'login', 'page', 'sso'])

/** Whether an act is refused at this share of free disk: first arming and writing, finally everything but reading. */
const isRefused = (free: number | undefined, { kind, class: limit }: { kind: Kind; class: LimitClass }): boolean => {
  if (free === undefined || free >= REFUSE_ARMING) return false
  const arming = kind === 'A' || kind === 'W'
  // What runs must be able to report; without its heartbeats it would be interrupted.
  if (limit === 'work') return arming
  return free < REFUSE_ALL ? kind !== 'R' || LOGINS.has(limit) : arming
}

/**
 * How full the servers' disks are, as their operator reports every 10 s in `ops:disk:<server>` (percent free, 60 s of
 * life). Silence is normal. A full disk stops a database for good, so acts are refused earlier.
 */
export const createDiskWatch = ({ redis, prefix, log }: { redis: Redis; prefix: string; log: Logger }) => {
  const keys = SERVERS.map((server) => `${prefix}ops:disk:${server}`)
  let free: number | undefined
  const read = async () => {
    const values = await redis.mget(keys).catch(() => undefined)
    if (!values) return
    const before = free
    const known = values.flatMap((value) => (value === null || !Number.isFinite(Number(value)) ? [] : [Number(value)]))
    free = known.length > 0 ? Math.min(...known) : undefined
    if (free !== undefined && free < LOW && (before ?? 100) >= LOW)
      log.error({ free_percent: free }, 'the disk under a server is almost full')
  }
  const timer = setInterval(() => void read(), READ_MS).unref()
  return {
    read,
    /** In percent; NaN while no one reports it. */
    free: (): number => free ?? Number.NaN,
    /** Throws if the act must leave the disk its last space. */
    refuse: (route: { kind: Kind; class: LimitClass }): void => {
      if (isRefused(free, route)) throw diskFull()
    },
    /** For readiness: low is degraded, not unready, which would take stopping away too. */
    check: async () => {
      if (free !== undefined && free < LOW) throw new Error(`${free} % of the disk under a server is free`)
    },
    close: () => clearInterval(timer),
  }
}
export type DiskWatch = ReturnType<typeof createDiskWatch>

const diskFull = () =>
  new AppError(
    'unavailable',
    'overloaded',
    'The disk under a server is almost full: writes are refused until there is space.',
    {
      retryable: true,
      retry_after_ms: 5000,
      hint: 'Contact the operator of the platform. Repeat the same request with the same Idempotency-Key later.',
    },
  )
