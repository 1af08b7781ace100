import { createPublicKey, verify } from 'node:crypto'
import type { Fields } from '../contracts/client/votes.ts'
import type { Ballot, VoteSignature } from '../contracts/operations/gates.ts'
import { digest, sha256Hex } from '../data/digest.ts'
import { keyFault } from '../jwt/sound.ts'

/** Returns what a passkey signs for a ballot: its SHA-256, base64url. */
export const challengeOf = (ballot: Ballot): string => base64url(Buffer.from(digest(ballot).slice(7), 'hex'))
const base64url = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64url')
const bytesOf = (text: unknown): Buffer => Buffer.from(String(text), 'base64url')

/** The person was present, and was verified by PIN, fingerprint or face. */
const PRESENT_AND_VERIFIED = 0b101

/**
 * Returns why the signature of an approval does not fit its record, or `undefined`. The ballot must belong to this
 * vote. The passkey whose public key the record carries must have signed it, on the site that the ballot names.
 */
export const voteFault = (operation_id: unknown, subject: Fields): string | undefined => {
  const { ballot, jwk, client_data, authenticator_data, signature } = subject.signature as VoteSignature
  const stated = {
    operation_id,
    type: subject.type,
    id: subject.id,
    round: subject.round ?? null,
    digest: subject.digest,
    decision: subject.decision,
    user_id: subject.voter,
  }
  const other = Object.entries(stated).find(([name, value]) => (ballot as Fields)[name] !== value)
  if (other) return `its ballot names a different ${other[0]}`
  const client = JSON.parse(bytesOf(client_data).toString('utf8')) as Fields
  if (client.type !== 'webauthn.get' || client.challenge !== challengeOf(ballot)) return 'it belongs to another ballot'
  if (!`.${new URL(String(client.origin)).hostname}`.endsWith(`.${ballot.rp_id}`)) return 'it was made on another site'
  const data = bytesOf(authenticator_data)
  if (data.subarray(0, 32).toString('hex') !== sha256Hex(ballot.rp_id)) return 'it was made for another site'
  if (((data[32] ?? 0) & PRESENT_AND_VERIFIED) !== PRESENT_AND_VERIFIED) return 'the person was not verified'
  const signed = Buffer.concat([data, Buffer.from(sha256Hex(bytesOf(client_data)), 'hex')])
  const key = createPublicKey({ key: jwk, format: 'jwk' })
  const fault = keyFault(key)
  if (fault) return `its key ${fault}: it proves no owner`
  return verify(jwk.kty === 'OKP' ? null : 'sha256', signed, key, bytesOf(signature)) ? undefined : 'it is not valid'
}
