import { and, eq } from 'drizzle-orm'
import {
  countOpen,
  countOpenByRegion,
  countWaitingByGroup,
  listEndsByDay,
  sumPeriod,
} from '../../../db/operations/operations/overview.ts'
import { readAsOf } from '../../../db/operations/operations/read.ts'
import { operations } from '../../../db/operations/tables/index.ts'
import { allow } from '../../shared/auth/http.ts'
import { Overview, OverviewQuery } from '../../shared/contracts/overview/overview.ts'
import { routes } from '../../shared/http/routes.ts'
import type { Uses } from '../deps.ts'
import { insideSql, visibleSql } from '../policies/authority.ts'
import { listPlanned } from './planned.ts'

const DAY_MS = 86_400_000
const AHEAD_DAYS = 14

/** Past, running and planned work, as far as the caller may see it. */
export const overviewRoutes = routes<Uses<'db'>>('operations', (app, { deps }) => {
  app.get('/v1/overview', {
    operationId: 'getOverview',
    summary: 'Read the overview',
    description:
      'Returns outcomes by day compared with the previous period, open operations, waiting decisions by group, and plans for the next 14 days.',
    querystring: OverviewQuery,
    response: { 200: Overview },
    preHandler: allow('operation:read', { kind: 'R' }),
    handler: async ({ caller, query: { days: length = 14, environment, region_id } }) => {
      const visible = and(
        visibleSql(caller, operations),
        insideSql(region_id, operations),
        environment === undefined ? undefined : eq(operations.environment, environment),
      )
      const as_of = await readAsOf(deps.db)
      const now = Date.parse(as_of.time)
      const end = (Math.floor(now / DAY_MS) + 1) * DAY_MS
      const [before, period] = [2, 1].map((n) => spanOf(end - n * length * DAY_MS, end - (n - 1) * length * DAY_MS))
      if (!before || !period) throw new Error('there are two periods')
      const [open, regions, waiting, ends, sums, sums_before, planned] = await Promise.all([
        countOpen(deps.db, visible),
        countOpenByRegion(deps.db, visible),
        countWaitingByGroup(deps.db, visible),
        listEndsByDay(deps.db, visible, period),
        sumPeriod(deps.db, visible, period),
        sumPeriod(deps.db, visible, before),
        listPlanned(deps, caller, spanOf(now, now + AHEAD_DAYS * DAY_MS), { visible, environment, region_id }),
      ])
      const by_day = new Map(ends.map((row) => [row.day, row]))
      const days = Array.from({ length }, (_, at) => {
        const day = new Date(end - (length - at) * DAY_MS).toISOString().slice(0, 10)
        return by_day.get(day) ?? { day, succeeded: 0, failed: 0, cancelled: 0 }
      })
      return { now: open, regions, waiting, days, period: sums, before: sums_before, ...planned, as_of }
    },
  })
})

const spanOf = (from: number, to: number) => ({ from: new Date(from).toISOString(), to: new Date(to).toISOString() })
