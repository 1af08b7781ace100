import { hostname } from 'node:os'
import { Redis } from 'ioredis'
import { redisLink } from '../links.ts'
import type { Logger } from '../telemetry.ts'

/** What a process tells of itself for GET /v1/platform/health (reliability.md 2.3). */
export type Part = {
  /** Undefined: no one is told. */
  redis_url: string | undefined
  /** That of AUTH__REDIS__PREFIX. */
  prefix: string
  /** The answer of /health/ready. */
  read: () => Promise<{ status: string; checks: object }>
  /** How far behind it is, in numbers of its own. */
  lags?: () => Promise<Record<string, number>>
}

const EVERY_MS = 10_000
/** Longer than the silence after which a part counts as gone, so that its absence can be seen for a while. */
export const PART_TTL_S = 600
export const PART_SILENT_S = 30

/** Writes `ops:part:<app>:<instance>` every 10 s. Best effort: nothing waits for it, a miss is made up for by the next. */
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
  redis.on('error', () => {}) // each app's own check of Redis tells
  const key = `${prefix}ops:part:${app}:${hostname()}-${process.pid}`
  let since = new Date().toISOString()
  let status: string | undefined

  const tell = async () => {
    const [answer, behind] = await Promise.all([read(), lags?.().catch(() => ({})) ?? {}])
    if (answer.status !== status) since = new Date().toISOString()
    status = answer.status
    await redis.set(key, JSON.stringify({ ...answer, since, lags: behind }), 'EX', PART_TTL_S)
  }
  const tellSoon = () => void tell().catch((error) => log.debug({ err: error }, 'what this part says is not heard'))
  redis.on('ready', tellSoon)
  const timer = setInterval(tellSoon, EVERY_MS)
  return {
    /** It ends in order: it is gone at once instead of silent. */
    stop: async () => {
      clearInterval(timer)
      await redis.del(key).catch(() => {})
      redis.disconnect()
    },
  }
}
