import { and, eq, gt, inArray } from 'drizzle-orm'
import Type from 'typebox'
import { listInbox } from '../../../db/operations/gates/inbox.ts'
import { listGates } from '../../../db/operations/gates/rows.ts'
import { readAsOf } from '../../../db/operations/operations/read.ts'
import { gates, operations } from '../../../db/operations/tables/index.ts'
import { allow } from '../../shared/auth/http.ts'
import { DryRunReply, GateParams, OperationParams } from '../../shared/contracts/operations/common.ts'
import {
  ApproveBody,
  BallotBody,
  BallotReply,
  Gate,
  GateList,
  GateListQuery,
  GateReply,
  Inbox,
  InboxQuery,
  RejectBody,
} from '../../shared/contracts/operations/gates.ts'
import {
  CommandHeaders,
  ReadHeaders,
  type Router,
  routes,
  sendStored,
  VersionedHeaders,
} from '../../shared/http/routes.ts'
import { commandOf } from '../command/command.ts'
import { mutationOf } from '../command/mutate.ts'
import { unlessKnown } from '../command/reply.ts'
import { issueBallot } from '../command/vote-signature.ts'
import type { Uses } from '../deps.ts'
import { requireVisible } from '../operations/read.ts'
import { placesForAll, visibleSql } from '../policies/authority.ts'
import { decidableBy } from '../policies/mine.ts'
import { approveGate, type DecideDeps, rejectGate } from './decide.ts'
import { aloneOf, changeCounts, readGate, viewGate } from './view.ts'

const read = allow('operation:read', { kind: 'R' })

type Deps = DecideDeps & Uses<'pages'>

/** Gates: the inbox, the gates of an operation, and the decision on a gate. */
export const gatesRoutes = routes<Deps>('gates', (app, { deps }) => {
  readRoutes(app, deps)
  commandRoutes(app, deps)
})

const readRoutes = (app: Router, deps: Deps) => {
  app.get('/v1/gates', {
    operationId: 'listWaitingGates',
    summary: 'List waiting gates',
    description:
      'Lists the gates that wait for a decision by people, by deadline. for=me: only those that the caller may decide.',
    querystring: InboxQuery,
    response: { 200: Inbox },
    preHandler: read,
    handler: async (req) => {
      const { caller, query } = req
      const { page_size = 50, page_token, risk, environment } = query
      const list = { route: 'inbox', user: caller.user_id, for: query.for, risk, environment }
      const where = and(
        visibleSql(caller, operations),
        query.for === 'me' ? decidableBy(caller) : undefined,
        risk && inArray(operations.risk_level, risk),
        environment === undefined ? undefined : eq(operations.environment, environment),
      )
      const after = deps.pages.after(page_token, list)
      const [rows, approvers, as_of] = await Promise.all([
        listInbox(deps.db, { where, after, limit: page_size + 1 }),
        deps.trust.approvers.list(),
        readAsOf(deps.db),
      ])
      const most = deps.config.OPERATIONS__GATES__BULK_APPROVE
      const page = deps.pages.cut(rows, page_size, list, ({ key }) => key)
      const people = [caller, ...approvers]
      const items = await Promise.all(
        page.items.map(async (row) => ({
          ...viewGate(deps, caller, row, await placesForAll(deps.db, people, row.operation.resource_ids), approvers),
          risk: row.operation.risk_level,
          environment: row.operation.environment,
          change_counts: changeCounts(row.gate.changes),
          alone: { approve: aloneOf(row, 'approve', most), reject: aloneOf(row, 'reject', most) },
        })),
      )
      return { ...page, items, as_of }
    },
  })

  app.get('/v1/operations/:operation_id/gates', {
    operationId: 'listGates',
    summary: 'List gates of an operation',
    description: 'Lists every gate with its votes and the missing voters, without the subject.',
    params: OperationParams,
    querystring: GateListQuery,
    response: { 200: GateList },
    preHandler: read,
    handler: async (req) => {
      const { operation_id } = req.params
      const { page_size = 50, page_token, status } = req.query
      const { resource_ids } = await requireVisible(deps, req.caller, operation_id)
      const list = { route: 'gates', operation_id, status }
      const [after] = deps.pages.after(page_token, list) ?? []
      const where = and(status && inArray(gates.status, status), after ? gt(gates.gate_id, after) : undefined)
      const rows = await listGates(deps.db, operation_id, where, page_size + 1)
      const approvers = await deps.trust.approvers.list()
      const places = await placesForAll(deps.db, [req.caller, ...approvers], resource_ids)
      const page = deps.pages.cut(rows, page_size, list, ({ gate }) => [gate.gate_id])
      const items = page.items.map((row) => viewGate(deps, req.caller, row, places, approvers))
      return { ...page, items, as_of: await readAsOf(deps.db) }
    },
  })

  app.get('/v1/operations/:operation_id/gates/:gate_id', {
    operationId: 'getGate',
    summary: 'Read a gate',
    description:
      'Returns the subject of the decision (a vote must name its digest), the votes, context and brief outside the digest, and the actions that the caller may take.',
    params: GateParams,
    headers: ReadHeaders,
    'x-reply-headers': ['etag'],
    response: { 200: Gate, 304: Type.Null() },
    preHandler: read,
    handler: async (req, reply) => {
      const { operation_id, gate_id } = req.params
      const { view, row } = await readGate(deps, req.caller, operation_id, gate_id, { for_page: true })
      // Other holders, freezes and the health of its targets change no tag of this operation.
      return unlessKnown(req, reply, row.operation, view, view.status === 'waiting')
    },
  })
}

