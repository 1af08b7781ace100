import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { ROUTES } from '../../apps/gateway/routes/table.ts'
import { PART_SILENT_S, PART_TTL_S, reportPart } from '../../apps/shared/http/lifecycle.ts'
import { signToken } from '../../apps/shared/jwt/sign.ts'
import {
  type Answer,
  type Auth,
  bearer,
  cookieOf,
  counted,
  ORIGIN,
  PASSWORD,
  send,
  startAuth,
} from '../session/support/auth.ts'
import { serverUrl } from '../support/database.ts'
import { until } from '../support/until.ts'
import { raw, startUpstream } from './support/upstream.ts'

let auth: Auth
let upstream: Awaited<ReturnType<typeof startUpstream>>
let gateway: Awaited<ReturnType<Auth['addGateway']>>
let token: string
let user_id: string

const api = (path: string, options: Parameters<typeof send>[1] = {}) =>
  send(`${gateway.url}${path}`, { ...options, headers: { ...bearer(token), ...options.headers } })
const claims = (text: unknown) =>
  JSON.parse(Buffer.from(String(text).split('.')[1] ?? '', 'base64url').toString()) as Record<string, string>
const login = (query = '', headers = {}): Promise<Answer> =>
  send(`${gateway.url}/v1/token${query}`, { body: { username: 'eva', password: PASSWORD }, headers })
/** Makes the token's session known to a gateway with other limits, which are counted under their own prefix. */
const knowSession = (prefix: string) => auth.redis.set(`${prefix}sid:${claims(token).session_id}`, user_id)
const codeOf = ({ status, body }: Answer) => [status, body.code]

beforeAll(async () => {
  upstream = await startUpstream()
  auth = await startAuth({
    GATEWAY__UPSTREAM__CATALOG_URL: upstream.url,
    GATEWAY__UPSTREAM__OPERATIONS_URL: upstream.url,
  })
  mkdirSync(join(auth.console_dir, 'assets'))
  const pageIn = (language: string) =>
    `<!doctype html><html lang="${language}"><head><meta name="signalbox-tier" content="" /><title>x</title></head></html>`
  writeFileSync(join(auth.console_dir, 'index.html'), pageIn('en'))
  writeFileSync(join(auth.console_dir, 'index.de.html'), pageIn('de'))
  writeFileSync(join(auth.console_dir, 'assets/main-abc.js'), `console.log(${'1'.repeat(2000)})`)
  gateway = await auth.addGateway()
  user_id = (await auth.addUser('eva', ['operator', 'engineer'])).id
  token = String((await login()).body.access_token)
})
afterAll(async () => {
  await auth?.stop()
  upstream?.stop()
})

