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
 * held throws `Unheld`: that change is then made in the database by itself.
 */
export type Held = ReturnType<typeof createHeld>
/** A transaction whose rows are held. Its other statements are refused with `Unheld`. */
export type HeldTx = Tx & { held: Held; keeper: Keeper }

export const heldBy = (db: Queryable): Held | undefined => (db as Partial<HeldTx>).held

const refuse = {
  value: () => {
    throw new Unheld()
  },
}
const REFUSED = { execute: refuse, select: refuse, insert: refuse, update: refuse, delete: refuse, transaction: refuse }

export const heldTx = (tx: Tx, held: Held): Tx =>
  Object.create(tx, { ...REFUSED, held: { value: held }, keeper: { value: held.keeper } }) as Tx

type Locked = { resource_id: string; row: ResourceRow | undefined }
/** A transaction that has locked and read one resource along with its claim. */
export const lockedTx = (tx: Tx, locked: Locked): Tx => Object.create(tx, { locked: { value: locked } }) as Tx
/** That resource, once: afterwards it may have moved. */
export const takeLocked = (db: Queryable, resource_id: string): Locked | undefined => {
  const { locked } = db as { locked?: Locked }
  if (locked?.resource_id !== resource_id) return undefined
  const taken = { ...locked }
  locked.resource_id = ''
  return taken
}

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
    if (!row) throw new Unheld()
    return row
  }
  const ridOf = (resource_id: string): string | undefined => {
    if (!byId.has(resource_id)) throw new Unheld()
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
    rowsOf: (wanted: readonly string[]): ResourceRow[] => [...new Set(wanted)].map(rowOf),
    /** Those of these that are held. */
    fixedOf: (wanted: readonly string[]): Fixed[] => wanted.flatMap((rid) => rows.get(rid) ?? []),
    newRid: (): string => {
      const rid = rids.pop()
      if (rid === undefined) throw new Unheld()
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

export const createHeld = () => {
  const journal = createJournal()
  const writes = createWrites(journal)
  const { put, begin, ...rows } = createRows(journal)
  const { fresh, rowOf, ridOf } = rows
  const names = createNames(journal, fresh)
  const locks = createLocks(fresh)
  const edges = createEdges(journal, fresh)
  const checks = new Map<string, ObservationRow[]>()
  /** Resources that offer nothing. */
  const offerless = new Set<string>()
  const imported = new Map<string, object>()

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
    pending: { ...writes, fresh, identity: names.identity, imported },
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
      if (!known) throw new Unheld()
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
