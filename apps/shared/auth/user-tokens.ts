import type { KeyObject } from 'node:crypto'
import { type AppError, unavailable } from '../errors.ts'
import type { AccessClaims, ClaimsOf, RefreshClaims } from './claims.ts'
import type { JwksClient } from './jwks.ts'
import { TokenRejected, verifyToken } from './verifier.ts'

export type UserTokenSettings = {
  jwks: JwksClient
  issuer: string
  audience: string
  skew_s: number
  clock: { now(): Date }
}

/**
 * Verifies user tokens against token's published keys. Throws TokenRejected when the token is bad, and 503 when its
 * key is unknown and nobody can say whether it exists: an outage must not log anybody out.
 */
const createUserTokens = <T extends 'access' | 'refresh'>(
  type: T,
  { jwks, issuer, audience, skew_s, clock }: UserTokenSettings,
) => {
  const check = (token: string, now: Date, used?: (kid: string, key: KeyObject) => void) =>
    verifyToken(token, {
      type,
      issuer,
      audience,
      skew_s,
      now,
      keys: (kid) => {
        const key = jwks.get(kid)
        if (key) used?.(kid, key)
        return key && { key }
      },
    })
  return async (token: string, used?: (kid: string, key: KeyObject) => void): Promise<ClaimsOf[T]> => {
    try {
      return check(token, clock.now(), used)
    } catch (error) {
      if (!(error instanceof TokenRejected) || error.kid === undefined) throw error
      const found = await jwks.find(error.kid)
      if (found === 'unknown') throw error
      if (found === 'unavailable') throw keysUnavailable(error)
      return check(token, clock.now(), used)
    }
  }
}

const MAX_VERIFIED = 5000

type Verified = { claims: AccessClaims; kid: string; key: KeyObject }

/**
 * Access tokens arrive many times in their life, so the signature of one that verified is not computed again: the very
 * same text under the very same key, still published and not killed, has the very same claims. What time changes, `exp`
 * and a clock that was set back, is looked at with every use. Bounded; the oldest goes first.
 */
const remembering = (verify: Verifies<'access'>, { jwks, skew_s, clock }: UserTokenSettings): AccessVerifier => {
  const verified = new Map<string, Verified>()
  const known = (token: string): AccessClaims | undefined => {
    const found = verified.get(token)
    if (!found) return undefined
    const seconds = clock.now().getTime() / 1000
    const { claims, kid, key } = found
    if (jwks.get(kid) === key && claims.exp > seconds && claims.iat <= seconds + skew_s) return claims
    verified.delete(token)
    return undefined
  }
  return async (token) => {
    const before = known(token)
    if (before) return before
    let used: Omit<Verified, 'claims'> | undefined
    const claims = Object.freeze(
      await verify(token, (kid, key) => {
        used = { kid, key }
      }),
    )
    // A token with `nbf` says more about time than is looked at above.
    if (used && !('nbf' in claims)) {
      if (verified.size >= MAX_VERIFIED) verified.delete(verified.keys().next().value as string)
      verified.set(token, { claims, ...used })
    }
    return claims
  }
}

type Verifies<T extends 'access' | 'refresh'> = ReturnType<typeof createUserTokens<T>>
export type AccessVerifier = (token: string) => Promise<AccessClaims>
export type RefreshVerifier = (token: string) => Promise<RefreshClaims>

export const createAccessVerifier = (settings: UserTokenSettings): AccessVerifier =>
  remembering(createUserTokens('access', settings), settings)
export const createRefreshVerifier = (settings: UserTokenSettings): RefreshVerifier =>
  createUserTokens('refresh', settings)

const keysUnavailable = (cause: unknown): AppError =>
  unavailable('The keys that tokens are verified with cannot be read now.', cause, 'unavailable')
