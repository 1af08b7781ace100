import type { Redis } from 'ioredis'
import type { NatsConnection } from 'nats'
import type pg from 'pg'
import { ensureStreams, prefixed } from '../shared/events.ts'
import type { RelayDeps } from './deps.ts'
import { type Loop, startLoop } from './loop.ts'

const GROUP = 'relay'
const CONSUMER = 'relay'
const BATCH = 200
const SUBJECT = 'auth.session.revoked.v1'

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

/** One batch: first what this group took before and never acknowledged, then what is new. */
const read = async (reader: Redis, stream: string): Promise<Entry[]> => {
  for (const from of ['0', '>']) {
    const reply = (await reader.xreadgroup('GROUP', GROUP, CONSUMER, 'COUNT', BATCH, 'STREAMS', stream, from)) as
      | [string, Entry[]][]
      | null
    const entries = reply?.[0]?.[1] ?? []
    if (entries.length > 0) return entries
  }
  return []
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
    actor: { type: event.actor_type, id: event.actor_id },
    session_id: event.session_id,
    user_id: event.user_id,
    reason: event.reason,
    access_valid_until: event.access_valid_until,
  }
  await nc
    .jetstream()
    .publish(prefixed(prefix, SUBJECT), JSON.stringify(body), { msgID: event.event_id ?? '', timeout: 2000 })
}

const keep = (pool: pg.Pool, event: Fields) =>
  pool.query(
    `insert into session.revocations (event_id, session_id, user_id, reason, access_valid_until, occurred_at, request_id, actor_type, actor_id)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9) on conflict do nothing`,
    [
      event.event_id,
      event.session_id,
      event.user_id,
      event.reason,
      event.access_valid_until,
      event.occurred_at,
      event.request_id || null,
      event.actor_type,
      event.actor_id,
    ],
  )

/**
 * Redis has no outbox but its stream (reliability.md 4.9): the script that deletes a session adds the event there. This
 * publishes and stores each entry, then forgets it: a crash in between only repeats, which is harmless.
 */
export const startRevocations = (deps: RelayDeps): { stop: () => Promise<void> } => {
  const { config, redis, redisReader, pool, nats, telemetry } = deps
  const { log } = telemetry
  const revoked = `${config.AUTH__REDIS__PREFIX}auth:revoked`
  const audited = `${config.AUTH__REDIS__PREFIX}auth:audit`
  let ready = false

  const revocations = startLoop('revocations', log, 50, async () => {
    const nc = nats.get()
    if (!nc) throw new Error('NATS is away')
    if (!ready) {
      await ensureStreams(nc, config.SIGNALBOX__NATS__PREFIX, ['AUTH'])
      await ensureGroup(redisReader, revoked)
      ready = true
    }
    const entries = await read(redisReader, revoked).catch(async (error: Error) => {
      if (/NOGROUP/.test(error.message)) ready = false
      throw error
    })
    for (const [id, flat] of entries) {
      const event = fieldsOf(flat ?? [])
      if (event.event_id) await publish(nc, config.SIGNALBOX__NATS__PREFIX, event)
      if (event.event_id) await keep(pool, event)
      await forget(redis, revoked, [id])
    }
    return entries.length > 0
  })

  let auditReady = false
  const audit: Loop = startLoop('auth audit', log, 250, async () => {
    if (!auditReady) await ensureGroup(redis, audited)
    auditReady = true
    const entries = await read(redis, audited).catch((error: Error) => {
      if (/NOGROUP/.test(error.message)) auditReady = false
      throw error
    })
    for (const [id, flat] of entries) {
      const { row } = fieldsOf(flat ?? [])
      if (row) await storeAudit(pool, JSON.parse(row) as Record<string, unknown>)
      await forget(redis, audited, [id])
    }
    return entries.length > 0
  })

  return { stop: () => Promise.all([revocations.stop(), audit.stop()]).then(() => undefined) }
}

const storeAudit = (pool: pg.Pool, row: Record<string, unknown>) =>
  pool.query(
    `insert into session.auth_events (event_id, at, actor, action, object, outcome, reason, request_id, body)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9) on conflict do nothing`,
    [
      row.event_id,
      row.at,
      row.actor,
      row.action,
      row.object,
      row.outcome,
      row.reason ?? null,
      row.request_id ?? null,
      row.body,
    ],
  )
