import { getEdgesBetween } from '../../db/catalog/graph.ts'
import {
  accessSql,
  conditions,
  countBelow,
  type ListRow,
  listResources,
  type TopologyCount,
} from '../../db/catalog/lists.ts'
import type { TopologyGraph, TopologyGraphQuery } from '../shared/contracts/catalog/topology.ts'
import type { CatalogDeps } from './deps.ts'
import { relationshipId } from './documents.ts'
import { awaitChange } from './freshness.ts'
import { affordable, asOf, type Reader } from './lists.service.ts'
import { LEVELS, type Level } from './types.registry.ts'

const MAX_EDGES = 20_000

/** Places from the outer to the inner ones, each level by id, with counts and the edges between them; from truth. */
export const readTopologyGraph = async (
  deps: CatalogDeps,
  { region_id, max_nodes = 500, min_change }: TopologyGraphQuery,
  { access, name }: Reader,
): Promise<TopologyGraph> => {
  const { types } = deps.registry
  await awaitChange(deps, { ...(min_change !== undefined && { min_change }) }, { access, name })
  const { topologyIds: topology_type_ids, levelIds } = types
  const shown = [accessSql(access, topology_type_ids), conditions.open]
  if (region_id !== undefined) shown.push(conditions.below(region_id, [...levelIds.region_id]))
  const places: ListRow[] = []
  for (const level of Object.keys(LEVELS) as Level[]) {
    const limit = max_nodes + 1 - places.length
    if (limit <= 0) break
    const where = [...shown, conditions.types([...levelIds[level]])]
    const sort = [{ key: 'resource_id' as const, descending: false }]
    places.push(...(await listResources(deps.db, { where, sort, after: undefined, limit })))
  }
  const rows = places.slice(0, max_nodes)
  const rids = rows.map(({ rid }) => rid)
  const ids = new Map(rows.map(({ rid, resource_id }) => [rid, resource_id]))
  const drawn = ['contained_in', 'connects_to'].flatMap((key) => types.relationship(key)?.id ?? [])
  const reach = { access, topology_type_ids, reltype_ids: drawn, type_ids: null }
  const counted = Map.groupBy(await affordable(countBelow(deps.db, rids, access, topology_type_ids)), ({ rid }) => rid)
  const edges = await getEdgesBetween(deps.db, rids, MAX_EDGES + 1, reach)
  return {
    nodes: rows.map(({ rid, resource_id, type_id, name, lifecycle_status, health_status }) => {
      const counts = countsOf(counted.get(rid) ?? [])
      return { resource_id, type_key: types.keyOf(type_id), name, lifecycle_status, health_status, counts }
    }),
    edges: edges.slice(0, MAX_EDGES).map(({ rel_no, reltype_id, src, dst }) => ({
      relationship_id: relationshipId(rel_no),
      type_key: types.relationshipById(reltype_id)?.type_key ?? '',
      from: ids.get(src) ?? '',
      to: ids.get(dst) ?? '',
    })),
    truncated: { nodes: places.length > max_nodes, edges: edges.length > MAX_EDGES },
    as_of: await asOf(deps.db, deps),
  }
}

export const countsOf = (rows: TopologyCount[]) => {
  const counts = { resources: 0, by_health: {} as Record<string, number>, by_lifecycle: {} as Record<string, number> }
  for (const { health_status, lifecycle_status, n } of rows) {
    counts.resources += n
    counts.by_health[health_status] = (counts.by_health[health_status] ?? 0) + n
    counts.by_lifecycle[lifecycle_status] = (counts.by_lifecycle[lifecycle_status] ?? 0) + n
  }
  return counts
}
