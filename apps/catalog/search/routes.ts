import { SearchQuery, SearchResult } from '../../shared/contracts/topology/search.ts'
import { routes } from '../../shared/http/routes.ts'
import type { CatalogDeps } from '../deps.ts'
import type { Side } from '../read/sides.ts'
import { readSearch } from './read.ts'

/** Search over all resources. */
export const searchRoutes = routes<CatalogDeps, { side: Side }>('catalog', (app, { deps, side }) => {
  app.get(side.path('/v1/search'), {
    operationId: 'searchResources',
    summary: 'Search resources',
    description:
      'Finds resources by words in their names, labels, owners, types, relations, states and annotations, best match first. Example: ?q=web eu1 prod',
    querystring: SearchQuery,
    response: { 200: SearchResult },
    preHandler: side.guard(),
    handler: (req) => readSearch(deps, req.query, side.reader(req)),
  })
})
