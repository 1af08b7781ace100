import { sql } from 'drizzle-orm'
import { first, type Queryable } from '../client.ts'
import { rowsOf } from './resources.ts'

/** An event of the log as the graph in memory takes it. `rid` is the row number of its resource. */
export type GraphEventRow = {
  pub_seq: string
  type: string
  agg_type: string
  agg_version: number
  rid: string | null
  resource_id: string | null
  type_key: string | null
  name: string | null
  lifecycle_status: string | null
  health_status: string | null
  changes: { op: string; relationship_id: string; type_key: string; from_id: string; to_id: string }[] | null
}

/** Numbered events after a place in the log. A row number never changes, so it may be read from the table. */
export const graphEventsAfter = (db: Queryable, pub_seq: string, limit: number): Promise<GraphEventRow[]> =>
  rowsOf(
    db,
    sql`select o.pub_seq::text as pub_seq, o.type, o.agg_type, o.agg_version::float8 as agg_version, r.rid,
          p.resource_id, p.type_key, p.summary->>'name' as name, p.summary->>'lifecycle_status' as lifecycle_status,
          coalesce(p.status, p.summary->>'health_status') as health_status, p.relationship_changes as changes
        from catalog.outbox o
        cross join lateral jsonb_to_record(o.payload)
          as p(resource_id text, type_key text, summary jsonb, status text, relationship_changes jsonb)
        left join catalog.resource r on r.resource_id = p.resource_id
        where o.pub_seq > ${pub_seq} order by o.pub_seq limit ${limit}`,
  )

/** How long the oldest committed event waits for its number, in milliseconds; 0 when none does. */
export const unnumberedFor = async (db: Queryable): Promise<number> =>
  first(
    await rowsOf<{ ms: number }>(
      db,
      sql`select coalesce((select extract(epoch from clock_timestamp() - occurred_at) * 1000
            from catalog.outbox where pub_seq is null order by id limit 1), 0)::float8 as ms`,
    ),
  )?.ms ?? 0
