import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { AppError, type CodeOf, problemOf } from '../../shared/errors.ts'
import { requestId } from '../../shared/ids.ts'
import { createAnswers } from '../counts.ts'
import type { GatewayDeps } from '../deps.ts'
import { answerError, answerFile, answerPreflight, type Exchange } from './answers.ts'
import { checkHeaders, isPreflightPath } from './headers.ts'
import { serveRoute, UPLOAD_MS, uncount } from './route.ts'
import { parseTarget, splitBase, type Target } from './target.ts'
import { createListener } from './tls.ts'

const REQUEST_ID = /^[A-Za-z0-9._-]{8,64}$/
const MAX_HEADERS = 16_384
/** How long a connection with a request may be still beyond the time of an answer; streams send something every 15 s. */
const STILL_MS = 20_000

const LISTENER = {
  maxHeaderSize: MAX_HEADERS,
  headersTimeout: 10_000,
  // A slow body of another route is cut before the time of its answer.
  requestTimeout: UPLOAD_MS,
  keepAliveTimeout: 75_000,
  connectionsCheckingInterval: 5000,
  insecureHTTPParser: false,
  // Checked below, so that a missing header is answered in our format.
  requireHostHeader: false,
  rejectNonStandardBodyWrites: false,
}

/** The public listener: every request passes the same checks in the same order (auth.md 6). */
export const createGateway = (deps: GatewayDeps) => {
  const { pressure, telemetry } = deps
  const requests = telemetry.counter('http_requests_total', 'Requests answered.', ['endpoint', 'status'])
  const seconds = telemetry.histogram('signalbox_http_request_duration_seconds', 'Time to answer.', ['endpoint'])
  const added = telemetry.histogram('signalbox_gateway_added_seconds', 'Time that the gateway itself took.')
  const answered = createAnswers(telemetry)

  const done = (exchange: Exchange) => {
    const { req, res, request_id, started, endpoint, upstream_ms } = exchange
    uncount(deps, exchange)
    const ms = performance.now() - started
    exchange.span?.end({ 'http.response.status_code': res.statusCode }, res.statusCode >= 500)
    requests.inc({ endpoint, status: res.statusCode })
    seconds.observe({ endpoint }, ms / 1000)
    if (exchange.priority)
      answered(exchange.priority, res.statusCode < 500 ? 'answered' : 'failed', ms / 1000, exchange.span?.traceparent)
    if (upstream_ms > 0) added.observe(Math.max(0, ms - upstream_ms) / 1000)
    if (endpoint.startsWith('/health')) return
    telemetry.access({ request_id, route: endpoint, method: req.method ?? '', status: res.statusCode, ms })
  }

  const begin = (req: IncomingMessage, res: ServerResponse) => {
    const given = req.headers['x-request-id']
    const request_id = typeof given === 'string' && REQUEST_ID.test(given) ? given : requestId()
    const exchange: Exchange = {
      req,
      res,
      request_id,
      started: performance.now(),
      base: '',
      endpoint: 'unknown',
      priority: undefined,
      upstream_ms: 0,
      counted: true,
      span: undefined,
    }
    pressure.enter()
    res.on('close', () => done(exchange))
    handle(deps, exchange).catch((error: unknown) => answerError(deps, exchange, error))
  }

  const server = createListener(LISTENER, deps.config.tls, begin)
  server.timeout = deps.config.GATEWAY__UPSTREAM__REPLY_MS + STILL_MS
  // Node would answer any other expectation than `100-continue` in its own format.
  server.on('checkExpectation', begin)
  server.on('clientError', refuseMalformed)
  return server
}

type Malformed = [status: number, code: CodeOf<'validation_error'>, text: string, detail: string]
const NOT_HTTP: Malformed = [400, 'bad_path', 'Bad Request', 'The request is not valid HTTP.']
const TOO_LONG = 'The path and headers of the request are too long.'
const MALFORMED: Record<string, Malformed> = {
  HPE_HEADER_OVERFLOW: [431, 'headers_too_large', 'Request Header Fields Too Large', TOO_LONG],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'body_too_slow', 'Request Timeout', 'The request did not arrive in time.'],
}

