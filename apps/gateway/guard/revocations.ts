import { setTimeout as delay } from 'node:timers/promises'
import { type ConsumerMessages, DeliverPolicy, type JsMsg, type NatsConnection } from 'nats'
import { connectNats, type Envelope, prefixed, streamName } from '../../shared/events/events.ts'
import type { Logger } from '../../shared/telemetry.ts'
import { DENY_MS } from './denylist.ts'

const SUBJECTS = ['auth.session.revoked.v1', 'auth.key.revoked.v1']
const RETRY_MS = 1000

export type FeedOptions = {
  url: string
  prefix: string
  log: Logger
  onSession: (event: Envelope & { session_id?: string; access_valid_until?: string }) => void
  onKey: (kid: string) => void
}

/**
 * Follows the stream AUTH with an ordered consumer, from 16 minutes back: no older event can name a token that is still
 * alive. After each reconnect it reads those minutes again, so that no event is missed. `isLive` is true from the
 * moment the past is fully read until the connection breaks.
 */
export const startFeed = ({ url, prefix, log, onSession, onKey }: FeedOptions) => {
  let stopped = false
  let live = false
  let last_at = Date.now()
  let connection: NatsConnection | undefined
  let messages: ConsumerMessages | undefined

  const apply = (message: JsMsg) => {
    last_at = Date.now()
    try {
      const event = message.json<Envelope & { session_id?: string; kid?: string }>()
      if (event.session_id) onSession(event)
      if (event.kid) onKey(event.kid)
    } catch (error) {
      log.error({ err: error, subject: message.subject }, 'an auth event cannot be read')
    }
  }

  /** Reads the past, then the present, until the connection breaks. */
  const follow = async (nc: NatsConnection) => {
    const consumer = await nc
      .jetstream()
      .consumers.get(streamName(prefix, 'AUTH'), {
        filterSubjects: SUBJECTS.map((subject) => prefixed(prefix, subject)),
        deliver_policy: DeliverPolicy.StartTime,
        opt_start_time: new Date(Date.now() - DENY_MS).toISOString(),
      })
    let pending = (await consumer.info()).num_pending
    const stream = await consumer.consume()
    messages = stream
    if (pending === 0) live = true
    for await (const message of stream) {
      apply(message)
      pending -= 1
      if (pending <= 0) live = true
    }
  }

  const watch = async (nc: NatsConnection) => {
    for await (const { type } of nc.status()) {
      if (type !== 'disconnect' && type !== 'reconnect') continue
      live = false
      await messages?.close().catch(() => {})
    }
  }

  const run = async () => {
    while (!stopped) {
      try {
        if (!connection) {
          connection = await connectNats(url, 'gateway')
          void watch(connection)
        }
        await follow(connection)
      } catch (error) {
        if (!stopped) log.debug({ err: error }, 'the revocation feed does not exist yet')
      }
      live = false
      if (connection?.isClosed()) connection = undefined
      if (!stopped) await delay(RETRY_MS, undefined, { ref: false })
    }
  }
  void run()

  return {
    isLive: () => live,
    /** Seconds since the last event, or since the start. */
    age_s: () => (Date.now() - last_at) / 1000,
    stop: async () => {
      stopped = true
      live = false
      await messages?.close().catch(() => {})
      await connection?.close().catch(() => {})
    },
  }
}
export type Feed = ReturnType<typeof startFeed>
