import { AppError } from '../../shared/errors.ts'
import { onlyCookie, parseCookies } from '../../shared/web/cookies.ts'
import { DEVICE_DAYS, deviceCookie } from '../../shared/web/devices.ts'
import type { SessionConfig } from '../config.ts'

const MAX_AGE_S = 2_592_000

type Cookie = {
  name: string
  value: string
  max_age_s: number
  path: string
  domain?: string
  same_site: string
  secure: boolean
  http_only: boolean
}

const serialize = ({ name, value, max_age_s, path, domain, same_site, secure, http_only }: Cookie): string =>
  [
    `${name}=${value}`,
    `Max-Age=${max_age_s}`,
    ...(domain ? [`Domain=${domain}`] : []),
    `Path=${path}`,
    ...(http_only ? ['HttpOnly'] : []),
    ...(secure ? ['Secure'] : []),
    `SameSite=${same_site}`,
  ].join('; ')

const capital = (text: string) => text.charAt(0).toUpperCase() + text.slice(1)

/** Reads and writes the refresh cookie and the device cookie with exactly the configured attributes. */
export const createCookies = (config: SessionConfig) => {
  const secure = config.TOKEN__TOKENS__COOKIE_SECURE
  const deviceName = deviceCookie(secure)
  const flowName = secure ? '__Host-oidc' : 'oidc'
  const refresh = (value: string, max_age_s: number) =>
    serialize({
      name: config.TOKEN__TOKENS__COOKIE_NAME,
      value,
      max_age_s,
      path: config.TOKEN__TOKENS__COOKIE_PATH,
      domain: config.TOKEN__TOKENS__COOKIE_DOMAIN,
      same_site: capital(config.TOKEN__TOKENS__COOKIE_SAMESITE),
      secure,
      http_only: config.TOKEN__TOKENS__COOKIE_HTTPONLY,
    })
  return {
    refresh: (token: string) => refresh(token, MAX_AGE_S),
    expired: () => refresh('', 0),
    /** Lax, because a provider's page leads back to us. It proves no one, and no other GET reads it. */
    device: (token: string) =>
      serialize({
        name: deviceName,
        value: token,
        max_age_s: DEVICE_DAYS * 86_400,
        path: '/',
        same_site: 'Lax',
        secure,
        http_only: true,
      }),
    /** Binds a sign-in through a provider to this browser. Lax, because the provider's page leads back here. */
    flow: (value: string, max_age_s: number) =>
      serialize({ name: flowName, value, max_age_s, path: '/', same_site: 'Lax', secure, http_only: true }),
    readFlow: (header: string | undefined): string | undefined => onlyCookie(header, flowName),
    /** The refresh token of a request, if any. More than one is 400, because parsers disagree on which one counts. */
    readRefresh: (header: string | undefined): string | undefined => {
      const values = parseCookies(header).get(config.TOKEN__TOKENS__COOKIE_NAME) ?? []
      if (values.length > 1) {
        throw new AppError('validation_error', 'duplicate_cookie', 'The refresh cookie was sent more than once.')
      }
      return values[0] || undefined
    },
    readDevice: (header: string | undefined): string | undefined => onlyCookie(header, deviceName),
  }
}
export type Cookies = ReturnType<typeof createCookies>
