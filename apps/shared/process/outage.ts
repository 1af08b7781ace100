import type { AppError } from '../errors.ts'
import type { Telemetry } from '../telemetry.ts'

/** Another service did not answer, or cannot now: the question is still open, and may be asked again. */
export class Away extends Error {}

/** Returns another service's refusal as an error: an outage if the status says so, otherwise a fault of the request. */
export const refusalOf = (who: string, status: number, what: string): Error => {
  const words = `${who} answered ${status} for ${what}`
  return status >= 500 || OF_ITS_STATE.has(status) ? new Away(words) : new Error(words)
}
const OF_ITS_STATE = new Set([401, 403, 408, 425, 429])

const NETWORK = new Set(['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'ENOTFOUND'])

/** The database is well, but other requests of this class hold its connections. */
export const POOL_FULL = 'all connections of this class are in use'
const LOST =
  /all connections of this class are in use|timeout exceeded when trying to connect|Connection terminated|is not queryable|Query read timeout/

/**
 * Connection, resources, operator intervention, a lost race, a lock, the server's disk, a transaction that a busy process
 * left idle for too long, or a server that only reads: the cause is the server or the moment, not the statement.
 */
const SQL_STATE = /^((08|40|53|55|57|58)[0-9A-Z]{3}|25P0[34]|25006)$/

/** Whether the database could not be reached, or went away in the middle: the same statement may be retried. */
export const isDatabaseAway = (error: unknown): boolean => {
  const { message, code, cause } = error as {
    message?: string
    code?: string
    cause?: { code?: string; message?: string }
  }
  const known = cause?.code ?? code ?? ''
  return NETWORK.has(known) || SQL_STATE.test(known) || LOST.test(`${message} ${cause?.message ?? ''}`)
}

/**
 * Codes of the system, of the HTTP client and of a certificate that must be renewed; not those of a missing file or of a
 * wrong call (`ERR_…`).
 */
const SYSTEM =
  /^(E(?!RR_|NOENT|ACCES|PERM|EXIST|ISDIR|NOTDIR|INVAL)[A-Z_]+|UND_ERR_[A-Z_]+|CERT_HAS_EXPIRED|CERT_NOT_YET_VALID)$/
const TIMEOUTS = new Set(['TimeoutError', 'AbortError'])
const DEPTH = 5

/** Whether a later retry can help: the owner, the network or the database was away, or too slow. */
export const isOutage = (error: unknown): boolean => {
  let at = error
  for (let depth = 0; at instanceof Error && depth < DEPTH; depth++) {
    const { code = '' } = at as NodeJS.ErrnoException
    if (at instanceof Away || TIMEOUTS.has(at.name) || LOST.test(at.message)) return true
    if (SQL_STATE.test(code) || SYSTEM.test(code)) return true
    at = at.cause
  }
  return false
}

const REPEAT_MS = 60_000
const MOST_LINES = 100
const told = new Map<string, { at: number; more: number }>()

/**
 * Logs a fault with its stack. An outage refuses many requests for one reason: one line a minute names it, with how many
 * `more` it refused since the line before.
 */
export const logFault = (
  log: Pick<Telemetry['log'], 'error'>,
  error: AppError,
  about: Record<string, unknown>,
): void => {
  if (error.status !== 503) {
    log.error({ err: error, cause: error.cause, ...about }, error.message)
    return
  }
  const why = reasonOf(error.cause)
  const [line, now] = [`${error.message} ${why}`, performance.now()]
  const before = told.get(line)
  if (before && now - before.at < REPEAT_MS) {
    before.more += 1
    return
  }
  if (told.size >= MOST_LINES) told.clear()
  told.set(line, { at: now, more: 0 })
  log.error({ code: error.code, ...about, why, more: before?.more }, error.message)
}

/** The messages of an error and its causes. A host whose addresses all refused has only a code. */
const reasonOf = (error: unknown): string =>
  error instanceof Error
    ? [error.message || (error as NodeJS.ErrnoException).code, reasonOf(error.cause)].filter(Boolean).join(': ')
    : ''
