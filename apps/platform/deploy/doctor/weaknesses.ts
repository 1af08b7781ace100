import { Connection } from '@temporalio/client'
import { Redis } from 'ioredis'
import type { NatsConnection, StreamConfig } from 'nats'
import type pg from 'pg'
import { withConnection } from '../../../../db/connection.ts'
import { AREAS, lackingMigrations } from '../../../../db/migrate.ts'
import { SEARCH_ATTRIBUTES } from '../../../../workflows/operation/messages.ts'
import { connectNats } from '../../../shared/events/events.ts'
import { type Links, redisLink, temporalAuthorities, temporalOptions } from '../../../shared/links.ts'
import { bareHost } from '../../../shared/web/addresses.ts'
import { DATABASE_ROLES } from '../../base/database.ts'

export type Weakness = readonly [what: string, remedy: string]
/** A list with the weakness if it exists, otherwise an empty one. */
export const weak = (is_weak: boolean, what: string, remedy: string): Weakness[] => (is_weak ? [[what, remedy]] : [])
export type Subject = { app: string; links: Links; prefix: string; namespace: string }

/** A busy server answers late; one that is not there refuses at once. */
const TRY_MS = 15_000
const MAX_SKEW_MS = 2000
const CONNECTIONS = 300
const AT_LEAST = { postgres: 150_000, redis: '7.0.0', nats: '2.12.0', temporal: '1.29.1' }

const isOlder = (found: string, least: string): boolean => found.localeCompare(least, 'en', { numeric: true }) < 0
/** Each setting that differs from the required value. */
const differing = (found: Record<string, unknown>, wanted: Record<string, string>, remedy: string): Weakness[] =>
  Object.entries(wanted).flatMap(([name, value]) =>
    weak(found[name] !== value, `${name} is ${found[name] ?? 'unknown'}`, `${remedy} ${name} to ${value}`),
  )

/** Checks the settings that could lose a commit, the clock, the version, and the rights of the app's role. */
export const weakPostgres = ({ app }: Subject, url: string): Promise<Weakness[]> =>
  withConnection({ connectionString: url, connectionTimeoutMillis: TRY_MS, query_timeout: TRY_MS }, async (client) => {
    const { rows } = await client.query<{ name: string; setting: string }>('select name, setting from pg_settings')
    const found = Object.fromEntries(rows.map(({ name, setting }) => [name, setting]))
    const { rows: backend } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
    // A pooler gives each client a number of its own; the server behind it has another.
    const is_pooled = backend[0]?.pid !== (client as unknown as { processID: number }).processID
    const clock = await client.query<{ at: Date }>('select clock_timestamp() as at')
    const skew = Math.abs(Date.now() - (clock.rows[0]?.at.getTime() ?? 0))
    const wanted = { fsync: 'on', full_page_writes: 'on', synchronous_commit: 'on', data_checksums: 'on', ssl: 'on' }
    const is_old = Number(found.server_version_num) < AT_LEAST.postgres
    return [
      ...differing(found, wanted, 'In postgresql.conf set'),
      ...weak(is_old, `its version is ${found.server_version}`, 'Use Postgres 15 or newer'),
      ...weak(
        found.statement_timeout === '0',
        'statements have no timeout',
        'Run "npm run migrate": it sets the timeout of the role',
      ),
      ...weak(
        // Behind a pooler the apps need few; the relay is never behind one.
        !is_pooled && app !== 'relay' && Number(found.max_connections) < CONNECTIONS,
        `max_connections is ${found.max_connections}, and two of each app take up to 282`,
        'In postgresql.conf set it to 400, or put PgBouncer before it: guides/scale.md',
      ),
      ...weakPooler(app, is_pooled, new URL(url).searchParams.get('pooler') === 'transaction'),
      ...weak(skew > MAX_SKEW_MS, `its clock differs by ${skew} ms`, 'Set the clocks by NTP'),
      ...(await weakRole(client, app)),
      ...(await weakTables(client, app)),
    ]
  })

