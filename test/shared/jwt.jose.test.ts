import { createHmac, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { exportJWK, importJWK, type JWTPayload, jwtVerify, SignJWT } from 'jose'
import { describe, expect, it } from 'vitest'
import type { AccessClaims, ServiceClaims } from '../../apps/shared/jwt/claims.ts'
import { parseKeySet } from '../../apps/shared/jwt/jwks.ts'
import { signToken } from '../../apps/shared/jwt/sign.ts'
import { TokenRejected, type VerifyOptions, verifyToken } from '../../apps/shared/jwt/verifier.ts'
import { accessClaims, b64, forge, ISSUER, NOW, rsaKey, SECONDS, USER } from './support/tokens.ts'

/**
 * Our verifier against that of `jose`: each reads the other's tokens, and ours accepts no token that jose refuses.
 * Classes that only jose accepts are named here; a new class fails the test.
 */
const rsa = rsaKey()
const ed = generateKeyPairSync('ed25519')
const stranger = rsaKey()
const KID = 'key-1'

const serviceClaims: ServiceClaims = {
  iss: 'svc:relay',
  aud: 'session-internal',
  sub: 'svc:relay',
  type: 'service',
  scope: ['sessions:revoke'],
  iat: SECONDS,
  exp: SECONDS + 300,
  jti: 'A'.repeat(22),
}

const userClaims = accessClaims({ jti: 'B'.repeat(22) }) as Record<string, unknown> & AccessClaims

type Kind = 'access' | 'service'
const KINDS = {
  access: {
    alg: 'RS256',
    typ: 'at+jwt',
    issuer: ISSUER,
    audience: 'signalbox-api',
    claims: userClaims as JWTPayload,
    privateKey: rsa.privateKey,
    publicKey: rsa.publicKey,
  },
  service: {
    alg: 'EdDSA',
    typ: 'st+jwt',
    issuer: 'svc:relay',
    audience: 'session-internal',
    claims: serviceClaims as JWTPayload,
    privateKey: ed.privateKey,
    publicKey: ed.publicKey,
  },
} as const

const ours = (kind: Kind, token: string): object | undefined => {
  const { issuer, audience, publicKey } = KINDS[kind]
  const keys = (kid: string) => (kid === KID ? { key: publicKey, issuer } : undefined)
  const options: VerifyOptions<Kind> = { type: kind, keys, issuer, audience, now: NOW }
  try {
    return verifyToken(token, options)
  } catch (error) {
    if (error instanceof TokenRejected) return undefined
    throw error
  }
}

const theirs = async (kind: Kind, token: string): Promise<object | undefined> => {
  const { alg, typ, issuer, audience, publicKey } = KINDS[kind]
  const options = { algorithms: [alg], issuer, audience, typ, currentDate: NOW }
  const read = await jwtVerify(token, publicKey, options).catch(() => undefined)
  return read?.payload
}

const good = (kind: Kind): string =>
  kind === 'access'
    ? signToken('access', userClaims, { kid: KID, private_key: rsa.privateKey })
    : signToken('service', serviceClaims, { kid: KID, private_key: ed.privateKey })

describe.each(['access', 'service'] as const)('a token of kind %s', (kind) => {
  const { alg, typ, claims, privateKey, publicKey } = KINDS[kind]
  it('signed by us is read by jose', async () => {
    expect(await theirs(kind, good(kind))).toEqual(claims)
  })
  it('signed by jose is read by us', async () => {
    const token = await new SignJWT(claims).setProtectedHeader({ alg, kid: KID, typ }).sign(privateKey)
    expect(ours(kind, token)).toEqual(claims)
  })
  it('has a key that survives a key set unchanged', async () => {
    const jwk = await exportJWK(publicKey)
    const key = await importJWK(jwk, alg)
    expect((await jwtVerify(good(kind), key, { currentDate: NOW })).payload).toEqual(claims)
    if (kind === 'service') return
    const [[, parsed] = []] = parseKeySet({ keys: [{ ...jwk, kid: KID, alg, use: 'sig' }] })
    expect(parsed?.equals(publicKey)).toBe(true)
  })
})

/** Why only jose accepts a token: it is right to, or leaves the check to the caller. */
type JoseAlone =
  | 'no kid'
  | 'unknown kid'
  | 'names another key'
  | 'far exp'
  | 'list of audiences'
  | 'doubled member'
  | 'other spelling'
  | 'too long'
  | 'claims of another kind'
  | 'iat in the future'

const header = { alg: 'RS256', kid: KID, typ: 'at+jwt' }
const claimed = (changes: Record<string, unknown>) => forge(rsa.privateKey, header, accessClaims(changes))
const headed = (changes: Record<string, unknown>) => forge(rsa.privateKey, { ...header, ...changes }, accessClaims())
const text = JSON.stringify(accessClaims())
const [head = '', payload = '', signature = ''] = good('access').split('.')
const macOf = (key: KeyObject): string => {
  const input = `${b64({ ...header, alg: 'HS256' })}.${payload}`
  const pem = key.export({ type: 'spki', format: 'pem' })
  return `${input}.${createHmac('sha256', pem).update(input).digest('base64url')}`
}

const HOSTILE: Record<string, [token: string, jose?: JoseAlone]> = {
  'no signature': [`${head}.${payload}.`],
  'alg none': [`${b64({ ...header, alg: 'none' })}.${payload}.`],
  'alg none with a signature': [`${b64({ ...header, alg: 'none' })}.${payload}.${signature}`],
  'a MAC over the public key': [macOf(rsa.publicKey)],
  'another algorithm of the key': [headed({ alg: 'RS512' })],
  PSS: [headed({ alg: 'PS256' })],
  'the key of a stranger': [forge(stranger.privateKey, header, accessClaims())],
  'a changed payload': [`${head}.${b64(accessClaims({ username: 'ada' }))}.${signature}`],
  'the signature of another token': [`${head}.${payload}.${claimed({ username: 'ada' }).split('.')[2]}`],
  'its own key': [headed({ jwk: stranger.jwk }), 'names another key'],
  'a place of keys': [headed({ jku: 'https://evil.example/keys' }), 'names another key'],
  'a place of certificates': [headed({ x5u: 'https://evil.example' }), 'names another key'],
  'an extension that must be understood': [headed({ crit: ['exp'] })],
  'an unencoded payload': [headed({ b64: false, crit: ['b64'] })],
  'no key id': [headed({ kid: undefined }), 'no kid'],
  'an unknown key id': [headed({ kid: 'key-2' }), 'unknown kid'],
  'a path as key id': [headed({ kid: '../../etc/passwd' }), 'unknown kid'],
  'another typ': [headed({ typ: 'rt+jwt' })],
  'another type': [claimed({ type: 'refresh' }), 'claims of another kind'],
  'another issuer': [claimed({ iss: 'https://evil.example' })],
  'another audience': [claimed({ aud: 'session-internal' })],
  'a list of audiences': [claimed({ aud: ['signalbox-api', 'evil'] }), 'list of audiences'],
  'a past end': [claimed({ iat: SECONDS - 1000, exp: SECONDS - 100 })],
  'a far end': [claimed({ exp: SECONDS + 1_000_000 }), 'far exp'],
  'no end': [claimed({ exp: undefined }), 'far exp'],
  'a future start': [claimed({ nbf: SECONDS + 600 })],
  'a future issue': [claimed({ iat: SECONDS + 600, exp: SECONDS + 1500 }), 'iat in the future'],
  'a subject that is no user': [claimed({ sub: 'svc:relay' }), 'claims of another kind'],
  'a doubled member': [forge(rsa.privateKey, header, `${text.slice(0, -1)},"sub":"${USER}"}`), 'doubled member'],
  'white space in the payload': [forge(rsa.privateKey, header, text.replace('{', '{ ')), 'other spelling'],
  'padding after the signature': [`${head}.${payload}.${signature}==`, 'other spelling'],
  'more than 4 KiB': [claimed({ pad: 'x'.repeat(4096) }), 'too long'],
}

describe('of 32 hostile tokens', () => {
  it('there are 32', () => expect(Object.keys(HOSTILE)).toHaveLength(32))
  it.each(Object.entries(HOSTILE))('ours refuses one with %s', async (_, [token, alone]) => {
    expect(ours('access', token)).toBeUndefined()
    expect((await theirs('access', token)) !== undefined).toBe(alone !== undefined)
  })
})

const SEED = 20_261_122
const MUTANTS = 2000
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_+/=. \n%"'

/** The same numbers on every run (mulberry32). */
const numbers = (seed: number) => {
  let state = seed
  return (below: number): number => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((((t ^ (t >>> 14)) >>> 0) / 4_294_967_296) * below) | 0
  }
}

