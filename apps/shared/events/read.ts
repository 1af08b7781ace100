import { DeliverPolicy, type JsMsg, type NatsConnection } from 'nats'
import { prefixed, type StreamName, streamName } from './events.ts'

const NO_STREAM = 10_059

/** Reads a stream from a given place to its current end; a missing stream is empty. */
export async function* readStream(
  nc: NatsConnection,
  prefix: string,
  { stream, subject, from = 1 }: { stream: StreamName; subject: string; from?: number },
): AsyncGenerator<JsMsg> {
  const name = streamName(prefix, stream)
  const jsm = await nc.jetstreamManager()
  const info = await jsm.streams.info(name).catch((error: { api_error?: { err_code?: number } }) => {
    if (error.api_error?.err_code !== NO_STREAM) throw error
  })
  if (!info || info.state.messages === 0) return
  const consumer = await nc
    .jetstream()
    .consumers.get(name, {
      filterSubjects: [prefixed(prefix, subject)],
      deliver_policy: DeliverPolicy.StartSequence,
      opt_start_seq: Math.max(1, from),
    })
  if ((await consumer.info()).num_pending === 0) return
  const messages = await consumer.consume()
  try {
    for await (const message of messages) {
      yield message
      if (message.info.pending === 0) return
    }
  } finally {
    await messages.close()
  }
}
