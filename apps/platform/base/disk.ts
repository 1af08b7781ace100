import { statfsSync } from 'node:fs'
import { createRedis } from '../../../db/redis/redis.ts'

const SERVERS = ['postgres', 'redis', 'nats', 'temporal']
const WRITE_MS = 10_000
const LIFE_S = 60

/** The percentages at which the gateway refuses are meant for this size: 5 % of a larger disk is plenty. */
const LARGEST = 100 * 1024 ** 3

/** The percentage of a disk of `size` bytes that is free. */
export const percentOf = (free: number, size: number): number => {
  const whole = Math.min(size, LARGEST)
  return whole === 0 ? 100 : Math.min(100, Math.round((1000 * free) / whole) / 10)
}

/** The free space on the disk of a folder, for ordinary users. */
export const freeOn = (dir: string): { bytes: number; percent: number } => {
  const { bavail, blocks, bsize } = statfsSync(dir)
  return { bytes: bavail * bsize, percent: percentOf(bavail * bsize, blocks * bsize) }
}

/**
 * Writes every 10 s how much of the servers' disk is free, to `ops:disk:<server>`, so that the gateway can refuse in
 * time (reliability.md 2.2). Here all servers share one disk; in production a sidecar beside each server reports it.
 */
export const watchDisk = ({ dir, redis_url, prefix }: { dir: string; redis_url: () => string; prefix: string }) => {
  const connect = (url: string) => ({ url, redis: createRedis(url, { name: 'platform-disk' }) })
  let at = connect(redis_url())
  const write = async () => {
    if (at.url !== redis_url()) {
      at.redis.disconnect()
      at = connect(redis_url())
    }
    const { redis } = at
    if (redis.status === 'wait') await redis.connect()
    const writes = redis.pipeline()
    for (const server of SERVERS) writes.set(`${prefix}ops:disk:${server}`, freeOn(dir).percent, 'EX', LIFE_S)
    await writes.exec()
  }
  const tell = () => void write().catch(() => {}) // If Redis is away, the next round writes it.
  tell()
  const timer = setInterval(tell, WRITE_MS)
  return {
    stop: () => {
      clearInterval(timer)
      at.redis.disconnect()
    },
  }
}
