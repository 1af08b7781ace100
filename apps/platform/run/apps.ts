import { join } from 'node:path'
import { ROOT } from '../base/paths.ts'
import { LAST_PORT, type Ports } from '../base/ports.ts'
import type { Servers } from '../servers/up.ts'
import { compileCacheDir } from './compile-cache.ts'
import type { Keys } from './keys.ts'

/** A listener of an app: the variable that sets its port, and the port from platform.md 3. */
type Listener = readonly [variable: string, port: number]
type Server = 'postgres' | 'redis' | 'nats' | 'temporal'

/** One app of the platform: a separate process, in development as in production. */
export type App = {
  name: string
  /** The listener behind the gateway, or that of the gateway. */
  http?: Listener
  /** RPC, /internal, health and metrics. */
  internal: Listener
  uses: readonly Server[]
}

const STORES = ['postgres', 'redis'] as const
const STORES_AND_EVENTS = [...STORES, 'nats'] as const

/** An app behind the gateway: the ports of its public and internal listeners, and how the latter is named. */
const behind = (name: string, http: number, inside: 'RPC' | 'INTERNAL', internal: number, uses: App['uses']): App => ({
  ...inner(name, inside, internal, uses),
  http: [`${name.toUpperCase()}__HTTP__PORT`, http],
})
const inner = (name: string, inside: 'RPC' | 'INTERNAL' | 'HTTP', internal: number, uses: App['uses']): App => ({
  ...{ name, uses },
  internal: [`${name.toUpperCase()}__${inside}__PORT`, internal],
})

/** Every app in display order; they all start at once. */
export const APPS: readonly App[] = [
  behind('token', 7131, 'RPC', 7132, STORES),
  inner('credential', 'RPC', 7122, STORES),
  behind('identity', 7111, 'RPC', 7112, STORES_AND_EVENTS),
  behind('session', 7101, 'RPC', 7102, STORES_AND_EVENTS),
  behind('catalog', 7141, 'INTERNAL', 7142, STORES_AND_EVENTS),
  behind('operations', 7151, 'INTERNAL', 7152, STORES_AND_EVENTS),
  inner('worker', 'INTERNAL', 7161, [...STORES_AND_EVENTS, 'temporal']),
  inner('relay', 'INTERNAL', 7171, [...STORES_AND_EVENTS, 'temporal']),
  inner('fleet', 'HTTP', 7181, []),
  behind('gateway', 8080, 'INTERNAL', 7091, ['redis', 'nats']),
]
export const APP_NAMES = APPS.map(({ name }) => name)

export type AppPorts = { http: number | undefined; internal: number }

/** Everything that determines an app's environment. */
export type AppContext = {
  dir: string
  keys: Keys
  servers: Servers
  database: string
  /** Whether each app has a separate database role. */
  roles: boolean
  ports: Record<string, AppPorts>
  fleet_port_base: number
  /** The host name of an app for the others, and the address it listens on; loopback by default. */
  network?: { host: (app: string) => string; listen: string; scheme?: 'https' }
  /** Prefixes that keep several platforms on the same servers apart; empty for `npm start`. */
  prefix: { nats: string; redis: string; queue: string }
  overrides?: NodeJS.ProcessEnv
}

export const tablePorts = (): AppContext['ports'] =>
  Object.fromEntries(APPS.map(({ name, http, internal }) => [name, { http: http?.[1], internal: internal[1] }]))

/** Takes the ports of these apps: those of the environment or the table, or the next free ones. */
export const takePorts = async (apps: readonly App[], ports: Ports, any = false): Promise<AppContext['ports']> => {
  const taken: AppContext['ports'] = {}
  for (const { name, http, internal } of apps) {
    const take = async (listener: Listener, what: string) => ports.take(what, any ? 0 : wantedPort(listener))
    taken[name] = {
      http: http && (await take(http, name)),
      internal: await take(internal, http ? `${name} (internal)` : name),
    }
  }
  return taken
}

/** The port that the environment or the table names. Throws an error that names a setting without a port. */
const wantedPort = ([variable, port]: Listener): number => {
  const given = process.env[variable] || String(port)
  if (/^\d{1,5}$/.test(given) && Number(given) <= LAST_PORT) return Number(given)
  throw new Error(`${variable} is "${given}": it must be a port number from 0 to ${LAST_PORT}; 0 takes a free one.`)
}

