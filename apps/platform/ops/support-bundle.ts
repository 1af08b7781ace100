import { execFileSync } from 'node:child_process'
import {
  closeSync,
  existsSync,
  fstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'
import { sql } from 'drizzle-orm'
import { Agent, request } from 'undici'
import { createInspection } from '../../relay/commands/inspect.ts'
import { loadRelayConfig } from '../../relay/config.ts'
import { MASK } from '../../shared/data/mask.ts'
import { ROOT, signalboxDir } from '../base/paths.ts'
import { productionEnv, schemaOf } from '../deploy/reference.ts'
import { readAppEnv } from '../run/app-env.ts'
import { APPS } from '../run/apps.ts'
import { OpsError, settingOf, withDb } from './access.ts'
import { bundleMask, type Env } from './bundle-mask.ts'

export type BundleOptions = {
  /** The folder of the production setup; by default, the platform of this folder. */
  env?: string | undefined
  /** The host name of an app; `{app}` is its name. */
  hosts: string
  logs?: string | undefined
  operation?: string | undefined
  hours: string
  to: string
}

const HOUR_MS = 3_600_000
const ASK_MS = 5000
const MOST_LOG = 5_000_000

/**
 * `support-bundle [--operation ID]`: one archive for supporters: versions, settings, health, metrics, logs, and the
 * states of one operation. It contains no app's secret, wherever that appeared.
 */
export const supportBundle = async (options: BundleOptions): Promise<number> => {
  const hours = Number(options.hours)
  if (!(hours > 0)) throw new OpsError(`--hours must be a number of hours, not ${options.hours}.`)
  const envs = APPS.flatMap(({ name }): [string, Env][] => {
    const env = options.env ? productionEnv(options.env, name) : readAppEnv(signalboxDir(), name)
    return env ? [[name, env]] : []
  })
  if (envs.length === 0)
    throw new OpsError(`There are no settings below ${options.env ?? signalboxDir()}. Name the folder with --env.`)
  const mask = bundleMask(options.env ?? signalboxDir(), envs)
  const to = resolve(options.to)
  const scratch = mkdtempSync(join(tmpdir(), 'signalbox-bundle-'))
  const folder = join(scratch, basename(to).replace(/\.t.*$/, ''))
  const put = (file: string, content: unknown) => {
    const path = join(folder, file)
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    writeFileSync(path, mask(typeof content === 'string' ? content : `${JSON.stringify(content, null, 2)}\n`))
  }
  try {
    put('versions.json', versions())
    for (const [name, env] of envs) {
      put(`settings/${name}.json`, settingsOf(name, env))
      for (const [file, path] of Object.entries({ 'health.json': '/health/ready', 'metrics.txt': '/metrics' }))
        put(`${name}/${file}`, await ask(name, env, options.hosts, path))
      const log = join(options.logs ?? join(signalboxDir(), 'logs'), `${name}.log`)
      if (existsSync(log)) put(`${name}/log.jsonl`, since(endOf(log), Date.now() - hours * HOUR_MS))
    }
    if (options.operation) await putOperation(options.operation, put)
    execFileSync('tar', ['-czf', to, '-C', scratch, basename(folder)])
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
  console.log(`${to} has the state of ${envs.length} apps without their secrets. Read it before you send it.`)
  return 0
}

const settingsOf = (app: string, env: Env): Env =>
  Object.fromEntries(
    Object.entries(schemaOf(app)).flatMap(([name, { secret }]) =>
      env[name] === undefined ? [] : [[name, secret ? MASK : env[name]]],
    ),
  )

const versions = () => {
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string }
  const { node, v8, openssl } = process.versions
  const build = process.env.WORKER__TEMPORAL__BUILD_ID
  return { signalbox: version, build, node, v8, openssl, system: `${process.platform} ${process.arch}`, at: new Date() }
}

/** An app's answer on its internal listener; the reason why it does not answer is useful too. */
const ask = async (app: string, env: Env, hosts: string, path: string): Promise<string> => {
  const [variable = '', port] = APPS.find(({ name }) => name === app)?.internal ?? []
  const { AUTH__TLS__CERT_FILE: cert, AUTH__TLS__KEY_FILE: key, AUTH__TLS__CA_FILE: ca } = env
  const at = `${hosts.replaceAll('{app}', app)}:${env[variable] ?? port}${path}`
  try {
    const text = (file = '') => readFileSync(file, 'utf8')
    const connect = cert ? { cert: text(cert), key: text(key), ca: text(ca), servername: app } : {}
    const dispatcher = new Agent({ connect })
    const timeouts = { headersTimeout: ASK_MS, bodyTimeout: ASK_MS }
    const { body } = await request(`${cert ? 'https' : 'http'}://${at}`, { dispatcher, ...timeouts })
    return await body.text()
  } catch (error) {
    return `no answer from ${at}: ${(error as Error).message}\n`
  }
}

/** The last whole lines of a log: of a secret that is cut, the mask would know neither part. */
const endOf = (file: string): string => {
  const log = openSync(file, 'r')
  try {
    const { size } = fstatSync(log)
    const end = Buffer.alloc(Math.min(size, MOST_LOG))
    const text = end.toString('utf8', 0, readSync(log, end, 0, end.length, size - end.length))
    return size > MOST_LOG ? text.replace(/^[^\n]*\n?/, '') : text
  } finally {
    closeSync(log)
  }
}

/** The lines of a log from that time on; a line without a time belongs to the one before. */
const since = (text: string, from: number): string => {
  let recent = false
  const kept = text.split('\n').filter((line) => {
    const [, time] = /"time":"([^"]+)"/.exec(line) ?? []
    if (time) recent = Date.parse(time) >= from
    return recent
  })
  return kept.join('\n')
}

