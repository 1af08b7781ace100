import { Connection } from '@temporalio/client'
import { Redis } from 'ioredis'
import type { NatsConnection } from 'nats'
import type pg from 'pg'
import { withConnection } from '../../../db/connection.ts'
import { AREAS } from '../../../db/migrate.ts'
import { connectNats } from '../../shared/events/events.ts'
import { type Links, temporalOptions, tlsOf } from '../../shared/links.ts'
import { DATABASE_ROLES } from '../base/database.ts'
import { SEARCH_ATTRIBUTES } from '../servers/temporal.ts'

/** A weakness and its remedy. */
export type Weakness = readonly [what: string, remedy: string]
export type Subject = { app: string; links: Links; prefix: string }

const TRY_MS = 5000
const MAX_SKEW_MS = 2000
const AT_LEAST = { postgres: 150_000, redis: '7.0.0', nats: '2.12.0', temporal: '1.29.1' }

const isOlder = (found: string, least: string): boolean => {
  const [a, b] = [found, least].map((text) => text.split('.').map((part) => Number.parseInt(part, 10)))
  for (const [i, wanted] of (b ?? []).entries()) if ((a?.[i] ?? 0) !== wanted) return (a?.[i] ?? 0) < wanted
  return false
}
/** Each setting that differs from the one wanted. */
const differing = (found: Record<string, unknown>, wanted: Record<string, string>, remedy: string): Weakness[] =>
  Object.entries(wanted).flatMap(([name, value]) =>
    found[name] === value ? [] : [[`${name} is ${found[name] ?? 'unknown'}`, `${remedy} ${name} to ${value}`] as const],
  )

/** Settings by which a commit is lost, clock, the version, and the rights of the app's role. */
export const weakPostgres = ({ app }: Subject, url: string): Promise<Weakness[]> =>
  withConnection({ connectionString: url, connectionTimeoutMillis: TRY_MS, query_timeout: TRY_MS }, async (client) => {
    const { rows } = await client.query<{ name: string; setting: string }>('select name, setting from pg_settings')
    const found = Object.fromEntries(rows.map(({ name, setting }) => [name, setting]))
    const clock = await client.query<{ at: Date }>('select clock_timestamp() as at')
    const skew = Math.abs(Date.now() - (clock.rows[0]?.at.getTime() ?? 0))
    const wanted = { fsync: 'on', full_page_writes: 'on', synchronous_commit: 'on', data_checksums: 'on', ssl: 'on' }
    return [
      ...differing(found, wanted, 'In postgresql.conf set'),
      ...(Number(found.server_version_num) < AT_LEAST.postgres
        ? [[`its version is ${found.server_version}`, 'Use Postgres 15 or newer'] as const]
        : []),
      ...(found.statement_timeout === '0'
        ? [['statements have no time-out', 'Run "npm run migrate": it sets that of the role'] as const]
        : []),
      ...(skew > MAX_SKEW_MS ? [[`its clock differs by ${skew} ms`, 'Set the clocks by NTP'] as const] : []),
      ...(await weakRole(client, app)),
    ]
  })

const RIGHTS = `
  select schemaname as schema, bool_or(has_table_privilege(format('%I.%I', schemaname, tablename), 'select')) as reads
  from pg_tables where schemaname = any($1) and has_schema_privilege(schemaname, 'usage') group by 1`

const weakRole = async (client: pg.Client, app: string): Promise<Weakness[]> => {
  const role = await client.query<{ mighty: boolean }>(
    'select rolsuper or rolcreaterole or rolcreatedb or rolbypassrls as mighty from pg_roles where rolname = current_user',
  )
  const mighty = role.rows[0]?.mighty
    ? [['its role may do everything', 'Use the role that "npm run migrate" made'] as const]
    : []
  // The relay crosses all schemas by design.
  if (app === 'relay') return mighty
  const { rows } = await client.query<{ schema: string; reads: boolean }>(RIGHTS, [AREAS])
  const reads = rows.filter((row) => row.reads).map(({ schema }) => schema)
  const own = DATABASE_ROLES[app] ?? ''
  const foreign = reads.filter((schema) => schema !== own)
  return [
    ...mighty,
    ...(reads.includes(own) ? [] : [[`it cannot read its schema ${own}`, 'Run "npm run migrate"'] as const]),
    ...(foreign.length > 0
      ? [[`it reads the schema of another app: ${foreign.join(', ')}`, 'Revoke these rights from its role'] as const]
      : []),
  ]
}

