import { type SQL, sql } from 'drizzle-orm'
import { first, type Queryable, type Tx } from '../../client.ts'
import { lockOfOne } from '../../locks.ts'
import { updateRow } from '../../rows.ts'
import { heldBy, heldOf, underlying } from '../held/rows.ts'
import type { Fixed, LockMode, ResourceRow } from '../rows.ts'
import { resource, resource_state } from '../tables.ts'
import { columnNames } from './batch.ts'
import { isBelow } from './paths.ts'

const STATES = ['annotations', 'desired_state', 'field_owners', 'observed_state']
/** The columns of ResourceRow over the tables r (resource), s (resource_state) and p (parent). */
const columnsWith = (stateOf: (name: string, column: string) => string): SQL => {
  const shown = (alias: string) => (name: string) => {
    const column = `${alias}.${name}`
    return STATES.includes(name) ? stateOf(name, column) : name === 'path' ? 'r.path::text as path' : column
  }
  const fixed = columnNames(resource, 'identity_hash').map(shown('r'))
  const state = columnNames(resource_state, 'rid').map(shown('s'))
  return sql.raw([...fixed, ...state, 'p.resource_id as parent_id'].join(', '))
}
export const resourceColumns = columnsWith((_, column) => column)
/** The same columns with empty annotations and states, for lists that do not show them: they make up most of a row. */
export const leanColumns = columnsWith((name) => `'{}'::jsonb as ${name}`)
export const resourceTables = sql`catalog.resource r join catalog.resource_state s on s.rid = r.rid
  left join catalog.resource p on p.rid = r.parent_rid`

export const rowsOf = async <T>(db: Queryable, query: SQL): Promise<T[]> => (await db.execute(query)).rows as T[]
/** The first row; `undefined` if there is none. */
export const rowOf = async <T>(db: Queryable, query: SQL): Promise<T | undefined> => first(await rowsOf<T>(db, query))

const ARRAYS = { text: sql`text[]`, bigint: sql`bigint[]`, smallint: sql`smallint[]` }

/** Any number of values as one array parameter. */
export const array = (values: readonly (string | number)[], type: keyof typeof ARRAYS): SQL =>
  sql`${sql.param([...values])}::${ARRAYS[type]}`

export const getResource = async (db: Queryable, resource_id: string): Promise<ResourceRow | undefined> => {
  const held = heldBy(db)
  if (held) return held.resourceOf(resource_id)
  return rowOf(db, sql`select ${resourceColumns} from ${resourceTables} where r.resource_id = ${resource_id}`)
}

/** Nonexistent ids are missing from the result. */
export const getResources = async (db: Queryable, resource_ids: readonly string[]): Promise<ResourceRow[]> => {
  if (resource_ids.length === 0) return []
  const held = heldBy(db)
  if (held) return held.resourcesOf(resource_ids)
  return rowsOf(
    db,
    sql`select ${resourceColumns} from ${resourceTables} where r.resource_id = any(${array(resource_ids, 'text')})`,
  )
}

export const getResourcesByRid = async (db: Queryable, rids: readonly string[]): Promise<ResourceRow[]> => {
  if (rids.length === 0) return []
  const held = heldBy(db)
  if (held) return held.rowsOf(rids)
  return rowsOf(db, sql`select ${resourceColumns} from ${resourceTables} where r.rid = any(${array(rids, 'bigint')})`)
}

/** Row numbers of ids; nonexistent ids are missing from the result. */
export const getRids = async (db: Queryable, resource_ids: readonly string[]): Promise<Map<string, string>> => {
  const rows = await rowsOf<{ rid: string; resource_id: string }>(
    db,
    sql`select rid, resource_id from catalog.resource where resource_id = any(${array(resource_ids, 'text')})`,
  )
  return new Map(rows.map(({ rid, resource_id }) => [resource_id, rid]))
}

export const getFixed = async (db: Queryable, rids: readonly string[]): Promise<Fixed[]> => {
  const known = heldBy(db)?.fixedOf(rids) ?? []
  const rest = rids.filter((rid) => !known.some((row) => row.rid === rid))
  if (rest.length === 0) return known
  const read = rowsOf<Fixed>(
    heldBy(db) ? underlying(db as Tx) : db,
    sql`select rid, resource_id, type_id from catalog.resource where rid = any(${array(rest, 'bigint')})`,
  )
  return [...known, ...(await read)]
}

const STRENGTH: LockMode[] = ['key share', 'no key update', 'update']

/** Keeps the stronger of two lock modes for one row. */
export const wishLock = (locks: Map<string, LockMode>, rid: string, mode: LockMode): void => {
  const known = locks.get(rid)
  if (!known || STRENGTH.indexOf(mode) > STRENGTH.indexOf(known)) locks.set(rid, mode)
}

