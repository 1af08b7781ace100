import { allow } from '../shared/auth/http.ts'
import { Me } from '../shared/contracts/operations/events.ts'
import { pick } from '../shared/data/pick.ts'
import { createReadiness } from '../shared/http/health.ts'
import { routes } from '../shared/http/routes.ts'
import type { Uses } from './deps.ts'
import { countsFor } from './policies/mine.ts'
import { checksOf } from './upkeep/health.ts'

const VERSION = '0.1.0'

/** Information about the caller: permissions, groups, and the number of waiting decisions. */
export const meRoutes = routes<Uses<'config' | 'db' | 'fence' | 'library' | 'nats' | 'pool'>>('me', (app, { deps }) => {
  const readiness = createReadiness(checksOf(deps))
  app.get('/v1/me', {
    operationId: 'getCaller',
    summary: 'Read what concerns the caller',
    description: 'Returns current permissions and groups, counts of waiting items, and parts that are not ready.',
    response: { 200: Me },
    preHandler: allow('self', { kind: 'R', machines: true }),
    handler: async (req) => {
      const { caller } = req
      const { OPERATIONS__TICKETS__URL: url, OPERATIONS__TICKETS__PATTERN: pattern } = deps.config
      const [counts, { checks }] = await Promise.all([countsFor(deps.db, caller), readiness()])
      return {
        ...pick(caller, 'user_id', 'username', 'roles'),
        permissions: [...caller.permissions].sort(),
        groups: [...caller.groups].sort(),
        counts,
        tickets: url === undefined ? null : { url, pattern },
        version: VERSION,
        degraded: Object.entries(checks).flatMap(([part, { ok }]) => (ok ? [] : [part])),
      }
    },
  })
})
