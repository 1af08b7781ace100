import type { Redis } from 'ioredis'
import type { NatsConnection } from 'nats'
import type pg from 'pg'
import { pick } from '../shared/data/pick.ts'
import { ensureStreams, prefixed } from '../shared/events/events.ts'
import type { Logger } from '../shared/telemetry.ts'
import type { RelayDeps } from './deps.ts'
import { type Loop, startLoop } from './loop.ts'

const GROUP = 'relay'
const CONSUMER = 'relay'
const BATCH = 200
const SUBJECT = 'auth.session.revoked.v1'
/** Longest wait of a blocking read, and therefore of a stop. */
const WAIT_MS = 1000

/** An entry that was trimmed while pending comes back without fields. */
type Entry = [id: string, fields: string[] | null]
type Fields = Record<string, string>

const fieldsOf = (flat: string[]): Fields => {
  const fields: Fields = {}
  for (let i = 0; i + 1 < flat.length; i += 2) fields[flat[i] as string] = flat[i + 1] as string
  return fields
}

const ensureGroup = async (redis: Redis, stream: string) => {
  try {
    await redis.xgroup('CREATE', stream, GROUP, '0', 'MKSTREAM')
  } catch (error) {
    if (!/BUSYGROUP/.test((error as Error).message)) throw error
  }
}

type Reply = [stream: string, entries: Entry[]][] | null

type Batch = { entries: Entry[]; taken: boolean }

/**
 * Reads a batch: first entries behind `after` that this group took but never acknowledged, then new ones, waiting up to
 * `wait_ms`.
 */
const read = async (reader: Redis, stream: string, after: string, wait_ms?: number): Promise<Batch> => {
  const ask = ['GROUP', GROUP, CONSUMER, 'COUNT', BATCH] as const
  const taken = (await reader.xreadgroup(...ask, 'STREAMS', stream, after)) as Reply
  if (taken?.[0]?.[1].length) return { entries: taken[0][1], taken: true }
  const fresh = (await (wait_ms === undefined
    ? reader.xreadgroup(...ask, 'STREAMS', stream, '>')
    : reader.xreadgroup(...ask, 'BLOCK', wait_ms, 'STREAMS', stream, '>'))) as Reply
  return { entries: fresh?.[0]?.[1] ?? [], taken: false }
}

/**
 * Reads a stream batch by batch, then from its start: entries that cannot be delivered now keep no later ones back. Its
 * group is created at first, and again if Redis has lost it.
 */
const readerOf = (redis: Redis, stream: string, wait_ms?: number) => {
  let ready = false
  let after = '0'
  return async (): Promise<Entry[]> => {
    if (!ready) await ensureGroup(redis, stream)
    ready = true
    const { entries, taken } = await read(redis, stream, after, wait_ms).catch((error: Error) => {
      if (/NOGROUP/.test(error.message)) ready = false
      throw error
    })
    after = taken ? (entries.at(-1)?.[0] ?? '0') : '0'
    return entries
  }
}

/** A row that is not JSON, or that Postgres refuses for its content; a retry would be refused too. */
const isPoison = (error: unknown): boolean =>
  error instanceof SyntaxError || /^2[23]/.test((error as { code?: string }).code ?? '')

/** Sets aside an entry that cannot be stored, so that later ones continue; a person looks at it. */
const park = async (redis: Redis, stream: string, [id, flat]: Entry, error: unknown, log: Logger) => {
  if (!isPoison(error)) throw error
  log.error({ err: error, stream, id }, 'an entry cannot be delivered; parked')
  await redis.xadd(`${stream}:parked`, '*', ...(flat ?? []))
  await forget(redis, stream, [id])
}

const forget = async (redis: Redis, stream: string, ids: string[]) => {
  await redis
    .multi()
    .xack(stream, GROUP, ...ids)
    .xdel(stream, ...ids)
    .exec()
}

/** SessionRevokedEvent (auth.md 10). */
const publish = async (nc: NatsConnection, prefix: string, event: Fields) => {
  const body = {
    event_id: event.event_id,
    type: SUBJECT,
    schema_version: 1,
    occurred_at: event.occurred_at,
    request_id: event.request_id || null,
    actor: { type: event.actor_type, id: event.actor_id || 'session' },
    ...pick(event, 'session_id', 'user_id', 'reason', 'access_valid_until'),
  }
  await nc
    .jetstream()
    .publish(prefixed(prefix, SUBJECT), JSON.stringify(body), { msgID: event.event_id ?? '', timeout: 2000 })
}

