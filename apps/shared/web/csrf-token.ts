import { randomBytes, timingSafeEqual } from 'node:crypto'
import { deriveKeys, hmacSha256 } from '../data/digest.ts'

const TOKEN = /^v1\.([A-Za-z0-9_-]{22})\.([A-Za-z0-9_-]{43})$/

/**
 * CSRF tokens `v1.<nonce>.<HMAC-SHA-256>`, bound to the session, not to the refresh token: they survive rotation and
 * are invalid for another session (auth.md 3.3). The first secret signs, all verify.
 */
export const createCsrf = (secrets: readonly [Buffer, ...Buffer[]]) => {
  const keys = deriveKeys(secrets, 'csrf')
  const macOf = (key: Buffer, session_id: string, nonce: string) =>
    hmacSha256(key, `${session_id.length}:${session_id}${nonce.length}:${nonce}`).toString('base64url')
  return {
    make: (session_id: string): string => {
      const nonce = randomBytes(16).toString('base64url')
      return `v1.${nonce}.${macOf(keys[0], session_id, nonce)}`
    },
    /** Takes constant time per key, whatever is wrong with a well-formed token. */
    verify: (session_id: string, token: string | undefined): boolean => {
      const [, nonce, mac] = TOKEN.exec(token ?? '') ?? []
      if (nonce === undefined || mac === undefined) return false
      // Compares text, because the bytes have several spellings in base64url.
      const given = Buffer.from(mac)
      return keys.map((key) => timingSafeEqual(Buffer.from(macOf(key, session_id, nonce)), given)).includes(true)
    },
  }
}
export type Csrf = ReturnType<typeof createCsrf>
