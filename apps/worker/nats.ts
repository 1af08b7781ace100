import type { AgentChannel } from '../../activities/executors/agents/doors.ts'
import { prefixed } from '../shared/events/events.ts'
import { cancelSubject, ensureExecution, executionSubject, raiseExecution } from '../shared/events/execution-stream.ts'
import { holdNats } from '../shared/events/holder.ts'
import type { Logger } from '../shared/telemetry.ts'

const PUBLISH_MS = 5000

/**
 * The worker's connection to NATS: it tells relay and API that rows have moved, and hands work to agents that take it
 * from the stream. The stream is prepared for `pools` as soon as possible.
 */
export const createNats = (url: string, prefix: string, log: Logger, pools: readonly string[] = []) => {
  const { get, prepare, publish, close } = holdNats(url, 'worker', log)
  /** Pools whose part of the stream existed when it was last used. */
  const ensured = new Set<string>()
  for (const pool of pools)
    prepare(`the stream of pool ${pool}`, async (nc) => {
      await ensureExecution(nc, prefix, pool)
      await raiseExecution(nc, prefix)
    })

  const agents: AgentChannel = {
    publish: async (pool, message, fence) => {
      const nc = get()
      if (!nc) throw new Error('NATS is unavailable')
      try {
        if (!ensured.has(pool)) await ensureExecution(nc, prefix, pool)
        ensured.add(pool)
        const options = { msgID: String(fence), timeout: PUBLISH_MS }
        await nc.jetstream().publish(prefixed(prefix, executionSubject(pool)), JSON.stringify(message), options)
      } catch (error) {
        ensured.delete(pool)
        throw error
      }
    },
    cancel: async (pool, message) => {
      const nc = get()
      if (!nc) throw new Error('NATS is unavailable')
      nc.publish(prefixed(prefix, cancelSubject(pool)), JSON.stringify(message))
      await nc.flush()
    },
  }

  return {
    agents,
    wake: (what: 'operations' | 'operations_outcome'): void => publish(prefixed(prefix, `wake.${what}`)),
    close,
  }
}
