import { createHash, createHmac, hkdfSync } from 'node:crypto'
import { canonicalJson } from './contracts/client/canonical.ts'

export { canonicalJson }

export const sha256Hex = (bytes: string | Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

/** `sha256:<64 hex>` over the canonical JSON of a value: the form of every digest on the wire. */
export const digest = (value: unknown): string => `sha256:${sha256Hex(canonicalJson(value))}`

export const hmacSha256 = (key: Uint8Array, text: string | Uint8Array): Buffer =>
  createHmac('sha256', key).update(text).digest()

/** One key per purpose: HKDF-SHA-256 of a configured secret under a label such as `page` or `fingerprint`. */
export const deriveKey = (secret: Uint8Array, label: string): Buffer =>
  Buffer.from(hkdfSync('sha256', secret, new Uint8Array(0), `signalbox:${label}`, 32))
