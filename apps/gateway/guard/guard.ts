import type { IncomingMessage } from 'node:http'
import { factorRequired, isEnrolling } from '../../shared/auth/caller.ts'
import type { RememberingVerifier } from '../../shared/auth/user-tokens.ts'
import { AppError } from '../../shared/errors.ts'
import type { AccessClaims } from '../../shared/jwt/claims.ts'
import { TokenRejected } from '../../shared/jwt/verifier.ts'
import type { Csrf } from '../../shared/web/csrf-token.ts'
import { csrfFailed, type Origins } from '../../shared/web/origins.ts'
import { type KeyNames, rateLimited } from '../../shared/web/rates.ts'
import type { GatewayConfig } from '../config.ts'
import type { ClientAddress } from '../edge/headers.ts'
import type { Route } from '../routes/table.ts'
import type { Bucket, Denylist, LocalLimits, RedisGate } from './limits.ts'

export type GuardDeps = {
  limits: GatewayConfig['limits']
  verify: RememberingVerifier
  redisGate: RedisGate
  localLimits: LocalLimits
  denylist: Denylist
  isFeedLive: () => boolean
  csrf: Csrf
  origins: Origins
  nameOf: KeyNames
  onRejected: (cause: string) => void
  onLimited: (limit: string) => void
  onCsrf: () => void
  onFallback: (active: boolean) => void
}

const MAX_BLOCKED = 10_000
/** How many unseen tokens of one blocked address are verified per second. */
const MAX_LOOKS = 200

/** An address with too many refused tokens, and how many of its tokens were still verified in this second. */
type Block = { until: number; second: number; looked: number }

const mayLook = (block: Block): boolean => {
  const second = Math.floor(performance.now() / 1000)
  if (block.second !== second) Object.assign(block, { second, looked: 0 })
  block.looked += 1
  return block.looked <= MAX_LOOKS
}

/** Addresses with too many refused tokens; above the cap the oldest block is dropped. */
const createBlocks = () => {
  const blocked = new Map<string, Block>()
  return {
    of: ({ key }: ClientAddress): Block | undefined => {
      const block = blocked.get(key)
      if (block === undefined || block.until > performance.now()) return block
      blocked.delete(key)
      return undefined
    },
    add: (key: string, wait_ms: number): void => {
      if (blocked.size >= MAX_BLOCKED) blocked.delete(blocked.keys().next().value as string)
      blocked.set(key, { until: performance.now() + wait_ms, second: 0, looked: 0 })
    },
  }
}

/** Rules for requests that the page of a browser sends. */
const pageRules = ({ csrf, origins, onCsrf }: Pick<GuardDeps, 'csrf' | 'origins' | 'onCsrf'>) => {
  /** Applies the Origin rule and checks the CSRF token on unsafe requests of cookie sessions. */
  const refuseForgery = (req: IncomingMessage, claims: AccessClaims): void => {
    if (claims.cm !== 'cookie' || req.method === 'GET' || req.method === 'HEAD') return
    refuseOrigin(req)
    const token = req.headers['x-csrf-token']
    if (csrf.verify(claims.session_id, typeof token === 'string' ? token : undefined)) return
    onCsrf()
    throw csrfFailed()
  }

  const refuseOrigin = ({ headers: { origin, 'sec-fetch-site': site } }: IncomingMessage) => {
    const foreign = origins.refuse({ origin, 'sec-fetch-site': [site].flat()[0] })
    if (foreign) throw foreign
  }

  /**
   * The images and scripts of another site's page must not use up the limits of its visitor: a whole office may share
   * the address. A link that a person follows asks for a document.
   */
  const refuseForeign = (req: IncomingMessage): void => {
    const { 'sec-fetch-site': site, 'sec-fetch-dest': dest } = req.headers
    if (site === 'cross-site' && dest !== 'document') refuseOrigin(req)
  }

  return { refuseForgery, refuseForeign }
}