describe('what reaches an upstream', () => {
  it('is answered to HEAD as to GET without the body; requests with side effects or streams are refused', async () => {
    const [full, head] = [await api('/api/v1/resources'), await api('/api/v1/resources', { method: 'HEAD' })]
    expect([head.status, head.text]).toEqual([200, ''])
    for (const name of ['content-type', 'content-length', 'content-security-policy'])
      expect([name, head.headers[name]]).toEqual([name, full.headers[name]])
    expect(upstream.last()?.method).toBe('GET')
    // The rest of a long body is not read: its upstream can never write it all.
    const cut = Promise.withResolvers<void>()
    upstream.answerWith((_req, res) => {
      res.writeHead(200, { 'content-length': '1000000000' }).write('x'.repeat(100_000))
      res.once('close', () => cut.resolve())
    })
    const long = await api('/api/v1/resources', { method: 'HEAD' })
    expect([long.status, long.text, long.headers['content-length']]).toEqual([200, '', '1000000000'])
    await cut.promise
    upstream.answerWith((_req, res) => res.writeHead(200, { 'content-type': 'application/json' }).end('{"ok":true}'))
    const own = await send(`${gateway.url}/health/ready`, { method: 'HEAD' })
    expect([own.status, own.text, own.headers['content-type']]).toEqual([200, '', 'application/json; charset=utf-8'])
    const stranger = await send(`${gateway.url}/api/v1/resources`, { method: 'HEAD' })
    expect([stranger.status, stranger.text]).toEqual([401, ''])
    for (const path of ['/v1/sso/acme/callback?code=x&state=y', '/api/v1/events', '/v1/token'])
      expect([path, (await api(path, { method: 'HEAD' })).status]).toEqual([path, 405])
  })

  it('carries no range that only holds for another version', async () => {
    await api('/api/v1/resources', { headers: { range: 'bytes=0-3', 'if-range': '"x"' } })
    expect(upstream.last()?.headers.range).toBeUndefined()
    await api('/api/v1/resources', { headers: { range: 'bytes=0-3' } })
    expect(upstream.last()?.headers.range).toBe('bytes=0-3')
  })

  it('is asked for only if the head of a request does not already refuse it', async () => {
    const ask = (path: string, length: number, bearer = token) =>
      raw(
        gateway.url,
        `POST ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer ${bearer}\r\nExpect: 100-continue\r\n` +
          `Content-Type: application/json\r\nIdempotency-Key: k\r\nContent-Length: ${length}\r\n\r\n`,
      )
    expect(await ask('/api/v1/intents', 2, 'none')).toMatch(/^HTTP\/1\.1 401 /)
    expect(await ask('/api/v1/intents', 9_999_999)).toMatch(/^HTTP\/1\.1 413 /)
    expect(await ask('/api/v1/unknown', 2)).toMatch(/^HTTP\/1\.1 404 /)
    for (const length of [2, 100_000])
      expect(await ask('/api/v1/intents', length)).toBe('HTTP/1.1 100 Continue\r\n\r\n')
  })

  it('is named in a refusal as the client asked for it', async () => {
    for (const path of ['/api/v1/sessions', '/api/v1/users/me'])
      expect((await api(`${path}?x=1`)).body).toMatchObject({ status: 400, instance: path })
  })

  it('carries the identity of the token and no identity from the client', async () => {
    const answer = await api('/api/v1/resources?page_size=5', {
      headers: {
        'x-user-id': 'somebody-else',
        'x-jwt-payload': 'e30',
        'x-forwarded-for': '6.6.6.6',
        'x-request-deadline': '999999',
        'x-request-id': 'my-request-1',
        'x-internal': 'yes',
        cookie: 'refresh_token=secret',
        origin: ORIGIN,
        'if-none-match': '"3"',
      },
    })
    expect(answer.status).toBe(200)
    const { headers, url } = upstream.last() ?? { headers: {} as Record<string, string>, url: '' }
    expect(url).toBe('/v1/resources?page_size=5')
    expect(headers).toMatchObject({
      'x-user-id': user_id,
      'x-jwt-payload': token.split('.')[1],
      'x-forwarded-for': '127.0.0.1',
      'x-request-id': 'my-request-1',
      'if-none-match': '"3"',
      authorization: `Bearer ${token}`,
    })
    expect(Number(headers['x-request-deadline'])).toBeLessThanOrEqual(9000)
    for (const name of ['x-internal', 'cookie', 'origin']) expect(headers[name], name).toBeUndefined()
    expect(answer.headers['x-request-id']).toBe('my-request-1')
  })

  it("belongs to a trace: the client's, or a new one if it names none or a broken one", async () => {
    const theirs = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
    const traceFor = async (traceparent?: string) => {
      await api('/api/v1/resources', { headers: traceparent === undefined ? {} : { traceparent } })
      return String(upstream.last()?.headers.traceparent)
    }
    expect(await traceFor(theirs)).toBe(theirs)
    const made = [await traceFor(), await traceFor('00-0'), await traceFor(`00-${'0'.repeat(32)}-00f067aa0ba902b7-01`)]
    for (const trace of made) expect(trace).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-00$/)
    expect(new Set([...made, theirs]).size).toBe(4)
  })

  it('cannot be stripped by a Connection header', async () => {
    const answer = await raw(
      gateway.url,
      `GET /api/v1/resources HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nConnection: x-user-id, authorization\r\nX-User-Id: a\r\n\r\n`,
      /\{.*\}/,
    )
    expect(answer).toMatch(/^HTTP\/1\.1 200/)
    expect(upstream.last()?.headers['x-user-id']).toBe(user_id)
  })

  it('has headers up to the limit of the gateway, which adds its own to them', async () => {
    const headers = { 'user-agent': 'a'.repeat(15_700 - token.length) }
    expect((await api('/api/v1/users/me', { headers })).status).toBe(200)
  })

  it('has a body passed byte for byte, up to its limit', async () => {
    const body = JSON.stringify({ name: 'é'.repeat(1000) })
    await api('/api/v1/resources', { method: 'POST', body, headers: { 'idempotency-key': 'k' } })
    expect(upstream.last()).toMatchObject({ method: 'POST', body })
    const stated = await api('/api/v1/resources', { method: 'POST', body: 'x'.repeat(1_048_577) })
    expect(codeOf(stated)).toEqual([413, 'body_too_large'])
    const hook = '/api/v1/hooks/0195f0c2-0000-7000-8000-000000000001'
    expect(codeOf(await api(hook, { method: 'POST', body: 'x'.repeat(1_048_577) }))).toEqual([413, 'body_too_large'])
    const count = upstream.seen.length
    const chunk = `${(65_536).toString(16)}\r\n${'x'.repeat(65_536)}\r\n`
    const streamed = await raw(
      gateway.url,
      `POST /api/v1/resources HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n${chunk.repeat(17)}0\r\n\r\n`,
      /\{.*\}/,
    )
    expect(streamed).toMatch(/^HTTP\/1\.1 413/)
    expect(upstream.seen.length).toBe(count)
    // Our own refusal does not tell the breaker that the upstream answers.
    const calls = 'signalbox_dependency_calls_total'
    expect(await counted(gateway.deps.telemetry.metrics, calls, { result: 'refused' })).toBe(0)

    // The graph of an intent may be larger.
    const graph = JSON.stringify({ name: 'x'.repeat(4_000_000) })
    await api('/api/v1/intents', { method: 'POST', body: graph, headers: { 'idempotency-key': 'k' } })
    expect(upstream.last()?.body).toBe(graph)
    const larger = await api('/api/v1/intents', { method: 'POST', body: 'x'.repeat(4_194_305) })
    expect(codeOf(larger)).toEqual([413, 'body_too_large'])
  })
})

