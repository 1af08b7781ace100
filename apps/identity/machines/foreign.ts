import {
  decodeJwt,
  decodeProtectedHeader,
  errors,
  type JWTPayload,
  type JWTVerifyGetKey,
  type JWTVerifyOptions,
  jwtVerify,
} from 'jose'
import type { Clock } from '../../shared/clock.ts'
import { scanJson } from '../../shared/data/json.ts'
import { AppError, unavailable } from '../../shared/errors.ts'
import { pointerToUnstorable } from '../../shared/http/json-body.ts'
import { createPublished, readSmall } from '../../shared/jwt/published.ts'

/** Why a credential of a machine was refused: for the audit log, never for the caller. */
export type MachineCause =
  | 'malformed'
  | 'unknown'
  | 'revoked'
  | 'expired'
  | 'machine_disabled'
  | 'no_owner'
  | 'issuer'
  | 'audience'
  | 'subject'
  | 'algorithm'
  | 'key'
  | 'signature'
  | 'time'
  | 'claims'
  | 'replayed'
  | 'network'

export class MachineRefused extends Error {
  readonly reason: MachineCause
  /** The claim in which a token differs from the trust. */
  readonly claim: string | undefined
  constructor(reason: MachineCause, claim?: string) {
    super(`the credential of a machine was refused: ${reason}`)
    this.reason = reason
    this.claim = claim
  }
}

const ALGORITHMS = ['EdDSA', 'ES256', 'RS256']
const MAX_BYTES = 8192
const SKEW_S = 5
/** Header members with which a token would carry or reference its own key, or require an unknown extension. */
const FORBIDDEN = ['crit', 'jku', 'jwk', 'x5u', 'x5c', 'b64']

/** The issuer and key that a token claims; unverified. */
export const claimedBy = (token: string): { iss: string; kid: string } => {
  if (token.length > MAX_BYTES) throw new MachineRefused('malformed')
  try {
    // JSON.parse keeps the last of two equal members, other readers the first.
    for (const part of token.split('.', 2)) scanJson(Buffer.from(part, 'base64url').toString('utf8'))
    const header = decodeProtectedHeader(token)
    const claims = decodeJwt(token)
    const { iss } = claims
    if (pointerToUnstorable(claims) !== undefined) throw new MachineRefused('malformed')
    if (FORBIDDEN.some((member) => member in header)) throw new MachineRefused('malformed')
    if (typeof header.kid !== 'string') throw new MachineRefused('key')
    if (typeof iss !== 'string') throw new MachineRefused('issuer')
    return { iss, kid: header.kid }
  } catch (error) {
    if (error instanceof MachineRefused) throw error
    throw new MachineRefused('malformed')
  }
}

export type Foreign = JWTPayload & { jti: string; exp: number; iat: number; aud: string; sub: string }

/** The one verification of foreign tokens. Throws MachineRefused with the cause, or 503 if the keys are unavailable. */
export const verifyForeign = async (
  token: string,
  keys: JWTVerifyGetKey,
  {
    clock,
    max_s,
    ...expected
  }: { clock: Clock; max_s: number } & Pick<JWTVerifyOptions, 'issuer' | 'audience' | 'subject'>,
): Promise<Foreign> => {
  const { payload } = await jwtVerify(token, keys, {
    ...expected,
    algorithms: ALGORITHMS,
    currentDate: clock.now(),
    clockTolerance: SKEW_S,
    maxTokenAge: max_s,
    requiredClaims: ['exp', 'iat', 'jti', 'sub', 'aud', 'iss'],
  }).catch((error: unknown) => {
    throw causeOf(error)
  })
  const { exp = 0, iat = 0, jti } = payload
  // A list of one equals its only member (RFC 7519 4.1.3). A token for others too could be passed on by them.
  const [aud, ...others] = [payload.aud ?? []].flat()
  if (typeof aud !== 'string' || others.length > 0) throw new MachineRefused('audience')
  if (exp - iat > max_s) throw new MachineRefused('time')
  if (typeof jti !== 'string' || jti.length === 0 || jti.length > 255) throw new MachineRefused('claims')
  return { ...payload, aud } as Foreign
}

const BY_CLAIM: Record<string, MachineCause> = {
  iss: 'issuer',
  aud: 'audience',
  sub: 'subject',
  iat: 'time',
  exp: 'time',
  nbf: 'time',
}

const causeOf = (error: unknown): Error => {
  if (error instanceof errors.JWTClaimValidationFailed) return new MachineRefused(BY_CLAIM[error.claim] ?? 'claims')
  if (error instanceof errors.JWTExpired) return new MachineRefused('time')
  if (error instanceof errors.JOSEAlgNotAllowed) return new MachineRefused('algorithm')
  if (error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWKSMultipleMatchingKeys)
    return new MachineRefused('key')
  if (error instanceof errors.JWSSignatureVerificationFailed) return new MachineRefused('signature')
  if (error instanceof MachineRefused || error instanceof AppError) return error
  if (
    error instanceof errors.JWTInvalid ||
    error instanceof errors.JWSInvalid ||
    error instanceof errors.JOSENotSupported
  )
    return new MachineRefused('malformed')
  return unavailable("The issuer's keys cannot be read right now.", error, 'unavailable')
}

/** Encrypted, or on this machine: anyone who could change an issuer's keys could pose as any of its subjects. */
export const isSafeUrl = (text: string): boolean => {
  const { protocol, hostname } = URL.canParse(text) ? new URL(text) : { protocol: '', hostname: '' }
  return protocol === 'https:' || (protocol === 'http:' && ['localhost', '127.0.0.1', '[::1]'].includes(hostname))
}

/** While an issuer cannot be read, its last keys are valid for an hour. */
const STALE_MS = 3_600_000

/** The published keys of these issuers, located by their discovery documents on first use. */
export const createIssuers = (issuers: readonly string[], monotonic?: () => number) => {
  const discover = async (issuer: string) => {
    const found = await readSmall(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`)
    const { issuer: named, jwks_uri } = found as { issuer?: unknown; jwks_uri?: unknown }
    if (named !== issuer || typeof jwks_uri !== 'string' || !isSafeUrl(jwks_uri))
      throw new Error(`the discovery document of ${issuer} names another issuer or no safe jwks_uri`)
    return { jwks_uri }
  }
  const published = issuers.map((issuer) => {
    const away = (cause: unknown) => unavailable(`The issuer ${issuer} is not available.`, cause, 'unavailable')
    const options = { stale_ms: STALE_MS, away, ...(monotonic && { monotonic }) }
    return [issuer, createPublished(() => discover(issuer), options).key] as const
  })
  return new Map<string, JWTVerifyGetKey>(published)
}
export type Issuers = ReturnType<typeof createIssuers>
