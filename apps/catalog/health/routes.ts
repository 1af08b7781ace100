import { ResourceParams } from '../../shared/contracts/catalog/common.ts'
import { HealthQuery, HealthView } from '../../shared/contracts/catalog/health.ts'
import { routes } from '../../shared/http/routes.ts'
import type { CatalogDeps } from '../deps.ts'
import type { Side } from '../read/sides.ts'
import { readHealth } from './read.ts'

export const healthRoutes = routes<CatalogDeps, { side: Side }>('catalog', (app, { deps, side }) => {
  app.get(side.path('/v1/resources/:resource_id/health'), {
    operationId: 'getResourceHealth',
    summary: 'Read the health of a resource',
    description:
      'Returns its own health with the checks behind it (expired ones no longer count), and the roll-up over its dependencies with the paths to its causes. Example: ?history_since=2026-01-31T12:00:00Z',
    params: ResourceParams,
    querystring: HealthQuery,
    response: { 200: HealthView },
    preHandler: side.guard(),
    handler: (req) => readHealth(deps, req.params.resource_id, req.query, side.reader(req)),
  })
})
