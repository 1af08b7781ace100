import { type SQL, sql } from 'drizzle-orm'
import type { HealthStatus } from '../../apps/shared/contracts/catalog/resources.ts'
import type { Queryable } from '../client.ts'
import { accessSql, type RowAccess } from './lists.ts'
import { array, rowsOf } from './resources.ts'

/** What a traversal may show and pass through. */
export type Reach = {
  access: RowAccess
  topology_type_ids: readonly number[]
  /** Nothing: all relationship types, all resource types. */
  reltype_ids: readonly number[] | null
  type_ids: readonly number[] | null
}

export type NodeRow = {
  rid: string
  resource_id: string
  type_id: number
  name: string
  lifecycle_status: string
  health_status: HealthStatus
}
export type NeighbourRow = NodeRow & { from_rid: string; reltype_id: number; out: boolean }

const nodeColumns = sql`n.rid, n.resource_id, n.type_id, n.name, s.lifecycle_status, s.health_status`

const visible = ({ access, topology_type_ids, type_ids }: Reach): SQL =>
  sql`n.is_open and ${accessSql(access, topology_type_ids, 'n')}
      and ${type_ids === null ? sql`true` : sql`n.type_id = any(${array(type_ids, 'smallint')})`}`

const typed = ({ reltype_ids }: Reach): SQL =>
  reltype_ids === null ? sql`true` : sql`e.reltype_id = any(${array(reltype_ids, 'smallint')})`

export const getNodes = (db: Queryable, ids: readonly string[], reach: Reach): Promise<NodeRow[]> =>
  rowsOf(
    db,
    sql`select ${nodeColumns} from catalog.resource n join catalog.resource_state s on s.rid = n.rid
        where n.resource_id = any(${array(ids, 'text')}) and ${visible({ ...reach, type_ids: null })}`,
  )

/**
 * The neighbours of these resources at one end of their edges, ordered by relationship type key and row number, at most
 * `fanout + 1` of each. A symmetric edge is told from either end.
 */
export const getNeighbours = (
  db: Queryable,
  rids: readonly string[],
  out: boolean,
  fanout: number,
  reach: Reach,
): Promise<NeighbourRow[]> => {
  const [own, peer] = out ? [sql`e.src`, sql`e.dst`] : [sql`e.dst`, sql`e.src`]
  return rowsOf(
    db,
    sql`select f.rid as from_rid, x.* from unnest(${array(rids, 'bigint')}) as f(rid)
        cross join lateral (
          select ${nodeColumns}, e.reltype_id, ${out}::boolean as out
          from catalog.relationship e
          join catalog.relationship_type y on y.id = e.reltype_id
          join catalog.resource n on n.rid = ${peer}
          join catalog.resource_state s on s.rid = n.rid
          where ${own} = f.rid and ${typed(reach)} and ${visible(reach)}
          order by y.type_key, n.rid limit ${fanout + 1}) x`,
  )
}

/** How many edges of the allowed types each resource has to what may be seen. */
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
    sql`select e.rel_no, e.reltype_id, e.src, e.dst from catalog.relationship e
        where e.src = any(${array(rids, 'bigint')}) and e.dst = any(${array(rids, 'bigint')}) and ${typed(reach)}
        order by e.rel_no limit ${limit}`,
  )
