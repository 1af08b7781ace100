import { and, isNull, sql } from 'drizzle-orm'
import { bigint, boolean, index, integer, type PgSchema, primaryKey, text, uuid } from 'drizzle-orm/pg-core'
import { type Db, equals, type Queryable, type Tx } from './client.ts'
import { at } from './columns.ts'
import { pruneRows } from './prune.ts'
import { NOW, updateRow } from './rows.ts'

/** The tables of an event consumer (reliability.md 4.1): seen events, version per aggregate, parked events, state. */
export const inboxTables = (schema: PgSchema) => ({
  inbox: schema.table(
    'inbox',
    {
      consumer: text('consumer').notNull(),
      event_id: uuid('event_id').notNull(),
      received_at: at('received_at').notNull().default(NOW),
    },
    (t) => [primaryKey({ columns: [t.consumer, t.event_id] }), index().on(t.received_at)],
  ),
  projection_version: schema.table(
    'projection_version',
    {
      consumer: text('consumer').notNull(),
      agg_type: text('agg_type').notNull(),
      agg_id: text('agg_id').notNull(),
      ver: bigint('ver', { mode: 'number' }).notNull(),
      held: boolean('held').notNull().default(false),
    },
    (t) => [primaryKey({ columns: [t.consumer, t.agg_type, t.agg_id] })],
  ),
  dead_letter: schema.table(
    'dead_letter',
    {
      consumer: text('consumer').notNull(),
      event_id: uuid('event_id').notNull(),
      agg_type: text('agg_type'),
      agg_id: text('agg_id'),
      agg_version: bigint('agg_version', { mode: 'number' }),
      error: text('error').notNull(),
      tries: integer('tries').notNull(),
      parked_at: at('parked_at').notNull().default(NOW),
      released_at: at('released_at'),
    },
    (t) => [primaryKey({ columns: [t.consumer, t.event_id] })],
  ),
  projection: schema.table('projection', {
    name: text('name').primaryKey(),
    state: text('state').notNull().default('live'),
    pub_seq: bigint('pub_seq', { mode: 'bigint' }).notNull().default(sql`0`),
    at: at('at'),
    code_version: text('code_version'),
    hash: text('hash'),
    hash_pub_seq: bigint('hash_pub_seq', { mode: 'bigint' }),
  }),
})
export type InboxTables = ReturnType<typeof inboxTables>

/** Marks an event as received by a consumer. Returns false if it was received before. */
export const receive = async (tx: Tx, { inbox }: InboxTables, consumer: string, event_id: string): Promise<boolean> => {
  const rows = await tx
    .insert(inbox)
    .values({ consumer, event_id })
    .onConflictDoNothing()
    .returning({ event_id: inbox.event_id })
  return rows.length === 1
}

/** Deletes receipts older than any event that a stream or outbox can deliver again (reliability.md 4.3). */
export const pruneInbox = (db: Db, { inbox }: InboxTables): Promise<number> =>
  pruneRows(db, inbox, 'received_at', sql`now() - interval '40 days'`)

/** The version of an aggregate that a consumer has applied (0 = none), locked for this transaction. */
export const lockVersion = async (
  tx: Tx,
  { projection_version: v }: InboxTables,
  consumer: string,
  agg_type: string,
  agg_id: string,
) => {
  await tx.insert(v).values({ consumer, agg_type, agg_id, ver: 0 }).onConflictDoNothing()
  const [row] = await tx
    .select({ ver: v.ver, held: v.held })
    .from(v)
    .where(equals(v, { consumer, agg_type, agg_id }))
    .for('update')
  return row ?? { ver: 0, held: false }
}

export const setVersion = async (
  tx: Tx,
  { projection_version: v }: InboxTables,
  consumer: string,
  agg_type: string,
  agg_id: string,
  ver: number,
) => {
  await tx.update(v).set({ ver }).where(equals(v, { consumer, agg_type, agg_id }))
}

/**
 * Counts an event that changes no row of its consumer, in one statement. Returns false if it is not the next event of a
 * followed aggregate; the caller then handles it like every other event.
 */
export const passVersion = async (
  db: Queryable,
  { projection_version: v }: InboxTables,
  consumer: string,
  agg_type: string,
  agg_id: string,
  ver: number,
): Promise<boolean> => {
  const next = { consumer, agg_type, agg_id, ver: ver - 1, held: false }
  const { rowCount } = await updateRow(db, v, next, { ver })
  return rowCount === 1
}

