import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { hostname } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { ConfigError, faultsOf, wrongSettings } from '../config.ts'
import { linksOfProcess, loadLinks, redisLink } from '../links.ts'
import { startMetering } from '../metering.ts'
import { isOutage } from '../process/outage.ts'
import { type Logger, loadLogLevel, type Telemetry } from '../telemetry.ts'
import { loadMtls, mtlsOfProcess } from '../tls/mtls.ts'
import { renewAll } from '../tls/pairs.ts'
import { startTracing } from '../tracing.ts'
import { loadBounds } from './pressure.ts'

/** A running app: `stop` closes it in the order of reliability.md 2.6 (readiness red, drain, connections last). */
export type Running = { stop: () => Promise<void>; telemetry: Telemetry; part?: Part }

const HARD_EXIT_MS = 40_000
const START_MS = 60_000
const AGAIN_MS = 250

/**
 * Runs one app as a process: starts it, stops it in order on SIGTERM or SIGINT (a second signal exits at once), and
 * exits 1 on an uncaught error or without its dependencies. A wrong configuration exits 78, and prints its faults and
 * no stack.
 */
export const runApp = async (name: string, start: () => Promise<Running>): Promise<void> => {
  let running: Running | undefined
  let report: { stop: () => Promise<void> } | undefined
  let endTracing = async (): Promise<void> => {}
  let endMetering = endTracing
  let stopping = false
  const fail = (what: string) => (error: unknown) => {
    if (running) running.telemetry.log.fatal({ err: error }, what)
    else console.error(`${name}: ${what}:`, error)
    process.exit(1)
  }
  process.on('uncaughtException', fail('uncaught error'))
  process.on('unhandledRejection', fail('unhandled rejection'))
  const stop = () => {
    if (stopping) process.exit(1)
    stopping = true
    setTimeout(() => process.exit(1), HARD_EXIT_MS).unref()
    if (!running) process.exit(0)
    const { log } = running.telemetry
    const since = performance.now()
    log.info('stopping in order')
    const stopped = Promise.all([running.stop(), report?.stop()]).then(() => Promise.all([endTracing(), endMetering()]))
    stopped.then(
      () => {
        log.info({ ms: Math.round(performance.now() - since) }, 'stopped')
        process.exit(0)
      },
      (error) => fail('did not stop in order')(error),
    )
  }
  process.on('SIGTERM', stop)
  process.on('SIGINT', stop)
  try {
    if (process.env.NODE_ENV === 'production' && process.env.SIGNALBOX_CRASH_AT)
      throw new ConfigError('SIGNALBOX_CRASH_AT is set: production does not kill itself for tests.')
    endTracing = await startTracing(name)
    running = await start()
    endMetering = await startMetering(name, running.telemetry.metrics)
    linksOfProcess() // also for an app that connects later
    mtlsOfProcess() // also for an app that has no internal listener and no RPC to call
    const { log } = running.telemetry
    setInterval(() => renewAll(log), RENEW_MS).unref()
    if (running.part) report = reportPart(name, running.part, log)
  } catch (error) {
    const words = wordsFor(name, withAllFaults(error))
    if (words) console.error(`${name}: ${words}`)
    else console.error(`${name}: could not start:`, error)
    if (error instanceof ConfigError && !(error instanceof Missed)) process.exit(CONFIG_WRONG)
    process.exit((error as NodeJS.ErrnoException).code === 'EADDRINUSE' ? PORT_TAKEN : 1)
  }
}

/** New files of certificates are for the connections from then on. */
const RENEW_MS = 60_000

/** One schema's settings are wrong: also report the faults of every other app, so that they can be fixed together. */
const withAllFaults = (error: unknown): unknown => {
  if (!(error instanceof ConfigError) || error.faults.length === 0) return error
  const others = [loadMtls, loadLinks, loadLogLevel, loadBounds].flatMap((load) => faultsOf(() => load()))
  return wrongSettings([...new Set([...error.faults, ...others])])
}

/** EX_CONFIG of sysexits.h: a restart does not fix it. */
const CONFIG_WRONG = 78

/** The exit code that tells a supervisor to assign another port. */
export const PORT_TAKEN = 98

/** Describes an external fault in one line; a fault of the app itself keeps its stack. */
const wordsFor = (name: string, error: unknown): string | undefined => {
  if (error instanceof ConfigError) return error.message
  const { code, syscall, message, port } = error as NodeJS.ErrnoException & { port?: number }
  if (code === 'EADDRINUSE') return `port ${port} is taken. Set another one in ${name.toUpperCase()}__…__PORT.`
  return syscall ? message : undefined
}

const IDLE_LOOK_MS = 50

