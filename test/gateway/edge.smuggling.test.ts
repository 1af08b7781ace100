import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { upstreamHeaders } from '../../apps/gateway/edge/headers.ts'
import { type Auth, bearer, PASSWORD, send, startAuth } from '../session/support/auth.ts'
import { until } from '../support/until.ts'
import { raw, startUpstream } from './support/upstream.ts'

/** Requests that two HTTP parsers could read differently: the edge refuses them, and nothing reaches an upstream. */
let auth: Auth
let upstream: Awaited<ReturnType<typeof startUpstream>>
let url: string
let token: string

beforeAll(async () => {
  upstream = await startUpstream()
  auth = await startAuth({
    GATEWAY__UPSTREAM__CATALOG_URL: upstream.url,
    GATEWAY__UPSTREAM__OPERATIONS_URL: upstream.url,
  })
  url = (await auth.addGateway()).url
  await auth.addUser('eva', ['operator'])
  token = String((await send(`${url}/auth/login`, { body: { username: 'eva', password: PASSWORD } })).body.access_token)
})
afterAll(async () => {
  await auth?.stop()
  upstream?.stop()
})

const start = (first: string, ...lines: string[]) =>
  [`${first} HTTP/1.1`, 'Host: x', `Authorization: Bearer ${token}`, ...lines].join('\r\n')
const post = (...lines: string[]) => start('POST /api/v1/intents', 'Content-Type: application/json', ...lines)

describe('bodies of two lengths', () => {
  const chunked = '\r\n\r\n0\r\n\r\nGET /internal HTTP/1.1\r\nHost: x\r\n\r\n'
  const cases: [string, () => string][] = [
    ['both length and chunks', () => post('Content-Length: 5', 'Transfer-Encoding: chunked') + chunked],
    ['chunks, then length', () => post('Transfer-Encoding: chunked', 'Content-Length: 5') + chunked],
    ['two lengths', () => `${post('Content-Length: 2', 'Content-Length: 3')}\r\n\r\n{}x`],
    ['a list of lengths', () => `${post('Content-Length: 2, 2')}\r\n\r\n{}`],
    ['a signed length', () => `${post('Content-Length: +2')}\r\n\r\n{}`],
    ['a hexadecimal length', () => `${post('Content-Length: 0x2')}\r\n\r\n{}`],
    ['a coding beside chunked', () => post('Transfer-Encoding: chunked, identity') + chunked],
    ['an unknown coding', () => post('Transfer-Encoding: xchunked') + chunked],
    ['a coding before chunked', () => post('Transfer-Encoding: gzip, chunked') + chunked],
    ['two codings', () => post('Transfer-Encoding: chunked', 'Transfer-Encoding: identity') + chunked],
    ['a blank before the colon', () => post('Transfer-Encoding : chunked') + chunked],
    ['a tab in front of the coding', () => post('Transfer-Encoding: \x0bchunked') + chunked],
    ['a folded line', () => `${post('X-A: b\r\n Transfer-Encoding: chunked')}\r\n\r\n{}`],
    ['a chunk size that is none', () => `${post('Transfer-Encoding: chunked')}\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n`],
    ['a chunk longer than it says', () => `${post('Transfer-Encoding: chunked')}\r\n\r\n2\r\n{}}}\r\n0\r\n\r\n`],
  ]
  it.each(cases)('%s: 400, and the connection ends', async (_name, bytes) => {
    const count = upstream.seen.length
    const answer = await raw(url, bytes(), /never/)
    expect(answer).toMatch(/^HTTP\/1\.1 400 /)
    expect(answer).toMatch(/connection: close/i)
    expect(answer.match(/HTTP\/1\.1 /g)?.length).toBe(1)
    // A body that breaks off may have been partly forwarded, but never as a whole request.
    expect(upstream.seen.length).toBe(count)
  })
})

