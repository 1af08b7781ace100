import { createPoolAgent } from '../http/pools.ts'
import { isFailure, type Sender, send } from '../http/send.ts'
import type { ExecutorPolicy } from '../policy.ts'
import type { ExecutorContext } from '../types.ts'

/** The part of NATS that agents use. Both methods throw if NATS has not accepted the message. */
export type AgentChannel = {
  /** Puts work into the stream, which drops a repeat under the same fencing token. */
  publish: (pool: string, message: object, fence: number) => Promise<void>
  /** Tells all agents of the pool. */
  cancel: (pool: string, message: object) => Promise<void>
}

/**
 * Delivers work to the agents of its pool, in the way that the policy names. Returns why no agent can have it;
 * `undefined` if it was delivered. Delivery proves no start: only an agent's "started" does.
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
      (error: Error) => `NATS did not accept the message: ${error.message}`,
    )
  // The log belongs to the agent, which numbers its lines from one.
  return post(policy, context.pool, { ...context, log: () => {} }, door.endpoint, work, true)
}

/** Names the work to stop; each fencing token is issued once. */
export type Stop = { operation_id: string; node_id: string; attempt: number; generation: number; fence: number }
const STOP_MS = 5000

/**
 * Tells the agents of a pool to stop a piece of work, within seconds: at `<endpoint>/cancel`, or on the subject that
 * all agents of the pool subscribe to. Returns why it could not tell them, if a retry may help. Only the agent's
 * results say how it reacts.
 */
export const tellToStop = async (
  policy: ExecutorPolicy,
  channel: AgentChannel,
  pool: string,
  stop: Stop,
): Promise<string | undefined> => {
  const door = policy.agentsOf(pool)
  if (!door) return undefined
  const message = { v: 1, ...stop }
  if (door.mode === 'nats')
    return channel.cancel(pool, message).then(
      () => undefined,
      (error: Error) => error.message,
    )
  const url = new URL(door.endpoint)
  url.pathname = `${url.pathname.replace(/\/+$/, '')}/cancel`
  const end = Date.now() + STOP_MS
  const signal = AbortSignal.timeout(STOP_MS)
  const sender = { log: () => {}, signal, slice_end: end, deadline: end, key: '', fence: stop.fence }
  return post(policy, pool, sender, url.href, message, false)
}

const post = async (
  policy: ExecutorPolicy,
  pool: string,
  sender: Sender,
  url: string,
  body: object,
  effect: boolean,
): Promise<string | undefined> => {
  const agent = createPoolAgent(policy, pool)
  try {
    const answer = await send(sender, {}, { method: 'POST', url, body }, agent, { effect })
    if (isFailure(answer)) return answer.message
    return answer.status >= 300 ? `It answered ${answer.status}.` : undefined
  } finally {
    // Does not wait for an agent that does not answer.
    await agent.destroy()
  }
}
