import { randomUUID } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { loadCredentialConfig } from '../../apps/credential/config.ts'
import { loadSessionConfig } from '../../apps/session/config.ts'
import { parseRate } from '../../apps/shared/web/rates.ts'
import { startUpstream } from '../gateway/support/upstream.ts'
import { type Auth, bearer, cookieOf, counted, ORIGIN, PASSWORD, send, startAuth } from '../session/support/auth.ts'
import { until } from '../support/until.ts'

/** auth.md 8 and 14.5: the numbers, and how a flood of logins is treated. */

let auth: Auth
let flooded: Auth
const WRONG = 'Wrong-Horse-7-Battery'
const from = (address: string) => ({ 'x-forwarded-for': address })

beforeAll(async () => {
  auth = await startAuth({
    SESSION__LIMITS__REFRESH: '10/60/10',
    SESSION__LIMITS__PASSWORD: '5/600/5',
    SESSION__LIMITS__LOGIN_FAILURES: '4/86400/4',
  })
  flooded = await startAuth({
    CREDENTIAL__HASH__CONCURRENCY: '2',
    CREDENTIAL__HASH__QUEUE_MAX: '3',
    CREDENTIAL__HASH__PER_KEY: '2',
    CREDENTIAL__HASH__MEMORY_KIB: '32768',
  })
  await auth.addUser('eva')
  await flooded.addUser('eva')
})
afterAll(async () => {
  await auth?.stop()
  await flooded?.stop()
})

const login = (at: Auth, username: string, password = PASSWORD, headers = {}) =>
  send(`${at.session.url}/auth/login`, { body: { username, password }, headers })

it('a limit of more than two million a second is taken, not an error', async () => {
  const rate = parseRate('9999999/1/10')
  expect(await auth.session.deps.store.limit([{ key: 'many', rate }])).toBeUndefined()
})

describe('the limits of the design', () => {
  it('are the defaults (ASVS 6.1.1, 7.1.1, 7.1.2)', () => {
    const secret = JSON.stringify([Buffer.from(randomUUID().slice(0, 32)).toString('base64').slice(0, 43)])
    const config = loadSessionConfig({
      SESSION__DATABASE__URL: 'postgres://db/x',
      SESSION__REDIS__URL: 'redis://redis',
      SESSION__SECRET__KEYS: secret,
      AUTH__SECRET__KEYS: secret,
    })
    expect(config.limits).toEqual({
      refresh: { count: 20, seconds: 60, burst: 30 },
      password: { count: 5, seconds: 600, burst: 5 },
      login_failures: { count: 100, seconds: 86_400, burst: 100 },
      machine_failures: { count: 60, seconds: 60, burst: 60 },
    })
    expect(config).toMatchObject({
      SESSION__LOCKOUT__FREE: 5,
      SESSION__LOCKOUT__MAX_S: 900,
      SESSION__LOCKOUT__CLOSE_AT: 100,
      SESSION__REFRESH__RETRY_WINDOW_S: 10,
      SESSION__CAP__PER_USER: 20,
      SESSION__IDLE__LIMIT_S: 0,
      SESSION__BINDING__MODE: 'ua',
      SESSION__BINDING__ACTION: 'signal',
      SESSION__REDIS__WAIT_REPLICAS: 0,
      TOKEN__TOKENS__COOKIE_NAME: 'refresh_token',
      TOKEN__TOKENS__COOKIE_PATH: '/v1/token',
      TOKEN__TOKENS__COOKIE_DOMAIN: '',
      TOKEN__TOKENS__COOKIE_SECURE: true,
      TOKEN__TOKENS__COOKIE_HTTPONLY: true,
      TOKEN__TOKENS__COOKIE_SAMESITE: 'strict',
    })
    const credential = loadCredentialConfig({
      CREDENTIAL__DATABASE__URL: 'postgres://db/x',
      CREDENTIAL__ENROLMENT__KEY: 'A'.repeat(43),
      CREDENTIAL__FACTORS__KEK: 'A'.repeat(43),
      UV_THREADPOOL_SIZE: '14',
    })
    expect(credential).toMatchObject({
      CREDENTIAL__HASH__CONCURRENCY: Math.min(10, Math.max(2, availableParallelism())),
      CREDENTIAL__HASH__QUEUE_MAX: 100,
      CREDENTIAL__HASH__QUEUE_WAIT_MS: 2000,
      CREDENTIAL__HASH__PER_KEY: 3,
      CREDENTIAL__HASH__MEMORY_KIB: 65_536,
      CREDENTIAL__HASH__TIME: 3,
      CREDENTIAL__HASH__PARALLELISM: 4,
      CREDENTIAL__ENROLMENT__TTL_S: 3600,
    })
  })
})

