import type { Redis } from 'ioredis'
import { isRedisOutage, LIMIT_SCRIPT, loadScripts, type ScriptObserver } from '../../../db/redis/scripts.ts'
import type { AccessClaims } from '../../shared/jwt/claims.ts'
import { type Rate, rateArguments } from '../../shared/web/rates.ts'

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
