import { type SQL, sql } from 'drizzle-orm'
import type { Queryable } from '../client.ts'
import { healthNow, healthThen } from './resources/health-now.ts'
import { array, resourceColumns, resourceTables, rowsOf } from './resources/rows.ts'
import type { EdgeRow, ResourceRow } from './rows.ts'
import type { outbox } from './tables.ts'

export type OutboxRow = Pick<
  typeof outbox.$inferSelect,
  'event_id' | 'type' | 'schema_version' | 'occurred_at' | 'agg_type' | 'agg_id' | 'request_id' | 'payload'
> & { pub_seq: string | null; agg_version: string }

const columns = sql`event_id, type, schema_version, occurred_at, pub_seq, agg_type, agg_id, agg_version, request_id, payload`

/** Numbered events after a position in the log. */
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

/** All resources, including retired ones, ordered by id. */
export const snapshotRows = (db: Queryable, after: string | undefined, limit: number): Promise<ResourceRow[]> => {
  const start: SQL = after === undefined ? sql`true` : sql`r.resource_id > ${after}`
  return rowsOf(
    db,
    sql`select ${resourceColumns} from ${resourceTables} where ${start} order by r.resource_id limit ${limit}`,
  )
}

/** Current versions of these resources; unknown ids are missing from the result. */
export const versionsOf = (
  db: Queryable,
  resource_ids: readonly string[],
): Promise<{ resource_id: string; version: string }[]> =>
  rowsOf(
    db,
    sql`select r.resource_id, s.version from catalog.resource r join catalog.resource_state s on s.rid = r.rid
        where r.resource_id = any(${array(resource_ids, 'text')})`,
  )

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

export type EdgePlace = { key: readonly (string | null)[] | undefined; back: boolean }

/** The edges of one resource at a given time, including those closed since. */
const edgesAt = (rid: string, at: string): SQL =>
  sql`(select o.src, o.reltype_id, o.dst, o.rel_no, o.rev, o.properties, o.valid_from from catalog.relationship o
         where (o.src = ${rid} or o.dst = ${rid}) and o.valid_from <= ${at}::timestamptz
       union all
       select h.src, h.reltype_id, h.dst, h.rel_no, h.rev, h.properties, h.valid_from
         from catalog.relationship_history h
         where (h.src = ${rid} or h.dst = ${rid})
           and h.valid_from <= ${at}::timestamptz and h.valid_to > ${at}::timestamptz)`

/** The edges of one resource, ordered by type, direction (out first), peer id. */
export const listEdges = (
  db: Queryable,
  rid: string,
  {
    where,
    place,
    limit,
    now,
    at,
  }: { where: SQL[]; place: EdgePlace; limit: number; now: Date; at: string | undefined },
): Promise<PeerRow[]> => {
  const { key, back } = place
  const next = key
    ? sql`(y.type_key, not u.out, n.resource_id) ${back ? sql`<` : sql`>`}
          (${key[0]}::text collate "C", ${key[1]}::boolean, ${key[2]}::text collate "C")`
    : sql`true`
  const edges = at === undefined ? sql`catalog.relationship` : edgesAt(rid, at)
  const way = back ? sql`desc` : sql`asc`
  const lifecycle =
    at === undefined
      ? sql`s.lifecycle_status`
      : sql`coalesce((select v.lifecycle_status from catalog.revision v
          where v.rid = n.rid and v.at <= ${at}::timestamptz order by v.version desc limit 1), s.lifecycle_status)`
  return rowsOf(
    db,
    sql`select u.*, y.type_key, n.resource_id as peer_id, n.type_id as peer_type_id, n.name as peer_name,
          ${lifecycle} as peer_lifecycle, ${at === undefined ? healthNow(now) : healthThen(sql`n.rid`, lifecycle, at)} as peer_health,
          array[y.type_key, (not u.out)::text, n.resource_id] as sort_keys
        from (select e.src, e.reltype_id, e.dst, e.rel_no, e.rev, e.properties, e.valid_from, true as out, e.dst as peer
                from ${edges} e where e.src = ${rid}
              union all
              select e.src, e.reltype_id, e.dst, e.rel_no, e.rev, e.properties, e.valid_from, false, e.src
                from ${edges} e where e.dst = ${rid}) u
        join catalog.relationship_type y on y.id = u.reltype_id
        join catalog.resource n on n.rid = u.peer
        join catalog.resource_state s on s.rid = n.rid
        where ${sql.join([...where, next], sql` and `)}
        order by y.type_key ${way}, not u.out ${way}, n.resource_id ${way} limit ${limit}`,
  )
}

export const edgeConditions = {
  direction: (direction: 'out' | 'in') => (direction === 'out' ? sql`u.out` : sql`not u.out`),
  types: (keys: readonly string[]) => sql`y.type_key = any(${array(keys, 'text')})`,
  peers: (ids: readonly number[]) => sql`n.type_id = any(${array(ids, 'smallint')})`,
}
