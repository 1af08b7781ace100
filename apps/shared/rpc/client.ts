import { setTimeout as delay } from 'node:timers/promises'
import type { DescMethodUnary, DescService } from '@bufbuild/protobuf'
import { DurationSchema, durationFromMs, durationMs } from '@bufbuild/protobuf/wkt'
import {
  type Client,
  Code,
  ConnectError,
  type ContextValues,
  createClient,
  createContextKey,
  createContextValues,
  type HandlerContext,
  type ServiceImpl,
} from '@connectrpc/connect'
import type { FastifyInstance } from 'fastify'
import { AppError, type Category, loginBusy, objectBusy, unavailable } from '../errors.ts'
import type { HttpApp } from '../http/app.ts'
import { type WatchedDependency, watchDependency } from '../process/dependency.ts'
import { isOutage } from '../process/outage.ts'
import {
  checkScope,
  type Registry,
  type ServiceCaller,
  type ServiceSigner,
  verifyServiceToken,
} from '../service/tokens.ts'
import type { Telemetry } from '../telemetry.ts'
import { type Mtls, mtlsOfProcess } from '../tls/mtls.ts'
import { type Call, serveUnary, type UnaryMethod } from './handler.ts'
import { type Around, createUnaryTransport } from './transport.ts'

export type RpcClientOptions = {
  url: string
  signer: ServiceSigner
  /** `<target app>-internal`. */
  audience: string
  /** 2000 for ordinary calls, 5000 if a password is hashed. */
  timeout_ms?: number
  /** Where the calls and the breaker are counted. */
  telemetry?: Telemetry
  /** The process's own by default. */
  mtls?: Mtls | undefined
}

/**
 * Creates a client of one RPC service (Connect over HTTP/1.1) that signs its calls. Calls named Get or List are retried
 * once if the server was away briefly. A server that stays away is asked only by a probe; all other calls get
 * `unavailable` at once. Pass the request id on: `client.getUser({...}, withRequestId(id))`.
 */
export const createRpcClient = <S extends DescService>(service: S, options: RpcClientOptions): Client<S> => {
  const { url, signer, audience, timeout_ms = 2000, telemetry } = options
  const dependency = audience.replace(/-internal$/, '')
  return createClient(
    service,
    createUnaryTransport({
      url,
      timeout_ms,
      authorization: () => `Bearer ${signer(audience)}`,
      around: patiently(watchDependency(telemetry, dependency)),
      mtls: 'mtls' in options ? options.mtls : mtlsOfProcess(),
    }),
  )
}

const kInsist = createContextKey(false)

/** The options of a call that an open breaker does not hold back: for stopping acts. */
export const insisting = (): { contextValues: ContextValues } => ({
  contextValues: createContextValues().set(kInsist, true),
})

const FAILURES: ReadonlySet<Code> = new Set([Code.Unavailable, Code.DeadlineExceeded])

const RETRY_SHARE = 0.1
const RETRY_JITTER_MS = 50

const isRead = (name: string) => /^(Get|List)/.test(name)

/** Calls behind a breaker. Retries once a read that was refused or cut, within 10 % of calls (reliability.md 2.4). */
const patiently = ({ breaker, called }: WatchedDependency): Around => {
  let budget = 1
  const once = async <T>(method: string, run: () => Promise<T>): Promise<T> => {
    budget = Math.min(budget + RETRY_SHARE, 10)
    try {
      return await run()
    } catch (error) {
      if (!isRead(method) || ConnectError.from(error).code !== Code.Unavailable || budget < 1) throw error
      budget -= 1
      await delay(Math.random() * RETRY_JITTER_MS)
      return run()
    }
  }
  return async (method, contextValues, run) => {
    if (!breaker.allows(contextValues?.get(kInsist)))
      throw new ConnectError('the breaker of this dependency is open', Code.Unavailable)
    const started = performance.now()
    try {
      const reply = await once(method, run)
      called(method, 'ok', started)
      return reply
    } catch (error) {
      called(method, FAILURES.has(ConnectError.from(error).code) ? 'failed' : 'refused', started)
      throw error
    }
  }
}

export const withRequestId = (request_id: string): { headers: { 'x-request-id': string } } => ({
  headers: { 'x-request-id': request_id },
})

/**
 * Translates a failed call for our own caller: an outage of `name` is 503 `dependency_down`, a full hash queue is 503
 * `login_busy`, another change of the same object is 409 `in_progress` (`already_exists`: a cut connection is `aborted`).
 * Anything else is our own defect and stays unchanged.
 */