/** Checks one app's ports again: keeps those that are still free, and replaces those that another process has taken. */
export const keepPorts = async (app: App, ports: Ports, taken: AppContext['ports']): Promise<AppPorts> => {
  const { http, internal } = taken[app.name] as AppPorts
  return {
    http: http && (await ports.keep(app.name, http)),
    internal: await ports.keep(app.http ? `${app.name} (internal)` : app.name, internal),
  }
}

export const entryOf = (name: string): string => join(ROOT, 'apps', name, 'main.ts')

/** The address at which an app reports whether it is ready. */
export const readyUrl = (name: string, ports: AppContext['ports']): string =>
  `http://127.0.0.1:${ports[name]?.internal}/health/ready`

export const gatewayUrl = (ports: AppContext['ports']): string => `http://localhost:${ports.gateway?.http}`

/** The part of our environment that every process inherits: the system's variables, but no setting of another app. */
const inherited = (app: string): NodeJS.ProcessEnv => {
  const others: Record<string, string> = {
    session: 'TOKEN|GATEWAY',
    operations: 'NOTIFY|GATEWAY__HTTP|WORKER__EXECUTORS',
  }
  const own = new RegExp(`^(${app.toUpperCase()}|AUTH|SIGNALBOX|${others[app] ?? 'GATEWAY__HTTP'})__`)
  const system =
    /^(PATH|HOME|USER|LOGNAME|SHELL|LANG|LC_.*|TZ|TMPDIR|NODE_(ENV|OPTIONS|EXTRA_CA_CERTS)|OTEL_.*|SIGNALBOX_(LOG_LEVEL|CRASH_AT)|NO_COLOR)$/
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => own.test(name) || system.test(name)))
}

/**
 * The environment of one app: its own settings and keys and the shared ones, never those of another. Settings in the
 * environment of `npm start`, such as SESSION__LIMITS__REFRESH, override the defaults made here.
 */
export const envFor = (app: App, context: AppContext): NodeJS.ProcessEnv => ({
  ...settingsFor(app, context),
  ...inherited(app.name),
  ...portsOf(app, context.ports),
  ...context.overrides,
})

/** The settings that follow from the context alone, whatever environment this process has. */
export const settingsFor = (app: App, context: AppContext): Record<string, string> => {
  const { ports, servers, keys, prefix } = context
  const upper = app.name.toUpperCase()
  const database = servers.postgres.url(context.roles ? app.name : undefined, context.database)
  const uses = (server: Server, value: string) => (app.uses.includes(server) ? value : undefined)
  const own: Record<string, string | undefined> = {
    NODE_COMPILE_CACHE: compileCacheDir(),
    [`${upper}__LISTEN__HOST`]: context.network?.listen ?? LOOPBACK,
    [`${upper}__SERVICE__KEY_FILE`]: keys.serviceKeyFile(app.name),
    [`${upper}__SECRET__KEYS`]: keys.secretKeys(app.name),
    [`${upper}__DATABASE__URL`]: uses('postgres', database),
    [`${upper}__REDIS__URL`]: uses('redis', servers.redis.url(app.name)),
    [`${upper}__NATS__URL`]: uses('nats', servers.nats.url(app.name)),
    [`${upper}__TEMPORAL__ADDRESS`]: uses('temporal', servers.temporal.address),
    [`${upper}__TEMPORAL__NAMESPACE`]: uses('temporal', servers.temporal.namespace),
    [`${upper}__TEMPORAL__QUEUE_PREFIX`]: uses('temporal', prefix.queue),
    SIGNALBOX__NATS__PREFIX: prefix.nats,
    AUTH__REDIS__PREFIX: prefix.redis,
    ...sharedAuth(context),
    ...special(app.name, context),
  }
  const set = Object.entries(own).filter((entry): entry is [string, string] => entry[1] !== undefined)
  return { ...Object.fromEntries(set), ...portsOf(app, ports) }
}

/** The taken ports override even the environment, whose wanted port may not have been free. */
const portsOf = (app: App, ports: AppContext['ports']): Record<string, string> => ({
  [app.internal[0]]: String(ports[app.name]?.internal),
  ...(app.http && { [app.http[0]]: String(ports[app.name]?.http) }),
})

const LOOPBACK = '127.0.0.1'

