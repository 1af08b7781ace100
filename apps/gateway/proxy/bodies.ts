import type { IncomingMessage } from 'node:http'
import { type Readable, Transform } from 'node:stream'
import { AppError } from '../../shared/errors.ts'
import type { Pressure } from '../../shared/http/pressure.ts'
import { gone } from './seats.ts'

const SMALL_BYTES = 65_536
/** How long the rest of a small body may take, and of a large one after its answer. */
const ARRIVAL_MS = 5000
/** How many small bodies of one sender may be on their way. All of an office share an address, so the oldest gives way. */
const MOST_SMALL = 64
/** How many large ones: each holds a seat until it is here. */
const MOST_LARGE = 16
/** How many large ones of all senders who have not signed in, and of one: a few addresses would take every seat. */
const MOST_OPEN = 12
const MOST_OPEN_EACH = 4
/** No address is spelled like this. */
const OPEN = 'open'

const tooLarge = () =>
  new AppError('validation_error', 'body_too_large', 'The body is too large.', { headers: { connection: 'close' } })

const tooSlow = () =>
  new AppError('validation_error', 'body_too_slow', 'The body did not arrive in time.', {
    retryable: true,
    headers: { connection: 'close' },
  })

const tooMany = () =>
  new AppError('rate_limited', 'rate_limited', 'Too many request bodies from here are still on their way.', {
    retryable: true,
    retry_after_ms: 1000,
    headers: { connection: 'close' },
  })

/** Refuses a stated length above the limit before a byte is read. */
const refuseLong = (req: IncomingMessage, limit: number): void => {
  if (Number(req.headers['content-length'] ?? 0) > limit) throw tooLarge()
}

const hasBody = ({ headers: { 'content-length': length, 'transfer-encoding': encoding } }: IncomingMessage): boolean =>
  encoding !== undefined || (length !== undefined && length !== '0')

type Waiting = Map<string, Set<(error: Error) => void>>

const sizeOf = (waiting: Waiting, sender: string): number => waiting.get(sender)?.size ?? 0

/** Notes what refuses a body, until the request has ended. */
const note = (waiting: Waiting, req: IncomingMessage, sender: string, refuse: (error: Error) => void) => {
  const own = waiting.get(sender) ?? new Set()
  waiting.set(sender, own.add(refuse))
  req.once('close', () => {
    own.delete(refuse)
    if (own.size === 0 && waiting.get(sender) === own) waiting.delete(sender)
  })
}

/** The bodies that come in. A slow one holds no seat and is no request in flight; each sender has few of them. */
export const createBodies = ({ enter, leave }: Pressure) => {
  const small: Waiting = new Map()
  const large: Waiting = new Map()

  const read = async (req: IncomingMessage, limit: number, sender: string): Promise<Buffer> => {
    refuseLong(req, limit)
    if (!hasBody(req)) return Buffer.alloc(0)
    if (req.destroyed) throw gone()
    const { body, refuse } = readWhole(req, limit)
    if (req.complete) return body
    const others = small.get(sender)
    if (others && others.size >= MOST_SMALL) {
      const [oldest] = others
      oldest?.(tooMany())
    }
    const timer = setTimeout(() => refuse(tooSlow()), ARRIVAL_MS)
    note(small, req, sender, refuse)
    leave()
    try {
      return await body
    } finally {
      enter()
      clearTimeout(timer)
      small.get(sender)?.delete(refuse)
    }
  }

  return {
    read,
    /** Returns null if there is no body, reads a small one whole, and leaves a large one to `streamOf`. */
    receive: async (
      req: IncomingMessage,
      limit: number,
      sender: string,
      open = false,
    ): Promise<Buffer | null | undefined> => {
      if (!hasBody(req)) return null
      refuseLong(req, limit)
      if (Number(req.headers['content-length'] ?? Number.POSITIVE_INFINITY) <= SMALL_BYTES)
        return read(req, limit, sender)
      if (req.destroyed) throw gone()
      const most = open ? MOST_OPEN_EACH : MOST_LARGE
      if (sizeOf(large, sender) >= most || (open && sizeOf(large, OPEN) >= MOST_OPEN)) throw tooMany()
      note(large, req, sender, () => {})
      if (open) note(large, req, OPEN, () => {})
      return undefined
    },
  }
}
export type Bodies = ReturnType<typeof createBodies>

/** Returns the body as a stream that fails once it exceeds the limit, or if its client takes longer to send it. */
export const streamOf = (req: IncomingMessage, limit: number, arrival_ms: number): Readable => {
  let size = 0
  const counter = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      size += chunk.length
      if (size > limit) done(tooLarge())
      else done(null, chunk)
    },
  })
  // A request that is refused before it is sent has no reader to tell.
  counter.on('error', () => {})
  req.on('error', (error) => counter.destroy(error))
  const timer = setTimeout(() => {
    // A client that waits until the upstream reads on is not slow.
    if (!req.complete && !counter.writableNeedDrain) counter.destroy(tooSlow())
  }, arrival_ms)
  counter.once('close', () => clearTimeout(timer))
  return req.pipe(counter)
}

/**
 * Reads the rest of a body that was answered before its end, because the next request of the connection comes after it.
 * Ends the connection if the rest is too large or too slow.
 */
export const discardRest = (req: IncomingMessage, limit: number): void => {
  if (req.readableEnded || req.destroyed) return
  let size = 0
  const timer = setTimeout(() => req.destroy(), ARRIVAL_MS)
  req.once('close', () => clearTimeout(timer))
  req.unpipe().on('data', (chunk: Buffer) => {
    size += chunk.length
    if (size > limit) req.destroy()
  })
  req.resume()
}

const readWhole = (req: IncomingMessage, limit: number) => {
  const { promise: body, resolve, reject } = Promise.withResolvers<Buffer>()
  const chunks: Buffer[] = []
  let size = 0
  const refuse = (error: Error) => {
    req.off('data', onData).pause()
    reject(error)
  }
  const onData = (chunk: Buffer) => {
    size += chunk.length
    if (size <= limit) chunks.push(chunk)
    else refuse(tooLarge())
  }
  req
    .on('data', onData)
    .once('end', () => resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)))
    .once('error', refuse)
    .once('close', () => refuse(gone()))
  return { body, refuse }
}
