import type { IncomingMessage, ServerResponse } from 'node:http'
import { AppError, overloaded } from '../../shared/errors.ts'
import { requestId } from '../../shared/ids.ts'
import type { AccessClaims } from '../../shared/jwt/claims.ts'
import { kidOf } from '../../shared/jwt/verifier.ts'
import type { Priority } from '../../shared/process/priority.ts'
import { isTrace } from '../../shared/process/trace.ts'
import { beginSpan } from '../../shared/tracing.ts'
import { createAnswers } from '../counts.ts'
import type { GatewayDeps } from '../deps.ts'
import { discardRest, streamOf } from '../proxy/bodies.ts'
import type { Resting } from '../proxy/resting.ts'
import { type Match, parseTarget, splitBase, type Target } from '../routes/router.ts'
import type { Route } from '../routes/table.ts'
import { answerError, answerFile, answerJson, answerPreflight, type Exchange, refuseMalformed } from './answers.ts'
import {
  answerHeaders,
  apiPolicy,
  type ClientAddress,
  checkHeaders,
  commonHeaders,
  isPreflightPath,
  traceOf,
  upstreamHeaders,
} from './headers.ts'
import { AUTH_BODY, chargeOpenRoute } from './open-routes.ts'
import { createListener } from './tls.ts'

const REQUEST_ID = /^[A-Za-z0-9._-]{8,64}$/
const MAX_HEADERS = 16_384
const API_BODY = 1_048_576
/** The graph of an intent may have 5,000 nodes. */
const OPERATIONS_BODY = 4_194_304
/** Agents send logs, and artifacts of up to 256 MiB over a slow link. */
const AGENT_BODIES: Record<string, number> = {
  '/api/v1/execution-results': 8_388_608,
  '/api/v1/artifacts/{sha256}': 268_435_456,
}
const UPLOAD_MS = 330_000
/** After this an app answers 503, also if it has not read the whole body. A slow body is refused before that. */
const APP_MS = 8000
const ARRIVAL_SHARE = 7 / 8
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
      rest: undefined,
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
  // Node would ask for the body at once; here what its head alone refuses is never sent.
  server.on('checkContinue', (req: IncomingMessage, res: ServerResponse) => {
    req.once('resume', () => {
      if (!res.headersSent) res.writeContinue()
    })
    begin(req, res)
  })
  server.on('clientError', refuseMalformed)
  return server
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

/** Ends the count of this request as one in flight; streams and work end it before their answer. */
const uncount = ({ pressure }: GatewayDeps, exchange: Exchange): void => {
  if (exchange.counted) pressure.leave()
  exchange.counted = false
}

/** Runs the checks of one route, then calls its upstream. */
const serveRoute = async (deps: GatewayDeps, exchange: Exchange, target: Target, match: Match): Promise<void> => {
  const { req } = exchange
  const { route } = match
  exchange.endpoint = route.path
  const priority = priorityFor(route, target)
  if (route.class !== 'stream') exchange.priority = priority
  const facts = { request_id: exchange.request_id, priority }
  exchange.span = beginSpan(`${req.method} ${route.path}`, parentOf(req), facts)
  if (deps.pressure.sheds(priority)) throw overloaded()
  deps.disk.refuse(route)
  const client = deps.addressOf(req.socket.remoteAddress, req.headers['x-forwarded-for'])
  if (route.permission === 'none') {
    const read = await chargeOpenRoute(deps, exchange, route, client)
    const open = route.class !== 'work'
    const body = read ?? (await deps.bodies.receive(req, limitOf(route), client.key, open))
    return seated(deps, exchange, route, client.key, () => serve(deps, exchange, target, match, { client, body }))
  }
  if (exchange.priority === 'read' || exchange.priority === 'batch') await deps.turns()
  const claims = await deps.guard.authenticate(req, client, route)
  const body = await deps.bodies.receive(req, limitOf(route), claims.sub)
  await seated(deps, exchange, route, claims.sub, async () => {
    await deps.guard.pass(route, claims)
    deps.guard.refuseForgery(req, claims)
    await serve(deps, exchange, target, match, { client, claims, body })
  })
}

const parentOf = ({ headers: { traceparent } }: IncomingMessage): string | undefined =>
  isTrace(traceparent) ? traceparent : undefined

/**
 * Runs with a seat at the route's upstream, taken once a small body is here and before Redis is asked: a request with neither a seat nor room to wait
 * costs no more than the check of a token. A stream lasts for minutes, so it has its own connections instead. A request
 * that only waits gives its seat up, and is no more in flight than a stream; a large one is held in the memory of its
 * app, so it keeps the seat.
 */