describe('bodies that two readers of JSON could understand differently', () => {
  const SIGN_IN = `"username":"eva","password":"${PASSWORD}"`
  it.each<[string, string]>([
    ['a byte order mark', `\uFEFF{${SIGN_IN}}`],
    ['a name given twice', `{"username":"ada",${SIGN_IN}}`],
    ['a name given twice in two spellings', `{"\\u0075sername":"ada",${SIGN_IN}}`],
    ['a name in a list', `{"username":["eva"],"password":"${PASSWORD}"}`],
    ['a name on the prototype', `{"__proto__":{${SIGN_IN}}}`],
    ['a comma too many', `{${SIGN_IN},}`],
  ])('with %s sign no one in, at the edge and behind it', async (_name, body) => {
    for (const to of [url, auth.session.url])
      for (const path of ['/v1/token', '/auth/login'])
        expect([to, path, (await send(`${to}${path}`, { body })).status]).toEqual([to, path, 400])
  })

  it('are refused before any of them costs a check of a password', async () => {
    const { length } = await auth.redis.xrange(`${auth.prefix}auth:audit`, '-', '+')
    const narrow = await auth.addGateway({ GATEWAY__LIMITS__LOGIN_IP: '1/600/1' })
    for (const path of ['/v1/token', '/auth/login', '/v1/token'])
      expect((await send(`${narrow.url}${path}`, { body: `\uFEFF{${SIGN_IN}}` })).body.code).toBe('malformed_json')
    expect(await auth.redis.xrange(`${auth.prefix}auth:audit`, '-', '+')).toHaveLength(length)
  })
})

