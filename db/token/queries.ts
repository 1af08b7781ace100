import { and, eq, isNotNull, lte, sql } from 'drizzle-orm'
import { equals, first, type Queryable, type Tx } from '../client.ts'
import { lockOf } from '../locks.ts'
import { type KeyRow, type KeyStatus, keys } from './tables.ts'

/** Lets only one process at a time change the keys; held until the transaction ends. */
export const lockKeys = (tx: Tx) => tx.execute(sql`select ${lockOf('tokenKeys')}`)

export const listKeys = (db: Queryable): Promise<KeyRow[]> =>
  db.select().from(keys).orderBy(keys.published_at, keys.kid)

export const getKey = (db: Queryable, kid: string): Promise<KeyRow | undefined> =>
  db.select().from(keys).where(eq(keys.kid, kid)).then(first)

export const saveKey = (tx: Tx, key: KeyRow) => tx.insert(keys).values(key)

/** Moves a key from the status with which it was read. Returns `undefined` if another caller was first. */
export const moveKey = (tx: Tx, kid: string, from: KeyStatus, change: Partial<KeyRow> & { status: KeyStatus }) =>
  tx
    .update(keys)
    .set(change)
    .where(equals(keys, { kid, status: from }))
    .returning()
    .then(first)

/** Deletes retired keys that no unexpired token can still need. */
export const removeExpiredKeys = (tx: Tx, now: string): Promise<{ kid: string }[]> =>
  tx
    .delete(keys)
    .where(and(eq(keys.status, 'retired'), isNotNull(keys.verify_until), lte(keys.verify_until, now)))
    .returning({ kid: keys.kid })
