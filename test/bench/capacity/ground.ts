import { get, type IncomingMessage } from 'node:http'
import { Redis } from 'ioredis'
import { Pool } from 'undici'
import { ensurePerson, readDemo } from '../../../apps/platform/demo/accounts.ts'
import type { Account, Person } from '../../../apps/platform/demo/client.ts'
import { uuidv7 } from '../../../apps/shared/ids.ts'
import type { Stack } from '../../support/stack.ts'
import { login, signIn, type Tokens } from '../auth/clients.ts'
import { platformCpuSince, platformMemory } from '../lib/processes.ts'

/** The platform, its people, and a token that is never about to expire. */
export type Ground = {
  gateway: Pool
  users: { username: string; password: string }[]
  token: () => string
  close: () => Promise<void>
}

const RENEWED_MS = 300_000

const DEMO = 3
/** She watches streams. Each person has at most a hundred sessions; the oldest ends for a new one. */
const WATCHES = DEMO
/**
 * More people than two cores can sign in within half a minute, because the result of a hash is remembered that long for
 * the same password.
 */
const ARRIVING = 300
export const arrives = (turn: number): number => DEMO + 1 + (turn % ARRIVING)
const personOf = (username: string): Account => ({ username, password: `Bench-1-${uuidv7()}`, roles: ['viewer'] })

export const openGround = async (stack: Stack, admin: Person): Promise<Ground> => {
  const more = ['watches', ...Array.from({ length: ARRIVING }, (_, n) => `arrives-${n}`)].map(personOf)
  for (const person of more) await ensurePerson(stack.gateway_url, admin, person, 'netops')
  const users = [...(readDemo(stack.context.dir)?.users.slice(0, DEMO) ?? []), ...more]
  const url = stack.gateway_url.replace('localhost', '127.0.0.1')
  const gateway = new Pool(url, { connections: 64, pipelining: 1, headersTimeout: 60_000 })
  let { access_token } = await signIn({ gateway, users }, 0)
  const renew = setInterval(async () => {
    access_token = (await signIn({ gateway, users }, 0)).access_token
  }, RENEWED_MS)
  return {
    ...{ gateway, users, token: () => access_token },
    close: async () => {
      clearInterval(renew)
      await gateway.close()
    },
  }
}

const SESSIONS = 50
/** Bytes of Redis that one more session takes. */
export const bytesOfSession = async (ground: Ground, redis_url: string): Promise<number> => {
  const redis = new Redis(redis_url)
  const used = async () => {
    let bytes = 0
    for await (const keys of redis.scanStream({ count: 1000 }))
      for (const key of keys) bytes += Number((await redis.memory('USAGE', key, 'SAMPLES', 0)) ?? 0)
    return bytes
  }
  const before = await used()
  const { username, password } = ground.users[WATCHES] ?? { username: '', password: '' }
  for (let n = 0; n < SESSIONS; n++) await login(ground, username, password)
  const bytes = ((await used()) - before) / SESSIONS
  redis.disconnect()
  return bytes
}

const PER_SESSION = 10
const SOCKETS = 40
export type Streams = { kib: number; frames: number; frame_us: number; by_app: Record<string, number> }

/**
 * What an open stream holds in gateway and operations, and the CPU there of one frame of an operation that all of them
 * follow: that of the same work without streams, `alone`, is subtracted.
 */
export const streamsCost = async (
  ground: Ground,
  { url, work, alone }: { url: string; work: () => Promise<unknown>; alone: Record<string, number> },
): Promise<Streams> => {
  const sessions: Tokens[] = []
  while (sessions.length < SOCKETS) sessions.push(await signIn(ground, WATCHES))
  const ends = ({ gateway = 0, operations = 0 }: Record<string, number>) => gateway + operations
  const before = ends(platformMemory())
  let frames = 0
  const opened = sessions.flatMap(({ access_token }) =>
    Array.from(
      { length: PER_SESSION },
      () =>
        new Promise<IncomingMessage>((resolve, reject) => {
          const headers = { authorization: `Bearer ${access_token}`, accept: 'text/event-stream' }
          get(`${url}/api/v1/events?topics=operations`, { headers, agent: false }, (reply) => {
            reply.on('data', (chunk: Buffer) => {
              frames += chunk.toString('latin1').split('\n\n').length - 1
            })
            resolve(reply)
          }).on('error', reject)
        }),
    ),
  )
  const streams = await Promise.all(opened)
  const kib = ((ends(platformMemory()) - before) * 1024) / streams.length
  frames = 0
  const cpu = platformCpuSince()
  await work()
  const used = cpu()
  for (const stream of streams) stream.destroy()
  const by_app = Object.fromEntries(
    ['gateway', 'operations'].map((name) => [name, Math.max(0, (used[name] ?? 0) - (alone[name] ?? 0)) / frames]),
  )
  return { kib, frames, frame_us: ends(by_app) * 1000, by_app }
}
