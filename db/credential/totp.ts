import { and, eq, lt, ne, sql } from 'drizzle-orm'
import { first, type Queryable, type Tx } from '../client.ts'
import { type TotpRow, totp_factors } from './tables.ts'

/** A removed app leaves its row without a secret, so that its setup cannot bring it back. */
const isThere = sql`octet_length(${totp_factors.secret}) > 0`
const appOf = (user_id: string) => and(eq(totp_factors.user_id, user_id), isThere)

export const getTotp = (db: Queryable, user_id: string) =>
  db.select().from(totp_factors).where(appOf(user_id)).then(first)

/** Locks the authenticator app, so that concurrent codes are checked one after another. */
export const lockTotp = (tx: Tx, user_id: string) =>
  tx.select().from(totp_factors).where(appOf(user_id)).for('update').then(first)

/** Replaces the app of an earlier setup. Returns `undefined` if this setup was already saved, or one begun later. */
export const saveTotp = (db: Queryable, row: typeof totp_factors.$inferInsert) =>
  db
    .insert(totp_factors)
    .values(row)
    .onConflictDoUpdate({
      target: totp_factors.user_id,
      set: { failures: 0, failures_since: null, locked_until: null, last_used_at: null, ...row },
      setWhere: lt(totp_factors.id, row.id),
    })
    .returning()
    .then(first)

export const changeTotp = (tx: Tx, user_id: string, change: Partial<TotpRow>) =>
  tx.update(totp_factors).set(change).where(eq(totp_factors.user_id, user_id))

export const deleteTotp = (db: Queryable, user_id: string) =>
  db
    .update(totp_factors)
    .set({ secret: Buffer.alloc(0) })
    .where(appOf(user_id))
    .returning()
    .then(first)

/** Rows whose secret is sealed by an older key. */
export const totpsSealedBefore = (db: Queryable, kek_id: string, limit: number) =>
  db
    .select()
    .from(totp_factors)
    .where(and(ne(totp_factors.kek_id, kek_id), isThere))
    .limit(limit)

/** Stores the same secret under another key, unless it was replaced meanwhile. */
export const resealTotp = (db: Queryable, { id, user_id }: TotpRow, secret: Buffer, kek_id: string) =>
  db
    .update(totp_factors)
    .set({ secret, kek_id })
    .where(and(appOf(user_id), eq(totp_factors.id, id)))
