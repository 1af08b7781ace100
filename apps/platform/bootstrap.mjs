#!/usr/bin/env node
/**
 * The entry point of every npm script. Plain JavaScript without dependencies, for Node >= 20. Installs the packages if
 * they are missing or differ from the lock file. Then hands over to Node 24, which runs the verb's file directly. No
 * package's install script ever runs (.npmrc).
 */
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))))
const NODE_MAJOR = 24
/** The command-line client: a user's command, so it runs in the folder where it was typed. */
const CLI = 'signalbox'
/** The folders that contain the verbs' files. */
const VERBS = ['apps/platform', 'apps/platform/check', 'apps/platform/deploy', 'test/run']
const PASS_ON_MS = 500
const LOOK_MS = 1000

const [verb = '', ...args] = process.argv.slice(2)
const script = scriptOf(verb)
installPackages()
handOver(nodeBinary(), script, args)

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

function installPackages() {
  const reason = staleReason()
  if (!reason) return
  const started = performance.now()
  say(`packages   ${reason}: npm ci (once)`)
  // npm passes its settings down as npm_config_*; a dry or global run of the outer npm must not affect this one.
  const { status, error } = spawnSync('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: ROOT,
    stdio: ['ignore', 'inherit', 'inherit'],
    env: { ...process.env, npm_config_global: 'false', npm_config_dry_run: 'false' },
    shell: process.platform === 'win32',
  })
  if (error || status !== 0) fail(`npm ci did not succeed${error ? ` (${error.message})` : ''}. Its words stand above.`)
  say(`packages   installed in ${((performance.now() - started) / 1000).toFixed(1)} s`)
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
    return JSON.parse(readFileSync(join(ROOT, file), 'utf8'))
  } catch {
    return undefined
  }
}

/** Finds Node 24: from the packages (Linux), this very Node, or a copy in the user's cache. */
function nodeBinary() {
  const name = `node-${process.platform}-${process.arch}`
  const packaged = join(ROOT, 'node_modules', name, 'bin/node')
  if (runs(packaged)) return packaged
  if (Number(process.versions.node.split('.')[0]) >= NODE_MAJOR) return process.execPath
  const prefix = join(cacheFolder(), `node-${NODE_MAJOR}`)
  const cached = join(prefix, 'node_modules', name, 'bin/node')
  if (!existsSync(cached)) {
    say(`node       fetching Node ${NODE_MAJOR} into ${prefix}`)
    mkdirSync(prefix, { recursive: true })
    spawnSync(
      'npm',
      [
        'install',
        '--prefix',
        prefix,
        '--no-save',
        '--ignore-scripts',
        '--no-audit',
        '--no-fund',
        `${name}@${NODE_MAJOR}`,
      ],
      { stdio: ['ignore', 'ignore', 'inherit'], cwd: prefix },
    )
  }
  if (runs(cached)) return cached
  fail(
    `Signalbox runs on Node ${NODE_MAJOR}. This is ${process.version}, and no packaged Node for ${process.platform}-${process.arch} could be had: install Node ${NODE_MAJOR} and try again.`,
  )
}

function runs(binary) {
  if (!existsSync(binary)) return false
  const { status, stdout } = spawnSync(binary, ['--version'], { encoding: 'utf8' })
  return status === 0 && Number(stdout.slice(1).split('.')[0]) >= NODE_MAJOR
}

function cacheFolder() {
  if (process.env.SIGNALBOX_CACHE) return process.env.SIGNALBOX_CACHE
  if (process.platform === 'darwin') return join(homedir(), 'Library/Caches/signalbox')
  return join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'signalbox')
}

/**
 * Runs the verb in this terminal. A Ctrl-C there reaches the child directly; a SIGINT to this process alone does not.
 * So SIGINT is passed on to a child that still runs a moment later, and other signals at once. Under npm it ends with
 * its parent, because a shell in between passes no signals on.
 */
function handOver(node, file, rest) {
  const quick = join(ROOT, 'apps/platform/quick-imports.mjs')
  // The client of Temporal names the host to TLS even if that is an IP address, which Node would report.
  const flags = ['--disable-warning=DEP0123', ...(existsSync(quick) ? ['--import', quick] : [])]
  const child = spawn(node, [...flags, file, ...rest], {
    cwd: verb === CLI ? (process.env.INIT_CWD ?? process.cwd()) : ROOT,
    stdio: 'inherit',
    env: {
      // Most of a verb's first second is compiling. Node skips a cache folder that cannot be written.
      NODE_COMPILE_CACHE: join(ROOT, '.signalbox/cache/compile'),
      ...process.env,
      SIGNALBOX_ROOT: ROOT,
      SIGNALBOX_DOOR: String(process.pid),
      PATH: `${dirname(node)}:${process.env.PATH ?? ''}`,
    },
  })
  process.on('SIGINT', () => setTimeout(() => child.kill('SIGINT'), PASS_ON_MS))
  for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
  const parent = process.ppid
  const look = setInterval(() => {
    if (process.ppid === parent) return
    clearInterval(look)
    child.kill('SIGTERM')
  }, LOOK_MS)
  if (!process.env.npm_lifecycle_event) clearInterval(look)
  child.on('error', (error) => fail(`${node} could not be started: ${error.message}`))
  child.on('exit', (code, signal) => process.exit(signal ? 1 : (code ?? 1)))
}

function say(line) {
  process.stderr.write(`${line}\n`)
}

function fail(line) {
  say(line)
  process.exit(1)
}
