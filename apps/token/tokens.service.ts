import { Code, ConnectError } from '@connectrpc/connect'
import { ENROLMENT } from '../shared/auth/caller.ts'
import { scopeOf } from '../shared/auth/scope.ts'
import type { Clock } from '../shared/clock.ts'
import { type GenerateTokensRequest, ResponseMode } from '../shared/contracts/gen/auth_pb.ts'
import { isUuid } from '../shared/ids.ts'
import { type AccessClaims, type RefreshClaims, TOKEN_KINDS } from '../shared/jwt/claims.ts'
import { newJti, signToken } from '../shared/jwt/sign.ts'
import { TokenRejected, verifyToken } from '../shared/jwt/verifier.ts'
import type { Keyring } from './keyring.ts'

export type TokenSettings = {
  keyring: Keyring
  clock: Clock
  issuer: string
  audience: string
  refresh_audience: string
  skew_s: number
}

const refuse = (message: string, code = Code.InvalidArgument) => new ConnectError(message, code)

/** Signs an access token and a refresh token, or one of both; the refresh token new, or the one that the request names byte for byte. */
export const generateTokens = (settings: TokenSettings, request: GenerateTokensRequest) => {
  const now = Math.floor(settings.clock.now().getTime() / 1000)
  const wrong = refuseGenerate(request)
  if (wrong) throw refuse(wrong)
  if (request.mode === ResponseMode.MACHINE && request.notAfter <= now)
    throw refuse('the credential has ended', Code.FailedPrecondition)
  if (request.presentedKid !== '' && !settings.keyring.verifying(request.presentedKid))
    throw refuse('the key of the presented token is no longer valid', Code.FailedPrecondition)
  const active = settings.keyring.active()
  if (!active) throw refuse('there is no signing key yet', Code.Unavailable)
  const accessToken = request.refreshOnly ? '' : signToken('access', accessClaims(settings, request, now), active)
  if (request.accessOnly) return { accessToken }

  const repeat = request.refreshJti !== ''
  const key = repeat ? settings.keyring.signing(request.refreshKid) : active
  if (!key) throw refuse('the key of that refresh token signs no more', Code.FailedPrecondition)
  const refreshJti = repeat ? request.refreshJti : newJti()
  const refreshIat = repeat ? Number(request.refreshIat) : now
  if (refreshIat > now + settings.skew_s) throw refuse('refresh_iat is in the future')
  const refreshToken = signToken('refresh', refreshClaims(settings, request, refreshJti, refreshIat), key)
  return { accessToken, refreshToken, refreshJti, refreshIat: BigInt(refreshIat), refreshKid: key.kid }
}

const accessClaims = (settings: TokenSettings, request: GenerateTokensRequest, now: number): AccessClaims => ({
  iss: settings.issuer,
  sub: request.userId,
  aud: settings.audience,
  type: 'access',
  iat: now,
  exp: now + TOKEN_KINDS.access.lifetime_s,
  jti: newJti(),
  username: request.username,
  session_id: request.sessionId,
  auth_time: Math.min(Number(request.authTime), now),
  amr: request.amr.length > 0 ? request.amr : ['pwd'],
  cm: request.mode === ResponseMode.COOKIE ? 'cookie' : 'json',
  ...(request.mode === ResponseMode.MACHINE
    ? machineClaims(request, now)
    : request.permissions.length > 0 && { scope: request.permissions }),
})

/** A machine's token states its credential's permissions and lives as long as it, at most as long as a person's. */
const machineClaims = ({ method, permissions, scope, notAfter }: GenerateTokensRequest, now: number) => ({
  exp: Math.min(now + TOKEN_KINDS.access.lifetime_s, Number(notAfter)),
  amr: [method],
  cm: 'machine' as const,
  scope: permissions,
  ...(scope && { place: scopeOf(scope) }),
})

const refreshClaims = (
  settings: TokenSettings,
  request: GenerateTokensRequest,
  jti: string,
  iat: number,
): RefreshClaims => ({
  iss: settings.issuer,
  sub: request.userId,
  aud: settings.refresh_audience,
  type: 'refresh',
  iat,
  exp: iat + 2_592_000,
  jti,
  session_id: request.sessionId,
})

const JTI = /^[A-Za-z0-9_-]{22}$/
/** How people authenticate (RFC 8176); `fed` is by a provider. */
const METHODS = new Set(['pwd', 'otp', 'hwk', 'swk', 'mfa', 'fed'])

/** The fault of a request for tokens; `undefined` if there is none. */
const refuseGenerate = (request: GenerateTokensRequest): string | undefined => {
  const length = [...request.username].length
  if (!isUuid(request.userId) || !isUuid(request.sessionId)) return 'user_id and session_id must be lowercase UUIDs'
  if (length < 1 || length > 128) return 'username must have 1 to 128 characters'
  if (request.mode === ResponseMode.UNSPECIFIED) return 'mode must be JSON, COOKIE or MACHINE'
  if (request.mode === ResponseMode.MACHINE && (!request.accessOnly || request.method === ''))
    return 'a machine has a method, and access tokens alone'
  if (request.mode !== ResponseMode.MACHINE && request.permissions.some((one) => one !== ENROLMENT))
    return 'a person has all permissions of the account, or enrolment alone'
  if (request.authTime < 0n) return 'auth_time must not be negative'
  if (request.amr.some((method) => !METHODS.has(method))) return 'amr has a method of no person'
  const given = [request.refreshJti !== '', request.refreshIat !== 0n, request.refreshKid !== '']
  if (new Set(given).size !== 1) return 'refresh_jti, refresh_iat and refresh_kid: all three or none'
  if (given[0] && !JTI.test(request.refreshJti)) return 'refresh_jti is not a token id'
  if (request.accessOnly && request.refreshOnly) return 'access_only and refresh_only leave no token'
  return given[0] && request.accessOnly ? 'access_only repeats no refresh token' : undefined
}

/** Reads a refresh token by the same rules as every verifier. */
export const parseToken = (settings: TokenSettings, refreshToken: string) => {
  try {
    const claims = verifyToken(refreshToken, {
      type: 'refresh',
      issuer: settings.issuer,
      audience: settings.refresh_audience,
      skew_s: settings.skew_s,
      now: settings.clock.now(),
      keys: (kid) => {
        const key = settings.keyring.verifying(kid)
        return key && { key }
      },
    })
    return { sessionId: claims.session_id, userId: claims.sub, jti: claims.jti, iat: BigInt(claims.iat) }
  } catch (error) {
    if (error instanceof TokenRejected) throw refuse('the refresh token is not valid')
    throw error
  }
}