export const fromRpc = (name: string, error: unknown): unknown => {
  if (error instanceof AppError) return error
  const { code } = ConnectError.from(error)
  if (code === Code.ResourceExhausted) return loginBusy(waitOf(error) ?? 2000, error)
  if (code === Code.AlreadyExists) return objectBusy(error)
  const away = [Code.Unavailable, Code.DeadlineExceeded, Code.Canceled, Code.Aborted]
  return away.includes(code) ? unavailable(`The ${name} service is not answering.`, error, 'unavailable') : error
}

/** For `catch`: throws the translation of a failed call. */
export const throwFromRpc =
  (name: string) =>
  (error: unknown): never => {
    throw fromRpc(name, error)
  }

/** Returns how long a refused caller should wait, as `toConnectError` sent it. */
const waitOf = (error: unknown): number | undefined => {
  const [detail] = ConnectError.from(error).findDetails(DurationSchema)
  return detail && durationMs(detail)
}

type MethodName<S extends DescService> = keyof S['method'] & string
export type RpcContext = { service: ServiceCaller; request_id: string }

type Served = { method: DescMethodUnary; scope: string; run: UnaryMethod['run'] }
/** One service with its implementation and the scope that each of its methods needs. */
export type RpcService = readonly Served[]

export const rpcService = <S extends DescService>(
  service: S,
  scopes: Record<MethodName<S>, string>,
  implementation: ServiceImpl<S>,
): RpcService =>
  service.methods.map((method) => {
    const name = method.localName as MethodName<S>
    if (method.methodKind !== 'unary') throw new Error(`${service.typeName}/${method.name} is not unary`)
    return { method: method as DescMethodUnary, scope: scopes[name], run: implementation[name] as UnaryMethod['run'] }
  })

const kCaller = createContextKey<RpcContext | undefined>(undefined)

/** Returns the caller, and the id of the request that the call is for. */
export const rpcContext = ({ values }: HandlerContext): RpcContext => {
  const context = values.get(kCaller)
  if (!context) throw new Error('the call did not pass registerRpc')
  return context
}

export type RpcOptions = { registry: Registry; audience: string; services: RpcService[] }

/**
 * Serves RPC on an internal listener. Every call needs a service token for this audience (`unauthenticated`) that holds
 * the method's scope (`permission_denied`); user tokens and `x-user-id` are refused.
 */
export const registerRpc = (app: HttpApp, { registry, audience, services }: RpcOptions): void => {
  const admit = ({ headers, id }: Call, scope: string) => {
    if (headers['x-user-id'] !== undefined) throw new ConnectError('x-user-id is not taken here', Code.InvalidArgument)
    const token = /^bearer ([^ ]+)$/i.exec(headers.authorization ?? '')?.[1] ?? ''
    const service = verifyServiceToken(registry, audience, token)
    checkScope(service, scope)
    return createContextValues().set(kCaller, { service, request_id: id })
  }
  const methods = services.flat().map(({ method, scope, run }): UnaryMethod => {
    const refuse = (error: unknown) => {
      const answer = toConnectError(error)
      if (answer.code === Code.Internal) app.log.error({ err: error, method: method.name }, 'an RPC failed')
      return answer
    }
    return { method, run, refuse, admit: (call) => admit(call, scope) }
  })
  serveUnary(app as unknown as FastifyInstance, methods)
}

const CODES: Partial<Record<Category, Code>> = {
  validation_error: Code.InvalidArgument,
  invalid_credentials: Code.Unauthenticated,
  invalid_token: Code.Unauthenticated,
  policy_denied: Code.PermissionDenied,
  rate_limited: Code.ResourceExhausted,
  unavailable: Code.Unavailable,
  not_found: Code.NotFound,
  version_conflict: Code.FailedPrecondition,
}

const toConnectError = (error: unknown): ConnectError => {
  if (error instanceof ConnectError) return error
  if (error instanceof AppError) {
    const { retry_after_ms } = error.options
    const wait = retry_after_ms === undefined ? [] : [{ desc: DurationSchema, value: durationFromMs(retry_after_ms) }]
    const code = error.code === 'login_busy' ? Code.ResourceExhausted : CODES[error.category]
    return new ConnectError(error.message, code ?? Code.Internal, undefined, wait)
  }
  return new ConnectError('unexpected', isOutage(error) ? Code.Unavailable : Code.Internal)
}
