import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Graph, GraphQuery } from '../shared/contracts/catalog/graphs.ts'
import { errorReplies } from '../shared/http.ts'
import type { CatalogDeps } from './deps.ts'
import { traverse } from './graphs.service.ts'
import type { Side } from './sides.ts'

/** Graphs around resources. */
export const graphsRoutes: FastifyPluginAsyncTypebox<{ deps: CatalogDeps; side: Side }> = async (
  app,
  { deps, side },
) => {
  app.get(
    side.path('/v1/graphs/resources'),
    {
      schema: {
        summary: 'Read the graph around resources',
        description:
          'Breadth first from root_id (or what a filter selects), to depth 3. What is cut is named in truncated and frontier. Example: ?root_id=eu1-web-01&depth=2&relationship_types=depends_on',
        tags: side.tags,
        querystring: GraphQuery,
        response: { 200: Graph, ...errorReplies },
      },
      preHandler: side.guard(),
    },
    (req) => traverse(deps, req.query, side.reader(req)),
  )
}
