import type { CapabilityGraph, CapabilityGraphQuery } from '../../shared/contracts/topology/capability-graphs.ts'
import type { CatalogDeps } from '../deps.ts'
import { scopesOf } from '../read/access.ts'
import { tooExpensive } from '../read/expensive.ts'
import { awaitChange } from '../read/freshness.ts'
import { asOf, type Reader } from '../read/lists.ts'
import { capabilityNode, offersOf } from './graphs.ts'
import { assessNeeds, listNeeding, type Need, needing } from './needs.ts'
import type { Candidate } from './offers.ts'

/** How many resources one overview may count. */
const MAX_COUNTED = 20_000

type Counted = { total: number; bound: number; satisfiable: number; unsatisfied: number }
const none = (): Counted => ({ total: 0, bound: 0, satisfiable: 0, unsatisfied: 0 })
const count = (into: Counted, state: Need['state']) => {
  into.total += 1
  into[state] += 1
}

/** Definitions and types, with the numbers of providers and of needs that are bound, could be bound, or cannot. */
export const readCapabilityGraph = async (
  deps: CatalogDeps,
  query: CapabilityGraphQuery,
  reader: Reader,
): Promise<CapabilityGraph> => {
  const { types } = deps.registry
  const { min_change } = query
  const where = needing(deps, query, reader)
  await awaitChange(deps, { ...(min_change !== undefined && { min_change }) }, reader)
  const rows = await listNeeding(deps, where, MAX_COUNTED + 1)
  if (rows.length > MAX_COUNTED) {
    throw tooExpensive(`More than ${MAX_COUNTED} resources match.`, 'Narrow by capability_key or region_id.')
  }
  const scopeOf = await scopesOf(deps.db, types, rows)
  const needs = await assessNeeds(deps, rows, scopeOf, query, reader)
  const own: Candidate[] = await offersOf(deps, rows, query.capability_key, reader)
  const shown = query.unsatisfied_only ? needs.filter(({ state }) => state === 'unsatisfied') : needs

  const definitions = new Map<
    string,
    { providers: { total: number; by_status: Record<string, number> }; requirements: Counted }
  >()
  const edges = new Map<string, CapabilityGraph['edges'][number]>()
  const keys =
    query.capability_key === undefined
      ? types.capabilities.map(({ capability_key }) => capability_key)
      : [query.capability_key]
  for (const key of keys) definitions.set(key, { providers: { total: 0, by_status: {} }, requirements: none() })
  const edgeOf = (type: 'provides' | 'requires', type_key: string, capability_key: string) => {
    const ends = { from: `type:${type_key}`, to: `capability:${capability_key}` }
    const id = `${type} ${ends.from} ${ends.to}`
    const edge = edges.get(id) ?? {
      type,
      ...ends,
      ...(type === 'provides' ? { providers: 0 } : { requirements: none() }),
    }
    edges.set(id, edge)
    return edge
  }
  for (const { view } of own) {
    const known = definitions.get(view.capability_key)
    if (!known) continue
    known.providers.total += 1
    known.providers.by_status[view.status] = (known.providers.by_status[view.status] ?? 0) + 1
    const edge = edgeOf('provides', view.type_key, view.capability_key)
    edge.providers = (edge.providers ?? 0) + 1
  }
  for (const { row, requirement, state } of shown) {
    const edge = edgeOf('requires', types.keyOf(row.type_id), requirement.capability_key)
    count(edge.requirements as Counted, state)
    const known = definitions.get(requirement.capability_key)
    if (known) count(known.requirements, state)
  }
  const drawn = [...definitions].filter(
    ([, { requirements }]) => !query.unsatisfied_only || requirements.unsatisfied > 0,
  )
  const lacking = new Set(drawn.map(([key]) => `capability:${key}`))
  const kept = [...edges.values()].filter(({ to }) => lacking.has(to)).sort(byEnds)
  const type_keys = [...new Set(kept.map(({ from }) => from.slice('type:'.length)))].sort()
  return {
    nodes: [
      ...drawn.map(([key, counts]) => ({ ...capabilityNode(deps, key), ...counts })),
      ...type_keys.map((type_key) => ({
        id: `type:${type_key}`,
        kind: 'type' as const,
        type_key,
        title: types.newest(type_key)?.title ?? type_key,
      })),
    ],
    edges: kept,
    as_of: await asOf(deps.db, deps),
  }
}

const byEnds = (a: { type: string; from: string; to: string }, b: typeof a): number =>
  `${a.to} ${a.type} ${a.from}` < `${b.to} ${b.type} ${b.from}` ? -1 : 1
