import { offers } from '../../../db/catalog/providers.ts'
import { accessSql, conditions } from '../../../db/catalog/resources/lists.ts'
import type { ResourceRow } from '../../../db/catalog/rows.ts'
import type { Scope } from '../../shared/contracts/catalog/resources.ts'
import type {
  CapabilityGraph,
  CapabilityGraphQuery,
  NeedsGraph,
  NeedsGraphQuery,
} from '../../shared/contracts/topology/capability-graphs.ts'
import type { CatalogDeps } from '../deps.ts'
import { type Placed, scopesOf } from '../read/access.ts'
import { tooExpensive } from '../read/expensive.ts'
import { awaitChange } from '../read/freshness.ts'
import { asOf, openPage, type Reader } from '../read/lists.ts'
import { assessNeeds, listNeeding, type Need, needing } from './needs.ts'
import { type Candidate, readOffers } from './offers.ts'

/** How many matching providers are drawn for one requirement. */
const MAX_DRAWN = 5
/** How many resources one overview may count. */
const MAX_COUNTED = 20_000

const capabilityNode = (deps: CatalogDeps, capability_key: string) => ({
  id: `capability:${capability_key}`,
  kind: 'capability' as const,
  capability_key,
  title: deps.registry.types.capabilityVersions(capability_key)[0]?.title ?? capability_key,
})

/**
 * One page of resources by id, with what they provide and need, and who meets each need or could (catalog.md 7.2).
 * Reads from truth. Resources of other pages are drawn if they meet a need of this page.
 */
export const readNeedsGraph = async (
  deps: CatalogDeps,
  query: NeedsGraphQuery,
  reader: Reader,
): Promise<NeedsGraph> => {
  const { page_size, page_token, min_change, max_lag_ms, format, ...filters } = query
  const list = { route: 'graphs/capabilities', ...filters }
  const { place, size, turn } = openPage(deps, query, list, reader)
  const where = needing(deps, query, reader)
  await awaitChange(deps, { ...(min_change !== undefined && { min_change }) }, reader)
  const rows = await listNeeding(deps, where, size + 1, place.key as string[] | undefined, place.back)
  const { items, ...tokens } = turn(rows, ({ resource_id }) => [resource_id])
  const scopeOf = await scopesOf(deps.db, deps.registry.types, items)
  const needs = await assessNeeds(deps, items, scopeOf, query, reader)
  const shown = query.unsatisfied_only ? needs.filter(({ state }) => state === 'unsatisfied') : needs
  const own = query.unsatisfied_only ? [] : await offersOf(deps, items, query.capability_key, reader)

  const nodes = new Map<string, NeedsGraph['nodes'][number]>()
  const edges: NeedsGraph['edges'] = []
  const add = (node: NeedsGraph['nodes'][number]) => void nodes.set(node.id, node)
  const lacking = new Set(shown.map(({ row }) => row.rid))
  for (const row of items) if (!query.unsatisfied_only || lacking.has(row.rid)) add(nodeOf(deps, row, scopeOf))
  for (const { view } of own) {
    add(capabilityNode(deps, view.capability_key))
    const { provider_id, status, free } = view
    const ends = { from: `resource:${view.resource_id}`, to: `capability:${view.capability_key}` }
    edges.push({ type: 'provides', ...ends, provider_id, status, free })
  }
  const peers = new Set<string>()
  for (const need of shown) {
    const { row, requirement, state, rejected, rejected_count } = need
    const id = `requirement:${row.resource_id}/${requirement.requirement_key}`
    add({
      id,
      kind: 'requirement',
      resource_id: row.resource_id,
      requirement,
      state,
      why_not: rejected,
      rejected_count,
    })
    edges.push({ type: 'requires', from: `resource:${row.resource_id}`, to: id })
    for (const edge of satisfiedBy(need)) {
      edges.push({ type: 'satisfied_by', from: id, ...edge })
      if (!nodes.has(edge.to)) peers.add(edge.to.slice('resource:'.length))
    }
  }
  for (const node of await peerNodes(
    deps,
    [...peers].filter((id) => !nodes.has(`resource:${id}`)),
    reader,
  ))
    add(node)
  return { nodes: [...nodes.values()], edges, ...tokens, as_of: await asOf(deps.db, deps) }
}

const nodeOf = (deps: CatalogDeps, row: ResourceRow, scopeOf: (row: Placed) => Scope) => {
  const { types } = deps.registry
  const { resource_id, name, lifecycle_status, health_status } = row
  const scope = scopeOf(row)
  const type_key = types.keyOf(row.type_id)
  return {
    id: `resource:${resource_id}`,
    kind: 'resource' as const,
    resource_id,
    type_key,
    name,
    lifecycle_status,
    health_status,
    scope,
  }
}

const satisfiedBy = ({ state, bound_to, providers }: Need) =>
  state === 'bound'
    ? bound_to.map(({ peer_id, properties: { provider_id } }) => ({
        to: `resource:${peer_id}`,
        bound: true,
        ...(typeof provider_id === 'string' && { provider_id }),
      }))
    : providers
        .slice(0, MAX_DRAWN)
        .map(({ resource_id, provider_id, status, free }) => ({
          to: `resource:${resource_id}`,
          bound: false,
          provider_id,
          status,
          free,
        }))

const peerNodes = async (deps: CatalogDeps, ids: string[], { access }: Reader) => {
  if (ids.length === 0) return []
  const { types } = deps.registry
  const where = [accessSql(access, types.topologyIds), conditions.ids(ids)]
  const rows = await listNeeding(deps, where, ids.length)
  const scopeOf = await scopesOf(deps.db, types, rows)
  return rows.map((row) => nodeOf(deps, row, scopeOf))
}

const offersOf = (
  deps: CatalogDeps,
  rows: readonly ResourceRow[],
  capability_key: string | undefined,
  { access }: Reader,
) => {
  const { types } = deps.registry
  const id = capability_key === undefined ? undefined : (types.capabilityVersions(capability_key)[0]?.id ?? -1)
  const seen = accessSql(access, types.topologyIds)
  const where = [offers.open, offers.ofAny(rows.map(({ rid }) => rid)), seen]
  return readOffers(deps, id === undefined ? where : [...where, offers.capability(id)])
}

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
