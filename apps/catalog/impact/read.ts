import type { Impact, ImpactItem, ImpactQuery } from '../../shared/contracts/topology/impact.ts'
import { notFound } from '../../shared/errors.ts'
import type { CatalogDeps } from '../deps.ts'
import { healthIn } from '../drawing/late.ts'
import { seesOf } from '../drawing/sees.ts'
import type { Store } from '../graph/store.ts'
import type { Types } from '../packs/registry.ts'
import { graphMissing, requireFresh } from '../read/freshness.ts'
import type { Reader } from '../read/lists.ts'
import { type Affected, MAX_DISTANCE, MAX_VISITED, walkImpact } from './walk.ts'
import { readWithout } from './without.ts'

const LIMIT = 100

/**
 * The transitive dependents of a resource, from the graph in memory (catalog.md 7.2). The walk passes through resources
 * that the reader may not see and counts them, but never names them. Throws `graph_warming` while the graph is loading.
 */
export const readImpact = async (
  deps: CatalogDeps,
  resource_id: string,
  { assume = 'unhealthy', max_distance = MAX_DISTANCE, limit = LIMIT, ...fresh }: ImpactQuery,
  reader: Reader,
): Promise<Impact> => {
  await requireFresh(deps, fresh, reader)
  const store = deps.graph.store()
  if (!store) throw graphMissing(deps, 'Impact', 'Its direct dependents are in /v1/graphs/resources with depth=1.')
  const { types } = deps.registry
  const healthOf = await healthIn(deps, store)
  store.rankTypes(types)
  const root = store.ridOf(resource_id)
  if (root === undefined || !store.isOpen(root) || !seesOf(store, reader.access, types)(root))
    throw notFound('resource', resource_id)
  const without = assume === 'unhealthy' ? null : await readWithout(deps, store, { rid: root, resource_id }, reader)
  // All that follows is one turn, because the store follows the log and the watermark is its own.
  const sees = seesOf(store, reader.access, types)
  // Maintenance passes on no health (catalog.md 6), so nobody's health changes.
  const roots = assume === 'maintenance' ? [] : [root]
  const { affected, truncated } = walkImpact(store, types, roots, { max_distance, max_visited: MAX_VISITED })
  const seen = affected.filter(({ rid }) => sees(rid))
  const items = seen.map((one) => ({ one, id: store.idOf(one.rid) })).sort(byEffect)
  const steps = new Map(affected.map((one) => [one.rid, one]))
  return {
    resource_id,
    without,
    items: items
      .slice(0, limit)
      .map(({ one, id }) => ({
        ...itemOf(store, types, one, id, pathOf(store, types, steps, one, sees)),
        health_status: healthOf(one.rid),
      })),
    counts: {
      total: affected.length,
      hidden: affected.length - seen.length,
      by_effect: {
        unhealthy: affected.filter(({ effect }) => effect === 'unhealthy').length,
        degraded: affected.filter(({ effect }) => effect === 'degraded').length,
      },
      by_type: countBy(seen, ({ rid }) => types.keyOf(store.typeOf(rid))),
      by_health: countBy(seen, ({ rid }) => healthOf(rid)),
    },
    truncated: { items: items.length > limit, visited: truncated },
    as_of: {
      watermark: store.watermark,
      time: deps.clock.now().toISOString().replace('Z', '000Z'),
      lag_ms: deps.graph.lag(),
    },
  }
}

type Named = { one: Affected; id: string }
const byEffect = (a: Named, b: Named): number =>
  Number(b.one.effect === 'unhealthy') - Number(a.one.effect === 'unhealthy') ||
  a.one.distance - b.one.distance ||
  (a.id < b.id ? -1 : 1)

const itemOf = (
  store: Store,
  types: Types,
  { rid, effect, distance }: Affected,
  resource_id: string,
  path: ImpactItem['path'],
): Omit<ImpactItem, 'health_status'> => ({
  resource_id,
  type_key: types.keyOf(store.typeOf(rid)),
  name: store.nameOf(rid),
  lifecycle_status: store.lifecycleOf(rid),
  effect,
  distance,
  path,
})

const pathOf = (
  store: Store,
  types: Types,
  steps: ReadonlyMap<number, Affected>,
  last: Affected,
  sees: (rid: number) => boolean,
): ImpactItem['path'] => {
  const path: ImpactItem['path'] = []
  for (let step: Affected | undefined = last; step; step = steps.get(step.from))
    path.unshift({
      relationship_type: types.relationshipById(step.relation)?.type_key ?? '',
      resource_id: sees(step.rid) ? store.idOf(step.rid) : null,
    })
  return path
}

const countBy = (items: readonly Affected[], keyOf: (one: Affected) => string): Record<string, number> => {
  const counts: Record<string, number> = {}
  for (const one of items) counts[keyOf(one)] = (counts[keyOf(one)] ?? 0) + 1
  return counts
}
