import { type SQL, sql } from 'drizzle-orm'
import type { PgTable } from 'drizzle-orm/pg-core'
import type { Db } from './client.ts'

const EVERY_MS = 3_600_000
const BATCH = 1000

/**
 * Removes the rows of a table whose time in `column` is before `end`, the oldest first and a batch at a time, so that no
 * lock is held for long. `end` is a time of now(): clock_timestamp() is another at each row, so that no index finds the
 * old ones. Without the order Postgres would read a table in which some rows are old from its beginning, at each batch.
 */
export const pruneRows = async (
  db: Db,
  table: PgTable,
  column: string,
  end: SQL,
  also = sql`true`,
): Promise<number> => {
  const at = sql.identifier(column)
  for (let removed = 0; ; ) {
    const { rowCount } = await db.execute(
      sql`delete from ${table} where ctid = any(array(
        select ctid from ${table} where ${at} < ${end} and ${also} order by ${at} limit ${BATCH}))`,
    )
    removed += rowCount ?? 0
    if ((rowCount ?? 0) < BATCH) return removed
  }
}

/** Runs these every hour; reports a failure and tries again the next hour. Returns a function that stops it. */
export const startPruning = (acts: readonly (() => Promise<unknown>)[], onError: (error: unknown) => void) => {
  const timer = setInterval(async () => {
    for (const act of acts) await act().catch(onError)
  }, EVERY_MS).unref()
  return () => clearInterval(timer)
}