describe('the edge refuses', () => {
  it('requests without a token, with a foreign one or two', async () => {
    const none = await send(`${gateway.url}/api/v1/resources`)
    expect([...codeOf(none), none.headers['www-authenticate'], none.headers['content-type']]).toEqual([
      401,
      'token_missing',
      'Bearer',
      'application/problem+json; charset=utf-8',
    ])
    const refresh = String((await login()).body.refresh_token)
    const [header, payload, signature = ''] = token.split('.')
    const none_alg = Buffer.from('{"alg":"none","kid":"x","typ":"at+jwt"}').toString('base64url')
    for (const bad of [
      'x',
      refresh,
      `${header}.${payload}.${signature.startsWith('A') ? 'B' : 'A'}${signature.slice(1)}`,
      `${none_alg}.${payload}.`,
      `${token} x`,
      `${token}=`,
    ]) {
      const answer = await send(`${gateway.url}/api/v1/resources`, { headers: bearer(bad) })
      expect([...codeOf(answer), answer.headers['www-authenticate']], bad).toEqual([
        401,
        'invalid_token',
        'Bearer error="invalid_token"',
      ])
    }
    const { body } = await send(`${gateway.url}/api/v1/resources`, { headers: bearer('sbk_x') })
    expect(body.hint).toBe('This is an API key: exchange it for a token at POST /oauth/token.')
    const query = await send(`${gateway.url}/api/v1/resources?access_token=${token}`)
    expect(codeOf(query)).toEqual([401, 'token_missing'])
  })

  it('ambiguous headers', async () => {
    const request = (lines: string[], first = 'GET /api/v1/resources HTTP/1.1') =>
      raw(gateway.url, `${first}\r\nHost: x\r\nConnection: close\r\n${lines.join('\r\n')}\r\n\r\n`, /never/)
    const authorization = `Authorization: Bearer ${token}`
    const cases: [string[], RegExp][] = [
      [[authorization, authorization], /400.*"code":"duplicate_header"/s],
      [[authorization, 'X_User_Id: a'], /400.*"code":"forbidden_header"/s],
      [[authorization, 'Idempotency-Key: a', 'Idempotency-Key: b'], /400.*"code":"duplicate_header"/s],
      [[authorization, 'Host: y'], /400/],
      [[authorization, 'Content-Length: 1', 'Content-Length: 2'], /^HTTP\/1\.1 400/],
      [[authorization, 'Content-Length: 1', 'Transfer-Encoding: chunked'], /^HTTP\/1\.1 400/],
      [[authorization, 'Content-Length: 3', '', 'abc'], /400.*"code":"forbidden_header"/s],
      [[authorization, 'Content-Encoding: gzip'], /415.*"code":"unsupported_media_type"/s],
      [[authorization, `X-Long: ${'a'.repeat(17_000)}`], /431.*"code":"headers_too_large"/s],
    ]
    const count = upstream.seen.length
    for (const [lines, expected] of cases) expect(await request(lines), lines.join('|').slice(0, 200)).toMatch(expected)
    for (const path of ['/v1/token/csrf', '/v1/%74oken/csrf'])
      expect(await request(['Cookie: a=b', 'Cookie: refresh_token=x'], `GET ${path} HTTP/1.1`)).toMatch(
        /400.*"code":"duplicate_header"/s,
      )
    expect(await raw(gateway.url, 'GET /api/v1/resources HTTP/1.0 x\r\n\r\n', /never/)).toMatch(
      /^HTTP\/1\.1 400.*problem\+json/s,
    )
    expect(upstream.seen.length).toBe(count)
  })

  it('every path outside the table, /internal in any form, and methods that a path does not have (ASVS 6.3.4)', async () => {
    for (const path of [
      '/internal/v1/resources',
      '/Internal/v1',
      '/%69nternal/v1',
      '/api/internal/v1/x',
      '/metrics',
      '/api/v1/nothing',
      '/auth/',
      '/v1/sessions',
      '/assets/missing.js',
      '/docs/x',
      '/health/of-the-world',
    ]) {
      const answer = await api(path, { headers: { accept: 'text/html' } })
      expect(codeOf(answer), path).toEqual([404, 'not_found'])
    }
    const wrong = await api('/api/v1/resources', { method: 'DELETE' })
    expect([...codeOf(wrong), wrong.headers.allow]).toEqual([405, 'method_not_allowed', 'GET, POST, HEAD'])
    expect(codeOf(await api('/api/..%2finternal'))).toEqual([400, 'bad_path'])
    expect(await raw(gateway.url, 'GET /api/../internal/v1 HTTP/1.1\r\nHost: x\r\n\r\n', /\{.*\}/)).toMatch(/bad_path/)
    expect(await raw(gateway.url, 'GET http://x/internal/v1 HTTP/1.1\r\nHost: x\r\n\r\n', /\{.*\}/)).toMatch(/bad_path/)
  })

  it('versions older than HTTP/1.1', async () => {
    for (const line of [
      'GET /health/live\r\n\r\n',
      'GET /health/live HTTP/1.0\r\n\r\n',
      'GET / HTTP/1.0\r\nHost: x\r\n\r\n',
    ])
      expect([line, (await raw(gateway.url, line, /\}$/)).split('\r\n')[0]]).toEqual([
        line,
        expect.stringMatching(/^HTTP\/1\.1 (505|400) /),
      ])
  })

  it('every row of its table without a token, except the open ones', async () => {
    for (const { method, path, permission } of ROUTES) {
      if (permission === 'none') continue
      const answer = await send(`${gateway.url}${path.replaceAll(/\{\w+\}/g, 'x-1')}`, { method })
      expect(codeOf(answer), `${method} ${path}`).toEqual([401, 'token_missing'])
    }
  })

  it('the bad tokens of an address with too many of them, but no good one', async () => {
    const strict = await auth.addGateway({
      GATEWAY__LIMITS__FAILED_TOKENS: '1/60/3',
      AUTH__REDIS__PREFIX: `${auth.prefix}failed_`,
    })
    await knowSession(`${auth.prefix}failed_`)
    const ask = (value: string) => send(`${strict.url}/api/v1/resources`, { headers: bearer(value) })
    for (let i = 0; i < 4; i++) expect((await ask('bad')).status).toBe(401)
    const limited = await ask('bad')
    expect(codeOf(limited)).toEqual([429, 'rate_limited'])
    expect(Number(limited.headers['retry-after'])).toBeGreaterThan(0)
    expect((await ask(token)).status).toBe(200)
    // Its client refreshes when it hears 401.
    const [iat, key] = [Math.floor(Date.now() / 1000) - 901, auth.token_deps.keyring.active()]
    const claims = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
    const expired = signToken(
      'access',
      { ...claims, iat, auth_time: iat, exp: iat + 900 },
      key as NonNullable<typeof key>,
    )
    expect(codeOf(await ask(expired))).toEqual([401, 'invalid_token'])
    const stop = await send(`${strict.url}/api/v1/operations/o/pause`, { method: 'POST', headers: bearer(expired) })
    expect(codeOf(stop)).toEqual([401, 'invalid_token'])
  })

  it('requests above the limits', async () => {
    const strict = await auth.addGateway({
      GATEWAY__LIMITS__API: '1/60/3',
      GATEWAY__LIMITS__LOGIN_IP: '1/60/2',
      GATEWAY__LIMITS__LOGIN_NAME: '1/60/1',
      AUTH__REDIS__PREFIX: `${auth.prefix}limits_`,
    })
    await knowSession(`${auth.prefix}limits_`)
    const ask = (method: 'GET' | 'POST', path: string) =>
      send(`${strict.url}${path}`, { method, headers: { ...bearer(token), 'idempotency-key': 'k' } })
    for (let i = 0; i < 3; i++) expect((await ask('GET', '/api/v1/resources')).status).toBe(200)
    expect(codeOf(await ask('GET', '/api/v1/resources'))).toEqual([429, 'rate_limited'])
    // Stopping has its own bucket.
    expect((await ask('POST', '/api/v1/operations/o/pause')).status).toBe(200)
    const sign = (username: string) => send(`${strict.url}/auth/login`, { body: { username, password: 'x' } })
    expect((await sign('somebody')).status).toBe(401)
    expect(codeOf(await sign('SomeBody'))).toEqual([429, 'rate_limited'])
    expect((await sign('another')).status).toBe(401)
    expect(codeOf(await sign('a-third'))).toEqual([429, 'rate_limited'])
  })

  it('a large list, with the other large requests, while others still pass', async () => {
    const sheds = vi.spyOn(gateway.deps.pressure, 'sheds').mockImplementation((priority) => priority === 'batch')
    expect((await api('/api/v1/resources?page_size=100')).status).toBe(200)
    expect(codeOf(await api('/api/v1/resources?page_size=500'))).toEqual([503, 'overloaded'])
    sheds.mockRestore()
  })

  it('no sign-out link for the enrolments, or the wrong guesses, of its neighbors', async () => {
    const strict = await auth.addGateway({ GATEWAY__LIMITS__ENROL: '1/3600/1' })
    const post = (path: string, body: object) =>
      send(`${strict.url}${path}`, { body, headers: { 'idempotency-key': 'k' } })
    const enrol = { enrolment_token: 'x', new_password: 'y' }
    await post('/api/v1/users/enrol', enrol)
    expect(codeOf(await post('/api/v1/users/enrol', enrol))).toEqual([429, 'rate_limited'])
    for (let i = 0; i < 11; i++) {
      const guess = await post('/api/v1/sessions/sign-out', { token: `so1.guess${i}` })
      expect(codeOf(guess)).toEqual([422, 'sign_out_link_invalid'])
    }
  })

  it('what the page of another site loads, before it is charged to its visitor', async () => {
    const strict = await auth.addGateway({
      GATEWAY__LIMITS__REFRESH_IP: '1/60/2',
      GATEWAY__LIMITS__SSO_IP: '1/60/2',
      AUTH__REDIS__PREFIX: `${auth.prefix}foreign_`,
    })
    const get = (path: string, headers = {}) => send(`${strict.url}${path}`, { headers })
    const foreign = { 'sec-fetch-site': 'cross-site', 'sec-fetch-dest': 'image' }
    for (const path of ['/v1/sso/acme/start', '/v1/providers', '/v1/token/csrf', '/v1/sso/acme/start'])
      expect(codeOf(await get(path, foreign))).toEqual([403, 'origin_not_allowed'])
    const renew = () => send(`${strict.url}/auth/refresh`, { body: { refresh_token: 'x' } })
    for (let i = 0; i < 2; i++) {
      const followed = await get('/v1/sso/acme/start', { ...foreign, 'sec-fetch-dest': 'document' })
      expect(followed.status).not.toBe(403)
      expect(followed.status).not.toBe(429)
    }
    // Sign-ins by a provider use up none of the renewals.
    expect(codeOf(await get('/v1/sso/acme/start'))).toEqual([429, 'rate_limited'])
    for (let i = 0; i < 2; i++) expect((await renew()).status).toBe(401)
    expect(codeOf(await renew())).toEqual([429, 'rate_limited'])
  })
})

