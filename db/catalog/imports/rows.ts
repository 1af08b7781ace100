import { sql } from 'drizzle-orm'
import type { Queryable, Tx } from '../../client.ts'
import { lockOfOne } from '../../locks.ts'
import { heldBy } from '../held/rows.ts'
import { array, rowsOf } from '../resources/rows.ts'

/** Imports of one source come one after another: side by side they would only wait for each other's rows. */
export const lockSource = (tx: Tx, source_name: string) =>
  tx.execute(sql`select ${lockOfOne('importSource', sql`hashtext(${source_name})`)}`)

/** Which resource an id of a source stands for. */
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

/** Remembers what an id of a source stands for, and that it was seen. */
export const saveImported = async (
  tx: Tx,
  source_name: string,
  external_id: string,
  resource_id: string,
  at: string,
): Promise<void> => {
  const held = heldBy(tx)
  if (held) return held.saveImported({ source_name, external_id, resource_id, last_seen_at: at })
  await tx.execute(sql`insert into catalog.import_ref (source_name, external_id, rid, last_seen_at)
    select ${source_name}, ${external_id}, rid, ${at} from catalog.resource where resource_id = ${resource_id}
    on conflict (source_name, external_id) do update set rid = excluded.rid, last_seen_at = excluded.last_seen_at`)
}

/** The open edges out of a resource of these types, with the ids of their ends. */
export const outTargets = async (
  db: Queryable,
  resource_id: string,
  relations: readonly { id: number; type_key: string }[],
): Promise<{ type_key: string; target_id: string }[]> => {
  const held = heldBy(db)
  if (held) return held.targetsOf(resource_id, relations)
  return rowsOf(
    db,
    sql`select t.type_key, d.resource_id as target_id
        from catalog.resource r join catalog.relationship e on e.src = r.rid
        join catalog.relationship_type t on t.id = e.reltype_id join catalog.resource d on d.rid = e.dst
        where r.resource_id = ${resource_id} and e.reltype_id = any(${array(
          relations.map(({ id }) => id),
          'smallint',
        )}) order by e.rel_no`,
  )
}
