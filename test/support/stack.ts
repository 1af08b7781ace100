import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { ROOT } from '../../apps/platform/base/paths.ts'
import type { Managed } from '../../apps/platform/base/process.ts'
import { silentScreen } from '../../apps/platform/base/screen.ts'
import { ensureAccounts } from '../../apps/platform/demo/accounts.ts'
import { type Person, signIn } from '../../apps/platform/demo/client.ts'
import { APPS } from '../../apps/platform/run/apps.ts'
import { buildConsole } from '../../apps/platform/run/console-build.ts'
import { type Platform, startPlatform } from '../../apps/platform/run/supervisor.ts'
import { ensureServers, type Servers } from '../../apps/platform/servers/up.ts'
import { AREAS } from '../../db/migrate.ts'
import { createMigrated } from './database.ts'
import { type Link, startLink } from './link.ts'
import { type ServerName, scratchFolder, withoutGivenServers } from './servers.ts'

export type StackOptions = {
  /** Names of the apps to run; all by default. */
  apps?: readonly string[]
  /** Variables that override the environment of every app that reads them. */
  env_overrides?: Record<string, string>
  /** Separate servers instead of those of the run, for tests that kill or pause them. */
  own_servers?: readonly ServerName[]
  /** Builds the console and lets the gateway serve it. */
  console?: boolean
  /** Where an outside agent takes work of the pool `lab`. */
  agent_url?: string
  /** The apps reach their servers through links that can be cut. */
  linked?: boolean
}

export const LINKED = ['postgres', 'redis', 'nats', 'temporal'] as const
export type Links = Record<(typeof LINKED)[number], Link>

/** A link in front of each server, and the servers as they are seen through it. */
const linksTo = async (servers: Servers): Promise<{ links: Links; led: Servers }> => {
  const { postgres, redis, nats, temporal } = servers
  const to = {
    postgres: postgres.admin_url,
    redis: redis.url(),
    nats: nats.url(),
    temporal: `http://${temporal.address}`,
  }
  const made = LINKED.map(async (name) => [name, await startLink(to[name])] as const)
  const links = Object.fromEntries(await Promise.all(made)) as Links
  const through = (name: keyof Links, url: string) => {
    const led = new URL(url)
    led.port = new URL(links[name].url).port
    return led.href
  }
  return {
    links,
    led: {
      ...servers,
      postgres: { ...postgres, url: (app, database) => through('postgres', postgres.url(app, database)) },
      redis: { ...redis, url: (user) => through('redis', redis.url(user)) },
      nats: { ...nats, url: (user) => through('nats', nats.url(user)) },
      temporal: { ...temporal, address: new URL(links.temporal.url).host },
    },
  }
}

/** The demo hosts of a stack listen on their own ports, so its worker may go to any port of this machine. */
export const policyWith = (agent_url: string | undefined) => {
  const destinations = [{ scheme: 'http', host: '*', networks: ['127.0.0.0/8'], ports: ['1024-65535'] }]
  const pools = {
    default: { destinations, secrets: ['secret://file/fleet-*'] },
    ...(agent_url !== undefined && {
      lab: { destinations, secrets: [], mode: 'http', endpoint: agent_url, max_in_flight: 50 },
    }),
  }
  return JSON.stringify({ format: 'signalbox/executor-policy@1', pools })
}

const LIMIT = '100000/60/100000'
/** Many logins from one address are normal in tests; the tests of the limits set their own. */
const RAISED_LIMITS: Record<string, string> = Object.fromEntries(
  [
    ...[
      'LOGIN_IP',
      'LOGIN_NAME',
      'REFRESH_IP',
      'PAGE_IP',
      'SSO_IP',
      'API',
      'FAILED_TOKENS',
      'JWKS',
      'ENROL',
      'DEVICE',
    ].map((n) => `GATEWAY__LIMITS__${n}`),
    ...['REFRESH', 'PASSWORD', 'LOGIN_FAILURES'].map((n) => `SESSION__LIMITS__${n}`),
  ].map((name) => [name, LIMIT]),
)
/** All people of a test come from one address, several of them at once. */
const ONE_ADDRESS = { CREDENTIAL__HASH__PER_KEY: '100' }
/**
 * A whole platform on a small machine next to other tests is always busy: only work in flight is bounded, and a process
 * that waits for a core has not lost its Redis.
 */
