import type { Ended } from '../../../db/catalog/held/missing.ts'
import { createHeld, type Held, heldTx } from '../../../db/catalog/held/rows.ts'
import {
  keep,
  loadAround,
  loadChecks,
  loadCounts,
  loadEdges,
  loadFixed,
  loadNumbers,
  loadOffers,
  loadReach,
  loadRows,
  loadTwins,
} from '../../../db/catalog/many/load.ts'
import { claimedOwners } from '../../../db/catalog/providers.ts'
import { cascadeOfAll } from '../../../db/catalog/relationships/rows.ts'
import { lockAndGetAll, lockRelationshipTypes, lockStates, wishLock } from '../../../db/catalog/resources/rows.ts'
import type { EdgeKey, LockMode, ResourceRow } from '../../../db/catalog/rows.ts'
import type { Tx } from '../../../db/client.ts'
import type { RelationshipChange } from '../../shared/contracts/catalog/relationships.ts'
import type { ResourceCreate } from '../../shared/contracts/catalog/resources.ts'
import { pluck } from '../../shared/data/pick.ts'
import { isClaim } from '../capabilities/claims.ts'
import { usesCapability } from '../capabilities/offers.ts'
import { isTerminal } from '../document/lifecycle.ts'
import type { JsonObject } from '../document/pointers.ts'
import type { StoredRelationshipType, Types } from '../packs/registry.ts'
import { cascading, planEdges } from '../relationships/edges.ts'
import { identityHash } from '../rules/change.ts'

/** Stands for a new resource, for which the database has nothing to count. */
const NEW = '0'

/** The data that one change will need, as far as the change itself shows it. */
export type Wish = {
  /** The resource that changes, existing or new. */
  resource_id: string
  create?: { type_id: number; name: string; parent_id: string | undefined; identity_hash: Buffer | null } | undefined
  edges: readonly RelationshipChange[]
  /** Whether the change needs all of its edges. */
  around?: boolean
  /** Other resources that the change needs. */
  also?: readonly string[]
  /** The target lifecycle state; `END`: the terminal one of its type. */
  lifecycle_status?: string | typeof END | undefined
}
export const END = Symbol('end')

type New = Pick<ResourceCreate, 'type_key' | 'name' | 'desired_state' | 'relationships'> & {
  resource_id: string
  parent_id?: string | undefined
}

/** What creating a resource will need. */
export const createWish = (types: Types, body: New): Wish => {
  const { resource_id, type_key, name, desired_state, parent_id } = body
  const type = types.newest(type_key)
  const edges = (body.relationships ?? []).map((edge) => ({ op: 'add' as const, ...edge }))
  const contained = edges.find((edge) => edge.direction !== 'in' && types.relationship(edge.type_key)?.containment)
  const own = contained && parent_id === undefined ? contained : undefined
  return {
    resource_id,
    edges: edges.filter((edge) => edge !== own),
    create: {
      type_id: type?.id ?? -1,
      name,
      parent_id: parent_id ?? own?.target_id,
      identity_hash: type ? identityHash(type, (desired_state ?? {}) as JsonObject) : null,
    },
  }
}

/** Whether a change reads no resource but its own. */
export const isAlone = ({ create, edges, around, also, lifecycle_status }: Wish): boolean =>
  !create && edges.length === 0 && !around && !also && lifecycle_status === undefined

/** Far more than the cascades of a successful request. */
const MAX_ENDING = 2000
/** Above this total, each is read only when a change needs it. */
const MAX_AROUND = 50_000
const MAX_REACH = 20_000
/** Above this many switches of lock mode, all locks are taken in one mode: each switch costs a statement. */
const MAX_RUNS = 8

/** `tx`: what changes see; `db`: the database itself. */
export type View = { held: Held; tx: Tx; db: Tx }

/** Holds resources that are already locked and read; ids without a row do not exist. */
export const holdRows = (tx: Tx, ids: readonly string[], rows: readonly ResourceRow[]): View => {
  const held = createHeld()
  for (const id of ids) held.loaded.byId.set(id, undefined)
  for (const row of rows) {
    keep(held, row)
    held.loaded.locks.set(row.rid, 'no key update')
  }
  return { held, tx: heldTx(tx, held), db: tx }
}

