import { createHmac, generateKeyPairSync, type KeyObject, randomUUID, sign } from 'node:crypto'
import { Code } from '@connectrpc/connect'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Token } from '../../apps/shared/contracts/gen/auth_pb.ts'
import { createRpcClient } from '../../apps/shared/rpc/client.ts'
import { startUpstream } from '../gateway/support/upstream.ts'
import { type Auth, bearer, counted, PASSWORD, send, startAuth } from '../session/support/auth.ts'

/** auth.md 14.1: every class of bad token is refused by every verifier, at bounded cost, with no effect. */

type Json = Record<string, unknown>
let auth: Auth
let gateway: string
let upstream: Awaited<ReturnType<typeof startUpstream>>
let real: { access: string; refresh: string }
let key: { kid: string; private_key: KeyObject }

const base64 = (value: unknown) =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')
const partOf = (token: string, at: number): Json =>
  JSON.parse(Buffer.from(token.split('.')[at] ?? '', 'base64url').toString())
const signed = (header: unknown, payload: unknown, by = key.private_key, digest = 'sha256') => {
  const input = `${base64(header)}.${base64(payload)}`
  return `${input}.${sign(digest, Buffer.from(input), by).toString('base64url')}`
}

/** Bad tokens made from a good one; all except the signature cases are signed with the real key. */
const corpus = (good: string): Record<string, string> => {
  const [head = '', body = '', signature = ''] = good.split('.')
  const header = partOf(good, 0)
  const claims = partOf(good, 1)
  const { iat, session_id } = claims as { iat: number; session_id: string }
  const other = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
  const pem = 'the public key as text'
  const mac = createHmac('sha256', pem).update(`${head}.${body}`).digest('base64url')
  const last = signature.slice(-1)
  const spare = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
  const respelled = signature.slice(0, -1) + spare[(spare.indexOf(last) & ~15) | ((spare.indexOf(last) + 1) & 15)]
  const shifted = (by: number) => ({ ...claims, iat: iat + by, exp: Number(claims.exp) + by, auth_time: iat + by })
  return {
    'no signature': `${head}.${body}.`,
    'alg none': `${base64({ ...header, alg: 'none' })}.${body}.${signature}`,
    'a MAC over the public key': `${base64({ ...header, alg: 'HS256' })}.${body}.${mac}`,
    'another algorithm of the key': signed({ ...header, alg: 'RS512' }, claims, key.private_key, 'sha512'),
    'another typ': signed({ ...header, typ: 'JWT' }, claims),
    'a key of its own': signed({ ...header, jwk: {} }, claims, other),
    'an address of keys': signed({ ...header, jku: 'http://evil.test/jwks' }, claims),
    'an unknown kid': signed({ ...header, kid: 'unknown' }, claims),
    'a path as kid': signed({ ...header, kid: '../../etc/passwd' }, claims),
    'no kid': signed({ alg: header.alg, typ: header.typ }, claims),
    'signed by another key': signed(header, claims, other),
    'changed after signing': `${head}.${base64({ ...claims, sub: randomUUID() })}.${signature}`,
    'another spelling of the signature': `${head}.${body}.${respelled}`,
    padding: `${good}=`,
    'four parts': `${good}.${body}`,
    'beyond 4096 bytes': signed(header, { ...claims, filler: 'x'.repeat(4096) }),
    'a doubled member': signed(header, `{"iss":"x",${JSON.stringify(claims).slice(1)}`),
    'white space': signed(header, JSON.stringify(claims, null, 1)),
    'no object': signed(header, [claims]),
    'another issuer': signed(header, { ...claims, iss: 'http://evil.test' }),
    'another audience': signed(header, { ...claims, aud: 'somebody-else' }),
    'several audiences': signed(header, { ...claims, aud: [claims.aud] }),
    'another type': signed(header, { ...claims, type: claims.type === 'access' ? 'refresh' : 'access' }),
    'no subject': signed(header, { ...claims, sub: undefined }),
    'a subject in capitals': signed(header, { ...claims, sub: String(claims.sub).toUpperCase() }),
    'no session': signed(header, { ...claims, session_id: undefined }),
    'a path as session': signed(header, { ...claims, session_id: `${session_id}/..` }),
    'a short jti': signed(header, { ...claims, jti: 'x' }),
    'too long a life': signed(header, { ...claims, exp: Number(claims.exp) + 1 }),
    'no end': signed(header, { ...claims, exp: undefined }),
    'times as text': signed(header, { ...claims, iat: String(iat) }),
    ended: signed(header, shifted(-3_000_000)),
    'from the future': signed(header, shifted(60)),
    'not yet valid': signed(header, { ...claims, nbf: iat + 600 }),
    ...(claims.type === 'access' && {
      'a proof from the future': signed(header, { ...claims, auth_time: iat + 1 }),
      'no mode': signed(header, { ...claims, cm: 'body' }),
      'no method': signed(header, { ...claims, amr: 'pwd' }),
      'no name': signed(header, { ...claims, username: '' }),
    }),
    garbage: 'x.y.z',
  }
}

