import { sql } from 'drizzle-orm'
import type { Tx } from '../../client.ts'
import { CATALOG_CONSUMER } from './many.ts'

/** An aggregate and its version at its owner. */
export type Truth = { agg_type: string; agg_id: string; ver: number }

/**
 * Clears the catalog projection while its writers wait: a snapshot is folded in the same transaction. `truth`: other
 * aggregates whose projected version is newer than the catalog's.
 */
export const clearProjection = async (tx: Tx, truth: readonly Truth[]): Promise<void> => {
  await tx.execute(sql`lock table operations.catalog_resources, operations.catalog_relationships, operations.catalog_health,
    operations.projection_version, operations.projection in share row exclusive mode`)
  for (const name of ['catalog_resources', 'catalog_relationships', 'catalog_health'])
    await tx.execute(sql`delete from ${sql.raw(`operations.${name}`)}`)
  await tx.execute(sql`
    delete from operations.projection_version where consumer = ${CATALOG_CONSUMER} and agg_type in ('resource', 'health')`)
  await tx.execute(sql`
    update operations.projection_version v set ver = least(v.ver, x.ver)
    from jsonb_to_recordset(${JSON.stringify(truth)}::jsonb) as x(agg_type text, agg_id text, ver bigint)
    where v.consumer = ${CATALOG_CONSUMER} and v.agg_type = x.agg_type and v.agg_id = x.agg_id`)
  await tx.execute(sql`update operations.projection_version set held = false where consumer = ${CATALOG_CONSUMER}`)
  await tx.execute(sql`
    update operations.dead_letter set released_at = clock_timestamp()
    where consumer = ${CATALOG_CONSUMER} and released_at is null`)
}
