import { createCipheriv, createECDH, hkdfSync, randomBytes } from 'node:crypto'

/** The keys of a subscription (RFC 8291), base64url: a point on P-256, and 16 bytes. */
export type PushKeys = { p256dh: string; auth: string }

/** The browser accepts one record of at most this size. */
const RECORD = 4096

/**
 * Returns the body of a push: the payload in one record of aes128gcm (RFC 8188) that only the subscribed browser can
 * read (RFC 8291). The key pair and the salt are new for each push; only a test with known answers passes its own.
 * Throws if `p256dh` is not a point on the curve.
 */
export const encryptPush = (
  payload: string,
  { p256dh, auth }: PushKeys,
  { salt = randomBytes(16), private_key }: { salt?: Buffer; private_key?: Buffer } = {},
): Buffer => {
  const receiver = Buffer.from(p256dh, 'base64url')
  const ecdh = createECDH('prime256v1')
  if (private_key) ecdh.setPrivateKey(private_key)
  else ecdh.generateKeys()
  const sender = ecdh.getPublicKey()
  const info = Buffer.concat([Buffer.from('WebPush: info\0'), receiver, sender])
  const secret = hkdf(ecdh.computeSecret(receiver), Buffer.from(auth, 'base64url'), info, 32)
  const key = hkdf(secret, salt, 'Content-Encoding: aes128gcm\0', 16)
  const nonce = hkdf(secret, salt, 'Content-Encoding: nonce\0', 12)
  const cipher = createCipheriv('aes-128-gcm', key, nonce)
  const head = Buffer.alloc(21)
  salt.copy(head)
  head.writeUInt32BE(RECORD, 16)
  head.writeUInt8(sender.length, 20)
  // 2: this record is the last one.
  return Buffer.concat([head, sender, cipher.update(`${payload}\u0002`), cipher.final(), cipher.getAuthTag()])
}

/** Whether a push can be encrypted with these keys. */
export const areKeys = ({ p256dh, auth }: PushKeys): boolean => {
  if (Buffer.from(auth, 'base64url').length !== 16) return false
  try {
    const ecdh = createECDH('prime256v1')
    ecdh.generateKeys()
    ecdh.computeSecret(Buffer.from(p256dh, 'base64url'))
    return true
  } catch {
    return false
  }
}

const hkdf = (key: Buffer, salt: Buffer, info: string | Buffer, bytes: number): Buffer =>
  Buffer.from(hkdfSync('sha256', key, salt, info, bytes))
