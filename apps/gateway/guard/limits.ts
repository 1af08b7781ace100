import type { Redis } from 'ioredis'
import { isRedisOutage, LIMIT_SCRIPT, loadScripts, type ScriptObserver } from '../../../db/redis/scripts.ts'
import type { AccessClaims } from '../../shared/jwt/claims.ts'
import { type Rate, rateArguments } from '../../shared/web/rates.ts'

export type Bucket = { key: string; rate: Rate }
export type GateInput = {
  bucket: Bucket
  claims: Pick<AccessClaims, 'sub' | 'session_id' | 'iat' | 'auth_time' | 'jti'>
}
/** The verdict of Redis on a request; undefined while Redis is away. */
export type Verdict = { outcome: 'ok' | 'denied' | 'limited'; wait_ms: number }

const OPEN_MS = 1000
const FAILURES = 5

/** Redis as the gateway sees it. While away, calls return `undefined`; after five failures none tries for a second. */
export const createRedisGate = (
  redis: Redis,
  {
    prefix,
    observe,
    monotonic = () => performance.now(),
  }: { prefix: string; observe?: ScriptObserver; monotonic?: () => number },
) => {
  const files = { limit: LIMIT_SCRIPT, gate: new URL('../scripts/gate.lua', import.meta.url) }
  const scripts = loadScripts(redis, files, observe)
  let failures = 0
  let open_until = 0

  const ask = async (run: () => Promise<unknown>): Promise<Verdict | undefined> => {
    if (monotonic() < open_until) return undefined
    try {
      const [outcome, wait_ms] = (await run()) as [Verdict['outcome'], number]
      failures = 0
      return { outcome, wait_ms }
    } catch (error) {
      if (!isRedisOutage(error)) throw error
      failures += 1
      if (failures >= FAILURES) open_until = monotonic() + OPEN_MS
      return undefined
    }
  }

  return {
    /** Charges all buckets or none; refuses at once while `block` is set. */
    limit: (buckets: readonly Bucket[], block = 'none') => {
      const keys = [`${prefix}lim:block:${block}`, ...buckets.map(({ key }) => `${prefix}lim:${key}`)]
      return ask(() => scripts.limit(keys, [0, ...buckets.flatMap(({ rate }) => rateArguments(rate))]))
    },
    /** Limits, the denylist, the user's revoked-before and the session's ended tokens in one round trip. */
    gate: ({ bucket, claims: { sub: user_id, session_id, iat, auth_time, jti } }: GateInput) => {
      const keys = [
        `${prefix}lim:${bucket.key}`,
        `${prefix}deny:{${user_id}}:${session_id}`,
        `${prefix}ub:{${user_id}}`,
      ]
      const session = `${prefix}sid:${session_id}`
      const old = `${prefix}old:{${user_id}}:${session_id}`
      return ask(() => scripts.gate(keys, [...rateArguments(bucket.rate), iat, user_id, session, old, auth_time, jti]))
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
