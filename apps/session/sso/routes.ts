import type { FastifyRequest } from 'fastify'
import Type from 'typebox'
import { refuseStaleAuth } from '../../shared/auth/caller.ts'
import { allow } from '../../shared/auth/http.ts'
import {
  IdentityProviderList,
  LocationReply,
  ProviderParams,
  ProviderTrial,
} from '../../shared/contracts/session/sso.ts'
import { text } from '../../shared/contracts/shapes.ts'
import { AppError, notFound } from '../../shared/errors.ts'
import { AUTH_CODES } from '../../shared/http/edge-codes.ts'
import { acceptForms } from '../../shared/http/json-body.ts'
import { type Router, routes } from '../../shared/http/routes.ts'
import { byPerson } from '../browser/client.ts'
import type { SessionDeps } from '../deps.ts'
import { contextOf, endReplaced } from '../token/routes.ts'
import { refuseHalfProved } from '../token/second-factor.ts'
import { finishFlow } from './callback.ts'
import { endByProvider } from './logout.ts'
import { startFlow } from './start.ts'

const open = { preHandler: allow('none', { kind: 'R' }) }
const closed = { additionalProperties: false }
const ReturnTo = Type.Optional(Type.String({ maxLength: 2048, description: 'A path of the console.' }))
const StartQuery = Type.Object(
  {
    return_to: ReturnTo,
    purpose: Type.Enum(['sign_in', 'trial'], {
      default: 'sign_in',
      description: 'trial: signs no one in; an administrator reads what a sign-in would do.',
    }),
    redirect_uri: Type.Optional(Type.String({ maxLength: 255, description: 'Of a native app.' })),
    code_challenge: Type.Optional(Type.String({ pattern: '^[A-Za-z0-9_-]{43}$', description: 'PKCE, S256.' })),
    state: Type.Optional(Type.String({ minLength: 22, maxLength: 128 })),
  },
  closed,
)
const TrialParams = Type.Object({ trial: text('Q2xhaW1z', { pattern: '^[A-Za-z0-9_-]{1,64}$' }) })
const Text = Type.Optional(Type.String({ maxLength: 8192 }))
/** Providers add their own members (Keycloak `session_state`); RFC 6749 4.1.2 requires ignoring them. */
const CallbackQuery = Type.Object(
  { code: Text, state: Text, iss: Text, error: Text, error_description: Text },
  { additionalProperties: Type.Unknown() },
)
/** How recently a person who links an identity must have signed in. */
const LINK_AGE_S = 300

/** Sign-in through an identity provider (federation.md 4). */
export const ssoRoutes = routes<SessionDeps>('sso', (app, { deps }) => {
  browserRoutes(app, deps)

  app.get('/v1/providers', {
    ...open,
    operationId: 'listProviders',
    summary: 'List the identity providers',
    description: 'The providers that the sign-in page offers, and whether it takes passwords.',
    response: { 200: IdentityProviderList },
    handler: async () => ({
      items: deps.providers.list().map(({ id, title }) => ({ id, title })),
      passwords: deps.config.AUTH__LOCAL__LOGIN,
    }),
  })

  app.post('/v1/sso/:provider/start', {
    preHandler: allow('self', { kind: 'W' }),
    operationId: 'startProviderProof',
    summary: 'Confirm or link through a provider',
    'x-errors': [403, 404],
    description: 'Begins a confirmation, or links an identity, for the signed-in person.',
    params: ProviderParams,
    body: Type.Object(
      { purpose: Type.Enum(['reauth', 'link']), return_to: ReturnTo },
      { ...closed, examples: [{ purpose: 'reauth', return_to: '/inbox' }] },
    ),
    response: { 200: LocationReply },
    handler: async (req, reply) => {
      const { purpose, return_to } = req.body
      const stale = purpose === 'link' ? refuseStaleAuth(req.caller, LINK_AGE_S, deps.clock.now()) : undefined
      if (stale) throw stale
      if (purpose === 'link') await refuseHalfProved(deps, req)
      const { location, set_cookie } = await startFlow(deps, {
        provider_id: req.params.provider,
        purpose,
        return_to,
        caller: req.caller,
        cookie: req.headers.cookie,
      })
      reply.header('set-cookie', set_cookie)
      return { location }
    },
  })

  app.get('/v1/admin/provider-trials/:trial', {
    preHandler: allow('identity:admin', { kind: 'R' }),
    operationId: 'getProviderTrial',
    summary: 'Read a test sign-in',
    tags: ['administration'],
    'x-errors': [404],
    description:
      'What the platform would make of a person who signed in with `purpose=trial` in the last 10 minutes. No account is made, linked or signed in.',
    params: TrialParams,
    response: { 200: ProviderTrial },
    handler: async (req) => {
      const trial = await deps.flows.trial(req.params.trial)
      if (!trial) throw notFound('trial', req.params.trial, 'not_found')
      const { provider, outcome, account } = trial
      await deps.audit({
        action: 'provider_trial',
        outcome: 'done',
        ...byPerson({ caller: req.caller, ...contextOf(req) }),
        details: { provider, outcome, account },
      })
      return trial
    },
  })

  app.plain.register(logoutRoute, { deps })
})

