import { createParser } from 'eventsource-parser'
import { type Frame, frameFrom } from '../../shared/contracts/client/frames.ts'
import { retryAfterMs } from '../../shared/contracts/client/problem.ts'

/** Why a connection of the stream ended. */
export type StreamEnd =
  | { cause: 'lost' | 'silent' | 'unauthorised' | 'stopped' }
  | { cause: 'bye'; reason: 'token' | 'revoked' | 'shutdown' | 'slow'; retry_ms: number }
  | { cause: 'busy'; retry_ms: number }

const SILENCE_MS = 30_000
const MAX_FRAME = 2 * 1024 * 1024

type Options = {
  topics: string[]
  cursor: string | null
  token: string
  signal: AbortSignal
  onOpen: () => void
  /** Called with every part that arrives, comments included. */
  onHeard: () => void
  onFrame: (frame: Frame, cursor: string | null) => void
}

/**
 * One connection to GET /v1/events by fetch, which can send the bearer token. Resumes after `cursor`, passes on every
 * frame with its cursor, and ends with the cause. Thirty seconds without any byte, comments included, count as lost.
 */
export const connectStream = async (options: Options): Promise<StreamEnd> => {
  const abort = new AbortController()
  const signal = AbortSignal.any([abort.signal, options.signal])
  let silent = false
  let guard: ReturnType<typeof setTimeout> | undefined
  const heard = () => {
    clearTimeout(guard)
    guard = setTimeout(() => {
      silent = true
      abort.abort()
    }, SILENCE_MS)
  }
  const lost = (): StreamEnd => ({ cause: options.signal.aborted ? 'stopped' : silent ? 'silent' : 'lost' })
  heard()
  try {
    const answer = await fetch(`/api/v1/events?topics=${options.topics.join(',')}`, {
      headers: {
        accept: 'text/event-stream',
        authorization: `Bearer ${options.token}`,
        ...(options.cursor === null ? {} : { 'last-event-id': options.cursor }),
      },
      credentials: 'include',
      cache: 'no-store',
      signal,
    })
    if (answer.status === 401) return { cause: 'unauthorised' }
    if (answer.status === 429 || answer.status === 503) {
      return { cause: 'busy', retry_ms: retryAfterMs(answer.headers.get('retry-after')) || 2000 }
    }
    if (!answer.ok || answer.body === null) return { cause: 'lost' }
    return (await readFrames(answer.body, heard, options)) ?? lost()
  } catch {
    return lost()
  } finally {
    clearTimeout(guard)
    abort.abort()
  }
}

async function readFrames(
  body: ReadableStream<Uint8Array>,
  heard: () => void,
  { onOpen, onHeard, onFrame }: Pick<Options, 'onOpen' | 'onHeard' | 'onFrame'>,
): Promise<StreamEnd | undefined> {
  let end: StreamEnd | undefined
  const parser = createParser({
    maxBufferSize: MAX_FRAME,
    onEvent: ({ event, data, id }) => {
      const frame = frameFrom(event, data)
      if (frame === undefined) return
      if (frame.event === 'hello') onOpen()
      if (frame.event === 'bye') {
        end = { cause: 'bye', reason: frame.data.reason, retry_ms: frame.data.retry_ms ?? 1000 }
        return
      }
      onFrame(frame, id ?? (frame.event === 'hello' ? frame.data.cursor : null))
    },
  })
  const decoder = new TextDecoder()
  const reader = body.getReader()
  while (end === undefined) {
    const { done, value } = await reader.read()
    if (done) return undefined
    heard()
    onHeard()
    parser.feed(decoder.decode(value, { stream: true }))
  }
  return end
}
