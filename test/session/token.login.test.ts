import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { eq } from 'drizzle-orm'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { foldUsername } from '../../apps/shared/auth/username.ts'
import { unavailable } from '../../apps/shared/errors.ts'
import { users } from '../../db/identity/tables.ts'
import { mannWhitney } from '../bench/lib/ranks.ts'
import { startLink } from '../support/link.ts'
import { until } from '../support/until.ts'
import { type Answer, type Auth, bearer, cookieOf, counted, PASSWORD, send, startAuth } from './support/auth.ts'

let auth: Auth
const login = (username: string, password = PASSWORD, more: object = {}, headers = {}) =>
  send(`${auth.session.url}/auth/login`, { body: { username, password, ...more }, headers })

beforeAll(async () => {
  auth = await startAuth({ SESSION__LOCKOUT__FREE: '3', SESSION__LOCKOUT__CLOSE_AT: '4' })
  for (const name of ['eva', 'Jörg', 'gone', 'locked', 'device', 'many', 'race']) await auth.addUser(name)
  await auth.identity_deps.db.update(users).set({ status: 'DISABLED' }).where(eq(users.username, 'gone'))
})
afterAll(() => auth?.stop())

const shown = ({ status, headers, body }: Answer) => {
  const { request_id: _, ...rest } = body
  const { 'x-request-id': __, date: ___, ...kept } = headers
  return { status, headers: { ...kept, 'content-length': undefined }, rest }
}

