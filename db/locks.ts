import { type SQL, sql } from 'drizzle-orm'

/**
 * Every advisory lock of the database, by name. Each number is used once: two meanings of one number would block each
 * other. Transaction locks end with the transaction; session locks are released or end with the connection.
 */
export const LOCKS = {
  migrate: 727_301,
  testTemplate: 727_302,
  roles: 727_303,
  grants: 727_304,
  packs: 727_305,
  tokenKeys: 727_306,
  sweeper: 727_310,
  leases: 727_311,
  calendar: 727_312,
  scheduleRuns: 727_313,
  relationshipType: 727_320,
  importSource: 727_321,
  stamp: 727_322,
  catalogJobs: 727_330,
  catalogSearch: 727_331,
  catalogHistory: 727_332,
  admins: 727_401,
} as const
type Lock = keyof typeof LOCKS

/** Locks of individual things: the prefix separates a resource from a pool of the same name. */
export const KEYED = {
  leader: 'leader:',
  seal: 'seal:',
  catalog: 'catalog:',
  places: 'places:',
  owner: 'owner:',
} as const
type KeyedLock = keyof typeof KEYED

const call = (name: string, args: string): SQL => sql.raw(`${name}(${args})`)
const hashed = (kind: KeyedLock, key: string): string => `hashtextextended('${KEYED[kind]}' || ${key}, 0)`

/** Waits for a lock that ends with the transaction; an expression for `select`. */
export const lockOf = (lock: Lock, how: 'exclusive' | 'shared' = 'exclusive'): SQL =>
  call(how === 'shared' ? 'pg_advisory_xact_lock_shared' : 'pg_advisory_xact_lock', String(LOCKS[lock]))

/** Like lockOf, for one of the things that the lock covers, identified by a number. */
export const lockOfOne = (lock: Lock, id: SQL, how: 'exclusive' | 'shared' = 'exclusive'): SQL =>
  sql`${sql.raw(how === 'shared' ? 'pg_advisory_xact_lock_shared' : 'pg_advisory_xact_lock')}(${sql.raw(String(LOCKS[lock]))}, ${id})`

/** Milliseconds take the lower bits of a time lock, until the year 2109. */
const MS_BITS = 42

/**
 * A shared lock on a point in time, visible to all processes, that ends with the transaction; `ms` is SQL for
 * milliseconds. It is held until the commit is visible or the connection ends.
 */
export const timeLock = (lock: Lock, ms: string): string =>
  `pg_advisory_xact_lock_shared((${LOCKS[lock]}::bigint << ${MS_BITS}) | (${ms})::bigint)`

/** The earliest time of a held lock of this kind, in milliseconds: an expression that is null if none is held. */
export const earliestTime = (lock: Lock): SQL => {
  const [low, count] = [LOCKS[lock] * 2 ** (MS_BITS - 32), 2 ** (MS_BITS - 32)]
  return sql.raw(`(select min((classid::bigint << 32) | objid::bigint) & ((1::bigint << ${MS_BITS}) - 1) from pg_locks
    where locktype = 'advisory' and objsubid = 1 and classid::bigint >= ${low} and classid::bigint < ${low + count}
      and database = (select oid from pg_database where datname = current_database()))`)
}

/** Returns true if the lock was free; it ends with the transaction. */
export const tryLockOf = (lock: Lock): SQL => call('pg_try_advisory_xact_lock', String(LOCKS[lock]))

/** Waits for one thing's lock; it ends with the transaction. `key` is SQL of type text: an expression or `$1::text`. */
export const keyedLock = (kind: KeyedLock, key: string): string => `pg_advisory_xact_lock(${hashed(kind, key)})`

/** Until this transaction ends, no other one counts or changes what this owner has: a limit on it is exact. */
export const lockOwner = (tx: { execute: (query: SQL) => Promise<unknown> }, owner: string) =>
  tx.execute(sql`select pg_advisory_xact_lock(hashtextextended(${KEYED.owner + owner}, 0))`)

/** Like lockOf, as a statement for a separate connection. */
export const lockStatement = (lock: Lock): string => `select pg_advisory_xact_lock(${LOCKS[lock]})`

/** Session locks, as statements for a connection to Postgres itself, without a pooler. */
export const sessionLock = {
  wait: (lock: Lock): string => `select pg_advisory_lock(${LOCKS[lock]})`,
  try: (lock: Lock): string => `select pg_try_advisory_lock(${LOCKS[lock]}) as held`,
  free: (lock: Lock): string => `select pg_advisory_unlock(${LOCKS[lock]})`,
  tryKeyed: (kind: KeyedLock): string => `select pg_try_advisory_lock(${hashed(kind, '$1::text')}) as held`,
}
