import Type from 'typebox'
import { allow } from '../../shared/auth/http.ts'
import { PoolParams, Work, WorkRequest } from '../../shared/contracts/engine/executions.ts'
import { routes } from '../../shared/http/routes.ts'
import type { Uses } from '../deps.ts'
import { takeWork } from './work.ts'

/** The part of a request's time that a wait leaves for the last look at the stream (a second) and the answer. */
const ANSWER_MS = 1500

/** The endpoint for agents that ask for work (operations.md 7.4): only machines that the pool names. */
export const workRoutes = routes<Uses<'agentsOf' | 'config' | 'nats'>>('agents', (app, { deps }) => {
  app.post('/v1/pools/:pool/work', {
    operationId: 'takeWork',
    summary: 'Take one piece of work from a pool',
    description:
      'Waits up to wait_s seconds. 200 with work that only this agent has, 204 if there is none. The agent begins the work only after its "started" has been accepted at results_url.',
    params: PoolParams,
    body: WorkRequest,
    response: { 200: Work, 204: Type.Null() },
    preHandler: allow('operation:read', { kind: 'W' }),
    handler: async (req, reply) => {
      const { labels = {}, wait_s = 5 } = req.body
      // A client that was told of the timeout has gone, though the connection stays.
      const gone = () => req.raw.socket.destroyed || reply.sent
      const wait_ms = Math.min(wait_s * 1000, Math.floor(req.ends_at - performance.now()) - ANSWER_MS)
      const work = await takeWork(deps, req.caller, req.params.pool, { labels, wait_ms }, gone)
      return work ?? reply.code(204).send(null)
    },
  })
})