describe('login', () => {
  it('answers exactly the four fields of the specification in JSON mode (ASVS 7.2.2)', async () => {
    const answer = await login('eva')
    expect(answer.status).toBe(200)
    expect(Object.keys(answer.body).sort()).toEqual(['access_token', 'expires_in', 'refresh_token', 'token_type'])
    expect(answer.body).toMatchObject({ token_type: 'Bearer', expires_in: 900 })
    expect(answer.headers['cache-control']).toBe('no-store')
    expect(answer.headers['set-cookie']).toBeUndefined()
  })

  it('that is over before its answer leaves no session, and no word of a new device', async () => {
    const { id } = await auth.addUser('late')
    const { issuer } = auth.session.deps
    const { issue } = issuer
    const slow = vi.spyOn(issuer, 'issue').mockImplementation(async (...about) => {
      const issued = await issue(...about)
      await delay(1600)
      return issued
    })
    const rows = () => auth.redis.xlen(`${auth.prefix}auth:audit`)
    const before = await rows()
    try {
      expect((await login('late', PASSWORD, {}, { 'x-request-deadline': '1500' })).status).toBe(503)
      await until(async () => (await auth.redis.keys(`${auth.prefix}sess:{${id}}:*`)).length === 0)
      expect(await rows()).toBe(before)
    } finally {
      slow.mockRestore()
    }
  })

  it('is answered even if the session that it replaces in the browser cannot be ended now', async () => {
    const inCookie = (cookie = '') =>
      send(`${auth.session.url}/v1/token?response_mode=cookie`, {
        body: { username: 'eva', password: PASSWORD },
        headers: cookie ? { cookie } : {},
      })
    const first = cookieOf(await inCookie())
    const lost = vi
      .spyOn(auth.session.deps.store, 'revoke')
      .mockRejectedValueOnce(unavailable('Redis is away.', undefined, 'unavailable'))
    try {
      expect((await inCookie(first)).status).toBe(200)
    } finally {
      lost.mockRestore()
    }
  })

  it('finds a name in any case and composition', async () => {
    expect((await login('JÖRG'.normalize('NFD'))).status).toBe(200)
  })

  it('answers alike for an unknown, a disabled and a wrong user, and at the next tick of 50 ms', async () => {
    const answers: Answer[] = []
    for (const [name, password] of [
      ['nobody', PASSWORD],
      ['gone', PASSWORD],
      ['eva', 'Wrong-Horse-7-Battery'],
    ] as const) {
      const started = performance.now()
      answers.push(await login(name, password))
      expect(performance.now() - started).toBeGreaterThan(45)
    }
    expect(shown(answers[0] as Answer)).toMatchObject({
      status: 401,
      rest: { category: 'invalid_credentials', code: 'invalid_credentials' },
    })
    expect(shown(answers[1] as Answer)).toEqual(shown(answers[0] as Answer))
    expect(shown(answers[2] as Answer)).toEqual(shown(answers[0] as Answer))
  })

  it('takes as long for an unknown, a disabled and a wrong user: no rank test distinguishes them', async () => {
    const free = { SESSION__LOCKOUT__FREE: '1000', SESSION__LOCKOUT__CLOSE_AT: '1000000' }
    await auth.addUser('timed')
    const { url } = await auth.addSession(free)
    const names = ['nobody-at-all', 'gone', 'timed'] as const
    const times = { 'nobody-at-all': [] as number[], gone: [] as number[], timed: [] as number[] }
    const lane = async (lane: number) => {
      for (let i = lane; i < lane + 40; i++) {
        const name = names[i % 3] as (typeof names)[number]
        const started = performance.now()
        const body = { username: name, password: `Wrong-Horse-7-Battery-${i}` }
        expect((await send(`${url}/auth/login`, { body })).status).toBe(401)
        times[name].push(performance.now() - started)
      }
    }
    await Promise.all([0, 1, 2].map(lane))
    // Equal samples fall below this once in ten thousand runs.
    for (const [one, other] of [
      [times.timed, times.gone],
      [times.timed, times['nobody-at-all']],
      [times.gone, times['nobody-at-all']],
    ] as const)
      expect(mannWhitney(one, other)).toBeGreaterThan(0.0001)
  })

  it('takes a name as long as a provider may give it: without the provider, the account may get a password', async () => {
    const username = `${'n'.repeat(64)}@${'d'.repeat(40)}.test`
    const { id } = await auth.addUser('long')
    await auth.identity_deps.db.update(users).set({ username, folded: username }).where(eq(users.id, id))
    const answer = await send(`${auth.session.url}/auth/login`, { body: { username, password: PASSWORD } })
    expect(answer.status).toBe(200)
  })

  it('refuses invalid requests before any lookup', async () => {
    const cases: [object | string, string][] = [
      [{ username: 'eva' }, 'schema_violation'],
      [{ username: 'eva', password: PASSWORD, role: 'admin' }, 'schema_violation'],
      [{ username: 'eva', password: 'x'.repeat(129) }, 'schema_violation'],
      [{ username: 'eva', password: `${'🦊'.repeat(128)}x` }, 'schema_violation'],
      [{ username: 7, password: PASSWORD }, 'schema_violation'],
      ['{"username":"eva","username":"ada","password":"x"}', 'schema_violation'],
      ['{', 'malformed_json'],
    ]
    for (const [body, code] of cases) {
      const answer = await send(`${auth.session.url}/auth/login`, { body })
      expect([answer.status, answer.body.code], JSON.stringify(body)).toEqual([400, code])
    }
    const text = await send(`${auth.session.url}/auth/login`, {
      body: 'a=b',
      headers: { 'content-type': 'text/plain' },
    })
    expect([text.status, text.body.code]).toEqual([415, 'unsupported_media_type'])
    const long = await send(`${auth.session.url}/auth/login`, {
      body: { username: 'eva', password: 'x'.repeat(20_000) },
    })
    expect([long.status, long.body.code]).toEqual([413, 'body_too_large'])
  })

  it('closes a name after too many failures, whether or not it exists, even for the right password', async () => {
    for (const name of ['locked', 'a-ghost']) {
      for (let i = 0; i < 4; i++) expect((await login(name, 'Wrong-Horse-7-Battery')).status).toBe(401)
      const answer = await login(name)
      expect([answer.status, answer.body.code, answer.body.retryable]).toEqual([429, 'login_locked', false])
      expect(answer.body.hint).toBe('Ask an administrator to unlock the account.')
      expect(answer.headers).not.toHaveProperty('retry-after')
    }
  })

  it('names the account, its failures and its lock in the audit', async () => {
    const { id } = await auth.addUser('traced')
    for (let i = 0; i < 4; i++) await login('traced', 'Wrong-Horse-7-Battery')
    const rows = await auth.redis.xrange(`${auth.prefix}auth:audit`, '-', '+')
    const all = rows.map(([, [, row]]) => JSON.parse(row ?? '{}'))
    const own = all.filter(({ object, reason }) => object === `user:${id}` && reason === 'wrong_password')
    const details = own.map(({ body }) => JSON.parse(body).details)
    expect(details.map(({ failures }) => failures)).toEqual([1, 2, 3, 4])
    expect(details.map(({ locked_until }) => typeof locked_until)).toEqual(['object', 'object', 'object', 'string'])
    expect(Date.parse(details.at(-1).locked_until)).toBeGreaterThan(Date.now() - 10_000)
  })

  it('does not count a right password whose second factor could not be looked up', async () => {
    const link = await startLink(auth.vars.AUTH__RPC__IDENTITY_URL ?? '')
    const { url, deps } = await auth.addSession({
      AUTH__RPC__IDENTITY_URL: link.url,
      SESSION__SECOND_FACTOR__ROLES: '["operator"]',
    })
    await auth.addUser('unlucky', ['operator'])
    link.watch((_connection, direction, bytes) => {
      if (direction === 'sent' && bytes.includes('/GetPrincipal')) link.cut()
    })
    const answer = await send(`${url}/auth/login`, { body: { username: 'unlucky', password: PASSWORD } })
    expect(answer).toMatchObject({ status: 503, body: { retryable: true } })
    expect(await auth.redis.exists(`${auth.prefix}lock:name:${deps.nameOf(foldUsername('unlucky'))}`)).toBe(0)
    link.stop()
  })

  it('locks a name twice as long with each failure above the free ones, at most for 900 s (ASVS 6.3.1)', async () => {
    const { store } = auth.session.deps
    const name = 'a-name-by-hash'
    const locks: number[] = []
    for (let n = 1; n <= 17; n++) {
      const begun = await store.beginLogin({ name }, { free: 5, max_s: 900, close_at: 100 })
      if (!('charge' in begun)) throw new Error(`attempt ${n} met a lock`)
      const left = await store.beginLogin({ name }, { free: 5, max_s: 900, close_at: 100 })
      if ('charge' in left) await store.refundLogin(left.charge, { free: 5, max_s: 900, close_at: 100 })
      locks.push('locked_ms' in left ? Math.ceil((left.locked_ms ?? 0) / 1000) : 0)
      await auth.redis.hset(`${auth.prefix}lock:name:${name}`, 'locked_until', '0')
    }
    // A free failure is refunded above, so each step adds one failure.
    expect(locks.slice(0, 5)).toEqual([0, 0, 0, 0, 0])
    locks.slice(5).forEach((seconds, i) => {
      const expected = Math.min(2 ** (i + 1), 900)
      expect(seconds).toBeLessThanOrEqual(expected)
      expect(seconds).toBeGreaterThan(expected - 2)
    })
    expect(await auth.redis.ttl(`${auth.prefix}lock:name:${name}`)).toBeGreaterThan(86_000)
  })

  it('reports a network from which more than fifty names fail, once in ten minutes, whichever address it uses (ASVS 6.3.1)', async () => {
    const reports = async () => {
      const rows = await auth.redis.xrange(`${auth.prefix}auth:audit`, '-', '+')
      const all = rows.map(([, [, row]]) => JSON.parse(row ?? '{}'))
      return all.filter(({ action }) => action === 'spray_suspected').map(({ body }) => JSON.parse(body).details)
    }
    const guess = (i: number, network: string, name = `spray-${i}`) =>
      login(name, 'Wrong-Horse-7-Battery', {}, { 'x-forwarded-for': `${network}.${i}` })
    // One name that fails often is no spray, and names that fail from two networks are counted apart.
    for (let i = 0; i < 30; i++) await Promise.all([guess(i, '198.51.100'), guess(i, '203.0.113')])
    expect(await reports()).toEqual([])
    await Promise.all(Array.from({ length: 40 }, (_, i) => guess(i + 30, '203.0.113')))
    expect(await reports()).toEqual([{ network: '203.0.113.0/24' }])
  })

  it('counts parallel guesses before it checks them', async () => {
    const answers = await Promise.all(Array.from({ length: 12 }, () => login('many', 'Wrong-Horse-7-Battery')))
    expect(answers.filter(({ status }) => status === 401)).toHaveLength(4)
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(8)
  })

  it('accepts a known device while its name is locked, and only there', async () => {
    const first = await login('device', PASSWORD, { remember_device: true })
    const device_token = String(first.body.device_token)
    expect(device_token).toMatch(/^d1\./)
    for (let i = 0; i < 4; i++) await login('device', 'Wrong-Horse-7-Battery')
    expect((await login('device')).status).toBe(429)
    const again = await login('device', PASSWORD, { device_token })
    expect(again.status).toBe(200)
    expect(again.body.device_token).toMatch(/^d1\./)
    // Another user's or a forged token has no effect.
    expect((await login('locked', PASSWORD, { device_token })).status).toBe(429)
    expect(
      (
        await login('device', PASSWORD, {
          device_token: `${device_token.slice(0, -2)}${device_token.endsWith('xx') ? 'yy' : 'xx'}`,
        })
      ).status,
    ).toBe(429)
  })

  it('forgets a device after ten failures of its own: it counts as unknown, and its success clears only its bucket', async () => {
    const { store } = auth.session.deps
    const settings = { free: 3, max_s: 900, close_at: 4 }
    const known = { name: 'name-of-a-device', device: 'a-device' }
    const begin = async () => {
      const begun = await store.beginLogin(known, settings)
      return 'charge' in begun ? begun.charge : undefined
    }
    for (let i = 0; i < 10; i++) expect((await begin())?.bucket).toBe('device')
    expect((await begin())?.bucket).toBe('name')
    for (let i = 0; i < 3; i++) await begin()
    expect(await begin()).toBeUndefined()
    await auth.redis.del(`${auth.prefix}lock:dev:a-device`)
    const charge = await begin()
    expect(charge?.bucket).toBe('device')
    if (charge) await store.loginSucceeded(charge)
    expect(await auth.redis.exists(`${auth.prefix}lock:dev:a-device`)).toBe(0)
    expect(await auth.redis.ttl(`${auth.prefix}lock:name:name-of-a-device`)).toBe(-1)
    expect(await store.beginLogin({ name: known.name }, settings)).toHaveProperty('locked_ms')
  })

  it('takes back a charge if the password could not be checked', async () => {
    const broken = await auth.addSession({ AUTH__RPC__CREDENTIAL_URL: 'http://127.0.0.1:9' })
    for (let i = 0; i < 6; i++) {
      const answer = await send(`${broken.url}/auth/login`, { body: { username: 'race', password: PASSWORD } })
      expect([answer.status, answer.body.category, answer.body.code]).toEqual([503, 'unavailable', 'dependency_down'])
      expect(answer.headers['retry-after']).toBeDefined()
    }
    expect((await login('race')).status).toBe(200)
  })

  it('moves exactly the counters of the specification', async () => {
    const { metrics } = auth.session.deps.telemetry
    const before = [
      await counted(metrics, 'user_login_total'),
      await counted(metrics, 'http_requests_total', { endpoint: '/auth/login', status: '200' }),
    ]
    await login('eva')
    await login('eva')
    await login('eva', 'Wrong-Horse-7-Battery')
    const after = [
      await counted(metrics, 'user_login_total'),
      await counted(metrics, 'http_requests_total', { endpoint: '/auth/login', status: '200' }),
    ]
    expect(after).toEqual(before.map((value) => value + 2))
    expect(await counted(metrics, 'http_requests_total', { endpoint: '/auth/login', status: '401' })).toBeGreaterThan(0)
  })
})

