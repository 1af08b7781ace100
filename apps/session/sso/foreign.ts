import { createHash } from 'node:crypto'
import { errors, type JWTPayload, jwtVerify } from 'jose'
import * as client from 'openid-client'
import type { Provider } from '../../shared/auth/providers.ts'
import { AppError, type CodeOf } from '../../shared/errors.ts'
import { pointerToUnstorable } from '../../shared/http/json-body.ts'
import { FLOW_S } from '../store/flows.ts'
import { type Connection, providerAway, SKEW_S } from './connections.ts'

/** The claims of a provider's verified token. */
export type Claims = JWTPayload & { sub: string; iat: number }
type Refusal = CodeOf<'invalid_token'>

/** As long as a flow, to which the nonce binds the token. Entra dates its tokens back by five minutes. */
const MAX_AGE_S = FLOW_S
const MAX_LOGOUT_AGE_S = 120
const MAX_TOKEN = 32_768
const MAX_SUBJECT = 255
const LOGOUT_EVENT = 'http://schemas.openid.net/event/backchannel-logout'

const WORDS: Partial<Record<Refusal, string>> = {
  id_token_issuer: 'The ID token is of another issuer.',
  id_token_audience: 'The ID token is for another client.',
  id_token_nonce: 'The ID token belongs to another sign-in.',
  id_token_time: 'The ID token is expired or not valid yet.',
  sign_in_expired: 'This sign-in expired or was opened twice. Start again.',
}
export const refusedToken = (code: Refusal, cause?: unknown) =>
  new AppError('invalid_token', code, WORDS[code] ?? "The provider's answer is refused.", {
    hint: 'Start again at the sign-in page.',
    cause,
  })

/** Checks every signature, issuer, audience, time and algorithm of a foreign token, using jose. */
const verifyForeign = async (
  connection: Connection,
  provider: Provider,
  token: string,
  { max_age_s, typ }: { max_age_s: number; typ?: string },
) => {
  if (token.length > MAX_TOKEN) throw new errors.JWTInvalid('the token is too long')
  const { payload } = await jwtVerify(token, connection.keys, {
    issuer: provider.issuer,
    audience: provider.client_id,
    algorithms: provider.algorithms,
    clockTolerance: SKEW_S,
    maxTokenAge: max_age_s,
    ...(typ && { typ }),
  })
  const several = Array.isArray(payload.aud) && payload.aud.length > 1
  if (payload.azp === undefined ? several : payload.azp !== provider.client_id)
    throw new errors.JWTClaimValidationFailed('azp names another client', payload, 'azp')
  // Two subjects with unpaired surrogates would be stored as the same text.
  if (pointerToUnstorable(payload) !== undefined) throw new errors.JWTInvalid('a claim cannot be stored')
  return payload
}

/** Exchanges the code of a callback and verifies the ID token. Throws a distinct code for each fault. */
export const exchangeCode = async (
  connection: Connection,
  provider: Provider,
  callback: URL,
  flow: { state: string; nonce: string; verifier: string },
): Promise<Claims> => {
  try {
    const reply = await client.authorizationCodeGrant(connection.client, callback, {
      pkceCodeVerifier: flow.verifier,
      expectedNonce: flow.nonce,
      expectedState: flow.state,
      idTokenExpected: true,
    })
    const claims = await verifyForeign(connection, provider, reply.id_token ?? '', { max_age_s: MAX_AGE_S })
    const { sub, exp, iat = 0, nonce, at_hash } = claims
    if (nonce !== flow.nonce) throw new errors.JWTClaimValidationFailed('of another sign-in', claims, 'nonce')
    if (exp === undefined || !sub || sub.length > MAX_SUBJECT) throw new errors.JWTInvalid('sub or exp is missing')
    if (at_hash !== undefined && at_hash !== hashOf(reply.access_token, reply.id_token ?? ''))
      throw new errors.JWTInvalid('at_hash is of another access token')
    return { ...claims, sub, iat }
  } catch (error) {
    throw refusalOf(provider, error)
  }
}

/** The left half of the hash that the token's algorithm uses (OpenID Connect Core 3.1.3.6). */
const hashOf = (access_token: string, id_token: string): string => {
  const { alg } = JSON.parse(Buffer.from(id_token.split('.')[0] ?? '', 'base64url').toString()) as { alg: string }
  const digest = createHash(alg === 'EdDSA' ? 'sha512' : 'sha256')
    .update(access_token)
    .digest()
  return digest.subarray(0, digest.length / 2).toString('base64url')
}

