import { sql } from 'drizzle-orm'
import { first, type Queryable, type Tx } from '../../client.ts'
import { earliestTime, timeLock } from '../../locks.ts'
import { rowsOf } from './rows.ts'

/** Declares that the transaction stamps no time before the row's `created_at`; for the statement after the row. */
export const OPEN_STAMP = timeLock('stamp', 'floor(extract(epoch from created_at) * 1000)')

/** Opens a transaction that stamps by itself, without a command: from here on, no time before `now`. */
export const openStamp = (tx: Tx, now: Date): Promise<unknown> =>
  tx.execute(sql.raw(`select ${timeLock('stamp', String(now.getTime()))}`))

/** The earliest time that an open command may still stamp, in milliseconds; `undefined` if none is open. */
export const oldestStamp = async (db: Queryable): Promise<number | undefined> => {
  const row = first(await rowsOf<{ ms: string | null }>(db, sql`select ${earliestTime('stamp')} as ms`))
  return row?.ms == null ? undefined : Number(row.ms)
}
