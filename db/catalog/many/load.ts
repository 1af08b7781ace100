import { sql } from 'drizzle-orm'
import { pluck } from '../../../apps/shared/data/pick.ts'
import type { Tx } from '../../client.ts'
import { readChecksOf } from '../health.ts'
import { countKey, edgeKey, outKey } from '../held/around.ts'
import type { HeldEdge } from '../held/edges.ts'
import type { Counted, Missing, NewName } from '../held/missing.ts'
import { identityKey, nameKey } from '../held/names.ts'
import type { Held } from '../held/rows.ts'
import { heldOffersOf } from '../providers.ts'
import { MAX_EDGES } from '../relationships/rows.ts'
import {
  array,
  getResources,
  getResourcesByRid,
  lockRelationshipTypes,
  lockStates,
  rowsOf,
  wishLock,
} from '../resources/rows.ts'
import type { EdgeKey, Fixed, ResourceRow } from '../rows.ts'

/** Reads the data of many changes, one statement per kind. Rows already held stay: changes may have altered them. */

/** Reads the data that a change found missing. Rows that had to be locked first are read again. */
export const loadMissing = async (tx: Tx, held: Held, missing: Missing): Promise<void> => {
  const { ids = [], rids = [], edges = [], around = [], counts = [], reach = [], twins = [] } = missing
  const { checks = [], offers = [], locks = new Map(), type_locks = new Map() } = missing
  await lockRelationshipTypes(tx, type_locks)
  for (const [id, mode] of type_locks) held.loaded.type_locks.set(id, mode)
  await lockStates(tx, locks)
  for (const [rid, mode] of locks) {
    wishLock(held.loaded.locks, rid, mode)
    held.edges.forget(rid)
    held.offers.forget(rid)
  }
  const { states, fixed, moved } = held.pending
  for (const row of await getResourcesByRid(tx, [...locks.keys()])) {
    const known = held.loaded.rows.get(row.rid)
    // Rows written by an earlier change of this transaction stay.
    if (states.has(row.rid) || fixed.has(row.rid)) continue
    const place = known && { path: known.path, parent_rid: known.parent_rid, parent_id: known.parent_id }
    keep(held, moved.has(row.rid) ? { ...row, ...place } : row)
  }
  await Promise.all([
    ids.length + rids.length > 0 && loadRows(tx, held, ids, rids),
    loadEdges(tx, held, edges),
    loadAround(tx, held, around, MAX_AROUND),
    loadCounts(tx, held, counts),
    loadReach(tx, held, reach),
    loadChecks(tx, held, checks),
    loadOffers(tx, held, offers),
    loadTwins(tx, held, twins),
    missing.numbers && loadNumbers(tx, held, missing.numbers),
  ])
}

/** A request never closes more edges of one resource than this: reading this many is enough to refuse. */
const MAX_AROUND = 50_001

/** Resources by id; nonexistent ones are recorded as missing. */
export const loadRows = async (tx: Tx, held: Held, ids: readonly string[], rids: readonly string[] = []) => {
  const [named, others] = await Promise.all([getResources(tx, ids), getResourcesByRid(tx, rids)])
  const { rows, byId } = held.loaded
  for (const id of ids) if (!byId.has(id)) byId.set(id, undefined)
  for (const row of [...named, ...others]) if (!rows.has(row.rid)) keep(held, row)
}

/** The immutable columns of resources by id: they determine the locks, and the rows are read in full afterwards. */
export const loadFixed = async (tx: Tx, held: Held, ids: readonly string[]): Promise<void> => {
  for (const id of ids) held.loaded.byId.set(id, undefined)
  const rows = await rowsOf<Fixed>(
    tx,
    sql`select rid, resource_id, type_id from catalog.resource where resource_id = any(${array(ids, 'text')})`,
  )
  for (const row of rows) keep(held, row as ResourceRow)
}

