import { hostname } from 'node:os'
import { Redis } from 'ioredis'
import { redisLink } from '../links.ts'
import type { Logger } from '../telemetry.ts'

/** A process's report on itself for GET /v1/platform/health (reliability.md 2.3). */
export type Part = {
  /** Undefined: no report is written. */
  redis_url: string | undefined
  /** The prefix of AUTH__REDIS__PREFIX. */
  prefix: string
  /** The answer of /health/ready. */
  read: () => Promise<{ status: string; checks: object }>
  /** How far behind it is, in its own numbers. */
  lags?: () => Promise<Record<string, number>>
}

const EVERY_MS = 10_000
/** Longer than the silence after which a part counts as gone, so that its absence stays visible for a while. */
export const PART_TTL_S = 600
export const PART_SILENT_S = 30

/** Writes `ops:part:<app>:<instance>` every 10 s. Best effort: no one waits, and the next write makes up for a miss. */
export const reportPart = (app: string, { redis_url, prefix, read, lags }: Part, log: Logger) => {
  if (!redis_url) return { stop: async () => {} }
  const redis = new Redis(redis_url, {
    ...redisLink(redis_url),
    connectionName: `${app}-part`,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    commandTimeout: 500,
    retryStrategy: (attempt) => Math.min(100 * attempt, 2000),
  })
  redis.on('error', () => {}) // each app's own check of Redis reports errors
  const key = `${prefix}ops:part:${app}:${hostname()}-${process.pid}`
  let since = new Date().toISOString()
  let status: string | undefined

  const tell = async () => {
    const [answer, behind] = await Promise.all([read(), lags?.().catch(() => ({})) ?? {}])
    if (answer.status !== status) since = new Date().toISOString()
    status = answer.status
    await redis.set(key, JSON.stringify({ ...answer, since, lags: behind }), 'EX', PART_TTL_S)
  }
  const tellSoon = () =>
    void tell().catch((error) => log.debug({ err: error }, 'the state of this part cannot be published'))
  redis.on('ready', tellSoon)
  const timer = setInterval(tellSoon, EVERY_MS)
  return {
    /** A part that ends in order disappears at once instead of becoming silent. */
    stop: async () => {
      clearInterval(timer)
      await redis.del(key).catch(() => {})
      redis.disconnect()
    },
  }
}
