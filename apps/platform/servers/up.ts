import { createHmac, randomBytes } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { databaseUrl, roleOf } from '../base/database.ts'
import { createPorts, type Ports } from '../base/ports.ts'
import { answers, knowsNamespace, listens } from '../base/probes.ts'
import { createProcess, type Managed, type Unit, type UnitEvents } from '../base/process.ts'
import { elapsed, type Screen, silentScreen } from '../base/screen.ts'
import { locateNats, writeNatsConfig } from './nats.ts'
import { streamedPools } from './pools.ts'
import { dataFolder, locatePostgres, preparePostgres } from './postgres.ts'
import { locateRedis, writeRedisConfig } from './redis.ts'
import { agentRights, natsRights, redisRules } from './rights.ts'
import { locateTemporal, temporalArgs } from './temporal.ts'

/** The program of each server, or nothing where an environment variable names a server that already runs. */
export type Programs = {
  postgres: string | undefined
  redis: string | undefined
  nats: string | undefined
  temporal: string | undefined
}

/** Finds or fetches all servers side by side, in the order of preference of platform.md 5. Throws one error naming all that fail. */
export const ensureServers = async (screen: Screen): Promise<Programs> => {
  const env = process.env
  const found = await Promise.allSettled([
    env.DATABASE_URL ? undefined : locatePostgres(screen),
    env.REDIS_URL ? undefined : locateRedis(screen),
    env.NATS_URL ? undefined : locateNats(screen),
    env.TEMPORAL_ADDRESS ? undefined : locateTemporal(screen),
  ])
  const failures = found.filter((result) => result.status === 'rejected')
  if (failures.length > 0) throw new Error(failures.map(({ reason }) => (reason as Error).message).join('\n'))
  const [postgres, redis, nats, temporal] = found.map((result) =>
    result.status === 'fulfilled' ? result.value : undefined,
  )
  return { postgres, redis, nats, temporal }
}

/** The secrets of the servers we start ourselves, kept beside their data. */
export type ServerSecrets = { postgres: string; redis: string; users: Record<string, string> }

export const createServerSecrets = (users: readonly string[]): ServerSecrets => {
  const secret = () => randomBytes(18).toString('base64url')
  return { postgres: secret(), redis: secret(), users: Object.fromEntries(users.map((name) => [name, secret()])) }
}

export const SERVER_PORTS = { postgres: 5442, redis: 6389, nats: 4232, temporal: 7233, temporal_ui: 8233 } as const
export type ServerPorts = { [name in keyof typeof SERVER_PORTS]: number }

export type ServerOptions = {
  /** Data lives in `<dir>/<server>`, logs in `<dir>/logs`. */
  dir: string
  programs: Programs
  secrets: ServerSecrets
  screen?: Screen
  ports?: Ports
  /** 0 takes any free port. */
  prefer_ports?: Partial<ServerPorts>
  /** No user interface of Temporal, fewer rules about users: one account for everything. */
  plain?: boolean
  postgres_settings?: Record<string, string>
  events?: (name: string) => Partial<UnitEvents>
}

/** The running servers. The functions answer the address for one app, with its own account where we run the server. */
export type Servers = {
  postgres: {
    admin_url: string
    /** As the role of an app, or as the given account. */
    url: (app: string | undefined, database: string) => string
    password: (app: string) => string
    own: boolean
  }
  redis: { url: (user?: string) => string; own: boolean }
  /** `agents`: where the agents of each pool of mode nats connect. */
  nats: { url: (user?: string) => string; agents: Record<string, string>; own: boolean }
  temporal: { address: string; ui_url: string | undefined; namespace: string; own: boolean }
  managed: Managed[]
  /** Temporal, NATS, Redis, Postgres: who writes goes before what is written to. */
  stop: () => Promise<void>
}

/** Starts what no environment variable names, side by side, and waits until each answers. */
export const startServers = async (options: ServerOptions): Promise<Servers> => {
  const { dir, screen = silentScreen } = options
  mkdirSync(dir, { recursive: true })
  const ports = options.ports ?? createPorts()
  const wish = { ...SERVER_PORTS, ...options.prefer_ports }
  const managed: { [name in keyof Programs]?: Managed } = {}

  const start = async (name: keyof Programs, unit: Omit<Unit, 'name'>, where: string) => {
    const started = performance.now()
    const child = createProcess({ name, ...unit }, join(dir, 'logs'), options.events?.(name))
    managed[name] = child
    await child.start(60_000)
    screen.line(name, `up in ${elapsed(performance.now() - started)} on ${where}`)
  }
  const begun = { start, ports, wish, options }
  const results = await Promise.allSettled([
    startPostgres(begun),
    startRedis(begun),
    startNats(begun),
    startTemporal(begun),
  ])
  const stop = async () => {
    for (const name of ['temporal', 'nats', 'redis', 'postgres'] as const) await managed[name]?.stop()
  }
  const [postgres, redis, nats, temporal] = results
  if (
    postgres.status === 'fulfilled' &&
    redis.status === 'fulfilled' &&
    nats.status === 'fulfilled' &&
    temporal.status === 'fulfilled'
  ) {
    const all = Object.values(managed).filter((child) => child !== undefined)
    return {
      postgres: postgres.value,
      redis: redis.value,
      nats: nats.value,
      temporal: temporal.value,
      managed: all,
      stop,
    }
  }
  await stop()
  const reasons = results
    .filter((result) => result.status === 'rejected')
    .map(({ reason }) => (reason as Error).message)
  throw new Error(reasons.join('\n'))
}