/** States and times of an operation, without its inputs, its outputs, or the payloads of its history. */
const putOperation = async (id: string, put: (file: string, content: unknown) => void): Promise<void> => {
  const parts = {
    operation: sql`select operation_id, kind, engine_status, end_reason, blocked_on, total, done, running, failed, waiting, plan_revision, record_seq, created_at, started_at, ended_at, updated_at from operations.operations where operation_id = ${id}`,
    nodes: sql`select node_id, kind, executor, state, generation, attempt, error ->> 'class' as error_class, ready_at, gated_at, started_at, ended_at, due_at from operations.nodes where operation_id = ${id} order by ordinal`,
    attempts: sql`select node_id, role, attempt, phase, pool, fence, sequence, started_at, ended_at, heartbeat_at, deadline_at from operations.node_attempts where operation_id = ${id} order by started_at`,
    commands: sql`select command_id, seq, kind, class, status, attempts, last_error, request_id, created_at, outcome_at from operations.operation_commands where operation_id = ${id} order by seq`,
    gates: sql`select gate_id, kind, status, round, waiting_since, deadline_at, decided_at from operations.gates where operation_id = ${id} order by ordinal`,
    waits: sql`select since, wanted from operations.lease_waits where operation_id = ${id}`,
    leases: sql`select l.* from operations.leases l where l.operation_id = ${id} or l.resource_id in (
      select w.resource_id from operations.lease_waits, jsonb_to_recordset(wanted) as w(resource_id text) where operation_id = ${id})`,
  }
  await withDb('operations', async (db) => {
    for (const [name, query] of Object.entries(parts)) put(`operation/${name}.json`, (await db.execute(query)).rows)
  })
  settingOf('relay', 'TEMPORAL__ADDRESS')
  const inspection = createInspection(loadRelayConfig())
  try {
    const { events } = JSON.parse(await inspection.historyOf(id)) as { events: Record<string, unknown>[] }
    put(
      'operation/history.json',
      events.map(({ eventId, eventTime, eventType }) => ({ eventId, eventTime, eventType })),
    )
  } catch (error) {
    put('operation/history.json', `no history: ${(error as Error).message}\n`)
  } finally {
    await inspection.close()
  }
}
