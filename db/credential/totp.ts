import { and, eq, gte, inArray, lt, sql } from 'drizzle-orm'
import { type Db, first, type Queryable, type Tx } from '../client.ts'
import { lockOwner } from '../locks.ts'
import { pruneRows } from '../prune.ts'
import { type TotpRow, totp_ended, totp_factors } from './tables.ts'

const appOf = (user_id: string) => eq(totp_factors.user_id, user_id)
/** A setup must not be saved while its app is being removed. */
const lockApp = (tx: Tx, user_id: string) => lockOwner(tx, `totp:${user_id}`)

export const getTotp = (db: Queryable, user_id: string) =>
  db.select().from(totp_factors).where(appOf(user_id)).then(first)

/** Locks the authenticator app, so that concurrent codes are checked one after another. */
export const lockTotp = (tx: Tx, user_id: string) =>
  tx.select().from(totp_factors).where(appOf(user_id)).for('update').then(first)

/** Replaces the app of an earlier setup. Returns `undefined` if this setup was already saved, or one begun later. */
export const saveTotp = async (tx: Tx, row: typeof totp_factors.$inferInsert) => {
  await lockApp(tx, row.user_id)
  const [ended] = await tx
    .select({ setup_id: totp_ended.setup_id })
    .from(totp_ended)
    .where(and(eq(totp_ended.user_id, row.user_id), gte(totp_ended.setup_id, row.id)))
    .limit(1)
  if (ended) return undefined
  return tx
    .insert(totp_factors)
    .values(row)
    .onConflictDoUpdate({
      target: totp_factors.user_id,
      set: { failures: 0, failures_since: null, locked_until: null, last_used_at: null, ...row },
      setWhere: lt(totp_factors.id, row.id),
    })
    .returning()
    .then(first)
}

export const changeTotp = (tx: Tx, user_id: string, change: Partial<TotpRow>) =>
  tx.update(totp_factors).set(change).where(appOf(user_id))

/** Deletes the app and notes its setup, which must not bring it back. */
export const deleteTotp = async (tx: Tx, user_id: string) => {
  await lockApp(tx, user_id)
  const gone = await tx.delete(totp_factors).where(appOf(user_id)).returning().then(first)
  if (gone) await tx.insert(totp_ended).values({ user_id, setup_id: gone.id }).onConflictDoNothing()
  return gone
}

/** Forgets the setups of removed apps when they have long expired: a setup is valid for ten minutes. */
export const pruneEndedSetups = (db: Db): Promise<number> =>
  pruneRows(db, totp_ended, 'ended_at', sql`now() - interval '1 day'`)

/** Rows whose secret one of these keys sealed. */
export const totpsSealedBy = (db: Queryable, kek_ids: string[], limit: number) =>
  db.select().from(totp_factors).where(inArray(totp_factors.kek_id, kek_ids)).limit(limit)

/** Stores the same secret under another key, unless it was replaced meanwhile. */
export const resealTotp = (db: Queryable, { id, user_id }: TotpRow, secret: Buffer, kek_id: string) =>
  db
    .update(totp_factors)
    .set({ secret, kek_id })
    .where(and(appOf(user_id), eq(totp_factors.id, id)))
