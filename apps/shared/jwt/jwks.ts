import type { JsonWebKey, KeyObject } from 'node:crypto'
import type { Telemetry } from '../telemetry.ts'
import { publicKeyOf } from './sound.ts'

export type JwksOptions = {
  url: string
  /** Seconds for which a set is fresh; from 80 % of that on it is fetched again in the background. */
  cache_s: number
  /** Seconds between two fetches that unknown key ids may cause. */
  cooldown_s: number
  /** Seconds after its last successful fetch until a set is no longer trusted. */
  max_stale_s: number
  fetch?: typeof fetch
  /** Milliseconds of a monotonic clock. */
  monotonic?: () => number
  /** Where the age of the set is reported. */
  telemetry?: Telemetry
  /** Called for each failed fetch. */
  onError?: (error: unknown) => void
}

/** The answer for a key id: the key; `unknown` after a successful look; `unavailable` if no look was possible. */
export type KeyAnswer = KeyObject | 'unknown' | 'unavailable'

type KeySet = { keys: ReadonlyMap<string, KeyObject>; etag: string | undefined }

const TIMEOUT_MS = 2000
const MAX_BYTES = 65_536
/** Of 3072 bits, this many fit into MAX_BYTES. */
export const MAX_KEYS = 100
const BACKOFF_MS = [1000, 2000, 4000, 8000, 16_000, 30_000] as const
const MAX_DROPPED = 100

/**
 * The public keys of token, cached. At most one fetch is in flight, redirects are refused, and a bad set never replaces
 * a good one. Unknown key ids cause at most one fetch per cooldown, however many arrive.
 */
export const createJwksClient = (options: JwksOptions) => {
  const { cache_s, cooldown_s, max_stale_s, monotonic = () => performance.now() } = options
  const dropped = new Set<string>()
  let set: KeySet = { keys: new Map(), etag: undefined }
  let fetched_at = Number.NEGATIVE_INFINITY
  let looked_at = Number.NEGATIVE_INFINITY
  let failures = 0
  let retry_at = Number.NEGATIVE_INFINITY
  let inFlight: Promise<void> | undefined
  let timer: NodeJS.Timeout | undefined
  let closed = false

  const load = (): Promise<void> => {
    inFlight ??= fetchSet(options, set.etag)
      .then((found) => {
        set = found ?? set
        fetched_at = monotonic()
        failures = 0
      })
      .catch((error: unknown) => {
        retry_at = monotonic() + (BACKOFF_MS[Math.min(failures, BACKOFF_MS.length - 1)] ?? 30_000)
        failures += 1
        options.onError?.(error)
      })
      .finally(() => {
        inFlight = undefined
        schedule()
      })
    return inFlight
  }

  const schedule = () => {
    if (closed) return
    clearTimeout(timer)
    const wait = failures > 0 ? retry_at - monotonic() : cache_s * 800
    timer = setTimeout(() => void load(), Math.max(wait, 10)).unref()
  }

  const age_s = () => (monotonic() - fetched_at) / 1000
  const help = 'Since the keys of token were read; 1e9: never.'
  options.telemetry?.reading('signalbox_jwks_age_seconds', help, () => Math.min(age_s(), 1e9))

  const reload = async (): Promise<void> => {
    // A fetch in flight may have read the set before the change that is the reason to look.
    await inFlight
    if (!closed && (failures === 0 || monotonic() >= retry_at)) await load()
  }

  const usable = () => monotonic() - fetched_at <= max_stale_s * 1000
  const known = (kid: string) => (usable() && !dropped.has(kid) ? set.keys.get(kid) : undefined)

  return {
    /** Fetches the first set; resolves even if that fails (the background keeps trying). */
    start: load,
    close: () => {
      closed = true
      clearTimeout(timer)
    },
    get: known,
    /** Looks again for a key id that the cache lacks, within the bounds above. */
    find: async (kid: string): Promise<KeyAnswer> => {
      const cached = known(kid)
      if (cached) return cached
      if (dropped.has(kid)) return 'unknown'
      if (inFlight) await inFlight
      else if (usable() ? monotonic() - looked_at >= cooldown_s * 1000 : monotonic() >= retry_at) {
        looked_at = monotonic()
        await load()
      }
      return known(kid) ?? (usable() && failures === 0 ? 'unknown' : 'unavailable')
    },
    /** Reads the set again now, unless recent attempts failed. */
    reload,
    /** Drops a killed key at once and permanently, and reads the set again for the key that takes its place. */
    drop: (kid: string) => {
      if (dropped.has(kid)) return
      if (dropped.size >= MAX_DROPPED) dropped.delete(dropped.values().next().value as string)
      dropped.add(kid)
      void reload()
    },
    /** Whether there is a trusted set. */
    isReady: usable,
    /** Seconds since the last successful fetch; infinite before the first. */
    age_s,
  }
}
export type JwksClient = ReturnType<typeof createJwksClient>

const fetchSet = async (options: JwksOptions, etag: string | undefined): Promise<KeySet | undefined> => {
  const { url, fetch: fetchFn = fetch } = options
  const response = await fetchFn(url, {
    redirect: 'error',
    signal: AbortSignal.timeout(TIMEOUT_MS),
    headers: { accept: 'application/json', ...(etag !== undefined && { 'if-none-match': etag }) },
  })
  if (response.status === 304 && etag !== undefined) {
    await response.body?.cancel()
    return undefined
  }
  if (response.status !== 200) {
    await response.body?.cancel()
    throw new Error(`${url} answered ${response.status}`)
  }
  return { keys: parseKeySet(JSON.parse(await readText(response))), etag: response.headers.get('etag') ?? undefined }
}

/** Reads the body as text; gives up as soon as it exceeds 64 KiB. */
const readText = async (response: Response): Promise<string> => {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body ?? []) {
    size += chunk.length
    if (size > MAX_BYTES) throw new Error(`the key set is longer than ${MAX_BYTES} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

const PRIVATE_MEMBERS = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k']
const KID = /^[A-Za-z0-9_-]{1,64}$/

/** Reads a JWKS of 1 to 100 sound public RSA keys; anything else in it refuses the whole set. */
export const parseKeySet = (value: unknown): ReadonlyMap<string, KeyObject> => {
  const list = (value as { keys?: unknown } | null)?.keys
  if (!Array.isArray(list) || list.length < 1 || list.length > MAX_KEYS)
    throw new Error(`not a key set of 1 to ${MAX_KEYS} keys`)
  const keys = new Map<string, KeyObject>()
  for (const jwk of list as (JsonWebKey & { kid?: unknown })[]) {
    const { kid } = jwk
    if (typeof kid !== 'string' || !KID.test(kid) || keys.has(kid)) throw new Error('a key without its own key id')
    if (jwk.kty !== 'RSA' || (jwk.alg ?? 'RS256') !== 'RS256' || (jwk.use ?? 'sig') !== 'sig')
      throw new Error(`${kid} is not an RS256 key`)
    if (PRIVATE_MEMBERS.some((member) => member in jwk)) throw new Error(`${kid} has private members`)
    keys.set(kid, publicKeyOf(jwk, `the key ${kid}`))
  }
  return keys
}
