import { allow } from '../../shared/auth/http.ts'
import { EventsHeaders, EventsQuery, StreamFrame } from '../../shared/contracts/operations/events.ts'
import { text } from '../../shared/contracts/shapes.ts'
import { AppError } from '../../shared/errors.ts'
import { routes } from '../../shared/http/routes.ts'
import type { Uses } from '../deps.ts'
import { decodeCursor, encodeCursor } from './resume.ts'
import { createStream } from './stream.ts'
import type { Tail } from './tail.ts'
import { openTopics } from './topics.ts'

const PER_SESSION = 10
const GREETING = {
  topics: ['me', 'inbox', 'operations'],
  refused: [],
  cursor: '…',
  server_time: '2026-01-31T12:00:00.000Z',
}
const HELLO = `id: …\nevent: hello\ndata: ${JSON.stringify(GREETING)}\n\n`

/** The live stream (console.md 4): server-sent events, resumed by Last-Event-ID, ended with the token or the session. */
export const eventsRoutes = routes<Uses<'clock' | 'db'>, { tail: Tail }>('events', (app, { deps, tail }) => {
  app.get('/v1/events', {
    operationId: 'streamEvents',
    summary: 'Follow changes',
    description:
      'Server-sent events of the chosen topics. A topic that the caller may not see, or that is malformed, is refused alone, in `hello`. Send Last-Event-ID to resume without a gap. `x-itemSchema` describes each event, with `data` as the JSON that it holds.',
    querystring: EventsQuery,
    headers: EventsHeaders,
    produces: ['text/event-stream'],
    'x-item-schema': StreamFrame,
    response: { 200: text(HELLO, { description: 'Frames until the token or the session ends.' }) },
    preHandler: allow('operation:read', { kind: 'R' }),
    config: { endless: true },
    handler: async (req, reply) => {
      const { caller } = req
      if (tail.countOf(caller.session_id) >= PER_SESSION)
        throw new AppError('internal_error', 'overloaded', `This session already has ${PER_SESSION} open streams.`, {
          retryable: true,
          retry_after_ms: 2000,
        })
      await tail.opens(caller.session_id, async () => {
        const opened = await openTopics(deps, caller, req.query.topics)
        const here = await tail.here()
        const sent = req.headers['last-event-id']
        const resumed = sent === undefined ? undefined : decodeCursor(sent)
        const exp = (req.claims?.exp ?? 0) * 1000

        reply.hijack()
        const { raw } = reply
        raw.writeHead(200, {
          'content-type': 'text/event-stream; charset=utf-8',
          'cache-control': 'no-store, no-transform',
          'x-accel-buffering': 'no',
          'x-content-type-options': 'nosniff',
          'x-request-id': req.id,
        })
        const stream = createStream(deps, raw, caller, opened, resumed ?? here)
        // A right that ends takes the stream with it: the client comes back, and is authorized again.
        const atEnd = Math.min(exp, ...caller.grants.map(({ expires_at }) => Date.parse(expires_at ?? '') || exp))
        const timer = setTimeout(
          () => (atEnd < exp ? stream.end('shutdown', 100) : stream.end('token')),
          Math.max(0, atEnd - deps.clock.now().getTime()),
        )
        raw.on('error', () => tail.leave(stream))
        raw.on('close', () => {
          clearTimeout(timer)
          tail.leave(stream)
        })
        // It left while its topics were read, and says so only once.
        if (raw.destroyed) return void clearTimeout(timer)
        stream.send({
          event: 'hello',
          data: {
            topics: opened.accepted,
            refused: opened.refused,
            cursor: encodeCursor(stream.cursor),
            server_time: deps.clock.now().toISOString(),
          },
        })
        // The answer has begun, so an error can only end it.
        const whole = await tail.join(stream).catch((error: unknown) => {
          req.log.warn({ err: error }, 'a live stream could not begin')
          stream.end('shutdown', 1000)
        })
        if (!whole || (sent !== undefined && !resumed)) stream.resync()
      })
      return reply
    },
  })
})
