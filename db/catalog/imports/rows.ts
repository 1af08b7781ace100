import { sql } from 'drizzle-orm'
import type { Queryable, Tx } from '../../client.ts'
import { lockOfOne } from '../../locks.ts'
import { array, rowsOf } from '../resources/rows.ts'

/** Serializes the imports of one source: in parallel they would only wait for each other's rows. */
export const lockSource = (tx: Tx, source_name: string) =>
  tx.execute(sql`select ${lockOfOne('importSource', sql`hashtext(${source_name})`)}`)

/** The resources that ids of a source stand for: open ones, and those whose lifecycle has ended. */
export const getImported = async (db: Queryable, source_name: string, external_ids: readonly string[]) => {
  const found = { open: new Map<string, string>(), ended: new Map<string, string>() }
  if (external_ids.length === 0) return found
  const rows = await rowsOf<{ external_id: string; resource_id: string; is_open: boolean }>(
    db,
    sql`select i.external_id, r.resource_id, r.is_open from catalog.import_ref i join catalog.resource r using (rid)
        where i.source_name = ${source_name} and i.external_id = any(${array(external_ids, 'text')})`,
  )
  for (const { external_id, resource_id, is_open } of rows)
    found[is_open ? 'open' : 'ended'].set(external_id, resource_id)
  return found
}
