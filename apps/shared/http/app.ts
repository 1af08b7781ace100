import type { Server, TLSSocket } from 'node:tls'
import { SerializerSelector } from '@fastify/fast-json-stringify-compiler'
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv'
import fastify, {
  type FastifyError,
  type FastifyInstance,
  type FastifyRequest,
  type FastifySchemaCompiler,
  LogController,
} from 'fastify'
import type { TSchema } from 'typebox'
import { addFormats } from '../data/formats.ts'
import { JSON_LIMITS, type JsonLimits } from '../data/json.ts'
import { AppError, unavailable } from '../errors.ts'
import { Deadline, withinDeadline } from '../process/deadline.ts'
import { createAnswered, type Edge, requestIdOf } from '../process/edge.ts'
import { isTrace, withinTrace } from '../process/trace.ts'
import type { Telemetry } from '../telemetry.ts'
import { isAdmitted, type Mtls, mtlsOfProcess, serverTls } from '../tls/mtls.ts'
import { onRenewal } from '../tls/pairs.ts'
import { beginSpan, type OpenSpan } from '../tracing.ts'
import type { EdgeCodes } from './edge-codes.ts'
import { acceptJson, acceptNoBody, unstorable } from './json-body.ts'
import { idleConnections } from './lifecycle.ts'
import { closeInputs, type Documented, describeRoutes } from './openapi.ts'
import { PRIORITY_HEADER, priorityOf, shedLoad } from './pressure.ts'
import { sendProblem, toAppError, unreadablePath, unreadableQuery } from './problems.ts'
import { Problem } from './routes.ts'

export type HttpOptions = {
  telemetry: Telemetry
  codes: EdgeCodes
  /** Bytes; 1 MiB by default. */
  body_limit?: number
  /** A listener for our own apps alone; the others serve the public behind the gateway. */
  internal?: true
  /** The process's own by default. */
  mtls?: Mtls | undefined
  json_limits?: JsonLimits
  /** Milliseconds until a request is answered, if necessary with 503 (reliability.md 2.4); 8 s by default. */
  deadline_ms?: number
  /** Milliseconds until a whole request must have arrived; 10 s by default. */
  request_ms?: number
  /** Called for each refusal before it is sent, for audit logs and counters. */
  onRefused?: (req: FastifyRequest, error: AppError) => Promise<void>
  /** The OpenAPI document's description of itself; without it, routes are not described. */
  openapi?: Documented
}

/** A connection that is silent this long during a request is cut: longer than any answer or pause of a stream. */
const SILENT_MS = 60_000
/** The gateway accepts 16 KiB, Node's own limit, and adds to them. */
const MAX_HEADERS = 32_768
const DEADLINE_MS = 8000
const REQUEST_MS = 10_000

/** Creates a Fastify app by our conventions: TypeBox schemas, strict bodies, problem+json, request ids and metrics. */
export const createHttpApp = (options: HttpOptions) => {
  const { telemetry, codes } = options
  const mtls = 'mtls' in options ? options.mtls : mtlsOfProcess()
  const callers = (options.internal ? mtls?.allowed_sans : mtls?.public_sans) ?? EVERY_APP
  const limits = { maxHeaderSize: MAX_HEADERS }
  const server: object = mtls ? { https: { ...serverTls(mtls), ...limits } } : { http: limits }
  const app = fastify({
    ...server,
    loggerInstance: telemetry.log,
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'request_id' }),
    bodyLimit: options.body_limit ?? 1_048_576,
    connectionTimeout: SILENT_MS,
    requestTimeout: options.request_ms ?? REQUEST_MS,
    keepAliveTimeout: 75_000,
    genReqId: (req) => requestIdOf(req.headers),
    routerOptions: { maxParamLength: 512 },
    schemaController: { compilersFactory: { buildSerializer: serializers } },
    frameworkErrors: (_error, req, reply) => {
      reply.header('x-request-id', req.id)
      sendProblem(req, reply, unreadablePath(codes))
    },
  }).withTypeProvider<TypeBoxTypeProvider>()

  if (mtls) {
    admitOurs(app, codes, callers)
    const secured = app.server as unknown as Server
    secured.once(
      'close',
      onRenewal(mtls, () => secured.setSecureContext(serverTls(mtls))),
    )
  }
  boundTime(app, telemetry, codes, options.deadline_ms ?? DEADLINE_MS)
  app.setValidatorCompiler(validators())
  app.addHook('onRoute', closeInputs)
  // After unauthorized callers have been refused, and before the text is used.
  app.addHook('preParsing', (req, _reply, _payload, done) => {
    if (!req.url.includes('%')) return done()
    if (!isDecodable(req.url)) return done(unreadableQuery(codes))
    if (!req.url.includes('%00')) return done()
    done(unstorable(codes, req.url.split('?')[0]?.includes('%00') ? '/params' : '/querystring'))
  })
  // Like the deadline, it is set after the body.
  recordSpans(app)
  const plain = app as unknown as FastifyInstance // without the types of our logger and schemas
  if (options.openapi) describeRoutes(plain, options.openapi, Problem)
  acceptJson(plain, options.json_limits ?? JSON_LIMITS, codes)
  acceptNoBody(plain)
  answerErrors(app, options)
  const answered = createAnswered(telemetry)
  measureRequests(app, answered)
  const endIdle = idleConnections(app.server)
  app.addHook('preClose', async () => endIdle())
  shedLoad(plain, telemetry, codes)
  app.decorate('edge', { admits: (req) => !mtls || isAdmitted(req.socket as TLSSocket, callers), answered })
  return app
}
export type HttpApp = ReturnType<typeof createHttpApp>