describe('answers', () => {
  it('carry the security headers and lose headers that an upstream must not send', async () => {
    upstream.answerWith((_req, res) => {
      res
        .writeHead(200, {
          'content-type': 'application/json',
          server: 'x',
          'x-powered-by': 'y',
          'set-cookie': 'a=b',
          'access-control-allow-origin': '*',
          'x-frame-options': 'ALLOW',
          'content-security-policy': 'sandbox',
          etag: '"7"',
        })
        .end('{}')
    })
    const answer = await api('/api/v1/resources/a')
    expect(answer.headers).toMatchObject({
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      'referrer-policy': 'no-referrer',
      'cross-origin-resource-policy': 'same-origin',
      'content-security-policy': ["default-src 'none'; frame-ancestors 'none'", 'sandbox'],
      vary: 'Origin',
      etag: '"7"',
    })
    for (const name of [
      'server',
      'x-powered-by',
      'set-cookie',
      'access-control-allow-origin',
      'strict-transport-security',
    ])
      expect(answer.headers[name], name).toBeUndefined()
  })

  it('of an upstream that redirects, breaks off or stays silent are 502; an upstream’s own problem passes through', async () => {
    upstream.answerWith((_req, res) => res.writeHead(302, { location: 'http://evil.test' }).end())
    expect(codeOf(await api('/api/v1/resources'))).toEqual([502, 'upstream_failed'])
    const count = upstream.seen.length
    upstream.answerWith((req) => req.socket.destroy())
    const cut = await api('/api/v1/resources')
    expect([...codeOf(cut), cut.body.category, cut.body.retryable]).toEqual([
      502,
      'upstream_failed',
      'unavailable',
      true,
    ])
    upstream.answerWith((_req, res) =>
      res.writeHead(503, { 'content-type': 'application/problem+json' }).end('{"code":"overloaded"}'),
    )
    expect(codeOf(await api('/api/v1/resources'))).toEqual([503, 'overloaded'])
    // One call each: the gateway repeats nothing.
    expect(upstream.seen.length).toBe(count + 2)
    const away = await auth.addGateway({ GATEWAY__UPSTREAM__CATALOG_URL: 'http://127.0.0.1:9' })
    expect(codeOf(await send(`${away.url}/api/v1/resources`, { headers: bearer(token) }))).toEqual([
      502,
      'upstream_failed',
    ])
    upstream.answerWith((_req, res) => res.writeHead(200, { 'content-type': 'application/json' }).end('{"ok":true}'))
  })

  it('are counted by route template', async () => {
    await api('/api/v1/resources/some-id')
    const { metrics } = gateway.deps.telemetry
    expect(
      await counted(metrics, 'http_requests_total', { endpoint: '/api/v1/resources/{resource_id}', status: '200' }),
    ).toBeGreaterThan(0)
    expect(JSON.stringify(await metrics.getMetricsAsJSON())).not.toContain('some-id')
  })
})

