import { setTimeout as delay } from 'node:timers/promises'
import type { NatsConnection } from 'nats'
import { connectNats, prefixed } from '../shared/events/events.ts'
import type { Logger } from '../shared/telemetry.ts'

const RETRY_MS = 1000

/**
 * The connection to NATS. It may be away at start and at any later time, and no request waits for it: Postgres is the
 * log of record, messages only make others look sooner.
 */
export const createNatsHolder = (url: string, prefix: string, log: Logger) => {
  let connection: NatsConnection | undefined
  let closed = false
  const listeners: ((nc: NatsConnection) => void)[] = []
  const get = () => (connection && !connection.isClosed() ? connection : undefined)

  const keepTrying = async () => {
    while (!closed && !connection) {
      try {
        connection = await connectNats(url, 'operations')
      } catch (error) {
        log.debug({ err: error }, 'nats is away')
        await delay(RETRY_MS, undefined, { ref: false })
      }
    }
    if (closed) return connection?.close()
    for (const listener of listeners) if (connection) listener(connection)
  }
  void keepTrying()

  return {
    get,
    /** Called once there is a connection; subscriptions made then live through reconnects. */
    onConnect: (listener: (nc: NatsConnection) => void) => {
      listeners.push(listener)
      if (connection) listener(connection)
    },
    /** Tells whoever listens that there is something to look at. Best effort: everybody also polls. */
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
export type NatsHolder = ReturnType<typeof createNatsHolder>
