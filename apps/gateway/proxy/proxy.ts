import type { ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import { type Dispatcher, Pool } from 'undici'
import { AppError, unavailable } from '../../shared/errors.ts'
import { type WatchedDependency, watchDependency } from '../../shared/process/dependency.ts'
import type { Telemetry } from '../../shared/telemetry.ts'
import { clientTls, mtlsOfProcess } from '../../shared/tls/mtls.ts'
import { MOST_RESTING, type Resting } from './resting.ts'
import { type BySeated, createSeats, measureSeats, type Seats } from './seats.ts'

const KEEP_ALIVE_MS = 60_000
/** Connections for requests that take no seat. */
const SPARE_CONNECTIONS = 8
/** A HEAD leaves out the body. One of this length is still read to its end, because a new connection costs more. */
const SHORT_BYTES = 65_536
/** A client that has kept an answer waiting for this long, in all, is a slow one. */
const SLOW_MS = 250

export type Upstreams = Record<'session' | 'identity' | 'token' | 'catalog' | 'operations', string>
export type ProxySettings = {
  /** Milliseconds to connect, and until the answer begins, its next piece comes, or the client has read this one. */
  connect_ms: number
  reply_ms: number
  seats: BySeated
  queues: BySeated
}
export type UpstreamHeaders = Record<string, string | string[] | undefined>
export type UpstreamRequest = {
  method: string
  path: string
  headers: Record<string, string>
  body: Buffer | Readable | null
  /** A stream of events: the time between two pieces is not limited. */
  endless: boolean
  /** It lasts, so it has a connection of its own: it must not take one that another request waits for. */
  apart: boolean
  /** Instead of the usual time until the answer begins. */
  reply_ms?: number
  /** A stopping act: it is tried even while the breaker of its upstream is open. */
  insist: boolean
}
/**
 * Where the answer goes. `begin` writes its head; `rests` hears, perhaps twice, that the upstream only waits from here
 * on: for news, or for a slow client. If one of them throws, the answer ends.
 */
export type Sink = {
  res: ServerResponse
  begin: (status: number, headers: UpstreamHeaders) => void
  rests: (why: keyof Resting) => void
}

/** What an upstream says, once, when it has looked and begins to wait for news (RFC 2518, 10.1). */
const WAITS = 102

/**
 * The connections to the upstreams. A request is sent once: neither this file nor undici repeats it, because only the
 * client knows whether its act may happen twice. The answer is written piece by piece as it comes.
 */
export const createProxy = (
  urls: Upstreams,
  { connect_ms, reply_ms, seats, queues }: ProxySettings,
  telemetry: Telemetry,
) => {
  const mtls = mtlsOfProcess()
  const connections = SPARE_CONNECTIONS + 2 * MOST_RESTING + Object.values(seats).reduce((sum, count) => sum + count, 0)
  const watched = Object.fromEntries(
    Object.keys(urls).map((name) => [name, watchDependency(telemetry, name)]),
  ) as Record<keyof Upstreams, WatchedDependency>
  const open = (connections: number | null) =>
    Object.fromEntries(
      Object.entries(urls).map(([name, url]) => [
        name,
        new Pool(url, {
          connections,
          pipelining: 1,
          connect: clientTls(mtls, url, connect_ms),
          headersTimeout: reply_ms,
          bodyTimeout: reply_ms,
          keepAliveTimeout: KEEP_ALIVE_MS,
          keepAliveMaxTimeout: KEEP_ALIVE_MS,
        }),
      ]),
    ) as Record<keyof Upstreams, Pool>
  const pools = open(connections)
  const own = open(null)
  const measured = measureSeats(telemetry)
  const seated = Object.fromEntries(
    Object.keys(urls).map((name) => [name, createSeats({ seats, queues, ...measured })]),
  ) as Record<keyof Upstreams, Seats>
  measured.watch(Object.values(seated))

  return {
    /** Who may call each upstream now: a seat is held during `pass`, except by streams and exempt routes. */
    seats: seated,
    /**
     * Forwards one request and its answer; resolves when all of it is written or the client went away. A refused or cut
     * connection is 502, a missing answer is 504. If the answer breaks off, ours does too: half must not look whole.
     * While the upstream keeps failing, it answers 503 at once.
     */
    pass: (upstream: keyof Upstreams, request: UpstreamRequest, sink: Sink): Promise<void> =>
      new Promise((resolve, reject) => {
        // It left while our checks ran: it says so only once.
        if (sink.res.destroyed) return resolve()
        const { endless, apart, insist, reply_ms: longest_ms = reply_ms, ...options } = request
        const dependency = watched[upstream]
        if (!dependency.breaker.allows(insist)) return reject(unavailable(AWAY(upstream), undefined, 'unavailable'))
        const passing = createPassing({ upstream, endless, reply_ms: longest_ms, dependency, resolve, reject }, sink)
        ;(apart ? own : pools)[upstream].dispatch(
          {
            ...options,
            method: options.method as 'GET',
            headersTimeout: longest_ms,
            ...(endless && { bodyTimeout: 0 }),
          },
          passing,
        )
      }),
    close: () => Promise.all([pools, own].flatMap(Object.values<Pool>).map((pool) => pool.destroy())),
  }
}
export type UpstreamProxy = ReturnType<typeof createProxy>

const AWAY = (upstream: string) => `The ${upstream} service is not answering.`

type Passing = {
  upstream: string
  endless: boolean
  reply_ms: number
  dependency: WatchedDependency
  resolve: () => void
  reject: (error: Error) => void
}

/** One answer on its way from the upstream's socket to the client's. */
const createPassing = (
  { upstream, endless, reply_ms, dependency, resolve, reject }: Passing,
  { res, begin, rests }: Sink,
): Dispatcher.DispatchHandler => {
  const started = performance.now()
  let controller: Dispatcher.DispatchController | undefined
  let over = false
  let begun = false
  let unsent = 0
  let unread: NodeJS.Timeout | undefined
  let look: NodeJS.Immediate | undefined
  let unread_ms = 0
  let slow = false
  const finish = () => {
    over = true
    clearTimeout(timer)
    clearTimeout(unread)
    res.off('close', gone)
  }
  const end = () => {
    if (over) return
    finish()
    res.end()
    resolve()
  }
  const gone = () => {
    if (over) return
    finish()
    if (!begun) dependency.called('http', 'gone', started)
    controller?.abort(new Error('the client went away'))
    resolve()
  }
  // Our own refusal, such as a body that grew too long, says nothing about the upstream.
  const fail = (error: unknown, late = false) => {
    if (over) return
    finish()
    if (!begun) dependency.called('http', error instanceof AppError ? 'gone' : 'failed', started)
    if (res.headersSent) res.destroy()
    reject(failureOf(error, upstream, late, READS.has(res.req.method ?? '')))
  }
  // Includes the wait for a connection, which undici's own timeout does not.
  const timer = setTimeout(() => {
    const error = new Error('the answer did not begin in time')
    fail(error, true)
    controller?.abort(error)
  }, reply_ms)
  // Its upstream has done its work, so a slow reader keeps no seat as long as there is a place. If it reads no more, `gone` reports its end.
  const stall = () => {
    if (over) return
    if (slow) return void res.destroy()
    slow = true
    rests('slow')
    unread = setTimeout(stall, reply_ms)
  }
  res.on('close', gone)
  return {
    onRequestStart: (given) => {
      controller = given
      if (over) given.abort(new Error('the caller no longer waits for this'))
    },
    onResponseStart: (given, status, headers) => {
      if (over || (status < 200 && status !== WAITS)) return
      try {
        if (status === WAITS) return rests('news')
        clearTimeout(timer)
        begun = true
        dependency.called('http', 'ok', started)
        begin(status, headers)
        if (endless) res.flushHeaders()
      } catch (error) {
        fail(error)
        given.abort(error as Error)
      }
    },
    onResponseData: (given, chunk) => {
      if (over) return
      if (res.req.method === 'HEAD') {
        unsent += chunk.length
        if (unsent <= SHORT_BYTES) return
        end()
        return given.abort(new Error('a HEAD has no body'))
      }
      if (res.write(chunk)) return
      given.pause()
      const since = performance.now()
      // What was read while this process was busy is only heard of after its timers.
      const later = () => (look = setImmediate(stall))
      unread = setTimeout(later, slow ? reply_ms : Math.max(1, SLOW_MS - Math.round(unread_ms)))
      res.once('drain', () => {
        clearTimeout(unread)
        clearImmediate(look)
        unread_ms += performance.now() - since
        given.resume()
      })
    },
    onResponseEnd: end,
    onResponseError: (_given, error) => fail(error),
  }
}

const READS = new Set(['GET', 'HEAD'])
const UNSURE = 'It is unknown whether the request was carried out.'
const AGAIN =
  'Repeat the same request with the same Idempotency-Key: if it was carried out, the answer is that of the first.'

const failureOf = (error: unknown, upstream: string, late: boolean, reads: boolean): AppError => {
  if (error instanceof AppError) return error
  const { code } = error as { code?: string }
  const timed_out = late || code === 'UND_ERR_HEADERS_TIMEOUT'
  return new AppError(
    'unavailable',
    timed_out ? 'upstream_timeout' : 'upstream_failed',
    timed_out
      ? `The ${upstream} service did not answer in time.${reads ? '' : ` ${UNSURE}`}`
      : `The ${upstream} service could not be reached.`,
    {
      status: timed_out ? 504 : 502,
      retryable: true,
      retry_after_ms: 2000 + Math.floor(Math.random() * 3000),
      hint: reads ? 'Repeat the same request.' : AGAIN,
      cause: error,
    },
  )
}