/** Inserts the row once, with these columns. */
const insert = (pool: pg.Pool, table: string, columns: readonly string[], row: Record<string, unknown>) =>
  pool.query(
    `insert into ${table} (${columns.join(', ')})
     values (${columns.map((_, at) => `$${at + 1}`).join(', ')}) on conflict do nothing`,
    columns.map((name) => row[name] ?? null),
  )

const REVOCATION = ['event_id', 'session_id', 'user_id', 'reason', 'access_valid_until', 'occurred_at', 'request_id']
const COLUMNS = [...REVOCATION, 'actor_type', 'actor_id']
const keep = (pool: pg.Pool, event: Fields) =>
  insert(pool, 'session.revocations', COLUMNS, { ...event, request_id: event.request_id || null })

/** Access tokens of sessions revoked earlier have expired, so no gateway needs to hear of them again. */
const RECENT = '16 minutes'
const TOGETHER = 100

/** Publishes the recent revocations again from Postgres, for a broker that lost them (reliability.md 4.9). */
export const republishRevocations = async (pool: pg.Pool, nc: NatsConnection, prefix: string): Promise<number> => {
  const { rows } = await pool.query<Fields & { occurred_at: Date; access_valid_until: Date }>(
    `select ${COLUMNS.join(', ')}
     from session.revocations where occurred_at > clock_timestamp() - interval '${RECENT}'`,
  )
  const again = ({ occurred_at, access_valid_until, ...row }: (typeof rows)[number]) => {
    const times = { occurred_at: occurred_at.toISOString(), access_valid_until: access_valid_until.toISOString() }
    return publish(nc, prefix, { ...row, ...times })
  }
  // Side by side, because a relay that hands over waits for this, and an incident may end thousands of sessions.
  for (let at = 0; at < rows.length; at += TOGETHER) await Promise.all(rows.slice(at, at + TOGETHER).map(again))
  return rows.length
}

/**
 * Redis has no outbox but its stream (reliability.md 4.9): the script that deletes a session adds the event there. This
 * publishes and stores each entry, then removes it; a crash in between only causes a repeat, which is harmless. While
 * NATS is away the rows are still stored, and the entries stay until they are published.
 */
export const startRevocations = (deps: RelayDeps): { stop: () => Promise<void> } => {
  const { config, redis, redisReader, pool, nats, telemetry } = deps
  const { log } = telemetry
  const revoked = `${config.AUTH__REDIS__PREFIX}auth:revoked`
  const audited = `${config.AUTH__REDIS__PREFIX}auth:audit`
  let streams = false

  const announce = async (event: Fields) => {
    const nc = nats.get()
    if (!nc) throw new Error('NATS is unavailable')
    // More room is the business of the check of the broker: a disk without it must stop no revocation.
    if (!streams) await ensureStreams(nc, config.SIGNALBOX__NATS__PREFIX, ['AUTH'], { raise: false })
    streams = true
    await publish(nc, config.SIGNALBOX__NATS__PREFIX, event)
  }
  const carry = async (entry: Entry) => {
    const [id, flat] = entry
    const event = fieldsOf(flat ?? [])
    const done = event.event_id ? await Promise.allSettled([keep(pool, event), announce(event)]) : []
    for (const part of done) if (part.status === 'rejected') return park(redis, revoked, entry, part.reason, log)
    return forget(redis, revoked, [id])
  }
  const readRevoked = readerOf(redisReader, revoked, WAIT_MS)
  const revocations = startLoop('revocations', log, 0, async () => {
    const entries = await readRevoked()
    const carried = await Promise.allSettled(entries.map(carry))
    for (const one of carried) if (one.status === 'rejected') throw one.reason
    return entries.length > 0
  })

  const readAudited = readerOf(redis, audited)
  const audit: Loop = startLoop('auth audit', log, 250, async () => {
    const entries = await readAudited()
    for (const entry of entries) {
      const [id, flat] = entry
      const { row } = fieldsOf(flat ?? [])
      try {
        if (row) await storeAudit(pool, JSON.parse(row) as Record<string, unknown>)
        await forget(redis, audited, [id])
      } catch (error) {
        await park(redis, audited, entry, error, log)
      }
    }
    return entries.length > 0
  })

  return { stop: () => Promise.all([revocations.stop(), audit.stop()]).then(() => undefined) }
}

const EVENT = ['event_id', 'at', 'actor', 'action', 'object', 'outcome', 'reason', 'request_id', 'body', 'mac']
/** Stores the row of one stream entry once. */
export const storeAudit = (pool: pg.Pool, row: Record<string, unknown>) =>
  insert(pool, 'session.auth_events', EVENT, row)
