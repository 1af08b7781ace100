import { headers, type JetStreamClient, type NatsConnection } from 'nats'
import type pg from 'pg'
import { crashPoint } from '../../shared/crash.ts'
import { prefixed, subjectOf } from '../../shared/events/events.ts'
import type { Logger } from '../../shared/telemetry.ts'

const BATCH = 200
const MAX_TRIES = 5

export type OutboxRow = {
  event_id: string
  agg_type: string
  agg_id: string
  agg_version: string
  type: string
  schema_version: number
  payload: Record<string, unknown>
  request_id: string | null
  trace: string | null
  occurred_at: Date
  pub_seq: string
  /** Null: no act before it was done, and it never went out. */
  js_seq: string | null
}

export type PublisherDeps = {
  pool: pg.Pool
  schema: string
  prefix: string
  nats: () => NatsConnection | undefined
  log: Logger
  /**
   * Acts that must happen before the event goes out, such as ending a user's sessions; true if there were any. The row
   * remembers them, because a repeat would end newer sessions too.
   */
  before?: (row: OutboxRow) => Promise<boolean>
  /** How many restores of the database were accepted; consumers accept only their own epoch. */
  epoch?: () => number
  /** Whether this row has a subject at all; credential's rows have none. */
  published: (row: OutboxRow) => boolean
}

/** The events that NATS has accepted in this turn; the sequence is null for a row without a subject. */
type Acknowledged = { event_ids: string[]; js_seqs: (number | null)[] }

/**
 * Publishes numbered rows in order, at most one unacknowledged per aggregate, and marks all rows of a turn after their
 * acknowledgements. Marking earlier could lose events; marking later can only duplicate them, which the message id and
 * the inbox absorb.
 */
export const createPublisher = (deps: PublisherDeps) => {
  const tries = new Map<string, number>()

  const publishOne = async (row: OutboxRow, js: JetStreamClient | undefined): Promise<{ js_seq: number | null }> => {
    if (row.js_seq === null && (await deps.before?.(row)))
      await deps.pool.query(`update ${deps.schema}.outbox set js_seq = 0 where event_id = $1`, [row.event_id])
    if (!deps.published(row)) return { js_seq: null }
    if (!js) throw new Error('NATS is unavailable')
    const { payload, occurred_at, trace, js_seq: _, ...envelope } = row
    const h = headers()
    h.set('Sb-Pub-Seq', row.pub_seq)
    h.set('Sb-Agg-Version', row.agg_version)
    const epoch = deps.epoch?.() ?? 0
    if (epoch > 0) h.set('Sb-Epoch', String(epoch))
    if (trace) h.set('traceparent', trace)
    const head = { ...envelope, agg_version: Number(row.agg_version), occurred_at: occurred_at.toISOString() }
    const whole = JSON.stringify({ ...head, ...payload })
    const body = fits(deps, whole) ? whole : JSON.stringify({ ...head, ...referenceTo(row) })
    const ack = await js.publish(subject(deps, row), body, { msgID: row.event_id, headers: h, timeout: 5000 })
    crashPoint('publisher.after_ack')
    return { js_seq: ack.seq }
  }

  const mark = ({ event_ids, js_seqs }: Acknowledged) =>
    deps.pool.query(
      `update ${deps.schema}.outbox o set published_at = clock_timestamp(), js_seq = a.js_seq
       from unnest($1::uuid[], $2::bigint[]) as a(event_id, js_seq) where o.event_id = a.event_id`,
      [event_ids, js_seqs],
    )

  /** Publishes rows of one aggregate one after the other; the first failure stops this aggregate for this turn. */
  const publishAggregate = async (rows: OutboxRow[], js: JetStreamClient | undefined, acknowledged: Acknowledged) => {
    for (const row of rows) {
      try {
        const { js_seq } = await publishOne(row, js)
        acknowledged.event_ids.push(row.event_id)
        acknowledged.js_seqs.push(js_seq)
        tries.delete(row.event_id)
      } catch (error) {
        if (js && deps.published(row) && isUnpublishable(error)) await park(row, error as Error)
        else throw error
      }
    }
  }

  const park = async (row: OutboxRow, error: Error) => {
    const n = (tries.get(row.event_id) ?? 0) + 1
    tries.set(row.event_id, n)
    if (n < MAX_TRIES) throw error
    deps.log.error({ err: error, event_id: row.event_id, schema: deps.schema }, 'event cannot be published; parked')
    await deps.pool.query(`update ${deps.schema}.outbox set parked = $2 where event_id = $1`, [
      row.event_id,
      error.message,
    ])
  }

  return {
    /** Runs one turn; true if more may wait. Throws if the broker cannot be reached, so that the loop backs off. */
    turn: async (): Promise<boolean> => {
      const { rows } = await deps.pool.query<OutboxRow>(
        `select event_id, agg_type, agg_id, agg_version, type, schema_version, payload, request_id, trace, occurred_at, pub_seq, js_seq
         from ${deps.schema}.outbox where published_at is null and pub_seq is not null and parked is null order by pub_seq limit ${BATCH}`,
      )
      if (rows.length === 0) return false
      const byAggregate = Map.groupBy(rows, orderedWith)
      const js = deps.nats()?.jetstream()
      const done: Acknowledged = { event_ids: [], js_seqs: [] }
      const results = await Promise.allSettled(
        [...byAggregate.values()].map((group) => publishAggregate(group, js, done)),
      )
      const failed = results.find((result) => result.status === 'rejected')
      if (done.event_ids.length > 0) await mark(done)
      else if (failed) throw failed.reason
      return rows.length === BATCH || failed !== undefined
    },
  }
}

const subject = ({ schema, prefix }: PublisherDeps, row: OutboxRow): string =>
  schema === 'catalog' || schema === 'operations'
    ? subjectOf(prefix, schema, row.agg_type, row.agg_id)
    : prefixed(prefix, row.type)

/** Rows with one key go out one by one: an aggregate, and parts of a resource's relationships with that resource. */
const orderedWith = ({ agg_type, agg_id, payload }: OutboxRow): string =>
  agg_type === 'relationships' ? `resource/${payload.resource_id}` : `${agg_type}/${agg_id}`

const MAX_PAYLOAD = 1_048_576
/** The part of a message that headers and the protocol may take. */
const ROOM_BYTES = 4096

/** Rows from before payloads were bounded may exceed the limit of NATS. Only the catalog serves events by HTTP. */
const fits = ({ schema, nats }: PublisherDeps, body: string): boolean =>
  schema !== 'catalog' || Buffer.byteLength(body) <= (nats()?.info?.max_payload ?? MAX_PAYLOAD) - ROOM_BYTES

const isShort = (value: unknown): boolean =>
  typeof value === 'string' ? value.length <= 1000 : typeof value !== 'object' || value === null

/** Returns the short members of a payload that is too large, and where the event can be read. */
const referenceTo = ({ payload, agg_type, agg_id, agg_version }: OutboxRow): Record<string, unknown> => ({
  ...Object.fromEntries(Object.entries(payload).filter(([, value]) => isShort(value))),
  evidence_refs: [],
  event_href: `/internal/v1/events?agg_type=${encodeURIComponent(agg_type)}&agg_id=${encodeURIComponent(agg_id)}&after_version=${Number(agg_version) - 1}&limit=1`,
})

/** Whether the server refused it for its content (too large, no such subject), not temporarily. */
const isUnpublishable = (error: unknown): boolean =>
  /MAX_PAYLOAD|maximum payload|BAD_SUBJECT|invalid subject/i.test((error as Error).message)
