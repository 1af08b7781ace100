import type { FastifyReply, FastifyRequest } from 'fastify'
import Type from 'typebox'
import { allow } from '../../shared/auth/http.ts'
import { AccessReply, CsrfReply, TokenReply } from '../../shared/contracts/session/tokens.ts'
import { AppError } from '../../shared/errors.ts'
import { type Router, routes } from '../../shared/http/routes.ts'
import { TokenRejected } from '../../shared/jwt/verifier.ts'
import { clientOf } from '../browser/client.ts'
import type { SessionDeps } from '../deps.ts'
import { endSession, isOver } from '../sessions/end.ts'
import { redeemCode, redeemDevice } from './code.ts'
import {
  codeGrantOf,
  deviceCodeOf,
  factorGrantOf,
  grantKind,
  LoginBody,
  type Mode,
  modeFrom,
  ReauthBody,
  RefreshBody,
  refuseLongPassword,
  retryKeyOf,
  TokenBody,
  tokenFrom,
} from './grants.ts'
import { hashOf } from './issue.ts'
import { type Login, login } from './login.ts'
import { reauthenticateByPasskey, signInByPasskey } from './passkeys.ts'
import { type PasswordRequest, reauthenticate } from './password.ts'
import { refresh } from './refresh.ts'
import { EXPIRES_IN, sendTokens } from './replies.ts'
import { completeLogin } from './second-factor.ts'
import { reauthenticateByCode } from './totp.ts'

/** Where clients obtain, renew and end their tokens (auth.md 3.1). */
export const tokenRoutes = routes<SessionDeps>('tokens', (app, { deps }) => {
  grantRoutes(app, deps)
  sessionRoutes(app, deps)
})

const open = allow('none', { kind: 'R' })

/** Sign in and renew: no session exists yet, or only its refresh token proves it. */
const grantRoutes = (app: Router, deps: SessionDeps) => {
  const common = { preHandler: open, preValidation: emptyBody }

  app.post('/v1/token', {
    ...common,
    operationId: 'createToken',
    summary: 'Sign in or renew tokens',
    'x-errors': [401, 403, 409],
    description:
      'Signs in by a password, a passkey, the code of a provider or that of a device, completes a sign-in by a second factor, or renews tokens by a refresh token. Without grant_type: a password or a refresh token.',
    querystring: Type.Object(
      {
        response_mode: Type.Optional(
          Type.String({
            description: 'json, the default: tokens in the body. cookie: the refresh token in a cookie of the browser.',
            documented: { enum: ['json', 'cookie'] },
          }),
        ),
      },
      { additionalProperties: false },
    ),
    body: TokenBody,
    response: { 200: TokenReply },
    handler: async (req, reply) => {
      const mode = modeFrom(req.query.response_mode)
      if (mode === 'cookie') refuseForeign(deps, req)
      const signIn = (open: (request: Opening) => Promise<Login>) => enter(deps, req, reply, mode, open)
      const code = codeGrantOf(req.body, mode)
      if (code) return signIn((request) => redeemCode(deps, code, request))
      const device_code = deviceCodeOf(req.body, mode)
      if (device_code !== undefined)
        return signIn(({ device_token, ...request }) => redeemDevice(deps, { device_code, device_token }, request))
      const factor = factorGrantOf(req.body, mode)
      if (factor)
        return signIn((request) =>
          'assertion' in factor
            ? signInByPasskey(deps, factor.assertion, request)
            : completeLogin(deps, factor.factor_token, factor.factor, request),
        )
      return grantKind(req.body, mode) === 'password'
        ? signIn(byPassword(deps, req.body))
        : renew(deps, req, reply, tokenFrom(deps, req, req.body, mode), mode)
    },
  })

  app.post('/auth/login', {
    ...common,
    operationId: 'startSession',
    summary: 'Sign in',
    description: 'Signs in.',
    'x-errors': [401],
    body: LoginBody,
    response: { 200: TokenReply },
    handler: (req, reply) => enter(deps, req, reply, 'json', byPassword(deps, req.body)),
  })

  app.post('/auth/refresh', {
    ...common,
    operationId: 'refreshSession',
    summary: 'Renew the tokens of a session',
    description: 'Renews the tokens.',
    'x-errors': [401],
    body: RefreshBody,
    response: { 200: TokenReply },
    handler: (req, reply) => renew(deps, req, reply, req.body.refresh_token, 'json'),
  })
}

