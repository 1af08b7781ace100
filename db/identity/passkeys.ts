import { and, asc, count, eq, sql } from 'drizzle-orm'
import { first, type Queryable } from '../client.ts'
import { passkeys, users } from './tables.ts'

export const passkeysOf = (db: Queryable, user_id: string) =>
  db.select().from(passkeys).where(eq(passkeys.user_id, user_id)).orderBy(asc(passkeys.id))

export const countPasskeys = (db: Queryable, user_id: string): Promise<number> =>
  db
    .select({ n: count() })
    .from(passkeys)
    .where(eq(passkeys.user_id, user_id))
    .then((rows) => rows[0]?.n ?? 0)

export const passkeyByCredential = (db: Queryable, credential_id: string) =>
  db
    .select({ passkey: passkeys, user: users })
    .from(passkeys)
    .innerJoin(users, eq(users.id, passkeys.user_id))
    .where(eq(passkeys.credential_id, credential_id))
    .then(first)

/** Returns `undefined` if someone has already registered this credential. */
export const insertPasskey = (db: Queryable, row: typeof passkeys.$inferInsert) =>
  db.insert(passkeys).values(row).onConflictDoNothing().returning().then(first)

/** Records a use. Returns `undefined` if the counter did not grow: a copied authenticator or a repeated answer. */
export const notePasskeyUse = (db: Queryable, id: string, counter: number, backed_up: boolean) =>
  db
    .update(passkeys)
    .set({ counter, backed_up, last_used_at: sql`clock_timestamp()` as never })
    .where(
      and(eq(passkeys.id, id), sql`(${passkeys.counter} < ${counter} or (${passkeys.counter} = 0 and ${counter} = 0))`),
    )
    .returning()
    .then(first)

/** Removes one or all passkeys of this person; returns the removed ones. */
export const deletePasskeys = (db: Queryable, user_id: string, id?: string) =>
  db
    .delete(passkeys)
    .where(and(eq(passkeys.user_id, user_id), id === undefined ? undefined : eq(passkeys.id, id)))
    .returning()
