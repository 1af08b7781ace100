import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { type Clock, systemClock } from '../clock.ts'
import { ConfigError } from '../config.ts'
import { AppError } from '../errors.ts'
import type { ServiceClaims } from '../jwt/claims.ts'
import { newJti, signToken } from '../jwt/sign.ts'
import { publicKeyOf } from '../jwt/sound.ts'
import { isTexts, rememberVerified, TokenRejected, type VerificationKey, type VerifyOptions } from '../jwt/verifier.ts'
import { type RegistryEntry, readKeyFile, thumbprintOf } from './keys.ts'
import { audienceOf, SERVICE_SCOPES } from './scopes.ts'

const LIFETIME_S = 300
const RENEW_AT_S = LIFETIME_S * 0.6

export type ServiceSigner = (audience: string) => string

type ServiceSignerDeps = { name: string; key_file: string; scopes?: string[]; clock?: Clock }

/**
 * Signs an app's own service tokens, one per target, and renews them at 60 % of their life. The scopes are those that
 * SERVICE_SCOPES gives the app at the target, or `scopes` for every target.
 */
export const createServiceSigner = (options: ServiceSignerDeps): ServiceSigner => {
  const { name, clock = systemClock } = options
  const key = readKeyFile(`${name.toUpperCase().replaceAll('-', '_')}__SERVICE__KEY_FILE`, options.key_file)
  const scopesAt = new Map(
    Object.entries(SERVICE_SCOPES[name] ?? {}).map(([target, scopes]) => [audienceOf(target), scopes]),
  )
  const tokens = new Map<string, { token: string; iat: number }>()
  return (audience) => {
    const now = Math.floor(clock.now().getTime() / 1000)
    const cached = tokens.get(audience)
    if (cached && now >= cached.iat && now - cached.iat < RENEW_AT_S) return cached.token
    const claims: ServiceClaims = {
      iss: `svc:${name}`,
      sub: `svc:${name}`,
      aud: audience,
      type: 'service',
      iat: now,
      exp: now + LIFETIME_S,
      jti: newJti(),
      scope: [...(options.scopes ?? scopesAt.get(audience) ?? [])],
    }
    const token = signToken('service', claims, key)
    tokens.set(audience, { token, iat: now })
    return token
  }
}

type Caller = { name: string; audiences: ReadonlySet<string>; scopes: ReadonlySet<string> }
type Entries = { keys: ReadonlyMap<string, VerificationKey>; callers: ReadonlyMap<string, Caller> }
const REREAD_MS = 10_000
const MAX_VERIFIED = 500

/** The callers of internal listeners, from one file, reread within 30 s of a change. An invalid change is ignored. */
export type Registry = {
  key: (kid: string) => VerificationKey | undefined
  caller: (issuer: string) => Caller | undefined
  /** A caller sends the same token for minutes, so its signature is verified once. */
  verify: (token: string, options: VerifyOptions<'service'>) => ServiceClaims
  /** Reads the file now; throws if it is invalid, and keeps the earlier content. */
  reload: () => Promise<void>
  close: () => void
}

export const loadRegistry = (
  file: string,
  { onError, every_ms = REREAD_MS }: { onError?: (error: unknown) => void; every_ms?: number } = {},
): Registry => {
  let text: string
  let entries: Entries
  try {
    text = readFileSync(file, 'utf8')
    entries = parseRegistry(text)
  } catch (error) {
    throw new ConfigError(
      `AUTH__SERVICES__FILE names ${file}, which is not a registry of services: ${(error as Error).message}`,
    )
  }
  const reload = async () => {
    const read = await readFile(file, 'utf8')
    if (read === text) return
    entries = parseRegistry(read)
    text = read
  }
  const timer = setInterval(() => reload().catch((error: unknown) => onError?.(error)), every_ms).unref()
  return {
    key: (kid) => entries.keys.get(kid),
    caller: (issuer) => entries.callers.get(issuer),
    verify: rememberVerified(MAX_VERIFIED),
    reload,
    close: () => clearInterval(timer),
  }
}

const NAME = /^[a-z][a-z0-9-]{0,62}$/

const parseRegistry = (text: string): Entries => {
  const keys = new Map<string, VerificationKey>()
  const callers = new Map<string, Caller>()
  for (const [name, entry] of Object.entries(JSON.parse(text) as Record<string, RegistryEntry>)) {
    if (!NAME.test(name)) throw new Error(`"${name}" is not a service name`)
    if (!isTexts(entry.audiences) || !isTexts(entry.scopes)) throw new Error(`${name} needs audiences[] and scopes[]`)
    if (!Array.isArray(entry.keys) || entry.keys.length > 2) throw new Error(`${name} needs at most 2 keys`)
    for (const jwk of entry.keys) {
      if (jwk.kty !== 'OKP' || jwk.crv !== 'Ed25519' || 'd' in jwk)
        throw new Error(`${name} has a key that is not a public Ed25519 key`)
      const kid = thumbprintOf(jwk)
      if (jwk.kid !== kid) throw new Error(`${name} has a key whose kid is not its thumbprint`)
      if (keys.has(kid)) throw new Error(`the key ${kid} is registered twice`)
      keys.set(kid, { key: publicKeyOf({ ...jwk }, `the key ${kid} of ${name}`), issuer: `svc:${name}` })
    }
    callers.set(`svc:${name}`, { name, audiences: new Set(entry.audiences), scopes: new Set(entry.scopes) })
  }
  return { keys, callers }
}

export type ServiceCaller = { name: string; scopes: ReadonlySet<string>; jti: string }

/**
 * Identifies the caller of an internal listener. Unknown caller or key, a bad token or an audience that is not
 * registered for the caller: 401. A scope in the token that is not registered for the caller: 403.
 */
export const verifyServiceToken = (
  registry: Registry,
  audience: string,
  token: string,
  { now = new Date() }: { now?: Date } = {},
): ServiceCaller => {
  let claims: ServiceClaims
  try {
    claims = registry.verify(token, { type: 'service', keys: registry.key, audience, now })
  } catch (error) {
    if (error instanceof TokenRejected) throw serviceTokenRefused(error)
    throw error
  }
  const caller = registry.caller(claims.iss)
  if (!caller?.audiences.has(audience)) throw serviceTokenRefused(new TokenRejected('audience'))
  const foreign = claims.scope.find((scope) => !caller.scopes.has(scope))
  if (foreign !== undefined) throw scopeMissing(caller.name, foreign, 'is not registered for')
  return { name: caller.name, scopes: new Set(claims.scope), jti: claims.jti }
}

export const checkScope = (caller: ServiceCaller, scope: string): void => {
  if (!caller.scopes.has(scope)) throw scopeMissing(caller.name, scope, 'is missing in the token of')
}

const scopeMissing = (name: string, scope: string, how: string) =>
  new AppError('policy_denied', 'permission_missing', `The scope ${scope} ${how} service ${name}.`, {
    extra: { scope },
    hint: 'Register the scope for this service in the registry of services.',
  })

export const serviceTokenRefused = (cause?: unknown): AppError =>
  new AppError(
    'invalid_token',
    cause === undefined ? 'token_missing' : 'invalid_token',
    'This listener accepts a valid service token only.',
    {
      headers: { 'www-authenticate': cause === undefined ? 'Bearer' : 'Bearer error="invalid_token"' },
      hint: 'Sign a service token for this audience with a key of the registry of services.',
      cause,
    },
  )
