import type { JsonWebKey } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose'
import { publicKeyOf } from './sound.ts'

const FETCH_MS = 3000
const MAX_BYTES = 65_536
/** What an issuer publishes is read again after this time. */
const FRESH_MS = 600_000
/** How long those whom the last answer serves wait for a newer one: a silent issuer must not hold them up. */
const PATIENCE_MS = 1000
/** How often tokens of unknown keys, which anyone can send, may cause another read. */
const COOLDOWN_MS = 30_000
/** How long a failed read is not repeated; doubles with each failure. */
const PAUSE_MS = 5000
const MAX_PAUSE_MS = 30_000

export type PublishedOptions = {
  /** How long the last answer is valid while the issuer cannot be read. */
  stale_ms: number
  /** The error for callers while there is no valid answer. */
  away: (cause: unknown) => Error
  onError?: (error: unknown) => void
  /** Milliseconds of a monotonic clock. */
  monotonic?: () => number
}
export type Published<T> = {
  /** The issuer's document; throws `away`. */
  get: () => Promise<T>
  /** The key of a token, for `jose`. Reads document and keys again if there is none: both may have moved. */
  key: JWTVerifyGetKey
}

/** An issuer's discovery document and keys, cached as one. One read at a time; a bad answer replaces no good one. */
export const createPublished = <T extends { jwks_uri: string }>(
  discover: () => Promise<T>,
  { stale_ms, away, onError, monotonic = () => performance.now() }: PublishedOptions,
): Published<T> => {
  type Kept = { document: T; keys: ReturnType<typeof createLocalJWKSet>; at: number }
  let kept: Kept | undefined
  let failures = 0
  let retry_at = Number.NEGATIVE_INFINITY
  let cause: unknown
  let reading: Promise<void> | undefined

  const read = async () => {
    try {
      const document = await discover()
      const keys = createLocalJWKSet(soundIn((await readSmall(document.jwks_uri)) as JSONWebKeySet))
      kept = { document, keys, at: monotonic() }
      failures = 0
    } catch (error) {
      cause = error
      retry_at = monotonic() + Math.min(PAUSE_MS * 2 ** failures, MAX_PAUSE_MS)
      failures += 1
      onError?.(error)
    } finally {
      reading = undefined
    }
  }
  const age_ms = () => monotonic() - (kept?.at ?? Number.NEGATIVE_INFINITY)
  /** The last answer, read again if it is at least this old; if valid, it waits for the new one no longer than this. */
  const atMost = async (fresh_ms: number, patience_ms?: number): Promise<Kept> => {
    if (age_ms() >= fresh_ms && (failures === 0 || monotonic() >= retry_at)) {
      reading ??= read()
      const serves = patience_ms !== undefined && age_ms() < stale_ms
      await (serves ? Promise.race([reading, delay(patience_ms, undefined, { ref: false })]) : reading)
    }
    if (kept && age_ms() < stale_ms) return kept
    throw away(cause)
  }
  return {
    get: async () => (await atMost(FRESH_MS, PATIENCE_MS)).document,
    key: async (header, token) => {
      const first = await atMost(FRESH_MS, PATIENCE_MS)
      try {
        return await first.keys(header, token)
      } catch (error) {
        if (!(error instanceof errors.JWKSNoMatchingKey)) throw error
        const second = await atMost(COOLDOWN_MS)
        if (second === first) throw error
        return second.keys(header, token)
      }
    },
  }
}

/** The JSON document at this URL, within the bounds of `fetchSmall`. */
export const readSmall = async (url: string): Promise<unknown> => {
  const reply = await fetchSmall(url)
  if (reply.status !== 200) throw new Error(`${url} answered ${reply.status}`)
  return reply.json()
}

/** One request of at most 3 s and 64 KiB, without redirects. */
export const fetchSmall = async (url: string, options: object = {}): Promise<Response> => {
  const reply = await fetch(url, { ...options, redirect: 'manual', signal: AbortSignal.timeout(FETCH_MS) })
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

/** A key that proves no owner counts as none. */
const soundIn = (set: JSONWebKeySet): JSONWebKeySet =>
  Array.isArray(set.keys) ? { keys: set.keys.filter(isSound) } : set

const isSound = (jwk: JsonWebKey): boolean => {
  try {
    return publicKeyOf(jwk).type === 'public'
  } catch {
    return false
  }
}
