import type { IncomingMessage, ServerResponse } from 'node:http'
import { AppError, problemOf } from '../shared/errors.ts'
import { AUTH_CODES, toAppError } from '../shared/http.ts'
import type { GatewayDeps } from './deps.ts'
import { answerHeaders, withApiPolicy } from './headers.ts'
import { sendBody } from './proxy.ts'
import type { Upstream } from './routes.ts'
import { CONSOLE_POLICY, type StaticFile } from './static.ts'

/** One request on its way through the checks. `endpoint` is the route template once it is known. */
export type Exchange = {
  req: IncomingMessage
  res: ServerResponse
  request_id: string
  started: number
  endpoint: string
  upstream_ms: number
}

/** An upstream's answer as undici gives it. */
type UpstreamReply = Awaited<ReturnType<GatewayDeps['proxy']['send']>>

/** Sends an upstream's answer on, with our headers; a redirect of an upstream is not for clients. */
export const answerUpstream = async (
  deps: GatewayDeps,
  exchange: Exchange,
  upstream: Upstream,
  reply: UpstreamReply,
): Promise<void> => {
  const { statusCode, headers, body } = reply
  if (statusCode >= 300 && statusCode < 400 && statusCode !== 304) {
    body.destroy()
    throw new AppError('unavailable', 'upstream_failed', `The ${upstream} service sent a redirect.`, { status: 502 })
  }
  const { res } = exchange
  res.writeHead(statusCode, {
    ...answerHeaders(headers, upstream),
    ...commonHeaders(deps, exchange, withApiPolicy(headers['content-security-policy'])),
  })
  res.flushHeaders()
  await sendBody(body, res).catch(() => res.destroy())
}

const commonHeaders = (deps: GatewayDeps, { req, request_id }: Exchange, policy?: string | string[]) => ({
  ...deps.securityHeaders(policy),
  ...deps.cors.answer(req.headers.origin),
  'x-request-id': request_id,
})

/** Answers a browser's question before it sends. */
export const answerPreflight = (deps: GatewayDeps, exchange: Exchange): void => {
  const { req, res } = exchange
  exchange.endpoint = 'preflight'
  const headers = { ...commonHeaders(deps, exchange), ...deps.cors.preflight(req.headers.origin) }
  res.writeHead(204, { ...headers, 'content-length': '0' }).end()
}

/** Sends a file of the console. */
export const answerFile = (deps: GatewayDeps, exchange: Exchange, file: StaticFile): void => {
  const { req, res } = exchange
  exchange.endpoint = 'console'
  const headers = { ...commonHeaders(deps, exchange, file.html ? CONSOLE_POLICY : undefined), ...file.headers }
  if (req.headers['if-none-match'] === file.headers.etag) return void res.writeHead(304, headers).end()
  const zipped = file.gzip && /\bgzip\b/.test(String(req.headers['accept-encoding'] ?? '')) ? file.gzip : undefined
  const bytes = zipped ?? file.bytes
  res.writeHead(200, { ...headers, 'content-length': bytes.length, ...(zipped && { 'content-encoding': 'gzip' }) })
  res.end(req.method === 'HEAD' ? undefined : bytes)
}

/** Sends an answer of the gateway's own. */
export const answerJson = (deps: GatewayDeps, exchange: Exchange, status: number, value: unknown): void => {
  const body = JSON.stringify(value)
  exchange.res.writeHead(status, {
    ...commonHeaders(deps, exchange),
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(body),
    'cache-control': 'no-store',
  })
  exchange.res.end(body)
}

/** Every refusal is problem+json. After the answer has begun, only breaking it off tells the truth. */
export const answerError = (deps: GatewayDeps, exchange: Exchange, thrown: unknown): void => {
  const { req, res, request_id } = exchange
  // The client went away: there is nobody to answer and nothing went wrong here.
  if (res.destroyed) return
  const error = thrown instanceof AppError ? thrown : toAppError(thrown, AUTH_CODES)
  if (error.status >= 500)
    deps.telemetry.log.error({ err: error, cause: error.cause, request_id, route: exchange.endpoint }, error.message)
  if (res.headersSent) return void res.destroy()
  const { retry_after_ms, headers } = error.options
  const body = JSON.stringify(problemOf(error, request_id, (req.url ?? '/').split('?')[0] ?? '/'))
  res.writeHead(error.status, {
    ...commonHeaders(deps, exchange),
    'content-type': 'application/problem+json; charset=utf-8',
    'content-length': Buffer.byteLength(body),
    'cache-control': 'no-store',
    ...(retry_after_ms !== undefined && { 'retry-after': String(Math.ceil(retry_after_ms / 1000)) }),
    ...headers,
    // A body that nobody reads would be taken for the next request.
    ...(!req.complete && { connection: 'close' }),
  })
  res.end(req.method === 'HEAD' ? undefined : body)
}