const forLock = { 'key share': sql`key share`, 'no key update': sql`no key update`, update: sql`update` }

/**
 * Locks state rows in the order of their row numbers, each in its own mode (catalog.md 3). A hub thus accepts new edges
 * during an update, but cannot be retired while it gains a child.
 */
export const lockStates = async (tx: Tx, locks: ReadonlyMap<string, LockMode>): Promise<void> => {
  const held = heldBy(tx)
  if (held) return held.checkLocks(locks)
  const ordered = [...locks].sort(([a], [b]) => (BigInt(a) < BigInt(b) ? -1 : 1))
  for (let at = 0; at < ordered.length; ) {
    const mode = (ordered[at] as [string, LockMode])[1]
    let end = at
    while (end < ordered.length && ordered[end]?.[1] === mode) end += 1
    const rids = ordered.slice(at, end).map(([rid]) => rid)
    await tx.execute(
      sql`select 1 from catalog.resource_state where rid = any(${array(rids, 'bigint')}) order by rid for ${forLock[mode]}`,
    )
    at = end
  }
}

/** Whether the asking transaction has claimed this command: the claims of others already have their answer. */
const claimedBy = (command_id: string) =>
  sql`exists (select from catalog.command_log where command_id = ${command_id} and status is null)`

/**
 * Locks one resource for a change to it alone, and reads it; with `command_id`, only if claimed here. After waiting for
 * the lock, the state is the newest but other columns may be older: the version shows this, and the row is reread.
 */
export const lockAndGet = async (
  tx: Tx,
  resource_id: string,
  command_id?: string,
): Promise<ResourceRow | undefined> => {
  const held = heldBy(tx)
  if (held) return held.lockedRow(resource_id)
  const [found] = await rowsOf<ResourceRow & { fresh: boolean }>(
    tx,
    sql`select ${resourceColumns}, s.version = (select version from catalog.resource_state where rid = r.rid) as fresh
        from ${resourceTables} where r.resource_id = ${resource_id}
          ${command_id === undefined ? sql`` : sql`and ${claimedBy(command_id)}`}
        for no key update of s`,
  )
  if (!found) return undefined
  const { fresh, ...row } = found
  return fresh ? row : getResource(tx, resource_id)
}

/** Like `lockAndGet` for many resources, locked in row number order. Nonexistent ids are missing from the result. */
export const lockAndGetAll = async (tx: Tx, resource_ids: readonly string[]): Promise<ResourceRow[]> => {
  if (resource_ids.length === 0) return []
  const ids = array(resource_ids, 'text')
  const lock = rowsOf(
    tx,
    sql`select from catalog.resource_state
        where rid = any(array(select rid from catalog.resource where resource_id = any(${ids})))
        order by rid for no key update`,
  )
  const rows = rowsOf<ResourceRow>(
    tx,
    sql`select ${resourceColumns} from ${resourceTables} where r.resource_id = any(${ids})`,
  )
  return (await Promise.all([lock, rows]))[1]
}

/** Locks acyclic relationship types: shared for a new resource's edge, exclusive to change an existing resource's. */
export const lockRelationshipTypes = async (
  tx: Tx,
  wishes: ReadonlyMap<number, 'shared' | 'exclusive'>,
): Promise<void> => {
  const held = heldBy(tx)
  if (held) return held.checkTypeLocks(wishes)
  for (const [id, mode] of [...wishes].sort(([a], [b]) => a - b)) {
    await tx.execute(sql`select ${lockOfOne('relationshipType', sql`${id}`, mode)}`)
  }
}

/** Writes the given columns. Only moveSubtree changes the place in the tree, since a concurrent command may move it. */
export const updateResource = (
  tx: Tx,
  rid: string,
  set: Partial<Omit<typeof resource.$inferInsert, 'rid' | 'path' | 'parent_rid'>>,
) => updateRow(tx, resource, { rid: BigInt(rid) }, set)

export const updateState = (tx: Tx, rid: string, set: Partial<Omit<typeof resource_state.$inferInsert, 'rid'>>) =>
  updateRow(tx, resource_state, { rid }, set)

/** A resource and everything below it, at most `limit`, in their current places. */
export const getSubtree = async (tx: Tx, { path }: Pick<ResourceRow, 'path'>, limit: number) => {
  const held = heldOf(tx)
  const rows = await rowsOf<Fixed & { path: string }>(
    underlying(tx),
    sql`select rid, resource_id, type_id, path::text as path from catalog.resource
        where ${isBelow(sql`path`, sql`${path}::ltree`)} limit ${limit}`,
  )
  // The database does not know the moves of this transaction yet.
  return [...rows.filter(({ rid }) => !held.pending.moved.has(rid)), ...held.placedBelow(path)]
}