/**
 * Path and query arrive as text and are coerced; bodies are taken unchanged. No member is ever removed silently.
 * Validators and serializers are compiled when a route is first used: all of them together cost an app a second of a
 * core at its start, and most processes use few.
 */
const validators = (): FastifySchemaCompiler<TSchema> => {
  const common = {
    allErrors: true,
    removeAdditional: false,
    useDefaults: true,
    strict: false,
    strictNumbers: true,
    validateFormats: true,
  } as const
  const strict = new Ajv({ ...common, coerceTypes: false })
  const coercing = new Ajv({ ...common, coerceTypes: 'array' })
  for (const ajv of [strict, coercing]) addFormats(ajv)
  return ({ schema, httpPart }) => {
    const numbers = httpPart === 'body' ? [] : numbersOf(schema)
    let compiled: ValidateFunction | undefined
    const validate = (input: Record<string, unknown>): boolean => {
      for (const name of numbers)
        if (typeof input[name] === 'string' && !DECIMAL.test(input[name])) input[name] = NO_NUMBER
      compiled ??= (httpPart === 'body' ? strict : coercing).compile(schema as object)
      const fits = compiled(input) as boolean
      validate.errors = compiled.errors ?? null
      return fits
    }
    validate.errors = null as ErrorObject[] | null
    return validate
  }
}

const numbersOf = ({ properties = {} }: { properties?: Record<string, { type?: string | string[] }> }): string[] =>
  Object.entries(properties)
    .filter(([, { type }]) => [type].flat().some((one) => one === 'integer' || one === 'number'))
    .map(([name]) => name)

/** How a number is written in a path or query. Ajv would also read `0x10`, `1e3`, and `1e999` as Infinity. */
const DECIMAL = /^-?\d{1,16}(\.\d{1,16})?$/
/** Takes the place of another spelling, so that the refusal is the usual one. */
const NO_NUMBER = 'not a number'

const serializers: ReturnType<typeof SerializerSelector> = (...all) => {
  const compile = SerializerSelector()(...all)
  return (route) => {
    let compiled: ReturnType<typeof compile> | undefined
    return (value) => {
      compiled ??= compile(route)
      return compiled(value)
    }
  }
}

const isDecodable = (url: string): boolean => {
  try {
    decodeURIComponent(url)
    return true
  } catch {
    return false
  }
}

const EVERY_APP: ReadonlySet<string> = new Set()

/**
 * A caller without an accepted certificate learns only whether the app is alive, because an orchestrator's probes have
 * none. Each of our apps may read the keys of user tokens.
 */
const admitOurs = (app: HttpApp, codes: EdgeCodes, callers: ReadonlySet<string>) => {
  app.addHook('onRequest', async (req) => {
    const { url } = req.routeOptions
    if (url?.startsWith('/health/')) return
    if (isAdmitted(req.raw.socket as TLSSocket, url?.endsWith('/jwks') ? EVERY_APP : callers)) return
    const category = codes.categories.includes('invalid_token') ? 'invalid_token' : 'policy_denied'
    throw new AppError(
      category,
      'certificate_required',
      "This listener accepts calls from the platform's own apps only.",
      {
        status: 401,
        hint: 'Call with a client certificate of the authority in AUTH__TLS__CA_FILE whose name is in AUTH__TLS__ALLOWED_SANS or, behind the gateway, AUTH__TLS__PUBLIC_SANS.',
      },
    )
  })
}

/**
 * Answers 503 when the time of a request is over: this app's limit, or less if the caller states in
 * `x-request-deadline` how many milliseconds it will wait (a private listener: only the gateway sets it). The work of
 * the request ends first, including in the database. A read also ends when its caller goes away. Fastify's own
 * `handlerTimeout` has one time per route, and creates and ends an abort signal for every request.
 */
