import { connect } from 'node:net'
import type { Redis } from 'ioredis'
import { checkRedis } from '../../db/redis/redis.ts'
import { type Checks, holds } from '../shared/http/health.ts'
import type { Feed } from './guard/revocations.ts'
import type { Upstreams } from './proxy/proxy.ts'

const PROBE_MS = 500

type Checked = { jwks: { isReady: () => boolean }; redis: Redis; feed: Feed; upstreams: Upstreams }

/** Unready without keys, or without any way to learn of revocations; degraded while another dependency is away. */
export const createChecks = ({ jwks, redis, feed, upstreams }: Checked): Checks => ({
  keys: { critical: true, run: holds(jwks.isReady, 'no keys of token yet') },
  revocations: { critical: true, run: async () => (feed.isLive() ? undefined : checkRedis(redis)) },
  redis: { critical: false, run: () => checkRedis(redis) },
  nats: { critical: false, run: holds(feed.isLive, 'the feed is not live') },
  ...Object.fromEntries(
    Object.entries(upstreams).map(([name, url]) => [name, { critical: false, run: () => probe(url) }]),
  ),
})

const probe = (url: string) =>
  new Promise<void>((resolve, reject) => {
    const { hostname, port, protocol } = new URL(url)
    const socket = connect({
      host: hostname,
      port: Number(port || (protocol === 'https:' ? 443 : 80)),
      timeout: PROBE_MS,
    })
    socket.on('connect', () => resolve(void socket.destroy()))
    socket.on('timeout', () => socket.destroy(new Error(`no answer in ${PROBE_MS} ms`)))
    socket.on('error', reject)
  })
