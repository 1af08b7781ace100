import type { Direction, Position } from '../graph/edges.ts'
import type { Store } from '../graph/store.ts'

/** What a traversal may show and pass through; an absent member means all. */
export type MemoryReach = {
  direction: Direction
  reltype_ids: readonly number[] | null
  type_ids: readonly number[] | null
  /** Whether the caller may see this open resource. */
  sees: (rid: number) => boolean
}
export type Limits = { depth: number; max_nodes: number; max_edges: number; fanout: number }

/** A node of a picture. `stop`: why some neighbors may be missing; `last`: the last position visited among them. */
export type Shown = {
  rid: number
  depth: number
  degree: number
  omitted: number
  stop: 'depth' | 'nodes' | 'fanout'
  last: Position | undefined
}
export type PictureEdge = { no: number; type: number; src: number; dst: number }
export type Picture = { nodes: Shown[]; edges: PictureEdge[]; edges_cut: boolean }

/** One step of a continued walk: the neighbors of a node between two positions. */
export type Hop = { rid: number; from: Position | undefined; to: Position | undefined }

type Visit = { rid: number; depth: number; last: Position | undefined }

const maskOf = (ids: readonly number[] | null): Uint8Array | undefined => {
  if (ids === null) return undefined
  const mask = new Uint8Array(Math.max(0, ...ids) + 1)
  for (const id of ids) mask[id] = 1
  return mask
}

/** Marks by row number that are free to clear: a generation counts up. Safe because each answer is made in one turn. */
const marks = { seen: new Uint32Array(0), counted: new Uint32Array(0), generation: 0 }
const nextGeneration = (size: number): number => {
  if (marks.seen.length < size || marks.generation > 4_000_000_000) {
    marks.seen = new Uint32Array(size + (size >> 3))
    marks.counted = new Uint32Array(size + (size >> 3))
    marks.generation = 0
  }
  marks.generation += 1
  return marks.generation
}

/**
 * Breadth first by (depth, position of the parent, type key, out before in, peer) over the store. Counts exactly the
 * neighbors of each node that are not shown. Runs in one turn, so the store cannot change meanwhile.
 */
export const draw = (store: Store, roots: readonly number[], limits: Limits, reach: MemoryReach): Picture => {
  const way = wayOf(store, reach)
  const generation = nextGeneration(store.size())
  const { visits, full_at } = walk(way, roots, limits, generation)
  return describe(way, visits, limits, generation, ({ depth }, index) =>
    depth >= limits.depth ? 'depth' : index >= full_at ? 'nodes' : 'fanout',
  )
}

/**
 * Continues at a node: its next neighbors that neither the first answer nor the hops that led here showed. The node
 * comes first; `limits` are those of the first answer.
 */
export const drawOn = (
  store: Store,
  roots: readonly number[],
  limits: Limits,
  reach: MemoryReach,
  { hops, depth }: { hops: readonly Hop[]; depth: number },
): Picture => {
  const way = wayOf(store, reach)
  const generation = nextGeneration(store.size())
  walk(way, roots, limits, generation)
  const last = hops.at(-1) as Hop
  for (const { rid, from, to } of hops.slice(0, -1)) {
    way.each(rid, from, (peer, at) => {
      if (to !== undefined && store.isAfter(at, to)) return false
      marks.seen[peer] = generation
      return true
    })
  }
  marks.seen[last.rid] = generation
  const root: Visit = { rid: last.rid, depth, last: last.from }
  const visits = [root]
  const room = Math.max(1, Math.min(limits.fanout, limits.max_nodes - 1))
  way.each(last.rid, last.from, (peer, at) => {
    if (marks.seen[peer] !== generation) {
      if (visits.length > room) return false
      marks.seen[peer] = generation
      visits.push({ rid: peer, depth: depth + 1, last: undefined })
    }
    root.last = at
    return true
  })
  const why = room < limits.fanout ? 'nodes' : 'fanout'
  return describe(way, visits, limits, generation, (_, index) => (index === 0 ? why : 'depth'))
}

type Way = ReturnType<typeof wayOf>

/** The neighbors that the caller may see along the requested types. */
const wayOf = (store: Store, { direction, reltype_ids, type_ids, sees }: MemoryReach) => {
  const relations = maskOf(reltype_ids)
  const types = maskOf(type_ids)
  const follows = (type: number) => relations === undefined || relations[type] === 1
  const shows = (peer: number) =>
    (types === undefined || types[store.typeOf(peer)] === 1) && store.isOpen(peer) && sees(peer)
  return {
    store,
    direction,
    follows,
    shows,
    each: (rid: number, after: Position | undefined, visit: (peer: number, at: Position) => boolean) =>
      store.orderedArcs(rid, direction, after, (type, out, peer) =>
        follows(type) && shows(peer) ? visit(peer, { type, out, peer }) : true,
      ),
  }
}

/** `full_at`: the index of the node at which the picture was full; its own and later neighbors may be missing. */
const walk = (way: Way, roots: readonly number[], { depth: most, max_nodes, fanout }: Limits, generation: number) => {
  const visits: Visit[] = []
  for (const rid of roots) {
    marks.seen[rid] = generation
    visits.push({ rid, depth: 0, last: undefined })
  }
  let full_at = Number.POSITIVE_INFINITY
  for (let at = 0; at < visits.length && full_at === Number.POSITIVE_INFINITY; at++) {
    const visit = visits[at] as Visit
    if (visit.depth >= most) break
    let taken = 0
    way.each(visit.rid, undefined, (peer, position) => {
      if (taken === fanout) return false
      if (marks.seen[peer] !== generation) {
        if (visits.length >= max_nodes) {
          full_at = at
          return false
        }
        marks.seen[peer] = generation
        visits.push({ rid: peer, depth: visit.depth + 1, last: undefined })
      }
      taken += 1
      visit.last = position
      return true
    })
  }
  return { visits, full_at }
}

const describe = (
  { store, direction, follows, shows }: Way,
  visits: readonly Visit[],
  { max_edges }: Limits,
  generation: number,
  stopOf: (visit: Visit, index: number) => Shown['stop'],
): Picture => {
  // Nodes shown earlier are also marked, so only this picture's own nodes decide whether an edge lies inside it.
  const inside = new Set(visits.map(({ rid }) => rid))
  const edges: PictureEdge[] = []
  const nodes = visits.map((visit, index): Shown => {
    const { rid, depth, last } = visit
    let degree = 0
    let omitted = 0
    const own = nextCount()
    store.eachArc(rid, (type, out, peer, no) => {
      if (!follows(type)) return
      if (out && inside.has(peer)) edges.push({ no, type, src: rid, dst: peer })
      if (!shows(peer)) return
      degree += 1
      if (direction !== 'both' && out !== (direction === 'out')) return
      if (marks.seen[peer] === generation || marks.counted[peer] === own) return
      marks.counted[peer] = own
      omitted += 1
    })
    return { rid, depth, degree, omitted, stop: stopOf(visit, index), last }
  })
  edges.sort((a, b) => a.no - b.no)
  return { nodes, edges: edges.slice(0, max_edges), edges_cut: edges.length > max_edges }
}

let count = 0
const nextCount = (): number => {
  if (count > 4_000_000_000) {
    marks.counted.fill(0)
    count = 0
  }
  count += 1
  return count
}
