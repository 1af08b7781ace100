import { and, desc, eq, gte, lt, type SQL, sql } from 'drizzle-orm'
import {
  type AnyPgColumn,
  bigint,
  type ExtraConfigColumn,
  getTableConfig,
  type IndexBuilder,
  index,
  type PgSchema,
  text,
  timestamp,
  unique,
  uuid,
} from 'drizzle-orm/pg-core'
import type { Static } from 'typebox'
import type { Clock } from '../apps/shared/clock.ts'
import type { AuditQuery } from '../apps/shared/contracts/audit.ts'
import { canonicalJson, digest, hmacSha256, sha256Hex } from '../apps/shared/data/digest.ts'
import { wrongAt } from '../apps/shared/errors.ts'
import type { Pages } from '../apps/shared/http/pages.ts'
import { uuidv7 } from '../apps/shared/ids.ts'
import type { Queryable, Tx } from './client.ts'
import { insertRow, NOW } from './rows.ts'

export const auditColumns = () => ({
  id: bigint('id', { mode: 'bigint' }).primaryKey().generatedAlwaysAsIdentity(),
  actor: text('actor').notNull(),
  on_behalf_of: text('on_behalf_of'),
  action: text('action').notNull(),
  object: text('object').notNull(),
  outcome: text('outcome').notNull(),
  reason: text('reason'),
  before_hash: text('before_hash'),
  after_hash: text('after_hash'),
  request_id: text('request_id'),
  command_id: uuid('command_id'),
  /** Canonical JSON text; its HMAC is in `mac`. */
  body: text('body').notNull(),
  seal_seq: bigint('seal_seq', { mode: 'bigint' }),
  prev_hash: text('prev_hash'),
  seal_hash: text('seal_hash'),
})

/** The audit log of one schema (reliability.md 5.4). Apps insert and read; only the relay seals rows into a chain. */
export const auditTable = <N extends string>(
  schema: PgSchema,
  name: N,
  more: (columns: { id: ExtraConfigColumn }) => IndexBuilder[] = () => [],
) =>
  schema.table(
    name,
    {
      ...auditColumns(),
      at: timestamp('at', { withTimezone: true, mode: 'string' }).notNull().default(NOW),
      roles: text('roles').array().notNull().default(sql`'{}'`),
      mac: text('mac').notNull(),
    },
    (t) => [
      unique().on(t.seal_seq),
      index().on(t.id).where(unsealed),
      index().on(t.actor, t.id),
      index().on(t.object, t.id),
      ...more(t),
    ],
  )
const unsealed: SQL = sql`seal_seq is null`
export type AuditTable = ReturnType<typeof auditTable>

export type AuditEntry = {
  /** `user:<uuid>`, `svc:<name>` or `system`. */
  actor: string
  on_behalf_of?: string | null
  roles?: readonly string[]
  action: string
  /** `<kind>:<id>`, such as `user:<uuid>` or `key:<kid>`. */
  object: string
  outcome: 'done' | 'denied'
  reason?: string | null
  before?: unknown
  after?: unknown
  /** The change in words that a reader of the log needs, at most 1 KiB; never a secret. Only the signed body has it. */
  details?: Readonly<Record<string, unknown>> | undefined
  request_id?: string | null
  command_id?: string | null
}

/**
 * Version 2 of what the MAC of an audit row covers: the log, a unique id, the time and every other column that is read.
 * Rows of version 1 have no `v`; in three of the five logs they do not sign their time (`verify-audit` reports which).
 */
const AUDIT_VERSION = 2

/** The signed body and MAC of a row of this log. `columns` has its time, and its id if the log has an id column. */
export const signAudit = (
  log: string,
  key: Uint8Array,
  columns: { at: string; event_id?: string; [name: string]: unknown },
) => {
  const id = columns.event_id === undefined && { audit_id: uuidv7() }
  const body = canonicalJson({ v: AUDIT_VERSION, log, ...id, ...columns })
  return { body, mac: hmacSha256(key, body).toString('hex') }
}

const MOST_ROWS = 1000

/** Appends one row per mutation, per 403 and per security event, in the transaction of the change. */
export const appendAuditTo = async (
  tx: Tx,
  table: AuditTable,
  key: Uint8Array,
  entries: AuditEntry | readonly AuditEntry[],
): Promise<void> => {
  const rows = [entries].flat().map(({ before, after, details, roles = [], ...rest }) => {
    const columns = {
      ...rest,
      at: new Date().toISOString(),
      roles: [...roles],
      before_hash: before === undefined ? null : digest(before),
      after_hash: after === undefined ? null : digest(after),
    }
    const signed = { ...columns, ...(details && { details: shortened(details) }) }
    return { ...columns, ...signAudit(logOf(table), key, signed) }
  })
  const [only, ...others] = rows
  if (only && others.length === 0) await insertRow(tx, table, only)
  else for (let at = 0; at < rows.length; at += MOST_ROWS) await tx.insert(table).values(rows.slice(at, at + MOST_ROWS))
}

