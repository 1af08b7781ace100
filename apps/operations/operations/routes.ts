import { and } from 'drizzle-orm'
import type { FastifyRequest } from 'fastify'
import Type from 'typebox'
import { getResource } from '../../../db/operations/history/tail.ts'
import { listOperations, readAsOf, sortKeyOf } from '../../../db/operations/operations/read.ts'
import { operations } from '../../../db/operations/tables/index.ts'
import type { Caller } from '../../shared/auth/caller.ts'
import { allow } from '../../shared/auth/http.ts'
import { DryRunReply, OperationParams } from '../../shared/contracts/operations/common.ts'
import {
  CancelBody,
  GraphQuery,
  Operation,
  OperationGraph,
  OperationList,
  OperationListQuery,
  OperationReply,
  PauseBody,
  ResourceOperationsQuery,
  ResumeBody,
  Rollback,
  RollbackQuery,
} from '../../shared/contracts/operations/operations.ts'
import { PlanParams, StartBody } from '../../shared/contracts/operations/plans.ts'
import { text } from '../../shared/contracts/shapes.ts'
import { notFound } from '../../shared/errors.ts'
import {
  CommandHeaders,
  ReadHeaders,
  type Router,
  routes,
  sendStored,
  VersionedHeaders,
} from '../../shared/http/routes.ts'
import { uuidv7 } from '../../shared/ids.ts'
import { commandOf } from '../command/command.ts'
import { unlessKnown } from '../command/reply.ts'
import { runCommand } from '../command/run.ts'
import type { CommandDeps, ReplanDeps, Uses } from '../deps.ts'
import { withoutHidden } from '../plans/leases.ts'
import { isOutdated, markStale } from '../plans/preview.ts'
import { insideSql, maySeeResource, visibleSql } from '../policies/authority.ts'
import { decidableBy } from '../policies/mine.ts'
import { cancelSteps, pauseSteps, resumeSteps } from './control.ts'
import { readGraph, readOperation, requireVisible } from './read.ts'
import { readRollback } from './rollback.ts'
import { startSteps } from './start.ts'

const read = allow('operation:read', { kind: 'R' })

/** What holds an operation up, as other rows have it when it is read. */
const MOVING = ['engine', 'executor', 'lease']

type Deps = CommandDeps & ReplanDeps & Uses<'pages'>

/** Operations: lists, one operation, its graph, and the commands on the whole operation. */
export const operationsRoutes = routes<Deps>('operations', (app, { deps }) => {
  readRoutes(app, deps)
  startRoute(app, deps)
  commandRoutes(app, deps)
})

const readRoutes = (app: Router, deps: Deps) => {
  app.get('/v1/operations', {
    operationId: 'listOperations',
    summary: 'List operations',
    description: 'Operations that the caller may see, newest first. Every filter narrows; arrays are alternatives.',
    querystring: OperationListQuery,
    response: { 200: OperationList },
    preHandler: read,
    handler: (req) => pageOfOperations(deps, req, req.query),
  })

  app.get('/v1/resources/:resource_id/operations', {
    operationId: 'listResourceOperations',
    summary: 'List the operations of a resource',
    description: 'Lists operations that target the resource or otherwise touch it.',
    params: Type.Object({ resource_id: text('eu1-web-01', { minLength: 1, maxLength: 128 }) }),
    querystring: ResourceOperationsQuery,
    response: { 200: OperationList },
    preHandler: read,
    handler: async (req) => {
      const { resource_id } = req.params
      const page = await pageOfOperations(deps, req, { ...req.query, resource_id })
      if (page.items.length === 0 && !(await isKnown(deps, req.caller, resource_id)))
        throw notFound('resource', resource_id)
      return page
    },
  })

  app.get('/v1/operations/:operation_id', {
    operationId: 'getOperation',
    summary: 'Read an operation',
    description:
      'Returns status, progress, open gates, pending commands, and the actions that the caller may take now. The ETag is `"<revision>-<change_seq>"`.',
    params: OperationParams,
    headers: ReadHeaders,
    'x-reply-headers': ['etag'],
    response: { 200: Operation, 304: Type.Null() },
    preHandler: read,
    handler: async (req, reply) => {
      const operation = await readOperation(deps, req.caller, req.params.operation_id)
      const { progress, blocked_on } = operation
      const moves = progress.running > 0 || blocked_on.some(({ kind }) => MOVING.includes(kind))
      return unlessKnown(req, reply, operation, operation, moves)
    },
  })

  app.get('/v1/operations/:operation_id/graph', {
    operationId: 'getOperationGraph',
    summary: 'Read the graph of an operation',
    description: "Returns the plan's graph in rank order, with the live states of nodes and gates.",
    params: OperationParams,
    querystring: GraphQuery,
    headers: ReadHeaders,
    'x-reply-headers': ['etag'],
    response: { 200: OperationGraph, 304: Type.Null() },
    preHandler: read,
    handler: async (req, reply) => {
      const head = await requireVisible(deps, req.caller, req.params.operation_id)
      const { moves, ...graph } = await readGraph(deps, req.params.operation_id, req.query)
      return unlessKnown(req, reply, head, graph, moves)
    },
  })

  app.get('/v1/operations/:operation_id/rollback', {
    operationId: 'getOperationRollback',
    summary: 'Read how to roll back an operation',
    description:
      'Returns the intents that bring the targets back to their state before the operation, and makes none. Create them with `POST /v1/intents`, review the plans and start them.',
    params: OperationParams,
    querystring: RollbackQuery,
    'x-errors': [409, 422],
    response: { 200: Rollback },
    preHandler: read,
    handler: (req) => readRollback(deps, req.caller, req.params.operation_id, req.query),
  })
}

