#!/usr/bin/env node
/**
 * The entry point of every npm script. Plain JavaScript without dependencies, for Node >= 20. Installs the packages if
 * they are missing or differ from the lock file. Then hands over to Node 24, which runs the verb's file directly. No
 * package's install script ever runs (.npmrc).
 */
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath, pathToFileURL } from 'node:url'

const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))))
const NODE_MAJOR = 24
/** The command-line client: a user's command, so it runs in the folder where it was typed. */
const CLI = 'signalbox'
/** The folders that contain the verbs' files. */
const VERBS = ['apps/platform', 'apps/platform/check', 'apps/platform/deploy', 'test/run']
const PASS_ON_MS = 500
const LOOK_MS = 1000
/** The holder of the lock touches it at every look; one that has not for so long is dead. */
const STALE_MS = 15_000
const LOCK = join(ROOT, '.signalbox/npm-ci.lock')
/** Whatever the outer npm or NODE_ENV leaves out: a platform needs all. */
const ALL = ['--include=dev', '--include=optional', '--include=peer']

const [verb = '', ...args] = process.argv.slice(2)
const script = scriptOf(verb)
await installPackages()
handOver(await nodeBinary(), script, args)

/** `bench:operations` runs bench.ts with the area as first argument; `signalbox` is an app; others name their file. */
function scriptOf(name) {
  if (name === CLI) return join(ROOT, 'apps/cli/main.ts')
  const [head, area] = name.split(':')
  const fileOf = (file) => VERBS.map((room) => join(ROOT, room, `${file}.ts`)).find((path) => existsSync(path))
  const known = /^[a-z][a-z:-]*$/.test(name)
  const own = known && fileOf(name.replaceAll(':', '-'))
  const found = own || (known && fileOf(head))
  if (!found) fail(`"${name}" is no command of this project. "npm run" lists them.`)
  if (!own && area) args.unshift(area)
  return found
}

async function installPackages() {
  if (!staleReason()) return
  const release = await lockInstall()
  const reason = staleReason() // Another process may have installed them in the meantime.
  if (reason) {
    const started = performance.now()
    say(`packages   ${reason}: npm ci (once)`)
    const why = await npm(['ci', ...ALL, '--no-audit', '--no-fund', '--loglevel=error'], { cwd: ROOT })
    if (why !== undefined) fail(`npm ci did not succeed${why && ` (${why})`}. See npm's output above.`)
    say(`packages   installed in ${((performance.now() - started) / 1000).toFixed(1)} s`)
  }
  release()
}

/** Waits until no other process installs packages here: two npm ci at once delete each other's files. */
async function lockInstall() {
  const mine = `${process.pid} ${Date.now()}`
  const release = () => {
    clearInterval(touching)
    if (textOf(LOCK) === mine) rmSync(LOCK, { force: true })
  }
  let touching
  let touched
  let since = 0
  for (;;) {
    try {
      mkdirSync(dirname(LOCK), { recursive: true })
      writeFileSync(LOCK, mine, { flag: 'wx' })
      // Two processes may have found the same dead holder: the later one has removed the lock of the other.
      if (touched !== undefined) await delay(PASS_ON_MS)
      if (textOf(LOCK) !== mine) continue
      touching = setInterval(() => touch(LOCK), LOOK_MS)
      process.on('exit', release)
      return release
    } catch (error) {
      if (error.code !== 'EEXIST')
        fail(`${LOCK} cannot be written (${error.message}). Run: sudo chown -R "$(id -u)" ${ROOT}`)
    }
    const now = statSync(LOCK, { throwIfNoEntry: false })?.mtimeMs ?? 0
    if (touched === undefined) say(`packages   waiting for another npm ci (process ${textOf(LOCK)?.split(' ')[0]})`)
    if (now !== touched) [touched, since] = [now, performance.now()]
    else if (performance.now() - since > STALE_MS) rmSync(LOCK, { force: true })
    await delay(LOOK_MS)
  }
}

function touch(file) {
  try {
    utimesSync(file, new Date(), new Date())
  } catch {
    // Removed together with the folder: the install itself will tell.
  }
}

/** Runs npm to its end; returns why it did not succeed, or `undefined`. A signal that ends it ends this process too. */
function npm(argv, options) {
  const child = spawn('npm', argv, {
    stdio: ['ignore', 'inherit', 'inherit'],
    // npm passes its settings down as npm_config_*; a dry or global run of the outer npm must not affect this one.
    env: { ...process.env, npm_config_global: 'false', npm_config_dry_run: 'false' },
    shell: process.platform === 'win32',
    ...options,
  })
  const signalled = passSignals(child)
  return new Promise((done) => {
    child.on('error', (error) => done(error.message))
    child.on('exit', (code, signal) => {
      if (signalled()) process.exit(1)
      done(code === 0 ? undefined : signal ? `ended by ${signal}` : '')
    })
  })
}

/** Why node_modules must be installed again, or `undefined`. Compares content: checkouts change the times of files. */
function staleReason() {
  const installed = readLock('node_modules/.package-lock.json')
  if (!installed) return 'node_modules is missing'
  const wanted = readLock('package-lock.json')
  if (!wanted) fail('package-lock.json is missing or broken: check it out again.')
  for (const [path, entry] of Object.entries(wanted.packages)) {
    if (path === '' || entry.link) continue
    const have = installed.packages[path]
    if (!have && (entry.optional || entry.devOptional || entry.peer)) continue
    if (!have || have.version !== entry.version) return `${path.replace(/^node_modules\//, '')} is not ${entry.version}`
  }
}

