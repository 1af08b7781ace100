import type { FastifyRequest } from 'fastify'
import { isExecutionToken } from '../../../db/operations/agents/artifacts.ts'
import { allow } from '../../shared/auth/http.ts'
import { ExecutionReply, ExecutionResult } from '../../shared/contracts/engine/executions.ts'
import { sha256Hex } from '../../shared/data/digest.ts'
import { AppError } from '../../shared/errors.ts'
import { routes } from '../../shared/http/routes.ts'
import type { Uses } from '../deps.ts'
import { takeResult, tokenRefused } from './executions.ts'

/** Where agents report: behind the gateway, or inside the network. */
export type AgentBase = '/v1' | '/internal/v1'
/** The execution token is checked by these routes themselves. The internal ones are behind no user tokens. */
export const byItsToken = (base: AgentBase, scope: string) =>
  base === '/v1'
    ? { 'x-scope': 'the execution token', preHandler: allow('none', { kind: 'S' }) }
    : { 'x-scope': scope, 'x-permissions': ['bearer'] }

/** A report with its lines is larger than other public bodies. */
const REPORT_BYTES = 8_388_608

type Deps = Uses<'artifacts' | 'db' | 'nats' | 'planPolicies' | 'telemetry'>

/** The endpoint for agents: an execution token is valid for one attempt of one node only. */
export const executionsRoutes = routes<Deps, { base: AgentBase }>('agents', (app, { deps, base }) => {
  const results = deps.telemetry.counter('signalbox_execution_results_total', 'Messages of agents by result.', [
    'result',
  ])
  app.post(`${base}/execution-results`, {
    ...byItsToken(base, 'the execution token'),
    bodyLimit: REPORT_BYTES,
    // Runs before the body is read or validated: a stranger does not learn which members it may hold.
    onRequest: async (req) => {
      const token = tokenOf(req)
      if (token !== undefined && (await isExecutionToken(deps.db, sha256Hex(token)))) return
      results.inc({ result: 'refused' })
      throw tokenRefused()
    },
    operationId: 'reportExecution',
    summary: 'Report on work that was handed over',
    description:
      'Reports started, heartbeat, progress, succeeded or failed, authorized by the execution token that came with the work. The message that ended the attempt gets the same answer again; any other repeat is answered as of now. A late or stale message is refused without effect.',
    body: ExecutionResult,
    response: { 200: ExecutionReply },
    'x-errors': [409, 422],
    handler: async (req) => {
      try {
        const reply = await takeResult(deps, tokenOf(req), req.body, String(req.id))
        results.inc({ result: reply.duplicate ? 'duplicate' : 'accepted' })
        return reply
      } catch (error) {
        results.inc({ result: error instanceof AppError && error.status < 500 ? 'refused' : 'failed' })
        throw error
      }
    },
  })
})

const tokenOf = ({ headers }: FastifyRequest): string | undefined =>
  /^bearer (exe_[\w-]{20,100})$/i.exec(headers.authorization ?? '')?.[1]