const boundTime = (app: HttpApp, telemetry: Telemetry, codes: EdgeCodes, deadline_ms: number) => {
  const exceeded = telemetry.counter('signalbox_deadline_exceeded_total', 'Requests that were not answered in time.')
  const refusal = () => unavailable('The answer took too long.', undefined, codes.outage)
  app.decorateRequest('ends_at', Number.POSITIVE_INFINITY)
  app.decorateRequest('deadline', undefined)
  app.addHook('onRequest', (req, reply, done) => {
    if (req.routeOptions.config?.endless) return done()
    const given = Number(req.headers['x-request-deadline'])
    const time_ms = given > 0 ? Math.min(given, deadline_ms) : deadline_ms
    req.ends_at = performance.now() + time_ms
    const kind = req.routeOptions.config?.authorization?.kind
    const priority = kind && priorityOf(req.headers[PRIORITY_HEADER], kind)
    const deadline = new Deadline(req.ends_at, refusal, priority)
    req.deadline = deadline
    const late = async () => {
      if (reply.sent) return
      exceeded.inc()
      await deadline.end()
      if (reply.sent) return
      if (reply.raw.headersSent) reply.raw.destroy()
      else reply.send(refusal())
      // The cut work of the handler fails after that, and Fastify would log it as an error of its own.
      reply.log = reply.log.child({}, { level: 'silent' })
    }
    const timer = setTimeout(late, time_ms)
    reply.raw.once('close', () => {
      const answered = reply.raw.writableFinished
      if (answered) deadline.answered()
      else if (req.method === 'GET') void deadline.end()
      // The caller of a write no longer waits for its answer, but the write must still end in its time.
      if (answered || req.method === 'GET') clearTimeout(timer)
    })
    done()
  })
  // Reading a body restarts in the context of its connection, so the context is set after it.
  app.addHook('preValidation', (req, _reply, done) => withinDeadline(req.deadline, done))
}

/** Records a span for each request that belongs to a trace. Its calls and its rows belong to that span. */
const recordSpans = (app: HttpApp) => {
  app.decorateRequest('span', undefined)
  app.addHook('onRequest', (req, _reply, done) => {
    const { traceparent } = req.headers
    if (isTrace(traceparent)) req.span = beginSpan(`${req.method} ${req.routeOptions.url ?? 'unknown'}`, traceparent)
    if (req.span) req.headers.traceparent = req.span.traceparent
    done()
  })
  app.addHook('preValidation', (req, _reply, done) => withinTrace(req.headers.traceparent, done))
  app.addHook('onResponse', (req, { statusCode }, done) => {
    req.span?.end({ request_id: String(req.id), 'http.response.status_code': statusCode }, statusCode >= 500)
    done()
  })
}

const answerErrors = (target: HttpApp, { codes, onRefused }: HttpOptions) => {
  target.setErrorHandler(async (error: FastifyError, req, reply) => {
    const refusal = toAppError(error, codes, req)
    await onRefused?.(req, refusal).catch((err: unknown) => req.log.error({ err }, 'a refusal could not be noted'))
    return sendProblem(req, reply, refusal)
  })
  target.setNotFoundHandler((req, reply) =>
    sendProblem(
      req,
      reply,
      new AppError('not_found', codes.route, `There is no ${req.method} ${req.url.split('?')[0]}.`),
    ),
  )
}

const measureRequests = (target: HttpApp, answered: Edge['answered']) => {
  target.addHook('onRequest', (req, reply, done) => {
    reply.header('x-request-id', req.id)
    done()
  })
  target.addHook('onResponse', (req, reply, done) => {
    answered({
      endpoint: req.routeOptions?.url ?? 'unknown',
      method: req.method,
      status: reply.statusCode,
      request_id: String(req.id),
      ms: reply.elapsedTime,
    })
    done()
  })
}

declare module 'fastify' {
  interface FastifyInstance {
    edge: Edge
  }
  interface FastifyRequest {
    /** When its caller is told that it took too long, in the process's `performance.now()`. Long work stops earlier. */
    ends_at: number
    /** Undefined for a request outside a trace, or if no spans are recorded. */
    span: OpenSpan | undefined
    /** The same for work in the database; undefined for a stream. */
    deadline: Deadline | undefined
  }
  interface FastifyContextConfig {
    /** A stream that stays open, or an upload of any length: no time limit, and not a request in flight. */
    endless?: boolean
    /** It mostly waits, so it is not counted as a request in flight; it has the time of every other. */
    waits?: boolean
  }
}

/** Opens the listener and returns its address; a port in use is a clear error of the operating system. */
export const listen = async (
  target: { listen: (options: { host: string; port: number }) => Promise<string> },
  host: string,
  port: number,
): Promise<string> => target.listen({ host, port })