/** The checks between the route and the upstream, in the order of auth.md 6. Each throws its refusal. */
export const createGuard = (deps: GuardDeps) => {
  const { limits, nameOf, redisGate, localLimits, denylist } = deps
  const blocks = createBlocks()

  const limited = (limit: string, wait_ms: number) => {
    deps.onLimited(limit)
    return rateLimited(wait_ms)
  }

  /** Charges limits by address or name. While Redis is away it charges half of them, in this process alone. */
  const charge = async (limit: string, buckets: Bucket[], block?: string): Promise<void> => {
    const verdict = await redisGate.limit(buckets, block)
    deps.onFallback(verdict === undefined)
    const wait = verdict ? (verdict.outcome === 'limited' ? verdict.wait_ms : undefined) : localLimits(buckets)
    if (wait !== undefined) throw limited(limit, wait)
  }

  /** Counts a refused token. An address with too many is blocked: its next refused tokens are rate limited. */
  const noteFailure = async ({ key }: ClientAddress) => {
    const buckets = [{ key: `failed:${nameOf(`address:${key}`)}`, rate: limits.failed_tokens }]
    const verdict = await redisGate.limit(buckets)
    const wait = verdict ? (verdict.outcome === 'limited' ? verdict.wait_ms : undefined) : localLimits(buckets)
    if (wait !== undefined) blocks.add(key, wait)
  }

  /**
   * Verifies the bearer. The block of an address applies only to refused tokens, because its other tokens are its
   * neighbors'. A blocked address gets at most MAX_LOOKS unseen tokens verified per second, except on routes that stop
   * something. A missing bearer is no guess, so it does not count as a failure.
   */
  const authenticate = async (req: IncomingMessage, address: ClientAddress, { kind }: Route): Promise<AccessClaims> => {
    const token = bearerOf(req)
    const block = blocks.of(address)
    const looks = !block || kind === 'S' || token === undefined || deps.verify.remembers(token) || mayLook(block)
    try {
      if (token === undefined) throw new TokenRejected('malformed')
      if (looks) return await deps.verify(token)
    } catch (error) {
      if (!(error instanceof TokenRejected)) throw error
      deps.onRejected(error.reason)
      // One of our own, not a guess: its client must learn that it is time to refresh.
      if (error.reason === 'expired') throw tokenRefused(error)
      if (!block) {
        await noteFailure(address)
        throw tokenRefused(error, token)
      }
    }
    throw limited('failed_tokens', (block?.until ?? 0) - performance.now())
  }

  /** Checks limits and revocation in one round trip to Redis. Without it, local knowledge decides by kind of action. */
  const pass = async (route: Route, claims: AccessClaims): Promise<void> => {
    const { sub: user_id } = claims
    // Stopping has a separate bucket: a user who used up the other one may still stop things.
    const own = claims.cm === 'machine' ? limits.machine : limits.api
    const bucket =
      route.class === 'work'
        ? { key: `work:${user_id}`, rate: limits.work }
        : { key: `${route.kind === 'S' ? 'stop' : 'api'}:${user_id}`, rate: own }
    if (route.path === '/auth/logout') return charge('api', [bucket])
    if (denylist.has(claims)) throw revoked(deps)
    const verdict = await redisGate.gate({ bucket, claims })
    deps.onFallback(verdict === undefined)
    if (verdict?.outcome === 'denied') throw revoked(deps)
    if (verdict?.outcome === 'limited') throw limited('api', verdict.wait_ms)
    if (isEnrolling(claims) && !route.enrols) throw factorRequired()
    if (verdict) return
    if (route.kind === 'A' || (route.kind === 'W' && !deps.isFeedLive())) throw revocationUnknown()
    const wait = localLimits([bucket])
    if (wait !== undefined) throw limited('api', wait)
  }

  return { charge, authenticate, pass, ...pageRules(deps) }
}
export type Guard = ReturnType<typeof createGuard>

/** Returns the token of the one Authorization header; its scheme's case does not matter. */
const bearerOf = (req: IncomingMessage): string | undefined => {
  const value = req.headers.authorization
  if (value === undefined) {
    throw new AppError('invalid_token', 'token_missing', 'This needs an access token.', {
      headers: { 'www-authenticate': 'Bearer' },
      hint: 'Sign in and send the header Authorization: Bearer <access token>.',
    })
  }
  return /^bearer ([^ ]+)$/i.exec(value)?.[1]
}

const tokenRefused = (cause: unknown, token?: string) =>
  new AppError('invalid_token', 'invalid_token', 'The access token is not valid.', {
    headers: { 'www-authenticate': 'Bearer error="invalid_token"' },
    ...(token?.startsWith('sbk_') && { hint: 'This is an API key: exchange it for a token at POST /oauth/token.' }),
    cause,
  })

const revoked = (deps: GuardDeps) => {
  deps.onRejected('revoked')
  return tokenRefused(undefined)
}

const revocationUnknown = () =>
  new AppError('unavailable', 'revocation_unknown', 'Revocation status is unknown.', {
    retryable: true,
    retry_after_ms: 2000 + Math.floor(Math.random() * 3000),
  })