const PATIENT: Record<string, string> = {
  SIGNALBOX__PRESSURE__UTILISATION: '1',
  SIGNALBOX__PRESSURE__DELAY_MS: '60000',
  GATEWAY__PRESSURE__DELAY_MS: '60000',
  GATEWAY__REDIS__TIMEOUT_MS: '5000',
  SESSION__REDIS__TIMEOUT_MS: '5000',
}
/** A hash of a few milliseconds: the strength of the real one is tested where it is made. */
const QUICK_HASHES = {
  CREDENTIAL__HASH__MEMORY_KIB: '1024',
  CREDENTIAL__HASH__TIME: '2',
  CREDENTIAL__HASH__PARALLELISM: '1',
}
/**
 * Polling is most of the CPU of an idle platform, and several stand idle beside each other. Commits wake the relay, and
 * its polls only cover a lost wake-up. Benchmarks measure the real ones.
 */
const SELDOM_POLLS: Record<string, string> = process.env.VITEST
  ? {
      CATALOG__PROJECTOR__POLL_MS: '250',
      CATALOG__HEALTH__SWEEP_MS: '2000',
      OPERATIONS__SWEEP__INTERVAL_MS: '2000',
      RELAY__OUTBOX__POLL_MS: '3000',
      RELAY__COMMANDS__POLL_MS: '1000',
    }
  : {}

/** The settings of every app of a test platform. */
export const TEST_SETTINGS: Record<string, string> = {
  SIGNALBOX_LOG_LEVEL: 'error',
  ...RAISED_LIMITS,
  ...ONE_ADDRESS,
  ...QUICK_HASHES,
  ...PATIENT,
  ...SELDOM_POLLS,
}

/**
 * Starts a whole platform, or some apps of it, as real processes on free ports, wired by the same table as `npm start`:
 * its own database, Redis prefix, NATS prefix and task queues on the servers of the run. Call `stop` when done.
 */
export const startStack = async (options: StackOptions = {}) => {
  const dir = scratchFolder()
  const id = randomBytes(5).toString('hex')
  const database = `stack_${id}`
  const wanted = APPS.filter(({ name }) => !options.apps || options.apps.includes(name))
  const console_dir = join(ROOT, '.signalbox/test-console')
  if (options.console) await buildConsole(console_dir, silentScreen)
  const own = options.own_servers ?? []
  // To migrate again and again costs each stack more than a copy.
  if (process.env.DATABASE_URL && !own.includes('postgres')) await createMigrated(database, AREAS)
  const policy_file = join(dir, 'executor-policy.yaml')
  writeFileSync(policy_file, policyWith(options.agent_url))
  let links: Links | undefined
  const platform = await withoutGivenServers(own, async () =>
    startPlatform({
      dir,
      ...(options.linked && {
        led: async (servers) => {
          const linked = await linksTo(servers)
          links = linked.links
          return linked.led
        },
      }),
      programs: await ensureServers(silentScreen),
      apps: wanted,
      database,
      // On a separate server each account has rights only on the names without a prefix.
      prefix: {
        nats: own.includes('nats') ? '' : `t${id}`,
        redis: own.includes('redis') ? '' : `t${id}_`,
        queue: `t${id}-`,
      },
      any_ports: true,
      prefer_ports: { postgres: 0, redis: 0, nats: 0, temporal: 0, temporal_ui: 0 },
      fleet_port_base: 20_000 + (randomBytes(2).readUInt16BE() % 100) * 100,
      env_overrides: {
        ...TEST_SETTINGS,
        WORKER__EXECUTORS__POLICY_FILE: policy_file,
        ...(options.console && { GATEWAY__CONSOLE__DIR: console_dir }),
        ...options.env_overrides,
      },
    }),
  )
  const stop = async () => {
    for (const link of Object.values(links ?? {})) link.mend()
    await stopStack(platform, dir, own.includes('postgres') ? '' : database)
    for (const link of Object.values(links ?? {})) link.stop()
  }
  return { ...stackOf(platform), dir, links, stop }
}

