import type { NatsConnection } from 'nats'
import type pg from 'pg'
import { type Envelope, ensureStreams, epochOf, type StreamName, streamName } from '../../shared/events/events.ts'
import { readStream } from '../../shared/events/read.ts'
import { isUuid } from '../../shared/ids.ts'

/** The events of a schema that the broker holds. Those of sessions come from Redis and do not concern the database. */
export const TOLD = {
  identity: { stream: 'AUTH', subject: 'auth.user.>' },
  token: { stream: 'AUTH', subject: 'auth.key.>' },
  catalog: { stream: 'CATALOG', subject: 'catalog.>' },
  operations: { stream: 'OPERATIONS', subject: 'operations.>' },
} as const satisfies Record<string, { stream: StreamName; subject: string }>
export type Teller = keyof typeof TOLD

/** An event that the broker knows and the database does not; `seq`: its place in the stream. */
export type LostEvent = Envelope & { schema: Teller; seq: number; epoch: number }

const BATCH = 500
/** Events of many aggregates go out side by side: the newest of the stream need not be the newest of the log. */
const NEWEST = 200

/**
 * Events of this schema that the broker holds and the outbox does not: the future that a restore of the database lost.
 * `newest`: only the last of the stream are looked at, which is enough to know whether there is one.
 */
export const findLost = async (
  pool: pg.Pool,
  nc: NatsConnection,
  prefix: string,
  schema: Teller,
  newest = false,
): Promise<LostEvent[]> => {
  const { stream, subject } = TOLD[schema]
  const jsm = await ensureStreams(nc, prefix, [stream])
  const { last_seq } = (await jsm.streams.info(streamName(prefix, stream))).state
  // AUTH is small and holds other things too: all of it.
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
