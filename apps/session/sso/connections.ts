import { readFileSync } from 'node:fs'
import { createRemoteJWKSet, customFetch as jwksFetch } from 'jose'
import * as client from 'openid-client'
import type { Logger } from 'pino'
import type { Provider } from '../../shared/auth/providers.ts'
import { AppError } from '../../shared/errors.ts'

const TIMEOUT_S = 3
const MAX_BYTES = 65_536
/** Discovery is read again after an hour; while the provider is unavailable, the old one is valid for a day. */
const FRESH_MS = 3_600_000
const STALE_MS = 86_400_000
/** After a failure, no one waits for the provider for this long. */
const PAUSE_MS = 5000
const KEYS = { cooldownDuration: 30_000, cacheMaxAge: 600_000, timeoutDuration: TIMEOUT_S * 1000 }
export const SKEW_S = 5

/** A provider that answered, with its endpoints and keys. */
export type Connection = { client: client.Configuration; keys: ReturnType<typeof createRemoteJWKSet> }
type Entry = { made_of: string; at: number; failed_at: number; connection?: Connection; reading?: Promise<Connection> }

/** The connections to providers: discovery is cached and refreshed, one read at a time per provider. */
export const createConnections = (log: Logger) => {
  const entries = new Map<string, Entry>()
  const entryOf = (provider: Provider): Entry => {
    const made_of = JSON.stringify(provider)
    const known = entries.get(provider.id)
    if (known?.made_of === made_of) return known
    const entry = { made_of, at: 0, failed_at: Number.NEGATIVE_INFINITY }
    entries.set(provider.id, entry)
    return entry
  }
  return {
    /** Throws 503 `provider_unavailable` while the provider is unavailable. */
    get: async (provider: Provider): Promise<Connection> => {
      const entry = entryOf(provider)
      const now = performance.now()
      const age = entry.connection ? now - entry.at : Number.POSITIVE_INFINITY
      if (entry.connection && age < FRESH_MS) return entry.connection
      if (now - entry.failed_at >= PAUSE_MS) {
        try {
          entry.reading ??= discover(provider)
          entry.connection = await entry.reading
          entry.at = performance.now()
          return entry.connection
        } catch (err) {
          entry.failed_at = performance.now()
          log.warn({ err, provider: provider.id }, 'a provider cannot be reached')
        } finally {
          delete entry.reading
        }
      }
      if (entry.connection && age < STALE_MS) return entry.connection
      throw providerAway(provider)
    },
  }
}
export type Connections = ReturnType<typeof createConnections>

export const providerAway = (provider: Provider, cause?: unknown) =>
  new AppError('unavailable', 'provider_unavailable', `${provider.title} cannot be reached.`, {
    retryable: true,
    retry_after_ms: PAUSE_MS,
    cause,
  })

const discover = async (provider: Provider): Promise<Connection> => {
  const secret = readFileSync(provider.secret_file, 'utf8').trim()
  const insecure = provider.issuer.startsWith('http:')
  const found = await client.discovery(
    new URL(provider.issuer),
    provider.client_id,
    { [client.clockTolerance]: SKEW_S },
    authOf(secret),
    {
      timeout: TIMEOUT_S,
      [client.customFetch]: boundedFetch,
      ...(insecure && { execute: [client.allowInsecureRequests] }),
    },
  )
  const { jwks_uri, issuer, authorization_endpoint } = found.serverMetadata()
  if (issuer !== provider.issuer) throw new Error(`the provider gives its issuer as ${issuer}`)
  if (!jwks_uri) throw new Error('the provider names no keys')
  if (!/^https?:$/.test(URL.parse(String(authorization_endpoint))?.protocol ?? ''))
    throw new Error('the provider names no page to sign in')
  if (!insecure && !jwks_uri.startsWith('https:')) throw new Error('the keys are not served over TLS')
  const keys = createRemoteJWKSet(new URL(jwks_uri), { ...KEYS, [jwksFetch]: boundedFetch })
  return { client: found, keys }
}

/** In the body if the provider accepts it there: some do not undo the escapes that RFC 6749 requires in the header. */
const authOf = (secret: string): client.ClientAuth => {
  const [post, basic] = [client.ClientSecretPost(secret), client.ClientSecretBasic(secret)]
  return (server, ...more) =>
    (server.token_endpoint_auth_methods_supported?.includes('client_secret_post') ? post : basic)(server, ...more)
}

/** One request of at most 3 s and 64 KiB, without redirects. */
const boundedFetch = async (url: string, options: object): Promise<Response> => {
  const signal = AbortSignal.timeout(TIMEOUT_S * 1000)
  const reply = await fetch(url, { ...options, redirect: 'manual', signal })
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of reply.body ?? []) {
    size += chunk.length
    if (size > MAX_BYTES) throw new Error(`${new URL(url).host} sent more than ${MAX_BYTES} bytes`)
    chunks.push(chunk)
  }
  const { status, headers } = reply
  return new Response(size === 0 ? null : Buffer.concat(chunks), { status, headers })
}
