import type { Db } from '../../../db/client.ts'
import type { Truth } from '../../../db/operations/projection/refill.ts'
import { refillIndex } from '../../catalog/operations/compare.ts'
import { indexDeps, projectionOf, withDb } from '../ops/access.ts'

/** Aggregates for which operations believes a later version than the catalog has published. */
const AHEAD = `
  select v.agg_type, v.agg_id, coalesce(max(o.agg_version), 0)::int as ver
  from operations.projection_version v
  left join catalog.outbox o on o.agg_type = v.agg_type and o.agg_id = v.agg_id
  where v.consumer = 'catalog' and v.agg_type not in ('resource', 'health')
  group by v.agg_type, v.agg_id, v.ver having v.ver > coalesce(max(o.agg_version), 0)`

/** Clears and refills the copy that each app has of the other, from the current state. `relay` reads both. */
export const refillProjections = async (relay: Db): Promise<void> => {
  const { rows } = await relay.$client.query<Truth>(AHEAD)
  const resources = await withDb('operations', (db) => projectionOf(db).refill(rows))
  const operations = await withDb('catalog', (db) => refillIndex(indexDeps(db)))
  console.log(`Refilled: ${resources} resources in operations, ${operations} operations in the catalog.`)
}
