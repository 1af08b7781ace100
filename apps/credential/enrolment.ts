import { timingSafeEqual } from 'node:crypto'
import { hmacSha256 } from '../shared/data/digest.ts'
import { isUuid } from '../shared/ids.ts'

/** The text of an enrolment token: `e1.<user_id>.<token_id>.<HMAC>`. It is derived, never stored. */
export const enrolmentTokenOf = (key: Buffer, user_id: string, token_id: string): string =>
  `e1.${user_id}.${token_id}.${macOf(key, user_id, token_id).toString('base64url')}`

const macOf = (key: Buffer, user_id: string, token_id: string) => hmacSha256(key, `e1.${user_id}.${token_id}`)

/** The two halves of a token: the first is random to anyone without the key, and both together form the signature. */
export const enrolmentHalfOf = (key: Buffer, user_id: string, token_id: string, half: 1 | 2): string => {
  const pad = hmacSha256(key, `h1.${user_id}.${token_id}`)
  const mac = macOf(key, user_id, token_id)
  const bytes = half === 1 ? pad : mac.map((byte, at) => byte ^ (pad[at] ?? 0))
  return `h${half}.${user_id}.${token_id}.${Buffer.from(bytes).toString('base64url')}`
}

/** The ids of a token that we issued; `undefined` for any other text. */
export const parseEnrolmentToken = (key: Buffer, text: string): { user_id: string; token_id: string } | undefined => {
  const [version, user_id = '', token_id = '', mac = '', more] = text.split('.')
  if (version !== 'e1' || more !== undefined || !isUuid(user_id) || !isUuid(token_id)) return undefined
  const given = Buffer.from(mac, 'base64url')
  const expected = macOf(key, user_id, token_id)
  if (given.length !== expected.length || !timingSafeEqual(given, expected) || given.toString('base64url') !== mac)
    return undefined
  return { user_id, token_id }
}