const BY_CLAIM: Record<string, Refusal> = {
  iss: 'id_token_issuer',
  aud: 'id_token_audience',
  azp: 'id_token_audience',
  nonce: 'id_token_nonce',
  exp: 'id_token_time',
  nbf: 'id_token_time',
  iat: 'id_token_time',
}

/** Both libraries' errors as our codes. An outage is not a fault of the token. */
const refusalOf = (provider: Provider, error: unknown): AppError => {
  if (error instanceof AppError) return error
  if (error instanceof client.AuthorizationResponseError) return refusalBy(provider, error)
  if (error instanceof client.ResponseBodyError)
    return error.error === 'invalid_grant'
      ? refusedToken('sign_in_expired', error)
      : (refusedUs(provider, error) ?? providerAway(provider, error))
  // The refusal of a secret that was sent in the header.
  if (error instanceof client.WWWAuthenticateChallengeError) return refusesClient(provider, error)
  const claim = claimOf(error)
  if (claim !== undefined) return refusedToken(BY_CLAIM[claim] ?? 'id_token_invalid', error)
  if (isOutage(error)) return providerAway(provider, error)
  return refusedToken('id_token_invalid', error)
}

/** The refusal that the provider states (RFC 6749 4.1.2.1); the description is Keycloak's, for a page left open too long. */
const refusalBy = (provider: Provider, error: client.AuthorizationResponseError): AppError => {
  if (error.error === 'access_denied')
    return new AppError(
      'invalid_token',
      'sign_in_cancelled',
      'The provider refused the sign-in, or it was canceled there.',
    )
  if (error.error_description === 'authentication_expired') return refusedToken('sign_in_expired', error)
  if (/^(server_error|temporarily_unavailable)$/.test(error.error)) return providerAway(provider, error)
  return refusedUs(provider, error) ?? refusedToken('id_token_invalid', error)
}

const US = /^(invalid_client|unauthorized_client|invalid_request|invalid_scope|unsupported_\w+)$/
/** The refusal of this installation, not of a person, such as for an expired secret (RFC 6749 4.1.2.1, 5.2). */
const refusedUs = (provider: Provider, error: { error: string }) =>
  US.test(error.error) ? refusesClient(provider, error) : undefined

const refusesClient = ({ title }: Provider, cause: unknown) =>
  new AppError('unavailable', 'provider_refuses_client', `${title} does not accept this installation.`, { cause })

/** The claim that either library rejected. */
const claimOf = (error: unknown): string | undefined => {
  if (error instanceof errors.JWTClaimValidationFailed || error instanceof errors.JWTExpired) return error.claim
  const { code, cause } = error as { code?: string; cause?: { cause?: { claim?: string } } }
  return code === 'OAUTH_JWT_CLAIM_COMPARISON_FAILED' || code === 'OAUTH_JWT_TIMESTAMP_CHECK_FAILED'
    ? cause?.cause?.claim
    : undefined
}

/** Library codes for unreadable answers. */
const AWAY = new Set(['OAUTH_TIMEOUT', 'OAUTH_RESPONSE_IS_NOT_CONFORM', 'OAUTH_RESPONSE_IS_NOT_JSON'])
const isOutage = (error: unknown): boolean => {
  const { code, cause } = error as { code?: string; cause?: unknown }
  const inner = error instanceof client.ClientError ? cause : error
  return AWAY.has(code ?? '') || inner instanceof TypeError || inner instanceof DOMException
}

/** Verifies a logout token (OpenID Connect Back-Channel Logout 2.6) except for its `jti`, which counts once. */
export const verifyLogout = async (connection: Connection, provider: Provider, token: string) => {
  const wanted = { max_age_s: MAX_LOGOUT_AGE_S, typ: 'logout+jwt' }
  const claims = await verifyForeign(connection, provider, token, wanted).catch((error: unknown) => {
    throw error instanceof AppError ? error : refusedLogout(error)
  })
  const { events, nonce, sid, sub, jti, iat = 0 } = claims
  const event = (events as Record<string, unknown> | undefined)?.[LOGOUT_EVENT]
  const named = { ...(typeof sid === 'string' && { sid }), ...(typeof sub === 'string' && { sub }) }
  if (typeof event !== 'object' || event === null || nonce !== undefined || !jti || Object.keys(named).length === 0)
    throw refusedLogout()
  return { jti, iat: Math.floor(iat), ...(named as { sid?: string; sub?: string }) }
}

const refusedLogout = (cause?: unknown) =>
  new AppError('validation_error', 'logout_token_invalid', 'The logout token is refused.', { cause })
