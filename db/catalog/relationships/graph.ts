import { type SQL, sql } from 'drizzle-orm'
import type { Queryable } from '../../client.ts'
import { healthNow, healthThen } from '../resources/health-now.ts'
import { accessSql, type RowAccess } from '../resources/lists.ts'
import { array, rowsOf } from '../resources/rows.ts'
import type { ResourceRow } from '../rows.ts'

/** What a traversal may show and pass through. */
export type Reach = {
  access: RowAccess
  topology_type_ids: readonly number[]
  /** `null`: all relationship types, all resource types. */
  reltype_ids: readonly number[] | null
  type_ids: readonly number[] | null
  now: Date
  /** The graph in the past: `ended` lists the states of types (`<type id> <state>`) in which a resource has ended. */
  past?: { at: string; ended: readonly string[] } | undefined
}

export type NodeRow = Pick<
  ResourceRow,
  'rid' | 'resource_id' | 'type_id' | 'name' | 'lifecycle_status' | 'health_status'
>
export type NeighbourRow = NodeRow & { from_rid: string; reltype_id: number; out: boolean }

/** Open edges, now or at that time, under the alias e. */
const edges = ({ past }: Reach): SQL =>
  past === undefined
    ? sql`catalog.relationship e`
    : sql`(select src, reltype_id, dst, rel_no from catalog.relationship where valid_from <= ${past.at}
        union all select src, reltype_id, dst, rel_no from catalog.relationship_history
          where valid_from <= ${past.at} and valid_to > ${past.at}) e`

/** The mutable columns of a resource, now or at that time. */
const states = ({ past }: Reach): SQL =>
  past === undefined
    ? sql`join catalog.resource_state s on s.rid = n.rid`
    : sql`join lateral (select v.lifecycle_status from catalog.revision v
        where v.rid = n.rid and v.at <= ${past.at} order by v.at desc, v.version desc limit 1) s on true`

const nodeColumns = ({ now, past }: Reach): SQL =>
  sql`n.rid, n.resource_id, n.type_id, n.name, s.lifecycle_status,
    ${past === undefined ? healthNow(now) : healthThen(sql`n.rid`, sql`s.lifecycle_status`, past.at)} as health_status`

const visible = ({ access, topology_type_ids, type_ids, past }: Reach): SQL => {
  const open =
    past === undefined
      ? sql`n.is_open`
      : sql`n.created_at <= ${past.at}
          and not (n.type_id || ' ' || s.lifecycle_status) = any(${array(past.ended, 'text')})`
  return sql`${open} and ${accessSql(access, topology_type_ids, 'n')}
      and ${type_ids === null ? sql`true` : sql`n.type_id = any(${array(type_ids, 'smallint')})`}`
}

const typed = ({ reltype_ids }: Reach): SQL =>
  reltype_ids === null ? sql`true` : sql`e.reltype_id = any(${array(reltype_ids, 'smallint')})`

export const getNodes = (db: Queryable, ids: readonly string[], reach: Reach): Promise<NodeRow[]> =>
  rowsOf(
    db,
    sql`select ${nodeColumns(reach)} from catalog.resource n ${states(reach)}
        where n.resource_id = any(${array(ids, 'text')}) and ${visible({ ...reach, type_ids: null })}`,
  )

/**
 * The neighbors of these resources at one end of their edges, ordered by relationship type key and row number, at most
 * `fanout + 1` of each. A symmetric edge counts from either end.
 */
export const getNeighbours = (
  db: Queryable,
  rids: readonly string[],
  out: boolean,
  fanout: number,
  reach: Reach,
): Promise<NeighbourRow[]> => {
  const [own, peer] = ends(out)
  return rowsOf(
    db,
    sql`select f.rid as from_rid, x.* from unnest(${array(rids, 'bigint')}) as f(rid)
        cross join lateral (
          select ${nodeColumns(reach)}, e.reltype_id, ${out}::boolean as out
          from ${edges(reach)}
          join catalog.relationship_type y on y.id = e.reltype_id
          join catalog.resource n on n.rid = ${peer}
          ${states(reach)}
          where ${own} = f.rid and ${typed(reach)} and ${visible(reach)}
          order by y.type_key, n.rid limit ${fanout + 1}) x`,
  )
}

const ends = (out: boolean): [SQL, SQL] => (out ? [sql`e.src`, sql`e.dst`] : [sql`e.dst`, sql`e.src`])

/** How many edges of the allowed types connect each resource to visible ones. */
export const getDegrees = (
  db: Queryable,
  rids: readonly string[],
  reach: Reach,
): Promise<{ rid: string; out: number; in: number }[]> =>
  rowsOf(
    db,
    sql`select f.rid,
          (select count(*)::int from catalog.relationship e join catalog.resource n on n.rid = e.dst
             where e.src = f.rid and ${typed(reach)} and ${visible(reach)}) as out,
          (select count(*)::int from catalog.relationship e join catalog.resource n on n.rid = e.src
             where e.dst = f.rid and ${typed(reach)} and ${visible(reach)}) as in
        from unnest(${array(rids, 'bigint')}) as f(rid)`,
  )

export type CutRow = { rid: string; degree: number; omitted: number }

/** Counts for these resources: edges of the allowed types to visible ones, and neighbors outside, by direction. */
export const getCuts = (
  db: Queryable,
  rids: readonly string[],
  direction: 'out' | 'in' | 'both',
  reach: Reach,
): Promise<CutRow[]> => {
  const shown = array(rids, 'bigint')
  const half = (out: boolean) => {
    const [own, peer] = ends(out)
    const counts = direction === 'both' || direction === (out ? 'out' : 'in')
    return sql`select f.rid, n.rid as peer, (${counts}::boolean and shown.rid is null) as missing
        from unnest(${shown}) as f(rid) join ${edges(reach)} on ${own} = f.rid
        join catalog.resource n on n.rid = ${peer} ${states(reach)}
        left join unnest(${shown}) as shown(rid) on shown.rid = n.rid
        where ${typed(reach)} and ${visible(reach)}`
  }
  return rowsOf(
    db,
    sql`select x.rid, count(*)::int as degree, count(distinct x.peer) filter (where x.missing)::int as omitted
        from (${half(true)} union all ${half(false)}) x group by 1`,
  )
}

export type BetweenRow = { rel_no: string; reltype_id: number; src: string; dst: string }

/** All open edges of the allowed types between these resources, the oldest first. */
export const getEdgesBetween = (
  db: Queryable,
  rids: readonly string[],
  limit: number,
  reach: Reach,
): Promise<BetweenRow[]> =>
  rowsOf(
    db,
    sql`select e.rel_no, e.reltype_id, e.src, e.dst from ${edges(reach)}
        where e.src = any(${array(rids, 'bigint')}) and e.dst = any(${array(rids, 'bigint')}) and ${typed(reach)}
        order by e.rel_no limit ${limit}`,
  )
