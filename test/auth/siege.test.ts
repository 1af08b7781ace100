import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { AccessClaims } from '../../apps/shared/jwt/claims.ts'
import { newJti, signToken } from '../../apps/shared/jwt/sign.ts'
import type { PrivateKey } from '../../apps/shared/service/keys.ts'
import { startUpstream } from '../gateway/support/upstream.ts'
import { type Auth, bearer, cookieOf, PASSWORD, send, startAuth } from '../session/support/auth.ts'

/** auth.md 8 and 8.1: how strangers and neighbors can affect known users. */

const WRONG = 'Wrong-Horse-7-Battery'
const OWNER = '192.0.2.1'
const STRANGER = '198.51.100.7'
const from = (address: string) => ({ 'x-forwarded-for': address })

let auth: Auth
let upstream: Awaited<ReturnType<typeof startUpstream>>
let gateway: Awaited<ReturnType<Auth['addGateway']>>

beforeAll(async () => {
  upstream = await startUpstream()
  auth = await startAuth({
    GATEWAY__UPSTREAM__CATALOG_URL: upstream.url,
    GATEWAY__UPSTREAM__OPERATIONS_URL: upstream.url,
    GATEWAY__HTTP__TRUSTED_PROXIES: '["127.0.0.0/8"]',
    GATEWAY__LIMITS__LOGIN_NAME: '10/600/10',
    GATEWAY__LIMITS__LOGIN_DEVICE: '4/600/4',
    GATEWAY__LIMITS__FAILED_TOKENS: '3/600/3',
    SESSION__LIMITS__LOGIN_FAILURES: '12/86400/12',
  })
  gateway = await auth.addGateway()
  for (const name of ['eva', 'olga', 'ada', 'ines', 'rita', 'sven']) await auth.addUser(name)
})
afterAll(async () => {
  await auth?.stop()
  upstream?.stop()
})

type Login = { password?: string; address?: string; device_token?: string; remember_device?: boolean }
const login = (username: string, { password = PASSWORD, address = OWNER, ...more }: Login = {}) =>
  send(`${gateway.url}/v1/token`, { body: { username, password, ...more }, headers: from(address) })

describe('a stranger who guesses at a name', () => {
  it('never keeps its known device out, from any address, in either mode (ASVS 6.3.1)', async () => {
    const { device_token } = (await login('eva', { remember_device: true })).body as { device_token: string }
    const cookie = cookieOf(
      await send(`${gateway.url}/v1/token?response_mode=cookie`, {
        body: { username: 'eva', password: PASSWORD },
        headers: from(OWNER),
      }),
      '__Host-device',
    )
    for (let i = 0; i < 15; i++) await login('eva', { password: WRONG, address: STRANGER })
    const unknown = await login('eva', { address: '203.0.113.9' })
    expect([unknown.status, unknown.body.code]).toEqual([429, 'rate_limited'])
    expect((await login('eva', { device_token })).status).toBe(200)
    // Next to the stranger, behind one address that is blocked for its failures.
    expect((await login('eva', { device_token, address: STRANGER })).status).toBe(200)
    const web = await send(`${gateway.url}/v1/token?response_mode=cookie`, {
      body: { username: 'eva', password: PASSWORD },
      headers: { ...from(STRANGER), cookie },
    })
    expect(web.status).toBe(200)
  })

  it('gains nothing from a device token that is forged, for another name, or stolen', async () => {
    const { device_token } = (await login('olga', { remember_device: true })).body as { device_token: string }
    for (let i = 0; i < 10; i++) await login('ada', { password: WRONG, address: `203.0.113.${i + 20}` })
    for (const foreign of [device_token, `${device_token.slice(0, -2)}AA`, 'd1.e30.x'])
      expect((await login('ada', { device_token: foreign, address: '203.0.113.40' })).status).toBe(429)
    // The device has its own bucket, whatever the address.
    const answers = []
    for (let i = 0; i < 6; i++)
      answers.push((await login('olga', { password: WRONG, device_token, address: `203.0.113.${i + 50}` })).status)
    expect(answers.filter((status) => status === 429).length).toBeGreaterThanOrEqual(2)
    // The owner, on another known device, does not notice.
    expect((await login('olga', { remember_device: true })).status).toBe(200)
  })

  it('counts as one source across an IPv6 network of 64 bits', async () => {
    const buckets = async () => (await auth.redis.keys(`${auth.prefix}lim:login_failures:*`)).length
    const before = await buckets()
    for (const host of [':1', ':2:3', 'ffff:1:2:3'])
      expect((await login('ghost-6', { password: WRONG, address: `2001:db8:1:2:${host}` })).status).toBe(401)
    expect((await buckets()) - before).toBe(1)
    // The resulting limit is stored where the gateway looks for it.
    for (let i = 0; i < 10; i++) await login(`ghost-${i}`, { password: WRONG, address: `2001:db8:1:2::${i + 10}` })
    expect((await login('ines', { address: '2001:db8:1:2:a:b:c:d' })).body.code).toBe('rate_limited')
    expect((await login('ines', { address: '2001:db8:1:3::1' })).status).toBe(200)
  })
})