beforeAll(async () => {
  upstream = await startUpstream()
  auth = await startAuth({ GATEWAY__UPSTREAM__CATALOG_URL: upstream.url })
  gateway = (await auth.addGateway()).url
  await auth.addUser('eva')
  const { body } = await send(`${auth.session.url}/auth/login`, { body: { username: 'eva', password: PASSWORD } })
  real = { access: String(body.access_token), refresh: String(body.refresh_token) }
  const active = auth.token_deps.keyring.active()
  if (!active) throw new Error('token has no key')
  key = active
})
afterAll(async () => {
  await auth?.stop()
  upstream?.stop()
})

/** Everything in Redis except limits and the audit stream. */
const stored = async () => {
  const keys = await auth.redis.keys(`${auth.prefix}*`)
  const kept = keys.filter((name) => !/lim:|auth:audit/.test(name)).sort()
  return Promise.all(kept.map(async (name) => [name, await auth.redis.dump(name)]))
}

describe('a bad access token', () => {
  it('is refused by gateway, session and identity alike, and changes nothing (ASVS 7.2.1, 9.2.2, 10.3.1)', async () => {
    const doors: [string, string, 'GET' | 'POST'][] = [
      ['gateway', `${gateway}/api/v1/resources`, 'GET'],
      ['gateway logout', `${gateway}/auth/logout`, 'POST'],
      ['session', `${auth.session.url}/v1/sessions`, 'GET'],
      ['session logout', `${auth.session.url}/auth/logout`, 'POST'],
      ['identity', `${auth.vars.GATEWAY__UPSTREAM__IDENTITY_URL}/v1/users/me`, 'GET'],
    ]
    // The same method that makes the bad tokens also makes good ones.
    const copy = signed(partOf(real.access, 0), partOf(real.access, 1))
    for (const [door, url, method] of doors)
      if (method === 'GET') expect([door, (await send(url, { headers: bearer(copy) })).status]).toEqual([door, 200])
    const before = await stored()
    const fetches = () => counted(auth.token_deps.telemetry.metrics, 'http_requests_total', { endpoint: '/jwks' })
    const fetched = await fetches()
    const begun = performance.now()
    const reached = upstream.seen.length
    for (const [what, token] of Object.entries({ ...corpus(real.access), 'a refresh token': real.refresh })) {
      for (const [door, url, method] of doors) {
        const answer = await send(url, { method, headers: bearer(token) })
        expect([what, door, answer.status, answer.body.code]).toEqual([what, door, 401, 'invalid_token'])
        expect(answer.headers['www-authenticate']).toBe('Bearer error="invalid_token"')
        expect(answer.text).not.toContain(token)
      }
    }
    expect(await stored()).toEqual(before)
    expect(upstream.seen.length).toBe(reached)
    // One lookup of the unknown key per verifier and cool-down; a gateway without its feed also looks each second.
    const seconds = Math.ceil((performance.now() - begun) / 1000)
    expect((await fetches()) - fetched).toBeLessThanOrEqual(3 + seconds)
  })
})

describe('a bad refresh token', () => {
  it('is refused by session and ParseToken, and changes nothing', async () => {
    const client = createRpcClient(Token, {
      url: auth.vars.AUTH__RPC__TOKEN_URL ?? '',
      signer: auth.services.signer('session'),
      audience: 'token-internal',
    })
    expect((await client.parseToken({ refreshToken: real.refresh })).sessionId).toBe(partOf(real.refresh, 1).session_id)
    const before = await stored()
    for (const [what, token] of Object.entries({ ...corpus(real.refresh), 'an access token': real.access })) {
      const answer = await send(`${auth.session.url}/auth/refresh`, { body: { refresh_token: token } })
      const code = token.length > 4096 ? [400, 'schema_violation'] : [401, 'invalid_grant']
      expect([what, answer.status, answer.body.code]).toEqual([what, ...code])
      await expect(client.parseToken({ refreshToken: token }), what).rejects.toMatchObject({
        code: Code.InvalidArgument,
      })
    }
    expect(await stored()).toEqual(before)
    expect((await send(`${auth.session.url}/auth/refresh`, { body: { refresh_token: real.refresh } })).status).toBe(200)
  })
})