export type Stack = Awaited<ReturnType<typeof startStack>>
/** A platform as its users see it, and its database. */
export type Site = Pick<Stack, 'dir' | 'gateway_url' | 'database_url' | 'people' | 'url'> & {
  context: Pick<Stack['context'], 'keys'>
}

const stackOf = (platform: Platform) => {
  const { context, servers, apps, gateway_url } = platform
  const processOf = (name: string): Managed => {
    const found = apps.get(name) ?? servers.managed.find((server) => server.name === name)
    if (!found) throw new Error(`${name} does not run in this stack`)
    return found
  }
  return {
    context,
    servers,
    gateway_url,
    database_url: servers.postgres.url(undefined, context.database),
    /** The listener that the gateway calls; for an app without one, its internal listener. */
    url: (name: string) => `http://127.0.0.1:${context.ports[name]?.http ?? context.ports[name]?.internal}`,
    /** RPC, /internal, /health and /metrics. */
    internal: (name: string) => `http://127.0.0.1:${context.ports[name]?.internal}`,
    pid: (name: string) => processOf(name).pid,
    log: (name: string) => processOf(name).log,
    /** Kills an app or a separate server as a crash would; the supervisor starts it again. */
    strike: (name: string) => processOf(name).kill('SIGKILL'),
    /** Ends an app or a separate server with this signal and leaves it down. */
    kill: (name: string, signal: NodeJS.Signals = 'SIGKILL') => processOf(name).crash(signal),
    /** Starts it (again) and waits until it is ready; a running one is first stopped in an orderly way. */
    restart: async (name: string) => {
      await processOf(name).stop()
      await processOf(name).start()
    },
    pause: (name: string) => processOf(name).kill('SIGSTOP'),
    resume: (name: string) => processOf(name).kill('SIGCONT'),
    ready: (name: string) => processOf(name).ready(),
    /** The demo's people, signed in at the gateway: ada (admin), olga (operator), eva (engineer, approver). */
    people: async (): Promise<Record<'ada' | 'olga' | 'eva', Person>> => {
      const { users } = await ensureAccounts(gateway_url, context.dir)
      const signedIn = await Promise.all(users.map(async (user) => [user.username, await signIn(gateway_url, user)]))
      return Object.fromEntries(signedIn)
    },
  }
}

const stopStack = async (platform: Platform, dir: string, database: string): Promise<void> => {
  const { admin_url } = platform.servers.postgres
  for (const app of platform.apps.values()) app.kill('SIGCONT')
  const logs = [...platform.apps.values()].map(({ log }) => log)
  await platform.stop()
  const faults = logs.flatMap(faultsIn)
  if (database) {
    const client = new pg.Client({ connectionString: admin_url })
    await client.connect()
    await client.query(`drop database if exists ${pg.escapeIdentifier(database)} with (force)`)
    await client.end()
  }
  rmSync(dir, { recursive: true, force: true })
  if (faults.length > 0) throw new Error(`Answers with status 500:\n${faults.join('\n')}`)
}

/** What an app logged about answers with status 500: no request deserves one. */
const faultsIn = (log: string): string[] => {
  const lines = existsSync(log) ? readFileSync(log, 'utf8').split('\n') : []
  return lines.filter((line) => line.includes('"code":"unexpected"'))
}
