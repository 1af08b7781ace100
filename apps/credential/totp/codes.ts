import { Secret, TOTP } from 'otpauth'

const PERIOD_S = 30
/** SHA-1, 6 digits, 30 s (RFC 6238): the only parameters that every authenticator app supports. */
const SHAPE = { algorithm: 'SHA1', digits: 6, period: PERIOD_S }
/** How many steps a phone's clock may be off in either direction. */
const WINDOW = 1

const secretOf = (secret: Buffer) => Secret.fromHex(secret.toString('hex'))

/** The secret for typing, and the URI that an app reads from a QR code. */
export const shownForms = (secret: Buffer, issuer: string, label: string) => {
  const totp = new TOTP({ ...SHAPE, issuer, label, secret: secretOf(secret) })
  return { secret: totp.secret.base32, uri: totp.toString() }
}

/** The time step of this code, near the given moment; `undefined` for any other text. Compares in constant time. */
export const stepOf = (secret: Buffer, code: string, now: Date): number | undefined => {
  if (!/^[0-9]{6}$/.test(code)) return undefined
  const timestamp = now.getTime()
  const delta = new TOTP({ ...SHAPE, secret: secretOf(secret) }).validate({ token: code, timestamp, window: WINDOW })
  return delta === null ? undefined : Math.floor(timestamp / 1000 / PERIOD_S) + delta
}