const MOST_DETAILS = 1024

/** Leaves out the members that do not fit, and says so. */
const shortened = (details: Readonly<Record<string, unknown>>): Record<string, unknown> => {
  const kept: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(details)) {
    const fits = Buffer.byteLength(canonicalJson({ ...kept, [name]: value ?? null, cut: true })) <= MOST_DETAILS
    Object.assign(kept, fits ? { [name]: value ?? null } : { cut: true })
  }
  return kept
}

const logOf = (table: AuditTable): string => {
  const { schema, name } = getTableConfig(table)
  return `${schema}.${name}`
}

export type AuditFilter = {
  /** The user whom it concerns. */
  user_id?: string | undefined
  /** Who did it, and to what, as stored in the rows. */
  actor?: string | undefined
  object?: string | undefined
  type?: string | undefined
  /** From this time (inclusive) to that one (exclusive); ISO 8601. */
  from?: string | undefined
  to?: string | undefined
  /** Rows before this one, the last of the previous page. */
  before?: string | null | undefined
}

/** The condition for one page of an audit log under that filter, newest first. Throws if no time can be in it. */
export const auditMatches = (
  table: Record<'id' | 'at' | 'actor' | 'action' | 'object', AnyPgColumn>,
  { user_id, actor, object, type, from, to, before }: AuditFilter,
): SQL | undefined => {
  if (from && to && Date.parse(from) > Date.parse(to)) throw reversed()
  return and(
    user_id ? eq(table.object, `user:${user_id}`) : undefined,
    actor ? eq(table.actor, actor) : undefined,
    object ? eq(table.object, object) : undefined,
    type ? eq(table.action, type) : undefined,
    from ? gte(table.at, from) : undefined,
    to ? lt(table.at, to) : undefined,
    before ? lt(table.id, BigInt(before)) : undefined,
  )
}

const reversed = () =>
  wrongAt('/querystring/from', 'is after to', {
    status: 400,
    detail: 'from is after to.',
    hint: 'Send the earlier time as from and the later one as to.',
  })

/** Those rows, newest first. */
export const listAudit = (db: Queryable, table: AuditTable, filter: AuditFilter, limit: number) =>
  db.select().from(table).where(auditMatches(table, filter)).orderBy(desc(table.id)).limit(limit)

/** A row without its number, its seal and its signed body. */
const auditView = ({ id, body, mac, seal_seq, prev_hash, seal_hash, ...row }: AuditTable['$inferSelect']) => ({
  ...row,
  at: new Date(row.at).toISOString(),
})

/** A page of an audit log as its readers see it, newest first. */
export const pageOfAudit = async (
  { db, pages, clock }: { db: Queryable; pages: Pages; clock: Clock },
  table: AuditTable,
  { page_size, page_token, ...filter }: Static<typeof AuditQuery>,
) => {
  const { action: type, ...rest } = filter
  const list = { route: 'audit', ...filter }
  const [before] = pages.after(page_token, list) ?? []
  const rows = await listAudit(db, table, { ...rest, type, before }, page_size + 1)
  const { items, next_page_token } = pages.cut(rows, page_size, list, ({ id }) => [String(id)])
  return { items: items.map(auditView), next_page_token, as_of: clock.now().toISOString() }
}

/** The audit logs of all schemas, for the relay to seal and the verifier to read. */
export const AUDIT_LOGS = [
  { app: 'identity', table: 'identity.user_events' },
  { app: 'session', table: 'session.auth_events' },
  { app: 'token', table: 'token.key_events' },
  { app: 'catalog', table: 'catalog.audit' },
  { app: 'operations', table: 'operations.audit' },
] as const

/**
 * The link of a sealed row. It includes the previous link, so changing, removing or moving a row breaks the chain.
 * Readers order by `id`, so the link includes it; older links were made without it.
 */
export const sealHash = (prev_hash: string, seal_seq: bigint, mac: string | null, id?: string): string =>
  sha256Hex([prev_hash, seal_seq, mac ?? '', ...(id === undefined ? [] : [id])].join('|'))
/** The link before the first sealed row. */
export const SEAL_START = '0'.repeat(64)