describe('cookie sessions', () => {
  it('need the CSRF token of their session on every unsafe request, and survive a refusal', async () => {
    const mine = await login('?response_mode=cookie', { origin: ORIGIN })
    const other = await login('?response_mode=cookie', { origin: ORIGIN })
    const { access_token, csrf_token } = mine.body
    const post = (headers: Record<string, string>) =>
      send(`${gateway.url}/api/v1/intents`, {
        body: {},
        headers: { ...bearer(access_token), origin: ORIGIN, ...headers },
      })
    const { metrics } = gateway.deps.telemetry
    const before = await counted(metrics, 'csrf_errors_total')
    expect(codeOf(await post({}))).toEqual([403, 'csrf_failed'])
    expect(codeOf(await post({ 'x-csrf-token': String(other.body.csrf_token) }))).toEqual([403, 'csrf_failed'])
    expect(await counted(metrics, 'csrf_errors_total')).toBe(before + 2)
    expect(codeOf(await post({ 'x-csrf-token': String(csrf_token), origin: 'https://evil.test' }))).toEqual([
      403,
      'origin_not_allowed',
    ])
    expect((await post({ 'x-csrf-token': String(csrf_token) })).status).toBe(200)
    expect((await send(`${gateway.url}/api/v1/resources`, { headers: bearer(access_token) })).status).toBe(200)
    const out = await send(`${gateway.url}/auth/logout`, {
      method: 'POST',
      headers: { ...bearer(access_token), origin: ORIGIN },
    })
    expect(codeOf(out)).toEqual([403, 'csrf_failed'])
    // A JSON session needs none.
    expect((await api('/api/v1/intents', { body: {} })).status).toBe(200)
  })

  it('are refreshed through the gateway with their cookie', async () => {
    const mine = await login('?response_mode=cookie', { origin: ORIGIN })
    const next = await send(`${gateway.url}/v1/token?response_mode=cookie`, {
      body: { grant_type: 'refresh_token' },
      headers: { cookie: cookieOf(mine), origin: ORIGIN, 'x-csrf-token': String(mine.body.csrf_token) },
    })
    expect(next.status).toBe(200)
    expect(cookieOf(next)).toMatch(/^refresh_token=ey/)
    expect(next.headers['access-control-allow-origin']).toBe(ORIGIN)
  })
})

