import { createParser } from 'eventsource-parser'
import { type Frame, frameFrom } from '../shared/contracts/client/frames.ts'
import { problemFrom } from '../shared/contracts/client/problem.ts'
import { ProblemError, problemOf } from './problem.ts'
import { isOfTokens, pause, type Send } from './send.ts'

export type EventsOptions = {
  /** The topics to follow, as in GET /api/v1/events: `inbox`, `operations`, `operation:{id}` and others. */
  topics: readonly string[]
  signal?: AbortSignal
  /** Where to resume: the `cursor` of the last frame. */
  cursor?: string
}
type Told = Frame & { cursor: string | undefined }

const SILENT_MS = 30_000
const FIRST_WAIT_MS = 500
const LONGEST_WAIT_MS = 15_000
/** A timer above 2^31 ms would fire at once. */
const MOST_ASKED_MS = 3_600_000
/** Refusals that pass without a change on this side. A token may be renewed meanwhile, but is refused only once. */
const PASSING = new Set([401, 408, 429, 500, 502, 503, 504])

/**
 * Follows changes until the signal ends it: every frame with its cursor. Replaces a lost or silent connection and
 * resumes after the last frame. Throws a ProblemError for a refusal that a repeat cannot change, and every error that is
 * not of the network, such as one of `renew`.
 */
export async function* events(
  { url, send }: { url: string; send: Send },
  { topics, signal, cursor }: EventsOptions,
): AsyncGenerator<Told> {
  let wait_ms = FIRST_WAIT_MS
  let unauthorised = false
  while (!signal?.aborted) {
    const lost = new AbortController()
    const request = new Request(`${url}/api/v1/events?topics=${topics.map(encodeURIComponent).join(',')}`, {
      headers: { accept: 'text/event-stream', ...(cursor !== undefined && { 'last-event-id': cursor }) },
      signal: signal ? AbortSignal.any([signal, lost.signal]) : lost.signal,
    })
    try {
      for await (const frame of framesOf(await within(lost, send(request)), lost)) {
        unauthorised = false
        wait_ms = frame.event === 'bye' ? (frame.data.retry_ms ?? FIRST_WAIT_MS) : FIRST_WAIT_MS
        cursor = frame.cursor ?? cursor
        yield { ...frame, cursor }
        if (frame.event === 'bye' && frame.data.reason === 'revoked') throw REVOKED
      }
    } catch (error) {
      if (signal?.aborted) return
      const status = error instanceof ProblemError ? error.problem.status : undefined
      const passes = status === undefined ? isLost(error) : PASSING.has(status)
      if (error === REVOKED || !passes || (status === 401 && unauthorised)) throw error
      unauthorised ||= status === 401
      if (error instanceof ProblemError)
        wait_ms = Math.max(wait_ms, Math.min(error.problem.retry_after_ms ?? 0, MOST_ASKED_MS))
    } finally {
      lost.abort()
    }
    await pause(wait_ms, signal).catch(() => {})
    wait_ms = Math.min(wait_ms * 2, LONGEST_WAIT_MS)
  }
}

/** A connection that was refused or broken, or ended by our own clock; a given `fetch` names such errors as it likes. */
const isLost = (error: unknown): boolean => !isOfTokens(error)

const REVOKED = new ProblemError(
  problemFrom(401, {
    title: 'The session is over',
    detail: 'The session was revoked. Sign in again.',
    category: 'invalid_token',
    code: 'invalid_token',
  }),
)

/** Ends a connection after thirty seconds without an answer or a byte, comments included. */
const within = async <T>(lost: AbortController, awaited: Promise<T>): Promise<T> => {
  const silent = setTimeout(() => lost.abort(), SILENT_MS)
  return awaited.finally(() => clearTimeout(silent))
}

async function* framesOf(answer: Response, lost: AbortController): AsyncGenerator<Told> {
  if (!answer.ok || answer.body === null) throw new ProblemError(await problemOf(answer))
  const frames: Told[] = []
  const parser = createParser({
    onEvent: ({ event, data, id }) => {
      const frame = frameFrom(event, data)
      if (frame) frames.push({ ...frame, cursor: id ?? (frame.event === 'hello' ? frame.data.cursor : undefined) })
    },
  })
  const decoder = new TextDecoder()
  const reader = answer.body.getReader()
  for (;;) {
    const { done, value } = await within(lost, reader.read())
    if (done) return
    parser.feed(decoder.decode(value, { stream: true }))
    yield* frames.splice(0)
  }
}
