import { getNodes, type Reach } from '../../../db/catalog/relationships/graph.ts'
import { lateHealth } from '../../../db/catalog/resources/health-now.ts'
import { accessSql, conditions, lastPubSeq, listResources } from '../../../db/catalog/resources/lists.ts'
import { SNAPSHOT } from '../../../db/client.ts'
import type { Graph, GraphNode, GraphQuery } from '../../shared/contracts/topology/graphs.ts'
import { AppError, type CodeOf, notFound, wrongAt } from '../../shared/errors.ts'
import type { CatalogDeps } from '../deps.ts'
import { drawBySql } from '../drawing/oracle.ts'
import { seesOf } from '../drawing/sees.ts'
import { hopsBefore, readPlace, writePlace } from '../drawing/tokens.ts'
import { draw, drawOn, type Limits, type MemoryReach } from '../drawing/traverse.ts'
import type { Store } from '../graph/store.ts'
import { readRollUps } from '../health/causes.ts'
import type { Types } from '../packs/registry.ts'
import { relationshipId } from '../read/documents.ts'
import { awaitGraph, graphMissing, requireFresh } from '../read/freshness.ts'
import { affordable, asOf, filterWhere, type Reader, valuesOf } from '../read/lists.ts'
import { pastTime } from '../read/past.ts'

const MAX_ROOTS = 20
const MAX_FILTER_ROOTS = 500
/** How deep SQL goes while no graph is in memory: its time grows with the fan-out of every level. */
const MAX_SQL_DEPTH = 2
const MAX_FRONTIER = 1000

type Bounds = Limits & { direction: 'out' | 'in' | 'both' }
/** What a route requests: the caller's parameters, and those fixed by its path. */
export type GraphRequest = {
  route: string
  query: GraphQuery
  /** Relationship types fixed by the path, such as topology's; `undefined`: those of the query. */
  relationship_types?: readonly string[]
  /** What is drawn if no root is named. */
  default_roots?: { type_keys: readonly string[] }
}

/**
 * A graph around some resources (catalog.md 7.2, 10): from memory, or by SQL for the past and, to a small depth, while
 * the graph is loading. Every cut is reported: `truncated` names the bound, `frontier` the nodes with neighbors that
 * are not shown. `by` is for tests that compare the two.
 */
export const traverse = async (
  deps: CatalogDeps,
  request: GraphRequest,
  reader: Reader,
  by?: 'sql' | 'memory',
): Promise<Graph> => {
  const with_health = wantsHealth(request.query)
  const graph = await drawn(deps, request, reader, by)
  return with_health ? rolledUp(deps, graph) : graph
}

const wantsHealth = ({ include, at }: GraphQuery): boolean => {
  const names = valuesOf(include, 'include') ?? []
  const unknown = names.find((name) => name !== 'health')
  if (unknown !== undefined) throw refused('include', `does not know ${unknown}; it can be health`)
  if (names.length > 0 && at !== undefined)
    throw refused('include', 'cannot be combined with at: the roll-up has no history')
  return names.length > 0
}

const rolledUp = async (deps: CatalogDeps, graph: Graph): Promise<Graph> => {
  const ids = graph.nodes.map(({ resource_id }) => resource_id)
  const { statuses, visited, truncated } = await readRollUps(deps, ids)
  const nodes = graph.nodes.map((node) => ({ ...node, rollup_status: statuses.get(node.resource_id) ?? 'unknown' }))
  return { ...graph, nodes, rollup: { visited, truncated } }
}

const drawn = async (deps: CatalogDeps, request: GraphRequest, reader: Reader, by?: 'sql' | 'memory') => {
  const { query } = request
  const past = await pastOf(deps, query)
  const bounds = boundsOf(query, deps.config.graph_max_nodes)
  const reach = { ...reachOf(deps.registry.types, request, reader), past, now: deps.clock.now() }
  const store = past === undefined && by !== 'sql' ? deps.graph.store() : undefined
  await requireFresh(deps, query, reader, store !== undefined)
  const roots = await rootIds(deps, request, reader, bounds.max_nodes)
  if (store) return fromMemory(deps, store, request, reader, { roots, bounds, reach })
  if (query.page_token !== undefined) throw warming(deps, 'The continuation of a graph')
  if (past === undefined && by !== 'sql' && bounds.depth > MAX_SQL_DEPTH) {
    throw warming(deps, `A graph deeper than ${MAX_SQL_DEPTH} levels`)
  }
  return affordable(fromSql(deps, { roots, bounds, reach }))
}

const warming = (deps: CatalogDeps, what: string): AppError =>
  graphMissing(
    deps,
    what,
    `Request the present graph with a depth of at most ${MAX_SQL_DEPTH}, and continue from a node of its frontier.`,
  )

