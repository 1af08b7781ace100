import { createHmac, randomBytes } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { withConnection } from '../../../db/connection.ts'
import { bareHost } from '../../shared/web/addresses.ts'
import { databaseUrl, roleOf } from '../base/database.ts'
import { type Installation, shortName } from '../base/installation.ts'
import { createPorts, type Ports } from '../base/ports.ts'
import { answers, knowsNamespace, listens } from '../base/probes.ts'
import { createProcess, type Managed, type Unit, type UnitEvents } from '../base/process.ts'
import { elapsed, type Screen, silentScreen } from '../base/screen.ts'
import { locateNats, writeNatsConfig } from './nats.ts'
import { streamedPools } from './pools.ts'
import {
  dataFolder,
  initialisePostgres,
  locatePostgres,
  postgresCommand,
  postgresTls,
  postmasterOf,
} from './postgres.ts'
import { locateRedis, writeRedisConfig } from './redis.ts'
import { agentRights, natsRights, redisRules } from './rights.ts'
import { locateTemporal, temporalArgs } from './temporal.ts'

/** The program of each server; `undefined` if an environment variable names a running server. */
export type Programs = {
  postgres: string | undefined
  redis: string | undefined
  nats: string | undefined
  temporal: string | undefined
}

/** Finds or fetches all servers at once, in the order of platform.md 5. Throws one error that names all failures. */
export const ensureServers = async (screen: Screen): Promise<Programs> => {
  const env = process.env
  const [postgres, redis, nats, temporal] = await allOf([
    env.DATABASE_URL ? undefined : locatePostgres(screen),
    env.REDIS_URL ? undefined : locateRedis(screen),
    env.NATS_URL ? undefined : locateNats(screen),
    env.TEMPORAL_ADDRESS ? undefined : locateTemporal(screen),
  ])
  return { postgres, redis, nats, temporal }
}

/** Waits until all have ended; throws one error that names every failure. */
const allOf = async <const T extends readonly unknown[]>(begun: T) => {
  const ends: PromiseSettledResult<unknown>[] = await Promise.allSettled(begun)
  const failures = ends.filter((end) => end.status === 'rejected')
  if (failures.length === 0) return Promise.all(begun)
  throw new Error(failures.map(({ reason }) => (reason as Error).message).join('\n'))
}

/** The secrets of the servers that we start, kept beside their data. */
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
  /** The installation whose data these servers hold. */
  installation: Installation
  screen?: Screen
  ports?: Ports
  /** 0 takes any free port. */
  prefer_ports?: Partial<ServerPorts>
  /** No Temporal UI, and fewer rules about users: one account for everything. */
  plain?: boolean
  postgres_settings?: Record<string, string>
  /** PEM files of Postgres, Redis and NATS, which then use TLS; Temporal's development server cannot. */
  tls?: { ca_file: string; of: (server: 'postgres' | 'redis' | 'nats') => CertificateFiles }
  events?: (name: string) => Partial<UnitEvents>
  /** Called for each server as it begins, so that a start can be aborted. */
  begun?: (child: Managed) => void
  /** Called for each server that has moved to another port. */
  moved?: (name: string) => void
}

export type CertificateFiles = { cert_file: string; key_file: string }

/**
 * The running servers. Each address is the current one, because a port may change. The functions return the address for
 * one app, with its own account if we run the server.
 */
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
  /** Temporal, NATS, Redis, Postgres: each server stops before those that it writes to. */
  stop: () => Promise<void>
}

