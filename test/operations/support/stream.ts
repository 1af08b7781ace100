import { createParser } from 'eventsource-parser'
import { until } from '../../support/until.ts'
import type { Person, Platform } from './platform.ts'

// biome-ignore lint/suspicious/noExplicitAny: tests look into any frame
export type StreamFrame = { event: string; id: string | undefined; data: any }

/** A client of the live stream that keeps all frames. */
export const listenTo = async (
  p: Platform,
  who: Person,
  topics: string,
  { last_event_id, instance = 0, lives_s = 900 }: { last_event_id?: string; instance?: number; lives_s?: number } = {},
) => {
  const abort = new AbortController()
  const response = await fetch(`${p.running[instance]?.url}/v1/events?topics=${encodeURIComponent(topics)}`, {
    signal: abort.signal,
    headers: {
      authorization: `Bearer ${p.tokenOf(who, { lives_s })}`,
      accept: 'text/event-stream',
      ...(last_event_id && { 'last-event-id': last_event_id }),
    },
  })
  const frames: StreamFrame[] = []
  let ended = false
  const parser = createParser({
    onEvent: ({ event = '', id, data }) => frames.push({ event, id, data: JSON.parse(data) }),
  })
  const reading = (async () => {
    const decoder = new TextDecoder()
    for await (const chunk of response.body ?? []) parser.feed(decoder.decode(chunk, { stream: true }))
  })()
    .catch(() => {})
    .finally(() => {
      ended = true
    })
  const next = (event: string, match: (frame: StreamFrame) => boolean = () => true) =>
    until(() => frames.find((frame) => frame.event === event && match(frame)), { what: `a frame ${event}` })
  if (response.status === 200) await next('hello')
  return {
    response,
    frames,
    next,
    isEnded: () => ended,
    lastId: () => frames.findLast(({ id }) => id !== undefined)?.id,
    stop: async () => {
      abort.abort()
      await reading
    },
  }
}
