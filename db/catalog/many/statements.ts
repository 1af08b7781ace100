import { getTableName, sql } from 'drizzle-orm'
import type { PgTable } from 'drizzle-orm/pg-core'
import type { Tx } from '../../client.ts'
import { columnNames, recordset } from '../resources/batch.ts'
import { observation_latest, provider, resource, resource_state } from '../tables.ts'

export const FIXED = [
  'type_version',
  'display_name',
  'owner',
  'labels',
  'annotations',
  'desired_state',
  'field_owners',
  'is_open',
] as const
export const NEW = columnNames(resource, 'identity_hash')
export const STATE = columnNames(resource_state, 'rid')

const assignments = (names: readonly string[]) =>
  sql.join(
    names.map((name) => sql`${sql.identifier(name)} = x.${sql.identifier(name)}`),
    sql`, `,
  )

export const updateFixed = async (tx: Tx, rows: readonly object[]): Promise<void> => {
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

export const moveRows = async (tx: Tx, rows: readonly object[]): Promise<void> => {
  if (rows.length === 0) return
  await tx.execute(
    sql`update catalog.resource r set path = x.path, parent_rid = case when x.own then x.parent_rid else r.parent_rid end
        from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as x(rid bigint, path ltree, parent_rid bigint, own boolean)
        where r.rid = x.rid`,
  )
}

export const updateStates = async (tx: Tx, rows: readonly object[]): Promise<void> => {
  if (rows.length === 0) return
  await tx.execute(
    sql`update catalog.resource_state s set ${assignments(STATE)}
        from ${recordset('resource_state', rows)} x where s.rid = x.rid`,
  )
}

const IS_EDGE = sql`e.src = x.src and e.reltype_id = x.reltype_id and e.dst = x.dst`

export const removeEdges = async (tx: Tx, keys: readonly object[]): Promise<void> => {
  if (keys.length === 0) return
  await tx.execute(sql`delete from catalog.relationship e using ${recordset('relationship', keys)} x where ${IS_EDGE}`)
}

export const reviseEdges = async (tx: Tx, rows: readonly object[]): Promise<void> => {
  if (rows.length === 0) return
  await tx.execute(
    sql`update catalog.relationship e set ${assignments(['rev', 'properties', 'valid_from', 'command_id', 'operation_id', 'stated_by'])}
        from ${recordset('relationship', rows)} x where ${IS_EDGE}`,
  )
}

/** Merges with the current row: commands on both ends of an edge may state it at once. */
export const restateEdges = async (tx: Tx, rows: readonly object[]): Promise<void> => {
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
export const upsert = async (tx: Tx, table: PgTable, rows: readonly object[]): Promise<void> => {
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

export const saveImported = async (tx: Tx, rows: readonly object[]): Promise<void> => {
  if (rows.length === 0) return
  await tx.execute(
    sql`insert into catalog.import_ref (source_name, external_id, rid, last_seen_at)
        select source_name, external_id, rid, last_seen_at from ${recordset('import_ref', rows)} x
        on conflict (source_name, external_id) do update set rid = excluded.rid, last_seen_at = excluded.last_seen_at`,
  )
}
