import { and, eq, isNull, sql } from 'drizzle-orm'
import { index, integer, jsonb, type PgSchema, primaryKey, text, timestamp, uuid } from 'drizzle-orm/pg-core'
import { canonicalJson, hmacSha256 } from '../apps/shared/data/digest.ts'
import { AppError } from '../apps/shared/errors.ts'
import type { Db, Queryable, Tx } from './client.ts'
import { bytea } from './columns.ts'
import { pruneRows } from './prune.ts'

/** First answers of public mutations, by caller, route and key (reliability.md 3). Kept 7 days. */
export const idempotencyTable = (schema: PgSchema) =>
  schema.table(
    'idempotency',
    {
      caller: text('caller').notNull(),
      route: text('route').notNull(),
      key: text('key').notNull(),
      fingerprint: bytea('fingerprint').notNull(),
      command_id: uuid('command_id'),
      status: integer('status'),
      headers: jsonb('headers').$type<Record<string, string>>(),
      body: bytea('body'),
      created_at: timestamp('created_at', { withTimezone: true, mode: 'string' })
        .notNull()
        .default(sql`clock_timestamp()`),
    },
    (t) => [primaryKey({ columns: [t.caller, t.route, t.key] }), index().on(t.created_at)],
  )
export type IdempotencyTable = ReturnType<typeof idempotencyTable>

/** Who sends what under which key. `caller` is `user:<uuid>`, `route` is method + path template. */
export type IdempotentRequest = { caller: string; route: string; key: string; fingerprint: Buffer }

/** An answer as it was first given: replayed byte for byte. */
export type StoredAnswer = { status: number; headers: Record<string, string>; body: Buffer }

/** HMAC over what makes two requests the same (path parameters, query, If-Match, body); bodies can hold secrets, so never a plain hash. */
export const fingerprintOf = (key: Uint8Array, parts: unknown): Buffer => hmacSha256(key, canonicalJson(parts))

/** The outcome of asking for a key: it is ours now, or it was used before (with its answer, once there is one). */
export type Claim = { fresh: true } | { fresh: false; command_id: string | null; answer: StoredAnswer | null }

/**
 * The first statement of a command's transaction: takes the key or finds out what it was used for. A running twin makes
 * it wait (lock time-out: 409 in_progress). Another content under the same key is 422 `idempotency_key_reused`. The
 * statement is sent by the call itself: what the caller sends next without waiting comes after it.
 */
export const claimKey = async (
  tx: Tx,
  table: IdempotencyTable,
  request: IdempotentRequest,
  command_id?: string,
): Promise<Claim> => {
  const taken = await tx
    .insert(table)
    .values({ ...request, command_id: command_id ?? null })
    .onConflictDoNothing()
    .returning({ key: table.key })
    .execute()
  if (taken.length === 1) return { fresh: true }
  const found = await readKey(tx, table, request)
  if (!found)
    throw new AppError('version_conflict', 'in_progress', 'The same request is still running.', {
      retryable: true,
      retry_after_ms: 1000,
    })
  return { fresh: false, ...found }
}

/** What a key was used for, without taking it: nothing when it is free. Another content is refused as by `claimKey`. */
export const readKey = async (
  db: Queryable,
  table: IdempotencyTable,
  request: IdempotentRequest,
): Promise<{ command_id: string | null; answer: StoredAnswer | null } | undefined> => {
  const [row] = await db.select().from(table).where(sameKey(table, request))
  if (!row) return undefined
  if (!row.fingerprint.equals(request.fingerprint)) {
    throw new AppError(
      'validation_error',
      'idempotency_key_reused',
      'This Idempotency-Key was used for another request.',
      {
        status: 422,
        hint: 'Make a new key for a new request; repeat a request with its own key and unchanged content.',
      },
    )
  }
  const answer =
    row.status === null || row.body === null ? null : { status: row.status, headers: row.headers ?? {}, body: row.body }
  return { command_id: row.command_id, answer }
}

/** Stores the first answer, by compare-and-set: whoever answers first decides, and the stored answer is returned to all. */
export const storeAnswer = async (
  db: Queryable,
  table: IdempotencyTable,
  request: IdempotentRequest,
  answer: StoredAnswer,
): Promise<StoredAnswer> => {
  const won = await db
    .update(table)
    .set(answer)
    .where(and(sameKey(table, request), isNull(table.status)))
    .returning({ key: table.key })
  if (won.length === 1) return answer
  const [row] = await db.select().from(table).where(sameKey(table, request))
  return row?.status != null && row.body ? { status: row.status, headers: row.headers ?? {}, body: row.body } : answer
}

/** Forgets keys that are older than a week. */
export const pruneKeys = (db: Db, table: IdempotencyTable): Promise<number> =>
  pruneRows(db, table, sql`created_at < clock_timestamp() - interval '7 days'`)

const sameKey = (table: IdempotencyTable, { caller, route, key }: IdempotentRequest) =>
  and(eq(table.caller, caller), eq(table.route, route), eq(table.key, key))

/**
 * Runs a plain mutation once per key inside the transaction of its change: a repeat gets the stored bytes, a refusal
 * (a throw) rolls the key back with the rest, so a corrected request may use it again.
 */
export const once = async (
  tx: Tx,
  table: IdempotencyTable,
  request: IdempotentRequest,
  run: () => Promise<{ status: number; headers?: Record<string, string>; body: unknown }>,
): Promise<StoredAnswer & { replayed: boolean }> => {
  const claim = await claimKey(tx, table, request)
  if (!claim.fresh) {
    if (claim.answer) return { ...claim.answer, replayed: true }
    throw new AppError('version_conflict', 'in_progress', 'The same request is still running.', {
      retryable: true,
      retry_after_ms: 1000,
    })
  }
  const { status, headers = {}, body } = await run()
  const answer = { status, headers, body: Buffer.from(body === undefined ? '' : JSON.stringify(body)) }
  return { ...(await storeAnswer(tx, table, request, answer)), replayed: false }
}
