import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { ResourceParams } from '../shared/contracts/catalog/common.ts'
import { HealthView } from '../shared/contracts/catalog/health.ts'
import { errorReplies } from '../shared/http.ts'
import type { CatalogDeps } from './deps.ts'
import { readHealth } from './reads.service.ts'
import type { Side } from './sides.ts'

/** Health of one resource. */
export const healthRoutes: FastifyPluginAsyncTypebox<{ deps: CatalogDeps; side: Side }> = async (
  app,
  { deps, side },
) => {
  app.get(
    side.path('/v1/resources/:resource_id/health'),
    {
      schema: {
        summary: 'Read the health of a resource',
        description: 'Own health now and the checks it follows from; checks that ran out no longer count.',
        tags: side.tags,
        params: ResourceParams,
        response: { 200: HealthView, ...errorReplies },
      },
      preHandler: side.guard(),
    },
    (req) => readHealth(deps, req.params.resource_id, side.reader(req)),
  )
}
