import { type SQL, sql } from 'drizzle-orm'
import type { Queryable } from '../../client.ts'
import { array, rowsOf } from './rows.ts'

/** A resource that may differ between two times: whether it was in the subtree, and its versions then. */
export type DifferingRow = {
  rid: string
  resource_id: string
  type_id: number
  path: string
  name: string
  created_at: string
  was_in: boolean
  is_in: boolean
  version_from: number | null
  version_to: number | null
}

/** A resource and all below it at a given time, wherever they moved since. Stops at cycles in edges of one instant. */
const membersAt = (rid: string, reltype_id: number, at: string, most: number): SQL => sql`(
  with recursive below(rid) as (
    select ${rid}::bigint
    union
    select e.src from below cross join lateral (
      select o.src from catalog.relationship o
        where o.dst = below.rid and o.reltype_id = ${reltype_id} and o.valid_from <= ${at}::timestamptz
      union all
      select h.src from catalog.relationship_history h
        where h.dst = below.rid and h.reltype_id = ${reltype_id}
          and h.valid_from <= ${at}::timestamptz and h.valid_to > ${at}::timestamptz) e)
  select rid from below limit ${most})`

export type DifferenceOf = {
  rid: string
  containment_id: number
  from: string
  to: string
  /** How many members are read; one more shows that there are too many. */
  most: number
  where: SQL
  after: string | undefined
  back: boolean
  limit: number
}

/** How many resources are below this one at each of the two times, up to `most` each. */
export const countMembers = async (
  db: Queryable,
  { rid, containment_id, from, to, most }: Pick<DifferenceOf, 'rid' | 'containment_id' | 'from' | 'to' | 'most'>,
): Promise<number> => {
  const [row] = await rowsOf<{ n: number }>(
    db,
    sql`select greatest((select count(*) from ${membersAt(rid, containment_id, from, most)} m),
          (select count(*) from ${membersAt(rid, containment_id, to, most)} m))::int as n`,
  )
  return row?.n ?? 0
}

/** Whether a resource has outgoing edges that are open at only one of the two times, or with other properties then. */
const turned = (
  rid: SQL,
  { containment_id, from, to }: Pick<DifferenceOf, 'containment_id' | 'from' | 'to'>,
): SQL => sql`
  exists (select from (
      select src, reltype_id, valid_from, 'infinity' as valid_to from catalog.relationship
      union all select src, reltype_id, valid_from, valid_to from catalog.relationship_history) e
    where e.src = ${rid} and e.reltype_id <> ${containment_id}
      and (e.valid_from <= ${from}::timestamptz and e.valid_to > ${from}::timestamptz)
        <> (e.valid_from <= ${to}::timestamptz and e.valid_to > ${to}::timestamptz))`

/** Members of a subtree that differ between the times (presence, version, edges), by id. `where` is over r. */
export const listDiffering = (
  db: Queryable,
  { rid, containment_id, from, to, most, where, after, back, limit }: DifferenceOf,
): Promise<DifferingRow[]> =>
  rowsOf(
    db,
    sql`with was as materialized ${membersAt(rid, containment_id, from, most)},
          now as materialized ${membersAt(rid, containment_id, to, most)}
        select r.rid, r.resource_id, r.type_id, r.path::text as path, r.name, r.created_at,
          m.was_in, m.is_in, v.version_from, v.version_to
        from (select coalesce(was.rid, now.rid) as rid, was.rid is not null as was_in, now.rid is not null as is_in
              from was full join now on now.rid = was.rid) m
          join catalog.resource r on r.rid = m.rid
          cross join lateral (select max(version) filter (where at <= ${from}::timestamptz) as version_from,
              max(version) as version_to
            from catalog.revision where rid = m.rid and at <= ${to}::timestamptz) v
        where (m.was_in <> m.is_in or v.version_from is distinct from v.version_to
            or ${turned(sql`m.rid`, { containment_id, from, to })})
          and v.version_to is not null and ${where}
          and ${after === undefined ? sql`true` : back ? sql`r.resource_id < ${after}` : sql`r.resource_id > ${after}`}
        order by r.resource_id ${back ? sql`desc` : sql`asc`} limit ${limit}`,
  )

/** Who changed these resources after the first time and up to the second, by which operations, and when last. */
export const changersOf = async (db: Queryable, rids: readonly string[], from: string, to: string) => {
  const rows = await rowsOf<{ rid: string; actors: string[]; operation_ids: string[]; last_change_at: string }>(
    db,
    sql`select rid, array_agg(distinct actor) as actors, max(at) as last_change_at,
          coalesce(array_agg(distinct operation_id) filter (where operation_id is not null), '{}') as operation_ids
        from catalog.revision
        where rid = any(${array(rids, 'bigint')}) and at > ${from}::timestamptz and at <= ${to}::timestamptz
        group by rid`,
  )
  return new Map(rows.map(({ rid, ...row }) => [rid, row]))
}

export type TurnedEdge = {
  src: string
  dst: string
  to_id: string
  reltype_id: number
  op: 'added' | 'removed' | 'updated'
  /** When and by whom: also a change of the other end. */
  at: string
  actor: string | null
  operation_id: string | null
}

/** Outgoing non-containment edges of these resources that are open at only one of the two times, or differ. */
export const edgesTurned = (
  db: Queryable,
  rids: readonly string[],
  { containment_id, from, to }: Pick<DifferenceOf, 'containment_id' | 'from' | 'to'>,
): Promise<TurnedEdge[]> => {
  const openAt = (at: string) => sql`(
    select src, reltype_id, dst, properties, valid_from, null as valid_to from catalog.relationship
      where src = any(${array(rids, 'bigint')}) and reltype_id <> ${containment_id} and valid_from <= ${at}::timestamptz
    union all
    select src, reltype_id, dst, properties, valid_from, valid_to from catalog.relationship_history
      where src = any(${array(rids, 'bigint')}) and reltype_id <> ${containment_id}
        and valid_from <= ${at}::timestamptz and valid_to > ${at}::timestamptz)`
  return rowsOf(
    db,
    sql`with was as (${openAt(from)}), now as (${openAt(to)})
        select src, dst, p.resource_id as to_id, reltype_id, op, e.at, v.actor, v.operation_id
        from (select coalesce(was.src, now.src) as src, coalesce(was.dst, now.dst) as dst,
                coalesce(was.reltype_id, now.reltype_id) as reltype_id, coalesce(now.valid_from, was.valid_to) as at,
                case when was.src is null then 'added' when now.src is null then 'removed' else 'updated' end as op
              from was full join now on now.src = was.src and now.reltype_id = was.reltype_id and now.dst = was.dst
              where was.properties is distinct from now.properties) e
          join catalog.resource p on p.rid = e.dst
          left join lateral (select actor, operation_id from catalog.revision
            where rid in (e.src, e.dst) and revision.at = e.at limit 1) v on true
        order by 4, 3, 5`,
  )
}