describe('CORS', () => {
  it('answers a preflight of the allowed origin as the specification says, and ignores another', async () => {
    const preflight = (origin: string, path = '/v1/token') =>
      send(`${gateway.url}${path}`, {
        method: 'OPTIONS',
        headers: { origin, 'access-control-request-method': 'POST', 'access-control-request-headers': 'content-type' },
      })
    const allowed = await preflight(ORIGIN)
    expect(allowed.status).toBe(204)
    expect(allowed.headers['content-length']).toBeUndefined()
    expect(allowed.headers).toMatchObject({
      'access-control-allow-origin': ORIGIN,
      'access-control-allow-credentials': 'true',
      'access-control-allow-methods': 'GET, POST, PUT, PATCH, DELETE',
      'access-control-expose-headers': expect.stringContaining('X-CSRF-Token'),
      'access-control-allow-headers': expect.stringContaining('Authorization'),
      'access-control-max-age': '600',
      vary: 'Origin',
    })
    for (const origin of ['https://evil.test', 'null', `${ORIGIN}:80`]) {
      const refused = await preflight(origin)
      expect(Object.keys(refused.headers).filter((name) => name.startsWith('access-control-'))).toEqual([])
      expect(refused.headers.vary).toBe('Origin')
    }
    for (const path of ['/api/v1/resources', '/v1/resources', '/v1/token/passkey-options'])
      expect((await preflight(ORIGIN, path)).status).toBe(204)
    for (const path of ['/v1/token/csrf', '/v1/%74oken/csrf'])
      expect([path, (await preflight(ORIGIN, path)).status]).toEqual([path, 405])
    expect((await preflight(ORIGIN, '/internal/v1')).status).toBe(404)
  })
})

describe('logout', () => {
  it('kills the access token at once at every gateway, and can be repeated', async () => {
    const other = await auth.addGateway()
    const { access_token } = (await login()).body
    const ask = (url: string) => send(`${url}/api/v1/resources`, { headers: bearer(access_token) })
    expect((await ask(gateway.url)).status).toBe(200)
    for (let i = 0; i < 2; i++)
      expect((await send(`${gateway.url}/auth/logout`, { method: 'POST', headers: bearer(access_token) })).status).toBe(
        204,
      )
    expect(codeOf(await ask(gateway.url))).toEqual([401, 'invalid_token'])
    expect(codeOf(await ask(other.url))).toEqual([401, 'invalid_token'])
  })
})