/** Starts the servers that no environment variable names, all at once, and waits until each answers. */
export const startServers = async (options: ServerOptions): Promise<Servers> => {
  const { dir, screen = silentScreen } = options
  mkdirSync(dir, { recursive: true })
  const ports = options.ports ?? createPorts()
  const wish = { ...SERVER_PORTS, ...options.prefer_ports }
  const managed: { [name in keyof Programs]?: Managed } = {}

  const start = async (name: keyof Programs, unit: Omit<Unit, 'name'>, where: () => string) => {
    const started = performance.now()
    const child = createProcess({ name, ...unit }, join(dir, 'logs'), options.events?.(name))
    managed[name] = child
    options.begun?.(child)
    await child.start()
    screen.line(name, `up in ${elapsed(performance.now() - started)} on ${where()}`)
  }
  /** The port of a server; `keep` gives it another one if it is taken. */
  const seat = async (name: keyof Programs, what: string, wanted: number): Promise<Seat> => {
    const at = { port: await ports.take(what, wanted), keep: async () => {} }
    at.keep = async () => {
      const before = at.port
      at.port = await ports.keep(what, before)
      if (at.port !== before) options.moved?.(name)
    }
    return at
  }
  const begun = { start, seat, wish, options }
  const stop = async () => {
    for (const name of ['temporal', 'nats', 'redis', 'postgres'] as const) await managed[name]?.stop()
  }
  try {
    const starting = [startPostgres(begun), startRedis(begun), startNats(begun), startTemporal(begun)] as const
    const [postgres, redis, nats, temporal] = await allOf(starting)
    const all = Object.values(managed).filter((child) => child !== undefined)
    return { postgres, redis, nats, temporal, managed: all, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

type Seat = { port: number; keep: () => Promise<void> }

type Begun = {
  start: (name: keyof Programs, unit: Omit<Unit, 'name'>, where: () => string) => Promise<void>
  seat: (name: keyof Programs, what: string, wanted: number) => Promise<Seat>
  wish: ServerPorts
  options: ServerOptions
}

/** How many failures in a row, each after 5 s and up to 5 s of waiting, make a running server count as dead. */
const MISSES = 6
/** Postgres recovers after each kill, and may be slow for long while the disk is. */
const POSTGRES_MISSES = 18

const startPostgres = async ({ start, seat, wish, options }: Begun): Promise<Servers['postgres']> => {
  const given = process.env.DATABASE_URL
  if (given) {
    await query(given)
    // Another platform on that server derives the same password, so that the two do not lock each other out.
    const password = (app: string) => createHmac('sha256', given).update(app).digest('base64url')
    return { admin_url: given, url: (app, database) => urlFrom(given, password, app, database), password, own: false }
  }
  const { secrets } = options
  const folder = dataFolder(options.dir)
  const program = options.programs.postgres ?? ''
  const [at] = await Promise.all([
    seat('postgres', 'postgres', wish.postgres),
    initialisePostgres(program, folder, secrets.postgres),
  ])
  const { tls } = options
  const mode = tls ? `?sslmode=verify-full&sslrootcert=${tls.ca_file}` : ''
  // The certificate is checked by name: pg checks no IP address.
  const adminUrl = () =>
    `postgres://postgres:${secrets.postgres}@${tls ? 'localhost' : '127.0.0.1'}:${at.port}/postgres${mode}`
  const settings = { ...options.postgres_settings, ...(tls && postgresTls(folder, tls.of('postgres'))) }
  const unit: Omit<Unit, 'name'> = {
    command: () => postgresCommand(program, folder, at.port, settings),
    probe: async (pid) => {
      if (postmasterOf(folder)?.pid !== pid) throw new Error('its data folder has another process')
      await query(adminUrl())
    },
    move: at.keep,
    misses: POSTGRES_MISSES,
    // Fast shutdown: sessions end, and everything is on disk.
    stop_signal: 'SIGINT',
    stop_timeout_ms: 20_000,
  }
  await start('postgres', unit, () => `127.0.0.1:${at.port}`)
  const password = (app: string) => secrets.users[app] ?? secrets.postgres
  return {
    get admin_url() {
      return adminUrl()
    },
    url: (app, database) => urlFrom(adminUrl(), password, app, database),
    password,
    own: true,
  }
}

const urlFrom = (base: string, password: (app: string) => string, app: string | undefined, database: string) => {
  const url = new URL(databaseUrl(base, database))
  if (app) {
    url.username = roleOf(app)
    url.password = password(app)
  }
  return url.href
}

const query = (url: string) =>
  withConnection({ connectionString: url, connectionTimeoutMillis: 3000, query_timeout: 3000 }, (client) =>
    client.query('select 1'),
  )

const startRedis = async ({ start, seat, wish, options }: Begun): Promise<Servers['redis']> => {
  const given = process.env.REDIS_URL
  if (given) return { url: () => given, own: false }
  const { secrets, dir, plain } = options
  const at = await seat('redis', 'redis', wish.redis)
  const users = plain
    ? []
    : Object.entries(secrets.users).map(([name, password]) => ({ name, password, rules: redisRules(name) }))
  const unit: Omit<Unit, 'name'> = {
    command: () => ({
      command: options.programs.redis ?? '',
      args: [writeRedisConfig(join(dir, 'redis'), at.port, secrets.redis, users, options.tls?.of('redis'))],
    }),
    probe: (pid) =>
      answers(
        at.port,
        `AUTH ${secrets.redis}\r\nINFO server\r\n`,
        new RegExp(`^process_id:${pid}\r`, 'm'),
        options.tls?.ca_file,
      ),
    move: at.keep,
    misses: MISSES,
  }
  await start('redis', unit, () => `127.0.0.1:${at.port}`)
  const url = (user?: string) => {
    const password = user && !plain ? secrets.users[user] : undefined
    const account = password ? `${user}:${password}` : `:${secrets.redis}`
    return `${options.tls ? 'rediss' : 'redis'}://${account}@127.0.0.1:${at.port}`
  }
  return { url, own: true }
}

const startNats = async ({ start, seat, wish, options }: Begun): Promise<Servers['nats']> => {
  const given = process.env.NATS_URL
  if (given) return { url: () => given, agents: {}, own: false }
  const { secrets, dir, plain } = options
  const at = await seat('nats', 'nats', wish.nats)
  const agents = plain ? [] : streamedPools()
  const passwordOf = (pool: string) => createHmac('sha256', secrets.redis).update(`agent ${pool}`).digest('base64url')
  const users = plain
    ? []
    : [
        ...Object.entries(secrets.users).map(([name, password]) => ({ name, password, rights: natsRights(name) })),
        ...agents.map((pool) => ({ name: `agent-${pool}`, password: passwordOf(pool), rights: agentRights(pool) })),
      ]
  const name = shortName(options.installation)
  const unit: Omit<Unit, 'name'> = {
    command: () => ({
      command: options.programs.nats ?? '',
      args: ['-c', writeNatsConfig(join(dir, 'nats'), at.port, users, name, options.tls?.of('nats'))],
    }),
    probe: () => answers(at.port, 'PING\r\n', new RegExp(`^INFO .*"server_name":"${name}"`)),
    move: at.keep,
    misses: MISSES,
  }
  await start('nats', unit, () => `127.0.0.1:${at.port}`)
  const urlOf = (account: string) => `${options.tls ? 'tls' : 'nats'}://${account}127.0.0.1:${at.port}`
  return {
    url: (user) => {
      const password = user && !plain ? secrets.users[user] : undefined
      return urlOf(password ? `${user}:${password}@` : '')
    },
    get agents() {
      return Object.fromEntries(agents.map((pool) => [pool, urlOf(`agent-${pool}:${passwordOf(pool)}@`)]))
    },
    own: true,
  }
}

const startTemporal = async ({ start, seat, wish, options }: Begun): Promise<Servers['temporal']> => {
  const given = process.env.TEMPORAL_ADDRESS
  if (given) {
    const { hostname, port } = new URL(`tcp://${given}`)
    await listens(Number(port || 7233), bareHost(hostname))
    return { address: given, ui_url: process.env.TEMPORAL_UI_URL, namespace: 'default', own: false }
  }
  const { installation, programs, plain, dir } = options
  const at = await seat('temporal', 'temporal', wish.temporal)
  const ui = plain ? undefined : await seat('temporal', 'Temporal UI', wish.temporal_ui)
  const address = () => `127.0.0.1:${at.port}`
  // Another engine never has this namespace, whichever namespace the operations use.
  const own = shortName(installation)
  const namespaces = [...new Set([own, installation.namespace])]
  const unit: Omit<Unit, 'name'> = {
    command: () => ({
      command: programs.temporal ?? '',
      args: temporalArgs(join(dir, 'temporal'), { port: at.port, ui_port: ui?.port, namespaces }),
    }),
    probe: () => knowsNamespace(address(), own),
    move: async () => {
      await at.keep()
      await ui?.keep()
    },
    misses: MISSES,
    stop_timeout_ms: 15_000,
  }
  await start('temporal', unit, address)
  return {
    get address() {
      return address()
    },
    get ui_url() {
      return ui && `http://localhost:${ui.port}`
    },
    namespace: installation.namespace,
    own: true,
  }
}
