import { type SQL, sql } from 'drizzle-orm'
import type { Queryable } from '../../client.ts'
import type { ResourceRow } from '../rows.ts'
import type { revision } from '../tables.ts'
import { array, rowsOf } from './rows.ts'

export type RevisionRow = Omit<typeof revision.$inferSelect, 'rid'>

/** The revisions from the nearest snapshot up to a version, oldest first; together they yield its document. */
export const revisionsUpTo = (db: Queryable, rid: string, version: number): Promise<RevisionRow[]> =>
  rowsOf(
    db,
    sql`select version, at, kind, doc, changed_paths, lifecycle_status, actor, command_id, operation_id
        from catalog.revision where rid = ${rid} and version <= ${version}
          and version >= (select max(version) from catalog.revision
            where rid = ${rid} and version <= ${version} and kind = 'snapshot')
        order by version`,
  )

/** The revisions that yield these resources as they were at a given time, oldest first, by row number. */
export const revisionsAt = async (
  db: Queryable,
  rids: readonly string[],
  at: string,
): Promise<Map<string, RevisionRow[]>> => {
  const rows = await rowsOf<RevisionRow & { rid: string }>(
    db,
    sql`select v.rid, v.version, v.at, v.kind, v.doc, v.changed_paths, v.lifecycle_status, v.actor, v.command_id,
          v.operation_id
        from unnest(${array(rids, 'bigint')}) as f(rid)
        cross join lateral (select max(version) as version from catalog.revision
          where rid = f.rid and at <= ${at}::timestamptz) n
        join catalog.revision v on v.rid = f.rid and v.version <= n.version
          and v.version >= (select max(version) from catalog.revision
            where rid = f.rid and version <= n.version and kind = 'snapshot')
        order by v.rid, v.version`,
  )
  return Map.groupBy(rows, ({ rid }) => rid)
}

/** A resource's version at a given time; `undefined` before it existed. */
export const versionAt = async (db: Queryable, rid: string, at: string): Promise<number | undefined> => {
  const [row] = await rowsOf<{ version: number | null }>(
    db,
    sql`select max(version) as version from catalog.revision where rid = ${rid} and at <= ${at}::timestamptz`,
  )
  return row?.version ?? undefined
}

/** A resource's lifecycle state at a given time. */
export const lifecycleAt = async (db: Queryable, rid: string, at: string): Promise<string | undefined> => {
  const [row] = await rowsOf<{ lifecycle_status: string }>(
    db,
    sql`select lifecycle_status from catalog.revision where rid = ${rid} and at <= ${at}::timestamptz
        order by version desc limit 1`,
  )
  return row?.lifecycle_status
}

/**
 * Row numbers of each resource and of everything that contained it at a given time, the resource last: its past path,
 * at any length. A retired resource has no open edges, but keeps its last container. If commands were stamped out of
 * order, edges of one time may form a cycle; the path stops there.
 */
export const pathsAt = async (
  db: Queryable,
  rids: readonly string[],
  reltype_id: number,
  at: string,
): Promise<Map<string, string>> => {
  const rows = await rowsOf<{ start: string; path: string }>(
    db,
    sql`with recursive way(start, rid, rids) as (
          select f.rid, f.rid, array[f.rid] from unnest(${array(rids, 'bigint')}) as f(rid)
          union all
          select way.start, e.dst, e.dst || way.rids from way cross join lateral (
            select o.dst from catalog.relationship o
              where o.src = way.rid and o.reltype_id = ${reltype_id} and o.valid_from <= ${at}::timestamptz
            union all
            select h.dst from catalog.relationship_history h
              where h.src = way.rid and h.reltype_id = ${reltype_id}
                and h.valid_from <= ${at}::timestamptz and h.valid_to > ${at}::timestamptz
            union all
            select r.parent_rid from catalog.resource r join catalog.resource_state s on s.rid = r.rid
              where r.rid = way.rid and not r.is_open and s.lifecycle_at <= ${at}::timestamptz
            limit 1) e
          where e.dst <> all(way.rids))
        select distinct on (start) start, array_to_string(rids, '.') as path from way
        order by start, cardinality(rids) desc`,
  )
  return new Map(rows.map(({ start, path }) => [start, path]))
}

/** A past resource, in the columns that filters and list conditions read. */
export type PastRow = Pick<ResourceRow, 'rid' | 'path' | 'is_open' | 'type_id'> & { document: Record<string, unknown> }

/** Which of these past resources satisfy the conditions over r (resource), s (resource_state) and p (parent). */
export const meeting = async (db: Queryable, rows: readonly PastRow[], where: readonly SQL[]): Promise<Set<string>> => {
  if (rows.length === 0) return new Set()
  const flat = rows.map(({ document, ...row }) => ({
    ...document,
    ...row,
    drift_status: (document.drift as { status: string }).status,
  }))
  const found = await rowsOf<{ rid: string }>(
    db,
    sql`with past as materialized (
          select * from jsonb_to_recordset(${JSON.stringify(flat)}::jsonb) as x(rid bigint, path ltree, is_open boolean,
            resource_id text, type_version integer, name text, display_name text, owner text, labels jsonb, parent_id text,
            type_id smallint, desired_state jsonb, observed_state jsonb, created_at timestamptz, created_by text,
            version integer, generation integer, observed_generation integer, lifecycle_status text, drift_status text,
            updated_at timestamptz, updated_by text))
        select r.rid from past r join past s on s.rid = r.rid
          join (select rid, parent_id as resource_id from past) p on p.rid = r.rid
        where ${sql.join([...where], sql` and `)}`,
  )
  return new Set(found.map(({ rid }) => rid))
}

/** The versions of a resource without their documents, from a position in the given direction, with their evidence. */
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

/** How many versions are searched for the time at which a field was set. */
const LAST_VERSIONS = 1000

/** When each of these fields, or an ancestor, last changed; one without a time was set before the versions searched. */
export const lastChanges = async (
  db: Queryable,
  resource_id: string,
  paths: readonly string[],
): Promise<Map<string, string>> => {
  const rows = await rowsOf<{ path: string; at: string }>(
    db,
    sql`with last as materialized (
          select v.version, v.at, v.changed_paths from catalog.revision v
          join catalog.resource r using (rid) where r.resource_id = ${resource_id}
          order by v.version desc limit ${LAST_VERSIONS})
        select f.path, (select l.at from last l where l.version = 1 or exists (
            select 1 from jsonb_array_elements_text(l.changed_paths) c
            where c = f.path or (f.path <> '' and starts_with(f.path, c || '/')))
          order by l.version desc limit 1) as at
        from unnest(${array(paths, 'text')}) as f(path)`,
  )
  return new Map(rows.flatMap(({ path, at }) => (at === null ? [] : [[path, at]])))
}
