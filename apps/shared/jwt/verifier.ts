import { type KeyObject, verify } from 'node:crypto'
import { isUuid } from '../ids.ts'
import { type ClaimsOf, TOKEN_KINDS, type TokenType } from './claims.ts'

/** Why a token was refused: a label for metrics and logs, never shown to the caller. */
export type RejectCause =
  | 'malformed'
  | 'header'
  | 'unknown_key'
  | 'signature'
  | 'payload'
  | 'issuer'
  | 'audience'
  | 'type'
  | 'subject'
  | 'lifetime'
  | 'not_yet_valid'
  | 'expired'
  | 'claims'

export class TokenRejected extends Error {
  readonly reason: RejectCause
  /** The unknown key id, if that is the reason and the token is well formed up to there. */
  readonly kid: string | undefined

  constructor(reason: RejectCause, kid?: string) {
    super(`token refused: ${reason}`)
    this.name = 'TokenRejected'
    this.reason = reason
    this.kid = kid
  }
}

/** A verification key. `issuer`: the only issuer whose tokens it may verify (service keys belong to one caller). */
export type VerificationKey = { key: KeyObject; issuer?: string }

export type VerifyOptions<T extends TokenType> = {
  type: T
  /** The key with that id; undefined if it is unknown or killed. */
  keys: (kid: string) => VerificationKey | undefined
  /** The expected `iss`; for service tokens the key decides. */
  issuer?: string
  audience: string
  now: Date
  /** How many seconds `iat` and `nbf` may lie in the future, because two hosts' clocks differ. `exp` has no leeway. */
  skew_s?: number
}

const SKEW_S = 5
const MAX_BYTES = 4096
const PART = /^[A-Za-z0-9_-]+$/
const KID = /^[A-Za-z0-9_-]{1,64}$/
const JTI = /^[A-Za-z0-9_-]{22}$/
const SERVICE_SUBJECT = /^svc:[a-z][a-z0-9-]{0,62}$/

/**
 * The single verifier of every app: strict, synchronous, without side effects. Returns the claims or throws
 * TokenRejected. The order is that of auth.md 5: no part of a token is trusted, hashed or looked up before its
 * canonical spelling is certain.
 */
export const verifyToken = <T extends TokenType>(token: string, options: VerifyOptions<T>): ClaimsOf[T] => {
  const [header64, payload64, signature64] = splitToken(token)
  const kid = checkHeader(decodePart(header64, 'header'), options.type)
  const known = options.keys(kid)
  if (!known) throw new TokenRejected('unknown_key', kid)
  checkSignature(`${header64}.${payload64}`, signature64, known.key, TOKEN_KINDS[options.type].alg)

  const claims = decodePart(payload64, 'payload')
  const issuer = known.issuer ?? options.issuer
  if (issuer === undefined || claims.iss !== issuer) throw new TokenRejected('issuer')
  if (claims.type !== options.type) throw new TokenRejected('type')
  if (typeof claims.aud !== 'string' || claims.aud !== options.audience) throw new TokenRejected('audience')
  checkSubject(claims, options.type)
  checkTimes(claims, options)
  checkOwnClaims(claims, options.type)
  return claims as ClaimsOf[T]
}

export const kidOf = (token: string): string => {
  const [header = ''] = token.split('.', 1)
  return (JSON.parse(Buffer.from(header, 'base64url').toString('utf8')) as { kid: string }).kid
}

type Verified<T extends TokenType> = { claims: ClaimsOf[T]; kid: string; key: KeyObject }

/**
 * `verifyToken` with a cache, for tokens that arrive many times: a verified signature is not computed again. The same
 * text under the same key, if still known, has the same claims. Whatever the options and time decide (issuer, audience,
 * `exp`, a clock that was set back) is checked on every use. Holds `most` tokens; the oldest is dropped first.
 */
export const rememberVerified = <T extends TokenType>(most: number) => {
  const verified = new Map<string, Verified<T>>()
  const check = (token: string, options: VerifyOptions<T>): ClaimsOf[T] => {
    const found = verified.get(token)
    if (found && stillHolds(found, options)) return found.claims
    verified.delete(token)
    let used: Pick<Verified<T>, 'kid' | 'key'> | undefined
    const keys = (kid: string) => {
      const known = options.keys(kid)
      if (known) used = { kid, key: known.key }
      return known
    }
    const claims = verifyToken(token, { ...options, keys })
    Object.freeze(claims)
    // A token with `nbf` limits time in a way that `stillHolds` does not check.
    if (used && !('nbf' in claims)) {
      if (verified.size >= most) verified.delete(verified.keys().next().value as string)
      verified.set(token, { claims, ...used })
    }
    return claims
  }
  /** Whether this token was verified before: checking it again is almost free. */
  return Object.assign(check, { remembers: (token: string): boolean => verified.has(token) })
}

const stillHolds = <T extends TokenType>(
  { claims, kid, key }: Verified<T>,
  { keys, issuer, audience, now, skew_s = SKEW_S }: VerifyOptions<T>,
): boolean => {
  const known = keys(kid)
  const seconds = now.getTime() / 1000
  return (
    known?.key === key &&
    claims.iss === (known.issuer ?? issuer) &&
    claims.aud === audience &&
    claims.exp > seconds &&
    claims.iat <= seconds + skew_s
  )
}

