import { setTimeout as delay } from 'node:timers/promises'
import {
  AckPolicy,
  ConsumerEvents,
  type ConsumerMessages,
  DeliverPolicy,
  type JsMsg,
  type NatsConnection,
  nanos,
} from 'nats'
import { connectNats, type Envelope, prefixed, streamName } from '../../shared/events/events.ts'
import type { Logger } from '../../shared/telemetry.ts'
import { DENY_MS } from './limits.ts'

const SUBJECTS = ['auth.session.revoked.v1', 'auth.key.revoked.v1']
const RETRY_MS = 1000
/** After two of these without a word, JetStream counts as away. */
const HEARTBEAT_MS = 3000
/** How long the server remembers a consumer whose gateway is gone. */
const FORGOTTEN_MS = 60_000

export type FeedOptions = {
  url: string
  prefix: string
  log: Logger
  onSession: (event: Envelope & { session_id?: string; access_valid_until?: string }) => void
  onKey: (kid: string) => void
}

const addConsumer = async (nc: NatsConnection, prefix: string) => {
  const jsm = await nc.jetstreamManager()
  return jsm.consumers.add(streamName(prefix, 'AUTH'), {
    filter_subjects: SUBJECTS.map((subject) => prefixed(prefix, subject)),
    deliver_policy: DeliverPolicy.StartTime,
    opt_start_time: new Date(Date.now() - DENY_MS).toISOString(),
    ack_policy: AckPolicy.None,
    inactive_threshold: nanos(FORGOTTEN_MS),
    mem_storage: true,
    num_replicas: 1,
  })
}

/**
 * Follows the stream AUTH from 16 minutes back: no older event can name a token that is still alive. After each
 * interruption it reads those minutes again by a new consumer, so that no event is missed. The client's own ordered
 * consumer would recover in silence, and after the loss of the stream pass over the events in between. `isLive` is true
 * from the moment the past is fully read until the connection breaks, or JetStream falls silent behind it.
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

  /** Reads the past, then the present, until the connection breaks or JetStream is lost. */
  const follow = async (nc: NatsConnection) => {
    const { stream_name, name, num_pending } = await addConsumer(nc, prefix)
    const consumer = await nc.jetstream().consumers.get(stream_name, name)
    const stream = await consumer.consume({ idle_heartbeat: HEARTBEAT_MS, abort_on_missing_resource: true })
    messages = stream
    void endIfSilent(stream)
    let read = 0
    live = num_pending === 0
    for await (const message of stream) {
      apply(message)
      read += 1
      // One was lost on its way: the next consumer reads it.
      if (message.info.deliverySequence !== read) void stream.close()
      live = read >= num_pending
    }
  }

  const endIfSilent = async (stream: ConsumerMessages) => {
    for await (const { type } of await stream.status())
      if (type === ConsumerEvents.HeartbeatsMissed) void stream.close()
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
