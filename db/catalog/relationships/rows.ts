import { type SQL, sql } from 'drizzle-orm'
import { first, type Queryable, type Tx } from '../../client.ts'
import { heldBy } from '../held/rows.ts'
import { array, rowsOf } from '../resources/rows.ts'
import type { ClosedEdge, EdgeCause, EdgeKey, EdgeRow } from '../rows.ts'

/** Open edges of one type that one end may have. */
export const MAX_EDGES = 200_000

const columns = sql`src, reltype_id, dst, rel_no, rev, properties, valid_from`
const keyIs = ({ src, reltype_id, dst }: EdgeKey) => sql`src = ${src} and reltype_id = ${reltype_id} and dst = ${dst}`

export const getEdge = async (db: Queryable, key: EdgeKey): Promise<EdgeRow | undefined> => {
  const held = heldBy(db)
  if (held) return held.edges.get(key)
  return first(await rowsOf<EdgeRow>(db, sql`select ${columns} from catalog.relationship where ${keyIs(key)}`))
}

/** The edge of a type that can leave a resource only once, such as containment. */
export const getOutEdge = async (db: Queryable, src: string, reltype_id: number): Promise<EdgeRow | undefined> => {
  const held = heldBy(db)
  if (held) return held.edges.outOf(src, reltype_id)
  return first(
    await rowsOf<EdgeRow>(
      db,
      sql`select ${columns} from catalog.relationship where src = ${src} and reltype_id = ${reltype_id} limit 1`,
    ),
  )
}

export const openEdge = async (
  tx: Tx,
  key: EdgeKey,
  properties: Record<string, unknown>,
  cause: EdgeCause,
): Promise<EdgeRow> => {
  const held = heldBy(tx)
  if (held) return held.edges.add(key, properties, cause)
  return first(
    await rowsOf<EdgeRow>(
      tx,
      sql`insert into catalog.relationship (src, reltype_id, dst, properties, valid_from, command_id, operation_id)
          values (${key.src}, ${key.reltype_id}, ${key.dst}, ${JSON.stringify(properties)}::jsonb, ${cause.at},
                  ${cause.command_id}, ${cause.operation_id})
          returning ${columns}`,
    ),
  ) as EdgeRow
}

const toHistory = (tx: Tx, key: EdgeKey, at: string) =>
  tx.execute(sql`insert into catalog.relationship_history
      (src, reltype_id, dst, rev, properties, valid_from, command_id, operation_id, rel_no, valid_to)
    select src, reltype_id, dst, rev, properties, valid_from, command_id, operation_id, rel_no, ${at}
    from catalog.relationship where ${keyIs(key)}`)

/** Changes the properties of an edge; the revision before goes to history. */
export const reviseEdge = async (
  tx: Tx,
  key: EdgeKey,
  properties: Record<string, unknown>,
  cause: EdgeCause,
): Promise<EdgeRow> => {
  const held = heldBy(tx)
  if (held) return held.edges.revise(key, properties, cause)
  await toHistory(tx, key, cause.at)
  return first(
    await rowsOf<EdgeRow>(
      tx,
      sql`update catalog.relationship set rev = rev + 1, properties = ${JSON.stringify(properties)}::jsonb,
            valid_from = ${cause.at}, command_id = ${cause.command_id}, operation_id = ${cause.operation_id}
          where ${keyIs(key)} returning ${columns}`,
    ),
  ) as EdgeRow
}

/** Closes an edge: its row moves to history, told with one revision more. */
export const closeEdge = async (tx: Tx, key: EdgeKey, cause: EdgeCause): Promise<EdgeRow | undefined> => {
  const held = heldBy(tx)
  if (held) return held.edges.close(key, cause)
  await toHistory(tx, key, cause.at)
  const [row] = await rowsOf<EdgeRow>(
    tx,
    sql`delete from catalog.relationship where ${keyIs(key)} returning ${columns}`,
  )
  return row && { ...row, rev: row.rev + 1 }
}

/** How many open edges of a type a resource has at one end; of a symmetric type, at either. */
export const countEdges = async (
  db: Queryable,
  reltype_id: number,
  rid: string,
  end: 'src' | 'dst' | 'either',
): Promise<number> => {
  const held = heldBy(db)
  if (held) return held.edges.count(reltype_id, rid, end)
  const at = { src: sql`src = ${rid}`, dst: sql`dst = ${rid}`, either: sql`(src = ${rid} or dst = ${rid})` }[end]
  const [row] = await rowsOf<{ n: number }>(
    db,
    sql`select count(*)::int as n from catalog.relationship where reltype_id = ${reltype_id} and ${at}`,
  )
  return row?.n ?? 0
}

