import type { PgTable } from 'drizzle-orm/pg-core'
import type { Queryable, Tx } from '../../client.ts'
import type { Keeper } from '../../rows.ts'
import type { Fixed, LockMode, NewResource, ObservationRow, ResourceRow } from '../rows.ts'
import { resource } from '../tables.ts'
import { createEdges } from './edges.ts'
import { createJournal, type Journal, Unheld } from './journal.ts'
import { createLocks } from './locks.ts'
import { createNames, type WantedName } from './names.ts'
import { createWrites } from './writes.ts'

/**
 * Rows that one transaction has locked and read for its changes, one or many. The queries that a change asks are answered
 * from here and its writes are kept here, so that `many/write.ts` sends them as one statement for each table. What is not
 * held throws `Unheld`: it is read, and the change made once more.
 */
export type Held = ReturnType<typeof createHeld>
/** A transaction whose rows are held. Its own statements are refused: `inDatabase` says when they may be sent. */
type HeldTx = Tx & { held: Held; keeper: Keeper; flush: () => Promise<Tx> }

export const heldBy = (db: Queryable): Held | undefined => (db as Partial<HeldTx>).held
/** What the transaction of a change holds. */
export const heldOf = (tx: Tx): Held => (tx as HeldTx).held

const refuse = {
  value: () => {
    throw new Error('a held transaction takes no statement of its own')
  },
}
const REFUSED = { execute: refuse, select: refuse, insert: refuse, update: refuse, delete: refuse, transaction: refuse }

/** `flush` sends what is held so far; without it the rows are held for more than one change. */
export const heldTx = (tx: Tx, held: Held, flush?: () => Promise<void>): Tx => {
  const through = async () => {
    if (!flush) throw new Unheld()
    await flush()
    return tx
  }
  const own = { held: { value: held }, keeper: { value: held.keeper }, flush: { value: through } }
  return Object.create(tx, { ...REFUSED, ...own }) as Tx
}

/** The database itself, after all that the change has written so far. Throws `Unheld` among other changes. */
export const inDatabase = async <D extends Queryable>(db: D): Promise<D> =>
  heldBy(db) ? ((await (db as unknown as HeldTx).flush()) as D) : db
/** The same for columns that no change moves, such as the id and type of a row. */
export const underlying = (tx: Tx): Tx => Object.getPrototypeOf(tx) as Tx

/** The rows themselves, those that exist and new ones. */
const createRows = (journal: Journal) => {
  const rows = new Map<string, ResourceRow>()
  /** Row numbers by id; undefined: there is no such resource. */
  const byId = new Map<string, string | undefined>()
  const fresh = new Set<string>()
  /** Numbers for new rows. */
  const rids: string[] = []
  const rowOf = (rid: string): ResourceRow => {
    const row = rows.get(rid)
    if (!row) throw new Unheld({ rids: [rid] })
    return row
  }
  const ridOf = (resource_id: string): string | undefined => {
    if (!byId.has(resource_id)) throw new Unheld({ ids: [resource_id] })
    return byId.get(resource_id)
  }
  return {
    rows,
    byId,
    fresh,
    rids,
    rowOf,
    ridOf,
    put: (row: ResourceRow): void => journal.put(rows, row.rid, row),
    begin: (row: ResourceRow): void => {
      journal.put(rows, row.rid, row)
      journal.put(byId, row.resource_id, row.rid)
      journal.add(fresh, row.rid)
    },
    resourceOf: (resource_id: string): ResourceRow | undefined => {
      const rid = ridOf(resource_id)
      return rid === undefined ? undefined : rowOf(rid)
    },
    rowsOf: (wanted: readonly string[]): ResourceRow[] => {
      const unknown = wanted.filter((rid) => !rows.has(rid))
      if (unknown.length > 0) throw new Unheld({ rids: unknown })
      return [...new Set(wanted)].map(rowOf)
    },
    resourcesOf: (wanted: readonly string[]): ResourceRow[] => {
      const unknown = wanted.filter((id) => !byId.has(id))
      if (unknown.length > 0) throw new Unheld({ ids: unknown })
      return wanted.flatMap((id) => rows.get(byId.get(id) ?? '') ?? [])
    },
    /** Those of these that are held. */
    fixedOf: (wanted: readonly string[]): Fixed[] => wanted.flatMap((rid) => rows.get(rid) ?? []),
    newRid: (): string => {
      const rid = journal.draw(rids)
      if (rid === undefined) throw new Unheld({ numbers: { rows: 1, edges: 0 } })
      return rid
    },
  }
}

const rowOfNew = ({ identity_hash: _, ...given }: NewResource, state: object, parent: ResourceRow | undefined) =>
  ({
    ...NEW_STATE,
    ...state,
    ...given,
    is_open: true,
    parent_rid: given.parent_rid ?? null,
    parent_id: parent?.resource_id ?? null,
  }) as unknown as ResourceRow