describe('a limit', () => {
  it('on refreshes counts per session, after the token verified, and the session lives on', async () => {
    const other = (await login(auth, 'eva')).body
    let { refresh_token } = (await login(auth, 'eva')).body
    const refresh = (token: unknown) => send(`${auth.session.url}/auth/refresh`, { body: { refresh_token: token } })
    for (let i = 0; i < 10; i++) {
      const next = await refresh(refresh_token)
      expect([i, next.status]).toEqual([i, 200])
      refresh_token = next.body.refresh_token
    }
    const over = await refresh(refresh_token)
    expect([over.status, over.body.category, over.body.code]).toEqual([429, 'rate_limited', 'rate_limited'])
    expect(Number(over.headers['retry-after'])).toBeGreaterThanOrEqual(1)
    expect((await refresh(other.refresh_token)).status).toBe(200)
    const { metrics } = auth.session.deps.telemetry
    expect(await counted(metrics, 'signalbox_rate_limited_total', { class: 'refresh_session' })).toBe(1)
  })

  it('on password checks is shared by change and reauthentication', async () => {
    const { access_token } = (await login(auth, 'eva')).body
    const reauth = () =>
      send(`${auth.session.url}/v1/token/reauth`, { body: { password: PASSWORD }, headers: bearer(access_token) })
    for (let i = 0; i < 5; i++) expect((await reauth()).status).toBe(200)
    expect([(await reauth()).status, (await reauth()).body.code]).toEqual([429, 'rate_limited'])
    const change = await send(`${auth.session.url}/v1/users/me/password`, {
      body: { current_password: PASSWORD, new_password: 'Another-Staple-9-Lantern' },
      headers: { ...bearer(access_token), 'idempotency-key': randomUUID() },
    })
    expect(change.status).toBe(429)
    expect((await login(auth, 'eva')).status).toBe(200)
  })

  it('on failed logins of one address blocks it at the gateway for an hour', async () => {
    const gateway = (await auth.addGateway()).url
    const attempt = (username: string, password: string) =>
      send(`${gateway}/auth/login`, { body: { username, password } })
    for (let i = 0; i < 5; i++) expect((await attempt(`ghost-${i}`, WRONG)).status).toBe(401)
    const blocked = await attempt('eva', PASSWORD)
    expect([blocked.status, blocked.body.code]).toEqual([429, 'rate_limited'])
    expect(Number(blocked.headers['retry-after'])).toBeGreaterThan(3500)
  })
})

