import { getTableName, sql } from 'drizzle-orm'
import type { PgTable } from 'drizzle-orm/pg-core'
import { type Tx, together } from '../../client.ts'
import { insertRows, type Statement, updateRow } from '../../rows.ts'
import { edgeKey } from '../held/around.ts'
import type { Held } from '../held/rows.ts'
import { columnNames, hex, insertMany, recordset } from '../resources/batch.ts'
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

const FIXED = [
  'type_version',
  'display_name',
  'owner',
  'labels',
  'annotations',
  'desired_state',
  'field_owners',
  'is_open',
] as const
const NEW = columnNames(resource, 'identity_hash')
const STATE = columnNames(resource_state, 'rid')
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

const assignments = (names: readonly string[]) =>
  sql.join(
    names.map((name) => sql`${sql.identifier(name)} = x.${sql.identifier(name)}`),
    sql`, `,
  )

const updateFixed = async (tx: Tx, rows: readonly object[]): Promise<void> => {
  if (rows.length === 0) return
  await tx.execute(
    sql`update catalog.resource r set ${assignments(FIXED)},
          identity_hash = case when x.moves then x.identity_hash else r.identity_hash end
        from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as x(rid bigint, type_version integer, display_name text,
          owner text, labels jsonb, annotations jsonb, desired_state jsonb, field_owners jsonb, is_open boolean, moves boolean,
          identity_hash bytea)
        where r.rid = x.rid`,
  )
}

const moveRows = async (tx: Tx, rows: readonly object[]): Promise<void> => {
  if (rows.length === 0) return
  await tx.execute(
    sql`update catalog.resource r set path = x.path, parent_rid = case when x.own then x.parent_rid else r.parent_rid end
        from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as x(rid bigint, path ltree, parent_rid bigint, own boolean)
        where r.rid = x.rid`,
  )
}

const updateStates = async (tx: Tx, rows: readonly object[]): Promise<void> => {
  if (rows.length === 0) return
  await tx.execute(
    sql`update catalog.resource_state s set ${assignments(STATE)}
        from ${recordset('resource_state', rows)} x where s.rid = x.rid`,
  )
}

const IS_EDGE = sql`e.src = x.src and e.reltype_id = x.reltype_id and e.dst = x.dst`

const removeEdges = async (tx: Tx, keys: readonly object[]): Promise<void> => {
  if (keys.length === 0) return
  await tx.execute(sql`delete from catalog.relationship e using ${recordset('relationship', keys)} x where ${IS_EDGE}`)
}

const reviseEdges = async (tx: Tx, rows: readonly object[]): Promise<void> => {
  if (rows.length === 0) return
  await tx.execute(
    sql`update catalog.relationship e set ${assignments(['rev', 'properties', 'valid_from', 'command_id', 'operation_id', 'stated_by'])}
        from ${recordset('relationship', rows)} x where ${IS_EDGE}`,
  )
}

/** Merges with the current row: commands on both ends of an edge may state it at once. */
const restateEdges = async (tx: Tx, rows: readonly object[]): Promise<void> => {
  if (rows.length === 0) return
  await tx.execute(
    sql`update catalog.relationship e set stated_by = nullif(array_to_string(array(
          select distinct s collate "C" from unnest(string_to_array(e.stated_by, E'\\n') || x.more) s
          where s <> all(x.less) order by 1), E'\\n'), '')
        from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb)
          as x(src bigint, reltype_id smallint, dst bigint, more text[], less text[]) where ${IS_EDGE}`,
  )
}

const KEYS = new Map<PgTable, string[]>([
  [provider, ['provider_id']],
  [observation_latest, ['rid', 'source', 'check_key']],
])

/** Inserts rows or, if they exist, sets all their columns. A row that frees a place precedes one that takes it. */
const upsert = async (tx: Tx, table: PgTable, rows: readonly object[]): Promise<void> => {
  if (rows.length === 0) return
  const names = (list: readonly string[]) =>
    sql.join(
      list.map((name) => sql.identifier(name)),
      sql`, `,
    )
  const [name, all, keys] = [getTableName(table), columnNames(table), KEYS.get(table) ?? []]
  await tx.execute(
    sql`insert into catalog.${sql.identifier(name)} (${names(all)}) select ${names(all)} from ${recordset(name, rows)} x
        on conflict (${names(keys)}) do update set (${names(all)}) = row(${sql.join(
          all.map((column) => sql`excluded.${sql.identifier(column)}`),
          sql`, `,
        )})`,
  )
}

const saveImported = async (tx: Tx, rows: readonly object[]): Promise<void> => {
  if (rows.length === 0) return
  await tx.execute(
    sql`insert into catalog.import_ref (source_name, external_id, rid, last_seen_at)
        select source_name, external_id, rid, last_seen_at from ${recordset('import_ref', rows)} x
        on conflict (source_name, external_id) do update set rid = excluded.rid, last_seen_at = excluded.last_seen_at`,
  )
}
