import { sql } from 'drizzle-orm'
import { bigint, index, integer, jsonb, type PgSchema, text, timestamp, unique, uuid } from 'drizzle-orm/pg-core'
import type { Db, Queryable, Tx } from './client.ts'
import { pruneRows } from './prune.ts'
import { insertRow, NOW } from './rows.ts'

/**
 * The outbox of one owning schema (reliability.md 4.1); the relay numbers (`pub_seq`) and publishes its rows. An outbox
 * that `pruneOutbox` sweeps finds its oldest rows by an index.
 */
export const outboxTables = (schema: PgSchema, { swept = false } = {}) => ({
  outbox: schema.table(
    'outbox',
    {
      id: bigint('id', { mode: 'bigint' }).primaryKey().generatedAlwaysAsIdentity(),
      event_id: uuid('event_id').notNull().unique(),
      agg_type: text('agg_type').notNull(),
      agg_id: text('agg_id').notNull(),
      agg_version: bigint('agg_version', { mode: 'number' }).notNull(),
      type: text('type').notNull(),
      schema_version: integer('schema_version').notNull().default(1),
      payload: jsonb('payload').$type<Record<string, unknown>>().notNull(),
      request_id: text('request_id'),
      trace: text('trace'),
      occurred_at: timestamp('occurred_at', { withTimezone: true, mode: 'string' }).notNull().default(NOW),
      pub_seq: bigint('pub_seq', { mode: 'bigint' }).unique(),
      // Its number in the stream; 0 if it is to go out again, or what must come before it was done.
      js_seq: bigint('js_seq', { mode: 'bigint' }),
      published_at: timestamp('published_at', { withTimezone: true, mode: 'string' }),
      parked: text('parked'),
    },
    (t) => [
      unique().on(t.agg_type, t.agg_id, t.agg_version),
      index().on(t.id).where(sql`pub_seq is null`),
      index().on(t.pub_seq).where(sql`published_at is null and pub_seq is not null`),
      ...(swept ? [index().on(t.published_at)] : []),
    ],
  ),
  relay_state: schema.table('relay_state', {
    name: text('name').primaryKey(),
    epoch: bigint('epoch', { mode: 'number' }).notNull().default(0),
    next: bigint('next', { mode: 'number' }).notNull().default(1),
    stream_created: text('stream_created'),
    js_last_seq: bigint('js_last_seq', { mode: 'number' }),
  }),
})

export type OutboxTable = ReturnType<typeof outboxTables>['outbox']

export type OutboxEvent = {
  event_id: string
  agg_type: string
  agg_id: string
  /** The aggregate's version after the change: dense, so that consumers detect a gap. */
  agg_version: number
  type: string
  schema_version?: number
  payload: Record<string, unknown>
  request_id?: string | null
  trace?: string | null
}

/** Deletes events published over a month ago. Not for catalog and operations, whose missed events are read again. */
export const pruneOutbox = (db: Db, outbox: OutboxTable): Promise<number> =>
  pruneRows(db, outbox, 'published_at', sql`now() - interval '31 days'`)

/** The channel on which the relay's leader of a schema listens. */
export const wakeChannel = (schema: string): string => `relay_wake_${schema}`

/**
 * Notifies the relay of committed rows, for apps without NATS. It runs after the commit, because inside the transaction
 * a NOTIFY would queue all commits behind one lock. Best effort: a lost one only delays the relay until its poll.
 */
export const wakeRelay = async (db: Queryable, schema: string): Promise<void> => {
  await db.execute(sql`select pg_notify(${wakeChannel(schema)}, '')`).catch(() => {})
}

/** The row of one event, to be sent last in the transaction of the change. */
const outboxRow = (tx: Tx, outbox: OutboxTable, event: OutboxEvent) => insertRow(tx, outbox, event)

/** Writes events in the change's transaction. Call last, under the aggregate's lock: id order is then version order. */
export const appendOutbox = async (tx: Tx, outbox: OutboxTable, ...events: OutboxEvent[]): Promise<void> => {
  await Promise.all(events.map((event) => outboxRow(tx, outbox, event)))
}