const boundsOf = (query: GraphQuery, max_nodes: number): Bounds => ({
  depth: query.depth ?? 2,
  max_nodes: Math.min(query.max_nodes ?? 500, max_nodes),
  max_edges: query.max_edges ?? 2000,
  fanout: query.fanout ?? 200,
  direction: query.direction ?? 'both',
})

const refused = (
  pointer: string,
  message: string,
  code: CodeOf<'validation_error'> = 'schema_violation',
  hint?: string,
) => wrongAt(`/querystring/${pointer}`, message, { code, detail: `${pointer} ${message}.`, ...(hint && { hint }) })

const pastOf = async (deps: CatalogDeps, { at, page_token, min_change, max_lag_ms }: GraphQuery) => {
  if (at === undefined) return undefined
  const beside = { page_token, min_change, max_lag_ms }
  for (const [name, value] of Object.entries(beside))
    if (value !== undefined) throw refused(name, 'cannot be combined with at: the past does not change')
  await pastTime(deps, at, deps.config.history_d)
  return { at, ended: [...deps.registry.types.ended] }
}

const reachOf = (
  types: Types,
  { query, relationship_types: fixed }: GraphRequest,
  reader: Reader,
): Omit<Reach, 'now'> => {
  const asked = valuesOf(query.relationship_types, 'relationship_types')
  const stray = fixed && asked?.find((key) => !fixed.includes(key))
  if (stray) throw refused('relationship_types', `does not know ${stray} here; it can be ${fixed.join(', ')}`)
  const node_types = valuesOf(query.node_types, 'node_types')
  const unknown = node_types?.find((key) => types.newest(key) === undefined)
  if (unknown) throw refused('node_types', `does not know ${unknown}`)
  const reltype_ids = (asked ?? fixed)?.map((key) => {
    const relation = types.relationship(key)
    if (!relation) throw refused('relationship_types', `does not know ${key}`)
    return relation.id
  })
  return {
    access: reader.access,
    topology_type_ids: types.topologyIds,
    reltype_ids: reltype_ids ?? null,
    type_ids: node_types ? types.idsOf(node_types) : null,
  }
}

const tooManyRoots = (most: number) =>
  new AppError('validation_error', 'too_many_roots', `This graph starts from at most ${most} resources.`)

const rootIds = async (
  deps: CatalogDeps,
  { query, default_roots }: GraphRequest,
  reader: Reader,
  max_nodes: number,
): Promise<string[]> => {
  const ids = [...new Set(valuesOf(query.root_id, 'root_id') ?? [])]
  if (ids.length > 0 && query.filter !== undefined)
    throw refused('filter', 'cannot be combined with root_id: send one of them')
  if (ids.length > Math.min(MAX_ROOTS, max_nodes)) throw tooManyRoots(Math.min(MAX_ROOTS, max_nodes))
  if (ids.length > 0) return ids
  const { types } = deps.registry
  const now = deps.clock.now()
  const selected =
    query.filter !== undefined
      ? filterWhere(types, query.filter, now)
      : default_roots && conditions.types(types.idsOf(default_roots.type_keys))
  if (!selected) {
    throw new AppError('validation_error', 'root_required', 'A graph needs root_id or a filter to start from.')
  }
  const most = Math.min(MAX_FILTER_ROOTS, max_nodes)
  const where = [accessSql(reader.access, types.topologyIds), conditions.open, selected]
  const sort = [{ key: 'resource_id' as const, descending: false }]
  const rows = await affordable(listResources(deps.db, { where, sort, now, after: undefined, limit: most + 1 }))
  if (rows.length > most) throw tooManyRoots(most)
  return rows.map(({ resource_id }) => resource_id)
}

type Asked = { roots: string[]; bounds: Bounds; reach: Reach }

