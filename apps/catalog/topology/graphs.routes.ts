import { NeedsGraph, NeedsGraphQuery } from '../../shared/contracts/topology/capability-graphs.ts'
import { Graph, GraphQuery as Query } from '../../shared/contracts/topology/graphs.ts'
import { routes } from '../../shared/http/routes.ts'
import { readNeedsGraph } from '../capabilities/graphs.ts'
import type { CatalogDeps } from '../deps.ts'
import { drawingOf, drawingOfNeeds, TEXT_TYPES } from '../drawing/formats.ts'
import { sendDrawn } from '../drawing/send.ts'
import { LEVELS } from '../packs/registry.ts'
import type { Side } from '../read/sides.ts'
import { type GraphRequest, traverse } from './graphs.ts'

const ROUTES: (Omit<GraphRequest, 'query'> & {
  path: string
  operationId: string
  summary: string
  description: string
})[] = [
  {
    path: '/v1/graphs/resources',
    operationId: 'traverseResources',
    route: 'graphs/resources',
    summary: 'Read the graph around resources',
    description:
      'Traverses breadth first from root_id (or from the resources that a filter selects). truncated and frontier name every cut; an entry of the frontier is continued by its page_token. A continuation knows the first graph and its own way, not the other continuations: skip nodes and edges that you have. If truncated.edges is true, raise max_edges or list the relationships of a node. Example: ?root_id=eu1-web-01&depth=2&relationship_types=depends_on',
  },
  {
    path: '/v1/graphs/topology',
    operationId: 'traverseTopology',
    route: 'graphs/topology',
    relationship_types: ['contained_in', 'connects_to'],
    default_roots: { type_keys: [LEVELS.region_id] },
    summary: 'Read the graph of places and their contents',
    description:
      'Like /v1/graphs/resources, over contained_in and connects_to; without root_id it starts from all regions. Example: ?root_id=eu1&depth=3',
  },
]

/** Graphs around resources. */
export const graphsRoutes = routes<CatalogDeps, { side: Side }>('catalog', (app, { deps, side }) => {
  for (const { path, operationId, summary, description, ...request } of ROUTES) {
    app.get(side.path(path), {
      operationId,
      summary,
      description,
      querystring: Query,
      'x-errors': [404],
      'x-text-types': TEXT_TYPES,
      response: { 200: Graph },
      preHandler: side.guard(),
      handler: async (req, reply) =>
        sendDrawn(
          reply,
          req.query,
          await traverse(deps, { ...request, query: req.query }, side.reader(req)),
          drawingOf,
        ),
    })
  }

  app.get(side.path('/v1/graphs/capabilities'), {
    operationId: 'getNeedsGraph',
    summary: 'Read the graph of capabilities between resources',
    description:
      'Returns a page of resources with their provided capabilities and their requirements (each a node with its state, its provider, or why no provider meets it). unsatisfied_only returns only unmet requirements. Example: ?region_id=eu1&unsatisfied_only=true',
    querystring: NeedsGraphQuery,
    'x-errors': [404],
    'x-text-types': TEXT_TYPES,
    response: { 200: NeedsGraph },
    preHandler: side.guard(),
    handler: async (req, reply) =>
      sendDrawn(reply, req.query, await readNeedsGraph(deps, req.query, side.reader(req)), drawingOfNeeds),
  })
})