/** Which of these numbers of open edges of one type one of the two ends has reached; each costs reading so many. */
export const crowding = async (
  db: Queryable,
  { src, reltype_id, dst }: EdgeKey,
  { many, most }: { many: number; most: number },
): Promise<'no' | 'many' | 'most'> => {
  const held = heldBy(db)
  if (held) return held.edges.crowding({ src, reltype_id, dst }, { many, most })
  const has = (end: SQL, count: number) => sql`exists (select 1 from catalog.relationship
    where ${end} and reltype_id = ${reltype_id} offset ${count - 1})`
  const either = (count: number) => sql`(${has(sql`src = ${src}`, count)} or ${has(sql`dst = ${dst}`, count)})`
  const [row] = await rowsOf<{ crowding: 'no' | 'many' | 'most' }>(
    db,
    sql`select case when not ${either(many)} then 'no' when ${either(most)} then 'most' else 'many' end as crowding`,
  )
  return row?.crowding ?? 'no'
}

/** Whether `to` can be reached from `from` along edges of one type. */
export const reaches = async (db: Queryable, reltype_id: number, from: string, to: string): Promise<boolean> => {
  const held = heldBy(db)
  if (held) return held.edges.reaches(reltype_id, from, to)
  const [row] = await rowsOf<{ found: boolean }>(
    db,
    sql`with recursive way(rid) as (
          select ${from}::bigint
          union
          select e.dst from way join catalog.relationship e on e.src = way.rid and e.reltype_id = ${reltype_id})
        select exists(select 1 from way where rid = ${to}) as found`,
  )
  return row?.found ?? false
}

/** Closes every open edge of a resource in one statement: their rows move to history, each told with one revision more. */
export const closeEdgesOf = async (tx: Tx, rid: string, cause: EdgeCause): Promise<ClosedEdge[]> => {
  const held = heldBy(tx)
  if (held) return held.edges.closeAll(rid, cause, (end) => held.rowsOf([end])[0]?.resource_id ?? '')
  const { at } = cause
  return rowsOf(
    tx,
    sql`with gone as (
          delete from catalog.relationship where src = ${rid} or dst = ${rid} returning *),
        kept as (
          insert into catalog.relationship_history
            (src, reltype_id, dst, rev, properties, valid_from, command_id, operation_id, rel_no, valid_to)
          select src, reltype_id, dst, rev, properties, valid_from, command_id, operation_id, rel_no,
            greatest(valid_from, ${at}::timestamptz) from gone)
        select g.src, g.reltype_id, g.dst, g.rel_no, g.rev + 1 as rev, g.properties, g.valid_from,
          a.resource_id as from_id, b.resource_id as to_id
        from gone g join catalog.resource a on a.rid = g.src join catalog.resource b on b.rid = g.dst order by g.rel_no`,
  )
}

/** How many open edges a resource has, up to a limit. */
export const countEdgesOf = async (db: Queryable, rid: string, limit: number): Promise<number> => {
  const held = heldBy(db)
  if (held) return held.edges.countAll(rid)
  const [row] = await rowsOf<{ n: number }>(
    db,
    sql`select count(*)::int as n from (
          select from catalog.relationship where src = ${rid} or dst = ${rid} limit ${limit}) x`,
  )
  return row?.n ?? 0
}

/** Edges of these types that lead to a resource, but not from any of `except`; at most `limit`. */
export const edgesTo = async (
  db: Queryable,
  rid: string,
  reltype_ids: readonly number[],
  { except, limit }: { except: readonly string[]; limit: number },
): Promise<EdgeRow[]> => {
  const held = heldBy(db)
  if (held) return held.edges.to(rid, reltype_ids, except).slice(0, limit)
  return rowsOf(
    db,
    sql`select ${columns} from catalog.relationship
        where dst = ${rid} and reltype_id = any(${array(reltype_ids, 'smallint')})
          and src <> all(${array(except, 'bigint')}) order by src limit ${limit}`,
  )
}

/** Everything that ends with this resource along edges that cascade, itself first. At most `limit`. */
export const cascadeOf = async (
  db: Queryable,
  rid: string,
  reltype_ids: readonly number[],
  limit: number,
): Promise<string[]> => {
  if (reltype_ids.length === 0) return [rid]
  const held = heldBy(db)
  if (held) return held.edges.cascade(rid, reltype_ids, limit)
  return cascadeOfAll(db, [rid], reltype_ids, limit)
}

/** The same for many resources at once. */
export const cascadeOfAll = async (
  db: Queryable,
  rids: readonly string[],
  reltype_ids: readonly number[],
  limit: number,
): Promise<string[]> => {
  const rows = await rowsOf<{ rid: string }>(
    db,
    sql`with recursive gone(rid) as (
          select unnest(${array(rids, 'bigint')})
          union
          -- By the index, whatever the planner expects: few of these edges lead on.
          select e.src from gone cross join lateral (select src from catalog.relationship
            where dst = gone.rid and reltype_id = any(${array(reltype_ids, 'smallint')}) offset 0) e)
        select rid from gone limit ${limit}`,
  )
  return rows.map((row) => row.rid)
}
