import { createHash, randomBytes } from 'node:crypto'
import * as client from 'openid-client'
import type { Caller } from '../../shared/auth/caller.ts'
import type { Provider } from '../../shared/auth/providers.ts'
import { nextPath } from '../../shared/contracts/client/next-path.ts'
import { sha256Hex } from '../../shared/data/digest.ts'
import { AppError, notFound } from '../../shared/errors.ts'
import type { Uses } from '../deps.ts'
import { FLOW_S, type Flow, type Native } from '../store/flows.ts'

export type StartDeps = Uses<'config' | 'clock' | 'providers' | 'connections' | 'flows' | 'cookies'>
export type Start = {
  provider_id: string
  purpose: Flow['purpose']
  return_to: string | undefined
  native?: Native
  caller?: Pick<Caller, 'user_id' | 'session_id'>
  cookie: string | undefined
}

const secret = () => randomBytes(32).toString('base64url')
const SECRET = /^[A-Za-z0-9_-]{43}$/

export const findProvider = ({ providers }: Uses<'providers'>, id: string): Provider => {
  const provider = providers.get(id)
  if (!provider) throw notFound('provider', id, 'not_found')
  return provider
}

/** The URL to which the provider returns the browser. */
export const callbackUrl = ({ config }: Uses<'config'>, provider_id: string): string =>
  `${config.GATEWAY__HTTP__PUBLIC_ORIGIN}/v1/sso/${provider_id}/callback`

/**
 * Begins a sign-in: stores state, nonce and verifier under the hash of the state, bound to this browser by a cookie.
 * Returns the URL of the provider's page. To confirm, to link, or to sign in for an app outside the browser, a person
 * must type their credentials there. An open session at the provider does not prove intent.
 */
export const startFlow = async (deps: StartDeps, start: Start): Promise<{ location: string; set_cookie: string }> => {
  const provider = findProvider(deps, start.provider_id)
  if (start.native) refuseRedirect(deps, start.native.redirect_uri)
  const connection = await deps.connections.get(provider)
  const known = deps.cookies.readFlow(start.cookie)
  const browser = known && SECRET.test(known) ? known : secret()
  const state = secret()
  const verifier = secret()
  const flow: Flow = {
    provider_id: provider.id,
    purpose: start.purpose,
    nonce: secret(),
    verifier,
    browser: sha256Hex(browser),
    started_s: Math.floor(deps.clock.now().getTime() / 1000),
    return_to: nextPath(start.return_to, deps.config.GATEWAY__HTTP__PUBLIC_ORIGIN),
    ...(start.native && { native: start.native }),
    ...(start.caller && { session: { user_id: start.caller.user_id, session_id: start.caller.session_id } }),
  }
  await deps.flows.begin(state, flow)
  const asked = start.purpose !== 'sign_in' || start.native !== undefined
  const location = client.buildAuthorizationUrl(connection.client, {
    redirect_uri: callbackUrl(deps, provider.id),
    scope: provider.scopes.join(' '),
    state,
    nonce: flow.nonce,
    // Half the cost of a start is saved by not asking WebCrypto, which answers in another turn.
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
    // Some providers state the time of a sign-in only if asked; others ignore the parameter.
    claims: JSON.stringify({ id_token: { auth_time: { essential: true } } }),
    ...(asked && { prompt: 'login', max_age: '0' }),
  })
  return { location: location.href, set_cookie: deps.cookies.flow(browser, FLOW_S) }
}

/** RFC 8252: an app on this machine, by address and not by name, or a URL that our apps claim. */
const LOOPBACK = /^http:\/\/(127\.0\.0\.1|\[::1\]):[1-9]\d{0,4}\/callback$/

const refuseRedirect = ({ config }: Uses<'config'>, redirect_uri: string): void => {
  if (
    (LOOPBACK.test(redirect_uri) && URL.canParse(redirect_uri)) ||
    config.SESSION__SSO__REDIRECT_URIS.includes(redirect_uri)
  )
    return
  throw new AppError('validation_error', 'schema_violation', 'The redirect_uri does not belong to a registered app.', {
    hint: 'Use http://127.0.0.1:PORT/callback, or an address of SESSION__SSO__REDIRECT_URIS.',
  })
}