/**
 * Lets a closing server end. Node closes idle connections only once, so one with an answer in flight at that moment
 * would stay open for its whole keep-alive time. Node also treats a connection without a request as busy (browsers and
 * pools open such ahead). Call it before the server listens, and the returned function as it closes.
 */
export const idleConnections = (server: Server): (() => void) => {
  const open = new Set<Socket>()
  // By TLS the handshake alone is bytes of the first; the second counts what a caller sent.
  for (const event of ['connection', 'secureConnection'])
    server.on(event, (socket: Socket) => {
      open.add(socket)
      socket.once('close', () => open.delete(socket))
    })
  const end = () => {
    server.closeIdleConnections()
    for (const socket of open) if (socket.bytesRead === 0) socket.destroy()
  }
  return () => {
    const look = setInterval(end, IDLE_LOOK_MS)
    server.once('close', () => clearInterval(look))
  }
}

/**
 * Retries a repeatable act of the start, for as long as `waitFor` waits, while the database is away or busy. A replica
 * that starts at the same moment may hold the lock for longer than a statement waits.
 */
export const insist = async <T>(act: () => Promise<T>): Promise<T> => {
  const end = performance.now() + START_MS
  for (;;) {
    try {
      return await act()
    } catch (error) {
      if (!isOutage(error) || performance.now() > end) throw error
      await delay(AGAIN_MS)
    }
  }
}

/** A dependency is away, which a restart may outlast: it is told in one line, too, but is no wrong setting. */
class Missed extends ConfigError {}

/** Waits for a dependency at start; on timeout throws a ConfigError: its own, or one that names what is missing. */
export const waitFor = async (what: string, probe: () => Promise<unknown>, timeout_ms = START_MS): Promise<void> => {
  const end = performance.now() + timeout_ms
  for (;;) {
    try {
      await probe()
      return
    } catch (error) {
      if (performance.now() > end && error instanceof ConfigError) throw error
      if (performance.now() > end)
        throw new Missed(`${what} did not answer within ${timeout_ms / 1000} s: ${(error as Error).message}`)
      await delay(AGAIN_MS)
    }
  }
}

/** A process's report on itself for GET /v1/platform/health (reliability.md 2.3). */
type Part = {
  /** Undefined: no report is written. */
  redis_url: string | undefined
  prefix: string
  /** The answer of /health/ready. */
  read: () => Promise<{ status: string; checks: object }>
  /** How far behind it is, in its own numbers. */
  lags?: () => Promise<Record<string, number>>
}

const EVERY_MS = 10_000
/** Longer than the silence after which a part counts as gone, so that its absence stays visible for a while. */
export const PART_TTL_S = 600
export const PART_SILENT_S = 30
/** Longer than the reports live: a clock that is ahead must not make one forget the others. */
const FORGOTTEN_MS = 6 * PART_TTL_S * 1000

/** The names of all parts by the time of their last report: without it, a reader would look through all keys. */
export const partsKey = (prefix: string): string => `${prefix}ops:part:all`

/** Writes `ops:part:<app>:<instance>` every 10 s. Best effort: no one waits, and the next write makes up for a miss. */
export const reportPart = (app: string, { redis_url, prefix, read, lags }: Part, log: Logger) => {
  if (!redis_url) return { stop: async () => {} }
  const redis = new Redis(redis_url, {
    ...redisLink(redis_url),
    connectionName: `${app}-part`,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    commandTimeout: 500,
    retryStrategy: (attempt) => Math.min(100 * attempt, 2000),
  })
  redis.on('error', () => {}) // each app's own check of Redis reports errors
  const key = `${prefix}ops:part:${app}:${hostname()}-${process.pid}`
  const all = partsKey(prefix)
  let since = new Date().toISOString()
  let status: string | undefined

  const tell = async () => {
    const [answer, behind] = await Promise.all([read(), lags?.().catch(() => ({})) ?? {}])
    if (answer.status !== status) since = new Date().toISOString()
    status = answer.status
    const now = Date.now()
    await redis
      .multi()
      .set(key, JSON.stringify({ ...answer, since, lags: behind }), 'EX', PART_TTL_S)
      .zadd(all, now, key)
      .zremrangebyscore(all, '-inf', now - FORGOTTEN_MS)
      // Gateways of before the index take it for a report, and cannot read it.
      .expire(all, PART_TTL_S)
      .exec()
  }
  const tellSoon = () =>
    void tell().catch((error) => log.debug({ err: error }, 'the state of this part cannot be published'))
  redis.on('ready', tellSoon)
  const timer = setInterval(tellSoon, EVERY_MS)
  return {
    /** A part that ends in order disappears at once instead of becoming silent. */
    stop: async () => {
      clearInterval(timer)
      await redis
        .multi()
        .del(key)
        .zrem(all, key)
        .exec()
        .catch(() => {})
      redis.disconnect()
    },
  }
}
