import Type from 'typebox'
import { requireScope } from '../../shared/auth/http.ts'
import { GateStanding } from '../../shared/contracts/engine/internal.ts'
import { routes } from '../../shared/http/routes.ts'
import type { Uses } from '../deps.ts'
import { proveDue } from './standing.ts'

/** Lets workers have voters proved before a node behind their gate starts. */
export const standingRoutes = routes<Uses<'config' | 'db' | 'lookback_s' | 'nats' | 'trust'>>(
  'internal',
  (app, { deps }) => {
    /** When many nodes start behind one gate at once, they share one answer. */
    const running = new Map<string, Promise<void>>()

    app.post('/internal/v1/gate-standing', {
      operationId: 'proveGates',
      summary: 'Prove the voters of gates',
      description:
        'Asks identity about everyone whose approvals these gates rest on, unless it was asked a moment ago. Votes that no longer count become void, and a gate without a quorum asks again. 503 while identity is unavailable.',
      body: GateStanding,
      response: { 204: Type.Null() },
      preHandler: requireScope('gates:recheck'),
      handler: async (req, reply) => {
        const { operation_id, gate_ids } = req.body
        const key = [operation_id, ...gate_ids.toSorted()].join(' ')
        const proving =
          running.get(key) ?? proveDue(deps, operation_id, gate_ids).finally(() => void running.delete(key))
        running.set(key, proving)
        await proving
        return reply.code(204).send(null)
      },
    })
  },
)