/** An app waits at its start until every migration of its build is applied. */
const weakTables = async (client: pg.Client, app: string): Promise<Weakness[]> => {
  const area = AREAS.find((one) => one === DATABASE_ROLES[app])
  if (!area) return []
  const lacking = await lackingMigrations(client, area)
  return weak(lacking.length > 0, `the database lacks the migrations ${lacking.join(', ')}`, 'Run "npm run migrate"')
}

const weakPooler = (app: string, is_pooled: boolean, is_said: boolean): Weakness[] => {
  if (is_pooled === is_said) return []
  if (is_said)
    return [['its URL says pooler=transaction, but no pooler answers', 'Remove it, or name the address of PgBouncer']]
  const remedy =
    app === 'relay'
      ? 'Name Postgres itself: the relay holds a lock of a session'
      : 'End its URL with pooler=transaction, or name Postgres itself'
  return [['a pooler is before Postgres, and its URL does not say so', remedy]]
}

const MIGHTY = `
  select rolsuper or rolcreaterole or rolcreatedb or rolbypassrls as mighty,
    pg_has_role(current_user, 'pg_read_all_stats', 'usage') as sees_replicas from pg_roles where rolname = current_user`
const READS = `
  select schemaname as schema from pg_tables where schemaname = any($1) and has_schema_privilege(schemaname, 'usage')
  group by 1 having bool_or(has_table_privilege(format('%I.%I', schemaname, tablename), 'select'))`

const weakRole = async (client: pg.Client, app: string): Promise<Weakness[]> => {
  const role = await client.query<{ mighty: boolean; sees_replicas: boolean }>(MIGHTY)
  const { rows } = await client.query<{ schema: string }>(READS, [AREAS])
  const reads = rows.map(({ schema }) => schema)
  // The relay crosses all schemas by design.
  const own = app === 'relay' ? AREAS : [DATABASE_ROLES[app] ?? '']
  const foreign = reads.filter((schema) => !own.includes(schema as never))
  const lost = own.filter((schema) => !reads.includes(schema))
  const [rest, gone] = [foreign.join(', '), lost.join(', ')]
  return [
    ...weak(role.rows[0]?.mighty ?? true, 'its role has superuser rights', 'Use the role that "npm run migrate" made'),
    ...weak(
      app === 'relay' && role.rows[0]?.sees_replicas === false,
      'it cannot see the lag of replicas',
      'Run "grant pg_read_all_stats to" its role as a superuser',
    ),
    ...weak(lost.length > 0, `it cannot read its own schema: ${gone}`, 'Run "npm run migrate"'),
    ...weak(foreign.length > 0, `it can read the schema of another app: ${rest}`, 'Revoke these rights from its role'),
  ]
}

const REDIS_SETTINGS = {
  appendonly: 'yes',
  appendfsync: 'always',
  'no-appendfsync-on-rewrite': 'no',
  'maxmemory-policy': 'noeviction',
}
export const weakRedis = async ({ app, links, prefix }: Subject, url: string): Promise<Weakness[]> => {
  const once = { retryStrategy: () => null, sentinelRetryStrategy: () => null, connectTimeout: TRY_MS }
  const options = { ...redisLink(url, links), ...once, lazyConnect: true }
  const redis = new Redis(url, options)
  const { hostname, port } = new URL(url)
  const stranger = new Redis({ ...options, host: bareHost(hostname), port: Number(port || 6379) })
  for (const one of [redis, stranger]) one.on('error', () => {})
  try {
    await redis.connect()
    const found: Record<string, unknown> = {}
    for (const name of Object.keys(REDIS_SETTINGS)) found[name] = ((await redis.config('GET', name)) as unknown[])[1]
    const version = /redis_version:(\S+)/.exec(await redis.info('server'))?.[1] ?? '0'
    // Both connections must fail.
    const [strange, foreign] = await Promise.allSettled([
      stranger.connect().then(() => stranger.ping()),
      redis.get(`${prefix}sess:doctor`),
    ])
    const reads = app !== 'session' && foreign.status === 'fulfilled'
    return [
      ...differing(found, REDIS_SETTINGS, 'In redis.conf set'),
      ...weak(isOlder(version, AT_LEAST.redis), `its version is ${version}`, 'Use Redis 7 or newer'),
      ...weak(
        strange.status === 'fulfilled',
        'it accepts clients without an account',
        'Write "user default off" into users.acl',
      ),
      ...weak(reads, 'it can read sessions', 'Give the user the rules of redis/users.acl'),
    ]
  } finally {
    redis.disconnect()
    stranger.disconnect()
  }
}

