import type { Agent } from 'undici'
import { createAgent } from '../../../apps/shared/web/agent.ts'
import type { ExecutorPolicy } from '../policy.ts'

/** Connections of one pool, to the destinations that the policy allows it. */
export const createPoolAgent = (policy: ExecutorPolicy, pool: string): Agent =>
  createAgent(`pool ${pool}`, (url) => policy.rulesFor(pool, url))

/** One agent per pool, created on first use. */
export const createAgents = (policy: ExecutorPolicy): ((pool: string) => Agent) => {
  const agents = new Map<string, Agent>()
  return (pool) => {
    const agent = agents.get(pool) ?? createPoolAgent(policy, pool)
    agents.set(pool, agent)
    return agent
  }
}
