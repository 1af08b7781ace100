import { createHmac, createSecretKey, hash, hkdfSync, type KeyObject } from 'node:crypto'
import { canonicalJson } from '../contracts/client/canonical.ts'

export { canonicalJson }

export const sha256Hex = (bytes: string | Uint8Array): string => hash('sha256', bytes, 'hex')

/** `sha256:<64 hex>` over the canonical JSON of a value: the form of every digest on the wire. */
export const digest = (value: unknown): string => `sha256:${sha256Hex(canonicalJson(value))}`

export const hmacSha256 = (key: Uint8Array, text: string | Uint8Array): Buffer =>
  createHmac('sha256', keyOf(key)).update(text).digest()

/** Returns bytes as a key of the library, created once: creating one costs more than hashing most texts. */
const keyOf = (bytes: Uint8Array): KeyObject => {
  const known = keys.get(bytes)
  if (known) return known
  const key = createSecretKey(bytes)
  keys.set(bytes, key)
  return key
}
const keys = new WeakMap<Uint8Array, KeyObject>()

/** Derives one key per purpose: HKDF-SHA-256 of a configured secret under a label such as `page` or `fingerprint`. */
export const deriveKey = (secret: Uint8Array, label: string): Buffer =>
  Buffer.from(hkdfSync('sha256', secret, new Uint8Array(0), `signalbox:${label}`, 32))

/** The keys of one purpose, one from each secret: the first signs, all verify. */
export const deriveKeys = (
  [first, ...others]: readonly [Uint8Array, ...Uint8Array[]],
  label: string,
): [Buffer, ...Buffer[]] => [deriveKey(first, label), ...others.map((secret) => deriveKey(secret, label))]
