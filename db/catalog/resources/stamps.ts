import { type SQL, sql } from 'drizzle-orm'
import { first, type Queryable, type Tx } from '../../client.ts'
import { rowsOf } from './rows.ts'

/**
 * Times of open commands, for all processes to see: each holds a shared advisory lock from its claim to its end, whose
 * number is the time before which it stamps nothing. It ends after the commit can be seen, or with the connection.
 */
const CLASS = 727_322
/** Milliseconds take the lower bits until the year 2109. */
const MS_BITS = 42

const keyOf = (ms: SQL): SQL => sql`pg_advisory_xact_lock_shared((${CLASS}::bigint << ${MS_BITS}::int) | ${ms})`

/** The lock for a time that a statement holds as `created_at`, as text for what follows a row. */
export const STAMPED = `pg_advisory_xact_lock_shared((${CLASS}::bigint << ${MS_BITS}) | floor(extract(epoch from created_at) * 1000)::bigint)`

/** Says that this transaction stamps nothing before a time. */
export const openStamp = (tx: Tx, at: Date): Promise<unknown> =>
  rowsOf(tx, sql`select ${keyOf(sql`${at.getTime()}::bigint`)}`)

/** The earliest time that an open command may still stamp, in milliseconds; undefined when none is open. */
export const oldestStamp = async (db: Queryable): Promise<number | undefined> => {
  const [low, count] = [CLASS * 2 ** (MS_BITS - 32), 2 ** (MS_BITS - 32)]
  const row = first(
    await rowsOf<{ ms: string | null }>(
      db,
      sql`select min((classid::bigint << 32) | objid::bigint) & ((1::bigint << ${MS_BITS}::int) - 1) as ms from pg_locks
          where locktype = 'advisory' and objsubid = 1 and classid::bigint >= ${low} and classid::bigint < ${low + count}
            and database = (select oid from pg_database where datname = current_database())`,
    ),
  )
  return row?.ms == null ? undefined : Number(row.ms)
}
