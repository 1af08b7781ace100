import { type KeyObject, sign } from 'node:crypto'
import { random128 } from '../ids.ts'
import { type ClaimsOf, TOKEN_KINDS, type TokenType } from './claims.ts'

/** Returns a new token id: 128 random bits, 22 characters. Without it, two tokens of one second would be identical. */
export const newJti = (): string => Buffer.from(random128()).toString('base64url')

/** Signs claims as a compact JWT. Same claims and key, same bytes: member order stays, algorithms are deterministic. */
export const signToken = <T extends TokenType>(
  type: T,
  claims: ClaimsOf[T],
  key: { kid: string; private_key: KeyObject },
): string => {
  const { alg, typ } = TOKEN_KINDS[type]
  const input = `${encode({ alg, kid: key.kid, typ })}.${encode(claims)}`
  const signature = sign(alg === 'RS256' ? 'sha256' : null, Buffer.from(input), key.private_key)
  return `${input}.${signature.toString('base64url')}`
}

const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
