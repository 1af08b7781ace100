import { type SQL, sql } from 'drizzle-orm'
import type { Queryable } from '../client.ts'
import { rowsOf } from './resources.ts'

export type RevisionRow = {
  version: number
  at: string
  kind: 'snapshot' | 'delta'
  doc: Record<string, unknown>
  changed_paths: string[]
  lifecycle_status: string
  actor: string
  command_id: string | null
  operation_id: string | null
}

/** The revisions from the nearest snapshot up to a version, oldest first: together they are the document as it was. */
export const revisionsUpTo = (db: Queryable, rid: string, version: number): Promise<RevisionRow[]> =>
  rowsOf(
    db,
    sql`select version, at, kind, doc, changed_paths, lifecycle_status, actor, command_id, operation_id
        from catalog.revision where rid = ${rid} and version <= ${version}
          and version >= (select max(version) from catalog.revision
            where rid = ${rid} and version <= ${version} and kind = 'snapshot')
        order by version`,
  )

/** The version that a resource had at a time; nothing before it was there. */
export const versionAt = async (db: Queryable, rid: string, at: string): Promise<number | undefined> => {
  const [row] = await rowsOf<{ version: number | null }>(
    db,
    sql`select max(version) as version from catalog.revision where rid = ${rid} and at <= ${at}::timestamptz`,
  )
  return row?.version ?? undefined
}

/** The lifecycle state that a resource was in at a time. */
export const lifecycleAt = async (db: Queryable, rid: string, at: string): Promise<string | undefined> => {
  const [row] = await rowsOf<{ lifecycle_status: string }>(
    db,
    sql`select lifecycle_status from catalog.revision where rid = ${rid} and at <= ${at}::timestamptz
        order by version desc limit 1`,
  )
  return row?.lifecycle_status
}

/** Row numbers of a resource and of all that contained it at a time, the resource last: its path as it was. */
export const pathAt = async (db: Queryable, rid: string, reltype_id: number, at: string): Promise<string> => {
  const rows = await rowsOf<{ rid: string }>(
    db,
    sql`with recursive way(rid, step) as (
          select ${rid}::bigint, 0
          union all
          select e.dst, way.step + 1 from way cross join lateral (
            select o.dst from catalog.relationship o
              where o.src = way.rid and o.reltype_id = ${reltype_id} and o.valid_from <= ${at}::timestamptz
            union all
            select h.dst from catalog.relationship_history h
              where h.src = way.rid and h.reltype_id = ${reltype_id}
                and h.valid_from <= ${at}::timestamptz and h.valid_to > ${at}::timestamptz
            limit 1) e
          where way.step < 100)
        select rid from way order by step desc`,
  )
  return rows.map((row) => row.rid).join('.')
}

/** The versions of a resource without their documents, from a place in the given direction, with their evidence. */
export const listVersions = (
  db: Queryable,
  rid: string,
  { from, back, limit }: { from: number | undefined; back: boolean; limit: number },
): Promise<(Omit<RevisionRow, 'doc' | 'kind'> & { evidence_refs: Record<string, unknown>[] })[]> => {
  const beyond: SQL = from === undefined ? sql`true` : back ? sql`version > ${from}` : sql`version < ${from}`
  return rowsOf(
    db,
    sql`select v.version, v.at, v.changed_paths, v.lifecycle_status, v.actor, v.command_id, v.operation_id,
          coalesce((select jsonb_agg(x.ref order by x.id) from catalog.evidence_ref x
            where x.rid = ${rid} and x.at = v.at and x.command_id = v.command_id), '[]') as evidence_refs
        from (select * from catalog.revision where rid = ${rid} and ${beyond}
              order by version ${back ? sql`asc` : sql`desc`} limit ${limit}) v
        order by v.version ${back ? sql`asc` : sql`desc`}`,
  )
}
