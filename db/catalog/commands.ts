import { and, eq, or, sql } from 'drizzle-orm'
import { first, type Queryable, type Tx } from '../client.ts'
import { audit, command_log, evidence_ref, resource_operation, revision } from './tables.ts'

/** Command log, revisions, references and audit: what a command leaves behind beside its change. */
export type CommandLogRow = typeof command_log.$inferSelect

/** Takes a command id and key, or says that one of them is taken. A twin that still runs makes it wait. */
export const claimCommand = async (tx: Tx, row: typeof command_log.$inferInsert): Promise<boolean> => {
  const taken = await tx
    .insert(command_log)
    .values(row)
    .onConflictDoNothing()
    .returning({ command_id: command_log.command_id })
  return taken.length === 1
}

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
) => tx.update(command_log).set(answer).where(eq(command_log.command_id, command_id))

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

export const saveRevision = (tx: Tx, row: typeof revision.$inferInsert) => tx.insert(revision).values(row)
export const saveOperationRef = (tx: Tx, row: typeof resource_operation.$inferInsert) =>
  tx.insert(resource_operation).values(row).onConflictDoNothing()
export const saveEvidence = (tx: Tx, rows: (typeof evidence_ref.$inferInsert)[]) =>
  rows.length > 0 ? tx.insert(evidence_ref).values(rows) : undefined
export const saveAudit = (tx: Tx, row: typeof audit.$inferInsert) => tx.insert(audit).values(row)