const REDIS_SETTINGS = {
  appendonly: 'yes',
  appendfsync: 'always',
  'no-appendfsync-on-rewrite': 'no',
  'maxmemory-policy': 'noeviction',
}

export const weakRedis = async ({ app, links, prefix }: Subject, url: string): Promise<Weakness[]> => {
  const options = { ...tlsOf(url, links), lazyConnect: true, retryStrategy: () => null, connectTimeout: TRY_MS }
  const redis = new Redis(url, options)
  const { hostname, port } = new URL(url)
  const stranger = new Redis({ ...options, host: hostname, port: Number(port || 6379) })
  for (const one of [redis, stranger]) one.on('error', () => {})
  try {
    await redis.connect()
    const found: Record<string, string> = {}
    for (const name of Object.keys(REDIS_SETTINGS)) {
      const [, value = ''] = (await redis.config('GET', name)) as string[]
      found[name] = value
    }
    const version = /redis_version:(\S+)/.exec(await redis.info('server'))?.[1] ?? '0'
    const isOpen = await stranger
      .connect()
      .then(
        () => stranger.ping().then(() => true),
        () => false,
      )
      .catch(() => false)
    const reads =
      app !== 'session' &&
      (await redis.get(`${prefix}sess:doctor`).then(
        () => true,
        () => false,
      ))
    return [
      ...differing(found, REDIS_SETTINGS, 'In redis.conf set'),
      ...(isOlder(version, AT_LEAST.redis) ? [[`its version is ${version}`, 'Use Redis 7 or newer'] as const] : []),
      ...(isOpen ? [['it answers without an account', 'Write "user default off" into users.acl'] as const] : []),
      ...(reads ? [['it reads sessions', 'Give the user the rules of redis/users.acl'] as const] : []),
    ]
  } finally {
    redis.disconnect()
    stranger.disconnect()
  }
}

export const weakNats = async ({ app, links }: Subject, url: string): Promise<Weakness[]> => {
  const nc = await connectNats(url, 'doctor', links)
  try {
    const { version = '0', auth_required } = nc.info ?? {}
    const lossy: string[] = []
    const jsm = await nc.jetstreamManager()
    for await (const { config } of jsm.streams.list()) if (config.storage !== 'file') lossy.push(config.name)
    return [
      ...(isOlder(version, AT_LEAST.nats) ? [[`its version is ${version}`, 'Use NATS 2.12 or newer'] as const] : []),
      ...(auth_required ? [] : [['it admits everyone', 'Include nats/accounts.conf in its configuration'] as const]),
      ...(lossy.length > 0 ? [[`streams are in memory: ${lossy.join(', ')}`, 'Make them anew on disk'] as const] : []),
      ...(app !== 'worker' && (await hearsAgents(nc))
        ? [['it hears the work of agents', 'Give the user the permissions of nats/accounts.conf'] as const]
        : []),
    ]
  } finally {
    await nc.close()
  }
}

/** The worker alone may: a message there bears the token with which a result is reported. */
const hearsAgents = async (nc: NatsConnection): Promise<boolean> => {
  let refused = false
  nc.subscribe('execution.doctor', {
    callback: (error) => {
      refused ||= error !== null
    },
  })
  await nc.flush()
  return !refused
}

export const weakTemporal = async ({ links }: Subject, address: string, namespace: string): Promise<Weakness[]> => {
  const connection = await Connection.connect({ ...temporalOptions(address, links), connectTimeout: TRY_MS })
  try {
    return await connection.withDeadline(Date.now() + TRY_MS, async () => {
      const { serverVersion } = await connection.workflowService.getSystemInfo({})
      const known = await connection.workflowService.describeNamespace({ namespace }).then(
        () => true,
        (error: Error & { code?: number }) => {
          if (error.code !== 5) throw error
          return false
        },
      )
      if (!known) return [[`it has no namespace "${namespace}"`, 'Create it: NEXT.md, step 4'] as const]
      const { customAttributes } = await connection.operatorService.listSearchAttributes({ namespace })
      const missing = Object.keys(SEARCH_ATTRIBUTES).filter((name) => !(name in (customAttributes ?? {})))
      return [
        ...(isOlder(serverVersion ?? '0', AT_LEAST.temporal)
          ? [[`its version is ${serverVersion}`, `Use Temporal ${AT_LEAST.temporal} or newer`] as const]
          : []),
        ...(missing.length > 0
          ? [[`search attributes are missing: ${missing.join(', ')}`, 'Create them: NEXT.md, step 4'] as const]
          : []),
      ]
    })
  } finally {
    await connection.close()
  }
}
