import type { NatsConnection } from 'nats'
import { stopWork, type Work } from './agent.ts'

/** More often than the minute after which an agent counts as silent. */
const LIFE_MS = 20_000

/** Says that an agent lives, until it is told to end: `subject` is that of its pool, such as agents.infra. */
export const announce = (nc: NatsConnection, subject: string, about: { labels?: object; agent: { name: string } }) => {
  const say = (leaves?: 'gone') =>
    nc.publish(subject, JSON.stringify({ ...about, agent: { ...about.agent, ...(leaves && { leaves }) } }))
  say()
  const timer = setInterval(say, LIFE_MS)
  return () => {
    clearInterval(timer)
    say('gone')
  }
}

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
