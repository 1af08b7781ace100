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

/** The versions of a resource without their documents, the newest first. */
export const listVersions = (
  db: Queryable,
  rid: string,
  before: number | undefined,
  limit: number,
): Promise<Omit<RevisionRow, 'doc' | 'kind'>[]> => {
  const older: SQL = before === undefined ? sql`true` : sql`version < ${before}`
  return rowsOf(
    db,
    sql`select version, at, changed_paths, lifecycle_status, actor, command_id, operation_id
        from catalog.revision where rid = ${rid} and ${older} order by version desc limit ${limit}`,
  )
}