export type DeadLetter = {
  consumer: string
  event_id: string
  agg_type: string
  agg_id: string
  agg_version: number
  error: string
  tries: number
  parked_at: string
}

/** Events that a consumer parked and no one has decided on, the oldest first. */
export const listDeadLetters = async (db: Queryable, { dead_letter: d }: InboxTables): Promise<DeadLetter[]> => {
  const rows = await db.select().from(d).where(isNull(d.released_at)).orderBy(d.parked_at)
  return rows.map(({ released_at: _, agg_type, agg_id, agg_version, ...row }) => ({
    ...row,
    agg_type: agg_type ?? '',
    agg_id: agg_id ?? '',
    agg_version: agg_version ?? 0,
  }))
}

/** Parks an event and holds its aggregate until a person decides (reliability.md 4.7). */
export const parkLetter = async (
  tx: Tx,
  tables: InboxTables,
  letter: Pick<DeadLetter, 'consumer' | 'event_id' | 'agg_type' | 'agg_id' | 'error' | 'tries'> & {
    agg_version: number | null
  },
): Promise<void> => {
  const { dead_letter: d } = tables
  const { consumer, agg_type, agg_id, error, tries } = letter
  await tx
    .insert(d)
    .values(letter)
    .onConflictDoUpdate({ target: [d.consumer, d.event_id], set: { error, tries, parked_at: NOW, released_at: null } })
  await lockVersion(tx, tables, consumer, agg_type, agg_id)
  await setHeld(tx, tables, { consumer, agg_type, agg_id }, true)
}

/** Resumes the aggregate of a parked event: with the event itself next, or after it if it is dropped. */
export const releaseLetter = async (tx: Tx, tables: InboxTables, letter: DeadLetter, drop: boolean): Promise<void> => {
  const { dead_letter: d } = tables
  const { consumer, event_id, agg_type, agg_id, agg_version } = letter
  const { ver } = await lockVersion(tx, tables, consumer, agg_type, agg_id)
  if (drop) {
    await receive(tx, tables, consumer, event_id)
    await setVersion(tx, tables, consumer, agg_type, agg_id, Math.max(ver, agg_version))
  }
  await tx
    .update(d)
    .set({ released_at: NOW })
    .where(and(equals(d, { consumer, agg_type, agg_id }), isNull(d.released_at)))
  await setHeld(tx, tables, letter, false)
}

const setHeld = (
  tx: Tx,
  { projection_version: v }: InboxTables,
  { consumer, agg_type, agg_id }: Pick<DeadLetter, 'consumer' | 'agg_type' | 'agg_id'>,
  held: boolean,
) => tx.update(v).set({ held }).where(equals(v, { consumer, agg_type, agg_id }))

/** How far a consumer has read another app's log, and when that was last found to be the log's end. */
export type Mark = { pub_seq: string; at: string | null; state: string }

export const readMark = async (
  db: Queryable,
  { projection: p }: InboxTables,
  name: string,
): Promise<Mark | undefined> => {
  const [row] = await db
    .select({ pub_seq: sql<string>`${p.pub_seq}::text`, at: p.at, state: p.state })
    .from(p)
    .where(equals(p, { name }))
  return row
}

/** Moves a mark forward, never back. With `only_next`, only by the next event. */
export const moveMark = async (
  db: Queryable,
  { projection: p }: InboxTables,
  name: string,
  pub_seq: string,
  { only_next = false, at }: { only_next?: boolean; at?: string } = {},
): Promise<void> => {
  const value = sql`${pub_seq}::bigint`
  await db
    .update(p)
    .set({ pub_seq: sql`greatest(${p.pub_seq}, ${value})`, ...(at !== undefined && { at }) })
    .where(and(equals(p, { name }), only_next ? sql`${p.pub_seq} = ${value} - 1` : undefined))
}

/** Moves a mark back to the end of its log if it is beyond it: the log's database was restored. */
export const rewindMark = async (tx: Tx, { projection: p }: InboxTables, name: string, end: string): Promise<void> => {
  await tx
    .update(p)
    .set({ pub_seq: sql`least(${p.pub_seq}, ${end}::bigint)` })
    .where(equals(p, { name }))
}
