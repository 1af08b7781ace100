import { getTableName, sql } from 'drizzle-orm'
import type { PgTable } from 'drizzle-orm/pg-core'
import type { Queryable, Tx } from '../../client.ts'
import type { ResourceRow } from '../rows.ts'
import type { command_log, resource_state } from '../tables.ts'
import type { CommandLogRow } from './commands.ts'
import { array, rowsOf } from './rows.ts'
import { OPEN_STAMP } from './stamps.ts'

/** Writes of a batch of commands: one statement for each table, whatever the number of commands (catalog.md 8, "Batch"). */

/** The rows as one parameter, in the shape of their table. They come out in their order, and so do identity columns. */
export const recordset = (table: string, rows: readonly object[]) =>
  sql`jsonb_populate_recordset(null::catalog.${sql.identifier(table)}, ${JSON.stringify(rows)}::jsonb)`

/** Inserts rows that all have the same columns. */
export const insertMany = async (tx: Tx, table: PgTable, rows: readonly object[]): Promise<void> => {
  const [first] = rows
  if (first) await insertTexts(tx, table, Object.keys(first), [rows.map((row) => JSON.stringify(row)).join()])
}

/** The same for rows that are JSON already; a column that one of them lacks is null there. */
export const insertTexts = async (
  tx: Tx,
  table: PgTable,
  names: Iterable<string>,
  rows: readonly string[],
): Promise<void> => {
  if (rows.length === 0) return
  const name = getTableName(table)
  const columns = sql.join(
    [...names].map((column) => sql.identifier(column)),
    sql`, `,
  )
  await tx.execute(
    sql`insert into catalog.${sql.identifier(name)} (${columns}) overriding system value
        select ${columns} from jsonb_populate_recordset(null::catalog.${sql.identifier(name)}, ${`[${rows.join()}]`}::jsonb) x`,
  )
}

export const hex = (bytes: Buffer): string => `\\x${bytes.toString('hex')}`

/** Takes the ids and keys of many commands, in the order of their ids; says which were free. Running twins make it wait. */
export const claimCommands = async (
  tx: Tx,
  rows: readonly (typeof command_log.$inferInsert)[],
): Promise<ReadonlySet<string>> => {
  const claims = rows.map((row) => ({ ...row, fingerprint: hex(row.fingerprint) }))
  const taken = await rowsOf<{ command_id: string }>(
    tx,
    sql`insert into catalog.command_log
          (command_id, scope, idempotency_key, fingerprint, created_at, retain_until)
        select command_id, scope, idempotency_key, fingerprint, created_at, retain_until
        from ${recordset('command_log', claims)} x order by command_id
        on conflict do nothing returning command_id, ${sql.raw(OPEN_STAMP)}`,
  )
  return new Set(taken.map(({ command_id }) => command_id))
}

/** The rows that hold one of these ids or keys. */
export const getCommands = (
  db: Queryable,
  commands: readonly Pick<CommandLogRow, 'command_id' | 'scope' | 'idempotency_key'>[],
): Promise<CommandLogRow[]> =>
  rowsOf(
    db,
    sql`select c.* from catalog.command_log c where command_id in (select command_id from ${recordset('command_log', commands)} x)
        union
        select c.* from catalog.command_log c join ${recordset('command_log', commands)} x using (scope, idempotency_key)`,
  )

/** Gives claims back whose commands were refused. */
export const dropClaims = async (tx: Tx, command_ids: readonly string[]): Promise<void> => {
  if (command_ids.length === 0) return
  await tx.execute(sql`delete from catalog.command_log where command_id = any(${array(command_ids, 'text')}::uuid[])`)
}

export type StoredAnswerRow = Pick<CommandLogRow, 'command_id' | 'resource_id' | 'status' | 'headers'> & {
  body: Buffer
}

export const storeAnswers = async (tx: Tx, answers: readonly StoredAnswerRow[]): Promise<void> => {
  if (answers.length === 0) return
  const rows = answers.map((row) => ({ ...row, body: hex(row.body) }))
  await tx.execute(
    sql`update catalog.command_log c
        set resource_id = x.resource_id, status = x.status, headers = x.headers, body = x.body
        from ${recordset('command_log', rows)} x where c.command_id = x.command_id`,
  )
}

export type NextState = Pick<
  typeof resource_state.$inferSelect,
  | 'rid'
  | 'version'
  | 'generation'
  | 'observed_generation'
  | 'observed_state'
  | 'drift_status'
  | 'drift_paths'
  | 'drift_at'
  | 'last_operation_id'
  | 'last_command_id'
  | 'last_operation_at'
  | 'updated_at'
  | 'updated_by'
>

/** States of many resources, without what a batch never moves: lifecycle and health. */
export const updateStates = async (tx: Tx, states: readonly NextState[]): Promise<void> => {
  if (states.length === 0) return
  await tx.execute(
    sql`update catalog.resource_state s
        set version = x.version, generation = x.generation, observed_generation = x.observed_generation,
            observed_state = x.observed_state, drift_status = x.drift_status, drift_paths = x.drift_paths,
            drift_at = x.drift_at, last_operation_id = x.last_operation_id, last_command_id = x.last_command_id,
            last_operation_at = x.last_operation_at, updated_at = x.updated_at, updated_by = x.updated_by
        from ${recordset('resource_state', states)} x where s.rid = x.rid`,
  )
}

export type NextFacts = Pick<ResourceRow, 'rid' | 'type_version' | 'desired_state'> & { identity_hash: Buffer | null }

/** What was decided for many resources: desired state, and with it the natural identity and the type's version. */
export const updateFacts = async (tx: Tx, facts: readonly NextFacts[]): Promise<void> => {
  if (facts.length === 0) return
  const rows = facts.map((row) => ({ ...row, identity_hash: row.identity_hash && hex(row.identity_hash) }))
  await tx.execute(
    sql`update catalog.resource r
        set type_version = x.type_version, desired_state = x.desired_state, identity_hash = x.identity_hash
        from ${recordset('resource', rows)} x where r.rid = x.rid`,
  )
}
