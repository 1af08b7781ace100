import { createAgent } from './agent.ts'
import { isFailure, send } from './http.send.ts'
import type { ExecutorPolicy } from './policy.ts'
import type { ExecutorContext } from './types.ts'

/** NATS as far as agents are concerned. Both throw when it has not taken the message. */
export type AgentChannel = {
  /** Puts work into the stream; a repeat under the same fence is dropped there. */
  publish: (pool: string, message: object, fence: number) => Promise<void>
  /** Tells all agents of the pool. */
  cancel: (pool: string, message: object) => Promise<void>
}

/**
 * Brings work to the agents of its pool, through the door that the policy names. Answers why none can have it; nothing
 * when it is there, which says nothing yet: it counts only once an agent has said "started".
 */
export const bringWork = async (
  policy: ExecutorPolicy,
  channel: AgentChannel,
  context: ExecutorContext,
  work: object,
): Promise<string | undefined> => {
  const door = policy.agentsOf(context.pool)
  if (!door) return 'The pool has no agents.'
  if (door.mode === 'nats')
    return channel.publish(context.pool, work, context.fence).then(
      () => undefined,
      (error: Error) => `The stream did not take it: ${error.message}`,
    )
  const agent = createAgent(policy, context.pool)
  try {
    // The log belongs to the agent, which numbers its lines from one.
    const silent = { ...context, log: () => {} }
    const answer = await send(silent, {}, { method: 'POST', url: door.endpoint, body: work }, agent, { effect: true })
    if (isFailure(answer)) return answer.message
    return answer.status >= 300 ? `It answers ${answer.status}.` : undefined
  } finally {
    await agent.close()
  }
}
