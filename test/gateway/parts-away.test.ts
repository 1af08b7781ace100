import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Answer, type Auth, bearer, counted, PASSWORD, send, startAuth } from '../session/support/auth.ts'
import { type Link, startLink } from '../support/link.ts'
import { until } from '../support/until.ts'
import { startUpstream } from './support/upstream.ts'

let auth: Auth
let upstream: Awaited<ReturnType<typeof startUpstream>>
let gateway: Awaited<ReturnType<Auth['addGateway']>>
let links: { session: Link; identity: Link; token: Link }
let tokens: { access_token: string; refresh_token: string }

const login = () => send(`${gateway.url}/auth/login`, { body: { username: 'eva', password: PASSWORD } })
const refresh = (refresh_token: string) => send(`${gateway.url}/auth/refresh`, { body: { refresh_token } })
const read = () => send(`${gateway.url}/api/v1/resources`, { headers: bearer(tokens.access_token) })
const outcome = ({ status, body, headers }: Answer) => ({
  status,
  category: body.category,
  retryable: body.retryable,
  waits: Number(headers['retry-after']) >= 1,
})
const OUTAGE = { status: 503, category: 'unavailable', retryable: true, waits: true }

/** Takes one part away for the time of one check, then restores it. */
const without = async (link: Link, check: () => Promise<void>) => {
  link.cut()
  try {
    await check()
  } finally {
    link.mend()
  }
}

beforeAll(async () => {
  upstream = await startUpstream()
  auth = await startAuth({
    GATEWAY__UPSTREAM__CATALOG_URL: upstream.url,
    GATEWAY__UPSTREAM__OPERATIONS_URL: upstream.url,
  })
  const identity = await startLink(auth.vars.AUTH__RPC__IDENTITY_URL ?? '')
  const token = await startLink(auth.vars.AUTH__RPC__TOKEN_URL ?? '')
  const behind = { AUTH__RPC__IDENTITY_URL: identity.url, AUTH__RPC__TOKEN_URL: token.url }
  const session = await startLink((await auth.addSession(behind)).url)
  links = { session, identity, token }
  gateway = await auth.addGateway({ ...behind, GATEWAY__UPSTREAM__SESSION_URL: session.url })
  await auth.addUser('eva', ['operator', 'engineer'])
  tokens = (await login()).body as typeof tokens
})
afterAll(async () => {
  await auth?.stop()
  upstream?.stop()
  for (const link of Object.values(links ?? {})) link.stop()
})

describe('while token signs nothing', () => {
  it('signed-in people continue with cached keys; login and refresh are 503 and rotate nothing', async () => {
    await without(links.token, async () => {
      expect((await read()).status).toBe(200)
      expect(outcome(await login())).toEqual(OUTAGE)
      expect(outcome(await refresh(tokens.refresh_token))).toEqual(OUTAGE)
    })
    const again = await until(
      async () => {
        const answer = await refresh(tokens.refresh_token)
        return answer.status === 200 ? answer : undefined
      },
      { what: 'the refresh token that was not used up' },
    )
    tokens = again.body as typeof tokens
  })
})

describe('while identity is away', () => {
  it('login and refresh are 503, never 401; requests that need no principal here continue', async () => {
    await without(links.identity, async () => {
      expect(outcome(await login())).toEqual(OUTAGE)
      expect(outcome(await refresh(tokens.refresh_token))).toEqual(OUTAGE)
      expect((await read()).status).toBe(200)
      expect(
        outcome(await send(`${gateway.url}/api/v1/platform/health`, { headers: bearer(tokens.access_token) })),
      ).toEqual(OUTAGE)
    })
  })
})

describe('while session is away', () => {
  it('login, refresh and logout are refused as retryable, and no one is signed out', async () => {
    await without(links.session, async () => {
      const FAILED = { ...OUTAGE, status: 502 }
      expect(outcome(await login())).toEqual(FAILED)
      expect(outcome(await refresh(tokens.refresh_token))).toEqual(FAILED)
      const logout = await send(`${gateway.url}/auth/logout`, { method: 'POST', headers: bearer(tokens.access_token) })
      expect(outcome(logout)).toEqual(FAILED)
      expect((await read()).status).toBe(200)
      const ready = await until(
        async () => {
          const answer = await send(`${gateway.url}/health/ready`)
          return answer.body.status === 'degraded' ? answer : undefined
        },
        { what: 'the gateway to say that a part is away' },
      )
      expect(ready.status).toBe(200)
    })
  })
})