type Json = Record<string, unknown>

const splitToken = (token: string): [string, string, string] => {
  if (token.length > MAX_BYTES) throw new TokenRejected('malformed')
  const [header, payload, signature, more] = token.split('.', 4)
  if (header === undefined || payload === undefined || signature === undefined || more !== undefined) {
    throw new TokenRejected('malformed')
  }
  for (const part of [header, payload, signature]) {
    // The last character of a base64url text has spare bits: several texts decode to the same bytes, but only one
    // re-encodes to itself.
    if (!PART.test(part) || Buffer.from(part, 'base64url').toString('base64url') !== part) {
      throw new TokenRejected('malformed')
    }
  }
  return [header, payload, signature]
}

/** Reads a part as a JSON object whose bytes JSON.stringify reproduces: no repeated members or other spelling. */
const decodePart = (part: string, reason: 'header' | 'payload'): Json => {
  const bytes = Buffer.from(part, 'base64url')
  try {
    const value: unknown = JSON.parse(bytes.toString('utf8'))
    if (
      typeof value === 'object' &&
      value !== null &&
      !Array.isArray(value) &&
      bytes.equals(Buffer.from(JSON.stringify(value)))
    ) {
      return value as Json
    }
  } catch {
    // Falls through: a part that does not parse is refused like one that does not round-trip.
  }
  throw new TokenRejected(reason)
}

const checkHeader = (header: Json, type: TokenType): string => {
  const { alg, kid, typ } = header
  const expected = TOKEN_KINDS[type]
  if (Object.keys(header).length !== 3 || typeof kid !== 'string' || typeof typ !== 'string')
    throw new TokenRejected('header')
  if (alg !== expected.alg || !KID.test(kid)) throw new TokenRejected('header')
  if (typ.replace(/[A-Z]/g, (letter) => letter.toLowerCase()) !== expected.typ) throw new TokenRejected('type')
  return kid
}

const checkSignature = (input: string, signature: string, key: KeyObject, alg: 'RS256' | 'EdDSA'): void => {
  const fits = alg === 'RS256' ? key.asymmetricKeyType === 'rsa' : key.asymmetricKeyType === 'ed25519'
  const digest = alg === 'RS256' ? 'sha256' : null
  if (!fits || !verify(digest, Buffer.from(input), key, Buffer.from(signature, 'base64url')))
    throw new TokenRejected('signature')
}

const checkSubject = (claims: Json, type: TokenType): void => {
  const { sub, jti } = claims
  const user = type === 'access' || type === 'refresh'
  if (typeof sub !== 'string' || !(user ? isUuid(sub) : SERVICE_SUBJECT.test(sub))) throw new TokenRejected('subject')
  if (type === 'service' && sub !== claims.iss) throw new TokenRejected('subject')
  if (user && (typeof claims.session_id !== 'string' || !isUuid(claims.session_id))) throw new TokenRejected('subject')
  if (typeof jti !== 'string' || !JTI.test(jti)) throw new TokenRejected('claims')
  if (type === 'access' && !isUsername(claims.username)) throw new TokenRejected('claims')
}

const isUsername = (value: unknown): boolean => {
  if (typeof value !== 'string') return false
  const length = [...value].length
  return length >= 1 && length <= 128
}

const checkTimes = (claims: Json, { type, now, skew_s = SKEW_S }: VerifyOptions<TokenType>): void => {
  const { iat, exp, nbf } = claims
  const { lifetime_s } = TOKEN_KINDS[type]
  if (!isTime(iat) || !isTime(exp)) throw new TokenRejected('lifetime')
  const lifetime = exp - iat
  // A machine's token must not outlive its credential.
  const fits = claims.cm === 'machine' ? lifetime > 0 && lifetime <= lifetime_s : lifetime === lifetime_s
  if (!fits) throw new TokenRejected('lifetime')
  const seconds = now.getTime() / 1000
  if (iat > seconds + skew_s) throw new TokenRejected('not_yet_valid')
  if (exp <= seconds) throw new TokenRejected('expired')
  if (nbf !== undefined && !(isTime(nbf) && nbf <= seconds + skew_s)) throw new TokenRejected('not_yet_valid')
}

const isTime = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0

export const isTexts = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((item) => typeof item === 'string')

const isMachine = ({ cm, scope, place }: Json): boolean =>
  cm === 'machine' && isTexts(scope) && (place === undefined || (typeof place === 'object' && place !== null))

/** A person's token has all rights of the account, or only one: to set up a second factor. */
const isPerson = ({ cm, scope }: Json): boolean =>
  (cm === 'json' || cm === 'cookie') &&
  (scope === undefined || (isTexts(scope) && scope.length === 1 && scope[0] === 'enrolment'))

const checkOwnClaims = (claims: Json, type: TokenType): void => {
  const ok = {
    access: () =>
      isTime(claims.auth_time) &&
      claims.auth_time <= (claims.iat as number) &&
      isTexts(claims.amr) &&
      (isPerson(claims) || isMachine(claims)),
    refresh: () => true,
    service: () => isTexts(claims.scope),
  }[type]()
  if (!ok) throw new TokenRejected('claims')
}
