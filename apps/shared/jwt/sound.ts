import { createPublicKey, type JsonWebKey, type KeyObject } from 'node:crypto'

/** The encodings of the points of small order, without the sign: for such a key, anyone can make a valid signature. */
const SMALL_ORDER = new Set([
  '0000000000000000000000000000000000000000000000000000000000000000',
  '0100000000000000000000000000000000000000000000000000000000000000',
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
  'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a',
  'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  'edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  'eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
])

/**
 * Why a public key proves no owner, or `undefined`. With the exponent 1, or a point of small order, anyone can sign;
 * other small exponents are weak. RSA has 2048 to 4096 bits (NIST SP 800-131A, FIPS 186-5), EC is P-256.
 */
export const keyFault = (key: KeyObject): string | undefined => {
  const { modulusLength = 0, publicExponent = 0n, namedCurve } = key.asymmetricKeyDetails ?? {}
  switch (key.asymmetricKeyType) {
    case 'rsa':
      if (modulusLength < 2048 || modulusLength > 4096) return `has ${modulusLength} bits, not 2048 to 4096`
      return publicExponent < 65_537n || publicExponent % 2n === 0n
        ? `has the exponent ${publicExponent}, not an odd one of at least 65537`
        : undefined
    case 'ec':
      return namedCurve === 'prime256v1' ? undefined : `is on the curve ${namedCurve}, not P-256`
    case 'ed25519': {
      const point = Buffer.from(String(key.export({ format: 'jwk' }).x), 'base64url')
      point[31] = (point[31] ?? 0) & 0x7f
      return SMALL_ORDER.has(point.toString('hex')) ? 'is a point of small order' : undefined
    }
    default:
      return `is of the type ${key.asymmetricKeyType}`
  }
}

/** The key of a JWK. Throws if it proves no owner, by the name that the caller has for it. */
export const publicKeyOf = (jwk: JsonWebKey, name = 'the key'): KeyObject => {
  const key = read(jwk, name)
  const fault = keyFault(key)
  if (fault) throw new Error(`${name} ${fault}`)
  return key
}

const read = (jwk: JsonWebKey, name: string): KeyObject => {
  try {
    return createPublicKey({ key: jwk, format: 'jwk' })
  } catch (cause) {
    throw new Error(`${name} is not a public key`, { cause })
  }
}
