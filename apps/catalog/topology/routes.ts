import { conditions } from '../../../db/catalog/resources/lists.ts'
import {
  TopologyGraph,
  TopologyGraphQuery,
  TopologyList,
  TopologyQuery,
} from '../../shared/contracts/topology/topology.ts'
import { pluck } from '../../shared/data/pick.ts'
import { routes, sendPart } from '../../shared/http/routes.ts'
import type { CatalogDeps } from '../deps.ts'
import { LEVELS, type Level } from '../packs/registry.ts'
import { requireFresh } from '../read/freshness.ts'
import { listPage } from '../read/lists.ts'
import type { Side } from '../read/sides.ts'
import { countBelowEach, readTopologyGraph } from './read.ts'

const PLACES: { path: string; operationId: string; level: Level; noun: string }[] = [
  { path: '/v1/topology/regions', operationId: 'listRegions', level: 'region_id', noun: 'regions' },
  { path: '/v1/topology/datacenters', operationId: 'listDatacenters', level: 'datacenter_id', noun: 'data centers' },
  { path: '/v1/topology/layers', operationId: 'listLayers', level: 'layer_id', noun: 'layers' },
  { path: '/v1/topology/segments', operationId: 'listSegments', level: 'segment_id', noun: 'segments' },
]

/** Places with their content, as lists and as one graph. */
export const topologyRoutes = routes<CatalogDeps, { side: Side }>('catalog', (app, { deps, side }) => {
  app.get(side.path('/v1/topology/graph'), {
    operationId: 'getTopologyGraph',
    summary: 'Read the graph of places',
    description:
      'Returns regions, data centers, layers and segments with counts of their contents, their containment and the links between regions. Example: ?region_id=eu1',
    querystring: TopologyGraphQuery,
    response: { 200: TopologyGraph },
    preHandler: side.guard(),
    handler: (req) => readTopologyGraph(deps, req.query, side.reader(req)),
  })

  for (const { path, operationId, level, noun } of PLACES) {
    app.get(side.path(path), {
      operationId,
      summary: `List ${noun}`,
      description: `Resources of type ${LEVELS[level]}, each with counts of the visible resources below it. Example: ?label=env=prod`,
      querystring: TopologyQuery,
      response: { 200: TopologyList },
      preHandler: side.guard(),
      handler: async (req, reply) => {
        const { types } = deps.registry
        const reader = side.reader(req)
        const fixed = [conditions.types([...types.levelIds[level]])]
        await requireFresh(deps, req.query, reader)
        const { rows, items, selected, ...page } = await listPage(deps, path, req.query, reader, fixed)
        const { countOf, as_of } = await countBelowEach(deps, pluck(rows, 'rid'), reader.access)
        const places = items.map((item, index) => ({ ...item, counts: countOf(rows[index]?.rid ?? '') }))
        const list = { items: places, ...page, as_of }
        return selected ? sendPart(reply, list) : list
      },
    })
  }
})
