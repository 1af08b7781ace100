import { sql } from 'drizzle-orm'
import { type Tx, together } from '../../client.ts'
import { edgeKey } from '../held/edges.ts'
import type { Held } from '../held/rows.ts'
import { hex, insertMany, insertTexts, recordset } from '../resources/batch.ts'
import type { ResourceRow } from '../rows.ts'
import { outbox, relationship, relationship_history, resource, resource_state } from '../tables.ts'

/**
 * Sends all that a transaction holds, one statement for each table and kind of write, in one round trip. What frees a
 * name or an edge comes before what takes it; events come last, in the order in which they were told (catalog.md 11).
 */
export const writeHeld = async (tx: Tx, { pending, loaded, edges }: Held): Promise<void> => {
  const rowOf = (rid: string) => loaded.rows.get(rid) as ResourceRow
  const fresh = [...pending.fresh].map(rowOf)
  const { inserts, moved, identity, imported } = pending
  const fixed = [...moved.fixed].map((rid) => ({
    ...columnsOf(FIXED, rowOf(rid)),
    rid,
    moves: moved.identity.has(rid),
    identity_hash: hashOf(identity.get(rid)),
  }))
  const told = inserts.get(outbox)
  await together(
    removeEdges(tx, [...edges.pending.gone.values()]),
    insertTexts(tx, relationship_history, HISTORY, edges.pending.history),
    updateFixed(tx, fixed),
    updateStates(
      tx,
      [...moved.state].map((rid) => ({ ...columnsOf(STATE, rowOf(rid)), rid })),
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
    reviseEdges(tx, edgesIn(edges.pending.open, edges.pending.revised)),
    insertMany(tx, relationship, edgesIn(edges.pending.open, edges.pending.added)),
    ...[...inserts.values()]
      .filter((one) => one !== told)
      .map(({ table, columns, rows }) => insertTexts(tx, table, columns, rows)),
    saveImported(tx, [...imported.values()]),
    ...(told ? [insertTexts(tx, told.table, told.columns, told.rows)] : []),
  )
}

const FIXED = ['type_version', 'display_name', 'owner', 'labels', 'annotations', 'desired_state', 'is_open'] as const
const NEW = [
  'rid',
  'resource_id',
  'type_id',
  'name',
  'parent_rid',
  'path',
  'created_at',
  'created_by',
  ...FIXED,
] as const
const STATE = [
  'version',
  'generation',
  'observed_generation',
  'lifecycle_status',
  'observed_state',
  'health_status',
  'health_reason',
  'health_expires_at',
  'health_revision',
  'capability_revision',
  'drift_status',
  'drift_paths',
  'lifecycle_at',
  'drift_at',
  'health_at',
  'last_operation_id',
  'last_command_id',
  'last_operation_at',
  'updated_at',
  'updated_by',
] as const
const EDGE = [
  'src',
  'reltype_id',
  'dst',
  'rev',
  'properties',
  'valid_from',
  'command_id',
  'operation_id',
  'rel_no',
] as const
const HISTORY = [...EDGE, 'valid_to']

const columnsOf = (names: readonly (keyof ResourceRow)[], row: ResourceRow) =>
  Object.fromEntries(names.map((name) => [name, row[name]]))
const hashOf = (hash: Buffer | null | undefined) => (hash ? hex(hash) : null)

const edgesIn = (open: Held['edges']['pending']['open'], keys: ReadonlySet<string>) =>
  [...keys].flatMap((key) => {
    const edge = open.get(key)
    return edge && edgeKey(edge) === key ? [Object.fromEntries(EDGE.map((name) => [name, edge[name]]))] : []
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
          owner text, labels jsonb, annotations jsonb, desired_state jsonb, is_open boolean, moves boolean,
          identity_hash bytea)
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
    sql`update catalog.relationship e set ${assignments(['rev', 'properties', 'valid_from', 'command_id', 'operation_id'])}
        from ${recordset('relationship', rows)} x where ${IS_EDGE}`,
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
