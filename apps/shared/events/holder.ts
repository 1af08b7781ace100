import type { NatsConnection, Subscription } from 'nats'
import { repeatUntilDone } from '../process/repeat.ts'
import type { Logger } from '../telemetry.ts'
import { connectNats } from './events.ts'

/**
 * An app's connection to NATS. NATS may be away at start and at any later time, and no request waits for it: Postgres
 * is the log of record, and messages only make others look sooner.
 */
export const holdNats = (url: string, name: string, log: Logger) => {
  const stopping = new AbortController()
  let connection: NatsConnection | undefined
  const first = new Set<(nc: NatsConnection) => void>()
  const again = new Set<() => void>()
  const get = () => (connection && !connection.isClosed() ? connection : undefined)

  const watch = async (nc: NatsConnection) => {
    for await (const { type } of nc.status()) {
      if (type === 'reconnect') for (const listener of again) listener()
      log.debug({ status: type }, 'nats')
    }
  }
  const connect = async () => {
    const nc = await connectNats(url, name)
    if (stopping.signal.aborted) return nc.close()
    connection = nc
    void watch(nc)
    for (const listener of first) listener(nc)
  }
  const connected = repeatUntilDone(connect, stopping.signal, (err) => log.debug({ err }, 'NATS is unavailable'))
  const onConnect = (listener: (nc: NatsConnection) => void) => {
    first.add(listener)
    if (connection) listener(connection)
    return () => void first.delete(listener)
  }

  return {
    get,
    /** Called once there is a connection; it then reconnects automatically, with its subscriptions. */
    onConnect,
    onReconnect: (listener: () => void) => {
      again.add(listener)
      return () => void again.delete(listener)
    },
    /** Calls back for each message of a subject, until the returned function is called. */
    hear: (subject: string, callback: () => void) => {
      let heard: Subscription | undefined
      const off = onConnect((nc) => {
        heard = nc.subscribe(subject, { callback })
      })
      return () => {
        off()
        heard?.unsubscribe()
      }
    },
    /** Prepares something on the server as soon as possible, retried until it succeeds. */
    prepare: (what: string, act: (nc: NatsConnection) => Promise<void>) =>
      onConnect((nc) => {
        void repeatUntilDone(
          () => act(nc),
          stopping.signal,
          (err) => log.warn({ err, what }, 'not ready on NATS; trying again'),
        )
      }),
    /** Best effort: every reader also polls. */
    publish: (subject: string, data?: string): void => {
      try {
        get()?.publish(subject, data)
      } catch {
        // the connection is closing right now; the pollers will see it
      }
    },
    check: async (): Promise<void> => {
      const nc = get()
      if (!nc) throw new Error('not connected')
      await nc.flush()
    },
    close: async (): Promise<void> => {
      stopping.abort()
      await connected
      await connection?.drain().catch(() => {})
    },
  }
}
export type NatsHolder = ReturnType<typeof holdNats>
