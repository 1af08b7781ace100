import { and, eq, or, sql } from 'drizzle-orm'
import { first, type Queryable, type Tx } from '../../client.ts'
import { insertRow, insertRows, updateRow } from '../../rows.ts'
import { audit, command_log, evidence_ref, resource_operation, revision } from '../tables.ts'
import { array } from './rows.ts'
import { OPEN_STAMP } from './stamps.ts'

/** Command log, revisions, references and audit: what a command leaves behind beside its change. */
export type CommandLogRow = typeof command_log.$inferSelect

/**
 * Takes a command id and key, or says that one of them is taken. A twin that still runs makes it wait. From here on the
 * command is open: it stamps nothing before its `created_at`. The statement is sent by the call itself: what the caller
 * sends next without waiting comes after it.
 */
export const claimCommand = async (tx: Tx, row: typeof command_log.$inferInsert): Promise<boolean> => {
  const { rowCount } = await insertRow(tx, command_log, row, CLAIM).execute()
  return rowCount === 1
}

const CLAIM = `on conflict do nothing returning ${OPEN_STAMP}`

/** The row that holds this command id, else the one that holds this key. */
export const getCommand = async (
  tx: Tx,
  { command_id, scope, idempotency_key }: Pick<CommandLogRow, 'command_id' | 'scope' | 'idempotency_key'>,
): Promise<CommandLogRow | undefined> => {
  const rows = await tx
    .select()
    .from(command_log)
    .where(
      or(
        eq(command_log.command_id, command_id),
        and(eq(command_log.scope, scope), eq(command_log.idempotency_key, idempotency_key)),
      ),
    )
  return rows.find((row) => row.command_id === command_id) ?? first(rows)
}

export const storeAnswer = (
  tx: Tx,
  command_id: string,
  answer: Pick<CommandLogRow, 'status' | 'headers' | 'body' | 'resource_id'>,
) => updateRow(tx, command_log, { command_id }, answer)

const PRUNED_AT_ONCE = 5000

/** Forgets answers whose time is over: a later repeat is harmless, its expected_version is past. True: there may be more. */
export const pruneCommands = async (db: Queryable, now: string): Promise<boolean> => {
  const { rowCount } = await db.execute(sql`delete from catalog.command_log where command_id in
    (select command_id from catalog.command_log where retain_until < ${now}::timestamptz limit ${PRUNED_AT_ONCE})`)
  return rowCount === PRUNED_AT_ONCE
}

/** Forgets what was observed before a time; the latest word of each check stays. True: there may be more. */
export const pruneObservations = async (db: Queryable, before: string): Promise<boolean> => {
  const { rowCount } = await db.execute(sql`delete from catalog.observation_history where id in
    (select id from catalog.observation_history where observed_at < ${before}::timestamptz limit ${PRUNED_AT_ONCE})`)
  return rowCount === PRUNED_AT_ONCE
}

/** Forgets relationships that were closed before a time. True: there may be more. */
export const pruneRelationships = async (db: Queryable, before: string): Promise<boolean> => {
  const { rowCount } = await db.execute(sql`delete from catalog.relationship_history where (rel_no, rev) in
    (select rel_no, rev from catalog.relationship_history where valid_to < ${before}::timestamptz limit ${PRUNED_AT_ONCE})`)
  return rowCount === PRUNED_AT_ONCE
}

/** Forgets what providers were before a time. True: there may be more. */
export const pruneProviders = async (db: Queryable, before: string): Promise<boolean> => {
  const { rowCount } = await db.execute(sql`delete from catalog.provider_history where (provider_id, rev) in
    (select provider_id, rev from catalog.provider_history where valid_to < ${before}::timestamptz limit ${PRUNED_AT_ONCE})`)
  return rowCount === PRUNED_AT_ONCE
}

const WALKED_AT_ONCE = 1000

/**
 * Forgets the revisions of some resources, by row number, that no time from `before` on needs: those older than the
 * newest snapshot at or before it. Gives the row number to go on after; nothing at the end.
 */
export const pruneRevisions = async (db: Queryable, before: string, after: string): Promise<string | undefined> => {
  const { rows } = await db.execute<{ rid: string }>(
    sql`select rid from catalog.resource where rid > ${after} order by rid limit ${WALKED_AT_ONCE}`,
  )
  const rids = rows.map(({ rid }) => rid)
  await db.execute(
    sql`delete from catalog.revision v using unnest(${array(rids, 'bigint')}) as f(rid)
        cross join lateral (select max(version) as version from catalog.revision
          where rid = f.rid and kind = 'snapshot' and at <= ${before}::timestamptz) kept
        where v.rid = f.rid and v.version < kept.version`,
  )
  return rids.length === WALKED_AT_ONCE ? rids.at(-1) : undefined
}

export const saveRevision = (tx: Tx, row: typeof revision.$inferInsert) => insertRow(tx, revision, row)
export const saveOperationRef = (tx: Tx, row: typeof resource_operation.$inferInsert) =>
  insertRow(tx, resource_operation, row, 'on conflict do nothing')
type Evidence = typeof evidence_ref.$inferInsert
export const saveEvidence = (tx: Tx, rows: [Evidence, ...Evidence[]]) => insertRows(tx, evidence_ref, rows)
export const saveAudit = (tx: Tx, row: typeof audit.$inferInsert) => insertRow(tx, audit, row)
