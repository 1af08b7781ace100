import { getTableName } from 'drizzle-orm'
import type { PgTable } from 'drizzle-orm/pg-core'
import type { Queryable, Tx } from '../../client.ts'
import type { Keeper } from '../../rows.ts'
import type { Fixed, LockMode, NewResource, ObservationRow, ResourceRow } from '../rows.ts'
import { resource, resource_state } from '../tables.ts'
import type { HeldEdges } from './edges.ts'
import { createJournal, type Journal, Unheld } from './journal.ts'

export type NewState = Record<string, unknown>
type Twin = { rid: string; resource_id: string; what: 'resource_id' | 'name' | 'identity' }
type Wanted = {
  resource_id: string
  type_id: number | null
  parent_rid: string | null
  name: string
  identity_hash: Buffer | null
}

const STRENGTH: Record<LockMode, number> = { 'key share': 0, 'no key update': 1, update: 2 }
export const nameKey = (type_id: number, parent_rid: string | null, name: string) => `${type_id} ${parent_rid} ${name}`
export const identityKey = (type_id: number, hash: Buffer) => `${type_id} ${hash.toString('hex')}`

/**
 * Rows that one transaction has locked and read for many changes. The queries that a change asks are answered from here
 * and its writes are kept here, so that `many/write.ts` sends them as one statement for each table. What is not held
 * throws `Unheld`: that change is then made in the database by itself.
 */
export type Held = ReturnType<typeof createHeld>
/** A transaction whose rows are held. Its other statements are refused with `Unheld`. */
export type HeldTx = Tx & { held: Held; keeper: Keeper }

export const heldBy = (db: Queryable): Held | undefined => (db as Partial<HeldTx>).held

const refuse = () => {
  throw new Unheld()
}

export const heldTx = (tx: Tx, held: Held): Tx =>
  Object.create(tx, {
    held: { value: held },
    keeper: { value: held.keeper },
    ...Object.fromEntries(
      ['execute', 'select', 'insert', 'update', 'delete', 'transaction'].map((name) => [name, { value: refuse }]),
    ),
  }) as Tx

/** Rows of one table to insert, as JSON, with every column that one of them has. */
export type Inserts = { table: PgTable; columns: Set<string>; rows: string[] }

const createInserts = (journal: Journal) => {
  const pending = new Map<PgTable, Inserts>()
  return {
    pending,
    insert: (table: PgTable, rows: readonly object[]): void => {
      const into = pending.get(table) ?? { table, columns: new Set(), rows: [] }
      pending.set(table, into)
      for (const row of rows) {
        for (const column of Object.keys(row)) into.columns.add(column)
        journal.push(into.rows, JSON.stringify(row))
      }
    },
  }
}

