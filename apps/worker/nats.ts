import { setTimeout as delay } from 'node:timers/promises'
import type { NatsConnection } from 'nats'
import type { AgentChannel } from '../../activities/executors/agents/doors.ts'
import { connectNats, prefixed } from '../shared/events/events.ts'
import { cancelSubject, ensureExecution, executionSubject } from '../shared/events/execution-stream.ts'
import type { Logger } from '../shared/telemetry.ts'

const RETRY_MS = 1000
const PUBLISH_MS = 5000

/**
 * The worker's connection to NATS: it tells relay and API that rows have moved, best effort, because everybody also
 * polls; and it hands work to agents that take it from the stream, which is made ready for `pools` as soon as it can be.
 * NATS may be away at start and at any later time.
 */
export const createNats = (url: string, prefix: string, log: Logger, pools: readonly string[] = []) => {
  let connection: NatsConnection | undefined
  let closed = false
  /** Pools whose part of the stream was there when it was last used. */
  const ensured = new Set<string>()
  const connect = async () => {
    while (!closed && !connection) {
      try {
        connection = await connectNats(url, 'worker')
      } catch (error) {
        log.debug({ err: error }, 'nats is away')
        await delay(RETRY_MS, undefined, { ref: false })
      }
    }
    if (closed) return connection?.close()
    for (const pool of pools)
      if (connection)
        await ensureExecution(connection, prefix, pool).catch((err) => log.warn({ err, pool }, 'no stream'))
  }
  void connect()
  const get = () => (connection && !connection.isClosed() ? connection : undefined)

  const agents: AgentChannel = {
    publish: async (pool, message, fence) => {
      const nc = get()
      if (!nc) throw new Error('NATS is away')
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
      if (!nc) throw new Error('NATS is away')
      nc.publish(prefixed(prefix, cancelSubject(pool)), JSON.stringify(message))
      await nc.flush()
    },
  }

  return {
    agents,
    wake: (what: 'operations' | 'operations_outcome'): void => {
      try {
        get()?.publish(prefixed(prefix, `wake.${what}`))
      } catch {
        // a connection that closes at this moment; the pollers will see it
      }
    },
    close: async () => {
      closed = true
      await connection?.drain().catch(() => {})
    },
  }
}