/** Answers requests that Node's parser refuses in our format, if that is still possible, then ends the connection. */
const refuseMalformed = (error: NodeJS.ErrnoException, socket: Duplex): void => {
  // After the head of an answer, another one would be read as part of its body.
  const begun = (socket as Duplex & { _httpMessage?: ServerResponse | null })._httpMessage?.headersSent
  if (error.code === 'ECONNRESET' || !socket.writable || begun) return void socket.destroy()
  const [status, code, text, detail] = MALFORMED[error.code ?? ''] ?? NOT_HTTP
  const refusal = new AppError('validation_error', code, detail, { status })
  const body = JSON.stringify(problemOf(refusal, requestId(), '/'))
  socket.end(
    `HTTP/1.1 ${status} ${text}\r\nConnection: close\r\nContent-Type: application/problem+json; charset=utf-8\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n\r\n${body}`,
  )
}

const handle = async (deps: GatewayDeps, exchange: Exchange): Promise<void> => {
  const { req } = exchange
  // Older versions have neither hosts nor the length rules by which two parsers agree where a request ends.
  if (req.httpVersion !== '1.1') throw otherVersion()
  if (!req.headers.host) throw hostMissing()
  const { url, base } = splitBase(
    req.url ?? '',
    req.headers['x-forwarded-prefix'],
    deps.config.GATEWAY__HTTP__BASE_PATH,
  )
  exchange.base = base
  let target: Target
  try {
    target = parseTarget(url)
  } catch (refusal) {
    return refuseTarget(deps, exchange, refusal)
  }
  checkHeaders(req, target.path.startsWith('/v1/token'))
  if (req.method === 'OPTIONS' && isPreflightPath(target.path)) return answerPreflight(deps, exchange)
  const found = deps.router(req.method ?? '', target.segments)
  if (found && 'match' in found) return serveRoute(deps, exchange, target, found.match)
  if (found) throw methodNotAllowed(found.allow)
  const file =
    deps.docs(target.path, base) ?? (base ? undefined : await deps.files(target.path, target.segments, req.headers))
  if (!file)
    throw new AppError('not_found', 'not_found', `There is no ${req.method} ${target.path}.`, {
      ...(base && { hint: `The console is at ${deps.config.GATEWAY__HTTP__PUBLIC_ORIGIN}/.` }),
    })
  if (req.method !== 'GET' && req.method !== 'HEAD') throw methodNotAllowed(['GET', 'HEAD'])
  answerFile(deps, exchange, file)
}

/** A person who mistypes an address reads of it in the console, as of any other that leads nowhere. */
const refuseTarget = async (deps: GatewayDeps, exchange: Exchange, refusal: unknown): Promise<void> => {
  const { method, url = '', headers } = exchange.req
  if (exchange.base) throw refusal
  const first = /^\/([\w-]+)\//.exec(url)?.[1]
  const page = method === 'GET' && first ? await deps.files(`/${first}/`, [first, ''], headers) : undefined
  if (!page || !(refusal instanceof AppError)) throw refusal
  answerFile(deps, exchange, page, refusal.status)
}

const otherVersion = () =>
  new AppError('validation_error', 'bad_path', 'Only HTTP/1.1 is served here.', {
    status: 505,
    hint: 'Send the request as HTTP/1.1 with a Host header.',
    headers: { connection: 'close' },
  })

const hostMissing = () =>
  new AppError('validation_error', 'bad_path', 'The header Host is missing.', {
    hint: 'Send the request with a Host header.',
    headers: { connection: 'close' },
  })

const methodNotAllowed = (allow: string[]) =>
  new AppError('not_found', 'method_not_allowed', 'This method is not available here.', {
    headers: { allow: allow.join(', ') },
  })
