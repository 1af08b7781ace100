import { offers } from '../../../db/catalog/providers.ts'
import { accessSql, conditions } from '../../../db/catalog/resources/lists.ts'
import type { ResourceRow } from '../../../db/catalog/rows.ts'
import type { Scope } from '../../shared/contracts/catalog/resources.ts'
import type { NeedsGraph, NeedsGraphQuery } from '../../shared/contracts/topology/capability-graphs.ts'
import type { CatalogDeps } from '../deps.ts'
import { type Placed, scopesOf } from '../read/access.ts'
import { awaitChange } from '../read/freshness.ts'
import { asOf, openPage, type Reader } from '../read/lists.ts'
import { assessNeeds, listNeeding, type Need, needing } from './needs.ts'
import { readOffers } from './offers.ts'

/** How many matching providers are drawn for one requirement. */
const MAX_DRAWN = 5

export const capabilityNode = (deps: CatalogDeps, capability_key: string) => ({
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

export const offersOf = (
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
