import { getEdgesBetween } from '../../../db/catalog/relationships/graph.ts'
import { lateHealth } from '../../../db/catalog/resources/health-now.ts'
import { accessSql, conditions, countBelow, type ListRow, listResources } from '../../../db/catalog/resources/lists.ts'
import type { TopologyGraph, TopologyGraphQuery } from '../../shared/contracts/topology/topology.ts'
import type { CatalogDeps } from '../deps.ts'
import type { Store } from '../graph/store.ts'
import { LEVELS, type Level } from '../packs/registry.ts'
import type { Access, Limit } from '../read/access.ts'
import { relationshipId } from '../read/documents.ts'
import { requireFresh } from '../read/freshness.ts'
import { withHealth } from '../read/health.ts'
import { affordable, asOf, type Reader } from '../read/lists.ts'

const MAX_EDGES = 20_000

/** Places from the outermost to the innermost, each level by id, with counts and the edges between them. */
export const readTopologyGraph = async (
  deps: CatalogDeps,
  { region_id, max_nodes = 500, ...freshness }: TopologyGraphQuery,
  { access, name }: Reader,
): Promise<TopologyGraph> => {
  const { types } = deps.registry
  await requireFresh(deps, freshness, { access, name })
  const { topologyIds: topology_type_ids, levelIds } = types
  const shown = [accessSql(access, topology_type_ids), conditions.open]
  if (region_id !== undefined) shown.push(conditions.below(region_id, [...levelIds.region_id]))
  const now = deps.clock.now()
  const places: ListRow[] = []
  for (const level of Object.keys(LEVELS) as Level[]) {
    const limit = max_nodes + 1 - places.length
    if (limit <= 0) break
    const where = [...shown, conditions.types([...levelIds[level]])]
    const sort = [{ key: 'resource_id' as const, descending: false }]
    places.push(...(await listResources(deps.db, { where, sort, now, after: undefined, limit })))
  }
  const rows = await withHealth(deps.db, places.slice(0, max_nodes), now)
  const rids = rows.map(({ rid }) => rid)
  const ids = new Map(rows.map(({ rid, resource_id }) => [rid, resource_id]))
  const drawn = ['contained_in', 'connects_to'].flatMap((key) => types.relationship(key)?.id ?? [])
  const reach = { access, topology_type_ids, reltype_ids: drawn, type_ids: null, now }
  const { countOf, as_of } = await countBelowEach(deps, rids, access)
  const edges = await getEdgesBetween(deps.db, rids, MAX_EDGES + 1, reach)
  return {
    nodes: rows.map(({ rid, resource_id, type_id, name, lifecycle_status, health_status }) => {
      const counts = countOf(rid)
      return { resource_id, type_key: types.keyOf(type_id), name, lifecycle_status, health_status, counts }
    }),
    edges: edges
      .slice(0, MAX_EDGES)
      .map(({ rel_no, reltype_id, src, dst }) => ({
        relationship_id: relationshipId(rel_no),
        type_key: types.relationshipById(reltype_id)?.type_key ?? '',
        from: ids.get(src) ?? '',
        to: ids.get(dst) ?? '',
      })),
    truncated: { nodes: places.length > max_nodes, edges: edges.length > MAX_EDGES },
    as_of,
  }
}

type Counts = { resources: number; by_health: Record<string, number>; by_lifecycle: Record<string, number> }
const none = (): Counts => ({ resources: 0, by_health: {}, by_lifecycle: {} })
const addTo = (counts: Counts, health_status: string, lifecycle_status: string, n: number): void => {
  counts.resources += n
  counts.by_health[health_status] = (counts.by_health[health_status] ?? 0) + n
  counts.by_lifecycle[lifecycle_status] = (counts.by_lifecycle[lifecycle_status] ?? 0) + n
}

type Counted = { countOf: (rid: string) => Counts; as_of: { watermark: string; time: string; lag_ms: number } }

/**
 * The visible resources below each of these places, from the graph in memory, whose age `as_of` states. SQL counts them
 * while there is no graph, or for a place that the reader sees only partly.
 */
export const countBelowEach = async (deps: CatalogDeps, rids: readonly string[], access: Access): Promise<Counted> => {
  const { types } = deps.registry
  const store = deps.graph.store()
  const counts = new Map(rids.map((rid) => [rid, none()]))
  const rest: string[] = []
  const fresh = await asOf(deps.db, deps)
  const now = deps.clock.now()
  const late = await lateHealth(deps.db, now)
  for (const [rid, into] of counts)
    if (!store?.counts(types) || !addKnown(store, Number(rid), { access, late }, into)) rest.push(rid)
  // Read at the moment of counting, with no await since.
  const held = store && rest.length < rids.length ? { watermark: store.watermark, lag_ms: deps.graph.lag() } : {}
  for (const { rid, health_status, lifecycle_status, n } of rest.length > 0
    ? await affordable(countBelow(deps.db, rest, access, types.topologyIds, now))
    : [])
    addTo(counts.get(rid) as Counts, health_status, lifecycle_status, n)
  return { countOf: (rid) => counts.get(rid) ?? none(), as_of: { ...fresh, ...held } }
}

/** Adds a place's counts from memory. Returns false if the place is too new, or the reader sees only part of it. */
type Seeing = { access: Access; late: Awaited<ReturnType<typeof lateHealth>> }
const addKnown = (store: Store, place: number, { access, late }: Seeing, into: Counts): boolean => {
  if (!store.knows(place)) return false
  const type_ids = access === 'all' ? null : typesSeen(store, place, access)
  if (type_ids === undefined) return false
  store.eachCount(place, (type, lifecycle, health, n) => {
    if (type_ids === null || type_ids.has(type)) addTo(into, health, lifecycle, n)
  })
  for (const [rid, health] of late) {
    if (!store.knows(rid) || !store.isOpen(rid) || !isAbove(store, place, store.parentOf(rid))) continue
    if (type_ids !== null && !type_ids.has(store.typeOf(rid))) continue
    const [before, lifecycle] = [store.healthOf(rid), store.lifecycleOf(rid)]
    addTo(into, before, lifecycle, -1)
    addTo(into, health, lifecycle, 1)
    if (into.by_health[before] === 0) delete into.by_health[before]
  }
  return true
}

const isAbove = (store: Store, above: number, rid: number): boolean => {
  for (let at = rid; at !== 0; at = store.parentOf(at)) if (at === above) return true
  return false
}

/** The types fully visible below a place (null: all types); `undefined` if a limit names places below it. */
const typesSeen = (store: Store, place: number, limits: Limit[]): ReadonlySet<number> | null | undefined => {
  const seen = new Set<number>()
  let all = false
  for (const { place_ids, type_ids } of limits) {
    // Unknown places have nothing below them.
    const outside = place_ids
      .map((id) => store.ridOf(id))
      .filter((rid) => rid === undefined || !isAbove(store, rid, place))
    if (outside.some((rid) => rid === undefined || !isAbove(store, place, rid))) continue
    if (outside.length > 0) return undefined
    if (type_ids === null) all = true
    for (const id of type_ids ?? []) seen.add(id)
  }
  return all ? null : seen
}
