import Type from 'typebox'
import { listNodes } from '../../../db/operations/nodes/rows.ts'
import { readAsOf } from '../../../db/operations/operations/read.ts'
import { isInFlight } from '../../../workflows/operation/rules/nodes.ts'
import { allow } from '../../shared/auth/http.ts'
import { DryRunReply, NodeParams, OperationParams } from '../../shared/contracts/operations/common.ts'
import {
  LogPage,
  LogQuery,
  Node,
  NodeList,
  NodeListQuery,
  NodeQuery,
  NodeReply,
  RawLogQuery,
  RetryBody,
} from '../../shared/contracts/operations/nodes.ts'
import { text } from '../../shared/contracts/shapes.ts'
import { ReadHeaders, type Router, routes, sendStored, VersionedHeaders } from '../../shared/http/routes.ts'
import { commandOf } from '../command/command.ts'
import { unlessKnown } from '../command/reply.ts'
import { runCommand } from '../command/run.ts'
import type { CommandDeps, ReplanDeps, Uses } from '../deps.ts'
import { requireLogs, requireVisible } from '../operations/read.ts'
import { readLog, sendRawLog } from './logs.ts'
import { readNode } from './read.ts'
import { retrySteps } from './retry.ts'

const LogText = text('drained: 0 connections left\n')

const read = allow('operation:read', { kind: 'R' })

type Deps = CommandDeps & ReplanDeps & Uses<'pages'>

/** Nodes of an operation: rows, one node, logs and retry. */
export const nodesRoutes = routes<Deps>('nodes', (app, { deps }) => {
  readRoutes(app, deps)
  logRoutes(app, deps)
  retryRoute(app, deps)
})

const readRoutes = (app: Router, deps: Deps) => {
  app.get('/v1/operations/:operation_id/nodes', {
    operationId: 'listNodes',
    summary: 'List nodes',
    description: 'Lists nodes in rank order, or failed ones first.',
    params: OperationParams,
    querystring: NodeListQuery,
    response: { 200: NodeList },
    preHandler: read,
    handler: async (req) => {
      const { operation_id } = req.params
      const { page_size = 50, page_token, failed_first = false, ...filter } = req.query
      await requireVisible(deps, req.caller, operation_id)
      const list = { route: 'nodes', operation_id, failed_first, ...filter }
      const after = deps.pages.after(page_token, list)
      const rows = await listNodes(deps.db, operation_id, { ...filter, failed_first, after, limit: page_size + 1 })
      const page = deps.pages.cut(rows, page_size, list, ({ key }) => key)
      return { ...page, items: page.items.map(({ node }) => node), as_of: await readAsOf(deps.db) }
    },
  })

  app.get('/v1/operations/:operation_id/nodes/:node_id', {
    operationId: 'getNode',
    summary: 'Read a node',
    description:
      'Returns specification, inputs and outputs (secrets as references), attempts, and the actions that the caller may take.',
    params: NodeParams,
    querystring: NodeQuery,
    headers: ReadHeaders,
    'x-reply-headers': ['etag'],
    response: { 200: Node, 304: Type.Null() },
    preHandler: read,
    handler: async (req, reply) => {
      const { operation_id, node_id } = req.params
      const head = await requireVisible(deps, req.caller, operation_id)
      const node = await readNode(deps, req.caller, operation_id, node_id, req.query.attempt)
      return unlessKnown(req, reply, head, node, isInFlight(node.state))
    },
  })
}

const logRoutes = (app: Router, deps: Deps) => {
  app.get('/v1/operations/:operation_id/nodes/:node_id/logs', {
    operationId: 'getNodeLog',
    summary: 'Read a log',
    description: 'Returns lines of one attempt by number, from the end (tail), or matching q. wait_ms waits for more.',
    params: NodeParams,
    querystring: LogQuery,
    'x-errors': [410],
    response: { 200: LogPage },
    preHandler: allow('log:read', { kind: 'R' }),
    config: { waits: true },
    handler: async (req, reply) => {
      await requireLogs(deps, req.caller, req.params.operation_id)
      return readLog(deps, reply, req.params, req.query)
    },
  })

  app.get('/v1/operations/:operation_id/nodes/:node_id/logs/raw', {
    operationId: 'downloadNodeLog',
    summary: 'Download a log',
    description: 'Returns all lines of one attempt as text, byte for byte as stored. One Range is supported.',
    params: NodeParams,
    querystring: RawLogQuery,
    produces: ['text/plain'],
    'x-errors': [410, 416],
    response: { 200: LogText, 206: LogText },
    preHandler: allow('log:read', { kind: 'R' }),
    config: { endless: true },
    handler: async (req, reply) => {
      await requireLogs(deps, req.caller, req.params.operation_id)
      return sendRawLog(deps, req, reply, req.params, req.query)
    },
  })
}

const retryRoute = (app: Router, deps: Deps) => {
  app.post('/v1/operations/:operation_id/nodes/:node_id/retry', {
    operationId: 'retryNode',
    summary: 'Run a node again',
    description:
      'Resets the node and, with scope downstream, every node after it. Earlier attempts stay in the history.',
    params: NodeParams,
    headers: VersionedHeaders,
    'x-reply-headers': ['location'],
    body: RetryBody,
    response: { 200: Type.Union([NodeReply, DryRunReply]), 202: NodeReply },
    preHandler: allow('operation:control', { kind: 'A' }),
    handler: async (req, reply) => {
      const given = { kind: 'retry_node', class: 'start', ...req.params, ...req.body } as const
      const command = { ...commandOf(deps, req, given), node_id: req.params.node_id, caller: req.caller }
      return sendStored(reply, await runCommand(deps, command, retrySteps(deps, command, req.body)))
    },
  })
}
