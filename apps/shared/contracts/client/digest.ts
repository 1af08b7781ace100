import { canonicalJson } from './canonical.ts'

/**
 * Returns `sha256:<64 hex>` over the canonical JSON of a value, by WebCrypto, which browsers and Node share. Gives the
 * same text as the servers' `digest`. In a browser it needs a secure context (https or localhost).
 */
export const digestOf = async (value: unknown): Promise<string> => {
  const bytes = new TextEncoder().encode(canonicalJson(value))
  const hash = new Uint8Array(await globalThis.crypto.subtle.digest('SHA-256', bytes))
  return `sha256:${Array.from(hash, (byte) => byte.toString(16).padStart(2, '0')).join('')}`
}

/** Returns a digest for human eyes: the first eight digits in two groups, as people compare them. */
export const shortDigest = (digest: string): string => {
  const hex = digest.replace(/^sha256:/, '')
  return `${hex.slice(0, 4)} ${hex.slice(4, 8)}`
}
