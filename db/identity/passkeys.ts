import { and, asc, count, eq, gt, sql } from 'drizzle-orm'
import { pick } from '../../apps/shared/data/pick.ts'
import { first, type Queryable } from '../client.ts'
import { NOW } from '../rows.ts'
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

/** All passkeys with the names of their people, oldest first, one page after a passkey. */
export const listKeys = (db: Queryable, after: string | undefined, limit: number) =>
  db
    .select({
      ...pick(passkeys, 'id', 'user_id', 'credential_id', 'public_key', 'created_at'),
      username: users.username,
    })
    .from(passkeys)
    .innerJoin(users, eq(users.id, passkeys.user_id))
    .where(after === undefined ? undefined : gt(passkeys.id, after))
    .orderBy(asc(passkeys.id))
    .limit(limit)

/** Returns `undefined` if someone has already registered this credential. */
export const insertPasskey = (db: Queryable, row: typeof passkeys.$inferInsert) =>
  db.insert(passkeys).values(row).onConflictDoNothing().returning().then(first)

/** Records a use. Returns `undefined` if the counter did not grow: a copied authenticator or a repeated answer. */
export const notePasskeyUse = (db: Queryable, id: string, counter: number, backed_up: boolean) =>
  db
    .update(passkeys)
    .set({ counter, backed_up, last_used_at: NOW })
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
