import { setTimeout as delay } from 'node:timers/promises'
import type { NatsConnection } from 'nats'
import { connectNats, prefixed } from '../shared/events.ts'
import type { Logger } from '../shared/telemetry.ts'

const RETRY_MS = 1000

/**
 * The connection to NATS, which may be away at start and later: no request waits for it. Postgres is the log of record;
 * messages only make others look sooner.
 */
export const createNats = (url: string, prefix: string, log: Logger) => {
  let connection: NatsConnection | undefined
  let closed = false
  const waiting: ((nc: NatsConnection) => void)[] = []

  const connected = (async () => {
    while (!closed && !connection) {
      try {
        connection = await connectNats(url, 'catalog')
      } catch (error) {
        log.debug({ err: error }, 'nats is away')
        await delay(RETRY_MS, undefined, { ref: false })
      }
    }
    if (connection) for (const listener of waiting) listener(connection)
  })()

  return {
    prefix,
    /** Called once there is a connection; it reconnects by itself from then on. */
    onConnect: (listener: (nc: NatsConnection) => void) => {
      if (connection) listener(connection)
      else waiting.push(listener)
    },
    /** Tells the relay that the outbox has something. Best effort: the relay also polls. */
    wake: () => {
      try {
        if (connection && !connection.isClosed()) connection.publish(prefixed(prefix, 'wake.catalog'))
      } catch {
        // the connection closes at this moment; the relay will see the row at its next poll
      }
    },
    check: async () => {
      if (!connection || connection.isClosed()) throw new Error('not connected')
      await connection.flush()
    },
    close: async () => {
      closed = true
      await connected.catch(() => {})
      await connection?.drain().catch(() => {})
    },
  }
}
export type Nats = ReturnType<typeof createNats>