describe('an address that a stranger has used up', () => {
  const LIMITS = { GATEWAY__LIMITS__REFRESH_IP: '1/600/2', GATEWAY__LIMITS__PAGE_IP: '1/600/2' }

  it('still renews the tokens of its people, in both modes', async () => {
    const { url } = await auth.addGateway(LIMITS)
    const renew = (refresh_token: unknown) => send(`${url}/auth/refresh`, { body: { refresh_token } })
    const own = (await login(auth, 'eva')).body.refresh_token
    const cookies = '/v1/token?response_mode=cookie'
    const tab = await send(`${auth.session.url}${cookies}`, { body: { username: 'eva', password: PASSWORD } })
    const [head = '', payload = ''] = String(own).split('.')
    const forged = `${head}.${payload}.${Buffer.alloc(256).toString('base64url')}`
    for (const [token, status] of [
      ['x', 401],
      [forged, 401],
      [forged, 429],
    ])
      expect((await renew(token)).status).toBe(status)
    expect((await renew(own)).status).toBe(200)
    const again = await send(`${url}${cookies}`, {
      body: {},
      headers: { cookie: cookieOf(tab), 'x-csrf-token': String(tab.body.csrf_token), origin: ORIGIN },
    })
    expect(again.status).toBe(200)
    // A tab that opens needs its CSRF token first.
    const page = (cookie?: string) =>
      send(`${url}/v1/token/csrf`, { headers: { 'sec-fetch-site': 'same-origin', ...(cookie && { cookie }) } })
    for (const status of [401, 401, 429]) expect((await page()).status).toBe(status)
    expect((await page(cookieOf(again))).status).toBe(200)
  })

  it('has a limit for the reads of the sign-in page that is not that of renewals', async () => {
    const { url } = await auth.addGateway({ ...LIMITS, GATEWAY__HTTP__TRUSTED_PROXIES: '["127.0.0.0/8"]' })
    const headers = from('198.51.100.7')
    const providers = () => send(`${url}/v1/providers`, { headers })
    for (const status of [200, 200, 429]) expect((await providers()).status).toBe(status)
    const renewal = () => send(`${url}/v1/token`, { body: { refresh_token: 'x' }, headers })
    expect((await renewal()).status).toBe(401)
  })

  it('still signs in by a passkey, a second factor and the code of a provider, as often as its pages are read', async () => {
    const more = { GATEWAY__LIMITS__PAGE_IP: '1/600/4', GATEWAY__HTTP__TRUSTED_PROXIES: '["127.0.0.0/8"]' }
    const { url } = await auth.addGateway({ ...LIMITS, ...more })
    const ask = async (body: object) => {
      const { status } = await send(`${url}/v1/token`, { body, headers: from('198.51.100.8') })
      return status
    }
    for (const status of [401, 401, 429]) expect(await ask({ refresh_token: 'x' })).toBe(status)
    const response = { clientDataJSON: 'e30', authenticatorData: 'x', signature: 'x' }
    const assertion = { id: 'x', rawId: 'x', type: 'public-key', response, clientExtensionResults: {} }
    const code = { code: 'x', code_verifier: 'x'.repeat(43), redirect_uri: 'http://127.0.0.1/' }
    const passkey = { grant_type: 'passkey', assertion }
    for (const [body, status] of [
      [passkey, 409],
      [{ grant_type: 'second_factor', factor_token: 'x', totp: '123456' }, 409],
      [{ grant_type: 'second_factor', factor_token: 'x', assertion }, 409],
      [{ grant_type: 'authorization_code', ...code }, 401],
      [passkey, 429],
    ] as const)
      expect([body, await ask(body)]).toEqual([body, status])
  })

  it('limits a session by its own bucket, which no other session shares', async () => {
    const { url } = await auth.addGateway(LIMITS)
    const renew = (refresh_token: unknown) => send(`${url}/auth/refresh`, { body: { refresh_token } })
    const [one, other] = [(await login(auth, 'eva')).body, (await login(auth, 'eva')).body]
    let token = one.refresh_token
    for (let i = 0; i < 2; i++) token = (await renew(token)).body.refresh_token
    expect((await renew(token)).status).toBe(429)
    expect((await renew(other.refresh_token)).status).toBe(200)
  })
})