export const keep = ({ loaded }: Held, row: ResourceRow): void => {
  loaded.rows.set(row.rid, row)
  loaded.byId.set(row.resource_id, row.rid)
}

/** The current holders of these names and natural identities. */
export const loadTwins = async (tx: Tx, held: Held, wanted: readonly NewName[]): Promise<void> => {
  if (wanted.length === 0) return
  const hashes = wanted.flatMap(({ type_id, identity_hash }) => (identity_hash ? [{ type_id, identity_hash }] : []))
  const [named, identical] = await Promise.all([
    rowsOf<{ rid: string; type_id: number; parent_rid: string | null; name: string }>(
      tx,
      sql`select r.rid, r.type_id, r.parent_rid, r.name
          from jsonb_to_recordset(${JSON.stringify(wanted.map(({ type_id, parent_rid, name }) => ({ type_id, parent_rid, name })))}::jsonb)
            as w(type_id smallint, parent_rid bigint, name text)
          join catalog.resource r on r.is_open and r.type_id = w.type_id and r.name = w.name
            and r.parent_rid is not distinct from w.parent_rid`,
    ),
    hashes.length === 0
      ? []
      : rowsOf<{ rid: string; type_id: number; hash: string }>(
          tx,
          sql`select r.rid, r.type_id, encode(r.identity_hash, 'hex') as hash
              from unnest(${array(pluck(hashes, 'type_id'), 'smallint')}, ${array(
                hashes.map(({ identity_hash }) => identity_hash.toString('hex')),
                'text',
              )}) as w(type_id, hash)
              join catalog.resource r on r.is_open and r.type_id = w.type_id and r.identity_hash = decode(w.hash, 'hex')`,
        ),
  ])
  const { names, identities, rows } = held.loaded
  // A resource that an earlier change ended or moved holds neither.
  const there = new Map(named.flatMap((row) => (stands(held, row) ? [[nameOf(row), row.rid]] : [])))
  const same = new Map(
    identical.flatMap(({ rid, type_id, hash }) =>
      rows.get(rid)?.is_open === false ? [] : [[identityKey(type_id, Buffer.from(hash, 'hex')), rid]],
    ),
  )
  for (const one of wanted) if (!names.has(nameOf(one))) names.set(nameOf(one), there.get(nameOf(one)))
  for (const { type_id, identity_hash } of hashes) {
    const key = identityKey(type_id, identity_hash)
    if (!identities.has(key)) identities.set(key, same.get(key))
  }
  const unknown = [...named, ...identical].map(({ rid }) => rid).filter((rid) => !rows.has(rid))
  for (const row of await getResourcesByRid(tx, unknown)) keep(held, row)
}

type Named = Pick<NewName, 'type_id' | 'parent_rid' | 'name'>
const nameOf = ({ type_id, parent_rid, name }: Named) => nameKey(type_id, parent_rid, name)
const stands = ({ loaded }: Held, { rid, parent_rid }: Named & { rid: string }): boolean => {
  const row = loaded.rows.get(rid)
  return !row || (row.is_open && row.parent_rid === parent_rid)
}

const columns = sql`e.src, e.reltype_id, e.dst, e.rel_no, e.rev, e.properties, e.valid_from, e.command_id, e.operation_id, e.stated_by`

/** Those of these edges that are open. */
export const loadEdges = async (tx: Tx, held: Held, keys: readonly EdgeKey[]): Promise<void> => {
  if (keys.length === 0) return
  const rows = await rowsOf<HeldEdge>(
    tx,
    sql`select ${columns} from jsonb_to_recordset(${JSON.stringify(keys)}::jsonb) as w(src bigint, reltype_id smallint, dst bigint)
        join catalog.relationship e using (src, reltype_id, dst)`,
  )
  const { open } = held.edges.loaded
  const found = new Map(rows.map((row) => [edgeKey(row), row]))
  for (const key of keys) if (!open.has(edgeKey(key))) open.set(edgeKey(key), found.get(edgeKey(key)))
}

