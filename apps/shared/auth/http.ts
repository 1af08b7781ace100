import type { FastifyInstance, FastifyPluginCallback, FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import { AppError } from '../errors.ts'
import type { HttpApp } from '../http/app.ts'
import { AUTH_CODES, type EdgeCodes } from '../http/edge-codes.ts'
import type { ActionKind } from '../http/pressure.ts'
import type { AccessClaims } from '../jwt/claims.ts'
import { TokenRejected } from '../jwt/verifier.ts'
import {
  checkScope,
  type Registry,
  type ServiceCaller,
  serviceTokenRefused,
  verifyServiceToken,
} from '../service/tokens.ts'
import { type Caller, callerOf, factorRequired, isEnrolling, refuseMachine } from './caller.ts'
import { missingWords, type Permission } from './permissions.ts'
import type { Principals } from './principals.ts'
import type { AccessVerifier } from './user-tokens.ts'

/** What a route requires: a permission, any of several, `self` (active person), `bearer` (valid token) or `none`. */
export type RoutePermission = Permission | 'self' | 'bearer' | 'none'
/** `enrols`: open to a session that may only set up a second factor. */
export type Authorization = { permissions: readonly RoutePermission[]; kind: ActionKind; enrols?: true }
/** One row of the authorization table that the tests walk through. */
export type AuthorizedRoute = { method: string; url: string } & Authorization

declare module 'fastify' {
  interface FastifyRequest {
    /** Set on every route that `allow` guards with a permission or `self`. */
    caller: Caller
    claims: AccessClaims | undefined
    /** Set on internal listeners. */
    service: ServiceCaller
  }
  interface FastifyContextConfig {
    authorization?: Authorization
    scope?: string
  }
}

const AUTHORIZATION = Symbol('authorization')
const SCOPE = Symbol('scope')
const ROUTES = Symbol('authorized routes')

type Guard = ((req: FastifyRequest, reply: FastifyReply) => Promise<void>) & {
  [AUTHORIZATION]?: Authorization
  [SCOPE]?: string
}
type Context = { principals: Pick<Principals, 'get'>; codes: EdgeCodes; onDenied?: UserAuthOptions['onDenied'] }
const CONTEXT = Symbol('authorization context')
type Guarded = FastifyInstance & { [CONTEXT]?: Context; [ROUTES]?: AuthorizedRoute[] }

export type UserAuthOptions = {
  verifier: AccessVerifier
  principals: Pick<Principals, 'get'>
  /** The area's codes for outages and refused tokens; by default those of the auth apps. */
  codes?: EdgeCodes
  /** Called for each refused permission, for the audit log. */
  onDenied?: (req: FastifyRequest, error: AppError) => Promise<void>
  /** Called for each refused token, for the metric. */
  onRejected?: (cause: string) => void
}

/** Runs the plugin in the context that registers it, so that its hooks apply to the sibling routes. */
const shared = <O extends object>(plugin: FastifyPluginCallback<O>): FastifyPluginCallback<O> =>
  Object.assign(plugin, { [Symbol.for('skip-override')]: true, [Symbol.for('fastify.display-name')]: plugin.name })

/**
 * Verifies the bearer of every route, before its body is read, and refuses an `x-user-id` that is not the bearer's.
 * A route without `allow(...)` cannot be registered behind this plugin: the build fails and names it.
 */
export const userAuth = shared<UserAuthOptions>(function userAuth(app, options, done) {
  const { verifier, codes = AUTH_CODES, onRejected } = options
  const guarded = app as unknown as Guarded
  const routes: AuthorizedRoute[] = []
  guarded[ROUTES] = routes
  app.decorateRequest('caller', null as unknown as Caller)
  app.decorateRequest('claims', undefined)
  app.decorateRequest(CONTEXT as unknown as string, {
    getter: () => ({ principals: options.principals, codes, onDenied: options.onDenied }),
  })

  app.addHook('onRoute', (route) => recordAuthorization(route, routes))
  app.addHook('onRequest', async (req) => {
    const asked = req.routeOptions.config?.authorization
    // A route added before this plugin ran is not in the table, so nobody passes.
    if (!asked && !req.is404) throw new Error(`${req.method} ${req.routeOptions.url} states no permission`)
    if (!asked || asked.permissions.includes('none')) return
    try {
      req.claims = await verifier(bearerOf(req))
    } catch (error) {
      if (error instanceof TokenRejected) onRejected?.(error.reason)
      if (error instanceof TokenRejected || error instanceof TokenMissing) throw tokenRefused(error, codes)
      throw error
    }
    const claimed = req.headers['x-user-id']
    if (claimed !== undefined && claimed !== req.claims.sub) throw tokenRefused(new TokenRejected('subject'), codes)
  })
  done()
})

/** For an app without signed-in users: each of its routes must declare that with `allow('none', ...)`. */
export const withoutUsers = shared<object>(function withoutUsers(app, _options, done) {
  const routes: AuthorizedRoute[] = []
  ;(app as unknown as Guarded)[ROUTES] = routes
  app.addHook('onRoute', (route) => {
    recordAuthorization(route, routes)
    if (!route.config?.authorization?.permissions.includes('none')) throw new Error(`${route.url}: no users here`)
  })
  done()
})

const recordAuthorization = (route: RouteOptions, routes: AuthorizedRoute[]): void => {
  const authorization = guardsOf(route).find((guard) => guard[AUTHORIZATION])?.[AUTHORIZATION]
  const methods = [route.method].flat()
  if (!authorization)
    throw new Error(`${methods.join(',')} ${route.url} states no permission: give it preHandler: allow(...)`)
  route.config = { ...route.config, authorization }
  // A new object, because routes may share one schema and still differ in kind.
  route.schema = Object.assign({}, route.schema, {
    'x-action-kind': authorization.kind,
    'x-permissions': authorization.permissions,
  })
  for (const method of methods) routes.push({ method, url: route.url, ...authorization })
}

const guardsOf = (route: RouteOptions): Guard[] => [route.preHandler ?? []].flat() as Guard[]

/** Returns every route behind `userAuth` with its permission. Call it after `app.ready()`. */
export const authorizedRoutes = (app: HttpApp): readonly AuthorizedRoute[] => (app as unknown as Guarded)[ROUTES] ?? []

/** Throws unless `userAuth` guards this app and each of its routes states its permission. */
export const assertRoutesAuthorized = (app: HttpApp): void => {
  if (!(app as unknown as Guarded)[ROUTES]?.length)
    throw new Error('no route of this app is behind userAuth: register it before the routes')
}

/**
 * The guard of one route: loads the caller's principal and refuses a caller with none of the permissions. A stopping
 * act (kind S) may use an older principal while identity is away. The service, knowing the object, checks scopes.
 * `machines`: a route of `self` that machines may call too. The others would let one credential change the account, or
 * end another credential.
 */
export const allow = (
  permission: RoutePermission | readonly RoutePermission[],
  { kind, enrols, machines }: { kind: ActionKind; enrols?: true; machines?: true },
): Guard => {
  const permissions = typeof permission === 'string' ? [permission] : permission
  const authorization: Authorization = { permissions, kind, ...(enrols && { enrols }) }
  const guard: Guard = async (req) => {
    if (authorization.permissions.some((asked) => asked === 'none' || asked === 'bearer')) return
    const { principals, codes, onDenied } = contextOf(req)
    const { claims } = req
    if (!claims) throw tokenRefused(new TokenMissing(), codes)
    if (isEnrolling(claims) && !enrols) throw factorRequired()
    const principal = await principals.get(claims.sub, kind)
    if (principal?.user.status !== 'ACTIVE' || principal.recovering)
      throw tokenRefused(new TokenRejected('subject'), codes)
    // A machine has the rights of its credential, which only its own tokens state.
    if ((principal.user.kind === 'machine') !== (claims.cm === 'machine'))
      throw tokenRefused(new TokenRejected('claims'), codes)
    req.caller = callerOf(claims, principal)
    const error = holdsAny(req.caller, authorization.permissions)
      ? (refuseUnrenewed(req.caller, authorization) ??
        (permission === 'self' && !machines ? refuseMachine(req.caller) : undefined))
      : (refuseVote(req.caller, authorization) ?? permissionMissing(authorization.permissions))
    if (!error) return
    await onDenied?.(req, error)
    throw error
  }
  return Object.assign(guard, { [AUTHORIZATION]: authorization })
}

const contextOf = (req: FastifyRequest): Context => {
  const context = (req as unknown as { [CONTEXT]?: Context })[CONTEXT]
  if (!context) throw new Error('allow() needs the plugin userAuth')
  return context
}

const holdsAny = (caller: Caller, permissions: readonly RoutePermission[]): boolean =>
  permissions.some(
    (wanted) => wanted === 'self' || (wanted !== 'none' && wanted !== 'bearer' && caller.permissions.has(wanted)),
  )

const DECIDING: ReadonlySet<RoutePermission> = new Set([
  'gate:decide',
  'patch:decide',
  'identity:admin',
  'session:admin',
])

const VOTES: ReadonlySet<RoutePermission> = new Set(['gate:decide', 'patch:decide'])

/** No role would give a machine a vote. */
const refuseVote = ({ kind }: Caller, { permissions }: Authorization): AppError | undefined =>
  kind === 'machine' && permissions.every((permission) => VOTES.has(permission))
    ? new AppError('policy_denied', 'machine_vote', 'Machines do not decide.', {
        hint: 'Let the plan ask the machine with a gate of the kind external_check.',
      })
    : undefined

/** Once two administrators check each other, no one may decide with a credential that an administrator may know. */
const refuseUnrenewed = (caller: Caller, { permissions, kind }: Authorization): AppError | undefined =>
  kind === 'A' && permissions.every((permission) => DECIDING.has(permission) || !holdsAny(caller, [permission]))
    ? renewalRequired(caller)
    : undefined

/** For a route whose types need different permissions, some of them deciding. */
export const renewalRequired = (caller: Caller): AppError | undefined =>
  caller.renewal_required
    ? new AppError('policy_denied', 'renewal_required', 'An administrator saw your enrolment link.', {
        hint: 'Ask an administrator to request a new enrolment link for you, and set a new password by it.',
      })
    : undefined

export const permissionMissing = (permissions: readonly RoutePermission[]): AppError =>
  new AppError('policy_denied', 'permission_missing', missingWords(permissions), {
    extra: { permission: permissions[0] },
    hint: `Ask an administrator for a role that has ${permissions.join(' or ')}.`,
  })

class TokenMissing extends Error {}

/** Returns the token of the one Authorization header; its scheme's case does not matter (RFC 9110). */
const bearerOf = (req: FastifyRequest): string => {
  const value = req.headers.authorization
  if (value === undefined) throw new TokenMissing()
  // Node keeps the first of two headers; a caller with two identities has none.
  const once =
    req.raw.rawHeaders.filter((name, at) => at % 2 === 0 && name.toLowerCase() === 'authorization').length === 1
  const match = once ? /^bearer ([^ ]+)$/i.exec(value) : null
  if (!match?.[1]) throw new TokenRejected('malformed')
  return match[1]
}

const tokenRefused = (cause: Error, codes: EdgeCodes): AppError => {
  const missing = cause instanceof TokenMissing
  return new AppError(
    codes.outage === 'unavailable' ? 'invalid_token' : 'policy_denied',
    missing && codes.outage === 'unavailable' ? 'token_missing' : 'invalid_token',
    missing ? 'This needs an access token.' : 'The access token is not valid.',
    {
      status: 401,
      headers: { 'www-authenticate': missing ? 'Bearer' : 'Bearer error="invalid_token"' },
      hint: 'Sign in again, or refresh the access token.',
      cause,
    },
  )
}

/** Verifies the service token of every route of an internal listener, and refuses user identities there. */
export const serviceAuth = shared<{ registry: Registry; audience: string; codes?: EdgeCodes }>(function serviceAuth(
  app,
  { registry, audience, codes = AUTH_CODES },
  done,
) {
  app.decorateRequest('service', null as unknown as ServiceCaller)
  app.addHook('onRoute', (route) => {
    const scope = guardsOf(route).find((guard) => guard[SCOPE])?.[SCOPE]
    if (scope === undefined)
      throw new Error(`${String(route.method)} ${route.url} states no scope: give it preHandler: requireScope(...)`)
    route.config = { ...route.config, scope }
    route.schema = Object.assign({}, route.schema, { 'x-scope': scope })
  })
  app.addHook('onRequest', async (req) => {
    if (req.routeOptions.config?.scope === undefined) return
    if (req.headers['x-user-id'] !== undefined) throw foreignIdentity()
    try {
      req.service = verifyServiceToken(registry, audience, bearerOf(req))
    } catch (error) {
      if (error instanceof TokenMissing) throw inWordsOf(codes, serviceTokenRefused())
      if (error instanceof TokenRejected) throw inWordsOf(codes, serviceTokenRefused(error))
      throw error instanceof AppError ? inWordsOf(codes, error) : error
    }
  })
  done()
})

/** Returns a refused token's error in API categories that lack `invalid_token` (catalog.md 7.6, operations.md 5.1). */
const inWordsOf = ({ categories }: EdgeCodes, error: AppError): AppError =>
  categories.includes(error.category)
    ? error
    : new AppError('policy_denied', 'invalid_token', error.message, { ...error.options, status: error.status })

const foreignIdentity = () =>
  new AppError('validation_error', 'forbidden_header', 'x-user-id is not taken by an internal listener.', {
    hint: 'Internal calls carry a service token and no user.',
  })

/** The guard of one internal route: the caller's token must hold one of the scopes. */
export const requireScope = (scope: string, ...others: string[]): Guard =>
  Object.assign(
    async (req: FastifyRequest) => {
      if (!others.some((other) => req.service.scopes.has(other))) checkScope(req.service, scope)
    },
    { [SCOPE]: [scope, ...others].join(' | ') },
  )