/** A session's actions on itself. */
const sessionRoutes = (app: Router, deps: SessionDeps) => {
  app.post('/auth/logout', {
    preHandler: allow('bearer', { kind: 'S' }),
    operationId: 'endSession',
    summary: 'Sign out',
    description: "Ends the token's session. It may be repeated while the token is valid.",
    response: { 204: Type.Null() },
    handler: async (req, reply) => {
      const { claims } = req
      if (!claims) throw new Error('userAuth did not run')
      // A machine's session is its credential, which cannot sign out; administrators revoke it.
      if (claims.cm === 'machine')
        throw new AppError('policy_denied', 'person_required', "A machine's token expires by itself.")
      const by = { actor_type: 'user', actor_id: claims.sub, request_id: String(req.id) } as const
      const ended = await endSession(deps, { session_id: claims.session_id, user_id: claims.sub }, 'logout', by)
      // If it ended before, the cookie can be that of a newer sign-in in another tab.
      if (ended && claims.cm === 'cookie') reply.header('set-cookie', deps.cookies.expired())
      return reply.code(204).send(null)
    },
  })

  app.get('/v1/token/csrf', {
    preHandler: open,
    operationId: 'getCsrfToken',
    summary: 'Read the CSRF token',
    'x-errors': [401, 403],
    description: 'Returns the CSRF token of the cookie session, for a new tab.',
    response: { 200: CsrfReply },
    handler: async (req, reply) => {
      if (req.headers['sec-fetch-site'] !== 'same-origin') throw sameOriginOnly()
      const csrf_token = deps.csrf.make(await cookieSession(deps, req))
      reply.header('x-csrf-token', csrf_token)
      return { csrf_token }
    },
  })

  app.post('/v1/token/reauth', {
    preHandler: allow('self', { kind: 'W', enrols: true }),
    operationId: 'confirmPassword',
    summary: 'Confirm who you are',
    'x-errors': [422],
    description: 'Proves a password, a passkey or a code again and returns an access token with a fresh auth_time.',
    body: ReauthBody,
    response: { 200: AccessReply },
    handler: async (req) => {
      const access_token = await proveAgain(deps, req.body, {
        ...contextOf(req),
        caller: req.caller,
        jti: req.claims?.jti,
      })
      return { access_token, token_type: 'Bearer' as const, expires_in: EXPIRES_IN }
    },
  })
}

const proveAgain = (
  deps: SessionDeps,
  { password, assertion, totp }: Type.Static<typeof ReauthBody>,
  request: PasswordRequest,
): Promise<string> => {
  if ([password, assertion, totp].filter((proof) => proof !== undefined).length !== 1)
    throw new AppError('validation_error', 'schema_violation', 'The request contains no proof.', {
      hint: 'Send one of password, assertion or totp.',
    })
  if (assertion) return reauthenticateByPasskey(deps, request, assertion)
  if (totp !== undefined) return reauthenticateByCode(deps, request, totp)
  refuseLongPassword(password ?? '')
  return reauthenticate(deps, { ...request, password: password ?? '' })
}

export const contextOf = (req: FastifyRequest) => ({ client: clientOf(req), request_id: String(req.id) })

const emptyBody = async (req: FastifyRequest) => {
  req.body ??= {}
}

