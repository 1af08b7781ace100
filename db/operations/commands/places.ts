import { sql } from 'drizzle-orm'
import type { Db, Tx } from '../../client.ts'
import { tellEngine } from './rows.ts'

/**
 * Places at the agents of a pool (operations.md 7.4, max_in_flight). Each open attempt holds one; the claim counts them
 * under a lock and records the nodes that must wait. This notifies as many of those as there are free places, the
 * oldest first; their claims decide. Returns how many it notified.
 */
export const offerPlaces = async (db: Db): Promise<number> => {
  const { rows } = await db.execute<{ operation_id: string; node_ids: string[] }>(sql`
    with pool as (
      select w.pool, (array_agg(w.places order by w.since desc))[1] - (select count(*) from operations.node_attempts a
        where a.executor = 'external' and coalesce(a.pool, 'default') = w.pool and a.phase in ('dispatched', 'running')) as free
      from operations.pool_waits w group by w.pool),
    queue as (
      select w.operation_id, w.node_id, p.free, row_number() over (partition by w.pool order by w.since, w.operation_id, w.node_id) as place
      from pool p join operations.pool_waits w using (pool) where p.free > 0)
    select operation_id, array_agg(node_id order by place) as node_ids from queue where place <= free group by operation_id order by operation_id`)
  let told = 0
  for (const { operation_id, node_ids } of rows) told += await db.transaction((tx) => tell(tx, operation_id, node_ids))
  return told
}

const tell = async (tx: Tx, operation_id: string, node_ids: readonly string[]): Promise<number> => {
  const { rows } = await tx.execute<{ ended: boolean }>(
    sql`select ended from operations.operation_control where operation_id = ${operation_id} for update`,
  )
  const gone = await tx.execute<{ node_id: string }>(sql`
    delete from operations.pool_waits where operation_id = ${operation_id} and node_id = any(${sql.param(node_ids)}) returning node_id`)
  const waiting = gone.rows.map(({ node_id }) => node_id)
  if (waiting.length === 0 || rows[0]?.ended !== false) return 0
  await tellEngine(tx, operation_id, 'place_free', { node_ids: waiting })
  return waiting.length
}
