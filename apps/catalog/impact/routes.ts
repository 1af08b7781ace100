import { ResourceParams } from '../../shared/contracts/catalog/common.ts'
import { Impact, ImpactQuery } from '../../shared/contracts/topology/impact.ts'
import { routes } from '../../shared/http/routes.ts'
import type { CatalogDeps } from '../deps.ts'
import type { Side } from '../read/sides.ts'
import { readImpact } from './read.ts'

/** The dependents of a resource. */
export const impactRoutes = routes<CatalogDeps, { side: Side }>('catalog', (app, { deps, side }) => {
  app.get(side.path('/v1/resources/:resource_id/impact'), {
    operationId: 'getImpact',
    summary: 'Read what depends on a resource',
    description:
      'Returns everything that would be affected if the resource failed, transitively: resources that are in it, hosted on it, depend on it, use its capabilities or have it as a member, each with a shortest path and its effect by the roll-up rules. With assume=gone or maintenance also the needs that it meets and what prevents its retirement. Example: ?assume=gone&limit=20',
    params: ResourceParams,
    querystring: ImpactQuery,
    response: { 200: Impact },
    preHandler: side.guard(),
    handler: (req) => readImpact(deps, req.params.resource_id, req.query, side.reader(req)),
  })
})