describe('a flood of logins', () => {
  it('runs and queues a bounded number of hashes, and answers the rest login_busy at once, for right and wrong passwords alike', async () => {
    const names = ['eva', ...Array.from({ length: 39 }, (_, i) => `ghost-${i}`)]
    const { metrics } = flooded.session.deps.telemetry
    const before = await counted(metrics, 'signalbox_user_login_failures_total')
    const answers = await Promise.all(names.map((name, i) => login(flooded, name, PASSWORD, from(`192.0.2.${i + 1}`))))
    const busy = answers.filter(({ status }) => status === 503)
    expect(busy.length).toBeGreaterThan(20)
    for (const { body, headers } of busy) {
      expect([body.category, body.code, body.retryable]).toEqual(['unavailable', 'login_busy', true])
      expect(Number(headers['retry-after'])).toBeGreaterThanOrEqual(1)
      expect(body.detail).toBe(`The server is busy. Try again in ${headers['retry-after']} s.`)
    }
    const checked = answers.filter(({ status }) => status === 401 || status === 200)
    expect(checked.length + busy.length).toBe(40)
    // A login that was not checked is not charged: no failure counted, no lock left behind.
    expect(await counted(metrics, 'signalbox_user_login_failures_total')).toBe(
      before + answers.filter(({ status }) => status === 401).length,
    )
    const locks = await flooded.redis.keys(`${flooded.prefix}lock:name:*`)
    expect(locks.length).toBe(answers.filter(({ status }) => status === 401).length)
    expect((await login(flooded, 'eva')).status).toBe(200)
  })

  it("beyond the gateway's limit is refused before anything is charged, looked up or asked", async () => {
    const { url } = await flooded.addGateway({
      GATEWAY__LOGIN__AT_ONCE: '2',
      GATEWAY__HTTP__TRUSTED_PROXIES: '["127.0.0.0/8"]',
    })
    const { metrics } = flooded.session.deps.telemetry
    const asked = () =>
      counted(metrics, 'signalbox_dependency_calls_total', { dependency: 'identity', op: 'GetUserByUsername' })
    const before = await asked()
    const crush = (path: string) => (name: string, i: number) =>
      send(`${url}${path}`, { body: { username: name, password: WRONG }, headers: from(`203.0.113.${i + 1}`) })
    const names = Array.from({ length: 10 }, (_, i) => `crush-${i}`)
    for (const path of ['/auth/login', '/v1/token']) {
      const answers = await Promise.all(names.map(crush(path)))
      expect(answers.map(({ status }) => status).sort()).toEqual([401, 401, ...Array(8).fill(503)])
      expect(answers.filter(({ body }) => body.code === 'login_busy').length).toBe(8)
    }
    expect((await asked()) - before).toBe(4)
    expect((await flooded.redis.keys(`${flooded.prefix}lim:login_ip:*`)).length).toBeLessThanOrEqual(4)
    const refresh = await send(`${url}/v1/token`, { body: { refresh_token: 'none' } })
    expect(refresh.status).toBe(401)
    expect((await send(`${url}/auth/login`, { body: { username: 'eva', password: PASSWORD } })).status).toBe(200)
  })

  it('still lets signed-in people stop operations, gates, patches and their own sessions', async () => {
    const upstream = await startUpstream()
    const { url } = await flooded.addGateway({
      GATEWAY__UPSTREAM__OPERATIONS_URL: upstream.url,
      GATEWAY__HTTP__TRUSTED_PROXIES: '["127.0.0.0/8"]',
    })
    const signIn = (i: number) =>
      send(`${url}/v1/token`, { body: { username: 'eva', password: PASSWORD }, headers: from(`192.0.2.${100 + i}`) })
    const { access_token } = (await signIn(1)).body
    const other = (await signIn(2)).body.access_token
    const claims = JSON.parse(Buffer.from(String(other).split('.')[1] ?? '', 'base64url').toString())
    const act = (method: 'POST' | 'DELETE', path: string) =>
      send(`${url}${path}`, {
        method,
        headers: { ...bearer(access_token), ...from('192.0.2.101'), 'idempotency-key': randomUUID() },
      })
    let over = false
    let [n, starved] = [0, 0]
    const stranger = async () => {
      while (!over) {
        const i = n++
        const { status } = await login(flooded, `starve-${i}`, WRONG, from(`198.18.${i % 250}.${(i >> 8) % 250}`))
        if (status === 503) starved += 1
      }
    }
    /** Waits until many more logins have been refused as busy. */
    const starving = async () => {
      const before = starved
      await until(async () => starved > before + 20, { what: 'logins that starve' })
    }
    const crowd = Promise.all(Array.from({ length: 24 }, stranger))
    try {
      await starving()
      for (const [method, path, status] of [
        ['POST', '/api/v1/operations/o/pause', 200],
        ['POST', '/api/v1/operations/o/cancel', 200],
        ['POST', '/api/v1/operations/o/gates/g/reject', 200],
        ['POST', '/api/v1/operations/o/patches/p/reject', 200],
        ['DELETE', `/api/v1/sessions/${claims.session_id}`, 204],
        ['POST', '/auth/logout', 204],
      ] as const)
        expect([path, (await act(method, path)).status]).toEqual([path, status])
      // It had not ended in the meantime.
      await starving()
    } finally {
      over = true
      await crowd
      upstream.stop()
    }
    const again = await send(`${url}/api/v1/sessions`, { headers: bearer(other) })
    expect(again.status).toBe(401)
  }, 120_000)

  it('from one address takes its share of the queue and no more', async () => {
    const names = Array.from({ length: 8 }, (_, i) => `crowd-${i}`)
    const answers = await Promise.all(names.map((name) => login(flooded, name, WRONG, from('198.51.100.1'))))
    expect(answers.filter(({ status }) => status === 503).length).toBeGreaterThanOrEqual(4)
    expect((await login(flooded, 'eva', PASSWORD, from('192.0.2.50'))).status).toBe(200)
  })

  it('at a locked name costs no hash', async () => {
    for (let i = 0; i < 6; i++) await login(flooded, 'besieged', WRONG, from('192.0.2.60'))
    const hashes = async () => {
      const text = await flooded.credential_deps.telemetry.metrics.metrics()
      return Number(/^signalbox_hash_wait_seconds_count\S* (\d+)/m.exec(text)?.[1])
    }
    const before = await hashes()
    for (let i = 0; i < 5; i++) expect((await login(flooded, 'besieged')).status).toBe(429)
    expect(await hashes()).toBe(before)
  })
})
