import { type SQL, sql } from 'drizzle-orm'
import { first, type Queryable } from '../../client.ts'
import { runOf } from '../../restore.ts'
import { rowsOf } from '../resources/rows.ts'

/** A log event as the graph in memory reads it. `rid` is the row number of its resource. */
export type GraphEventRow = {
  pub_seq: string
  type: string
  agg_type: string
  agg_version: number
  /** For a part of a resource's relationships: the version and the event to which it belongs. */
  version: number | null
  of: string | null
  rid: string | null
  resource_id: string | null
  type_key: string | null
  name: string | null
  lifecycle_status: string | null
  health_status: string | null
  changes: { op: string; relationship_id: string; type_key: string; from_id: string; to_id: string }[] | null
}

/** Numbered events after a position, up to another if given. Row numbers never change, so they come from the table. */
export const graphEventsAfter = (
  db: Queryable,
  pub_seq: string,
  limit: number,
  to?: string,
): Promise<GraphEventRow[]> =>
  rowsOf(
    db,
    sql`select o.pub_seq::text as pub_seq, o.type, o.agg_type, o.agg_version::float8 as agg_version, r.rid,
          p.version, p."of", p.resource_id, p.type_key, p.summary->>'name' as name, p.summary->>'lifecycle_status' as lifecycle_status,
          coalesce(p.status, p.summary->>'health_status') as health_status, p.relationship_changes as changes
        from catalog.outbox o
        cross join lateral jsonb_to_record(o.payload)
          as p(resource_id text, type_key text, version integer, "of" text, summary jsonb, status text, relationship_changes jsonb)
        left join catalog.resource r on r.resource_id = p.resource_id
        where o.pub_seq > ${pub_seq} ${to === undefined ? sql`` : sql`and o.pub_seq <= ${to}`} order by o.pub_seq limit ${limit}`,
  )

export type LogState = {
  /** How long the oldest committed event has waited for its number, and the oldest unfolded event; 0 if none. */
  unnumbered_ms: number
  unfolded_ms: number
  /** Whether someone paused this projection. */
  paused: boolean
  run?: string
}

const RUN = sql.raw(runOf('catalog'))

/** This run of the database (reliability.md 4.13). */
export const readRun = async (db: Queryable): Promise<string | undefined> =>
  first(await rowsOf<{ run: string }>(db, sql`select ${RUN} as run`))?.run

/** The state of the log relative to a projection that has applied it up to `pub_seq`. */
export const readLogState = async (db: Queryable, name: string, pub_seq: string): Promise<LogState> => {
  const age = (
    which: SQL,
    order: SQL,
  ) => sql`coalesce((select extract(epoch from clock_timestamp() - occurred_at) * 1000
    from catalog.outbox where ${which} order by ${order} limit 1), 0)::float8`
  const [row] = await rowsOf<LogState>(
    db,
    sql`select ${RUN} as run, ${age(sql`pub_seq is null`, sql`id`)} as unnumbered_ms,
          ${age(sql`pub_seq > ${pub_seq}`, sql`pub_seq`)} as unfolded_ms,
          exists (select 1 from catalog.projection where name = ${name} and state = 'paused') as paused`,
  )
  return row ?? { unnumbered_ms: 0, unfolded_ms: 0, paused: false }
}

/** The last row of the log, numbered or not: every event committed earlier has at most this id. */
export const lastLogId = async (db: Queryable): Promise<string> =>
  first(await rowsOf<{ id: string }>(db, sql`select coalesce(max(id), 0)::text as id from catalog.outbox`))?.id ?? '0'

/** The number of the last event up to a row of the log; `undefined` while one of these still waits for its number. */
export const numberedTo = async (db: Queryable, id: string): Promise<string | undefined> => {
  const [row] = await rowsOf<{ waiting: boolean; pub_seq: string }>(
    db,
    sql`select exists (select 1 from catalog.outbox where pub_seq is null and id <= ${id}) as waiting,
          (select coalesce(max(pub_seq), 0)::text from catalog.outbox where id <= ${id}) as pub_seq`,
  )
  return row?.waiting === false ? row.pub_seq : undefined
}
