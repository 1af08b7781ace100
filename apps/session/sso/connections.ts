import { readFileSync } from 'node:fs'
import type { JWTVerifyGetKey } from 'jose'
import * as client from 'openid-client'
import type { Logger } from 'pino'
import type { Provider } from '../../shared/auth/providers.ts'
import { AppError } from '../../shared/errors.ts'
import { createPublished, fetchSmall, type Published } from '../../shared/jwt/published.ts'

const TIMEOUT_S = 3
/** While the provider cannot be read, its last answer is valid for a day. */
const STALE_MS = 86_400_000
const RETRY_MS = 5000
/** How far a provider's clock may differ from ours. */
export const SKEW_S = 60

/** A provider that answered, with its endpoints and keys. */
export type Connection = { client: client.Configuration; keys: JWTVerifyGetKey }

/** The connections to providers, renewed as they are used. */
export const createConnections = (log: Logger) => {
  const entries = new Map<string, { made_of: string; published: Published<Discovered> }>()
  const publishedBy = (provider: Provider) => {
    const made_of = JSON.stringify(provider)
    const known = entries.get(provider.id)
    if (known?.made_of === made_of) return known.published
    const published = createPublished(() => discover(provider), {
      stale_ms: STALE_MS,
      away: (cause) => providerAway(provider, cause),
      onError: (err) => log.warn({ err, provider: provider.id }, 'a provider cannot be reached'),
    })
    entries.set(provider.id, { made_of, published })
    return published
  }
  return {
    /** Throws 503 `provider_unavailable` while the provider is unavailable. */
    get: async (provider: Provider): Promise<Connection> => {
      const { get, key } = publishedBy(provider)
      return { client: (await get()).client, keys: key }
    },
  }
}
export type Connections = ReturnType<typeof createConnections>

export const providerAway = (provider: Provider, cause?: unknown) =>
  new AppError('unavailable', 'provider_unavailable', `${provider.title} cannot be reached.`, {
    retryable: true,
    retry_after_ms: RETRY_MS,
    cause,
  })

type Discovered = { client: client.Configuration; jwks_uri: string }

const discover = async (provider: Provider): Promise<Discovered> => {
  const insecure = provider.issuer.startsWith('http:')
  const found = await client.discovery(
    new URL(provider.issuer),
    provider.client_id,
    { [client.clockTolerance]: SKEW_S },
    authOf(provider.secret_file),
    {
      timeout: TIMEOUT_S,
      [client.customFetch]: fetchSmall,
      ...(insecure && { execute: [client.allowInsecureRequests] }),
    },
  )
  const { jwks_uri, issuer, authorization_endpoint } = found.serverMetadata()
  if (issuer !== provider.issuer) throw new Error(`the provider gives its issuer as ${issuer}`)
  if (!jwks_uri) throw new Error('the provider names no keys')
  if (!/^https?:$/.test(URL.parse(String(authorization_endpoint))?.protocol ?? ''))
    throw new Error('the provider names no page to sign in')
  if (!insecure && !jwks_uri.startsWith('https:')) throw new Error('the keys are not served over TLS')
  return { client: found, jwks_uri }
}

/**
 * In the body if the provider accepts it there: some do not undo the escapes that RFC 6749 requires in the header. The
 * file is read each time, so a renewed secret counts at once.
 */
const authOf = (file: string): client.ClientAuth => {
  const read = () => readFileSync(file, 'utf8').trim()
  read()
  return (server, ...more) => {
    const posts = server.token_endpoint_auth_methods_supported?.includes('client_secret_post')
    return (posts ? client.ClientSecretPost : client.ClientSecretBasic)(read())(server, ...more)
  }
}