/**
 * Takes all locks that these changes need, in the one order that every command follows (catalog.md 3). Then reads the
 * data they will need, in the same few statements however many changes there are.
 */
export const holdFor = async (tx: Tx, types: Types, wishes: readonly Wish[]): Promise<View> => {
  const ids = [...new Set(wishes.flatMap(idsOf))]
  if (wishes.every(isAlone)) return holdRows(tx, ids, await lockAndGetAll(tx, ids))
  const held = createHeld()
  const view = { held, tx: heldTx(tx, held), db: tx }
  await loadFixed(tx, held, ids)
  const { locks, type_locks } = held.loaded
  for (const wish of wishes) {
    const plan = await planEdges(view.tx, types, edgesOf(wish), {
      is_new: !!wish.create,
      pointer: '',
      mayWrite: undefined,
    })
    for (const [rid, mode] of plan.locks) wishLock(locks, rid, mode)
    for (const [id, mode] of plan.type_locks) if (type_locks.get(id) !== 'exclusive') type_locks.set(id, mode)
    const own = wish.create ? undefined : held.loaded.byId.get(wish.resource_id)
    if (own !== undefined) wishLock(locks, own, 'no key update')
  }
  const moving = ridsWhere(held, wishes, ({ lifecycle_status }) => lifecycle_status !== undefined)
  const ending = ridsWhere(held, wishes, (wish) => mayEnd(held, types, wish))
  const [gone, owners] =
    ending.length === 0
      ? [[], []]
      : await Promise.all([
          cascadeOfAll(tx, ending, cascading(types), MAX_ENDING + 1),
          claimedOwners(tx, ending, usesCapability(types)),
        ])
  const known = gone.length <= MAX_ENDING ? gone : []
  for (const rid of known) wishLock(locks, rid, 'update')
  for (const rid of owners) wishLock(locks, rid, 'no key update')

  await lockRelationshipTypes(tx, type_locks)
  smooth(locks)
  await lockStates(tx, locks)

  const pairs = pairsOf(held, types, wishes)
  const around = ridsWhere(held, wishes, (wish) => wish.around === true)
  const twins = wishes.flatMap(({ create }) => twinOf(held, create))
  // They are read again in full under the locks.
  held.loaded.rows.clear()
  held.loaded.byId.clear()
  await Promise.all([
    loadRows(tx, held, ids, known),
    loadAround(tx, held, [...new Set([...known, ...around])], MAX_AROUND),
    loadEdges(tx, held, pluck(pairs, 'key')),
    loadCounts(tx, held, endsOf([...pairs, ...neededBy(held, types, moving)], known)),
    loadReach(tx, held, startsOf(pairs), MAX_REACH),
    loadChecks(tx, held, [...new Set([...moving, ...known])]),
    loadOffers(tx, held, [...new Set([...known, ...ending, ...ownersOf(pairs)])]),
    loadTwins(tx, held, twins),
    loadNumbers(tx, held, {
      rows: wishes.filter(({ create }) => create).length,
      edges: wishes.reduce((sum, wish) => sum + edgesOf(wish).filter(({ op }) => op === 'add').length, 0),
    }),
  ])
  return view
}

const into = (parent_id: string): RelationshipChange => ({ op: 'add', type_key: 'contained_in', target_id: parent_id })

/** The edge changes of a wish, including that of its parent. */
const edgesOf = ({ create, edges }: Wish): readonly RelationshipChange[] =>
  create?.parent_id === undefined ? edges : [...edges, into(create.parent_id)]

const idsOf = (wish: Wish): string[] => [
  wish.resource_id,
  ...(wish.also ?? []),
  ...edgesOf(wish).map(({ target_id }) => target_id),
]

const ridsWhere = (held: Held, wishes: readonly Wish[], holds: (wish: Wish) => boolean): string[] => [
  ...new Set(wishes.flatMap((wish) => (holds(wish) ? (held.loaded.byId.get(wish.resource_id) ?? []) : []))),
]

