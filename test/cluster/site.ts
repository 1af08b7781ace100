import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ensureInstallation } from '../../apps/platform/base/installation.ts'
import { ROOT } from '../../apps/platform/base/paths.ts'
import { createPorts } from '../../apps/platform/base/ports.ts'
import { healthy } from '../../apps/platform/base/probes.ts'
import { createProcess, type Managed } from '../../apps/platform/base/process.ts'
import { silentScreen } from '../../apps/platform/base/screen.ts'
import { ensureAccounts } from '../../apps/platform/demo/accounts.ts'
import { signIn } from '../../apps/platform/demo/client.ts'
import { writeAppEnv } from '../../apps/platform/run/app-env.ts'
import { APPS, type App, type AppContext, envFor, gatewayUrl, takePorts } from '../../apps/platform/run/apps.ts'
import { ensureKeys } from '../../apps/platform/run/keys.ts'
import { NODE_ARGUMENTS } from '../../apps/platform/run/supervisor.ts'
import { locateNats } from '../../apps/platform/servers/nats.ts'
import { ensureServers, startServers } from '../../apps/platform/servers/up.ts'
import { startLink } from '../support/link.ts'
import { scratchFolder, withoutGivenServers } from '../support/servers.ts'
import { policyWith, type Site, TEST_SETTINGS } from '../support/stack.ts'
import { databaseOf } from './builds.ts'
import { type findEngine, placeEngine, startEngine } from './engine.ts'
import { startBalancer, startNatsCluster, startRedisGroup, startStandby } from './servers.ts'

const DATABASE = 'signalbox'
/** There is only one witness: it is the outside world. */
const isTwice = ({ name }: App) => name !== 'fleet'

/**
 * Two of each app behind one address each, a Postgres with a synchronous standby behind one address, three NATS, and Redis
 * with two replicas and three Sentinels. Temporal has a process for each role; without its `programs` it is a single
 * development server. `root` is the initial build.
 */
