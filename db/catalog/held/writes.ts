import { getTableName } from 'drizzle-orm'
import type { PgTable } from 'drizzle-orm/pg-core'
import { resource, resource_state } from '../tables.ts'
import type { Journal } from './journal.ts'

type Set_ = Record<string, unknown>

/** Writes of a transaction that are sent later together: rows to insert, and changed columns of existing rows. */
export const createWrites = (journal: Journal) => {
  /** In the order of the calls. */
  const inserts: { table: PgTable; rows: readonly object[] }[] = []
  const fixed = new Map<string, Set_>()
  const states = new Map<string, Set_>()
  const add = (into: Map<string, Set_>, rid: string, set: Set_) => journal.put(into, rid, { ...into.get(rid), ...set })
  return {
    inserts,
    fixed,
    states,
    insert: (table: PgTable, rows: readonly object[]): void => journal.push(inserts, { table, rows }),
    /** Records the changed columns of an existing row. */
    update: (table: PgTable, rid: string, set: object): void => {
      if (table === resource) add(fixed, rid, set as Set_)
      else if (table === resource_state) add(states, rid, set as Set_)
      else throw new Error(`${getTableName(table)} is not held`)
    },
  }
}
