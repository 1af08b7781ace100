import { sql } from 'drizzle-orm'
import type { Queryable, Tx } from '../../client.ts'
import { lockOfOne } from '../../locks.ts'
import { array, rowsOf } from '../resources/rows.ts'

/** Serializes the imports of one source: in parallel they would only wait for each other's rows. */
export const lockSource = (tx: Tx, source_name: string) =>
  tx.execute(sql`select ${lockOfOne('importSource', sql`hashtext(${source_name})`)}`)

/** The resource that an id of a source stands for. */
export const getImported = async (
  db: Queryable,
  source_name: string,
  external_ids: readonly string[],
): Promise<Map<string, string>> => {
  if (external_ids.length === 0) return new Map()
  const rows = await rowsOf<{ external_id: string; resource_id: string }>(
    db,
    sql`select i.external_id, r.resource_id from catalog.import_ref i join catalog.resource r using (rid)
        where i.source_name = ${source_name} and i.external_id = any(${array(external_ids, 'text')}) and r.is_open`,
  )
  return new Map(rows.map(({ external_id, resource_id }) => [external_id, resource_id]))
}