describe('the console', () => {
  it('is served with its policy, its meta tags and its page for every page path (ASVS 10.1.1)', async () => {
    const page = await send(`${gateway.url}/operations/abc?tab=x`, { headers: { accept: 'text/html,*/*' } })
    expect(page.status).toBe(200)
    expect(page.headers).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      'cache-control': 'no-cache',
      'cross-origin-opener-policy': 'same-origin',
      'x-frame-options': 'DENY',
      'content-security-policy':
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; worker-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types signalbox-worker",
    })
    expect(page.text).toContain('<meta name="signalbox-tier" content="dev" />')
    expect(page.text).toContain('<meta name="signalbox-environment" content="demo" />')
    expect(page.text).toContain('<meta name="signalbox-version" content="1.2.3" />')
    // The probes, which machines call, are below it; the console also has a page at this path.
    const health = await send(`${gateway.url}/health`, { headers: { accept: 'text/html' } })
    expect([health.status, health.text]).toEqual([200, page.text])
  })

  it("is also served for a mistyped address; the edge refuses it, and machines get the gateway's own problem", async () => {
    const { text: page } = await send(`${gateway.url}/inbox`, { headers: { accept: 'text/html' } })
    const html = { headers: { accept: 'text/html,*/*' } }
    for (const path of ['/resources/%F0%9F%98%80', '/resources/%zz', '/operations//x', '/resources/..%2fx']) {
      const seen = await send(`${gateway.url}${path}`, html)
      expect([path, seen.status, seen.text]).toEqual([path, 400, page])
      expect(codeOf(await send(`${gateway.url}${path}`))).toEqual([400, 'bad_path'])
      expect(codeOf(await send(`${gateway.url}${path}`, { ...html, method: 'POST' }))).toEqual([400, 'bad_path'])
    }
    for (const path of [
      '/api/%zz',
      '/API/%zz',
      '/v1/%zz',
      '/internal/..%2fx',
      '/assets/%2f',
      '/docs//',
      '/%61pi/%zz',
      '/%zz',
    ])
      expect([path, ...codeOf(await send(`${gateway.url}${path}`, html))]).toEqual([path, 400, 'bad_path'])
    for (const path of ['/oauth/x', '/scim/v3/x', '/SCIM', '/metrics', '/openapi.json/x'])
      expect([path, ...codeOf(await send(`${gateway.url}${path}`, html))]).toEqual([path, 404, 'not_found'])
  })

  it("comes in the language that its reader has chosen, otherwise in the browser's", async () => {
    const languageOf = async (headers: Record<string, string>, path = '/inbox') => {
      const page = await send(`${gateway.url}${path}`, { headers: { accept: 'text/html', ...headers } })
      expect(page.headers.vary).toBe('Accept-Encoding, Accept-Language, Cookie, Origin')
      return /lang="(\w+)"/.exec(page.text)?.[1]
    }
    const german = { 'accept-language': 'de-AT,de;q=0.9,en;q=0.5' }
    expect(await languageOf(german)).toBe('de')
    expect(await languageOf(german, '/')).toBe('de')
    expect(await languageOf({ ...german, cookie: 'a=b; language=en' })).toBe('en')
    expect(await languageOf({ cookie: 'language=de' })).toBe('de')
    for (const other of [
      {},
      { 'accept-language': 'en,de;q=0.9' },
      { 'accept-language': 'fr' },
      { 'accept-language': '' },
    ])
      expect(await languageOf(other)).toBe('en')
    for (const cookie of ['language=fr', 'language=__proto__', 'language=de; language=en', 'language='])
      expect(await languageOf({ cookie }), cookie).toBe('en')
    const { etag } = (await send(`${gateway.url}/inbox`, { headers: { accept: 'text/html' } })).headers
    const headers = { accept: 'text/html', ...german, 'if-none-match': String(etag) }
    expect((await send(`${gateway.url}/inbox`, { headers })).status).toBe(200)
  })

  it('has only the files of its build: assets immutable and compressed, no path traversal', async () => {
    const script = await send(`${gateway.url}/assets/main-abc.js`)
    expect(script.headers).toMatchObject({
      'content-type': 'text/javascript; charset=utf-8',
      'cache-control': 'public, max-age=31536000, immutable',
    })
    const zipped = await send(`${gateway.url}/assets/main-abc.js`, { headers: { 'accept-encoding': 'gzip' } })
    expect(zipped.headers['content-encoding']).toBe('gzip')
    for (const known of [
      String(script.headers.etag),
      `"x", ${script.headers.etag}`,
      String(script.headers.etag).slice(2),
    ]) {
      const same = await send(`${gateway.url}/assets/main-abc.js`, { headers: { 'if-none-match': known } })
      expect(same.status).toBe(304)
    }
    const plain = await send(`${gateway.url}/assets/main-abc.js`, { headers: { 'accept-encoding': 'br, gzip;q=0' } })
    expect(plain.headers).not.toHaveProperty('content-encoding')
    expect((await send(`${gateway.url}/`, { method: 'HEAD' })).status).toBe(200)
    expect(codeOf(await send(`${gateway.url}/operations/abc`))).toEqual([404, 'not_found'])
    expect(await raw(gateway.url, 'GET /assets/../../package.json HTTP/1.1\r\nHost: x\r\n\r\n', /\{.*\}/)).toMatch(
      /bad_path/,
    )
    expect((await send(`${gateway.url}/operations`, { method: 'POST', headers: { accept: 'text/html' } })).status).toBe(
      405,
    )
  })
})