const mayEnd = (held: Held, types: Types, { resource_id, lifecycle_status }: Wish): boolean => {
  if (lifecycle_status === undefined || lifecycle_status === END) return lifecycle_status === END
  const row = held.loaded.rows.get(held.loaded.byId.get(resource_id) ?? '')
  const type = row && types.byId(row.type_id)
  return type !== undefined && isTerminal(type.lifecycle, lifecycle_status)
}

/** Takes one mode for nearly all rows if the mode switches too often from row to row. */
const smooth = (locks: Map<string, LockMode>): void => {
  const rids = [...locks.keys()].sort((a, b) => (BigInt(a) < BigInt(b) ? -1 : 1))
  for (const mode of ['no key update', 'update'] as const) {
    const runs = rids.filter((rid, at) => locks.get(rid) !== locks.get(rids[at - 1] ?? '')).length
    if (runs <= MAX_RUNS) return
    for (const rid of rids) wishLock(locks, rid, mode)
  }
}

/** Edges that resources must have while active; they are counted when the resources become active. */
const neededBy = ({ loaded }: Held, types: Types, rids: readonly string[]): Pick<Pair, 'key' | 'own' | 'peer'>[] =>
  rids.flatMap((rid) => {
    const type = types.byId(loaded.rows.get(rid)?.type_id ?? -1)
    const needed = (type?.relationships ?? []).filter(({ min }) => min > 0)
    return needed.flatMap(({ type_key }) => {
      const relation = types.relationship(type_key)
      return relation ? [{ key: { src: rid, reltype_id: relation.id, dst: NEW }, own: rid, peer: NEW }] : []
    })
  })

type Pair = { relation: StoredRelationshipType; key: EdgeKey; own: string; peer: string; adds: boolean }

/** Edge changes whose peer exists. A new resource stands as `NEW`: it has no stored edges. */
const pairsOf = ({ loaded }: Held, types: Types, wishes: readonly Wish[]) =>
  wishes.flatMap((wish) =>
    edgesOf(wish).flatMap(({ op, type_key, direction, target_id }): (Pair & { both: boolean })[] => {
      const relation = types.relationship(type_key)
      const peer = loaded.byId.get(target_id)
      if (!relation || peer === undefined) return []
      const there = wish.create ? undefined : loaded.byId.get(wish.resource_id)
      const own = there ?? NEW
      const [src, dst] = direction === 'in' ? [peer, own] : [own, peer]
      const swap = relation.symmetric && there !== undefined && BigInt(src) > BigInt(dst)
      const key = { src: swap ? dst : src, reltype_id: relation.id, dst: swap ? src : dst }
      return [{ relation, key, own, peer, adds: op !== 'remove', both: there !== undefined }]
    }),
  )

const endsOf = (pairs: readonly Pick<Pair, 'key' | 'own' | 'peer'>[], known: readonly string[]): Ended[] => {
  const all = new Map<string, Ended>()
  const around = new Set(known)
  for (const { key, own, peer } of pairs) {
    for (const rid of [own, peer]) {
      if (rid === NEW || around.has(rid)) continue
      for (const end of ['src', 'dst'] as const)
        all.set(`${end} ${key.reltype_id} ${rid}`, { rid, reltype_id: key.reltype_id, end })
    }
  }
  return [...all.values()]
}

/** The owners of claimed offers; a new resource needs no reading. */
const ownersOf = (pairs: readonly Pair[]) =>
  pairs.flatMap(({ relation, key }) => (isClaim(relation) && key.dst !== NEW ? [key.dst] : []))

const startsOf = (pairs: readonly (Pair & { both: boolean })[]) =>
  pairs
    .filter(({ relation, both, adds }) => relation.acyclic && both && adds)
    .map(({ key }) => ({ rid: key.dst, reltype_id: key.reltype_id }))

const twinOf = ({ loaded }: Held, create: Wish['create']) => {
  if (!create) return []
  const { type_id, name, parent_id, identity_hash } = create
  // An unknown parent is looked up like no parent.
  const parent_rid = parent_id === undefined ? null : (loaded.byId.get(parent_id) ?? null)
  return [{ type_id, parent_rid, name, identity_hash }]
}