describe('request lines', () => {
  const cases: [string, () => string][] = [
    ['a bare line feed', () => `${start('GET /api/v1/resources')}\nX: y\r\n\r\n`],
    ['NUL in a value', () => `${start('GET /api/v1/resources', 'X-A: a\0b')}\r\n\r\n`],
    ['a header without a colon', () => `${start('GET /api/v1/resources', 'broken')}\r\n\r\n`],
    ['no host', () => 'GET /api/v1/resources HTTP/1.1\r\n\r\n'],
    ['an expectation', () => `${start('GET /api/v1/resources', 'Expect: 200-ok')}\r\n\r\n`],
    ['the preface of HTTP/2', () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['another protocol version', () => 'GET /api/v1/resources HTTP/3.1\r\nHost: x\r\n\r\n'],
    ['TLS in the clear', () => `\x16\x03\x01${randomBytes(16).toString('latin1')}\r\n\r\n`],
    ['an asterisk', () => `${start('GET *')}\r\n\r\n`],
    ['an absolute address', () => `${start('GET http://127.0.0.1:1/api/v1/resources')}\r\n\r\n`],
    ['a fragment', () => `${start('GET /api/v1/resources#x')}\r\n\r\n`],
  ]
  it.each(cases)('with %s: 400', async (_name, bytes) => {
    const count = upstream.seen.length
    const answer = await raw(url, bytes(), /never|\}$/)
    expect(answer).toMatch(/^HTTP\/1\.1 400 /)
    expect(answer).toMatch(/problem\+json[\s\S]*"code":"(bad_path|forbidden_header)"/)
    // No path can be spelled better where the fault is in the frame.
    if (/not valid HTTP/.test(answer)) expect(answer).toMatch(/"hint":"Send one well-formed request/)
    expect(upstream.seen.length).toBe(count)
  })

  it('that ask for a tunnel or another protocol are refused', async () => {
    expect(await raw(url, 'CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: x\r\n\r\n', /never/)).not.toMatch(/ 200 /)
    const upgrade = await raw(
      url,
      `${start('GET /api/v1/resources', 'Connection: Upgrade', 'Upgrade: h2c', 'HTTP2-Settings: AAMA')}\r\n\r\n`,
      /\{.*\}/,
    )
    expect(upgrade).toMatch(/^HTTP\/1\.1 200 /)
    expect(upstream.last()?.headers).not.toHaveProperty('upgrade')
    expect(upstream.last()?.headers).not.toHaveProperty('http2-settings')
    expect(await raw(url, `${start('TRACE /api/v1/resources')}\r\n\r\n`, /\{.*\}/)).toMatch(/^HTTP\/1\.1 405 /)
  })

  it('that are too long get 414, and 431 beyond the limit of the parser', async () => {
    const path = await send(`${url}/api/v1/resources/${'a'.repeat(2050)}`, { headers: bearer(token) })
    expect([path.status, path.body.code]).toEqual([414, 'uri_too_long'])
    const query = await send(`${url}/api/v1/resources?q=${'a'.repeat(8192)}`, { headers: bearer(token) })
    expect([query.status, query.body.code]).toEqual([414, 'uri_too_long'])
    const huge = await raw(url, `${start(`GET /api/v1/resources?q=${'a'.repeat(17_000)}`)}\r\n\r\n`, /\{.*\}/)
    expect(huge).toMatch(/^HTTP\/1\.1 431 .*headers of the request are too long.*"code":"headers_too_large"/s)
  })

  it('pipelined one after another are each checked separately', async () => {
    const good = `${start('GET /api/v1/resources')}\r\n\r\n`
    const foreign = 'GET /api/v1/resources HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'
    const answers = await raw(url, good + foreign, /never/)
    expect(answers.match(/HTTP\/1\.1 \d{3}/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 401'])
  })
})

describe('a malformed request behind an answer that has begun', () => {
  it('ends the connection, and writes no second head into the answer', async () => {
    let begun: ServerResponse | undefined
    upstream.answerWith((_req, res) => {
      begun = res.writeHead(200, { 'content-type': 'application/json' })
      res.write('{"part":')
    })
    const { hostname, port } = new URL(url)
    const socket = connect(Number(port), hostname)
    let seen = ''
    socket.on('data', (bytes) => {
      seen += bytes
    })
    socket.write(`${start('GET /api/v1/resources')}\r\n\r\n`)
    await until(() => seen.includes('part') || undefined)
    const closed = once(socket, 'close')
    socket.on('error', () => {}).write('NOT HTTP\r\n\r\n')
    await closed
    expect(seen.match(/HTTP\/1\.1 \d{3}/g)).toEqual(['HTTP/1.1 200'])
    begun?.end()
    upstream.answerWith((_req, res) => res.writeHead(200).end('{}'))
  })
})

describe('bytes that are no HTTP behind a whole request', () => {
  it('end the connection without an answer while the request is served: it may take effect', async () => {
    const { hostname, port } = new URL(url)
    const socket = connect(Number(port), hostname)
    let seen = ''
    socket.on('data', (bytes) => {
      seen += bytes
    })
    const served = new Promise<ServerResponse>((resolve) => upstream.answerWith((_req, res) => resolve(res)))
    socket.write(`${post('Content-Length: 2', 'Idempotency-Key: k')}\r\n\r\n{}`)
    const answer = await served
    const closed = once(socket, 'close')
    socket.write('xyz\r\n\r\n')
    await closed
    answer.writeHead(201).end('{}')
    upstream.answerWith((_req, res) => res.writeHead(200).end('{}'))
    expect(seen).toBe('')
  })
})

describe('headers of one connection only', () => {
  it('pass neither up nor down', async () => {
    upstream.answerWith((_req, res) =>
      res
        .writeHead(200, {
          'content-type': 'application/json',
          connection: 'keep-alive, x-secret',
          'x-secret': 'inner',
          'proxy-authenticate': 'Basic',
          trailer: 'x-end',
          'keep-alive': 'timeout=99',
        })
        .end('{}'),
    )
    const answer = await raw(
      url,
      `${start('GET /api/v1/resources', 'Connection: close, Accept , \t If-None-Match', 'Accept: text/x', 'If-None-Match: "1"', 'TE: trailers', 'Proxy-Authorization: Basic x')}\r\n\r\n`,
      /never/,
    )
    expect(answer).toMatch(/^HTTP\/1\.1 200 /)
    for (const name of ['x-secret', 'proxy-authenticate', 'trailer', 'timeout=99']) expect(answer).not.toContain(name)
    const { headers } = upstream.last() ?? { headers: {} }
    for (const name of ['te', 'proxy-authorization', 'accept', 'if-none-match'])
      expect(headers, name).not.toHaveProperty(name)
    upstream.answerWith((_req, res) => res.writeHead(200).end('{}'))
  })

  it('are read in no time, however many blanks are between their names', () => {
    const connection = `a${' '.repeat(16_000)}b`
    const more = { upstream: 'catalog', request_id: '', address: '', traceparent: '', priority: 'read' } as const
    const began = performance.now()
    for (let i = 0; i < 10; i += 1) upstreamHeaders({ connection }, more)
    expect(performance.now() - began).toBeLessThan(500)
  })
})

describe('behind https', () => {
  it('every answer demands https for a year, even a refusal', async () => {
    const origin = 'https://signalbox.test'
    const secure = await auth.addGateway({ GATEWAY__HTTP__PUBLIC_ORIGIN: origin })
    for (const path of ['/api/v1/resources', '/health/live', '/nothing']) {
      const { headers } = await send(`${secure.url}${path}`, { headers: bearer(token) })
      expect(headers['strict-transport-security'], path).toBe('max-age=31536000; includeSubDomains')
    }
  })
})
