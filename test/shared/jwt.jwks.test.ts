import { generateKeyPairSync } from 'node:crypto'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createAccessVerifier } from '../../apps/shared/auth/user-tokens.ts'
import { createJwksClient, type JwksClient, type JwksOptions, parseKeySet } from '../../apps/shared/jwt/jwks.ts'
import { publicKeyOf } from '../../apps/shared/jwt/sound.ts'
import { until } from '../support/until.ts'
import { accessClaims, forge, ISSUER, NOW, rsaKey } from './support/tokens.ts'

const one = rsaKey()
const two = rsaKey()
const jwkOf = (key: ReturnType<typeof rsaKey>, kid: string) => ({ ...key.jwk, kid, alg: 'RS256', use: 'sig' })

let server: http.Server
let url: string
let answer: http.RequestListener
let calls: http.IncomingMessage[]
let clients: JwksClient[]

const serve = (value: unknown, status = 200) => {
  answer = (_req, res) => res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
}
const clientOf = (options: Partial<JwksOptions> = {}) => {
  const client = createJwksClient({ url, cache_s: 300, cooldown_s: 30, max_stale_s: 86_400, ...options })
  clients.push(client)
  return client
}

beforeEach(async () => {
  calls = []
  clients = []
  server = http.createServer((req, res) => {
    calls.push(req)
    answer(req, res)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/jwks`
  serve({ keys: [jwkOf(one, 'one')] })
})
afterEach(() => {
  for (const client of clients) client.close()
  server.closeAllConnections()
  server.close()
})

describe('unknown key ids', () => {
  it('cause one fetch per cool-down, however many arrive at once', async () => {
    let now = 0
    const client = clientOf({ monotonic: () => now })
    await client.start()
    expect(await Promise.all(Array.from({ length: 50 }, (_, i) => client.find(`ghost-${i}`)))).toEqual(
      Array(50).fill('unknown'),
    )
    expect(calls.length).toBe(2)
    now += 29_000
    expect(await client.find('ghost')).toBe('unknown')
    expect(calls.length).toBe(2)
    now += 1_000
    serve({ keys: [jwkOf(one, 'one'), jwkOf(two, 'two')] })
    expect(await client.find('two')).toMatchObject({ asymmetricKeyType: 'rsa' })
    expect(calls.length).toBe(3)
  })
  it('are "unavailable", not "unknown", if the last fetch failed', async () => {
    const client = clientOf()
    await client.start()
    serve({}, 500)
    expect(await client.find('ghost')).toBe('unavailable')
    expect(await client.find('ghost')).toBe('unavailable')
    expect(client.get('one')).toBeDefined()
  })
  it('become 401 from a good set and 503 from a failing one', async () => {
    const client = clientOf({ cooldown_s: 0 })
    await client.start()
    const verify = createAccessVerifier({
      jwks: client,
      issuer: ISSUER,
      audience: 'signalbox-api',
      skew_s: 5,
      clock: { now: () => NOW },
    })
    const token = (kid: string) => forge(one.privateKey, { alg: 'RS256', kid, typ: 'at+jwt' }, accessClaims())
    await expect(verify(token('one'))).resolves.toMatchObject({ username: 'eva' })
    await expect(verify(token('ghost'))).rejects.toMatchObject({ reason: 'unknown_key' })
    server.closeAllConnections()
    serve({}, 503)
    await expect(verify(token('ghost'))).rejects.toMatchObject({ status: 503, code: 'dependency_down' })
    await expect(verify(token('one'))).resolves.toMatchObject({ username: 'eva' })
  })
})

describe('a set that cannot be fetched', () => {
  it('leaves the client unready at first and is tried again with back-off', async () => {
    serve({}, 500)
    const client = clientOf()
    await client.start()
    expect(client.isReady()).toBe(false)
    expect(await client.find('one')).toBe('unavailable')
    expect(calls.length).toBe(1)
    serve({ keys: [jwkOf(one, 'one')] })
    await until(() => client.isReady(), { timeout_ms: 4000 })
    expect(client.get('one')).toBeDefined()
  })
  it('is used from the cache for 24 h and not a moment longer', async () => {
    let now = 0
    const client = clientOf({ monotonic: () => now })
    await client.start()
    serve({}, 500)
    now = 86_400_000
    expect(client.get('one')).toBeDefined()
    now += 1
    expect(client.get('one')).toBeUndefined()
    expect(client.isReady()).toBe(false)
    expect(await client.find('one')).toBe('unavailable')
  })
})

describe('the background refresh', () => {
  it('fetches again at 80 % of the cache time, and applies new and removed keys', async () => {
    const client = clientOf({ cache_s: 0.1 })
    await client.start()
    serve({ keys: [jwkOf(two, 'two')] })
    await until(() => client.get('two'), { timeout_ms: 2000 })
    expect(client.get('one')).toBeUndefined()
  })
  it('sends the ETag it knows and keeps the set on 304', async () => {
    answer = (req, res) =>
      req.headers['if-none-match'] === '"v1"'
        ? res.writeHead(304).end()
        : res.writeHead(200, { etag: '"v1"' }).end(JSON.stringify({ keys: [jwkOf(one, 'one')] }))
    const client = clientOf({ cache_s: 0.05 })
    await client.start()
    await until(() => calls.some((call) => call.headers['if-none-match'] === '"v1"'), { timeout_ms: 2000 })
    expect(client.get('one')).toBeDefined()
  })
})

describe('a bad set never replaces a good one', () => {
  const bad: [string, http.RequestListener][] = [
    ['a redirect', (_req, res) => void res.writeHead(302, { location: '/other' }).end()],
    [
      'more than 64 KiB',
      (_req, res) => void res.end(JSON.stringify({ keys: [jwkOf(two, 'two')], pad: 'x'.repeat(70_000) })),
    ],
    ['no JSON', (_req, res) => void res.end('<html>')],
    ['no keys', (_req, res) => void res.end('{"keys":[]}')],
    [
      'a private key',
      (_req, res) =>
        void res.end(JSON.stringify({ keys: [{ ...two.privateKey.export({ format: 'jwk' }), kid: 'two' }] })),
    ],
    [
      'a cut answer',
      (_req, res) => void res.writeHead(200, { 'content-length': '999' }).write('{', () => res.destroy()),
    ],
  ]
  it.each(bad)('%s', async (_name, listener) => {
    const client = clientOf({ cooldown_s: 0 })
    await client.start()
    answer = listener
    expect(await client.find('two')).toBe('unavailable')
    expect(client.get('one')).toBeDefined()
    expect(calls.every((call) => call.url === '/jwks')).toBe(true)
  })
})

describe('a killed key', () => {
  it('is forgotten at once, and stays forgotten while the set still has it', async () => {
    const client = clientOf({ cooldown_s: 0 })
    await client.start()
    client.drop('one')
    expect(client.get('one')).toBeUndefined()
    expect(await client.find('one')).toBe('unknown')
  })
})

describe('a public key', () => {
  const n = String(one.jwk.n)
  const rsa = (e: string, modulus = n) => ({ kty: 'RSA', n: modulus, e })
  const point = (first: number, sign = 0) =>
    ({ kty: 'OKP', crv: 'Ed25519', x: Buffer.from([first, ...Array(30).fill(0), sign]).toString('base64url') }) as const
  it('of which no one knows a private half that others do not have is refused', () => {
    for (const e of ['AA', 'AQ', 'Ag', 'Aw', 'AQAA']) expect(() => publicKeyOf(rsa(e))).toThrow('the exponent')
    for (const bits of [512, 1024, 2047, 8192]) {
      const modulus = Buffer.alloc(Math.ceil(bits / 8), 0xff)
      modulus[0] = 0xff >> (modulus.length * 8 - bits)
      expect(() => publicKeyOf(rsa('AQAB', modulus.toString('base64url')))).toThrow(`${bits} bits`)
    }
    for (const curve of ['P-384', 'secp256k1'])
      expect(() =>
        publicKeyOf(generateKeyPairSync('ec', { namedCurve: curve }).publicKey.export({ format: 'jwk' })),
      ).toThrow('not P-256')
    const off = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'jwk' })
    expect(() => publicKeyOf({ ...off, y: String(off.x) }, 'key a')).toThrow('key a is not a public key')
    for (const x of [point(0), point(1), point(1, 0x80)]) expect(() => publicKeyOf(x)).toThrow('small order')
    expect(() => publicKeyOf(generateKeyPairSync('ed448').publicKey.export({ format: 'jwk' }))).toThrow('ed448')
  })
  it('of our kinds is accepted', () => {
    const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey
    for (const key of [ec, generateKeyPairSync('ed25519').publicKey])
      expect(publicKeyOf(key.export({ format: 'jwk' })).type).toBe('public')
    expect(publicKeyOf(rsa('AQAB')).asymmetricKeyType).toBe('rsa')
  })
})

describe('parseKeySet', () => {
  it('refuses weak keys, other kinds, doubled ids and more than 100 keys', () => {
    const good = jwkOf(one, 'one')
    expect(parseKeySet({ keys: [good] }).size).toBe(1)
    expect(() => parseKeySet({ keys: [jwkOf(rsaKey(1024), 'weak')] })).toThrow('the key weak has 1024 bits')
    expect(() => parseKeySet({ keys: [{ ...good, e: 'AQ' }] })).toThrow('the key one has the exponent 1,')
    expect(() => parseKeySet({ keys: [{ ...good, use: 'enc' }] })).toThrow('not an RS256 key')
    expect(() => parseKeySet({ keys: [{ kty: 'oct', kid: 'x', k: 'AAAA' }] })).toThrow('not an RS256 key')
    expect(() => parseKeySet({ keys: [good, good] })).toThrow('own key id')
    expect(() => parseKeySet({ keys: Array.from({ length: 101 }, (_, i) => ({ ...good, kid: `k${i}` })) })).toThrow(
      '1 to 100',
    )
    expect(() => parseKeySet(null)).toThrow()
  })
})
