import { type AppError, unavailable } from '../errors.ts'
import type { AccessClaims, ClaimsOf, RefreshClaims } from '../jwt/claims.ts'
import type { JwksClient } from '../jwt/jwks.ts'
import { rememberVerified, TokenRejected, type VerifyOptions, verifyToken } from '../jwt/verifier.ts'

export type UserTokenSettings = {
  jwks: JwksClient
  issuer: string
  audience: string
  skew_s: number
  clock: { now(): Date }
}

/**
 * Verifies user tokens against token's published keys. Throws TokenRejected if the token is bad. Throws 503 if its key
 * is unknown and no one can say whether it exists: an outage must not log anyone out.
 */
const createUserTokens = <T extends 'access' | 'refresh'>(
  type: T,
  { jwks, issuer, audience, skew_s, clock }: UserTokenSettings,
  verify: (token: string, options: VerifyOptions<T>) => ClaimsOf[T] = verifyToken,
) => {
  const keys = (kid: string) => {
    const key = jwks.get(kid)
    return key && { key }
  }
  const check = (token: string) => verify(token, { type, issuer, audience, skew_s, now: clock.now(), keys })
  return async (token: string): Promise<ClaimsOf[T]> => {
    try {
      return check(token)
    } catch (error) {
      if (!(error instanceof TokenRejected) || error.kid === undefined) throw error
      const found = await jwks.find(error.kid)
      if (found === 'unknown') throw error
      if (found === 'unavailable') throw keysUnavailable(error)
      return check(token)
    }
  }
}

const MAX_VERIFIED = 5000

export type AccessVerifier = (token: string) => Promise<AccessClaims>
/** `remembers`: whether this token was verified here before. */
export type RememberingVerifier = AccessVerifier & { remembers: (token: string) => boolean }
export type RefreshVerifier = (token: string) => Promise<RefreshClaims>

export const createAccessVerifier = (settings: UserTokenSettings): RememberingVerifier => {
  const verify = rememberVerified<'access'>(MAX_VERIFIED)
  return Object.assign(createUserTokens('access', settings, verify), { remembers: verify.remembers })
}
export const createRefreshVerifier = (settings: UserTokenSettings): RefreshVerifier =>
  createUserTokens('refresh', settings)

const keysUnavailable = (cause: unknown): AppError =>
  unavailable('The keys that tokens are verified with cannot be read now.', cause, 'unavailable')