describe('a neighbor behind the same address who sends bad tokens', () => {
  const ADDRESS = '192.0.2.77'
  const act = (token: unknown, method: 'GET' | 'POST', path: string) =>
    send(`${gateway.url}${path}`, {
      method,
      headers: { ...bearer(token), ...from(ADDRESS), 'idempotency-key': `${Math.random()}-siege-siege` },
    })

  it('is refused, but keeps no one from stopping, reading or signing out', async () => {
    const seen = (await login('ines', { address: ADDRESS })).body.access_token
    const fresh = (await login('ines', { address: ADDRESS })).body.access_token
    expect((await act(seen, 'GET', '/api/v1/resources')).status).toBe(200)
    const [header, payload, signature = ''] = String(seen).split('.')
    const bad = `${header}.${payload}.${signature.startsWith('A') ? 'B' : 'A'}${signature.slice(1)}`
    const refused = []
    for (let i = 0; i < 6; i++) refused.push((await act(bad, 'GET', '/api/v1/resources')).status)
    expect(refused).toEqual([401, 401, 401, 401, 429, 429])
    expect((await act(seen, 'GET', '/api/v1/resources')).status).toBe(200)
    expect((await act(fresh, 'POST', '/api/v1/operations/o/pause')).status).toBe(200)
    expect((await act(bad, 'POST', '/api/v1/operations/o/pause')).status).toBe(429)
    expect((await act(fresh, 'GET', '/api/v1/resources')).status).toBe(200)
    expect((await act(fresh, 'POST', '/auth/logout')).status).toBe(204)
  })

  it('may cause only a bounded number of token lookups, except for stopping', async () => {
    const good = (await login('ines', { address: ADDRESS })).body.access_token
    const [header, payload, signature = ''] = String(good).split('.')
    const forged = (i: number) => `${header}.${payload}.${i.toString(36).padStart(4, 'A')}${signature.slice(4)}`
    const before = upstream.seen.length
    const answers = await Promise.all(Array.from({ length: 600 }, (_, i) => act(forged(i), 'GET', '/api/v1/resources')))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([429]))
    expect(upstream.seen.length).toBe(before)
    expect((await act(good, 'POST', '/api/v1/operations/o/pause')).status).toBe(200)
  })
})

describe('a bearer', () => {
  it('whose session belongs to someone else, or to no one, is refused although we signed it', async () => {
    const claimsOf = (token: unknown) =>
      JSON.parse(Buffer.from(String(token).split('.')[1] ?? '', 'base64url').toString()) as AccessClaims
    const rita = claimsOf((await login('rita', { address: '192.0.2.90' })).body.access_token)
    const sven = claimsOf((await login('sven', { address: '192.0.2.91' })).body.access_token)
    const key = auth.token_deps.keyring.active() as PrivateKey
    const asked = async (claims: AccessClaims) => {
      const token = signToken('access', { ...claims, jti: newJti() }, key)
      return (await send(`${gateway.url}/api/v1/resources`, { headers: bearer(token) })).status
    }
    expect(await asked(sven)).toBe(200)
    expect(await asked({ ...sven, session_id: rita.session_id })).toBe(401)
    expect(await asked({ ...sven, session_id: randomUUID() })).toBe(401)
  })
})

describe('a body', () => {
  it('that names a member twice is refused in any spelling of the name', async () => {
    for (const name of ['username', '\\u0075sername', 'user\\u006eame', 'us\\u0065rname']) {
      const body = `{"username":"eva","${name}":"olga","password":"${PASSWORD}"}`
      const answer = await send(`${auth.session.url}/auth/login`, { body })
      expect([name, answer.status, answer.body.code]).toEqual([name, 400, 'schema_violation'])
    }
  })
})