describe('while an upstream is silent or gone', () => {
  const patience = { GATEWAY__UPSTREAM__REPLY_MS: '200', AUTH__REDIS__PREFIX: '' }
  const ask = (url: string, method: 'GET' | 'POST', path: string) =>
    send(`${url}${path}`, { method, headers: { ...bearer(tokens.access_token), 'idempotency-key': 'k' } })

  it('is 504 after the reply time, sent once, and the late answer is dropped', async () => {
    const hurried = await auth.addGateway({ ...patience, AUTH__REDIS__PREFIX: auth.prefix })
    const late: (() => void)[] = []
    upstream.answerWith((_req, res) => late.push(() => res.writeHead(200).end('late')))
    const count = upstream.seen.length
    const answer = await ask(hurried.url, 'POST', '/api/v1/resources')
    expect(answer.body).toMatchObject({ status: 504, code: 'upstream_timeout', retryable: true })
    expect(answer.body).toMatchObject({
      detail: expect.stringContaining('unknown whether the request was carried out'),
      hint: expect.stringContaining('same Idempotency-Key'),
    })
    expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0)
    expect(upstream.seen.length).toBe(count + 1)
    const read = (await ask(hurried.url, 'GET', '/api/v1/resources')).body
    expect(read).toMatchObject({
      ...{ code: 'upstream_timeout', retryable: true, hint: 'Repeat the same request.' },
      detail: expect.stringMatching(/did not answer in time\.$/),
    })
    for (const send_late of late) send_late()
    upstream.answerWith((_req, res) => res.writeHead(200).end('{}'))
    expect((await ask(hurried.url, 'GET', '/api/v1/resources')).text).toBe('{}')
  })

  it('ends an answer that stops in the middle', async () => {
    const hurried = await auth.addGateway({ ...patience, AUTH__REDIS__PREFIX: auth.prefix })
    upstream.answerWith((_req, res) => void res.writeHead(200, { 'content-length': '100' }).write('half'))
    await expect(ask(hurried.url, 'GET', '/api/v1/resources')).rejects.toThrow()
    upstream.answerWith((_req, res) => res.writeHead(200).end('{}'))
  })

  it('opens the breaker after 20 failures: 503 at once, stopping is still tried, one success closes it', async () => {
    const link = await startLink(upstream.url)
    const broken = await auth.addGateway({
      GATEWAY__UPSTREAM__OPERATIONS_URL: link.url,
      AUTH__REDIS__PREFIX: auth.prefix,
    })
    const state = () => counted(broken.deps.telemetry.metrics, 'signalbox_breaker_state', { dependency: 'operations' })
    link.cut()
    for (let i = 0; i < 20; i++) expect((await ask(broken.url, 'GET', '/api/v1/intents')).status).toBe(502)
    expect(await state()).toBe(1)
    const count = upstream.seen.length
    const started = performance.now()
    for (let i = 0; i < 5; i++) {
      const refused = await ask(broken.url, 'POST', '/api/v1/plans/p/start')
      expect({ ...outcome(refused), code: refused.body.code }).toEqual({ ...OUTAGE, code: 'dependency_down' })
    }
    expect(performance.now() - started).toBeLessThan(500)
    expect((await ask(broken.url, 'POST', '/api/v1/operations/o/pause')).status).toBe(502)
    // Another dependency has its own breaker.
    expect((await ask(broken.url, 'GET', '/api/v1/resources')).status).toBe(200)
    link.mend()
    expect(upstream.seen.length).toBe(count + 1)
    expect((await ask(broken.url, 'POST', '/api/v1/operations/o/pause')).status).toBe(200)
    expect(await state()).toBe(0)
    expect((await ask(broken.url, 'GET', '/api/v1/intents')).status).toBe(200)
    link.stop()
  })

  it('learns of a client that disconnected', async () => {
    let closed = false
    upstream.answerWith((req) => req.socket.on('close', () => (closed = true)))
    const count = upstream.seen.length
    const gone = new AbortController()
    const asked = fetch(`${gateway.url}/api/v1/resources`, {
      headers: bearer(tokens.access_token),
      signal: gone.signal,
    }).catch(() => 'aborted')
    await until(() => upstream.seen.length > count, { what: 'the request at the upstream' })
    gone.abort()
    expect(await asked).toBe('aborted')
    await until(() => closed, { what: 'the end of the upstream connection' })
    upstream.answerWith((_req, res) => res.writeHead(200).end('{}'))
  })
})

describe('while the disk under a server fills up', () => {
  const say = async (free: string) => {
    await auth.redis.set(`${auth.prefix}ops:disk:postgres`, free, 'EX', 60)
    await gateway.deps.disk.read()
  }
  const kinds = async () => {
    const ask = async (method: 'GET' | 'POST', path: string) =>
      (await send(`${gateway.url}${path}`, { method, headers: { ...bearer(tokens.access_token) } })).status
    return {
      R: await ask('GET', '/api/v1/resources'),
      W: await ask('POST', '/api/v1/intents'),
      A: await ask('POST', '/api/v1/plans/p/start'),
      S: await ask('POST', '/api/v1/operations/o/pause'),
      login: (await login()).status,
    }
  }

  it('reports it below 10 %; below 5 % arming and writing wait, below 2 % all but reading', async () => {
    await say('9.9')
    expect(await kinds()).toEqual({ R: 200, W: 200, A: 200, S: 200, login: 200 })
    const checks = gateway.deps.checks.disk
    await expect(checks?.run()).rejects.toThrow('9.9 %')
    await say('4.9')
    expect(await kinds()).toEqual({ R: 200, W: 503, A: 503, S: 200, login: 200 })
    await say('1.9')
    expect(await kinds()).toEqual({ R: 200, W: 503, A: 503, S: 503, login: 503 })
    await say('50')
    expect(await kinds()).toEqual({ R: 200, W: 200, A: 200, S: 200, login: 200 })
  })
})
