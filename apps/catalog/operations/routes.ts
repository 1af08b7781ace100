import { countOperations, lastOperations } from '../../../db/catalog/operations.ts'
import { ResourceParams } from '../../shared/contracts/catalog/common.ts'
import { OperationsSummary } from '../../shared/contracts/catalog/operations-summary.ts'
import { routes } from '../../shared/http/routes.ts'
import type { CatalogDeps } from '../deps.ts'
import { timeOrNull } from '../read/documents.ts'
import { asOf } from '../read/lists.ts'
import type { Side } from '../read/sides.ts'
import { findVisible } from '../read/visible.ts'
import { indexMark } from './consumer.ts'

const LAST = 10

/** Operations that touched one resource: counts and the last ten, without their history. */
export const operationsSummaryRoutes = routes<CatalogDeps, { side: Side }>('catalog', (app, { deps, side }) => {
  app.get(side.path('/v1/resources/:resource_id/operations-summary'), {
    operationId: 'getOperationsSummary',
    summary: 'Summarize the operations of a resource',
    description:
      'Returns how many operations touched it, by status, and the last ten. Their history is at /v1/operations/{operation_id}.',
    params: ResourceParams,
    response: { 200: OperationsSummary },
    preHandler: side.guard(),
    handler: async (req) => {
      const { row } = await findVisible(deps, req.params.resource_id, side.reader(req))
      // Read first: what is applied meanwhile only makes the answer newer than it says.
      const mark = await indexMark(deps)
      const counts = await countOperations(deps.db, row.rid)
      const last = await lastOperations(deps.db, row.rid, LAST)
      return {
        counts: Object.fromEntries(counts.map(({ status, n }) => [status, n])),
        last: last.map((operation) => ({
          ...operation,
          started_at: timeOrNull(operation.started_at),
          ended_at: timeOrNull(operation.ended_at),
        })),
        as_of: { ...(await asOf(deps.db, deps, mark.pub_seq)), lag_ms: mark.lag_ms ?? 0 },
      }
    },
  })
})
