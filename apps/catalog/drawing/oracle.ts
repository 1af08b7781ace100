import {
  getCuts,
  getEdgesBetween,
  getNeighbours,
  getNodes,
  type NeighbourRow,
  type NodeRow,
  type Reach,
} from '../../../db/catalog/relationships/graph.ts'
import type { Tx } from '../../../db/client.ts'
import { notFound } from '../../shared/errors.ts'
import type { Types } from '../packs/registry.ts'
import type { Limits, Shown } from './traverse.ts'

/** A picture drawn from the tables: the same answer as from memory, computed by different code. */
export type SqlPicture = {
  nodes: (Omit<Shown, 'rid' | 'last'> & { row: NodeRow })[]
  edges: { no: string; type: number; src: string; dst: string }[]
  edges_cut: boolean
}

/**
 * Breadth-first search by SQL, level by level (catalog.md 10). The graph in memory is tested against it. It also serves
 * the past, and small depths while the graph is loading. Refuses roots that the caller cannot see.
 */
export const drawBySql = async (
  tx: Tx,
  roots: readonly string[],
  limits: Limits & { direction: 'out' | 'in' | 'both' },
  reach: Reach,
  types: Types,
): Promise<SqlPicture> => {
  const found = new Map((await getNodes(tx, roots, reach)).map((node) => [node.resource_id, node]))
  const missing = roots.find((id) => !found.has(id))
  if (missing !== undefined) throw notFound('resource', missing)
  const visits = new Map<string, { row: NodeRow; depth: number }>()
  for (const id of roots) {
    const row = found.get(id) as NodeRow
    visits.set(row.rid, { row, depth: 0 })
  }
  const full_at = await walk(tx, visits, limits, reach, types)
  const rids = [...visits.keys()]
  const cuts = new Map((await getCuts(tx, rids, limits.direction, reach)).map((row) => [row.rid, row]))
  const between = await getEdgesBetween(tx, rids, limits.max_edges + 1, reach)
  return {
    nodes: [...visits.values()].map(({ row, depth }, index) => {
      const { degree = 0, omitted = 0 } = cuts.get(row.rid) ?? {}
      const stop = depth >= limits.depth ? 'depth' : index >= full_at ? 'nodes' : 'fanout'
      return { row, depth, degree, omitted, stop }
    }),
    edges: between
      .slice(0, limits.max_edges)
      .map(({ rel_no, reltype_id, src, dst }) => ({ no: rel_no, type: reltype_id, src, dst })),
    edges_cut: between.length > limits.max_edges,
  }
}

/** Returns the index of the node at which the picture was full. */
const walk = async (
  tx: Tx,
  visits: Map<string, { row: NodeRow; depth: number }>,
  limits: Limits & { direction: 'out' | 'in' | 'both' },
  reach: Reach,
  types: Types,
): Promise<number> => {
  let level = [...visits.keys()]
  for (let depth = 1; depth <= limits.depth && level.length > 0; depth++) {
    const start = visits.size - level.length
    const place = new Map(level.map((rid, index) => [rid, start + index]))
    const next: string[] = []
    for (const neighbour of await neighboursInOrder(tx, level, limits, reach, types)) {
      if (visits.has(neighbour.rid)) continue
      if (visits.size >= limits.max_nodes) return place.get(neighbour.from_rid) as number
      visits.set(neighbour.rid, { row: neighbour, depth })
      next.push(neighbour.rid)
    }
    level = next
  }
  return Number.POSITIVE_INFINITY
}

/** Order: position of the parent, relationship type key, out before in, row number of the peer; `fanout` of each parent. */
const neighboursInOrder = async (
  tx: Tx,
  level: string[],
  { direction, fanout }: { direction: 'out' | 'in' | 'both'; fanout: number },
  reach: Reach,
  types: Types,
): Promise<NeighbourRow[]> => {
  const rows: NeighbourRow[] = []
  for (const out of [true, false]) {
    if (direction === (out ? 'in' : 'out')) continue
    rows.push(...(await getNeighbours(tx, level, out, fanout, reach)))
  }
  const position = new Map(level.map((rid, index) => [rid, index]))
  const keyOf = (row: NeighbourRow) => types.relationshipById(row.reltype_id)?.type_key ?? ''
  const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0)
  rows.sort(
    (a, b) =>
      (position.get(a.from_rid) ?? 0) - (position.get(b.from_rid) ?? 0) ||
      compare(keyOf(a), keyOf(b)) ||
      Number(b.out) - Number(a.out) ||
      Number(BigInt(a.rid) - BigInt(b.rid)),
  )
  const taken = new Map<string, number>()
  return rows.filter((row) => {
    const n = (taken.get(row.from_rid) ?? 0) + 1
    taken.set(row.from_rid, n)
    return n <= fanout
  })
}
