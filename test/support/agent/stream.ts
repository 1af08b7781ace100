import type { NatsConnection } from 'nats'
import { stopWork, type Work } from './agent.ts'

/**
 * Takes the work of a pool from the stream. Each piece is acknowledged before it begins, so that no two agents ever
 * begin the same one; a piece that is lost then is given out again when its time to begin is over.
 */
export const takeFromStream = async (
  nc: NatsConnection,
  { pool, stream = 'EXECUTION', subject = `execution.${pool}` }: { pool: string; stream?: string; subject?: string },
  take: (work: Work) => Promise<void>,
) => {
  const consumer = await nc.jetstream().consumers.get(stream, pool)
  const messages = await consumer.consume({ max_messages: 1 })
  const loop = (async () => {
    for await (const message of messages) if (await message.ackAck()) void take(message.json<Work>())
  })()
  const stops = nc.subscribe(`${subject}.cancel`, { callback: (_, message) => void stopWork(message.json<Work>()) })
  return {
    close: async () => {
      stops.unsubscribe()
      await messages.close()
      await loop
    },
  }
}
