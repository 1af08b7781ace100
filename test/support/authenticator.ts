import { createHash, createPublicKey, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'

/** A software authenticator: makes the attestations and assertions of WebAuthn with node:crypto alone. */
const sha256 = (bytes: string | Uint8Array) => createHash('sha256').update(bytes).digest()
const b64 = (bytes: string | Uint8Array) => Buffer.from(bytes).toString('base64url')

/** The part of CBOR (RFC 8949) that a key and an attestation need. */
const head = (major: number, n: number): Buffer =>
  n < 24
    ? Buffer.from([(major << 5) | n])
    : n < 256
      ? Buffer.from([(major << 5) | 24, n])
      : Buffer.from([(major << 5) | 25, n >> 8, n & 255])
type Cbor = number | string | Uint8Array | Map<number | string, Cbor>
const cbor = (value: Cbor): Buffer => {
  if (typeof value === 'number') return value < 0 ? head(1, -1 - value) : head(0, value)
  if (typeof value === 'string') return Buffer.concat([head(3, Buffer.byteLength(value)), Buffer.from(value)])
  if (value instanceof Map)
    return Buffer.concat([head(5, value.size), ...[...value].flatMap(([key, one]) => [cbor(key), cbor(one)])])
  return Buffer.concat([head(2, value.length), value])
}

/** An RSA key with the exponent 1: anyone can sign for it, because a signature is the padded digest itself. */
export const ANYONES = {
  kty: 'RSA',
  n: Buffer.concat([Buffer.alloc(255, 0xc1), Buffer.of(1)]).toString('base64url'),
  e: 'AQ',
}
export const signAsAnyone = (text: string | Uint8Array): Buffer => {
  const digest = Buffer.concat([Buffer.from('3031300d060960864801650304020105000420', 'hex'), sha256(text)])
  return Buffer.concat([Buffer.of(0, 1), Buffer.alloc(256 - 3 - digest.length, 0xff), Buffer.of(0), digest])
}

const KINDS = {
  ES256: () => generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  EdDSA: () => generateKeyPairSync('ed25519'),
  RS256: () => generateKeyPairSync('rsa', { modulusLength: 2048 }),
  small: () => generateKeyPairSync('rsa', { modulusLength: 1024 }),
  anyone: () => ({ privateKey: undefined, publicKey: createPublicKey({ key: ANYONES, format: 'jwk' }) }),
}
const coseOf = (key: KeyObject): Map<number, Cbor> => {
  const { kty, x = '', y = '', n = '', e = '' } = key.export({ format: 'jwk' })
  const raw = (text: string) => Buffer.from(text, 'base64url')
  if (kty === 'EC')
    return new Map<number, Cbor>([
      [1, 2],
      [3, -7],
      [-1, 1],
      [-2, raw(x)],
      [-3, raw(y)],
    ])
  if (kty === 'OKP')
    return new Map<number, Cbor>([
      [1, 1],
      [3, -8],
      [-1, 6],
      [-2, raw(x)],
    ])
  return new Map<number, Cbor>([
    [1, 3],
    [3, -257],
    [-1, raw(n)],
    [-2, raw(e)],
  ])
}

type Site = { origin: string; rp_id: string }
/** Deviations of an answer that must be refused. */
export type Bend = Partial<Site> & {
  flags?: number
  counter?: number
  type?: string
  user_handle?: string
  tamper?: boolean
  framed?: boolean
}

const [UP, UV, AT] = [1, 4, 64]

/** One authenticator with one credential; its counter grows with each use, or stays 0 (`counts: false`). */
export const createAuthenticator = (
  site: Site,
  {
    kind = 'ES256',
    counts = true,
    id = randomBytes(32),
  }: { kind?: keyof typeof KINDS; counts?: boolean; id?: Buffer } = {},
) => {
  const { privateKey, publicKey } = KINDS[kind]()
  let counter = 0
  let owner = ''
  const clientData = (type: string, challenge: string, { origin, framed = false }: Bend) =>
    Buffer.from(JSON.stringify({ type, challenge, origin, crossOrigin: framed }))
  const authData = (rp_id: string, flags: number, count: number, rest = Buffer.alloc(0)) => {
    const tail = Buffer.alloc(5)
    tail.writeUInt8(flags)
    tail.writeUInt32BE(count, 1)
    return Buffer.concat([sha256(rp_id), tail, rest])
  }
  const common = { id: b64(id), rawId: b64(id), type: 'public-key', clientExtensionResults: {} }
  return {
    credential_id: b64(id),
    public_key: new Uint8Array(cbor(coseOf(publicKey))),
    jwk: () => publicKey.export({ format: 'jwk' }) as Record<string, string>,
    attest: (challenge: string, user_id: string, bend: Bend = {}) => {
      owner = user_id
      const at = { ...site, ...bend }
      const attested = Buffer.concat([Buffer.alloc(16), Buffer.from([0, id.length]), id, cbor(coseOf(publicKey))])
      const data = authData(at.rp_id, bend.flags ?? UP | UV | AT, bend.counter ?? counter, attested)
      const object = cbor(
        new Map<string, Cbor>([
          ['fmt', 'none'],
          ['attStmt', new Map()],
          ['authData', data],
        ]),
      )
      const client = clientData(bend.type ?? 'webauthn.create', challenge, at)
      return { ...common, response: { clientDataJSON: b64(client), attestationObject: b64(object) } }
    },
    assert: (challenge: string, bend: Bend = {}) => {
      const at = { ...site, ...bend }
      if (counts) counter += 1
      const data = authData(at.rp_id, bend.flags ?? UP | UV, bend.counter ?? counter)
      const client = clientData(bend.type ?? 'webauthn.get', challenge, at)
      const signed = Buffer.concat([data, sha256(client)])
      const digest = kind === 'EdDSA' ? null : 'sha256'
      const signature = privateKey ? sign(digest, signed, privateKey) : signAsAnyone(signed)
      if (bend.tamper) signature[signature.length - 1] = (signature.at(-1) ?? 0) ^ 1
      return {
        ...common,
        response: {
          clientDataJSON: b64(client),
          authenticatorData: b64(data),
          signature: b64(signature),
          userHandle: b64(bend.user_handle ?? owner),
        },
      }
    },
  }
}
export type Authenticator = ReturnType<typeof createAuthenticator>
