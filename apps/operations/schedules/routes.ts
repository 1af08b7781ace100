import { inArray } from 'drizzle-orm'
import Type from 'typebox'
import { readAsOf } from '../../../db/operations/operations/read.ts'
import { listRuns, listSchedules } from '../../../db/operations/plans/schedules.ts'
import { schedules } from '../../../db/operations/tables/index.ts'
import { allow } from '../../shared/auth/http.ts'
import { DryRunReply } from '../../shared/contracts/operations/common.ts'
import {
  ScheduleBody,
  ScheduleChange,
  ScheduleList,
  ScheduleListQuery,
  ScheduleParams,
  ScheduleView,
} from '../../shared/contracts/operations/schedules.ts'
import { CommandHeaders, type Router, routes, sendStored } from '../../shared/http/routes.ts'
import { mutationOf } from '../command/mutate.ts'
import type { Uses } from '../deps.ts'
import { visibleSql } from '../policies/authority.ts'
import { changeSchedule, createSchedule, readSchedule, rowOf, runOf } from './commands.ts'

type Deps = Uses<'clock' | 'config' | 'db' | 'keys' | 'library' | 'pages' | 'projection'>

/** Schedules: intents that are created at set times (operations.md 3.6). */
export const schedulesRoutes = routes<Deps>('schedules', (app, { deps }) => {
  createRoute(app, deps)
  readRoutes(app, deps)
  changeRoute(
    app,
    deps,
    'pause',
    'pauseSchedule',
    'Pause a schedule',
    'No further run begins by itself; running operations continue, and its owner may still run it.',
  )
  changeRoute(app, deps, 'resume', 'resumeSchedule', 'Resume a schedule', 'It continues with its next run.')
  changeRoute(app, deps, 'run', 'runSchedule', 'Run a schedule now', 'Starts an extra run, with the same checks.')
  changeRoute(app, deps, 'end', 'endSchedule', 'End a schedule', 'Ends it for good; its runs stay readable.')
})

const createRoute = (app: Router, deps: Deps) =>
  app.post('/v1/schedules', {
    operationId: 'createSchedule',
    summary: 'Schedule an intent',
    description:
      'Creates and plans the intent at each time. With `proceed: start` the plan starts automatically; its gates still ask people. It acts with the rights that you hold at that time. A run is skipped while the previous one is still running.',
    headers: CommandHeaders,
    'x-reply-headers': ['location'],
    body: ScheduleBody,
    response: { 201: ScheduleView, 200: DryRunReply },
    preHandler: allow('intent:create', { kind: 'W' }),
    handler: async (req, reply) => sendStored(reply, await createSchedule(deps, mutationOf(deps, req), req.body)),
  })

const readRoutes = (app: Router, deps: Deps) => {
  app.get('/v1/schedules', {
    operationId: 'listSchedules',
    summary: 'List schedules',
    description: 'Schedules that the caller may see, newest first.',
    querystring: ScheduleListQuery,
    response: { 200: ScheduleList },
    preHandler: allow('operation:read', { kind: 'R' }),
    handler: async (req) => {
      const { status, page_size = 50, page_token } = req.query
      const list = { route: 'schedules', status, user: req.caller.user_id }
      const where = [visibleSql(req.caller, schedules), status && inArray(schedules.status, status)]
      const after = deps.pages.after(page_token, list)
      const rows = await listSchedules(deps.db, { where, after, limit: page_size + 1 })
      const page = deps.pages.cut(rows, page_size, list, (row) => [row.created_at, row.schedule_id])
      const ids = page.items.map(({ schedule_id }) => schedule_id)
      const last = new Map((await listRuns(deps.db, ids, 1)).map((run) => [run.schedule_id, runOf(run)]))
      return {
        ...page,
        items: page.items.map((row) => rowOf(row, last.get(row.schedule_id))),
        as_of: await readAsOf(deps.db),
      }
    },
  })
  app.get('/v1/schedules/:schedule_id', {
    operationId: 'getSchedule',
    summary: 'Read a schedule',
    description: 'Returns one schedule with its intent, its next times and its last runs.',
    params: ScheduleParams,
    response: { 200: ScheduleView },
    preHandler: allow('operation:read', { kind: 'R' }),
    handler: (req) => readSchedule(deps, deps.db, req.caller, req.params.schedule_id),
  })
}

const changeRoute = (
  app: Router,
  deps: Deps,
  act: 'pause' | 'resume' | 'run' | 'end',
  operationId: string,
  summary: string,
  description: string,
) =>
  app.post(`/v1/schedules/:schedule_id/${act}`, {
    operationId,
    summary,
    description,
    params: ScheduleParams,
    headers: CommandHeaders,
    body: ScheduleChange,
    response: { 200: Type.Union([ScheduleView, DryRunReply]) },
    preHandler: allow(act === 'run' || act === 'resume' ? 'intent:create' : ['intent:create', 'operation:control'], {
      kind: act === 'pause' || act === 'end' ? 'S' : 'W',
    }),
    handler: async (req, reply) => {
      const { schedule_id } = req.params
      return sendStored(
        reply,
        await changeSchedule(deps, mutationOf(deps, req), { schedule_id, act, reason: req.body.reason }),
      )
    },
  })
