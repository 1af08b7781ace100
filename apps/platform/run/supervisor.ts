import { chmodSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { prepareDatabase } from '../base/database.ts'
import { watchDisk } from '../base/disk.ts'
import { ensureInstallation, type Installation } from '../base/installation.ts'
import { QUICK_IMPORTS, ROOT } from '../base/paths.ts'
import { createPorts } from '../base/ports.ts'
import { healthy } from '../base/probes.ts'
import { createProcess, type Managed, type UnitEvents } from '../base/process.ts'
import { recordChild, writeWhole } from '../base/record.ts'
import { elapsed, type Screen, silentScreen } from '../base/screen.ts'
import { type Programs, type ServerPorts, type Servers, startServers } from '../servers/up.ts'
import { writeAppEnv } from './app-env.ts'
import { APPS, type App, type AppContext, entryOf, envFor, gatewayUrl, keepPorts, readyUrl, takePorts } from './apps.ts'
import { ensureKeys } from './keys.ts'

export type PlatformOptions = {
  dir: string
  programs: Programs
  screen?: Screen
  apps?: readonly App[]
  database?: string
  prefix?: AppContext['prefix']
  /** Use any free ports for the apps instead of those of the table. */
  any_ports?: boolean
  prefer_ports?: Partial<ServerPorts>
  env_overrides?: NodeJS.ProcessEnv
  /** Called when a process has been restarted, so its id or port has changed. */
  restarted?: () => void
  /** Aborts a start: stops what has begun, and the start fails. */
  signal?: AbortSignal
  /** The base of the ports of the demo hosts. */
  fleet_port_base?: number
  /** How the apps reach the servers, if not at the servers' own addresses. */
  led?: (servers: Servers) => Promise<Servers>
}

/** The running platform, and the order in which it stops. */
export type Platform = {
  context: AppContext
  servers: Servers
  apps: Map<string, Managed>
  readonly gateway_url: string
  /** Stops the gateway first, then the other apps, and the servers last. */
  stop: () => Promise<void>
}

export const NODE_ARGUMENTS = [
  '--disable-proto=delete',
  '--disable-warning=ExperimentalWarning',
  // The client of Temporal names the host to TLS even if that is an IP address.
  '--disable-warning=DEP0123',
  '--import',
  QUICK_IMPORTS,
]

/** Starts the servers, brings the database up to date, starts all apps at once, and waits until each is ready. */
export const startPlatform = async (options: PlatformOptions): Promise<Platform> => {
  const { dir, screen = silentScreen, apps: wanted = APPS, database = 'signalbox', signal } = options
  mkdirSync(dir, { recursive: true })
  chmodSync(dir, 0o755) // Postgres may run below it under another account; private files have their own modes.
  const ports = createPorts((name, port, got) => screen.line(name, `port ${port} is taken, using ${got}`, 'yellow'))
  const events = eventsFor(dir, screen, options.restarted)
  const installation = ensureInstallation(dir) // Before the keys: a folder that already has keys is an older one.
  const keys = ensureKeys(dir)
  const apps = new Map<string, Managed>()
  const begun: Managed[] = []
  const stopBegun = () => Promise.all([...apps.values(), ...begun].map((child) => child.stop()))
  signal?.addEventListener('abort', () => void stopBegun())
  let moved = () => {}
  try {
    const app_ports = await takePorts(APPS, ports, options.any_ports)
    signal?.throwIfAborted()
    const servers = await startServers({
      dir,
      installation,
      screen,
      ports,
      events,
      begun: (child) => {
        signal?.throwIfAborted()
        begun.push(child)
      },
      moved: () => moved(),
      programs: options.programs,
      secrets: keys.servers,
      ...(options.prefer_ports && { prefer_ports: options.prefer_ports }),
    })
    signal?.throwIfAborted()
    const roles = await databaseOf(servers, database, installation, screen)
    signal?.throwIfAborted()
    const context: AppContext = {
      dir,
      keys,
      servers: (await options.led?.(servers)) ?? servers,
      database,
      roles,
      ports: app_ports,
      fleet_port_base: options.fleet_port_base ?? 17_200,
      prefix: options.prefix ?? { nats: '', redis: '', queue: installation.queue_prefix },
      ...(options.env_overrides && { overrides: options.env_overrides }),
    }
    writeAppEnv(APPS, context)
    moved = renewer(context, apps, screen, options.restarted)
    const move = async (app: App) => {
      context.ports[app.name] = await keepPorts(app, ports, context.ports)
      moved()
    }
    await startApps({ wanted, context, apps, screen, events, move, ...(signal && { signal }) })
    const disk = watchDisk({ dir, redis_url: () => servers.redis.url(), prefix: context.prefix.redis })
    const stop = () => {
      disk.stop()
      return stopAll({ servers, apps }, screen)
    }
    return {
      context,
      servers,
      apps,
      get gateway_url() {
        return gatewayUrl(context.ports)
      },
      stop,
    }
  } catch (error) {
    // Stops apps before the servers that they write to.
    await Promise.all([...apps.values()].map((app) => app.stop()))
    await Promise.all(begun.map((server) => server.stop()))
    throw error
  }
}

/** Brings the database up to date. Returns the roles of the apps; `undefined` if they share one account. */
const databaseOf = async (
  { postgres }: Servers,
  database: string,
  { id: installation_id }: Installation,
  screen: Screen,
) => {
  const started = performance.now()
  const { admin_url, password } = postgres
  const roles = await prepareDatabase({ admin_url, database, password, installation_id })
  screen.line('database', `migrated in ${elapsed(performance.now() - started)}`)
  if (!roles) screen.line('database', 'the account of DATABASE_URL may not create roles: all apps share it', 'yellow')
  return roles
}

type Events = (name: string) => Partial<UnitEvents>

/** What is said of a process that is kept running, and where its id is noted. */
export const eventsFor =
  (dir: string, screen: Screen, restarted: () => void = () => {}): Events =>
  (name) => ({
    spawned: (pid) => recordChild(dir, name, pid),
    died: (how, retry_ms) => screen.line(name, `died (${how}); restarting it in ${elapsed(retry_ms)}`, 'red'),
    back: (after_ms) => {
      screen.line(name, `is back after ${elapsed(after_ms)}`, 'green')
      restarted()
    },
    silent: (for_ms, why, killed) => {
      const then = killed ? 'killing it' : `restarting it has not helped: see ${join(dir, 'logs', `${name}.log`)}`
      screen.line(name, `has been running without an answer for ${elapsed(for_ms)} (${why}); ${then}`, 'red')
    },
  })

/** Restarts every app whose environment has changed because a port has moved. */
const renewer = (
  context: AppContext,
  apps: ReadonlyMap<string, Managed>,
  screen: Screen,
  restarted: () => void = () => {},
) => {
  const textOf = (app: App) => JSON.stringify(envFor(app, context))
  const known = new Map(APPS.map((app) => [app.name, textOf(app)]))
  return () => {
    writeAppEnv(APPS, context)
    restarted()
    for (const app of APPS) {
      const text = textOf(app)
      if (text === known.get(app.name)) continue
      known.set(app.name, text)
      const child = apps.get(app.name)
      if (!child?.running) continue
      screen.line(app.name, 'starts again: a port has moved', 'yellow')
      void child.renew()
    }
  }
}

/** The process of one app, not yet started. */
export const appProcess = (
  app: App,
  context: AppContext,
  events: Partial<UnitEvents> = {},
  move?: () => Promise<void>,
): Managed =>
  createProcess(
    {
      name: app.name,
      command: () => ({
        command: process.execPath,
        args: [...NODE_ARGUMENTS, entryOf(app.name)],
        cwd: ROOT,
        env: envFor(app, context),
      }),
      probe: (pid) => healthy(readyUrl(app.name, context.ports), pid),
      ...(move && { move }),
      stop_timeout_ms: 45_000,
    },
    join(context.dir, 'logs'),
    events,
  )

type AppsToStart = {
  wanted: readonly App[]
  context: AppContext
  apps: Map<string, Managed>
  screen: Screen
  events: Events
  move: (app: App) => Promise<void>
  signal?: AbortSignal
}

const startApps = async ({ wanted, context, apps, screen, events, move, signal }: AppsToStart): Promise<void> => {
  signal?.throwIfAborted()
  await Promise.all(
    wanted.map(async (app) => {
      const started = performance.now()
      const child = appProcess(app, context, events(app.name), () => move(app))
      apps.set(app.name, child)
      await child.start()
      const port = context.ports[app.name]?.http ?? context.ports[app.name]?.internal
      screen.line(app.name, `ready in ${elapsed(performance.now() - started)} on 127.0.0.1:${port}`, 'green')
    }),
  )
}

const SAY_WAITING_MS = 2000

const stopAll = async ({ servers, apps }: { servers: Servers; apps: Map<string, Managed> }, screen: Screen) => {
  const started = performance.now()
  const all = [...apps.values(), ...servers.managed]
  let phase: readonly Managed[] = [...apps.values()]
  const sayWaiting = setInterval(() => {
    const names = phase.filter(({ running }) => running).map(({ name }) => name)
    screen.line('platform', `still waiting for ${names.join(', ')} (${elapsed(performance.now() - started)})`)
  }, SAY_WAITING_MS)
  await apps.get('gateway')?.stop()
  await Promise.all([...apps.values()].map((app) => app.stop()))
  screen.line('apps', `stopped in ${elapsed(performance.now() - started)}`)
  phase = all
  await servers.stop()
  clearInterval(sayWaiting)
}

/** The page of the Temporal UI that lists this installation's workflows; its root opens another namespace. */
export const engineUiOf = ({ temporal: { ui_url, namespace } }: Servers): string | undefined =>
  ui_url && `${ui_url}/namespaces/${namespace}/workflows`

/** The content of `.signalbox/run.json`, which scripts and tests read instead of the printed text. */
export const runOf = ({ context, servers, apps, gateway_url }: Platform) => ({
  pid: process.pid,
  started_at: new Date().toISOString(),
  gateway: gateway_url,
  temporal_ui: engineUiOf(servers) ?? null,
  temporal: servers.temporal.address,
  temporal_namespace: servers.temporal.namespace,
  postgres: servers.postgres.url(undefined, context.database),
  redis: servers.redis.url(),
  nats: servers.nats.url(servers.nats.own ? 'relay' : undefined),
  /** Where agents that take work from the stream connect, by pool. */
  agents: servers.nats.agents,
  internal: {
    catalog: `http://127.0.0.1:${context.ports.catalog?.internal}`,
    operations: `http://127.0.0.1:${context.ports.operations?.internal}`,
  },
  apps: Object.fromEntries(
    [...apps].map(([name, child]) => [
      name,
      {
        pid: child.pid,
        port: context.ports[name]?.http ?? context.ports[name]?.internal,
        internal: context.ports[name]?.internal,
      },
    ]),
  ),
})

export type Run = ReturnType<typeof runOf>

/** Writes run.json; it contains passwords of the development servers. */
export const writeRun = (dir: string, run: Run): void =>
  writeWhole(join(dir, 'run.json'), `${JSON.stringify(run, null, 2)}\n`)

export const removeRun = (dir: string): void => rmSync(join(dir, 'run.json'), { force: true })
