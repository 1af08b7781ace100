import Type from 'typebox'
import { listAgents } from '../../../db/operations/agents/rows.ts'
import { operations } from '../../../db/operations/tables/index.ts'
import { allow } from '../../shared/auth/http.ts'
import { AgentList } from '../../shared/contracts/engine/agents.ts'
import { PoolParams, Work, WorkRequest } from '../../shared/contracts/engine/executions.ts'
import { routes } from '../../shared/http/routes.ts'
import type { Uses } from '../deps.ts'
import { visibleSql } from '../policies/authority.ts'
import { hearAgents } from './presence.ts'
import { createSeen } from './seen.ts'
import { refuseAgent, seenOf, takeWork } from './work.ts'

/** The part of a request's time that a wait leaves for the last look at the stream (a second) and the answer. */
const ANSWER_MS = 1500
/** A drain concerns requests that wait now, for seconds. The oldest have none. */
const MOST_DRAINING = 1000

type Deps = Uses<'agentsOf' | 'needsSandbox' | 'config' | 'db' | 'nats' | 'telemetry'>

/** The endpoint for agents that ask for work (operations.md 7.4): only machines that the pool names. The list of agents. */
export const workRoutes = routes<Deps>('agents', (app, { deps }) => {
  const seen = createSeen(deps.db, deps.telemetry)
  /** Processes that drain: what comes for a request of theirs that still waits here goes to another agent. */
  const draining = new Set<string>()
  hearAgents(deps, seen)
  app.get('/v1/agents', {
    operationId: 'listAgents',
    summary: 'List agents',
    description:
      'Lists the agents of pools, with their last sign of life and their current work. A silent one stays for seven days; one that ends in order leaves at once. An agent that reads the stream or listens at an endpoint is listed if it gives its name.',
    response: { 200: AgentList },
    preHandler: allow('operation:read', { kind: 'R' }),
    handler: async ({ caller }) => {
      const items = await listAgents(deps.db, visibleSql(caller, operations))
      return {
        items: items.map((item) => {
          const instances = seen.sharing(item.agent)
          return instances === undefined ? item : { ...item, instances }
        }),
      }
    },
  })
  app.post('/v1/pools/:pool/work', {
    operationId: 'takeWork',
    summary: 'Take one piece of work from a pool',
    description:
      'Waits up to wait_s seconds. 200 with work that only this agent has, 204 if there is none. The agent begins the work only after its "started" has been accepted at results_url; without one within 30 s, another agent gets the work. The header agent-instances says how many processes use its name, if there are several.',
    params: PoolParams,
    body: WorkRequest,
    response: { 200: Work, 204: Type.Null() },
    config: { waits: true },
    preHandler: allow('operation:read', { kind: 'W' }),
    handler: async (req, reply) => {
      const { labels = {}, wait_s = 5, agent } = req.body
      const { pool } = req.params
      const refused = refuseAgent(deps, req.caller, pool, req.body)
      if (refused) throw refused
      const one = seenOf(deps, req.caller.username, pool, req.body)
      const asking = `${one.agent} ${agent?.instance ?? ''}`
      if (agent?.leaves === 'draining') {
        draining.add(asking)
        const [oldest] = draining
        if (draining.size > MOST_DRAINING && oldest !== undefined) draining.delete(oldest)
      } else draining.delete(asking)
      await (agent?.leaves === 'gone' ? seen.gone(one, agent.instance) : seen.note(one, agent?.instance))
      if (agent?.leaves) return reply.code(204).send(null)
      const sharing = seen.sharing(one.agent)
      if (sharing !== undefined) reply.header('agent-instances', sharing)
      // A client that was told of the timeout has gone, though the connection stays.
      const gone = () => req.raw.socket.destroyed || reply.sent || draining.has(asking)
      const wait_ms = Math.min(wait_s * 1000, Math.floor(req.ends_at - performance.now()) - ANSWER_MS)
      const giving = (work: Work) => seen.taken(work, one.agent)
      const work = await takeWork(deps, pool, { labels, wait_ms }, gone, giving)
      if (!work) return reply.code(204).send(null)
      return work
    },
  })
})
