import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { newJti } from '../../../apps/shared/jwt/sign.ts'

export const NOW = new Date('2026-03-01T12:00:00.250Z')
export const SECONDS = Math.floor(NOW.getTime() / 1000)
export const ISSUER = 'http://localhost:8080'
export const USER = '0195f0aa-0000-7000-8000-000000000001'
export const SESSION = '0195f0aa-0000-7000-8000-000000000002'

export const rsaKey = (modulusLength = 2048) => {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength })
  return { publicKey, privateKey, jwk: publicKey.export({ format: 'jwk' }) }
}

export const accessClaims = (changes: Record<string, unknown> = {}) => ({
  iss: ISSUER,
  sub: USER,
  aud: 'signalbox-api',
  type: 'access',
  iat: SECONDS,
  exp: SECONDS + 900,
  jti: newJti(),
  username: 'eva',
  session_id: SESSION,
  auth_time: SECONDS,
  amr: ['pwd'],
  cm: 'json',
  ...changes,
})

export const b64 = (value: unknown): string =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')

/** Signs anything, as a forger with a real key would. A text is used as it is, an object as its JSON. */
export const forge = (key: KeyObject, header: unknown, payload: unknown, digest: string | null = 'sha256'): string => {
  const input = `${b64(header)}.${b64(payload)}`
  return `${input}.${sign(digest, Buffer.from(input), key).toString('base64url')}`
}
