import type { NatsConnection } from 'nats'
import type pg from 'pg'
import { type Envelope, ensureStreams, epochOf, type StreamName, streamName } from '../../shared/events/events.ts'
import { readStream } from '../../shared/events/read.ts'
import { isUuid } from '../../shared/ids.ts'

/** The events of each schema that the broker holds. Session events come from Redis and do not concern the database. */
export const TOLD = {
  identity: { stream: 'AUTH', subject: 'auth.user.>' },
  token: { stream: 'AUTH', subject: 'auth.key.>' },
  catalog: { stream: 'CATALOG', subject: 'catalog.>' },
  operations: { stream: 'OPERATIONS', subject: 'operations.>' },
} as const satisfies Record<string, { stream: StreamName; subject: string }>
export type Teller = keyof typeof TOLD

/** An event that the broker has and the database lacks; `seq`: its place in the stream. */
export type LostEvent = Envelope & { schema: Teller; seq: number; epoch: number }

const BATCH = 500
/** Events of many aggregates are sent in parallel, so the newest in the stream need not be the newest in the log. */
const NEWEST = 200

/**
 * Returns events of this schema that the broker holds and the outbox lacks: the future that a restore of the database
 * lost. `newest`: reads only the end of the stream, which suffices to know whether there is such an event.
 */
export const findLost = async (
  pool: pg.Pool,
  nc: NatsConnection,
  prefix: string,
  schema: Teller,
  newest = false,
): Promise<LostEvent[]> => {
  const { stream, subject } = TOLD[schema]
  const jsm = await ensureStreams(nc, prefix, [stream], { raise: false })
  const { last_seq } = (await jsm.streams.info(streamName(prefix, stream))).state
  // AUTH is small and also holds other events, so all of it is read.
  const from = newest && stream !== 'AUTH' ? last_seq - NEWEST + 1 : 1
  const lost: LostEvent[] = []
  let told: LostEvent[] = []
  for await (const message of readStream(nc, prefix, { stream, subject, from })) {
    const event = message.json<Envelope>()
    if (!isUuid(event.event_id ?? '')) continue
    told.push({ ...event, schema, seq: message.seq, epoch: epochOf(message) })
    if (told.length < BATCH) continue
    lost.push(...(await notOf(pool, schema, told)))
    told = []
  }
  return [...lost, ...(await notOf(pool, schema, told))]
}

const notOf = async (pool: pg.Pool, schema: Teller, told: LostEvent[]): Promise<LostEvent[]> => {
  const { rows } = await pool.query<{ event_id: string }>(
    `select event_id from ${schema}.outbox where event_id = any($1::uuid[])`,
    [told.map(({ event_id }) => event_id)],
  )
  const ours = new Set(rows.map(({ event_id }) => event_id))
  return told.filter(({ event_id }) => !ours.has(event_id))
}