const fromMemory = async (
  deps: CatalogDeps,
  known: Store,
  { route, query }: GraphRequest,
  reader: Reader,
  { roots, bounds, reach }: Asked,
): Promise<Graph> => {
  const { types } = deps.registry
  await waitForRoots(deps, known, roots, reach)
  const late = await lateHealth(deps.db, reach.now)
  // No await from here on: the answer shows one moment.
  const store = deps.graph.store() ?? known
  store.rankTypes(types)
  const sees = seesOf(store, reader.access, types)
  const memory: MemoryReach = { ...bounds, reltype_ids: reach.reltype_ids, type_ids: reach.type_ids, sees }
  const rids = roots.map((id) => visibleRid(store, id, sees))
  const { page_token, format: _, min_change: __, max_lag_ms: ___, include: ____, ...shape } = query
  const list = { route, ...shape }
  const { key } = deps.pages.place(page_token, list, reader.name)
  const tokenOf = deps.pages.writer(list, reader.name)
  const place = key && readPlace(key as string[])
  if (place) visibleRid(store, store.knows(place.rid) ? store.idOf(place.rid) : '', sees)
  const picture = place
    ? drawOn(store, rids, bounds, memory, { hops: hopsBefore(place), depth: place.depth })
    : draw(store, rids, bounds, memory)
  const open = picture.nodes.filter(({ omitted }) => omitted > 0)
  return {
    roots: place ? [store.idOf(place.rid)] : roots,
    nodes: picture.nodes.map(
      ({ rid, depth, degree }): GraphNode => ({
        resource_id: store.idOf(rid),
        type_key: types.keyOf(store.typeOf(rid)),
        name: store.nameOf(rid),
        lifecycle_status: store.lifecycleOf(rid),
        health_status: late.get(rid) ?? (store.healthOf(rid) as GraphNode['health_status']),
        depth,
        degree,
      }),
    ),
    edges: picture.edges.map(({ no, type, src, dst }) => ({
      relationship_id: relationshipId(String(no)),
      type_key: types.relationshipById(type)?.type_key ?? '',
      from: store.idOf(src),
      to: store.idOf(dst),
    })),
    truncated: truncatedOf(open, picture.edges_cut),
    frontier: open.slice(0, MAX_FRONTIER).map((node) => {
      const next = writePlace(place, picture.nodes, node)
      return {
        resource_id: store.idOf(node.rid),
        direction: bounds.direction,
        omitted: node.omitted,
        page_token: next ? tokenOf(next) : null,
      }
    }),
    frontier_omitted: Math.max(0, open.length - MAX_FRONTIER),
    as_of: { watermark: store.watermark, time: timeOf(deps), lag_ms: deps.graph.lag() },
  }
}

const timeOf = ({ clock }: CatalogDeps) => clock.now().toISOString().replace('Z', '000Z')

const visibleRid = (store: Store, id: string, sees: (rid: number) => boolean): number => {
  const rid = store.ridOf(id)
  if (rid === undefined || !store.isOpen(rid) || !sees(rid)) throw notFound('resource', id)
  return rid
}

/** Waits for roots that were just written, so that a log that lags does not cause a 404. */
const waitForRoots = async (deps: CatalogDeps, store: Store, roots: string[], reach: Reach): Promise<void> => {
  const unknown = roots.filter((id) => store.ridOf(id) === undefined)
  if (unknown.length === 0) return
  const there = new Set((await getNodes(deps.db, unknown, reach)).map(({ resource_id }) => resource_id))
  for (const id of unknown) {
    if (!there.has(id)) throw notFound('resource', id)
    await awaitGraph(deps, { change: { resource_id: id, version: 1 } })
  }
}

const fromSql = (deps: CatalogDeps, { roots, bounds, reach }: Asked): Promise<Graph> =>
  deps.db.transaction(async (tx) => {
    const { types } = deps.registry
    const picture = await drawBySql(tx, roots, bounds, reach, types)
    const open = picture.nodes.filter(({ omitted }) => omitted > 0)
    const ids = new Map(picture.nodes.map(({ row }) => [row.rid, row.resource_id]))
    return {
      roots,
      nodes: picture.nodes.map(({ row, depth, degree }): GraphNode => {
        const { resource_id, name, lifecycle_status, health_status } = row
        return { resource_id, type_key: types.keyOf(row.type_id), name, lifecycle_status, health_status, depth, degree }
      }),
      edges: picture.edges.map(({ no, type, src, dst }) => ({
        relationship_id: relationshipId(no),
        type_key: types.relationshipById(type)?.type_key ?? '',
        from: ids.get(src) ?? '',
        to: ids.get(dst) ?? '',
      })),
      truncated: truncatedOf(open, picture.edges_cut),
      frontier: open
        .slice(0, MAX_FRONTIER)
        .map(({ row, omitted }) => ({
          resource_id: row.resource_id,
          direction: bounds.direction,
          omitted,
          page_token: null,
        })),
      frontier_omitted: Math.max(0, open.length - MAX_FRONTIER),
      as_of: reach.past ? { watermark: await lastPubSeq(tx), time: timeOf(deps), lag_ms: 0 } : await asOf(tx, deps),
    }
  }, SNAPSHOT)

const truncatedOf = (open: { stop: 'depth' | 'nodes' | 'fanout' }[], edges: boolean): Graph['truncated'] => {
  const cut = new Set(open.map(({ stop }) => stop))
  return { nodes: cut.has('nodes'), edges, fanout: cut.has('fanout'), depth: cut.has('depth') }
}
