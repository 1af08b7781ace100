import { Redis } from 'ioredis'

/** Connects to Redis: no queue while it is away, one retry, so that an outage answers at once (reliability.md 2.2). */
export const createRedis = (url: string, { name, timeout_ms = 500 }: { name: string; timeout_ms?: number }): Redis => {
  const redis = new Redis(url, {
    connectionName: name,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 1,
    commandTimeout: timeout_ms,
    connectTimeout: 2000,
    lazyConnect: true,
    retryStrategy: (attempt) => Math.min(100 * attempt, 2000),
  })
  redis.on('error', () => {}) // reported by the readiness check and by each failed command
  return redis
}