describe('the reference', () => {
  it('lists the served routes under their public paths, and every type of a refusal leads to its page', async () => {
    const index = await send(`${gateway.url}/docs`)
    expect(index.headers['content-type']).toBe('text/html; charset=utf-8')
    expect(index.headers['content-security-policy']).toContain("style-src 'self'")
    expect(index.text).not.toMatch(/<script|https?:\/\//)
    for (const path of [
      '/auth/login',
      '/v1/token',
      '/.well-known/jwks.json',
      '/health/ready',
      '/api/v1/platform/health',
      '/api/v1/users/me',
      '/api/v1/resources/{resource_id}',
      '/api/v1/operations/{operation_id}/gates/{gate_id}/approve',
    ]) {
      expect(ROUTES.some((route) => route.path === path)).toBe(true)
      expect(index.text).toContain(`<code>${path}</code>`)
    }
    for (const [path, status] of [
      ['/api/v1/resources', 401],
      ['/api/v1/nothing', 404],
      ['/api/a%2fb', 400],
    ] as const) {
      const refusal = await send(`${gateway.url}${path}`)
      expect(refusal.status).toBe(status)
      const explained = await send(`${gateway.url}${refusal.body.type}`)
      const row = `<tr id="${refusal.body.code}">`
      expect([explained.status, explained.text.includes(row)]).toEqual([200, true])
    }
    expect((await send(`${gateway.url}/docs/openapi/operations-internal.json`)).body.openapi).toBe('3.1.0')
    expect(codeOf(await send(`${gateway.url}/docs/errors/nothing`))).toEqual([404, 'not_found'])
  })

  it('serves the document of the public API, which is sent again only when it has changed', async () => {
    const { status, headers, body } = await send(`${gateway.url}/openapi.json`)
    expect([status, headers['content-type'], body.openapi]).toEqual([200, 'application/json; charset=utf-8', '3.1.0'])
    expect(body.servers).toEqual([{ url: '/' }])
    // It stands for the compressed form too.
    expect(headers.etag).toMatch(/^W\/"/)
    const again = await send(`${gateway.url}/openapi.json`, { headers: { 'if-none-match': String(headers.etag) } })
    expect([again.status, again.text]).toEqual([304, ''])
  })
})

describe('own endpoints', () => {
  it('report whether the gateway lives and is ready', async () => {
    expect((await send(`${gateway.url}/health/live`)).body).toEqual({ status: 'live' })
    const ready = await send(`${gateway.url}/health/ready`)
    expect(ready.status).toBe(200)
    expect(Object.keys(ready.body)).toEqual(['status'])
  })

  it('show the parts of the platform to those who may read them', async () => {
    await auth.redis.set(
      `${auth.prefix}ops:part:relay:1`,
      JSON.stringify({ status: 'ready', since: 'now', checks: {}, lags: {} }),
    )
    await auth.redis.set(
      `${auth.prefix}ops:part:worker:1`,
      JSON.stringify({ status: 'ready', since: 'now', checks: {}, lags: {} }),
      'EX',
      PART_TTL_S - PART_SILENT_S - 1,
    )
    for (const part of ['relay:1', 'worker:1', 'gone:1'])
      await auth.redis.zadd(`${auth.prefix}ops:part:all`, Date.now(), `${auth.prefix}ops:part:${part}`)
    await auth.redis.sadd(`${auth.prefix}other`, 'x')
    await auth.redis.zadd(`${auth.prefix}ops:part:all`, Date.now(), `${auth.prefix}other`)
    const scan = vi.spyOn(gateway.deps.redis, 'scan')
    const health = await api('/api/v1/platform/health')
    expect(scan, 'a look through the keys of a million people').not.toHaveBeenCalled()
    expect(health.body.parts).toEqual([
      { app: 'relay', instance: '1', status: 'ready', since: 'now', checks: {}, lags: {} },
      { app: 'worker', instance: '1', status: 'silent', since: 'now', checks: {}, lags: {} },
    ])
    await auth.addUser('vera', ['viewer'])
    const vera = await send(`${gateway.url}/auth/login`, { body: { username: 'vera', password: PASSWORD } })
    expect(
      codeOf(await send(`${gateway.url}/api/v1/platform/health`, { headers: bearer(vera.body.access_token) })),
    ).toEqual([403, 'permission_missing'])
  })

  it('show a part as soon as it reports; the index of all ends with the reports, because old versions cannot read it', async () => {
    const read = async () => ({ status: 'ready', checks: {} })
    const redis_url = serverUrl('REDIS_URL')
    const part = reportPart('catalog', { redis_url, prefix: auth.prefix, read }, gateway.deps.telemetry.log)
    const apps = async () => {
      const { body } = await api('/api/v1/platform/health')
      return (body.parts as { app: string }[]).map(({ app }) => app)
    }
    await until(async () => (await apps()).includes('catalog'), { what: 'its report' })
    const ttl = await auth.redis.ttl(`${auth.prefix}ops:part:all`)
    expect([ttl > 0, ttl <= PART_TTL_S]).toEqual([true, true])
    await part.stop()
    expect(await apps()).not.toContain('catalog')
  })

  it('pass on the public keys', async () => {
    const jwks = await send(`${gateway.url}/.well-known/jwks.json`)
    expect(jwks.status).toBe(200)
    expect((jwks.body.keys as object[]).length).toBeGreaterThan(0)
    expect(claims(token).session_id).toMatch(/^[0-9a-f-]{36}$/)
  })
})
