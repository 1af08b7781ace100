import { getTableName } from 'drizzle-orm'
import type { PgTable } from 'drizzle-orm/pg-core'
import { type Tx, together } from '../../client.ts'
import { insertRows, type Statement, updateRow } from '../../rows.ts'
import { edgeKey } from '../held/around.ts'
import type { Held } from '../held/rows.ts'
import { columnNames, hex, insertMany } from '../resources/batch.ts'
import type { ResourceRow } from '../rows.ts'
import {
  observation_latest,
  outbox,
  provider,
  provider_history,
  relationship,
  relationship_history,
  resource,
  resource_state,
} from '../tables.ts'
import {
  FIXED,
  moveRows,
  NEW,
  removeEdges,
  restateEdges,
  reviseEdges,
  STATE,
  saveImported,
  updateFixed,
  updateStates,
  upsert,
} from './statements.ts'

/**
 * The writes that a transaction holds, as statements that may be sent as one: the version of one existing resource.
 * `undefined`: there is more, and `writeHeld` sends it.
 */
export const writesOf = (tx: Tx, { pending, edges }: Held): Statement[] | undefined => {
  const { inserts, fixed, states, fresh, imported, moved, observed, offers } = pending
  const { history, added, revised, restated } = edges.pending
  const told = inserts.filter(({ table }) => table === outbox)
  const others = [fresh, imported, moved, added, revised, restated, observed, offers]
  if (history.length > 0 || others.some(({ size }) => size > 0)) return undefined
  if (states.size > 1 || fixed.size > 1 || told.length > 1) return undefined
  return [
    ...[...fixed].map(([rid, set]) => updateRow(tx, resource, { rid: BigInt(rid) }, set)),
    ...[...states].map(([rid, set]) => updateRow(tx, resource_state, { rid }, set)),
    ...inserts.map(({ table, rows }) => insertRows(tx, table, rows as [object, ...object[]])),
  ]
}

/**
 * Sends all writes that a transaction holds, one statement per table and kind of write, in one round trip. Writes that
 * free a name or an edge precede those that take it. Events come last, in the order in which they were emitted
 * (catalog.md 11).
 */
export const writeHeld = async (tx: Tx, { pending, loaded, edges }: Held): Promise<void> => {
  const rowOf = (rid: string) => loaded.rows.get(rid) as ResourceRow
  const fresh = [...pending.fresh].map(rowOf)
  const { inserts, identity, imported } = pending
  const fixed = [...pending.fixed].map(([rid, set]) => ({
    ...columnsOf(FIXED, rowOf(rid)),
    rid,
    moves: 'identity_hash' in set,
    identity_hash: hashOf(identity.get(rid)),
  }))
  const { [outboxName]: told, ...others } = rowsByTable(inserts)
  await together(
    removeEdges(tx, [...edges.pending.gone.values()]),
    insertMany(tx, relationship_history, edges.pending.history),
    moveRows(tx, [...pending.moved.values()]),
    updateFixed(tx, fixed),
    updateStates(
      tx,
      [...pending.states.keys()].map((rid) => ({ ...columnsOf(STATE, rowOf(rid)), rid })),
    ),
    insertMany(
      tx,
      resource,
      fresh.map((row) => ({ ...columnsOf(NEW, row), identity_hash: hashOf(identity.get(row.rid)) })),
    ),
    insertMany(
      tx,
      resource_state,
      fresh.map((row) => ({ ...columnsOf(STATE, row), rid: row.rid })),
    ),
    restateEdges(tx, [...edges.pending.restated.values()]),
    reviseEdges(tx, edgesIn(edges.pending.open, edges.pending.revised)),
    insertMany(tx, relationship, edgesIn(edges.pending.open, edges.pending.added)),
    ...Object.values(others).map((one) => insertMany(tx, one.table, one.rows)),
    saveImported(tx, [...imported.values()]),
    insertMany(
      tx,
      provider_history,
      pending.offer_history.map((row) => columnsOf(OFFER_BEFORE, row)),
    ),
    upsert(
      tx,
      provider,
      [...pending.offers.values()].map((row) => columnsOf(OFFER, row)),
    ),
    upsert(tx, observation_latest, [...pending.observed.values()]),
    ...(told ? [insertMany(tx, told.table, told.rows)] : []),
  )
}

const outboxName = getTableName(outbox)

const rowsByTable = (inserts: Held['pending']['inserts']) => {
  const tables: Record<string, { table: PgTable; rows: object[] }> = {}
  for (const { table, rows } of inserts) {
    const name = getTableName(table)
    tables[name] ??= { table, rows: [] }
    tables[name].rows.push(...rows)
  }
  return tables
}

const EDGE = columnNames(relationship)
const OFFER = columnNames(provider)
const OFFER_BEFORE = columnNames(provider_history)

const columnsOf = (names: readonly string[], row: object) =>
  Object.fromEntries(names.map((name) => [name, (row as Record<string, unknown>)[name]]))
const hashOf = (hash: Buffer | null | undefined) => (hash ? hex(hash) : null)

const edgesIn = (open: Held['edges']['pending']['open'], keys: ReadonlySet<string>) =>
  [...keys].flatMap((key) => {
    const edge = open.get(key)
    return edge && edgeKey(edge) === key ? [columnsOf(EDGE, edge)] : []
  })
