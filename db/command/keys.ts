import { sql } from 'drizzle-orm'
import { index, integer, jsonb, type PgSchema, primaryKey, text, timestamp, uuid } from 'drizzle-orm/pg-core'
import { canonicalJson, hmacSha256 } from '../../apps/shared/data/digest.ts'
import { pick } from '../../apps/shared/data/pick.ts'
import { AppError } from '../../apps/shared/errors.ts'
import { type Db, equals, type Queryable, type Tx } from '../client.ts'
import { bytea } from '../columns.ts'
import { pruneRows } from '../prune.ts'
import { insertRow, NOW, updateRow } from '../rows.ts'

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
      created_at: timestamp('created_at', { withTimezone: true, mode: 'string' }).notNull().default(NOW),
    },
    (t) => [primaryKey({ columns: [t.caller, t.route, t.key] }), index().on(t.created_at)],
  )
export type IdempotencyTable = ReturnType<typeof idempotencyTable>

/** The sender, route, key and content of a request. `caller` is `user:<uuid>`, `route` is method + path template. */
export type IdempotentRequest = { caller: string; route: string; key: string; fingerprint: Fingerprint }

/** A request's content by each key, the newest first, which is stored: a repeat may come after a rotation of keys. */
export type Fingerprint = readonly [Buffer, ...Buffer[]]

/** The first answer, replayed byte for byte. */
export type StoredAnswer = {
  status: number
  headers: Record<string, string>
  body: Buffer
  /** The resource that it concerns. */
  about?: string | null
}

/** HMAC over a request's content (path, query, If-Match, body). Not a plain hash: bodies can contain secrets. */
export const fingerprintOf = ([key, ...others]: readonly [Buffer, ...Buffer[]], parts: unknown): Fingerprint => {
  const text = canonicalJson(parts)
  return [hmacSha256(key, text), ...others.map((other) => hmacSha256(other, text))]
}

/** Whether a stored fingerprint is that of this content, by any key. */
export const isSameContent = (stored: Buffer, given: Fingerprint): boolean => given.some((one) => one.equals(stored))

/** An earlier request's use of a key; its answer, if there is one. */
export type Used = { command_id: string | null; answer: StoredAnswer | null }

export const stillRunning = () =>
  new AppError('version_conflict', 'in_progress', 'The same request is still running.', {
    retryable: true,
    retry_after_ms: 1000,
  })

/**
 * The first statement of a command's transaction: takes the key, or returns its earlier use. It waits for a concurrent
 * request with the same key (lock timeout: 409 in_progress). Other content under the same key is 422
 * `idempotency_key_reused`. The call itself sends the statement: the caller's next statement comes after it.
 */
export const claimKey = async (
  tx: Tx,
  table: IdempotencyTable,
  { caller, route, key, fingerprint }: IdempotentRequest,
  command_id?: string,
): Promise<Used | undefined> => {
  const taken = await insertRow(
    tx,
    table,
    { caller, route, key, fingerprint: fingerprint[0], command_id: command_id ?? null },
    'on conflict do nothing',
  ).execute()
  if (taken.rowCount === 1) return undefined
  const used = await readKey(tx, table, { caller, route, key, fingerprint })
  if (!used) throw stillRunning()
  return used
}

/** Returns a key's use without taking the key, or `undefined` if it is free. Refuses other content like `claimKey`. */
export const readKey = async (
  db: Queryable,
  table: IdempotencyTable,
  request: IdempotentRequest,
): Promise<Used | undefined> => {
  const [row] = await db.select().from(table).where(sameKey(table, request))
  if (!row) return undefined
  if (!isSameContent(row.fingerprint, request.fingerprint)) {
    throw new AppError(
      'validation_error',
      'idempotency_key_reused',
      'This Idempotency-Key was used for another request.',
      { hint: 'Use a new key for a new request; repeat a request with its own key and unchanged content.' },
    )
  }
  const answer =
    row.status === null || row.body === null ? null : { status: row.status, headers: row.headers ?? {}, body: row.body }
  return { command_id: row.command_id, answer }
}

/** Stores the first answer by compare-and-set, and returns the stored one: the first answer wins. */
export const storeAnswer = async (
  db: Queryable,
  table: IdempotencyTable,
  request: IdempotentRequest,
  answer: StoredAnswer,
): Promise<StoredAnswer> => {
  const { status, headers, body } = answer
  const own = pick(request, 'caller', 'route', 'key')
  const won = await updateRow(db, table, own, { status, headers, body }, 'and status is null').execute()
  if (won.rowCount === 1) return answer
  const [row] = await db.select().from(table).where(sameKey(table, request))
  return row?.status != null && row.body ? { status: row.status, headers: row.headers ?? {}, body: row.body } : answer
}

/** Deletes keys that are older than a week. */
export const pruneKeys = (db: Db, table: IdempotencyTable): Promise<number> =>
  pruneRows(db, table, 'created_at', sql`now() - interval '7 days'`)

const sameKey = (table: IdempotencyTable, { caller, route, key }: IdempotentRequest) =>
  equals(table, { caller, route, key })
