import type { PgTable } from 'drizzle-orm/pg-core'
import type { Queryable, Tx } from '../../client.ts'
import type { Keeper } from '../../rows.ts'
import type { Fixed, LockMode, NewResource, ObservationRow, ResourceRow } from '../rows.ts'
import { resource } from '../tables.ts'
import { createEdges } from './edges.ts'
import { createJournal, type Journal, Unheld } from './journal.ts'
import { createLocks } from './locks.ts'
import { createNames, type WantedName } from './names.ts'
import { createOffers } from './offers.ts'
import { createWrites } from './writes.ts'

/**
 * Rows that one transaction has locked and read for its changes, one or many. The queries of a change are answered from
 * here and its writes are kept here, so that `many/write.ts` sends them as one statement per table. Access to a row
 * that is not held throws `Unheld`: the row is read, and the change runs again.
 */
export type Held = ReturnType<typeof createHeld>
/** A transaction whose rows are held. It executes no statements itself. */
type HeldTx = Tx & { held: Held; keeper: Keeper }

export const heldBy = (db: Queryable): Held | undefined => (db as Partial<HeldTx>).held
/** The data that a change's transaction holds. */
export const heldOf = (tx: Tx): Held => (tx as HeldTx).held

const refuse = {
  value: () => {
    throw new Error('a held transaction accepts no direct statement')
  },
}
const REFUSED = { execute: refuse, select: refuse, insert: refuse, update: refuse, delete: refuse, transaction: refuse }

export const heldTx = (tx: Tx, held: Held): Tx =>
  Object.create(tx, { ...REFUSED, held: { value: held }, keeper: { value: held.keeper } }) as Tx

/** The transaction underneath: the database without the writes held here. */
export const underlying = (tx: Tx): Tx => Object.getPrototypeOf(tx) as Tx

/** The rows themselves, existing and new. */
const createRows = (journal: Journal) => {
  const rows = new Map<string, ResourceRow>()
  /** Row numbers by id; `undefined`: no such resource exists. */
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
    /** Those of the wanted rows that are held. */
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

type Placed = Fixed & { path: string; parent_rid: string | null; own?: boolean }

/** The observations of checks. */
const createChecks = (journal: Journal, fresh: ReadonlySet<string>) => {
  const checks = new Map<string, readonly ObservationRow[]>()
  /** The latest by resource, source and key. */
  const observed = new Map<string, object>()
  return {
    checks,
    observed,
    checksOf: (rid: string): readonly ObservationRow[] => {
      const known = checks.get(rid) ?? (fresh.has(rid) ? [] : undefined)
      if (!known) throw new Unheld({ checks: [rid] })
      return known
    },
    /** Stores the latest observation of a check. */
    observe: (word: ObservationRow, row: object): void => {
      const isThis = (one: ObservationRow) => one.source === word.source && one.check_key === word.check_key
      const others = (checks.get(word.rid) ?? []).filter((one) => !isThis(one))
      journal.put(checks, word.rid, [...others, word])
      journal.put(observed, `${word.rid} ${word.source} ${word.check_key}`, row)
    },
  }
}

type Rows = ReturnType<typeof createRows>

/** Rows that move with their container. */
const createMoves = (
  journal: Journal,
  names: ReturnType<typeof createNames>,
  { rows, fresh, rowOf, put }: Pick<Rows, 'rows' | 'fresh' | 'rowOf' | 'put'>,
) => {
  /** Their places. */
  const moved = new Map<string, Placed>()
  return {
    moved,
    /** Moves a resource and everything below it, with their new paths, under a new parent or to the top. */
    moveSubtree: (
      child: ResourceRow,
      below: readonly Omit<Placed, 'parent_rid'>[],
      parent: ResourceRow | undefined,
    ): void => {
      names.place(child, parent?.rid ?? null)
      for (const { rid, resource_id, type_id, path } of below) {
        const row = rows.get(rid)
        const own = rid === child.rid
        const before = moved.get(rid)
        const place = { path, ...(own && { parent_rid: parent?.rid ?? null, parent_id: parent?.resource_id ?? null }) }
        if (row) put({ ...row, ...place })
        const parent_rid = own ? (parent?.rid ?? null) : (before?.parent_rid ?? null)
        const placed = { rid, resource_id, type_id, path, parent_rid, own: own || before?.own === true }
        if (!fresh.has(rid)) journal.put(moved, rid, placed)
      }
    },
    placedBelow: (path: string): (Fixed & { path: string })[] =>
      [...[...fresh].map(rowOf), ...moved.values()].filter(
        (row) => row.path === path || row.path.startsWith(`${path}.`),
      ),
  }
}

export const createHeld = () => {
  const journal = createJournal()
  const writes = createWrites(journal)
  const { put, begin, ...rows } = createRows(journal)
  const { fresh, rowOf, ridOf } = rows
  const names = createNames(journal, fresh)
  const locks = createLocks(fresh)
  const edges = createEdges(journal, fresh)
  const offers = createOffers(journal, fresh, edges.pending)
  const { checks, observed, ...observations } = createChecks(journal, fresh)
  const { moved, ...moves } = createMoves(journal, names, { ...rows, put })
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
    ...observations,
    ...moves,
    journal,
    edges,
    offers,
    keeper: { insert: writes.insert, update: update as Keeper['update'] },
    /** Filled by `many/load.ts`. */
    loaded: { ...rows, ...names, ...locks, ...offers.loaded, checks },
    /** Sent by `many/write.ts`. */
    pending: { ...writes, ...offers.pending, fresh, identity: names.identity, imported, moved, observed },
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
    /** The edges around a resource, the oldest first. */
    edgesOf: (resource_id: string) => {
      const rid = rows.resourceOf(resource_id)?.rid
      return (rid === undefined ? [] : edges.all(rid)).map((edge) => {
        const [end, peer] = edge.src === rid ? (['src', edge.dst] as const) : (['dst', edge.src] as const)
        return { edge, end, peer_id: edges.loaded.ids.get(peer) ?? rowOf(peer).resource_id }
      })
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
