import { ResourceParams } from '../../shared/contracts/catalog/common.ts'
import { Difference, DifferenceQuery } from '../../shared/contracts/topology/difference.ts'
import { routes } from '../../shared/http/routes.ts'
import type { CatalogDeps } from '../deps.ts'
import type { Side } from '../read/sides.ts'
import { readDifference } from './read.ts'

/** What differs between two times. */
export const differenceRoutes = routes<CatalogDeps, { side: Side }>('catalog', (app, { deps, side }) => {
  app.get(side.path('/v1/resources/:resource_id/difference'), {
    operationId: 'getDifference',
    summary: 'Compare two times',
    description:
      'Compares a resource and everything below it at two times: added, removed, changed and moved resources, with the fields that differ, by whom and by which operations. The same times always give the same answer. Example: ?from=2026-01-31T12:00:00Z',
    params: ResourceParams,
    querystring: DifferenceQuery,
    'x-errors': [410],
    response: { 200: Difference },
    preHandler: side.guard(),
    handler: (req) => readDifference(deps, req.params.resource_id, req.query, side.reader(req)),
  })
})