type Begun = {
  start: (name: keyof Programs, unit: Omit<Unit, 'name'>, where: string) => Promise<void>
  ports: Ports
  wish: ServerPorts
  options: ServerOptions
}

const startPostgres = async ({ start, ports, wish, options }: Begun): Promise<Servers['postgres']> => {
  const given = process.env.DATABASE_URL
  if (given) {
    await query(given)
    // Whoever else uses that server derives the same, so that two platforms do not lock each other out.
    const password = (app: string) => createHmac('sha256', given).update(app).digest('base64url')
    return { admin_url: given, url: urlFrom(given, password), password, own: false }
  }
  const port = await ports.take('postgres', wish.postgres)
  const admin_url = `postgres://postgres:${options.secrets.postgres}@127.0.0.1:${port}/postgres`
  const folder = dataFolder(options.dir)
  const program = options.programs.postgres ?? ''
  const unit = preparePostgres(program, folder, options.secrets.postgres, port, options.postgres_settings)
  const probe = () => query(admin_url)
  // SIGINT is Postgres's fast shutdown: sessions end, everything is on disk.
  await start('postgres', { ...unit, probe, stop_signal: 'SIGINT', stop_timeout_ms: 20_000 }, `127.0.0.1:${port}`)
  const password = (app: string) => options.secrets.users[app] ?? options.secrets.postgres
  return { admin_url, url: urlFrom(admin_url, password), password, own: true }
}

const urlFrom = (base: string, password: (app: string) => string) => (app: string | undefined, database: string) => {
  const url = new URL(databaseUrl(base, database))
  if (app) {
    url.username = roleOf(app)
    url.password = password(app)
  }
  return url.href
}

const query = async (url: string): Promise<void> => {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 3000 })
  try {
    await client.connect()
    await client.query('select 1')
  } finally {
    await client.end().catch(() => {})
  }
}

const startRedis = async ({ start, ports, wish, options }: Begun): Promise<Servers['redis']> => {
  const given = process.env.REDIS_URL
  if (given) return { url: () => given, own: false }
  const port = await ports.take('redis', wish.redis)
  const { secrets, dir } = options
  const users = options.plain
    ? []
    : Object.entries(secrets.users).map(([name, password]) => ({ name, password, rules: redisRules(name) }))
  const config = writeRedisConfig(join(dir, 'redis'), port, secrets.redis, users)
  const probe = () => answers(port, 'PING\r\n', /^(\+PONG|-NOAUTH)/)
  await start('redis', { command: options.programs.redis ?? '', args: [config], probe }, `127.0.0.1:${port}`)
  const url = (user?: string) => {
    const password = user && !options.plain ? secrets.users[user] : undefined
    return password ? `redis://${user}:${password}@127.0.0.1:${port}` : `redis://:${secrets.redis}@127.0.0.1:${port}`
  }
  return { url, own: true }
}

const startNats = async ({ start, ports, wish, options }: Begun): Promise<Servers['nats']> => {
  const given = process.env.NATS_URL
  if (given) return { url: () => given, agents: {}, own: false }
  const port = await ports.take('nats', wish.nats)
  const { secrets, dir } = options
  const agents = options.plain ? [] : streamedPools()
  const passwordOf = (pool: string) => createHmac('sha256', secrets.redis).update(`agent ${pool}`).digest('base64url')
  const users = options.plain
    ? []
    : [
        ...Object.entries(secrets.users).map(([name, password]) => ({ name, password, rights: natsRights(name) })),
        ...agents.map((pool) => ({ name: `agent-${pool}`, password: passwordOf(pool), rights: agentRights(pool) })),
      ]
  const config = writeNatsConfig(join(dir, 'nats'), port, users)
  const probe = () => answers(port, 'PING\r\n', /^INFO /)
  await start('nats', { command: options.programs.nats ?? '', args: ['-c', config], probe }, `127.0.0.1:${port}`)
  const url = (user?: string) => {
    const password = user && !options.plain ? secrets.users[user] : undefined
    return password ? `nats://${user}:${password}@127.0.0.1:${port}` : `nats://127.0.0.1:${port}`
  }
  const addresses = agents.map((pool) => [pool, `nats://agent-${pool}:${passwordOf(pool)}@127.0.0.1:${port}`] as const)
  return { url, agents: Object.fromEntries(addresses), own: true }
}

const startTemporal = async ({ start, ports, wish, options }: Begun): Promise<Servers['temporal']> => {
  const given = process.env.TEMPORAL_ADDRESS
  if (given) {
    const [host = '127.0.0.1', port = '7233'] = given.split(':')
    await listens(Number(port), host)
    return { address: given, ui_url: process.env.TEMPORAL_UI_URL, namespace: 'default', own: false }
  }
  const port = await ports.take('temporal', wish.temporal)
  const ui_port = options.plain ? undefined : await ports.take('Temporal UI', wish.temporal_ui)
  const address = `127.0.0.1:${port}`
  const args = temporalArgs(join(options.dir, 'temporal'), { port, ui_port })
  const probe = () => knowsNamespace(address, 'default')
  await start('temporal', { command: options.programs.temporal ?? '', args, probe, stop_timeout_ms: 15_000 }, address)
  const ui_url = ui_port === undefined ? undefined : `http://localhost:${ui_port}`
  return { address, ui_url, namespace: 'default', own: true }
}
