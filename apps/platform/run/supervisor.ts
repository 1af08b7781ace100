import { chmodSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { prepareDatabase } from '../base/database.ts'
import { watchDisk } from '../base/disk.ts'
import { QUICK_IMPORTS, ROOT } from '../base/paths.ts'
import { createPorts } from '../base/ports.ts'
import { healthy } from '../base/probes.ts'
import { createProcess, type Managed, type UnitEvents } from '../base/process.ts'
import { recordChild } from '../base/record.ts'
import { elapsed, type Screen, silentScreen } from '../base/screen.ts'
import { type Programs, type ServerPorts, type Servers, startServers } from '../servers/up.ts'
import { writeAppEnv } from './app-env.ts'
import { APPS, type App, type AppContext, entryOf, envFor, gatewayUrl, readyUrl, takePorts } from './apps.ts'
import { ensureKeys } from './keys.ts'

export type PlatformOptions = {
  dir: string
  programs: Programs
  screen?: Screen
  apps?: readonly App[]
  database?: string
  prefix?: AppContext['prefix']
  /** Any free ports for the apps instead of those of the table. */
  any_ports?: boolean
  prefer_ports?: Partial<ServerPorts>
  env_overrides?: NodeJS.ProcessEnv
  /** Hears of each process that was started again, and so has another id. */
  restarted?: () => void
  /** The base of the ports of the demo hosts. */
  fleet_port_base?: number
}

/** Everything that runs, and the order in which it stops. */
export type Platform = {
  context: AppContext
  servers: Servers
  apps: Map<string, Managed>
  gateway_url: string
  /** The gateway first, then the other apps, the servers last. */
  stop: () => Promise<void>
  /** No waiting: for a second Ctrl-C. */
  killAll: () => void
}

/** How Node runs an app. */
export const NODE_ARGUMENTS = [
  '--disable-proto=delete',
  '--disable-warning=ExperimentalWarning',
  '--import',
  QUICK_IMPORTS,
]

/** Starts the servers, brings the database up to date, starts all apps side by side, and waits until each is ready. */
export const startPlatform = async (options: PlatformOptions): Promise<Platform> => {
  const { dir, screen = silentScreen, apps: wanted = APPS, database = 'signalbox' } = options
  mkdirSync(dir, { recursive: true })
  chmodSync(dir, 0o755) // Postgres may run under another account below it; what is private has its own modes.
  const ports = createPorts((name, port, got) => screen.line(name, `port ${port} is taken, using ${got}`, 'yellow'))
  const events = eventsFor(dir, screen, options.restarted)
  const keys = ensureKeys(dir)
  const app_ports = await takePorts(APPS, ports, options.any_ports)
  const servers = await startServers({
    dir,
    screen,
    ports,
    events,
    programs: options.programs,
    secrets: keys.servers,
    ...(options.prefer_ports && { prefer_ports: options.prefer_ports }),
  })
  const apps = new Map<string, Managed>()
  const running = { servers, apps }
  try {
    const started = performance.now()
    const { admin_url, password } = servers.postgres
    const roles = await prepareDatabase({ admin_url, database, password })
    screen.line('database', `migrated in ${elapsed(performance.now() - started)}`)
    if (!roles) screen.line('database', 'the account of DATABASE_URL may not create roles: all apps share it', 'yellow')
    const context: AppContext = {
      dir,
      keys,
      servers,
      database,
      roles,
      ports: app_ports,
      fleet_port_base: options.fleet_port_base ?? 17_200,
      prefix: options.prefix ?? { nats: '', redis: '', queue: '' },
      ...(options.env_overrides && { overrides: options.env_overrides }),
    }
    writeAppEnv(APPS, context)
    await startApps(wanted, context, apps, screen, events)
    const disk = watchDisk({ dir, redis_url: servers.redis.url(), prefix: context.prefix.redis })
    const stop = () => {
      disk.stop()
      return stopAll(running, screen)
    }
    const killAll = () => {
      for (const child of [...apps.values(), ...servers.managed]) child.kill('SIGKILL')
    }
    return { context, servers, apps, gateway_url: gatewayUrl(app_ports), stop, killAll }
  } catch (error) {
    await stopAll(running, screen)
    throw error
  }
}

type Events = (name: string) => Partial<UnitEvents>

const eventsFor =
  (dir: string, screen: Screen, restarted: () => void = () => {}): Events =>
  (name) => ({
    spawned: (pid) => recordChild(dir, name, pid),
    died: (how, retry_ms) => screen.line(name, `died (${how}); starting it again in ${elapsed(retry_ms)}`, 'red'),
    back: (after_ms) => {
      screen.line(name, `is back after ${elapsed(after_ms)}`, 'green')
      restarted()
    },
  })

/** The process of one app, not yet started. */
export const appProcess = (app: App, context: AppContext, events: Partial<UnitEvents> = {}): Managed =>
  createProcess(
    {
      name: app.name,
      command: process.execPath,
      args: [...NODE_ARGUMENTS, entryOf(app.name)],
      cwd: ROOT,
      env: envFor(app, context),
      probe: () => healthy(readyUrl(app.name, context.ports)),
      stop_timeout_ms: 45_000,
    },
    join(context.dir, 'logs'),
    events,
  )

const startApps = async (
  wanted: readonly App[],
  context: AppContext,
  apps: Map<string, Managed>,
  screen: Screen,
  events: Events,
): Promise<void> => {
  await Promise.all(
    wanted.map(async (app) => {
      const started = performance.now()
      const child = appProcess(app, context, events(app.name))
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
    screen.line('platform', `still waits for ${names.join(', ')} (${elapsed(performance.now() - started)})`)
  }, SAY_WAITING_MS)
  await apps.get('gateway')?.stop()
  await Promise.all([...apps.values()].map((app) => app.stop()))
  screen.line('apps', `stopped in ${elapsed(performance.now() - started)}`)
  phase = all
  await servers.stop()
  clearInterval(sayWaiting)
}

/** What `.signalbox/run.json` says: read by scripts and tests, never the printed text. */
export const runOf = ({ context, servers, apps, gateway_url }: Platform) => ({
  pid: process.pid,
  started_at: new Date().toISOString(),
  gateway: gateway_url,
  temporal_ui: servers.temporal.ui_url ?? null,
  temporal: servers.temporal.address,
  postgres: servers.postgres.url(undefined, context.database),
  redis: servers.redis.url(),
  nats: servers.nats.url(servers.nats.own ? 'relay' : undefined),
  /** Where agents connect that take work from the stream, by pool. */
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

/** Writes run.json at once or not at all; it holds passwords of the development servers. */
export const writeRun = (dir: string, run: Run): void => {
  writeFileSync(join(dir, 'run.json'), `${JSON.stringify(run, null, 2)}\n`, { mode: 0o600 })
}

export const removeRun = (dir: string): void => rmSync(join(dir, 'run.json'), { force: true })