describe('sessions of a user', () => {
  it('are at most as many as the limit allows: the oldest is evicted and its event promised (ASVS 7.1.2)', async () => {
    const small = await auth.addSession({ SESSION__CAP__PER_USER: '2' })
    const user = await auth.addUser('capped')
    const logins: Answer[] = []
    for (let i = 0; i < 3; i++)
      logins.push(await send(`${small.url}/auth/login`, { body: { username: 'capped', password: PASSWORD } }))
    const list = await send(`${small.url}/v1/sessions`, { headers: bearer(logins[2]?.body.access_token) })
    expect(list.body.items).toHaveLength(2)
    const refresh = await send(`${small.url}/auth/refresh`, { body: { refresh_token: logins[0]?.body.refresh_token } })
    expect(refresh.status).toBe(401)
    const entries = await auth.redis.xrange(`${auth.prefix}auth:revoked`, '-', '+')
    expect(entries.some(([, fields]) => fields.includes('evicted') && fields.includes(user.id))).toBe(true)
  })

  it('count only while they last: those idle for too long make room first, and are not reported as ended', async () => {
    const small = await auth.addSession({ SESSION__CAP__PER_USER: '2', SESSION__IDLE__LIMIT_S: '900' })
    const { id } = await auth.addUser('idler')
    const again = async () =>
      (await send(`${small.url}/auth/login`, { body: { username: 'idler', password: PASSWORD } })).body
    const idle = async ({ access_token }: Answer['body']) => {
      const { session_id } = JSON.parse(Buffer.from(String(access_token).split('.')[1] ?? '', 'base64url').toString())
      await auth.redis.hset(`${auth.prefix}sess:{${id}}:${session_id}`, 'last_used_at', (Date.now() - 901_000) * 1000)
    }
    const [alive, dead] = [await again(), await again()]
    await idle(dead)
    const next = await again()
    const { status, body } = await send(`${small.url}/auth/refresh`, { body: { refresh_token: alive.refresh_token } })
    expect(status).toBe(200)
    await idle(next)
    const others = await send(`${small.url}/v1/sessions/revoke-others`, {
      method: 'POST',
      headers: { ...bearer(body.access_token), 'idempotency-key': randomUUID() },
    })
    expect(others).toMatchObject({ status: 200, body: { revoked: 0 } })
    expect(await auth.redis.keys(`${auth.prefix}sess:{${id}}:*`)).toHaveLength(1)
  })

  it('never hold the refresh token itself', async () => {
    const { body } = await login('eva')
    for (const key of await auth.redis.keys(`${auth.prefix}sess:*`)) {
      expect(Object.values(await auth.redis.hgetall(key))).not.toContain(body.refresh_token)
      expect(await auth.redis.ttl(key)).toBeGreaterThan(2_591_000)
    }
  })
})

describe('a disable that races a login', () => {
  it('leaves no session behind', async () => {
    await auth.addUser('racing')
    const slow = await auth.addSession()
    const { identity } = slow.deps
    // The user is disabled between the check of the password and the issue of tokens.
    slow.deps.identity = {
      ...identity,
      getUser: async (request, options) => {
        await auth.identity_deps.db.update(users).set({ status: 'DISABLED' }).where(eq(users.username, 'racing'))
        return identity.getUser(request, options)
      },
    }
    const answer = await send(`${slow.url}/auth/login`, { body: { username: 'racing', password: PASSWORD } })
    expect([answer.status, answer.body.code]).toEqual([401, 'invalid_credentials'])
    expect(cookieOf(answer)).toBe('')
  })
})
