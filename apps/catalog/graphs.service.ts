import {
  getDegrees,
  getEdgesBetween,
  getNeighbours,
  getNodes,
  type NeighbourRow,
  type NodeRow,
  type Reach,
} from '../../db/catalog/graph.ts'
import { accessSql, conditions, listResources } from '../../db/catalog/lists.ts'
import type { Db, Tx } from '../../db/client.ts'
import type { Graph, GraphNode, GraphQuery } from '../shared/contracts/catalog/graphs.ts'
import { AppError, notFound } from '../shared/errors.ts'
import type { CatalogDeps } from './deps.ts'
import { relationshipId } from './documents.ts'
import { asOf, filterWhere, type Reader, valuesOf } from './lists.service.ts'
import type { Types } from './types.registry.ts'

const MAX_ROOTS = 20
const MAX_FILTER_ROOTS = 500
const MAX_DEPTH = 3
const MAX_FRONTIER = 1000

type Bounds = { depth: number; max_nodes: number; max_edges: number; fanout: number; direction: 'out' | 'in' | 'both' }
type Visit = { node: NodeRow; depth: number }

/**
 * A graph around some resources, breadth first by SQL, level by level, in one snapshot (catalog.md 7.2, 10). Every cut
 * says so: `truncated` names the bound, `frontier` the nodes with neighbours that are not shown.
 */
export const traverse = async (deps: CatalogDeps, query: GraphQuery, reader: Reader): Promise<Graph> => {
  const { types } = deps.registry
  const bounds = boundsOf(query, deps.config.graph_max_nodes)
  const reach = reachOf(types, query, reader)
  const roots = await rootIds(deps, query, reader)
  return deps.db.transaction(
    async (tx) => {
      const found = new Map((await getNodes(tx, roots, reach)).map((node) => [node.resource_id, node]))
      const missing = roots.find((id) => !found.has(id))
      if (missing !== undefined) throw notFound('resource', missing)
      const walked = await walk(
        tx,
        roots.map((id) => found.get(id) as NodeRow),
        bounds,
        reach,
        types,
      )
      const graph = await describe(tx, walked, bounds, reach, types)
      return { roots, ...graph, as_of: await asOf(tx, deps) }
    },
    { isolationLevel: 'repeatable read', accessMode: 'read only' },
  )
}

const boundsOf = (query: GraphQuery, max_nodes: number): Bounds => {
  const depth = query.depth ?? 2
  if (depth > MAX_DEPTH) {
    throw new AppError('validation_error', 'query_too_expensive', `Graphs reach to depth ${MAX_DEPTH}, not ${depth}.`, {
      status: 422,
      hint: 'Ask for less depth and go on from a node of the frontier.',
    })
  }
  return {
    depth,
    max_nodes: Math.min(query.max_nodes ?? 500, max_nodes),
    max_edges: query.max_edges ?? 2000,
    fanout: query.fanout ?? 200,
    direction: query.direction ?? 'both',
  }
}

const unknownType = (pointer: string, key: string) =>
  new AppError('validation_error', 'schema_violation', `${pointer} does not know ${key}.`, {
    violations: [{ pointer: `/querystring/${pointer}`, code: 'schema_violation', message: `does not know ${key}` }],
  })

const reachOf = (types: Types, query: GraphQuery, reader: Reader): Reach => {
  const relations = valuesOf(query.relationship_types)
  const node_types = valuesOf(query.node_types)
  const unknown = node_types?.find((key) => types.newest(key) === undefined)
  if (unknown) throw unknownType('node_types', unknown)
  const reltype_ids = relations?.map((key) => {
    const relation = types.relationship(key)
    if (!relation) throw unknownType('relationship_types', key)
    return relation.id
  })
  return {
    access: reader.access,
    topology_type_ids: types.topologyIds,
    reltype_ids: reltype_ids ?? null,
    type_ids: node_types ? types.idsOf(node_types) : null,
  }
}

const rootIds = async (deps: CatalogDeps, query: GraphQuery, reader: Reader): Promise<string[]> => {
  const ids = [...new Set(valuesOf(query.root_id) ?? [])]
  const tooMany = (most: number) =>
    new AppError('validation_error', 'too_many_roots', `A graph starts from at most ${most} resources here.`, {
      status: 422,
      hint: 'Name fewer roots, or narrow the filter.',
    })
  if (ids.length > MAX_ROOTS) throw tooMany(MAX_ROOTS)
  if (ids.length > 0) return ids
  if (query.filter === undefined) {
    throw new AppError('validation_error', 'root_required', 'A graph needs root_id or a filter to start from.', {
      hint: 'Send root_id=<resource id>, or a filter that selects at most 500 resources.',
    })
  }
  const { types } = deps.registry
  const where = [accessSql(reader.access, types.topologyIds), conditions.open, filterWhere(types, query.filter)]
  const sort = [{ key: 'resource_id' as const, descending: false }]
  const rows = await listResources(deps.db, { where, sort, after: undefined, limit: MAX_FILTER_ROOTS + 1 })
  if (rows.length > MAX_FILTER_ROOTS) throw tooMany(MAX_FILTER_ROOTS)
  return rows.map(({ resource_id }) => resource_id)
}

