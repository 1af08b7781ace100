import { type SQL, sql } from 'drizzle-orm'
import { listDeadlines, type Span } from '../../../db/operations/operations/overview.ts'
import { listSchedules } from '../../../db/operations/plans/schedules.ts'
import { schedules } from '../../../db/operations/tables/index.ts'
import type { PlannedTick } from '../../shared/contracts/overview/overview.ts'
import type { Uses } from '../deps.ts'
import { insideSql, type Viewer, visibleSql } from '../policies/authority.ts'
import { nextTimes } from '../schedules/when.ts'

/** How many entries one answer lists, and how many schedules and times of each it reads. */
const MOST = 200
const MOST_SCHEDULES = 100
const MOST_TIMES = 28

/** `visible`: the operations that count. Schedules have their own environment and targets. */
type Where = { visible: SQL | undefined; environment: string | undefined; region_id: string | undefined }

/** Returns runs of schedules and deadlines in a future period, earliest first, and whether there are more. */
export const listPlanned = async (
  { db }: Uses<'db'>,
  viewer: Viewer,
  span: Span,
  { visible, environment, region_id }: Where,
): Promise<{ planned: PlannedTick[]; planned_more: boolean }> => {
  const due = sql`${schedules.next_at} < ${span.to}::timestamptz`
  const where = [
    visibleSql(viewer, schedules),
    insideSql(region_id, schedules),
    environment === undefined ? undefined : sql`${schedules.intent} #>> '{labels,environment}' = ${environment}`,
    sql`${schedules.status} = 'active'`,
    due,
  ]
  const [coming, deadlines] = await Promise.all([
    listSchedules(db, { where, after: undefined, limit: MOST_SCHEDULES + 1 }),
    listDeadlines(db, visible, span, MOST + 1),
  ])
  const runs = coming.slice(0, MOST_SCHEDULES).map((schedule) => runsOf(schedule, span))
  const ticks = [...runs.flat(), ...deadlines].sort((a, b) => a.at.localeCompare(b.at))
  const cut = coming.length > MOST_SCHEDULES || runs.some(({ length }) => length === MOST_TIMES)
  return { planned: ticks.slice(0, MOST), planned_more: cut || ticks.length > MOST }
}

type Schedule = Awaited<ReturnType<typeof listSchedules>>[number]
const runsOf = ({ schedule_id, when, created_at, intent }: Schedule, { from, to }: Span): PlannedTick[] =>
  nextTimes(when, Date.parse(created_at), Date.parse(from), MOST_TIMES)
    .filter((at) => at < Date.parse(to))
    .map((at) => ({
      ...{ at: new Date(at).toISOString(), kind: 'schedule' as const, title: intent.title },
      ...{ schedule_id, operation_id: null, gate_id: null },
    }))
