import type { Types } from '../packs/registry.ts'
import type { GraphArrays } from './arrays.ts'

/** One end of an open edge, seen from a node. */
export type Arc = { type: number; out: boolean; peer: number; no: number }
/** A position in a node's order of neighbors. */
export type Position = { type: number; out: boolean; peer: number }
export type Direction = 'out' | 'in' | 'both'

/** A graph's relationships: the loaded arrays, where an ended edge has number 0, and lists of edges added since. */
export type Edges = {
  readonly base: GraphArrays
  readonly arcs: Map<number, Arc[]>
  count: number
  /** Changes since the arrays were loaded. */
  changed: number
  /** Types by id, in the order of their keys. The order of two types never changes, so loaded lists stay sorted. */
  rank: Uint16Array
  ranked: Types | undefined
}

export const createEdges = (base: GraphArrays): Edges => ({
  base,
  arcs: new Map(),
  count: base.edges,
  changed: 0,
  rank: new Uint16Array(0),
  ranked: undefined,
})

export const rankTypes = (edges: Edges, types: Types): void => {
  if (edges.ranked === types) return
  edges.rank = new Uint16Array(Math.max(0, ...types.relationships.map(({ id }) => id)) + 1)
  types.relationships.forEach(({ id }, i) => {
    edges.rank[id] = i
  })
  edges.ranked = types
}

/** Compares by type, then out before in, then peer: negative if the position comes first. */
export const order = ({ rank }: Edges, a: Position, type: number, out: boolean, peer: number): number =>
  (rank[a.type] as number) - (rank[type] as number) || Number(out) - Number(a.out) || a.peer - peer

/** The index of a loaded edge in out_…, or -1. */
const findLoaded = (edges: Edges, src: number, type: number, dst: number): number => {
  const { base } = edges
  if (src >= base.size) return -1
  let low = base.out_at[src] as number
  const end = base.out_at[src + 1] as number
  let high = end
  const wanted = { type, out: true, peer: dst }
  while (low < high) {
    const middle = (low + high) >>> 1
    if (order(edges, wanted, base.out_type[middle] as number, true, base.out_dst[middle] as number) > 0)
      low = middle + 1
    else high = middle
  }
  const found = low < end && base.out_type[low] === type && base.out_dst[low] === dst && base.out_no[low] !== 0
  return found ? low : -1
}

/** The index of an arc in its node's list, or where it belongs. */
const placeOfArc = (edges: Edges, list: readonly Arc[], wanted: Position): number => {
  let low = 0
  for (let high = list.length; low < high; ) {
    const middle = (low + high) >>> 1
    const one = list[middle] as Arc
    if (order(edges, wanted, one.type, one.out, one.peer) > 0) low = middle + 1
    else high = middle
  }
  return low
}

const insertArc = (edges: Edges, rid: number, arc: Arc): void => {
  const list = edges.arcs.get(rid) ?? []
  list.splice(placeOfArc(edges, list, arc), 0, arc)
  edges.arcs.set(rid, list)
  edges.changed += 1
}

const findArc = (edges: Edges, rid: number, type: number, out: boolean, peer: number): number => {
  const list = edges.arcs.get(rid) ?? []
  const place = placeOfArc(edges, list, { type, out, peer })
  const found = list[place]
  return found && found.type === type && found.out === out && found.peer === peer ? place : -1
}

export const addEdge = (edges: Edges, src: number, type: number, dst: number, no: number): void => {
  if (findLoaded(edges, src, type, dst) >= 0 || findArc(edges, src, type, true, dst) >= 0) return
  insertArc(edges, src, { type, out: true, peer: dst, no })
  insertArc(edges, dst, { type, out: false, peer: src, no })
  edges.count += 1
}

export const removeEdge = (edges: Edges, src: number, type: number, dst: number): void => {
  const loaded = findLoaded(edges, src, type, dst)
  const place = findArc(edges, src, type, true, dst)
  if (loaded < 0 && place < 0) return
  if (loaded >= 0) edges.base.out_no[loaded] = 0
  if (place >= 0) {
    edges.arcs.get(src)?.splice(place, 1)
    edges.arcs.get(dst)?.splice(findArc(edges, dst, type, false, src), 1)
  }
  edges.changed += 1
  edges.count -= 1
}

/** Every open edge of a node, in no particular order. */
export const eachArc = (
  { base, arcs }: Edges,
  rid: number,
  visit: (type: number, out: boolean, peer: number, no: number) => void,
): void => {
  if (rid < base.size) {
    for (let i = base.out_at[rid] as number, end = base.out_at[rid + 1] as number; i < end; i++)
      if (base.out_no[i] !== 0)
        visit(base.out_type[i] as number, true, base.out_dst[i] as number, base.out_no[i] as number)
    for (let i = base.in_at[rid] as number, end = base.in_at[rid + 1] as number; i < end; i++) {
      const place = base.in_out[i] as number
      if (base.out_no[place] !== 0)
        visit(base.out_type[place] as number, false, base.in_src[i] as number, base.out_no[place] as number)
    }
  }
  const list = arcs.get(rid)
  if (list) for (const { type, out, peer, no } of list) visit(type, out, peer, no)
}

/** Merges a node's open edges by type key, out before in, peer, from a position until `visit` returns false. */
export const orderedArcs = (
  edges: Edges,
  rid: number,
  direction: Direction,
  after: Position | undefined,
  visit: (type: number, out: boolean, peer: number) => boolean,
): void => {
  const { base, rank } = edges
  const loaded = rid < base.size
  let o = loaded && direction !== 'in' ? (base.out_at[rid] as number) : 0
  const o_end = loaded && direction !== 'in' ? (base.out_at[rid + 1] as number) : 0
  let i = loaded && direction !== 'out' ? (base.in_at[rid] as number) : 0
  const i_end = loaded && direction !== 'out' ? (base.in_at[rid + 1] as number) : 0
  const list = edges.arcs.get(rid) ?? []
  let a = 0
  for (;;) {
    while (o < o_end && base.out_no[o] === 0) o++
    while (i < i_end && base.out_no[base.in_out[i] as number] === 0) i++
    while (a < list.length && direction !== 'both' && (list[a] as Arc).out !== (direction === 'out')) a++
    let type = -1
    let out = true
    let peer = 0
    if (o < o_end) {
      type = base.out_type[o] as number
      peer = base.out_dst[o] as number
    }
    if (i < i_end) {
      const in_type = base.out_type[base.in_out[i] as number] as number
      if (type < 0 || (rank[in_type] as number) < (rank[type] as number)) {
        type = in_type
        out = false
        peer = base.in_src[i] as number
      }
    }
    const arc = list[a]
    const from_list = arc !== undefined && (type < 0 || order(edges, arc, type, out, peer) < 0)
    if (from_list) {
      type = arc.type
      out = arc.out
      peer = arc.peer
    }
    if (type < 0) return
    if (from_list) a++
    else if (out) o++
    else i++
    if (after !== undefined && order(edges, after, type, out, peer) >= 0) continue
    if (!visit(type, out, peer)) return
  }
}
