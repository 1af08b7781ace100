import { sql } from 'drizzle-orm'
import { first, type Queryable, type Tx } from '../../client.ts'
import { earliestTime, timeLock } from '../../locks.ts'
import { rowsOf } from './rows.ts'

/** Declares that the transaction stamps no time before the row's `created_at`; for the statement after the row. */
export const OPEN_STAMP = timeLock('stamp', 'floor(extract(epoch from created_at) * 1000)')

/**
 * Opens a transaction that stamps by itself, without a command: from here on, no time before `now`. The time is a
 * parameter: each text that varies would take the place of one that can be prepared.
 */
export const openStamp = (tx: Tx, now: Date): Promise<unknown> =>
  tx.execute(sql`select ${sql.raw(timeLock('stamp', 't.ms'))} from (values (${now.getTime()}::bigint)) t(ms)`)

/** The earliest time that an open command may still stamp, in milliseconds; `undefined` if none is open. */
export const oldestStamp = async (db: Queryable): Promise<number | undefined> => {
  const row = first(await rowsOf<{ ms: string | null }>(db, sql`select ${earliestTime('stamp')} as ms`))
  return row?.ms == null ? undefined : Number(row.ms)
}
