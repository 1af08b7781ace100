import { setTimeout as delay } from 'node:timers/promises'
import type { NatsConnection } from 'nats'
import { connectNats, prefixed } from '../shared/events.ts'
import type { Logger } from '../shared/telemetry.ts'

const RETRY_MS = 1000

/** Tells relay and API over NATS that rows have moved. Best effort: NATS may be away, everybody also polls. */
export const createWaker = (url: string, prefix: string, log: Logger) => {
  let connection: NatsConnection | undefined
  let closed = false
  const connect = async () => {
    while (!closed && !connection) {
      try {
        connection = await connectNats(url, 'worker')
      } catch (error) {
        log.debug({ err: error }, 'nats is away')
        await delay(RETRY_MS, undefined, { ref: false })
      }
    }
    if (closed) await connection?.close()
  }
  void connect()
  return {
    wake: (what: 'operations' | 'operations_outcome'): void => {
      try {
        if (connection && !connection.isClosed()) connection.publish(prefixed(prefix, `wake.${what}`))
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
