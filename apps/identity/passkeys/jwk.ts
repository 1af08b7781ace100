import { cose, decodeCredentialPublicKey } from '@simplewebauthn/server/helpers'

const base64url = (bytes: Uint8Array | undefined): string => Buffer.from(bytes ?? []).toString('base64url')

/** A COSE key as a public JWK, the form in evidence, so that any verifier can read it. */
export const jwkOf = (public_key: Uint8Array<ArrayBuffer>): Record<string, string> => {
  const key = decodeCredentialPublicKey(public_key)
  if (cose.isCOSEPublicKeyEC2(key))
    return { kty: 'EC', crv: 'P-256', x: base64url(key.get(cose.COSEKEYS.x)), y: base64url(key.get(cose.COSEKEYS.y)) }
  if (cose.isCOSEPublicKeyOKP(key)) return { kty: 'OKP', crv: 'Ed25519', x: base64url(key.get(cose.COSEKEYS.x)) }
  if (cose.isCOSEPublicKeyRSA(key))
    return { kty: 'RSA', n: base64url(key.get(cose.COSEKEYS.n)), e: base64url(key.get(cose.COSEKEYS.e)) }
  throw new Error('a passkey has a key of an unknown kind')
}
