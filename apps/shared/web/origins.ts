import { ConfigError } from '../config.ts'
import { AppError } from '../errors.ts'

export type FetchHeaders = { origin?: string | undefined; 'sec-fetch-site'?: string | undefined }

/**
 * The web origins that may use cookies: the public one and those of TOKEN__CORS__ALLOW_ORIGINS, compared as exact
 * strings. Patterns, `*` and `null` stop the start, because they would let foreign pages act for a signed-in user.
 */
export const createOrigins = (public_origin: string, allow_origins: readonly string[]) => {
  const allowed = new Set([exact('GATEWAY__HTTP__PUBLIC_ORIGIN', public_origin)])
  for (const origin of allow_origins) allowed.add(exact('TOKEN__CORS__ALLOW_ORIGINS', origin))
  return {
    isAllowed: (origin: string): boolean => allowed.has(origin),
    /**
     * The Origin rule (auth.md 3.3): a present Origin must be allowed, a cross-site fetch without one is refused, and
     * if both headers are missing, no browser sent the request.
     */
    refuse: (headers: FetchHeaders): AppError | undefined => {
      const { origin, 'sec-fetch-site': site } = headers
      const foreign = origin === undefined ? site === 'cross-site' : !allowed.has(origin)
      return foreign ? originNotAllowed() : undefined
    },
  }
}
export type Origins = ReturnType<typeof createOrigins>

const exact = (variable: string, origin: string): string => {
  const { protocol, origin: parsed } = URL.parse(origin) ?? {}
  if (parsed === origin && /^https?:$/.test(protocol ?? '') && !origin.includes('*')) return origin
  throw new ConfigError(
    `${variable} holds ${JSON.stringify(origin)}: it must be an exact origin such as https://console.example.org.`,
  )
}

const originNotAllowed = () =>
  new AppError('policy_denied', 'origin_not_allowed', 'Requests from this web origin are not accepted.', {
    hint: 'An operator can allow the origin by TOKEN__CORS__ALLOW_ORIGINS.',
  })

export const csrfFailed = () =>
  new AppError('policy_denied', 'csrf_failed', 'The header X-CSRF-Token is missing or belongs to another session.')
