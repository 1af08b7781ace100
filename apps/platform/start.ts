import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { watchDoor } from '../shared/run/door.ts'
import { ensureInstallation, hasInstallation, renewNames } from './base/installation.ts'
import { signalboxDir } from './base/paths.ts'
import { signalGroup } from './base/pids.ts'
import type { Managed } from './base/process.ts'
import { forgetChildren, recordedChildren, takeFolder } from './base/record.ts'
import { createScreen, elapsed, misused, paint, readFlags } from './base/screen.ts'
import { readDemo } from './demo/accounts.ts'
import type { Account } from './demo/client.ts'
import { type DemoProvider, startDemoProvider } from './demo/provider.ts'
import { DEMO_HOSTS, seedDemo, seedTools } from './demo/seed.ts'
import { fillCompileCache } from './run/compile-cache.ts'
import { buildConsole } from './run/console-build.ts'
import { endOrphans } from './run/orphans.ts'
import {
  engineUiOf,
  eventsFor,
  type Platform,
  type Run,
  removeRun,
  runOf,
  startPlatform,
  writeRun,
} from './run/supervisor.ts'
import { dataFolder } from './servers/postgres.ts'
import { ensureServers } from './servers/up.ts'

/** `npm start [-- --reset] [--no-demo] [--sso] [--hosts N]`: the whole platform in the foreground, until Ctrl-C. */
const refuse = misused(
  'usage: npm start -- [--reset] [--no-demo] [--sso] [--hosts N]   (N: demo hosts, 2 to 200, default 24)',
)
const MAX_HOSTS = 200

/** npm takes the flags before `--` for settings of its own, and passes none of them on. */
const swallowed = (): string[] => {
  const { npm_config_reset: reset, npm_config_demo: demo, npm_config_sso: sso, npm_config_hosts: hosts } = process.env
  return [
    ...(reset ? ['--reset'] : []),
    ...(demo === '' || demo === 'false' ? ['--no-demo'] : []),
    ...(sso ? ['--sso'] : []),
    ...(hosts ? [`--hosts ${hosts}`] : []),
  ]
}

const flagsOf = () => {
  const lost = swallowed()
  if (lost.length > 0) misused(`npm keeps ${lost.join(' and ')} for itself. Write: npm start -- ${lost.join(' ')}`)()
  const options = {
    reset: { type: 'boolean', default: false },
    demo: { type: 'boolean', default: true },
    sso: { type: 'boolean', default: false },
    hosts: { type: 'string', default: String(DEMO_HOSTS) },
  } as const
  const { values } = readFlags({ options, allowNegative: true }, refuse)
  const hosts = Number(values.hosts)
  return Number.isInteger(hosts) && hosts >= 2 && hosts <= MAX_HOSTS ? { ...values, hosts } : refuse()
}

const flags = flagsOf()
const dir = signalboxDir()
const screen = createScreen()
if (process.env.NODE_ENV === 'production') {
  delete process.env.NODE_ENV // Its keys and accounts are of development: every app would refuse them.
  screen.line(
    'platform',
    'ignoring NODE_ENV=production: this is a demo; "npm run setup -- production" prepares the other',
  )
}
const started = performance.now()
const starting = new AbortController()
let launching: Promise<Platform> | undefined
let platform: Platform | undefined
let provider: DemoProvider | undefined
/** The agent of the demo. */
let runner: Managed | undefined
let stopping = false
let ready = false
/** Until the folder is ours, its contents belong to the platform that runs there. */
let ours = false

/** The variables that name a server of one's own. Its data would not fit the new keys. */
const OWN_SERVERS = ['DATABASE_URL', 'REDIS_URL', 'NATS_URL', 'TEMPORAL_ADDRESS']

const main = async () => {
  const own = OWN_SERVERS.filter((name) => process.env[name])
  if (flags.reset && own.length > 0)
    throw new Error(
      `--reset cannot drop the data of ${own.join(' and ')}, so it drops none. Start without these variables, or name empty servers and a new SIGNALBOX_DIR.`,
    )
  const giveBack = takeFolder(dir)
  process.on('exit', giveBack)
  ours = true
  removeRun(dir)
  await endOrphans(dir, screen)
  if (flags.reset) reset()
  const [programs] = await Promise.all([
    ensureServers(screen),
    buildConsole(join(dir, 'console'), screen),
    fillCompileCache(screen),
  ])
  if (flags.sso) provider = await startDemoProvider(dir, screen)
  starting.signal.throwIfAborted()
  launching = startPlatform({ dir, screen, programs, restarted: refreshRun, signal: starting.signal })
  platform = await launching
  if (stopping) return
  writeRun(dir, runOf(platform))
  ready = true
  printReady(platform)
  if (flags.demo) void seed(runOf(platform))
}

/** Seeds beside the running platform, which stays however the seed ends. */
const seed = async (run: Run) => {
  const begun = performance.now()
  try {
    const { users, fresh } = await seedDemo({
      run,
      signalbox_dir: dir,
      hosts: flags.hosts,
      log: (text) => screen.line('demo', text),
    })
    if (fresh) printDemo(users, performance.now() - begun, run.gateway)
    await showTools(run, users)
  } catch (error) {
    if (!stopping) screen.line('demo', (error as Error).message, 'yellow')
  }
}

