import type { Origins } from '../../shared/web/origins.ts'
import type { HeaderList } from './headers.ts'

const METHODS = 'GET, POST, PUT, PATCH, DELETE'
const REQUEST_HEADERS =
  'Authorization, Content-Type, X-CSRF-Token, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID'
const EXPOSED = 'X-CSRF-Token, ETag, Location, Retry-After, X-Request-Id, Idempotency-Replayed'
const MAX_AGE_S = '600'

/** Paths for which browsers may send a preflight request. */
const PREFLIGHT = /^\/(auth\/|v1\/token$|v1\/token\/reauth$|v1\/(?!token)|api\/)/
export const isPreflightPath = (path: string): boolean => PREFLIGHT.test(path)

/**
 * CORS headers (auth.md 3.3). An origin that is not allowed gets none at all, so a browser shows the page no answer.
 * The Origin rule, not this file, decides what the origin may do.
 */
export const createCors = (origins: Origins, { enabled, credentials }: { enabled: boolean; credentials: boolean }) => {
  const common = (origin: string): HeaderList => [
    'access-control-allow-origin',
    origin,
    ...(credentials ? ['access-control-allow-credentials', 'true'] : []),
    'access-control-expose-headers',
    EXPOSED,
  ]
  const preflight = (origin: string): HeaderList => [
    ...common(origin),
    'access-control-allow-methods',
    METHODS,
    'access-control-allow-headers',
    REQUEST_HEADERS,
    'access-control-max-age',
    MAX_AGE_S,
  ]
  /** Every answer varies by origin, even one without these headers, and caches must know. */
  const withVary = (origin: string | undefined, allowed: (origin: string) => HeaderList): HeaderList =>
    enabled && origin !== undefined && origins.isAllowed(origin) ? ['vary', 'Origin', ...allowed(origin)] : VARY
  return {
    answer: (origin: string | undefined): HeaderList => withVary(origin, common),
    preflight: (origin: string | undefined): HeaderList => withVary(origin, preflight),
  }
}
export type Cors = ReturnType<typeof createCors>

const VARY: HeaderList = ['vary', 'Origin']