/** All edges around these resources, unless there are more than `limit`. */
export const loadAround = async (tx: Tx, held: Held, rids: readonly string[], limit: number): Promise<void> => {
  if (rids.length === 0) return
  const these = array(rids, 'bigint')
  const [wanted, counted] = [new Set(rids), new Set<string>()]
  const rows = await rowsOf<HeldEdge & { from_id: string | null; to_id: string | null }>(
    tx,
    sql`select ${columns}, (select resource_id from catalog.resource where rid = e.src) as from_id,
          (select resource_id from catalog.resource where rid = e.dst) as to_id
        from (select * from catalog.relationship where src = any(${these})
              union all select * from catalog.relationship where dst = any(${these}) and src <> all(${these})
              limit ${limit + 1}) e`,
  )
  const { open, around, ids, counts } = held.edges.loaded
  for (const { from_id, to_id, ...edge } of rows) {
    if (!open.has(edgeKey(edge))) open.set(edgeKey(edge), edge)
    if (from_id !== null) ids.set(edge.src, from_id)
    if (to_id !== null) ids.set(edge.dst, to_id)
  }
  // Above the limit the edges count as unknown, except at `MAX_AROUND`, where the first ones suffice.
  if (rows.length > limit && limit < MAX_AROUND) return
  for (const rid of rids) around.set(rid, new Set())
  for (const [key, edge] of open) {
    for (const end of ['src', 'dst'] as const) {
      const known = edge && around.get(edge[end])
      if (!known || known.has(key)) continue
      known.add(key)
      const name = countKey(end, edge.reltype_id, edge[end])
      if (wanted.has(edge[end])) counts.set(name, (counted.has(name) ? (counts.get(name) ?? 0) : 0) + 1)
      counted.add(name)
    }
  }
}

/** Ends with many edges, as counted before: how many, and the last number given to an edge then. */
const counted = new Map<string, { n: number; drawn: string }>()
const MANY = 1000
const MAX_KNOWN = 10_000
/** Far more than edges in flight: their numbers were given, but they were not counted. */
const IN_FLIGHT = 10_000

/**
 * The number of open edges of a type at these ends, up to the maximum that matters. An end gains at most as many edges
 * as numbers were given since it was counted, so a hub is rarely counted again: 100,000 edges take 18 ms.
 */
export const loadCounts = async (tx: Tx, held: Held, wanted: readonly Counted[]): Promise<void> => {
  if (wanted.length === 0) return
  const keyOf = ({ rid, reltype_id, end }: Counted) => countKey(end, reltype_id, rid)
  const asked = wanted.map((one) => (one.exact ? one : { ...one, ...counted.get(keyOf(one)) }))
  const count = (end: 'src' | 'dst') =>
    sql`(select count(*) from (select from catalog.relationship e
      where e.${sql.identifier(end)} = w.rid and e.reltype_id = w.reltype_id limit ${MAX_EDGES}) x)`
  const rows = await rowsOf<Counted & { n: number; drawn: string; is_rough: boolean }>(
    tx,
    sql`select w.rid, w.reltype_id, w."end", s.drawn::text as drawn, f.is_rough,
          (case when f.is_rough then w.n when w."end" = 'src' then ${count('src')} else ${count('dst')} end)::int as n
        from jsonb_to_recordset(${JSON.stringify(asked)}::jsonb)
            as w(rid bigint, reltype_id smallint, "end" text, n bigint, drawn bigint)
          cross join coalesce(pg_sequence_last_value('catalog.relationship_rel_no_seq'), 0) s(drawn)
          cross join lateral (select coalesce(w.n + s.drawn - w.drawn < ${MAX_EDGES - IN_FLIGHT}, false) as is_rough) f`,
  )
  const { around, counts, rough } = held.edges.loaded
  for (const { n, drawn, is_rough, ...one } of rows) {
    const key = keyOf(one)
    if (!is_rough) remember(key, { n, drawn })
    if (around.has(one.rid) || (counts.has(key) && (is_rough || !rough.has(key)))) continue
    counts.set(key, n + held.edges.gained(one))
    rough[is_rough ? 'add' : 'delete'](key)
  }
}