/** Real tools under approval, when the rest of the demo is there: no one waits for them. */
const showTools = (run: Run, users: Account[]) => {
  const door = { dir, gateway_url: () => platform?.gateway_url ?? run.gateway }
  const keep = (started: Managed) => {
    runner = started
  }
  return seedTools(door, users, eventsFor(dir, screen)('runner'), keep, (text) => screen.line('demo', text))
}

/** After a restart run.json must name the new process. */
const refreshRun = () => {
  if (platform && ready && !stopping) writeRun(dir, runOf(platform))
}

const reset = () => {
  // Its folders are named like those of others: ~/logs, ~/keys.
  if (!hasInstallation(dir)) {
    screen.line('platform', `${dir} has no data of Signalbox, so --reset drops none`)
    return
  }
  screen.line('platform', `dropping the data in ${dir}`)
  ensureInstallation(dir)
  const folders = ['postgres', 'redis', 'nats', 'temporal', 'keys', 'secrets', 'artifacts', 'logs', 'demo']
  const files = ['demo.json', 'audit-anchors.jsonl', 'fleet.sqlite', 'fleet.sqlite-wal', 'fleet.sqlite-shm']
  const paths = [dataFolder(dir), ...[...folders, ...files].map((name) => join(dir, name))]
  for (const path of paths) rmSync(path, { recursive: true, force: true })
  renewNames(dir)
}

const bold = (text: string) => paint('bold', text)

const printReady = ({ gateway_url, servers }: Platform) => {
  const lines = [
    '',
    `${bold(`Signalbox is ready (${elapsed(performance.now() - started)})`)}     console  ${bold(gateway_url)}      Temporal UI  ${engineUiOf(servers) ?? 'none'}`,
  ]
  const demo = readDemo(dir)
  if (!flags.demo)
    lines.push('No demo data. The first administrator:  npm run admin -- identity bootstrap-admin --username NAME')
  else if (demo?.seeded) lines.push(peopleOf(demo.users, false), ...firstMinute(gateway_url))
  else lines.push('  The demo data is now added in the background; its accounts are shown when it is complete.')
  if (provider) lines.push(`  Sign in with the demo provider (${provider.issuer}): as mia or tom; otto has no access.`)
  console.log(`${lines.join('\n')}\n`)
}

const printDemo = (users: Account[], ms: number, url: string) =>
  console.log(
    `\n${[bold(`The demo data is complete (${elapsed(ms)})`), peopleOf(users, true), ...firstMinute(url)].join('\n')}\n`,
  )

const peopleOf = (users: Account[], fresh: boolean): string => {
  const rows = users
    .filter(({ username }) => username !== 'ada')
    .map(({ username, roles, password }) => `${username}  ${roles.join(', ')}${fresh ? `   ${bold(password)}` : ''}`)
  const where = fresh ? '(shown once; .signalbox/demo.json)' : '(passwords: .signalbox/demo.json)'
  return `  ${rows.join('      ')}      ${where}`
}

const firstMinute = (url: string): string[] => {
  // The client finds the platform of this checkout, but from another folder only the default port.
  const at = url.endsWith(':8080') ? '' : ` --url ${url}`
  return [
    'First minute:  1. Sign in as eva; a gate and a patch wait.   2. Open the gate, read what changes on eu1, approve it.',
    '               3. Watch the hosts turn green in the graph.   4. Open "web 2.4.0 on us1": a failed node and a patch to judge.',
    `Or in a terminal:  npx signalbox login eva${at} && npx signalbox inbox${at}`,
  ]
}

/** One Ctrl-C may arrive more than once: from the terminal, and passed on by npm and by its script. */
const ONE_SIGNAL_MS = 2000
let stoppingSince = 0

const stop = async (why: string) => {
  if (stopping) {
    if (performance.now() - stoppingSince < ONE_SIGNAL_MS) return
    for (const { pid } of recordedChildren(dir)) signalGroup(pid, 'SIGKILL')
    removeRun(dir)
    process.exit(1)
  }
  stopping = true
  stoppingSince = performance.now()
  if (!ours) process.exit(1)
  screen.line('platform', `${why}: stopping in order (repeat to stop at once)`)
  removeRun(dir)
  const since = performance.now()
  await Promise.all([provider?.stop(), runner?.stop()])
  if (platform) await platform.stop()
  else {
    starting.abort(new Error(why))
    // An aborted start stops what it has begun before it fails.
    await launching?.then((late) => late.stop()).catch(() => {})
  }
  await endOrphans(dir, screen)
  forgetChildren(dir)
  screen.line('platform', `stopped in ${elapsed(performance.now() - since)}; the data stays in ${dir}`)
  process.exit(0)
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => void stop(signal))
// The parent may end because of the same signal that stops this process, so that is not a second signal.
watchDoor(() => {
  if (!stopping) void stop('the process that started this one is gone')
})
try {
  await main()
} catch (error) {
  if (!stopping) {
    screen.line('platform', (error as Error).message, 'red')
    await platform?.stop()
    if (ours) removeRun(dir)
    process.exit(1)
  }
}
