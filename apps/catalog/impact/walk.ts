import type { Effect } from '../../shared/contracts/topology/impact.ts'
import type { Store } from '../graph/store.ts'
import type { Types } from '../packs/registry.ts'
import { contribution, type FlowRule, noPeers, type PeerCounts } from '../rules/roll-up.ts'

/** How many resources a walk may visit: 20,000 take about 50 ms, during which nothing else is answered. */
export const MAX_VISITED = 20_000
export const MAX_DISTANCE = 64

/** One affected resource: its distance, what led to it, and the effect on it. */
export type Affected = { rid: number; distance: number; from: number; relation: number; effect: Effect }
export type Walked = { affected: Affected[]; truncated: boolean }

/** Which end of a relationship type depends on the other: the source or the target. */
type Dependence = FlowRule & { dependent: 'src' | 'dst' }

/** The contents of a place depend on it, although the place takes its health from them. */
const INSIDE: Dependence = { dependent: 'src', mode: 'worst', k: 1, cap: null }
const HEALTHY = 0
const UNHEALTHY = 3

const dependences = (types: Types): ReadonlyMap<number, Dependence> =>
  new Map(
    types.relationships.flatMap(({ id, containment, health }) => {
      if (containment) return [[id, INSIDE] as const]
      if (health.flows === 'none') return []
      return [[id, { ...health, dependent: health.flows === 'to_from' ? 'src' : 'dst' }] as const]
    }),
  )

/**
 * All dependents of some resources, nearest first. Each has the health that it would roll up to if those resources were
 * unhealthy and everything else healthy. The walk passes through resources that a reader may not see. It runs in one
 * turn, so the store cannot change meanwhile.
 */
export const walkImpact = (
  store: Store,
  types: Types,
  roots: readonly number[],
  { max_distance, max_visited }: { max_distance: number; max_visited: number },
): Walked => {
  const along = dependences(types)
  const { found, truncated } = reach(store, along, roots, max_distance, max_visited)
  const badness = settle(store, along, roots, found)
  return {
    affected: [...found.values()]
      .filter(({ distance }) => distance > 0)
      .map((step) => ({ ...step, effect: badness.get(step.rid) === UNHEALTHY ? 'unhealthy' : 'degraded' })),
    truncated,
  }
}

type Step = Omit<Affected, 'effect'>

/** Breadth-first search along dependencies. */
const reach = (
  store: Store,
  along: ReadonlyMap<number, Dependence>,
  roots: readonly number[],
  max_distance: number,
  max_visited: number,
) => {
  const found = new Map<number, Step>(roots.map((rid) => [rid, { rid, distance: 0, from: rid, relation: 0 }]))
  let truncated = false
  for (const { rid, distance } of found.values()) {
    eachDependent(store, along, rid, (peer, relation) => {
      if (found.has(peer)) return
      if (distance >= max_distance || found.size >= max_visited + roots.length) truncated = true
      else found.set(peer, { rid: peer, distance: distance + 1, from: rid, relation })
    })
  }
  return { found, truncated }
}

const eachDependent = (
  store: Store,
  along: ReadonlyMap<number, Dependence>,
  rid: number,
  visit: (dependent: number, relation: number) => void,
): void =>
  store.eachArc(rid, (type, out, peer) => {
    const rule = along.get(type)
    if (rule && out === (rule.dependent === 'dst') && store.isOpen(peer)) visit(peer, type)
  })

/** A resource's dependencies by relationship type, as their badness was told; `turn` is when they were counted. */
type Counted = { turn: number; types: Map<number, PeerCounts> }

/**
 * The least fixpoint of the roll-up's rules over the reached resources; everything outside counts as healthy. Each
 * resource counts its dependencies once, and then only what changes: one may have 10,000, which fail one by one.
 */
const settle = (
  store: Store,
  along: ReadonlyMap<number, Dependence>,
  roots: readonly number[],
  found: ReadonlyMap<number, Step>,
): ReadonlyMap<number, number> => {
  const badness = new Map(roots.map((root) => [root, UNHEALTHY]))
  const told = new Map<number, number>()
  const counted = new Map<number, Counted>()
  const open = new Set(roots)
  let turn = 0
  for (const rid of open) {
    open.delete(rid)
    if (!store.isOpen(rid)) continue
    turn += 1
    const [had, has] = [told.get(rid) ?? HEALTHY, badness.get(rid) ?? HEALTHY]
    told.set(rid, has)
    eachDependent(store, along, rid, (dependent, type) => {
      const before = badness.get(dependent) ?? HEALTHY
      if (!found.has(dependent) || before === UNHEALTHY) return
      const known = counted.get(dependent) ?? { turn, types: countsOf(store, along, dependent, told) }
      if (known.turn === turn) counted.set(dependent, known)
      else shift(known.types.get(type), had, has)
      const given = [...known.types].map(([one, counts]) => contribution(along.get(one) as FlowRule, counts))
      const after = Math.max(...given)
      if (after <= before) return
      badness.set(dependent, after)
      open.add(dependent)
    })
  }
  return badness
}

const shift = (counts: PeerCounts | undefined, from: number, to: number): void => {
  if (!counts) return
  counts[from] = (counts[from] ?? 0) - 1
  counts[to] = (counts[to] ?? 0) + 1
}

/** The dependencies of a resource by type and by badness as told. */
const countsOf = (
  store: Store,
  along: ReadonlyMap<number, Dependence>,
  rid: number,
  told: ReadonlyMap<number, number>,
): Map<number, PeerCounts> => {
  const types = new Map<number, PeerCounts>()
  store.eachArc(rid, (type, out, peer) => {
    const rule = along.get(type)
    if (!rule || out !== (rule.dependent === 'src') || !store.isOpen(peer)) return
    const counts = types.get(type) ?? noPeers()
    types.set(type, counts)
    const bad = told.get(peer) ?? HEALTHY
    counts[bad] = (counts[bad] ?? 0) + 1
  })
  return types
}
