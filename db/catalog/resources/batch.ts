import { getTableName, sql } from 'drizzle-orm'
import { getTableConfig, type PgTable } from 'drizzle-orm/pg-core'
import type { Tx } from '../../client.ts'

/** Writes many rows with one statement per table, whatever their number (catalog.md 8, "Bulk"). */

/** The rows as one parameter, in the shape of their table. Rows and identity columns keep the given order. */
export const recordset = (table: string, rows: readonly object[]) =>
  sql`jsonb_populate_recordset(null::catalog.${sql.identifier(table)}, ${JSON.stringify(rows)}::jsonb)`

/** Inserts rows; a column that a row lacks is null there. */
export const insertMany = async (tx: Tx, table: PgTable, rows: readonly object[]): Promise<void> => {
  if (rows.length === 0) return
  const name = getTableName(table)
  const columns = sql.join(
    [...new Set(rows.flatMap((row) => Object.keys(row)))].map((column) => sql.identifier(column)),
    sql`, `,
  )
  await tx.execute(
    sql`insert into catalog.${sql.identifier(name)} (${columns}) overriding system value
        select ${columns} from ${recordset(name, rows)} x`,
  )
}

export const hex = (bytes: Buffer): string => `\\x${bytes.toString('hex')}`

/** The columns of a table except some; writes, reads and types are derived from them. */
export const columnNames = (table: PgTable, ...without: string[]): string[] =>
  getTableConfig(table).columns.flatMap(({ name }) => (without.includes(name) ? [] : [name]))