export const weakNats = async ({ app, links }: Subject, url: string): Promise<Weakness[]> => {
  const nc = await connectNats(url, 'doctor', links, TRY_MS)
  try {
    const { version = '0', auth_required = false } = nc.info ?? {}
    const streams: StreamConfig[] = []
    const jsm = await nc.jetstreamManager({ timeout: TRY_MS })
    for await (const { config } of jsm.streams.list()) streams.push(config)
    const named = (found: StreamConfig[]) => found.map(({ name }) => name).join(', ')
    const lossy = streams.filter(({ storage }) => storage !== 'file')
    const single = streams.filter(({ num_replicas }) => nc.info?.cluster && num_replicas < 3)
    const hears = app !== 'worker' && (await hearsAgents(nc))
    return [
      ...weak(isOlder(version, AT_LEAST.nats), `its version is ${version}`, 'Use NATS 2.12 or newer'),
      ...weak(!auth_required, 'it accepts everyone', 'Include nats/accounts.conf in its configuration'),
      ...weak(lossy.length > 0, `streams are in memory: ${named(lossy)}`, 'Recreate them on disk'),
      ...weak(
        single.length > 0,
        `one lost server of the cluster stops these streams: ${named(single)}`,
        'Set SIGNALBOX__NATS__REPLICAS to 3, and restart the apps',
      ),
      ...weak(hears, 'it receives the work of agents', 'Give the user the permissions of nats/accounts.conf'),
    ]
  } finally {
    await nc.close()
  }
}

/** Only the worker may receive these messages: they carry the token with which a result is reported. */
const hearsAgents = async (nc: NatsConnection): Promise<boolean> => {
  const refusals: unknown[] = []
  nc.subscribe('execution.doctor', { callback: (error) => void (error && refusals.push(error)) })
  await nc.flush()
  return refusals.length === 0
}

/** Whether Temporal serves whoever reaches it: without a certificate and without an API key. */
const servesStrangers = async (address: string, links: Links): Promise<boolean> => {
  const ca = temporalAuthorities(links)
  const stranger = { ...links, tls: ca ? { ca } : {}, api_key_file: undefined }
  try {
    const connection = await Connection.connect({ ...temporalOptions(address, stranger), connectTimeout: TRY_MS })
    await connection.close()
    return true
  } catch {
    return false
  }
}

export const weakTemporal = async ({ links, namespace }: Subject, address: string): Promise<Weakness[]> => {
  const connection = await Connection.connect({ ...temporalOptions(address, links), connectTimeout: TRY_MS })
  const { workflowService, operatorService } = connection
  try {
    return await connection.withDeadline(Date.now() + TRY_MS, async () => {
      const { serverVersion } = await workflowService.getSystemInfo({})
      const known = await workflowService.describeNamespace({ namespace }).catch((error: Error & { code?: number }) => {
        if (error.code !== 5) throw error
        return undefined
      })
      if (!known) return weak(true, `it has no namespace "${namespace}"`, 'Create it: NEXT.md, step 4')
      const { customAttributes } = await operatorService.listSearchAttributes({ namespace })
      const missing = Object.keys(SEARCH_ATTRIBUTES).filter((name) => !(name in (customAttributes ?? {})))
      const is_old = isOlder(serverVersion ?? '0', AT_LEAST.temporal)
      return [
        ...weak(
          await servesStrangers(address, links),
          'it serves callers without a certificate or API key',
          'Give it the settings of temporal/tls.yaml: NEXT.md, step 4',
        ),
        ...weak(is_old, `its version is ${serverVersion}`, `Use Temporal ${AT_LEAST.temporal} or newer`),
        ...weak(
          missing.length > 0,
          `search attributes are missing: ${missing.join(', ')}`,
          'Create them: NEXT.md, step 4',
        ),
      ]
    })
  } finally {
    await connection.close()
  }
}
