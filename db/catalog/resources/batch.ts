import { getTableName, sql } from 'drizzle-orm'
import { getTableConfig, type PgTable } from 'drizzle-orm/pg-core'
import type { Tx } from '../../client.ts'

/** Writes of many rows: one statement for each table, whatever their number (catalog.md 8, "Bulk"). */

/** The rows as one parameter, in the shape of their table. They come out in their order, and so do identity columns. */
export const recordset = (table: string, rows: readonly object[]) =>
  sql`jsonb_populate_recordset(null::catalog.${sql.identifier(table)}, ${JSON.stringify(rows)}::jsonb)`

/** Inserts rows; a column that one of them lacks is null there. */
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

/** The columns of a table but for some: what is written, read and typed follows from there. */
export const columnNames = (table: PgTable, ...without: string[]): string[] =>
  getTableConfig(table).columns.flatMap(({ name }) => (without.includes(name) ? [] : [name]))
