import { and, eq, isNull, lt, sql } from 'drizzle-orm'
import { type Db, equals, first, type Queryable, type Tx } from '../client.ts'
import { pruneRows } from '../prune.ts'
import { NOW } from '../rows.ts'
import { credentials, type EnrolmentTokenRow, enrolment_tokens } from './tables.ts'

export const getCredential = (db: Queryable, user_id: string) =>
  db.select().from(credentials).where(eq(credentials.user_id, user_id)).then(first)

/** Stores a user's first hash. Returns `undefined` if one already exists. */
export const addCredential = (tx: Tx, row: { user_id: string; password_hash: string; change_id: string }) =>
  tx
    .insert(credentials)
    .values({ ...row, version: 1 })
    .onConflictDoNothing()
    .returning()
    .then(first)

/** Replaces the hash that was read at `version`. Returns `undefined` if another change replaced it first. */
export const replaceCredential = (
  tx: Tx,
  row: { user_id: string; password_hash: string; change_id: string },
  version: number,
) =>
  tx
    .update(credentials)
    .set({ ...row, version: version + 1, changed_at: NOW })
    .where(equals(credentials, { user_id: row.user_id, version }))
    .returning()
    .then(first)

/** Leaves a row without a hash, as versions never go back. */
export const endCredential = (db: Queryable, user_id: string) =>
  db
    .update(credentials)
    .set({ password_hash: '', version: sql`${credentials.version} + 1`, changed_at: NOW })
    .where(eq(credentials.user_id, user_id))

/** Stores the same password under newer parameters, unless it was changed meanwhile. */
export const rehashCredential = (db: Queryable, user_id: string, from: string, to: string) =>
  db
    .update(credentials)
    .set({ password_hash: to })
    .where(equals(credentials, { user_id, password_hash: from }))

/** Adds an enrolment token, or returns the one that the same change created earlier. */
export const addEnrolmentToken = async (tx: Tx, row: Omit<EnrolmentTokenRow, 'used_at' | 'used_by'>) => {
  const added = await tx.insert(enrolment_tokens).values(row).onConflictDoNothing().returning().then(first)
  return added ?? tx.select().from(enrolment_tokens).where(eq(enrolment_tokens.change_id, row.change_id)).then(first)
}

export const getEnrolmentToken = (db: Queryable, token_id: string) =>
  db.select().from(enrolment_tokens).where(eq(enrolment_tokens.token_id, token_id)).then(first)

/** Uses up a token. Returns `undefined` if it was already used. */
export const useEnrolmentToken = (tx: Tx, token_id: string, used_by: string) =>
  tx
    .update(enrolment_tokens)
    .set({ used_at: NOW, used_by })
    .where(and(eq(enrolment_tokens.token_id, token_id), isNull(enrolment_tokens.used_at)))
    .returning()
    .then(first)

/** Ends all open links of a user, or those older than the given one: a new password or a new link supersedes them. */
export const supersedeEnrolmentTokens = (tx: Tx, user_id: string, than?: Pick<EnrolmentTokenRow, 'token_id'>) =>
  tx
    .update(enrolment_tokens)
    .set({ used_at: NOW, used_by: 'superseded' })
    .where(
      and(
        eq(enrolment_tokens.user_id, user_id),
        isNull(enrolment_tokens.used_at),
        than && lt(enrolment_tokens.token_id, than.token_id),
      ),
    )

/** Deletes enrolment tokens a week after they expire; until then a repeat of their use is answered. */
export const pruneEnrolmentTokens = (db: Db): Promise<number> =>
  pruneRows(db, enrolment_tokens, 'expires_at', sql`now() - interval '7 days'`)
