import { and, eq, sql } from 'drizzle-orm'
import { listExpiring } from '../../../db/operations/operations/expiring.ts'
import { readAsOf } from '../../../db/operations/operations/read.ts'
import { listOpenFailures, listWaitingPatches } from '../../../db/operations/operations/waiting.ts'
import { intents, operations } from '../../../db/operations/tables/index.ts'
import { allow } from '../../shared/auth/http.ts'
import { Waiting, WaitingQuery } from '../../shared/contracts/operations/waiting.ts'
import { routes } from '../../shared/http/routes.ts'
import type { Uses } from '../deps.ts'
import { aloneBy } from '../patches/bulk.ts'
import { quorumOf } from '../patches/view.ts'
import { insideSql, visibleSql } from '../policies/authority.ts'
import { decidableBy, mendableBy, patchDecidableBy } from '../policies/mine.ts'

/** Work that waits for a person besides gates. */
export const waitingRoutes = routes<Uses<'config' | 'db'>>('gates', (app, { deps }) => {
  app.get('/v1/waiting', {
    operationId: 'listWaiting',
    summary: 'List waiting patches, failures and deadlines',
    description:
      'Lists patches that await approval and operations held by a failure or paused by drift of the catalog, those that wait longest first, and what is about to expire, nearest first. At most 100 of each.',
    querystring: WaitingQuery,
    response: { 200: Waiting },
    preHandler: allow('operation:read', { kind: 'R' }),
    handler: async ({ caller, query }) => {
      const { environment, region_id } = query
      const visible = and(
        visibleSql(caller, operations),
        insideSql(region_id, operations),
        environment === undefined ? undefined : eq(operations.environment, environment),
      )
      const only_mine = query.for === 'me'
      const planned = and(
        visibleSql(caller, intents),
        insideSql(region_id, intents),
        environment === undefined ? undefined : sql`${intents.labels} ->> 'environment' = ${environment}`,
      )
      const [open, failures, expiring, as_of] = await Promise.all([
        listWaitingPatches(deps.db, { visible, mine: patchDecidableBy(caller), only_mine }),
        listOpenFailures(deps.db, { visible, mine: mendableBy(caller), only_mine }),
        listExpiring(deps.db, {
          ...{ user_id: caller.user_id, visible, planned },
          ...{ decidable: decidableBy(caller), only_mine },
        }),
        readAsOf(deps.db),
      ])
      const most = deps.config.OPERATIONS__GATES__BULK_APPROVE
      const patches = open.map(({ required, risk_level, ...patch }) => ({
        ...patch,
        quorum: quorumOf(required),
        alone: {
          approve: aloneBy(required, risk_level, 'approve', most),
          reject: aloneBy(required, risk_level, 'reject', most),
        },
      }))
      return { patches, failures, expiring, as_of }
    },
  })
})
