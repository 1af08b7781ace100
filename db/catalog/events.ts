import { type SQL, sql } from 'drizzle-orm'
import type { Queryable } from '../client.ts'
import type { EdgeRow } from './edges.ts'
import { array, type ResourceRow, resourceColumns, resourceTables, rowsOf } from './resources.ts'

export type OutboxRow = {
  event_id: string
  type: string
  schema_version: number
  occurred_at: string
  pub_seq: string | null
  agg_type: string
  agg_id: string
  agg_version: string
  request_id: string | null
  payload: Record<string, unknown>
}

const columns = sql`event_id, type, schema_version, occurred_at, pub_seq, agg_type, agg_id, agg_version, request_id, payload`

/** Numbered events after a place in the log. */
export const eventsAfter = (db: Queryable, pub_seq: string, limit: number): Promise<OutboxRow[]> =>
  rowsOf(db, sql`select ${columns} from catalog.outbox where pub_seq > ${pub_seq} order by pub_seq limit ${limit}`)

/** Events of one aggregate after a version, numbered or not. */
export const eventsOf = (
  db: Queryable,
  agg: { agg_type: string; agg_id: string; after_version: number },
  limit: number,
): Promise<OutboxRow[]> =>
  rowsOf(
    db,
    sql`select ${columns} from catalog.outbox
        where agg_type = ${agg.agg_type} and agg_id = ${agg.agg_id} and agg_version > ${agg.after_version}
        order by agg_version limit ${limit}`,
  )

/** All resources, retired ones too, in the order of their ids. */
export const snapshotRows = (db: Queryable, after: string | undefined, limit: number): Promise<ResourceRow[]> => {
  const start: SQL = after === undefined ? sql`true` : sql`r.resource_id > ${after}`
  return rowsOf(
    db,
    sql`select ${resourceColumns} from ${resourceTables} where ${start} order by r.resource_id limit ${limit}`,
  )
}

/** Open edges that leave these resources, with the ids of both ends. */
export const edgesOut = (
  db: Queryable,
  rids: readonly string[],
): Promise<(EdgeRow & { from_id: string; to_id: string })[]> =>
  rowsOf(
    db,
    sql`select e.src, e.reltype_id, e.dst, e.rel_no, e.rev, e.properties, e.valid_from,
          a.resource_id as from_id, b.resource_id as to_id
        from catalog.relationship e join catalog.resource a on a.rid = e.src join catalog.resource b on b.rid = e.dst
        where e.src = any(${array(rids, 'bigint')}) order by e.rel_no`,
  )

export type PeerRow = EdgeRow & {
  type_key: string
  out: boolean
  peer_id: string
  peer_type_id: number
  peer_name: string
  peer_lifecycle: string
  peer_health: string
  sort_keys: string[]
}

/** The edges of one resource in the fixed order type, direction (out first), peer id. */
export const listEdges = (
  db: Queryable,
  rid: string,
  { where, after, limit }: { where: SQL[]; after: readonly string[] | undefined; limit: number },
): Promise<PeerRow[]> => {
  const next = after
    ? sql`(y.type_key, not u.out, n.resource_id) > (${after[0]}::text collate "C", ${after[1]}::boolean, ${after[2]}::text collate "C")`
    : sql`true`
  return rowsOf(
    db,
    sql`select u.*, y.type_key, n.resource_id as peer_id, n.type_id as peer_type_id, n.name as peer_name,
          s.lifecycle_status as peer_lifecycle, s.health_status as peer_health,
          array[y.type_key, (not u.out)::text, n.resource_id] as sort_keys
        from (select e.src, e.reltype_id, e.dst, e.rel_no, e.rev, e.properties, e.valid_from, true as out, e.dst as peer
                from catalog.relationship e where e.src = ${rid}
              union all
              select e.src, e.reltype_id, e.dst, e.rel_no, e.rev, e.properties, e.valid_from, false, e.src
                from catalog.relationship e where e.dst = ${rid}) u
        join catalog.relationship_type y on y.id = u.reltype_id
        join catalog.resource n on n.rid = u.peer
        join catalog.resource_state s on s.rid = n.rid
        where ${sql.join([...where, next], sql` and `)}
        order by y.type_key, not u.out, n.resource_id limit ${limit}`,
  )
}

export const edgeConditions = {
  direction: (direction: 'out' | 'in') => (direction === 'out' ? sql`u.out` : sql`not u.out`),
  types: (keys: readonly string[]) => sql`y.type_key = any(${array(keys, 'text')})`,
  peers: (ids: readonly number[]) => sql`n.type_id = any(${array(ids, 'smallint')})`,
}
