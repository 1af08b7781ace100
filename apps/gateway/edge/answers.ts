import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { AppError, type CodeOf, isFault, problemOf } from '../../shared/errors.ts'
import { AUTH_CODES } from '../../shared/http/edge-codes.ts'
import { SCIM_JSON, scimBodyOf, toAppError } from '../../shared/http/problems.ts'
import { isKnown } from '../../shared/http/routes.ts'
import { requestId } from '../../shared/ids.ts'
import { logFault } from '../../shared/process/outage.ts'
import type { Priority } from '../../shared/process/priority.ts'
import type { OpenSpan } from '../../shared/tracing.ts'
import type { GatewayDeps } from '../deps.ts'
import type { StaticFile } from '../files/static.ts'
import type { Resting } from '../proxy/resting.ts'
import { API_POLICY, commonHeaders, type HeaderList } from './headers.ts'

/** One request on its way through the checks. `endpoint` is the route template once it is known. */
export type Exchange = {
  req: IncomingMessage
  res: ServerResponse
  request_id: string
  started: number
  /** The path below which the client sees us; empty at the root. */
  base: string
  endpoint: string
  /** For the objectives; undefined until the route is known, and for a stream, which has no awaited end. */
  priority: Priority | undefined
  upstream_ms: number
  /** Whether it counts as in flight; a stream of events does not, once it has begun. */
  counted: boolean
  /** Gives its seat to others, because its upstream only waits; undefined without a seat. Throws if too many do. */
  rest: ((why: keyof Resting) => void) | undefined
  /** Undefined if no spans are recorded. */
  span: OpenSpan | undefined
}

/** Answers a browser's preflight request. */
export const answerPreflight = (deps: GatewayDeps, exchange: Exchange): void => {
  const { req, res } = exchange
  exchange.endpoint = 'preflight'
  const cors = deps.cors.preflight(req.headers.origin)
  res.writeHead(204, commonHeaders(deps, exchange, [], API_POLICY, cors)).end()
}

/** Accept-Encoding that takes gzip: not by `gzip;q=0`. */
const GZIP = /\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))/

export const answerFile = (deps: GatewayDeps, exchange: Exchange, file: StaticFile, status = 200): void => {
  const { req, res } = exchange
  const { vary, ...own } = file.headers
  const cors = deps.cors.answer(req.headers.origin).map((value) => (value === 'Origin' ? (vary ?? value) : value))
  const policy = ['content-security-policy', file.policy ?? API_POLICY[1] ?? '']
  const headers = commonHeaders(deps, exchange, Object.entries(own).flat(), policy, cors)
  if (isKnown(req, file.headers.etag ?? '')) return void res.writeHead(304, headers).end()
  const zipped = file.gzip && GZIP.test(String(req.headers['accept-encoding'] ?? '')) ? file.gzip : undefined
  const bytes = zipped ?? file.bytes
  headers.push('content-length', String(bytes.length))
  if (zipped) headers.push('content-encoding', 'gzip')
  res.writeHead(status, headers)
  res.end(req.method === 'HEAD' ? undefined : bytes)
}

/** Sends an answer that the gateway makes itself. */
export const answerJson = (deps: GatewayDeps, exchange: Exchange, status: number, value: unknown): void => {
  const body = JSON.stringify(value)
  exchange.res.writeHead(status, commonHeaders(deps, exchange, headOf('application/json; charset=utf-8', body)))
  exchange.res.end(body)
}

const headOf = (type: string, body: string): HeaderList => [
  'content-type',
  type,
  'content-length',
  String(Buffer.byteLength(body)),
  'cache-control',
  'no-store',
]

const SCIM = /\/scim\/v2(\/|$)/

/** Sends every refusal as problem+json, to a directory in the form that it reads. After the answer has begun, it can only break the answer off. */
export const answerError = (deps: GatewayDeps, exchange: Exchange, thrown: unknown): void => {
  const { req, res, request_id } = exchange
  // The client went away: no one is waiting for an answer, and this is no fault.
  if (res.destroyed) return
  const error = thrown instanceof AppError ? thrown : toAppError(thrown, AUTH_CODES)
  if (isFault(error)) logFault(deps.telemetry.log, error, { request_id, route: exchange.endpoint })
  if (res.headersSent) return void res.destroy()
  const { retry_after_ms, headers } = error.options
  const path = (req.url ?? '/').split('?')[0] ?? '/'
  const scim = SCIM.test(path)
  const body = JSON.stringify(scim ? scimBodyOf(error) : problemOf(error, request_id, path))
  const own = headOf(`${scim ? SCIM_JSON : 'application/problem+json'}; charset=utf-8`, body)
  if (retry_after_ms !== undefined) own.push('retry-after', String(Math.ceil(retry_after_ms / 1000)))
  for (const [name, value] of Object.entries(headers ?? {})) {
    // An unread body would be taken for the next request, so the connection ends below.
    if (name !== 'connection') own.push(name, value)
  }
  if (!req.complete || headers?.connection) own.push('connection', 'close')
  res.writeHead(error.status, commonHeaders(deps, exchange, own))
  res.end(req.method === 'HEAD' ? undefined : body)
}

type Malformed = [status: number, code: CodeOf<'validation_error'>, text: string, detail: string]
const NOT_HTTP: Malformed = [400, 'bad_path', 'Bad Request', 'The request is not valid HTTP.']
const TOO_LONG = 'The path and headers of the request are too long.'
const MALFORMED: Record<string, Malformed> = {
  HPE_HEADER_OVERFLOW: [431, 'headers_too_large', 'Request Header Fields Too Large', TOO_LONG],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'body_too_slow', 'Request Timeout', 'The request did not arrive in time.'],
}

/** Answers requests that Node's parser refuses in our format, if that is still possible, then ends the connection. */
export const refuseMalformed = (error: NodeJS.ErrnoException, socket: Duplex): void => {
  const open = (socket as Duplex & { _httpMessage?: ServerResponse | null })._httpMessage
  // It would be read as the answer to a whole request that may take effect, or after the head of one as part of its body.
  const misread = open?.headersSent || open?.req.complete
  if (error.code === 'ECONNRESET' || !socket.writable || misread) return void socket.destroy()
  const [status, code, text, detail] = MALFORMED[error.code ?? ''] ?? NOT_HTTP
  const hint = code === 'bad_path' ? { hint: 'Send one well-formed request, with one length and a known method.' } : {}
  const refusal = new AppError('validation_error', code, detail, { status, ...hint })
  const body = JSON.stringify(problemOf(refusal, requestId(), '/'))
  socket.end(
    `HTTP/1.1 ${status} ${text}\r\nConnection: close\r\nContent-Type: application/problem+json; charset=utf-8\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n\r\n${body}`,
  )
}