type Placed = { rid: string; path: string; parent_rid: string | null; own?: boolean }

export const createHeld = () => {
  const journal = createJournal()
  const writes = createWrites(journal)
  const { put, begin, ...rows } = createRows(journal)
  const { fresh, rowOf, ridOf, rows: rows_ } = rows
  const names = createNames(journal, fresh)
  const locks = createLocks(fresh)
  const edges = createEdges(journal, fresh)
  const checks = new Map<string, ObservationRow[]>()
  /** Resources that offer nothing. */
  const offerless = new Set<string>()
  const imported = new Map<string, object>()
  /** Places of rows that moved with their container. */
  const moved = new Map<string, Placed>()

  const update = (table: PgTable, key: object, set: Record<string, unknown>): void => {
    const row = rowOf(String((key as { rid: unknown }).rid))
    const { identity_hash, ...shown } = set
    if (table === resource && set.is_open === false) names.leave(row)
    if (identity_hash !== undefined) names.move(row, identity_hash as Buffer | null)
    put({ ...row, ...shown })
    if (!fresh.has(row.rid)) writes.update(table, row.rid, set)
  }

  return {
    ...rows,
    ...locks,
    journal,
    edges,
    keeper: { insert: writes.insert, update: update as Keeper['update'] },
    /** Filled by `many/load.ts`. */
    loaded: { ...rows, ...names, ...locks, checks, offerless },
    /** Sent by `many/write.ts`. */
    pending: { ...writes, fresh, identity: names.identity, imported, moved },
    findTwin: ({ resource_id, ...wanted }: WantedName & { resource_id: string }) => {
      const same = resource_id === '' ? undefined : ridOf(resource_id)
      const twin = same === undefined ? names.twinOf(wanted) : { rid: same, what: 'resource_id' as const }
      return twin && { ...twin, resource_id: rowOf(twin.rid).resource_id }
    },
    insertResource: (given: NewResource, state: object): void => {
      const row = rowOfNew(given, state, given.parent_rid ? rowOf(given.parent_rid) : undefined)
      begin(row)
      names.take(row, given.identity_hash ?? null)
      edges.begin(row.rid)
    },
    lockedRow: (resource_id: string): ResourceRow | undefined => {
      const row = rows.resourceOf(resource_id)
      if (row) locks.checkLocks(new Map<string, LockMode>([[row.rid, 'no key update']]))
      return row
    },
    checksOf: (rid: string): ObservationRow[] => {
      const known = fresh.has(rid) ? [] : checks.get(rid)
      if (!known) throw new Unheld({ ends: [rid] })
      return known
    },
    targetsOf: (resource_id: string, relations: readonly { id: number; type_key: string }[]) => {
      const row = rows.resourceOf(resource_id)
      const ids = relations.map(({ id }) => id)
      return (row ? edges.from(row.rid, ids) : [])
        .sort((a, b) => (BigInt(a.rel_no) < BigInt(b.rel_no) ? -1 : 1))
        .map(({ reltype_id, dst }) => ({
          type_key: relations.find(({ id }) => id === reltype_id)?.type_key ?? '',
          target_id: edges.loaded.ids.get(dst) ?? rowOf(dst).resource_id,
        }))
    },
    offersNothing: (rid: string): boolean => fresh.has(rid) || offerless.has(rid),
    /** Puts a resource and all below it, with their new paths, under a new parent or at the top. */
    moveSubtree: (
      child: ResourceRow,
      rows: readonly Omit<Placed, 'parent_rid'>[],
      parent: ResourceRow | undefined,
    ): void => {
      names.place(child, parent?.rid ?? null)
      for (const { rid, path } of rows) {
        const row = rows_.get(rid)
        const own = rid === child.rid
        const place = { path, ...(own && { parent_rid: parent?.rid ?? null, parent_id: parent?.resource_id ?? null }) }
        if (row) put({ ...row, ...place })
        const parent_rid = own ? (parent?.rid ?? null) : (row?.parent_rid ?? null)
        if (!fresh.has(rid)) journal.put(moved, rid, { rid, path, parent_rid, own })
      }
    },
    /** New rows that stand at or below a path. */
    freshBelow: (path: string): ResourceRow[] =>
      [...fresh].map(rowOf).filter((row) => row.path === path || row.path.startsWith(`${path}.`)),
    /** All that is held is in the database now. */
    settle: (): void => {
      for (const rid of fresh) {
        locks.locks.set(rid, 'update')
        checks.set(rid, [])
        offerless.add(rid)
      }
      for (const kept of [fresh, writes.fixed, writes.states, imported, moved, edges.pending.added]) kept.clear()
      for (const kept of [edges.pending.revised, edges.pending.gone]) kept.clear()
      writes.inserts.length = 0
      edges.pending.history.length = 0
    },
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