const commandRoutes = (app: Router, deps: Deps) => {
  app.post('/v1/operations/:operation_id/gates/:gate_id/approve', {
    operationId: 'approveGate',
    summary: 'Approve a gate',
    description:
      'Votes for the digest that was reviewed; the gate is approved at quorum. If the policy demands four eyes, the voter must not have requested, started or changed the operation. A vote on an intervention sends it, and is answered with its outcome: `command` is the intervention.',
    params: GateParams,
    headers: VersionedHeaders,
    'x-reply-headers': ['location'],
    body: ApproveBody,
    response: { 200: Type.Union([GateReply, DryRunReply]), 202: GateReply },
    preHandler: allow('gate:decide', { kind: 'A' }),
    handler: async (req, reply) => {
      const { comment = null, break_glass, dry_run } = req.body
      const reason = break_glass?.reason ?? comment
      const given = { kind: 'gate_decided', class: 'start', ...req.params, reason, dry_run } as const
      const command = { ...commandOf(deps, req, given), gate_id: req.params.gate_id, caller: req.caller }
      return sendStored(reply, await approveGate(deps, command, req.body))
    },
  })

  app.post('/v1/operations/:operation_id/gates/:gate_id/reject', {
    operationId: 'rejectGate',
    summary: 'Reject a gate',
    description:
      "The gate's policy (`on_reject`) decides the effect: its nodes fail; or they are held, and a retry of one opens the gate again; or the operation is canceled, and ends as failed.",
    params: GateParams,
    headers: VersionedHeaders,
    'x-reply-headers': ['location'],
    body: RejectBody,
    response: { 200: Type.Union([GateReply, DryRunReply]), 202: GateReply },
    preHandler: allow('gate:decide', { kind: 'S' }),
    handler: async (req, reply) => {
      const { comment: reason, dry_run } = req.body
      const given = { kind: 'gate_decided', class: 'stop', ...req.params, reason, dry_run } as const
      const command = { ...commandOf(deps, req, given), gate_id: req.params.gate_id, caller: req.caller }
      return sendStored(reply, await rejectGate(deps, command, req.body))
    },
  })

  app.post('/v1/operations/:operation_id/ballots', {
    operationId: 'createBallot',
    summary: 'Get a ballot to sign with a passkey',
    description:
      'Returns the vote as a ballot. A passkey signs its SHA-256 (canonical JSON), and approveGate or approvePatch accepts the answer once, within 5 min. For another ballot use another key.',
    params: OperationParams,
    body: BallotBody,
    headers: CommandHeaders,
    response: { 200: BallotReply },
    preHandler: allow(['gate:decide', 'patch:decide'], { kind: 'W' }),
    handler: async (req, reply) => {
      const { operation_id } = req.params
      await requireVisible(deps, req.caller, operation_id)
      return sendStored(reply, await issueBallot(deps, mutationOf(deps, req), operation_id, req.body))
    },
  })
}
