import { sql } from 'drizzle-orm'
import type { HealthStatus } from '../../apps/shared/contracts/catalog/resources.ts'
import type { Queryable, Tx } from '../client.ts'
import { array, rowsOf } from './resources.ts'
import { observation_latest } from './tables.ts'

export type ObservationRow = {
  rid: string
  source: string
  check_key: string
  status: HealthStatus
  observed_at: string
  expires_at: string
  swept: boolean
  summary: string | null
  command_id: string
}

/** The latest word of each check of a resource. */
export const readChecks = (db: Queryable, rid: string): Promise<ObservationRow[]> =>
  rowsOf(
    db,
    sql`select rid, source, check_key, status, observed_at, expires_at, swept, summary, command_id
        from catalog.observation_latest where rid = ${rid} order by source, check_key`,
  )

/** The latest words of the checks of several resources. */
export const readChecksOf = (db: Queryable, rids: readonly string[]): Promise<ObservationRow[]> =>
  rids.length === 0
    ? Promise.resolve([])
    : rowsOf(
        db,
        sql`select rid, source, check_key, status, observed_at, expires_at, swept, summary, command_id
            from catalog.observation_latest where rid = any(${array(rids, 'bigint')}) order by rid, source, check_key`,
      )

/** Takes an observation unless a newer one is there: newer = greater (observed_at, command_id). False: superseded. */
export const saveObservation = async (tx: Tx, row: typeof observation_latest.$inferInsert): Promise<boolean> => {
  const { rid, source, check_key, ...set } = row
  const saved = await tx
    .insert(observation_latest)
    .values(row)
    .onConflictDoUpdate({
      target: [observation_latest.rid, observation_latest.source, observation_latest.check_key],
      set: { ...set, swept: false },
      setWhere: sql`(${observation_latest.observed_at}, ${observation_latest.command_id})
        < (${row.observed_at}::timestamptz, ${row.command_id}::uuid)`,
    })
    .returning({ rid: observation_latest.rid })
  return saved.length === 1
}

/** Resources whose checks ran out since they were last looked at. */
export const expiredResources = async (db: Queryable, now: string, limit: number): Promise<string[]> => {
  const rows = await rowsOf<{ rid: string }>(
    db,
    sql`select distinct rid from (select rid from catalog.observation_latest
          where not swept and expires_at <= ${now} order by expires_at limit ${limit}) x order by rid`,
  )
  return rows.map(({ rid }) => rid)
}

export const markSwept = (tx: Tx, rids: readonly string[], now: string) =>
  tx.execute(
    sql`update catalog.observation_latest set swept = true
        where rid = any(${array(rids, 'bigint')}) and not swept and expires_at <= ${now}`,
  )
