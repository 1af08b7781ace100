import { sql } from 'drizzle-orm'
import type { Db } from '../../client.ts'
import { pruneRows } from '../../prune.ts'
import { durations, engine_findings, intents, plans } from '../tables/index.ts'

const days = (n: number) => sql`now() - make_interval(days => ${n})`

/**
 * Deletes plans that no one started and that expired or were replaced 90 days ago, and their intents. The audit log
 * keeps who requested them. Old durations and findings are deleted too.
 */
export const pruneDrafts = async (db: Db): Promise<void> => {
  await pruneRows(
    db,
    plans,
    'updated_at',
    days(90),
    sql`operation_id is null and status in ('expired', 'superseded', 'stale')`,
  )
  await pruneRows(
    db,
    intents,
    'updated_at',
    days(90),
    sql`operation_id is null and status = 'expired'
      and not exists (select from operations.plans p where p.intent_id = intents.intent_id)`,
  )
  await pruneRows(db, durations, 'at', days(400))
  await pruneRows(db, engine_findings, 'handled_at', days(400))
}