const startRoute = (app: Router, deps: Deps) => {
  app.post('/v1/plans/:plan_id/start', {
    operationId: 'startPlan',
    summary: 'Start a plan',
    description:
      'Locks the plan and starts its operation. `reviewed_plan_hash` names the plan that was reviewed; a different one is 412. If several callers start it, one succeeds and the others get 409 with the operation_id.',
    tags: ['plans'],
    params: PlanParams,
    headers: CommandHeaders,
    'x-reply-headers': ['location'],
    'x-errors': [412],
    body: StartBody,
    response: { 201: OperationReply, 202: OperationReply, 200: Type.Union([OperationReply, DryRunReply]) },
    preHandler: allow('plan:start', { kind: 'A' }),
    handler: async (req, reply) => {
      const { plan_id } = req.params
      const { comment, dry_run } = req.body
      const command = commandOf(deps, req, {
        kind: 'start',
        class: 'start',
        operation_id: uuidv7(),
        object: `plan:${plan_id}`,
        reason: comment ?? null,
        dry_run,
      })
      try {
        return sendStored(reply, await runCommand(deps, command, startSteps(deps, command, plan_id, req.body)))
      } catch (error) {
        if (isOutdated(error) && !dry_run) await markStale(deps, command, plan_id, error.message)
        throw error
      }
    },
  })
}

const commandRoutes = (app: Router, deps: Deps) => {
  app.post('/v1/operations/:operation_id/pause', {
    operationId: 'pauseOperation',
    summary: 'Pause an operation',
    description: 'No node starts after the answer; running nodes finish. Gates can still be decided.',
    params: OperationParams,
    headers: VersionedHeaders,
    'x-reply-headers': ['location'],
    body: PauseBody,
    response: { 200: Type.Union([OperationReply, DryRunReply]), 202: OperationReply },
    preHandler: allow('operation:control', { kind: 'S' }),
    handler: async (req, reply) => {
      const given = { kind: 'pause', class: 'stop', ...req.params, ...req.body } as const
      const command = commandOf(deps, req, given)
      return sendStored(reply, await runCommand(deps, command, pauseSteps(deps, command)))
    },
  })

  app.post('/v1/operations/:operation_id/resume', {
    operationId: 'resumeOperation',
    summary: 'Resume an operation',
    description: 'Resumes a paused operation. Nodes with an unknown outcome must be settled first.',
    params: OperationParams,
    headers: VersionedHeaders,
    'x-reply-headers': ['location'],
    body: ResumeBody,
    response: { 200: Type.Union([OperationReply, DryRunReply]), 202: OperationReply },
    preHandler: allow('operation:control', { kind: 'A' }),
    handler: async (req, reply) => {
      const given = { kind: 'resume', class: 'start', ...req.params, ...req.body } as const
      const command = commandOf(deps, req, given)
      const steps = resumeSteps(deps, command, req.body.acknowledge_drift ?? false)
      return sendStored(reply, await runCommand(deps, command, steps))
    },
  })

  app.post('/v1/operations/:operation_id/cancel', {
    operationId: 'cancelOperation',
    summary: 'Cancel an operation',
    description:
      'Closes open gates and starts no more nodes. graceful lets running nodes finish; compensate also undoes succeeded nodes; force is for a cancel that is stuck.',
    params: OperationParams,
    headers: VersionedHeaders,
    'x-reply-headers': ['location'],
    body: CancelBody,
    response: { 200: Type.Union([OperationReply, DryRunReply]), 202: OperationReply },
    preHandler: allow('operation:control', { kind: 'S' }),
    handler: async (req, reply) => {
      const given = { kind: 'cancel', class: 'stop', ...req.params, ...req.body } as const
      const command = commandOf(deps, req, given)
      const steps = cancelSteps(deps, command, req.body.mode ?? 'graceful')
      return sendStored(reply, await runCommand(deps, command, steps))
    },
  })
}

/** A resource without operations is found by callers who may see it; everyone else gets not found. */
const isKnown = async (deps: Uses<'db'>, caller: Caller, resource_id: string): Promise<boolean> =>
  (await getResource(deps.db, resource_id)) !== undefined && (await maySeeResource(deps.db, caller, resource_id))

const pageOfOperations = async (deps: Uses<'db' | 'pages'>, req: FastifyRequest, query: OperationListQuery) => {
  const { caller } = req
  const { page_size = 50, page_token, requester, gate_for, region_id, ...filter } = query
  const list = { route: req.routeOptions.url, user: caller.user_id, requester, gate_for, region_id, ...filter }
  const [rows, as_of] = await Promise.all([
    listOperations(deps.db, {
      ...filter,
      requester: requester === 'me' ? caller.user_id : requester,
      gate_for: gate_for && decidableBy(caller),
      visible: and(visibleSql(caller, operations), insideSql(region_id, operations)),
      after: deps.pages.after(page_token, list),
      limit: page_size + 1,
    }),
    readAsOf(deps.db),
  ])
  const page = deps.pages.cut(rows, page_size, list, (row) => sortKeyOf(row, filter.sort))
  return { ...page, items: await withoutHidden(deps.db, caller, page.items), as_of }
}
