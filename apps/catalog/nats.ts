import { setTimeout as delay } from 'node:timers/promises'
import type { NatsConnection } from 'nats'
import { connectNats, prefixed } from '../shared/events/events.ts'
import type { Logger } from '../shared/telemetry.ts'

const RETRY_MS = 1000
/** Who is woken takes all that is there: the relay need not hear of each command of a crowd. */
const WAKE_MS = 5

/**
 * The connection to NATS, which may be away at start and later: no request waits for it. Postgres is the log of record;
 * messages only make others look sooner.
 */
export const createNats = (url: string, prefix: string, log: Logger) => {
  let connection: NatsConnection | undefined
  let closed = false
  let resting: NodeJS.Timeout | undefined
  let more = false
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

  const publishWake = () => {
    try {
      if (connection && !connection.isClosed()) connection.publish(prefixed(prefix, 'wake.catalog'))
    } catch {
      // the connection closes at this moment; the relay will see the row at its next poll
    }
  }

  const wake = () => {
    more = resting !== undefined
    if (more) return
    publishWake()
    resting = setTimeout(() => {
      resting = undefined
      if (more) wake()
    }, WAKE_MS)
  }

  return {
    prefix,
    /** Called once there is a connection; it reconnects by itself from then on. */
    onConnect: (listener: (nc: NatsConnection) => void) => {
      if (connection) listener(connection)
      else waiting.push(listener)
    },
    /** Tells the relay that the outbox has something, at once or within 5 ms of the last time. Best effort: it also polls. */
    wake,
    check: async () => {
      if (!connection || connection.isClosed()) throw new Error('not connected')
      await connection.flush()
    },
    close: async () => {
      closed = true
      clearTimeout(resting)
      await connected.catch(() => {})
      await connection?.drain().catch(() => {})
    },
  }
}
export type Nats = ReturnType<typeof createNats>
