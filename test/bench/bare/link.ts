import { generateKeyPairSync, sign, verify } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Pool } from 'undici'
import { createRedis } from '../../../db/redis/redis.ts'

/**
 * One link of a refresh through as many processes as the product has, which only pass messages. It uses the same HTTP
 * server and client, one Redis command where the product has a script, one verification, two signatures, and no rules.
 * The cost of the chain is the least that such an architecture can cost here. Arguments: the role, Redis, the next
 * links. Sends its port.
 */
const [role = '', redis_url = '', ...next] = process.argv.slice(2)
const pools = next.map((url) => new Pool(url, { connections: 64, pipelining: 1 }))
const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const claims = Buffer.from('x'.repeat(500))
const signature = sign('sha256', claims, privateKey)
const redis = createRedis(redis_url, { name: 'bare-link' })
await redis.connect()

const count = () => redis.incr(`bare-link-${role}`)
const post = async (pool: Pool, body: unknown) => {
  const headers = { 'content-type': 'application/json' }
  const reply = await pool.request({ method: 'POST', path: '/', headers, body: JSON.stringify(body) })
  return reply.body.json()
}

const ROLES: Record<string, (body: unknown) => Promise<unknown>> = {
  gateway: async (body) => {
    await count()
    return post(pools[0] as Pool, body)
  },
  session: async (body) => {
    verify('sha256', claims, publicKey, signature)
    const user = await post(pools[0] as Pool, { user_id: 'u' })
    const tokens = await post(pools[1] as Pool, { user, body })
    await count()
    return tokens
  },
  identity: async () => ({ user_id: 'u', roles: ['viewer', 'operator'], version: 1 }),
  token: async () => {
    const made = () => sign('sha256', claims, privateKey).toString('base64url')
    return { access_token: made(), refresh_token: made() }
  },
}

const server = createServer({ keepAliveTimeout: 75_000 }, async (req, res) => {
  const chunks: Buffer[] = []
  for await (const chunk of req) chunks.push(chunk)
  const answer = JSON.stringify(await ROLES[role]?.(JSON.parse(Buffer.concat(chunks).toString())))
  res.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(answer) })
  res.end(answer)
})
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))
process.on('disconnect', () => process.exit())
