import type { Affected, AffectedQuery } from '../../shared/contracts/catalog/affected.ts'
import type { Uses } from '../deps.ts'
import { type HealthOf, healthIn } from '../drawing/late.ts'
import type { Store } from '../graph/store.ts'
import type { Types } from '../packs/registry.ts'
import { graphMissing } from '../read/freshness.ts'
import { MAX_DISTANCE, MAX_VISITED, walkImpact } from './walk.ts'

const GROUPS = 50
const NEAREST = 5

/**
 * The resources that depend on some resources together, for plans. Returns only counts and the names of the nearest;
 * who may see a name is decided where the plan is shown. Throws `graph_warming` while the graph is loading.
 */
export const readAffected = async (
  deps: Uses<'db' | 'clock' | 'graph' | 'registry' | 'config'>,
  { resource_ids }: AffectedQuery,
): Promise<{ affected: Affected | null }> => {
  if (!deps.graph.enabled) return { affected: null }
  const store = deps.graph.store()
  if (!store) throw graphMissing(deps, 'Impact', '')
  const { types } = deps.registry
  const healthOf = await healthIn(deps, store)
  store.rankTypes(types)
  const roots = resource_ids.map((id) => store.ridOf(id)).filter((rid) => rid !== undefined && store.isOpen(rid))
  const limits = { max_distance: MAX_DISTANCE, max_visited: MAX_VISITED }
  const { affected, truncated } = walkImpact(store, types, roots as number[], limits)
  return {
    affected: {
      total: affected.length,
      at_least: truncated,
      unhealthy: affected.filter(({ effect }) => effect === 'unhealthy').length,
      groups: groupsOf(store, types, affected, healthOf),
      watermark: store.watermark,
    },
  }
}

/** Groups by type and health, largest first. The walk is nearest-first, so a group's first members are its nearest. */
const groupsOf = (
  store: Store,
  types: Types,
  affected: ReturnType<typeof walkImpact>['affected'],
  healthOf: HealthOf,
) => {
  const groups = [...Map.groupBy(affected, ({ rid }) => `${types.keyOf(store.typeOf(rid))} ${healthOf(rid)}`)]
  return groups
    .map(([key, all]) => {
      const [type_key = '', health_status] = key.split(' ')
      return {
        type_key,
        health_status: health_status as Affected['groups'][number]['health_status'],
        count: all.length,
        unhealthy: all.filter(({ effect }) => effect === 'unhealthy').length,
        nearest: all.slice(0, NEAREST).map(({ rid }) => ({ resource_id: store.idOf(rid), name: store.nameOf(rid) })),
      }
    })
    .sort(
      (a, b) => b.count - a.count || (`${a.type_key} ${a.health_status}` < `${b.type_key} ${b.health_status}` ? -1 : 1),
    )
    .slice(0, GROUPS)
}