function readLock(file) {
  try {
    return JSON.parse(textOf(join(ROOT, file)))
  } catch {
    return undefined
  }
}

function textOf(file) {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return undefined
  }
}

/** Finds Node 24: from the packages (Linux), this very Node, or a copy in the user's cache. */
async function nodeBinary() {
  const name = `node-${process.platform}-${process.arch}`
  const packaged = join(ROOT, 'node_modules', name, 'bin/node')
  if (runs(packaged)) return packaged
  if (Number(process.versions.node.split('.')[0]) >= NODE_MAJOR) return process.execPath
  const prefix = join(cacheFolder(), `node-${NODE_MAJOR}`)
  const cached = join(prefix, 'node_modules', name, 'bin/node')
  if (!existsSync(cached)) {
    say(`node       fetching Node ${NODE_MAJOR} into ${prefix}`)
    mkdirSync(prefix, { recursive: true })
    const flags = ['--no-save', '--ignore-scripts', '--no-audit', '--no-fund']
    await npm(['install', '--prefix', prefix, ...flags, `${name}@${NODE_MAJOR}`], {
      cwd: prefix,
      stdio: ['ignore', 'ignore', 'inherit'],
    })
  }
  if (runs(cached)) return cached
  fail(
    `Signalbox runs on Node ${NODE_MAJOR}. This is ${process.version}, and no packaged Node for ${process.platform}-${process.arch} is available: install Node ${NODE_MAJOR} and try again.`,
  )
}

function runs(binary) {
  if (!existsSync(binary)) return false
  const { status, stdout } = spawnSync(binary, ['--version'], { encoding: 'utf8' })
  return status === 0 && Number(stdout.slice(1).split('.')[0]) >= NODE_MAJOR
}

/** As cacheDir in base/paths.ts. */
function cacheFolder() {
  const { SIGNALBOX_CACHE: own, XDG_CACHE_HOME: caches } = process.env
  if (own) return resolve(own)
  const home = homeFolder()
  if (process.platform === 'darwin' && home) return join(home, 'Library/Caches/signalbox')
  if (caches) return resolve(caches, 'signalbox')
  return home ? join(home, '.cache/signalbox') : join(ROOT, '.signalbox/cache')
}

/** An account without an entry in passwd has none. */
function homeFolder() {
  try {
    return homedir()
  } catch {
    return ''
  }
}

/** Runs the verb in this terminal. Under npm it ends with its parent, because a shell in between passes no signals on. */
function handOver(node, file, rest) {
  const quick = join(ROOT, 'apps/platform/quick-imports.mjs')
  // The client of Temporal names the host to TLS even if that is an IP address, which Node would report.
  const flags = ['--disable-warning=DEP0123', ...(existsSync(quick) ? ['--import', pathToFileURL(quick).href] : [])]
  const child = spawn(node, [...flags, file, ...rest], {
    cwd: verb === CLI ? (process.env.INIT_CWD ?? process.cwd()) : ROOT,
    stdio: 'inherit',
    env: {
      // Most of a verb's first second is compiling. Node skips a cache folder that cannot be written.
      NODE_COMPILE_CACHE: join(ROOT, '.signalbox/cache/compile'),
      ...process.env,
      ...directLoopback(),
      ...(verb === CLI && localGateway()),
      SIGNALBOX_ROOT: ROOT,
      SIGNALBOX_DOOR: String(process.pid),
      PATH: `${dirname(node)}:${process.env.PATH ?? ''}`,
    },
  })
  const signalled = passSignals(child)
  const parent = process.ppid
  const look = setInterval(() => {
    if (process.ppid === parent) return
    clearInterval(look)
    // The parent may have ended by the signal that the child has already.
    if (!signalled()) child.kill('SIGTERM')
  }, LOOK_MS)
  if (!process.env.npm_lifecycle_event) clearInterval(look)
  child.on('error', (error) => fail(`${node} could not be started: ${error.message}`))
  child.on('exit', (code, signal) => process.exit(signal ? 1 : (code ?? 1)))
}

/** The address of the platform that this checkout runs now: another program may own the default port. */
function localGateway() {
  const dir = resolve(ROOT, process.env.SIGNALBOX_DIR || '.signalbox')
  try {
    const { pid, gateway } = JSON.parse(textOf(join(dir, 'run.json')))
    process.kill(pid, 0)
    return { SIGNALBOX_LOCAL_URL: gateway }
  } catch {
    return {} // None runs, or one of another account, or a killed one left its file behind.
  }
}

/**
 * A Ctrl-C in the terminal reaches the child directly; a SIGINT to this process alone does not. So SIGINT is passed on
 * to a child that still runs a moment later, and other signals at once. Returns whether one came.
 */
function passSignals(child) {
  let came = false
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    const pass = () => {
      came = true
      setTimeout(() => child.kill(signal), signal === 'SIGINT' ? PASS_ON_MS : 0)
    }
    process.on(signal, pass)
    child.on('exit', () => process.off(signal, pass))
  }
  return () => came
}

/** No proxy of the environment reaches the servers of this machine. */
function directLoopback() {
  const given = process.env.no_proxy ?? process.env.NO_PROXY ?? ''
  const names = new Set([...given.split(/[\s,]+/), 'localhost', '127.0.0.1', '::1'])
  names.delete('')
  const value = names.has('*') ? '*' : [...names].join()
  return { NO_PROXY: value, no_proxy: value }
}

function say(line) {
  process.stderr.write(`${line}\n`)
}

function fail(line) {
  say(line)
  process.exit(1)
}