const refuseForeign = (deps: SessionDeps, req: FastifyRequest) => {
  const { origin, 'sec-fetch-site': site } = req.headers
  const refusal = deps.origins.refuse({ origin, 'sec-fetch-site': site as string | undefined })
  if (refusal) throw refusal
}

const sameOriginOnly = () =>
  new AppError('policy_denied', 'origin_not_allowed', 'Only pages of this origin may read the CSRF token.', {
    hint: 'Send the request from a page of the console.',
  })

type Opening = ReturnType<typeof contextOf> & { device_token: string | undefined; mode: Mode }
type Device = { device_token?: string; remember_device?: boolean }

/** Signs in by a grant; the request names its device by cookie, or in its body. */
const enter = async (
  deps: SessionDeps,
  req: FastifyRequest,
  reply: FastifyReply,
  mode: Mode,
  open: (request: Opening) => Promise<Login>,
) => {
  const { remember_device, ...body } = req.body as Device
  const device_token = mode === 'cookie' ? deps.cookies.readDevice(req.headers.cookie) : body.device_token
  const done = await open({ ...contextOf(req), device_token, mode })
  const device = mode === 'cookie' || remember_device || done.known_device
  if (mode === 'cookie') await endReplaced(deps, req, done.user_id)
  const session = mode === 'cookie' ? done.session_id : undefined
  const issued = device ? deps.devices.issue(done.user_id, done.folded_name, device_token, session) : undefined
  return sendTokens(deps, reply, done, mode, issued)
}

const byPassword =
  (deps: SessionDeps, { username = '', password = '' }: { username?: string; password?: string }) =>
  async (request: Opening): Promise<Login> => {
    refuseLongPassword(password)
    return login(deps, { ...request, username, password })
  }

/**
 * Ends the session whose cookie this sign-in replaces (ASVS 7.2.4). The refresh cookie does not come to the callback of
 * a provider, whose path is another; the device cookie names its session.
 */
export const endReplaced = async (deps: SessionDeps, req: FastifyRequest, actor_id: string) => {
  const by_cookie = await cookieSession(deps, req).catch((error: unknown) => {
    if (!(error instanceof AppError)) throw error
  })
  const session_id = by_cookie ?? deps.devices.sessionOf(deps.cookies.readDevice(req.headers.cookie))
  const by = { actor_type: 'user', actor_id, request_id: String(req.id) } as const
  // The new session is open already, and only this answer has its tokens.
  if (session_id)
    await endSession(deps, { session_id }, 'logout', by).catch((error: unknown) => {
      req.log.error({ err: error, session: session_id }, 'a replaced session could not be ended')
    })
}

const renew = async (
  deps: SessionDeps,
  req: FastifyRequest,
  reply: FastifyReply,
  refresh_token: string,
  mode: Mode,
) => {
  const csrf_token = req.headers['x-csrf-token']
  const done = await refresh(deps, {
    ...contextOf(req),
    refresh_token,
    mode,
    csrf_token: typeof csrf_token === 'string' ? csrf_token : undefined,
    retry_key: retryKeyOf(req),
  })
  return sendTokens(deps, reply, done, mode)
}

/** The session whose current refresh token is in the cookie; read-only. */
const cookieSession = async (deps: SessionDeps, req: FastifyRequest): Promise<string> => {
  const token = deps.cookies.readRefresh(req.headers.cookie)
  try {
    if (token === undefined) throw new TokenRejected('malformed')
    const claims = await deps.verifyRefresh(token)
    const record = await deps.store.get(claims.sub, claims.session_id)
    const current = record?.mode === 'cookie' && record.refresh_token_hash === hashOf(token)
    if (current && !isOver(deps, record)) return record.session_id
  } catch (error) {
    if (!(error instanceof TokenRejected)) throw error
  }
  throw new AppError('invalid_token', 'invalid_grant', 'The refresh token is not valid.', {
    headers: { 'www-authenticate': 'Bearer' },
  })
}