export const startSite = async (root = ROOT, temporal_programs?: Awaited<ReturnType<typeof findEngine>>) => {
  const build: Build = { root }
  const dir = scratchFolder()
  const ports = createPorts()
  const keys = ensureKeys(dir)
  const installation = ensureInstallation(dir)
  const policy_file = join(dir, 'executor-policy.yaml')
  writeFileSync(policy_file, policyWith(undefined))
  const running: { stop: () => Promise<unknown> }[] = []
  const closing: (() => void)[] = []
  const stop = async () => {
    for (const one of running.toReversed()) await one.stop()
    for (const close of closing) close()
    rmSync(dir, { recursive: true, force: true })
  }
  try {
    const nats = await startNatsCluster(await locateNats(silentScreen), dir, ports)
    running.push(...nats.nodes)
    const nats_port = await ports.take('nats', 0)
    closing.push(await startBalancer(nats_port, nats.ports))
    const place = temporal_programs && (await placeEngine(ports))
    if (place) closing.push(place.close)
    const { programs, servers } = await withoutGivenServers(['postgres', 'redis', 'nats', 'temporal'], async () => {
      process.env.NATS_URL = `nats://127.0.0.1:${nats_port}`
      if (place) process.env.TEMPORAL_ADDRESS = `127.0.0.1:${place.port}`
      const programs = await ensureServers(silentScreen)
      const prefer_ports = { postgres: 0, redis: 0, temporal: 0, temporal_ui: 0 }
      return {
        programs,
        servers: await startServers({ dir, programs, secrets: keys.servers, installation, ports, prefer_ports }),
      }
    })
    running.push(servers)
    const { admin_url, password } = servers.postgres
    const migrate = async () =>
      (await databaseOf(build.root))({ admin_url, database: DATABASE, password, installation_id: installation.id })
    await migrate()
    const program = programs.postgres ?? ''
    const second = await startStandby({ program, dir, url: admin_url, secret: keys.servers.postgres, ports })
    running.push(second.standby)
    const redis = await startRedisGroup(programs.redis ?? '', dir, servers.redis.url(), ports)
    running.push(...redis.nodes)
    const link = await startLink(admin_url)
    closing.push(link.stop)
    const through = (url: string) => {
      const led = new URL(url)
      led.port = new URL(link.url).port
      return led.href
    }
    const engine =
      temporal_programs &&
      place &&
      (await startEngine(place, {
        ...{ programs: temporal_programs, dir, url: through(admin_url), namespace: installation.namespace },
        begun: (nodes) => running.push(...nodes),
      }))
    const front = await takePorts(APPS, ports, true)
    const context: AppContext = {
      ...{ dir, keys, database: DATABASE, roles: true, fleet_port_base: 21_000 + (process.pid % 400) * 100 },
      servers: {
        ...servers,
        temporal: engine?.temporal ?? servers.temporal,
        postgres: { ...servers.postgres, url: (app, database) => through(servers.postgres.url(app, database)) },
      },
      ports: front,
      prefix: { nats: '', redis: '', queue: installation.queue_prefix },
      overrides: {
        ...TEST_SETTINGS,
        WORKER__EXECUTORS__POLICY_FILE: policy_file,
        SIGNALBOX__NATS__REPLICAS: '3',
        SIGNALBOX__REDIS__SENTINELS: redis.addresses,
        SESSION__REDIS__WAIT_REPLICAS: '1',
        ...engine?.settings,
      },
    }
    writeAppEnv(APPS, context)
    const apps = new Map<string, Managed[]>()
    for (const app of APPS) {
      const seats = isTwice(app)
        ? [(await takePorts([app], ports, true))[app.name], (await takePorts([app], ports, true))[app.name]]
        : [front[app.name]]
      for (const kind of ['http', 'internal'] as const) {
        const targets = seats.map((seat) => seat?.[kind]).filter((port) => port !== undefined)
        const port = front[app.name]?.[kind]
        if (isTwice(app) && port !== undefined) closing.push(await startBalancer(port, targets))
      }
      apps.set(
        app.name,
        seats.map((seat, i) => replica({ app, context, build }, `${app.name}-${i + 1}`, seat as Seat)),
      )
    }
    const all = [...apps.values()].flat()
    running.push({ stop: () => Promise.all(all.map((one) => one.stop())) })
    // One of each first: thirty processes that start at once would wait for this machine's cores.
    for (const n of [0, 1]) await Promise.all([...apps.values()].map((of_app) => of_app[n]?.start()))
    const gateway_url = gatewayUrl(front)
    const people = async () => {
      const { users } = await ensureAccounts(gateway_url, dir)
      // The users report each refusal at once, so that it is counted; ada only prepares the site.
      const signedIn = users.map(async (user) => [
        user.username,
        await signIn(gateway_url, user, user.username === 'ada' ? undefined : { tries: 1, ms: 60_000 }),
      ])
      return Object.fromEntries(await Promise.all(signedIn))
    }
    const site: Site = {
      ...{ context, dir, gateway_url, people, database_url: through(servers.postgres.url(undefined, DATABASE)) },
      url: (name) => `http://127.0.0.1:${front[name]?.http ?? front[name]?.internal}`,
    }
    /** Another process of an app without a listener of its own, such as the worker, with settings of its own. */
    const beside = async (name: string, more: Record<string, string>): Promise<Managed> => {
      const app = APPS.find((one) => name.startsWith(one.name)) as App
      const seat = (await takePorts([app], ports, true))[app.name] as Seat
      const one = replica({ app, context, build, more }, name, seat)
      running.push(one)
      return one
    }
    const own = (server: string) => servers.managed.find(({ name }) => name === server) as Managed
    return {
      ...{
        site,
        apps,
        stop,
        nats,
        engine: engine?.nodes ?? [],
        second,
        link,
        build,
        migrate,
        beside,
        context,
        nats_url: servers.nats.url(),
      },
      primary: own('postgres'),
      redis: { ...redis, at: (port: number) => redis.replicas.get(port) ?? own('redis') },
    }
  } catch (error) {
    await stop()
    throw error
  }
}
export type Cluster = Awaited<ReturnType<typeof startSite>>

/** It may change: processes that start after that belong to the new one. `worker` is the version of the workers. */
type Build = { root: string; worker?: string }
type Running = { app: App; context: AppContext; build: Build; more?: Record<string, string> }
type Seat = { http: number | undefined; internal: number }

/** One of the processes of an app: it calls others at their common addresses, and listens at its own. */
const replica = ({ app, context, build, more }: Running, name: string, { http, internal }: Seat): Managed =>
  createProcess(
    {
      name,
      command: () => ({
        command: process.execPath,
        args: [...NODE_ARGUMENTS, join(build.root, 'apps', app.name, 'main.ts')],
        cwd: build.root,
        env: {
          ...envFor(app, context),
          [app.internal[0]]: String(internal),
          ...(app.http && { [app.http[0]]: String(http) }),
          ...more,
        },
      }),
      probe: (pid) => healthy(`http://127.0.0.1:${internal}/health/ready`, pid),
      stop_timeout_ms: 45_000,
    },
    join(context.dir, 'logs'),
  )
