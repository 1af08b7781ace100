import { SearchQuery, SearchResult } from '../../shared/contracts/topology/search.ts'
import { errorReplies, type Routes } from '../../shared/http/app.ts'
import type { CatalogDeps } from '../deps.ts'
import type { Side } from '../read/sides.ts'
import { readSearch } from './read.ts'

/** Search over all resources. */
export const searchRoutes: Routes<CatalogDeps, { side: Side }> = async (app, { deps, side }) => {
  app.get(side.path('/v1/search'), {
    schema: {
      operationId: 'searchResources',
      summary: 'Search resources',
      description:
        'Finds resources by words in their names, labels, owners, types, relations, states and annotations, best match first. Example: ?q=web eu1 prod',
      tags: side.tags,
      querystring: SearchQuery,
      response: { 200: SearchResult, ...errorReplies },
    },
    preHandler: side.guard(),
    handler: (req) => readSearch(deps, req.query, side.reader(req)),
  })
}