/** One to three changes of characters: replaced, inserted, removed, swapped, or a piece repeated. */
const mutate = (token: string, below: (n: number) => number): string => {
  let out = token
  for (let changes = 1 + below(3); changes > 0; changes--) {
    const at = below(out.length)
    const letter = ALPHABET[below(ALPHABET.length)] ?? 'A'
    const [before, here, after] = [out.slice(0, at), out[at] ?? '', out.slice(at + 1)]
    const kinds = [
      before + letter + after,
      before + letter + here + after,
      before + after,
      before.slice(0, -1) + here + before.slice(-1) + after,
      before + out.slice(at, at + 1 + below(8)) + here + after,
    ]
    out = kinds[below(kinds.length)] ?? out
  }
  return out
}

describe.each(['access', 'service'] as const)(`of ${MUTANTS} mutants of a token of kind %s`, (kind) => {
  it('ours accepts none, and jose only re-spelled signatures', async () => {
    const below = numbers(SEED)
    const token = good(kind)
    const alone: string[] = []
    for (let made = 0; made < MUTANTS; ) {
      const mutant = mutate(token, below)
      if (mutant === token) continue
      made += 1
      if (ours(kind, mutant)) throw new Error(`ours takes ${JSON.stringify(mutant)}`)
      if (await theirs(kind, mutant)) alone.push(mutant)
    }
    const bytesOf = (one: string) => one.split('.').map((part) => Buffer.from(part, 'base64url').toString('hex'))
    for (const mutant of alone) expect(bytesOf(mutant)).toEqual(bytesOf(token))
  })
})