const remember = (key: string, count: { n: number; drawn: string }): void => {
  counted.delete(key)
  if (count.n > MANY) counted.set(key, count)
  const [oldest] = counted.keys()
  if (counted.size > MAX_KNOWN && oldest !== undefined) counted.delete(oldest)
}

/** The edges reachable from these resources along these types, for cycle detection. */
export const loadReach = async (
  tx: Tx,
  held: Held,
  starts: readonly { rid: string; reltype_id: number }[],
  limit?: number,
): Promise<void> => {
  if (starts.length === 0) return
  const rows = await rowsOf<{ rid: string; reltype_id: number; dst: string | null }>(
    tx,
    sql`with recursive way(rid, reltype_id) as (
          select w.rid, w.reltype_id from jsonb_to_recordset(${JSON.stringify(starts)}::jsonb) as w(rid bigint, reltype_id smallint)
          union
          select e.dst, way.reltype_id from way join catalog.relationship e on e.src = way.rid and e.reltype_id = way.reltype_id)
        select way.rid, way.reltype_id, e.dst from way
        left join catalog.relationship e on e.src = way.rid and e.reltype_id = way.reltype_id
        limit ${limit === undefined ? null : limit + 1}`,
  )
  if (limit !== undefined && rows.length > limit) return
  const { outs } = held.edges.loaded
  for (const [key, all] of Map.groupBy(rows, ({ rid, reltype_id }) => outKey(reltype_id, rid))) {
    const known = new Set(all.flatMap(({ dst }) => dst ?? []))
    for (const { key: edge, by } of held.edges.changed())
      if (outKey(edge.reltype_id, edge.src) === key) known[by === 1 ? 'add' : 'delete'](edge.dst)
    if (!outs.has(key)) outs.set(key, known)
  }
}

/** The latest observations of these resources' checks. */
export const loadChecks = async (tx: Tx, { loaded }: Held, rids: readonly string[]): Promise<void> => {
  const found = Map.groupBy(await readChecksOf(tx, rids), ({ rid }) => rid)
  for (const rid of rids) if (!loaded.checks.has(rid)) loaded.checks.set(rid, found.get(rid) ?? [])
}

/** The offers of these resources, and the claims on them. */
export const loadOffers = async (tx: Tx, { loaded }: Held, rids: readonly string[]): Promise<void> => {
  const unknown = rids.filter((rid) => !loaded.offers.has(rid))
  if (unknown.length === 0) return
  const rows = await heldOffersOf(tx, unknown)
  for (const { provider_id, reserved, claims } of rows) loaded.claims.set(provider_id, { reserved, claims })
  const found = Map.groupBy(rows, ({ rid }) => rid)
  for (const rid of unknown) loaded.offers.set(rid, found.get(rid) ?? [])
}

/** Numbers for this many new resources and edges; unused ones are lost. */
export const loadNumbers = async (tx: Tx, held: Held, { rows, edges }: { rows: number; edges: number }) => {
  const draw = async (sequence: string, count: number) =>
    count === 0
      ? []
      : (await rowsOf<{ n: string }>(tx, sql`select nextval(${sequence}) as n from generate_series(1, ${count})`)).map(
          ({ n }) => n,
        )
  const [rids, rel_nos] = await Promise.all([
    draw('catalog.resource_rid_seq', rows),
    draw('catalog.relationship_rel_no_seq', edges),
  ])
  // Reversed because they are taken from the end, lowest first.
  held.loaded.rids.push(...rids.reverse())
  held.edges.loaded.rel_nos.push(...rel_nos.reverse())
}