/** The two redirects around the provider's own pages. The sign-in page shows a refusal to the browser. */
const browserRoutes = (app: Router, deps: SessionDeps) => {
  app.get('/v1/sso/:provider/start', {
    ...open,
    operationId: 'startProviderSignIn',
    summary: 'Sign in through a provider',
    'x-errors': [404],
    'x-reply-headers': ['location'],
    description: 'Redirects the browser to the provider. A native app names its redirect URI.',
    params: ProviderParams,
    querystring: StartQuery,
    response: { 303: Type.Null() },
    handler: async (req, reply) => {
      const location = await orSignInPage(req, async () => {
        const { return_to, purpose, ...native } = req.query
        if (native.redirect_uri === undefined && isFromElsewhere(req)) return '/login'
        const { location, set_cookie } = await startFlow(deps, {
          provider_id: req.params.provider,
          purpose,
          return_to,
          cookie: req.headers.cookie,
          ...(native.redirect_uri !== undefined && { native: nativeOf(native) }),
        })
        reply.header('set-cookie', set_cookie)
        return location
      })
      return reply.redirect(location, 303)
    },
  })

  app.get('/v1/sso/:provider/callback', {
    ...open,
    operationId: 'finishProviderSignIn',
    summary: 'Come back from a provider',
    'x-errors': [401, 403, 404, 409],
    'x-reply-headers': ['location'],
    description:
      'Completes a sign-in: sets the refresh and device cookies, ends the session that this browser had, and redirects to the console or the app.',
    params: ProviderParams,
    querystring: CallbackQuery,
    response: { 303: Type.Null() },
    handler: async (req, reply) => {
      const location = await orSignInPage(req, async () => {
        const device_token = deps.cookies.readDevice(req.headers.cookie)
        const { location, login } = await finishFlow(deps, {
          provider_id: req.params.provider,
          query: req.query as Record<string, string>,
          cookie: req.headers.cookie,
          device_token,
          ...contextOf(req),
        })
        if (!login) return location
        await endReplaced(deps, req, login.user_id)
        const device = deps.devices.issue(login.user_id, login.folded_name, device_token, login.session_id)
        reply.header('set-cookie', [deps.cookies.refresh(login.refresh_token), deps.cookies.device(device)])
        return location
      })
      return reply.redirect(location, 303)
    },
  })
}

/** Another site's page led the browser here: the person must press the button, so that the sign-in is their choice. */
const isFromElsewhere = ({ headers }: FastifyRequest): boolean =>
  headers['sec-fetch-site'] === 'cross-site' || headers['sec-fetch-site'] === 'same-site'

const nativeOf = ({
  redirect_uri = '',
  code_challenge,
  state,
}: { redirect_uri?: string } & Record<string, unknown>) => {
  if (typeof code_challenge === 'string' && typeof state === 'string') return { redirect_uri, code_challenge, state }
  throw new AppError('validation_error', 'schema_violation', 'An app must send code_challenge and state.', {
    hint: 'Add the S256 challenge of a new verifier, and a new random state.',
  })
}

const orSignInPage = async (req: FastifyRequest, answer: () => Promise<string>): Promise<string> => {
  try {
    return await answer()
  } catch (error) {
    const page = req.headers.accept?.includes('text/html')
    if (!(error instanceof AppError) || !page) throw error
    req.log.info({ err: error }, 'a sign-in through a provider was refused')
    return `/login?error=${encodeURIComponent(error.code)}`
  }
}

/** The only endpoint that accepts a form (OpenID Connect Back-Channel Logout 2.5). */
const logoutRoute = routes<SessionDeps>('sso', (app, { deps }) => {
  acceptForms(app.plain, AUTH_CODES, (detail) => new AppError('validation_error', 'schema_violation', detail))
  app.post('/v1/sso/:provider/backchannel-logout', {
    preHandler: allow('none', { kind: 'S' }),
    operationId: 'endProviderSessions',
    summary: 'End sessions by a logout token',
    'x-errors': [404],
    consumes: ['application/json', 'application/x-www-form-urlencoded'],
    description: 'Called by the provider: ends the sessions that the logout token names.',
    params: ProviderParams,
    body: Type.Object(
      { logout_token: Type.String({ minLength: 1 }) },
      {
        additionalProperties: Type.Unknown(),
        examples: [{ logout_token: 'eyJhbGciOiJSUzI1NiIsInR5cCI6ImxvZ291dCtqd3QifQ…' }],
      },
    ),
    response: { 200: Type.Object({}) },
    handler: async (req) => {
      const { logout_token } = req.body
      await endByProvider(deps, { provider_id: req.params.provider, logout_token, request_id: String(req.id) })
      return {}
    },
  })
})
