import { countOffers } from '../../../db/catalog/providers.ts'
import {
  CapabilityDefinition,
  DefinitionList,
  DefinitionParams,
  DefinitionQuery,
  DefinitionsQuery,
  ProviderList,
  ProvidersQuery,
  ResourceCapabilities,
  ResourceCapabilitiesQuery,
} from '../../shared/contracts/catalog/capabilities.ts'
import { ResourceParams } from '../../shared/contracts/catalog/common.ts'
import { CapabilityGraph, CapabilityGraphQuery } from '../../shared/contracts/topology/capability-graphs.ts'
import { notFound } from '../../shared/errors.ts'
import { rowsFrom } from '../../shared/http/pages.ts'
import { type Router, routes } from '../../shared/http/routes.ts'
import type { CatalogDeps } from '../deps.ts'
import { drawingOfDefinitions, TEXT_TYPES } from '../drawing/formats.ts'
import { sendDrawn } from '../drawing/send.ts'
import type { StoredCapability } from '../packs/registry.ts'
import { awaitChange } from '../read/freshness.ts'
import { asOf, openPage, type Reader } from '../read/lists.ts'
import type { Side } from '../read/sides.ts'
import { readCapabilityGraph } from './overview.ts'
import { listProviders, readCapabilities } from './providers.ts'

/** Capability definitions, their providers, and what one resource provides and needs. */
export const capabilitiesRoutes = routes<CatalogDeps, { side: Side }>('catalog', (app, { deps, side }) => {
  definitionRoutes(app, deps, side)

  app.get(side.path('/v1/capabilities/graph'), {
    operationId: 'getCapabilityGraph',
    summary: 'Read the graph of capability definitions',
    description:
      'Returns definitions and the types that provide or require them, with counts of providers and of needs that are bound, satisfiable or unsatisfied. Example: ?capability_key=compute.slots',
    querystring: CapabilityGraphQuery,
    'x-errors': [404],
    'x-text-types': TEXT_TYPES,
    response: { 200: CapabilityGraph },
    preHandler: side.guard(),
    handler: async (req, reply) =>
      sendDrawn(reply, req.query, await readCapabilityGraph(deps, req.query, side.reader(req)), drawingOfDefinitions),
  })

  app.get(side.path('/v1/capabilities/providers'), {
    operationId: 'listCapabilityProviders',
    summary: 'List providers of capabilities',
    description:
      'Lists providers by priority and free capacity. attr.<name>=value, gte:n or lte:n filters by attributes; requirement_of by the needs of a requirement. Example: ?capability_key=compute.slots&attr.cpu_cores=gte:8&min_free=2&explain=true',
    querystring: ProvidersQuery,
    'x-errors': [404],
    response: { 200: ProviderList },
    preHandler: side.guard(),
    handler: (req) => listProviders(deps, req.query, side.reader(req)),
  })

  app.get(side.path('/v1/resources/:resource_id/capabilities'), {
    operationId: 'getResourceCapabilities',
    summary: 'Read the capabilities of a resource',
    description:
      'Returns the capabilities that it provides and, for each requirement, whether it is bound, satisfiable, or why not. Example: ?allow_degraded=true',
    params: ResourceParams,
    querystring: ResourceCapabilitiesQuery,
    response: { 200: ResourceCapabilities },
    preHandler: side.guard(),
    handler: (req) => readCapabilities(deps, req.params.resource_id, req.query, side.reader(req)),
  })
})

const definitionRoutes = (app: Router, deps: CatalogDeps, side: Side): void => {
  app.get(side.path('/v1/capabilities/definitions'), {
    operationId: 'listCapabilityDefinitions',
    summary: 'List capability definitions',
    description:
      'Lists the newest version of each definition, with counts of its providers by status and region. Example: ?category=compute',
    querystring: DefinitionsQuery,
    response: { 200: DefinitionList },
    preHandler: side.guard(),
    handler: async (req) => {
      const reader = side.reader(req)
      const { page_size, page_token, min_change, max_lag_ms, ...filters } = req.query
      const list = { route: 'definitions', ...filters }
      const { place, size, turn } = openPage(deps, req.query, list, reader)
      await awaitChange(deps, { ...(min_change !== undefined && { min_change }) }, reader)
      const { category, status, version } = filters
      const found = deps.registry.types.capabilities
        .filter((item) => category === undefined || item.category === category)
        .filter((item) => status === undefined || item.status === status)
        .filter((item) => version === undefined || item.version === version)
      const rows = rowsFrom(found, place, size, ({ capability_key: own }, [key = '']) =>
        own === key ? 0 : own < (key ?? '') ? -1 : 1,
      )
      const { items, ...tokens } = turn(rows, ({ capability_key }) => [capability_key])
      return { items: await countedDefinitions(deps, items, reader), ...tokens, as_of: await asOf(deps.db, deps) }
    },
  })

  app.get(side.path('/v1/capabilities/definitions/:capability_key'), {
    operationId: 'getCapabilityDefinition',
    summary: 'Read a capability definition',
    description:
      'Returns one version (by default the newest) with its attributes, matching rules and counts of providers. Example: ?version=1.0.0',
    params: DefinitionParams,
    querystring: DefinitionQuery,
    response: { 200: CapabilityDefinition },
    preHandler: side.guard(),
    handler: async (req) => {
      const { capability_key } = req.params
      const { version } = req.query
      const versions = deps.registry.types.capabilityVersions(capability_key)
      if (versions.length === 0) throw notFound('capability', capability_key)
      const definition = versions.find((item) => version === undefined || item.version === version)
      if (!definition) throw notFound('version', `${capability_key} ${version}`)
      const [counted] = await countedDefinitions(deps, [definition], side.reader(req))
      return counted as CapabilityDefinition
    },
  })
}

const countedDefinitions = async (deps: CatalogDeps, items: readonly StoredCapability[], { access }: Reader) => {
  const { types } = deps.registry
  const ids = items.map(({ id }) => id)
  const seen = { access, topology_ids: types.topologyIds, region_ids: [...types.levelIds.region_id] }
  const counts = Map.groupBy(
    await countOffers(deps.db, ids, seen, deps.clock.now().toISOString()),
    ({ capability_id }) => capability_id,
  )
  return items.map(({ id, ...definition }) => {
    const providers = { total: 0, by_status: {} as Record<string, number> }
    // A region's id may be a name that every object inherits.
    const regions = new Map<string, number>()
    for (const { status, region_id, n } of counts.get(id) ?? []) {
      providers.total += n
      providers.by_status[status] = (providers.by_status[status] ?? 0) + n
      if (region_id !== null) regions.set(region_id, (regions.get(region_id) ?? 0) + n)
    }
    const versions = types.capabilityVersions(definition.capability_key).map(({ version }) => version)
    return { ...definition, versions, providers: { ...providers, by_region: Object.fromEntries(regions) } }
  })
}