const seated = async (
  deps: GatewayDeps,
  exchange: Exchange,
  { upstream }: Route,
  flow: string,
  run: () => Promise<void>,
): Promise<void> => {
  const { proxy, resting } = deps
  const { priority, res } = exchange
  if (upstream === 'gateway' || priority === undefined || priority === 'exempt') return run()
  const seats = proxy.seats[upstream]
  const taken = seats.take(priority, flow, res)
  const seat = typeof taken === 'number' ? taken : await taken
  const since = performance.now()
  const leave = () => seats.leave(priority, flow, seat, performance.now() - since)
  let rests: keyof Resting | undefined
  exchange.rest = (why) => {
    if (rests || priority === 'batch') return
    const may = resting[why].enter(flow)
    // A wait that is refused is no failed read; an answer that is on its way is never cut for want of a place.
    if (may || why === 'news') exchange.priority = undefined
    if (!may && why === 'news') throw overloaded()
    if (!may) return
    rests = why
    leave()
    uncount(deps, exchange)
  }
  try {
    await run()
  } finally {
    if (rests) resting[rests].leave(flow)
    else leave()
  }
}

const unknownParameter = () =>
  new AppError('validation_error', 'schema_violation', 'This endpoint takes no query parameters.', {
    hint: 'Send the path alone.',
  })

/** A list of more than 200 items. */
const MANY_ITEMS = /(^|&)page_size=(20[1-9]|2[1-9]\d|[3-9]\d\d|\d{4,})(&|$)/

const priorityFor = ({ priority }: Route, { query }: Target): Priority =>
  priority === 'read' && MANY_ITEMS.test(query) ? 'batch' : priority

/** The sender of a request, and its body; undefined if it is still to be streamed. */
type Sender = { client: ClientAddress; claims?: AccessClaims; body: Buffer | null | undefined }

const limitOf = ({ upstream, path }: Route): number => {
  if (upstream === 'catalog' || path.startsWith('/scim/') || path.startsWith('/api/v1/hooks/')) return API_BODY
  return upstream === 'operations' ? (AGENT_BODIES[path] ?? OPERATIONS_BODY) : AUTH_BODY
}

/** Sends the gateway's own answer, or the upstream's. */
const serve = async (
  deps: GatewayDeps,
  exchange: Exchange,
  target: Target,
  { route, upstream_path }: Match,
  { client, claims, body }: Sender,
): Promise<void> => {
  const { req, res, request_id } = exchange
  const { upstream } = route
  if (upstream === 'gateway') {
    if (target.query !== '' && claims) throw unknownParameter()
    const { status, body: own } = await deps.own(route.path, claims)
    return answerJson(deps, exchange, status, own)
  }
  const endless = route.class === 'stream'
  const works = route.class === 'work'
  if (works) uncount(deps, exchange)
  const leave = endless && claims ? deps.streams.enter(claims, kidOf(tokenOf(req)), () => res.destroy()) : undefined
  try {
    const since = performance.now()
    const left_ms = leftOf(deps, exchange)
    const uploads = route.path in AGENT_BODIES
    const arrival_ms = uploads ? UPLOAD_MS : Math.min(left_ms, APP_MS) * ARRIVAL_SHARE
    const request = {
      method: route.method,
      path: target.query ? `${upstream_path}?${target.query}` : upstream_path,
      headers: upstreamHeaders(req.headers, {
        upstream,
        request_id,
        address: client.address,
        traceparent: exchange.span?.traceparent ?? traceOf(req.headers.traceparent),
        priority: priorityFor(route, target),
        ...(!endless && { deadline_ms: left_ms }),
        ...(target.path.startsWith('/api/') && { prefix: '/api' }),
        ...(claims && { identity: { user_id: claims.sub, jwt_payload: payloadOf(req) } }),
      }),
      body: body === undefined ? streamOf(req, limitOf(route), arrival_ms) : body,
      endless,
      apart: endless || works,
      ...(uploads && { reply_ms: UPLOAD_MS }),
      insist: route.kind === 'S',
    }
    await deps.proxy.pass(upstream, request, {
      res,
      begin: (status, headers) => {
        exchange.upstream_ms = performance.now() - since
        if (endless) uncount(deps, exchange)
        if (status >= 300 && status < 400 && status !== 304 && !(route.redirects && status === 303))
          throw new AppError('unavailable', 'upstream_failed', `The ${upstream} service sent a redirect.`)
        const passed = answerHeaders(headers, upstream, exchange.base)
        res.writeHead(status, commonHeaders(deps, exchange, passed, apiPolicy(headers['content-security-policy'])))
      },
      rests: (why) => exchange.rest?.(why),
    })
    if (body === undefined) discardRest(req, limitOf(route))
  } finally {
    leave?.()
  }
}

/** Milliseconds that the upstream has for its answer, less the time that our checks took. */
const leftOf = ({ config }: GatewayDeps, { started }: Exchange): number =>
  Math.max(1, Math.floor(config.GATEWAY__UPSTREAM__REPLY_MS - (performance.now() - started)))

const tokenOf = (req: IncomingMessage): string => req.headers.authorization?.split(' ')[1] ?? ''

/** The middle part of the verified token: base64url of the claims, as it was signed. */
const payloadOf = (req: IncomingMessage): string => req.headers.authorization?.split('.')[1] ?? ''