export const createHeld = (edgesOf: (held: { journal: Journal; fresh: Set<string> }) => HeldEdges) => {
  const journal = createJournal()
  const inserts = createInserts(journal)
  const rows = new Map<string, ResourceRow>()
  /** Row numbers by id; undefined: there is no such resource. */
  const byId = new Map<string, string | undefined>()
  const fresh = new Set<string>()
  const identity = new Map<string, Buffer | null>()
  const names = new Map<string, string | undefined>()
  const identities = new Map<string, string | undefined>()
  const moved = { fixed: new Set<string>(), state: new Set<string>(), identity: new Set<string>() }
  const locks = new Map<string, LockMode>()
  const type_locks = new Map<number, 'shared' | 'exclusive'>()
  const checks = new Map<string, ObservationRow[]>()
  /** Resources that offer nothing. */
  const offerless = new Set<string>()
  const rids: string[] = []
  const imported = new Map<string, object>()

  const rowOf = (rid: string): ResourceRow => {
    const row = rows.get(rid)
    if (!row) throw new Unheld()
    return row
  }
  const ridOf = (resource_id: string): string | undefined => {
    if (!byId.has(resource_id)) throw new Unheld()
    return byId.get(resource_id)
  }
  const isLocked = (rid: string, mode: LockMode): boolean => {
    const known = locks.get(rid)
    return fresh.has(rid) || (known !== undefined && STRENGTH[known] >= STRENGTH[mode])
  }
  const known = (map: Map<string, string | undefined>, key: string, is_known: boolean): string | undefined => {
    if (!is_known && !map.has(key)) throw new Unheld()
    return map.get(key)
  }

  const resourceOf = (resource_id: string): ResourceRow | undefined => {
    const rid = ridOf(resource_id)
    return rid === undefined ? undefined : rowOf(rid)
  }

  const findTwin = ({ resource_id, type_id, parent_rid, name, identity_hash }: Wanted): Twin | undefined => {
    const same = resource_id === '' ? undefined : ridOf(resource_id)
    if (same !== undefined) return { rid: same, resource_id, what: 'resource_id' }
    if (type_id === null) return undefined
    const identical = identity_hash ? known(identities, identityKey(type_id, identity_hash), false) : undefined
    if (identical !== undefined) return { rid: identical, resource_id: rowOf(identical).resource_id, what: 'identity' }
    const in_new = parent_rid !== null && fresh.has(parent_rid)
    const namesake = known(names, nameKey(type_id, parent_rid, name), in_new)
    return namesake === undefined
      ? undefined
      : { rid: namesake, resource_id: rowOf(namesake).resource_id, what: 'name' }
  }

  const insertResource = ({ rid, ...given }: NewResource, state: Record<string, unknown>): void => {
    const { identity_hash = null, ...fixed } = given
    const parent = given.parent_rid ? rowOf(given.parent_rid) : undefined
    const row = {
      ...NEW_STATE,
      ...state,
      ...fixed,
      rid,
      is_open: true,
      parent_rid: given.parent_rid ?? null,
      parent_id: parent?.resource_id ?? null,
    } as unknown as ResourceRow
    journal.put(rows, rid, row)
    journal.put(byId, row.resource_id, rid)
    journal.put(identity, rid, identity_hash)
    journal.put(names, nameKey(row.type_id, row.parent_rid, row.name), rid)
    if (identity_hash) journal.put(identities, identityKey(row.type_id, identity_hash), rid)
    journal.add(fresh, rid)
    edges.begin(rid)
  }

  const leaveNames = (row: ResourceRow): void => {
    const key = nameKey(row.type_id, row.parent_rid, row.name)
    if (names.get(key) === row.rid) journal.put(names, key, undefined)
    leaveIdentity(row.rid)
  }
  const leaveIdentity = (rid: string): void => {
    for (const [key, holder] of identities) if (holder === rid) journal.put(identities, key, undefined)
  }

  const updateFixed = (rid: string, { identity_hash, ...set }: Record<string, unknown>): void => {
    const row = rowOf(rid)
    journal.put(rows, rid, { ...row, ...set } as ResourceRow)
    if (set.is_open === false) leaveNames(row)
    if (identity_hash !== undefined) {
      leaveIdentity(rid)
      journal.put(identity, rid, identity_hash as Buffer | null)
      journal.add(moved.identity, rid)
      if (identity_hash) journal.put(identities, identityKey(row.type_id, identity_hash as Buffer), rid)
    }
    if (!fresh.has(rid)) journal.add(moved.fixed, rid)
  }

  const update = (table: PgTable, key: object, set: object): void => {
    const rid = String((key as { rid: unknown }).rid)
    if (table === resource) updateFixed(rid, set as Record<string, unknown>)
    else if (table === resource_state) {
      journal.put(rows, rid, { ...rowOf(rid), ...set })
      if (!fresh.has(rid)) journal.add(moved.state, rid)
    } else throw new Error(`${getTableName(table)} is not held`)
  }

  const held = { journal, fresh }
  const edges = edgesOf(held)

  return {
    journal,
    edges,
    keeper: { insert: inserts.insert, update },
    /** Filled by `held.load.ts`. */
    loaded: { rows, byId, names, identities, locks, type_locks, checks, offerless, rids },
    /** Sent by `many/write.ts`. */
    pending: { inserts: inserts.pending, fresh, moved, identity, imported },
    resourceOf,
    ridsOf: (ids: readonly string[]): Map<string, string> =>
      new Map(
        ids.flatMap((id) => {
          const rid = ridOf(id)
          return rid === undefined ? [] : [[id, rid] as const]
        }),
      ),
    rowsOf: (wanted: readonly string[]): ResourceRow[] => [...new Set(wanted)].map(rowOf),
    /** Those of these that are held. */
    fixedOf: (wanted: readonly string[]): Fixed[] => wanted.flatMap((rid) => rows.get(rid) ?? []),
    findTwin,
    newRid: (): string => {
      const rid = rids.pop()
      if (rid === undefined) throw new Unheld()
      return rid
    },
    insertResource,
    lockedRow: (resource_id: string): ResourceRow | undefined => {
      const row = resourceOf(resource_id)
      if (row && !isLocked(row.rid, 'no key update')) throw new Unheld()
      return row
    },
    checkLocks: (wished: ReadonlyMap<string, LockMode>): void => {
      for (const [rid, mode] of wished) if (!isLocked(rid, mode)) throw new Unheld()
    },
    checkTypeLocks: (wished: ReadonlyMap<number, 'shared' | 'exclusive'>): void => {
      for (const [id, mode] of wished) {
        const known = type_locks.get(id)
        if (known !== mode && known !== 'exclusive') throw new Unheld()
      }
    },
    checksOf: (rid: string): ObservationRow[] => {
      if (fresh.has(rid)) return []
      const known = checks.get(rid)
      if (!known) throw new Unheld()
      return known
    },
    targetsOf: (resource_id: string, relations: readonly { id: number; type_key: string }[]) => {
      const row = resourceOf(resource_id)
      const ids = relations.map(({ id }) => id)
      return (row ? edges.from(row.rid, ids) : [])
        .sort((a, b) => (BigInt(a.rel_no) < BigInt(b.rel_no) ? -1 : 1))
        .map(({ reltype_id, dst }) => ({
          type_key: relations.find(({ id }) => id === reltype_id)?.type_key ?? '',
          target_id: edges.loaded.ids.get(dst) ?? rowOf(dst).resource_id,
        }))
    },
    offersNothing: (rid: string): boolean => fresh.has(rid) || offerless.has(rid),
    saveImported: (row: { source_name: string; external_id: string; resource_id: string; last_seen_at: string }) => {
      const { resource_id, ...ref } = row
      const rid = ridOf(resource_id)
      if (rid !== undefined) journal.put(imported, row.external_id, { ...ref, rid })
    },
  }
}

const NEW_STATE = {
  owner: null,
  health_status: 'unknown',
  health_reason: 'never_observed',
  health_expires_at: null,
  health_revision: 0,
  capability_revision: 0,
  last_operation_id: null,
  last_command_id: null,
  last_operation_at: null,
}
