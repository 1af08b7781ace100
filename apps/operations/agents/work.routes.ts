import Type from 'typebox'
import { allow } from '../../shared/auth/http.ts'
import { PoolParams, Work, WorkRequest } from '../../shared/contracts/engine/executions.ts'
import { errorReplies, type Routes } from '../../shared/http/app.ts'
import type { Uses } from '../deps.ts'
import { takeWork } from './work.ts'

/** What a wait leaves of a request's time: the last look at the stream takes a second, and the answer is sent. */
const ANSWER_MS = 1500

/** The door for agents that ask for work (operations.md 7.4): by a machine that the pool names. */
export const workRoutes: Routes<Uses<'agentsOf' | 'config' | 'nats'>> = async (app, { deps }) => {
  app.post('/v1/pools/:pool/work', {
    schema: {
      operationId: 'takeWork',
      summary: 'Take one piece of work of a pool',
      description:
        'Waits up to wait_s seconds. 200 with work that this agent alone has, 204 without. It begins the work only after its "started" was accepted at results_url.',
      tags: ['agents'],
      params: PoolParams,
      body: WorkRequest,
      response: { 200: Work, 204: Type.Null(), ...errorReplies },
    },
    preHandler: allow('operation:read', { kind: 'W' }),
    handler: async (req, reply) => {
      const { labels = {}, wait_s = 5 } = req.body
      // Whoever was told that the answer took too long has gone, though the connection stays.
      const gone = () => req.raw.socket.destroyed || reply.sent
      const wait_ms = Math.min(wait_s * 1000, Math.floor(req.ends_at - performance.now()) - ANSWER_MS)
      const work = await takeWork(deps, req.caller, req.params.pool, { labels, wait_ms }, gone)
      return work ?? reply.code(204).send(null)
    },
  })
}