const addresses = ({ ports, network }: AppContext) => {
  const base = (app: string) => `${network?.scheme ?? 'http'}://${network?.host(app) ?? LOOPBACK}`
  return {
    http: (app: string, path = '') => `${base(app)}:${ports[app]?.http}${path}`,
    internal: (app: string) => `${base(app)}:${ports[app]?.internal}`,
  }
}

const sharedAuth = (context: AppContext): Record<string, string> => {
  const { http, internal } = addresses(context)
  return {
    GATEWAY__HTTP__PUBLIC_ORIGIN: gatewayUrl(context.ports),
    // Not the origin, because its port may differ at the next start, and sessions should survive that.
    AUTH__TOKENS__ISSUER: 'signalbox',
    AUTH__JWKS__URL: http('token', '/jwks'),
    AUTH__SERVICES__FILE: context.keys.services_file,
    AUTH__RPC__SESSION_URL: internal('session'),
    AUTH__RPC__IDENTITY_URL: internal('identity'),
    AUTH__RPC__CREDENTIAL_URL: internal('credential'),
    AUTH__RPC__TOKEN_URL: internal('token'),
  }
}

const special = (name: string, context: AppContext): Record<string, string | undefined> => {
  const { dir, keys, servers } = context
  const { http, internal } = addresses(context)
  const catalog = internal('catalog')
  const operations = internal('operations')
  const settings: Record<string, Record<string, string | undefined>> = {
    gateway: {
      AUTH__SECRET__KEYS: keys.auth_secret_keys,
      GATEWAY__CONSOLE__DIR: join(dir, 'console'),
      GATEWAY__CONSOLE__ENVIRONMENT: 'demo',
      GATEWAY__CONSOLE__TIER: 'dev',
      GATEWAY__UPSTREAM__SESSION_URL: http('session'),
      GATEWAY__UPSTREAM__IDENTITY_URL: http('identity'),
      GATEWAY__UPSTREAM__CATALOG_URL: http('catalog'),
      GATEWAY__UPSTREAM__OPERATIONS_URL: http('operations'),
      GATEWAY__UPSTREAM__TOKEN_URL: http('token'),
    },
    session: { AUTH__SECRET__KEYS: keys.auth_secret_keys },
    // Each hash takes a thread; with the default of four threads, ten hashes would wait for one another.
    credential: {
      UV_THREADPOOL_SIZE: '14',
      CREDENTIAL__ENROLMENT__KEY: keys.enrolment_key,
      CREDENTIAL__FACTORS__KEK: keys.factors_kek,
    },
    token: { TOKEN__KEYS__KEK: keys.token_kek },
    catalog: { CATALOG__OPERATIONS__URL: operations },
    operations: {
      OPERATIONS__CATALOG__URL: catalog,
      OPERATIONS__TEMPORAL__UI_URL: servers.temporal.ui_url,
      OPERATIONS__EVIDENCE__KEY_FILE: keys.evidence_key_file,
      OPERATIONS__ARTIFACTS__DIR: join(dir, 'artifacts'),
      NOTIFY__PUSH__KEY_FILE: keys.push_key_file,
      // On a separate network, the deployer decides whether anything calls out.
      NOTIFY__ENABLED: context.network ? undefined : 'true',
      NOTIFY__MAIL__DIR: context.network ? undefined : join(dir, 'mail'),
    },
    worker: {
      OPERATIONS__CATALOG__URL: catalog,
      WORKER__OPERATIONS__URL: operations,
      WORKER__EXECUTORS__SECRETS_DIR: keys.secrets_dir,
      OPERATIONS__ARTIFACTS__DIR: join(dir, 'artifacts'),
    },
    relay: { RELAY__AUDIT__KEY_FILE: keys.audit_key_file, RELAY__AUDIT__ANCHOR_FILE: join(dir, 'audit-anchors.jsonl') },
    fleet: {
      FLEET__DATA__FILE: join(dir, 'fleet.sqlite'),
      FLEET__AUTH__TOKEN_FILE: keys.fleet_token_file,
      FLEET__CATALOG__URL: catalog,
      FLEET__HOSTS__PORT_BASE: String(context.fleet_port_base),
      FLEET__HOSTS__ADDRESS: context.network?.host('fleet'),
    },
  }
  return settings[name] ?? {}
}