type Walked = { visits: Map<string, Visit>; truncated: { nodes: boolean; fanout: boolean } }

const walk = async (tx: Tx, roots: NodeRow[], bounds: Bounds, reach: Reach, types: Types): Promise<Walked> => {
  const visits = new Map<string, Visit>()
  const truncated = { nodes: false, fanout: false }
  for (const node of roots) visits.set(node.rid, { node, depth: 0 })
  let level = [...visits.keys()]
  for (let depth = 1; depth <= bounds.depth && level.length > 0; depth++) {
    const next: string[] = []
    for (const neighbour of await neighboursInOrder(tx, level, bounds, reach, types, truncated)) {
      if (visits.has(neighbour.rid)) continue
      if (visits.size >= bounds.max_nodes) {
        truncated.nodes = true
        break
      }
      visits.set(neighbour.rid, { node: neighbour, depth })
      next.push(neighbour.rid)
    }
    level = next
  }
  return { visits, truncated }
}

/** Order: position of the parent, relationship type key, out before in, row number of the peer. */
const neighboursInOrder = async (
  tx: Tx,
  level: string[],
  { direction, fanout }: Bounds,
  reach: Reach,
  types: Types,
  truncated: Walked['truncated'],
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
    if (n > fanout) truncated.fanout = true
    return n <= fanout
  })
}

const describe = async (
  db: Db | Tx,
  { visits, truncated }: Walked,
  bounds: Bounds,
  reach: Reach,
  types: Types,
): Promise<Omit<Graph, 'roots' | 'as_of'>> => {
  const rids = [...visits.keys()]
  const degrees = new Map((await getDegrees(db, rids, reach)).map((row) => [row.rid, row]))
  const between = await getEdgesBetween(db, rids, bounds.max_edges + 1, reach)
  const idOf = (rid: string) => visits.get(rid)?.node.resource_id ?? ''
  const edges = between.slice(0, bounds.max_edges)
  const shown = await shownEdges(db, rids, between, bounds, reach)
  const frontier = rids.flatMap((rid) => {
    const { out = 0, in: incoming = 0 } = degrees.get(rid) ?? {}
    const wanted = (bounds.direction === 'in' ? 0 : out) + (bounds.direction === 'out' ? 0 : incoming)
    const omitted = wanted - (shown.get(rid) ?? 0)
    return omitted > 0 ? [{ resource_id: idOf(rid), direction: bounds.direction, omitted, page_token: null }] : []
  })
  const nodes = [...visits.values()].map(({ node, depth }): GraphNode => {
    const { out = 0, in: incoming = 0 } = degrees.get(node.rid) ?? {}
    const { resource_id, name, lifecycle_status, health_status } = node
    const type_key = types.keyOf(node.type_id)
    return { resource_id, type_key, name, lifecycle_status, health_status, depth, degree: out + incoming }
  })
  const depths = new Map(nodes.map(({ resource_id, depth }) => [resource_id, depth]))
  const cutByDepth = frontier.some(({ resource_id }) => depths.get(resource_id) === bounds.depth)
  return {
    nodes,
    edges: edges.map((edge) => ({
      relationship_id: relationshipId(edge.rel_no),
      type_key: types.relationshipById(edge.reltype_id)?.type_key ?? '',
      from: idOf(edge.src),
      to: idOf(edge.dst),
    })),
    truncated: { ...truncated, edges: between.length > bounds.max_edges, depth: cutByDepth },
    frontier: frontier.slice(0, MAX_FRONTIER),
    frontier_omitted: Math.max(0, frontier.length - MAX_FRONTIER),
  }
}

/** How many edges of each node lead to a node that is shown, in the asked direction. */
const shownEdges = async (
  db: Db | Tx,
  rids: string[],
  between: Awaited<ReturnType<typeof getEdgesBetween>>,
  { direction, max_edges }: Bounds,
  reach: Reach,
): Promise<Map<string, number>> => {
  // Cut edges still lead to shown nodes: only missing neighbours make a frontier.
  const all = between.length > max_edges ? await getEdgesBetween(db, rids, 10_000_000, reach) : between
  const shown = new Map<string, number>()
  const add = (rid: string) => shown.set(rid, (shown.get(rid) ?? 0) + 1)
  for (const { src, dst } of all) {
    if (direction !== 'in') add(src)
    if (direction !== 'out') add(dst)
  }
  return shown
}
