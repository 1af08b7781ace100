import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Pool } from 'undici'
import { createRedis } from '../../../db/redis/redis.ts'

/**
 * The baseline of the gateway: a pass-through on the same HTTP server and client that knows no token, limit,
 * revocation, header rule, metric or log. Sends its port. Its arguments are the upstream and, to count each request
 * before it passes, Redis.
 */
const redis = process.argv[3] === undefined ? undefined : createRedis(process.argv[3], { name: 'bare-proxy' })
await redis?.connect()
const pool = new Pool(process.argv[2] ?? '', { connections: 128, pipelining: 1 })
const server = createServer({ keepAliveTimeout: 75_000 }, async (req, res) => {
  await redis?.incr('bare-proxy')
  const { host, connection, ...headers } = req.headers
  pool.dispatch(
    { method: req.method as 'GET', path: req.url ?? '/', headers, body: null },
    {
      onRequestStart: () => {},
      onResponseStart: (_controller, status, upstream) => void res.writeHead(status, upstream),
      onResponseData: (_controller, chunk) => void res.write(chunk),
      onResponseEnd: () => void res.end(),
      onResponseError: () => void res.destroy(),
    },
  )
})
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))
process.on('disconnect', () => process.exit())
