import type { IncomingMessage, ServerResponse } from 'node:http'
import { type Readable, Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { Pool } from 'undici'
import { AppError } from '../shared/errors.ts'

/** Milliseconds: to connect, until the answer begins, and between two pieces of it. */
const CONNECT_MS = 1000
const REPLY_MS = 9000
const KEEP_ALIVE_MS = 60_000

export type Upstreams = Record<'session' | 'identity' | 'token' | 'catalog' | 'operations', string>
export type UpstreamRequest = {
  method: string
  path: string
  headers: Record<string, string>
  body: Buffer | Readable | null
  /** A stream of events: no time between two pieces is too long. */
  endless: boolean
  signal: AbortSignal
}

/**
 * The connections to the upstreams. A request is sent once: nothing here or in undici repeats it, because only the
 * client knows whether its act may happen twice.
 */
export const createProxy = (urls: Upstreams) => {
  const pools = Object.fromEntries(
    Object.entries(urls).map(([name, url]) => [
      name,
      new Pool(url, {
        connections: 128,
        pipelining: 1,
        connect: { timeout: CONNECT_MS },
        headersTimeout: REPLY_MS,
        bodyTimeout: REPLY_MS,
        keepAliveTimeout: KEEP_ALIVE_MS,
        keepAliveMaxTimeout: KEEP_ALIVE_MS,
      }),
    ]),
  ) as Record<keyof Upstreams, Pool>

  return {
    /** Sends one request. Refused or cut connections are 502, a missing answer is 504. */
    send: async (upstream: keyof Upstreams, { endless, signal, ...request }: UpstreamRequest) => {
      const late = AbortSignal.timeout(REPLY_MS)
      const waiting = new AbortController()
      const abort = () => waiting.abort(late.aborted ? late.reason : signal.reason)
      late.addEventListener('abort', abort)
      signal.addEventListener('abort', abort)
      try {
        const reply = await pools[upstream].request({
          ...request,
          method: request.method as 'GET',
          signal: waiting.signal,
          ...(endless && { bodyTimeout: 0 }),
        })
        return reply
      } catch (error) {
        throw failureOf(error, upstream, late.aborted)
      } finally {
        // The answer has begun: from here on only the client's going away ends it.
        late.removeEventListener('abort', abort)
      }
    },
    close: () => Promise.all(Object.values(pools).map((pool) => pool.destroy())),
  }
}
export type Proxy = ReturnType<typeof createProxy>

const failureOf = (error: unknown, upstream: string, late: boolean): AppError => {
  if (error instanceof AppError) return error
  const { code } = error as { code?: string }
  const timed_out = late || code === 'UND_ERR_HEADERS_TIMEOUT'
  return new AppError(
    'unavailable',
    timed_out ? 'upstream_timeout' : 'upstream_failed',
    timed_out ? `The ${upstream} service did not answer in time.` : `The ${upstream} service could not be reached.`,
    {
      status: timed_out ? 504 : 502,
      retryable: true,
      retry_after_ms: 2000 + Math.floor(Math.random() * 3000),
      hint: 'Repeat the same request with the same Idempotency-Key.',
      cause: error,
    },
  )
}

export const bodyTooLarge = () =>
  new AppError('validation_error', 'body_too_large', 'The body is too large.', {
    status: 413,
    hint: 'Send less in one request.',
    headers: { connection: 'close' },
  })

/** Refuses a stated length above the limit before a byte is read. */
export const refuseLongBody = (req: IncomingMessage, limit: number): void => {
  if (Number(req.headers['content-length'] ?? 0) > limit) throw bodyTooLarge()
}

/** The body as a stream that fails once it is longer than it may be; null when there is none. */
export const limitedBody = (req: IncomingMessage, limit: number): Readable | null => {
  const { 'content-length': length, 'transfer-encoding': encoding } = req.headers
  if (encoding === undefined && (length === undefined || length === '0')) return null
  let size = 0
  const counter = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      size += chunk.length
      if (size > limit) done(bodyTooLarge())
      else done(null, chunk)
    },
  })
  req.on('error', (error) => counter.destroy(error))
  return req.pipe(counter)
}

/** Reads a small body whole. */
export const readBody = async (req: IncomingMessage, limit: number): Promise<Buffer> => {
  const chunks: Buffer[] = []
  for await (const chunk of limitedBody(req, limit) ?? []) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

/** Sends an upstream's body on. A body that breaks off breaks our answer off too: half of it must not look whole. */
export const sendBody = async (body: Readable, res: ServerResponse): Promise<void> => {
  await pipeline(body, res)
}
