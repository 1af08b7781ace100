import type { Duplex } from 'node:stream'
import { Redis } from 'ioredis'
import { type Links, redisLink } from '../../apps/shared/links.ts'

/** A server that has left the network closes no connection; after this long without an answer it counts as gone. */
const SILENT_MS = 6000

/** Connects to Redis. No queue and one retry: commands fail at once during an outage (reliability.md 2.2). */
export const createRedis = (
  url: string,
  { name, timeout_ms = 500, links }: { name: string; timeout_ms?: number; links?: Links },
): Redis => {
  const redis = new Redis(url, {
    ...redisLink(url, links),
    connectionName: name,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 1,
    commandTimeout: timeout_ms,
    connectTimeout: 2000,
    lazyConnect: true,
    retryStrategy: (attempt) => Math.min(100 * attempt, 2000),
    // The server has become a replica: the address leads to the new primary, but only for a new connection.
    reconnectOnError: ({ message }) => message.startsWith('READONLY'),
  })
  redis.on('connect', () => {
    leaveSilent(redis)
    writeTogether(redis)
  })
  redis.on('error', () => {}) // The readiness check and each failed command report it.
  return redis
}

/** Rejects unless Redis answers and accepts writes; leaves a server that has become a replica. */
export const checkRedis = async (redis: Redis): Promise<void> => {
  if (!(await redis.info('replication')).includes('role:slave')) return
  redis.disconnect(true)
  throw new Error('this server is a replica: its address must lead to the primary')
}

/**
 * Ends a connection on which a command was sent and no byte came back. Otherwise the client would wait a quarter of an
 * hour for TCP to give up, although the Sentinels have named another primary. The client's own `socketTimeout` would
 * also end the next connection, because its timer outlives the first.
 */
const leaveSilent = ({ stream }: { stream: Duplex }): void => {
  let silence: NodeJS.Timeout | undefined
  const asked = () => {
    silence ??= setTimeout(() => stream.destroy(new Error('Redis is silent')), SILENT_MS).unref()
  }
  const heard = () => {
    clearTimeout(silence)
    silence = undefined
  }
  const write = stream.write.bind(stream) as typeof stream.write
  stream.write = ((...args: Parameters<typeof stream.write>) => {
    asked()
    return write(...args)
  }) as typeof stream.write
  stream.on('data', heard)
  stream.once('close', heard)
  // The client has introduced itself before it reports the connection.
  asked()
}

/** Sends the commands of one event loop turn at once: under load a system call each costs more than the command. */
const writeTogether = ({ stream }: { stream: Duplex }): void => {
  const write = stream.write.bind(stream) as typeof stream.write
  const release = () => stream.uncork()
  stream.write = ((...args: Parameters<typeof stream.write>) => {
    if (stream.writableCorked === 0) {
      stream.cork()
      setImmediate(release)
    }
    return write(...args)
  }) as typeof stream.write
}
