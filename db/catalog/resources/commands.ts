import { sql } from 'drizzle-orm'
import type { Queryable, Tx } from '../../client.ts'
import { inOne, insertRow, insertRows, type Statement, updateRow } from '../../rows.ts'
import { audit, command_log, evidence_ref, resource_operation, revision } from '../tables.ts'
import { hex, recordset } from './batch.ts'
import { array, rowsOf } from './rows.ts'
import { OPEN_STAMP } from './stamps.ts'

/** Command log, revisions, references and audit: what a command records besides its change. */
export type CommandLogRow = typeof command_log.$inferSelect

type Names = Pick<CommandLogRow, 'command_id' | 'scope' | 'idempotency_key'>

const CLAIM = `on conflict do nothing returning command_id, ${OPEN_STAMP}`

/**
 * Claims the ids and keys of commands, in the order of their ids, and returns which were free. Waits for concurrent
 * commands with the same id or key. From here on the commands are open: they stamp no time before their `created_at`.
 * The call itself sends the statement: statements that the caller sends next without waiting run after it.
 */
export const claimCommands = async (
  tx: Tx,
  rows: readonly (typeof command_log.$inferInsert)[],
): Promise<ReadonlySet<string>> => {
  const [first, ...others] = rows
  const claims = rows.map((row) => ({ ...row, fingerprint: hex(row.fingerprint) }))
  const taken =
    first && others.length === 0
      ? insertRow(tx, command_log, first, CLAIM).execute()
      : tx
          .execute(
            sql`insert into catalog.command_log (command_id, scope, idempotency_key, fingerprint, created_at, retain_until)
                select command_id, scope, idempotency_key, fingerprint, created_at, retain_until
                from ${recordset('command_log', claims)} x order by command_id ${sql.raw(CLAIM)}`,
          )
          .execute()
  return new Set((await taken).rows.map(({ command_id }) => command_id as string))
}

/** The rows that use one of these ids or keys. */
export const getCommands = (db: Queryable, commands: readonly Names[]): Promise<CommandLogRow[]> => {
  const names = commands.map(({ command_id, scope, idempotency_key }) => ({ command_id, scope, idempotency_key }))
  return rowsOf(
    db,
    sql`with wanted as (select * from ${recordset('command_log', names)} x)
        select c.* from catalog.command_log c where command_id in (select command_id from wanted)
        union
        select c.* from catalog.command_log c join wanted w using (scope, idempotency_key)`,
  )
}

/** Releases the claims of refused commands. */
export const dropClaims = (tx: Tx, command_ids: readonly string[]) =>
  tx.execute(sql`delete from catalog.command_log where command_id = any(${array(command_ids, 'text')}::uuid[])`)

export type StoredAnswerRow = Pick<CommandLogRow, 'command_id' | 'resource_id'> & {
  status: number
  headers: Record<string, string>
  body: Buffer
}

/** Stores answers, along with the last writes of their commands. */
export const storeAnswers = async (
  tx: Tx,
  answers: readonly StoredAnswerRow[],
  writes: readonly Statement[],
): Promise<void> => {
  const [first, ...others] = answers
  if (first && others.length === 0) {
    const { command_id, ...answer } = first
    await inOne(updateRow(tx, command_log, { command_id }, answer), ...writes).execute()
    return
  }
  const rows = answers.map((row) => ({ ...row, body: hex(row.body) }))
  await tx.execute(
    sql`update catalog.command_log c
        set resource_id = x.resource_id, status = x.status, headers = x.headers, body = x.body
        from ${recordset('command_log', rows)} x where c.command_id = x.command_id`,
  )
}

const PRUNED_AT_ONCE = 5000

/**
 * When a table's rows expire. Answers: a later repeat is harmless, because its expected_version is outdated.
 * Observations: the latest one of each check stays.
 */
const ENDS = {
  command_log: 'retain_until',
  observation_history: 'observed_at',
  relationship_history: 'valid_to',
  provider_history: 'valid_to',
} as const

/** Deletes rows of a table that expired before a given time. Returns true if there may be more. */
export const pruneOld = async (db: Queryable, name: keyof typeof ENDS, before: string): Promise<boolean> => {
  const table = sql`catalog.${sql.identifier(name)}`
  const at = sql.identifier(ENDS[name])
  const { rowCount } = await db.execute(sql`delete from ${table} where ctid = any(array(
    select ctid from ${table} where ${at} < ${before}::timestamptz order by ${at} limit ${PRUNED_AT_ONCE}))`)
  return rowCount === PRUNED_AT_ONCE
}

const WALKED_AT_ONCE = 1000

/**
 * Deletes revisions of some resources, by row number, that no time from `before` onward needs: those older than the
 * newest snapshot at or before it. A few at a time, so that no statement takes long however much expired. Returns the
 * row number to continue after, the same if there may be more of these resources; `undefined` at the end.
 */
export const pruneRevisions = async (db: Queryable, before: string, after: string): Promise<string | undefined> => {
  const { rows } = await db.execute<{ rid: string }>(
    sql`select rid from catalog.resource where rid > ${after} order by rid limit ${WALKED_AT_ONCE}`,
  )
  const rids = rows.map(({ rid }) => rid)
  const { rowCount } = await db.execute(
    // By key: in a partitioned table, a ctid names one row of each partition.
    sql`delete from catalog.revision v using (
          select rid, version from unnest(${array(rids, 'bigint')}) as f(rid)
          cross join lateral (select max(version) as kept from catalog.revision
            where rid = f.rid and kind = 'snapshot' and at <= ${before}::timestamptz) newest
          join catalog.revision using (rid) where version < kept limit ${PRUNED_AT_ONCE}) old
        where v.rid = old.rid and v.version = old.version`,
  )
  if (rowCount === PRUNED_AT_ONCE) return after
  return rids.length === WALKED_AT_ONCE ? rids.at(-1) : undefined
}

export const saveRevision = (tx: Tx, row: typeof revision.$inferInsert) => insertRow(tx, revision, row)
export const saveOperationRef = (tx: Tx, row: typeof resource_operation.$inferInsert) =>
  insertRow(tx, resource_operation, row, 'on conflict do nothing')
type Evidence = typeof evidence_ref.$inferInsert
export const saveEvidence = (tx: Tx, rows: [Evidence, ...Evidence[]]) => insertRows(tx, evidence_ref, rows)
export const saveAudit = (tx: Tx, row: typeof audit.$inferInsert) => insertRow(tx, audit, row)
