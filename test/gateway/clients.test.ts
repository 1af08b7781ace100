import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { SEATED } from '../../apps/gateway/proxy/seats.ts'
import { type Auth, counted, PASSWORD, send, startAuth } from '../session/support/auth.ts'
import { serverUrl } from '../support/database.ts'
import { type Link, startLink } from '../support/link.ts'
import { until } from '../support/until.ts'
import { startUpstream } from './support/upstream.ts'

/** Clients that leave, send slowly or read slowly: none may keep what others need. */
type Gateway = Awaited<ReturnType<Auth['addGateway']>>
let auth: Auth
let upstream: Awaited<ReturnType<typeof startUpstream>>
let redis: Link
let gateway: Gateway
let hurried: Gateway
let token: string
let olgas: string
const open: Socket[] = []
const LARGE = Buffer.alloc(16_000_000, 'a')

beforeAll(async () => {
  upstream = await startUpstream()
  auth = await startAuth({
    GATEWAY__UPSTREAM__CATALOG_URL: upstream.url,
    GATEWAY__UPSTREAM__OPERATIONS_URL: upstream.url,
    // The test process is slow while it floods itself; that is not what is tested here.
    GATEWAY__PRESSURE__DELAY_MS: '60000',
  })
  writeFileSync(join(auth.console_dir, 'index.html'), '<!doctype html><html lang="en"><head></head></html>')
  writeFileSync(join(auth.console_dir, 'large.png'), LARGE)
  redis = await startLink(serverUrl('REDIS_URL'))
  gateway = await auth.addGateway({ GATEWAY__REDIS__URL: redis.url })
  hurried = await auth.addGateway({ GATEWAY__UPSTREAM__REPLY_MS: '4000' })
  await auth.addUser('eva', ['operator', 'engineer'])
  await auth.addUser('olga', ['operator'])
  token = String((await login()).body.access_token)
  olgas = String((await login('olga')).body.access_token)
})
afterEach(() => {
  redis.mend()
  for (const socket of open.splice(0)) socket.destroy()
  upstream.answerWith((_req, res) => res.writeHead(200).end('{}'))
})
afterAll(async () => {
  await auth?.stop()
  upstream?.stop()
  redis?.stop()
})

const login = (username = 'eva') => send(`${gateway.url}/auth/login`, { body: { username, password: PASSWORD } })
const headOf = (bearer: string, first: string, ...lines: string[]) =>
  `${[`${first} HTTP/1.1`, 'Host: x', `Authorization: Bearer ${bearer}`, ...lines].join('\r\n')}\r\n\r\n`
const head = (first: string, ...lines: string[]) => headOf(token, first, ...lines)
const posting = (path: string, length: number) =>
  head(`POST ${path}`, 'Content-Type: application/json', 'Idempotency-Key: k', `Content-Length: ${length}`)
const whole = (path: string, body: string) => posting(path, body.length) + body

/** Opens connections that send these bytes; `read` collects the answer of those that read. */
const callers = async ({ url }: Gateway, count: number, bytes: string, reads = true) => {
  const { hostname, port } = new URL(url)
  const made = Array.from({ length: count }, () => {
    const socket = connect({ host: hostname, port: Number(port) })
    const caller = { socket, read: '', ended: false }
    open.push(socket)
    socket.on('error', () => {})
    socket.on('close', () => (caller.ended = true))
    if (reads) socket.on('data', (chunk) => (caller.read += chunk.toString()))
    else socket.pause()
    socket.write(bytes)
    return caller
  })
  await Promise.all(made.map(({ socket }) => once(socket, 'connect')))
  return made
}
const taken = ({ deps }: Gateway) =>
  Object.values(deps.proxy.seats).reduce((sum, seats) => sum + SEATED.reduce((all, one) => all + seats.used(one), 0), 0)
const resting = ({ deps: { resting } }: Gateway) => resting.news.count() + resting.slow.count()
const inFlight = ({ deps }: Gateway) => counted(deps.telemetry.metrics, 'signalbox_http_in_flight')
const allFree = (at: Gateway) =>
  until(async () => taken(at) === 0 && (await inFlight(at)) === 0, {
    what: 'all seats, and no request in flight',
    timeout_ms: 25_000,
  })

vi.setConfig({ testTimeout: 90_000 })

describe('clients that leave while their request is checked', () => {
  it.each([
    ['a refresh', () => whole('/auth/refresh', '{"refresh_token":"x"}')],
    ['a login', () => whole('/auth/login', '{"username":"x","password":"y"}')],
    ['a change', () => whole('/api/v1/resources', '{}')],
    ['a large change', () => whole('/api/v1/resources', 'x'.repeat(100_000))],
    ['a read', () => head('GET /api/v1/resources')],
    ['reads one behind the other', () => head('GET /api/v1/resources').repeat(3)],
  ])('give back their seats: %s', async (_name, bytes) => {
    upstream.answerWith((_req, res) => res.writeHead(200).end('x'.repeat(200_000)))
    redis.slow(150)
    const sent = await callers(gateway, 100, bytes())
    await delay(60)
    for (const { socket } of sent) socket.resetAndDestroy()
    await delay(400)
    redis.mend()
    await allFree(gateway)
    expect(gateway.deps.logins.under_way).toBe(0)
    expect((await login()).status).toBe(200)
  })
})

describe('clients that send slowly', () => {
  it('keep no one out: their bodies hold no seat and are not in flight, and are refused after five seconds', async () => {
    const slow = await callers(gateway, 60, posting('/auth/refresh', 100))
    slow.push(...(await callers(gateway, 60, posting('/auth/login', 100))))
    slow.push(...(await callers(gateway, 60, posting('/api/v1/intents', 100))))
    const refused = (status: number) => slow.filter(({ read }) => read.startsWith(`HTTP/1.1 ${status}`)).length
    await until(() => refused(429) > 0 && refused(429) + refused(408) >= 56, {
      what: 'the end of those above the 64 of one address',
    })
    expect([taken(gateway), await inFlight(gateway)]).toEqual([0, 0])
    expect((await login()).status).toBe(200)
    await until(() => slow.every(({ ended }) => ended), { what: 'the end of slow bodies' })
    expect([refused(408) > 0, refused(429) + refused(408)]).toEqual([true, slow.length])
    const codes = new Set(slow.map(({ read }) => /"code":"(\w+)"/.exec(read)?.[1]))
    expect([...codes].sort()).toEqual(['body_too_slow', 'rate_limited'])
    await allFree(gateway)
  })

  it('leave seats to others when their large bodies are streamed; large bodies that arrive pass', async () => {
    const large = 'x'.repeat(100_000)
    const slow = await callers(gateway, 40, posting('/api/v1/intents', large.length))
    const answered = (status: number) => slow.filter(({ read }) => read.startsWith(`HTTP/1.1 ${status}`)).length
    await until(() => answered(429) === 24, { what: 'the end of those above 16 of one person' })
    await until(() => taken(gateway) === 16, { what: 'the seats of the others' })
    for (const { socket, read } of slow) if (read === '') socket.write(large)
    await until(() => answered(200) === 16, { what: 'the answers to all 16' })
    expect(upstream.seen.filter(({ body }) => body === large).length).toBe(16)
    await allFree(gateway)
  })

  it('take few seats by large bodies before they have signed in, from however many addresses', async () => {
    const proxied = await auth.addGateway({ GATEWAY__HTTP__TRUSTED_PROXIES: '["127.0.0.1/32"]' })
    const hook = (address: string) =>
      `${[
        'POST /api/v1/hooks/x HTTP/1.1',
        'Host: x',
        `X-Forwarded-For: ${address}`,
        'Content-Type: application/json',
        'Transfer-Encoding: chunked',
      ].join('\r\n')}\r\n\r\n1\r\nx\r\n`
    const strangers = await callers(proxied, 16, hook('192.0.2.1'))
    const refused = () => strangers.filter(({ read }) => read.startsWith('HTTP/1.1 429')).length
    await until(() => refused() === 12, { what: 'the end of those above 4 of one address' })
    const [other] = await callers(proxied, 1, `${hook('192.0.2.2')}0\r\n\r\n`)
    await until(() => other?.read.startsWith('HTTP/1.1 200'), { what: 'the hook of another address' })
    for (const n of [2, 3, 4]) strangers.push(...(await callers(proxied, 16, hook(`192.0.2.${n}`))))
    await until(() => refused() === 52, { what: 'the end of those above 12' })
    expect(taken(proxied)).toBe(12)
    const [read] = await callers(proxied, 1, head('GET /api/v1/operations', 'Connection: close'))
    await until(() => read?.ended, { what: 'a read beside them' })
    expect(read?.read).toMatch(/^HTTP\/1\.1 200/)
    await allFree(proxied)
  })

  it('are refused with a large body, too, before its answer is due; no upstream has failed by that', async () => {
    const failed = () =>
      counted(hurried.deps.telemetry.metrics, 'signalbox_dependency_calls_total', {
        dependency: 'operations',
        result: 'failed',
      })
    const before = await failed()
    const [slow] = await callers(hurried, 1, `${posting('/api/v1/intents', 100_000)}${'x'.repeat(70_000)}`)
    await until(() => slow?.ended, { what: 'the end of the slow body' })
    expect(slow?.read).toMatch(/^HTTP\/1\.1 408/)
    expect(slow?.read).toContain('"code":"body_too_slow"')
    await allFree(hurried)
    expect(await failed()).toBe(before)
  })
})

describe('clients whose large body is answered before its end', () => {
  it('get the answers to their next requests on the same connection; a silent one is cut', async () => {
    const early = createServer((_req, res) => void res.writeHead(413).end('{}'))
    early.listen(0, '127.0.0.1')
    await once(early, 'listening')
    const { port } = early.address() as AddressInfo
    const refusing = await auth.addGateway({ GATEWAY__UPSTREAM__OPERATIONS_URL: `http://127.0.0.1:${port}` })
    const begun = posting('/api/v1/intents', 2_000_000) + 'x'.repeat(1_000_000)
    const [busy, silent] = await callers(refusing, 2, begun)
    const refused = () => [busy, silent].every((client) => client?.read.startsWith('HTTP/1.1 413'))
    await until(refused, { what: 'the early answers' })
    busy?.socket.write('x'.repeat(1_000_000) + head('GET /api/v1/resources'))
    await until(() => busy?.read.includes('HTTP/1.1 200'), { what: 'the next answer' })
    await until(() => silent?.ended, { what: 'the end of the silent one' })
    expect(busy?.ended).toBe(false)
    await allFree(refusing)
    early.closeAllConnections()
    early.close()
  })
})

describe('agents', () => {
  it('wait for work in any number beside people: a waiting request holds no seat and is not in flight', async () => {
    upstream.answerWith((req, res) => void (req.url?.endsWith('/work') || res.writeHead(200).end('{}')))
    const waiting = () => upstream.seen.filter(({ url }) => url === '/v1/pools/infra/work').length
    await callers(gateway, 60, whole('/api/v1/pools/infra/work', '{}'))
    await until(() => waiting() === 60, { what: 'all requests at operations' })
    expect([taken(gateway), await inFlight(gateway)]).toEqual([0, 0])
    const reads = await callers(gateway, 10, head('GET /api/v1/operations', 'Connection: close'))
    await until(() => reads.every(({ ended }) => ended), { what: 'the reads' })
    for (const { read } of reads) expect(read).toMatch(/^HTTP\/1.1 200/)
  })

  it('bring an artifact over a slow link for longer than an answer may take, by the token of their work alone', async () => {
    const artifact = 'x'.repeat(2_000_000)
    const execution = `Authorization: Bearer exe_${'a'.repeat(43)}`
    const length = `Content-Length: ${artifact.length}`
    const start = [`PUT /api/v1/artifacts/${'0'.repeat(64)} HTTP/1.1`, 'Host: x', execution, length].join('\r\n')
    const [slow] = await callers(hurried, 1, `${start}\r\nContent-Type: application/octet-stream\r\n\r\n`)
    const since = performance.now()
    await until(() => performance.now() - since > 5000, { what: 'more than the time of an answer' })
    expect(slow?.ended).toBe(false)
    slow?.socket.write(artifact)
    await until(() => slow?.read.startsWith('HTTP/1.1 200'), { what: 'its answer' })
    expect(upstream.last()).toMatchObject({ url: `/v1/artifacts/${'0'.repeat(64)}`, body: artifact })
    expect(upstream.last()?.headers.authorization).toBe(execution.split(': ')[1])
  })
})

describe('clients that wait for news', () => {
  const NEWS = 'GET /api/v1/operations/x/timeline?after_seq=1&wait_ms=5000'
  const starting = (status: number, made: { read: string }[]) =>
    made.filter(({ read }) => read.startsWith(`HTTP/1.1 ${status}`)).length
  const reads = (result = 'answered') =>
    counted(gateway.deps.telemetry.metrics, 'signalbox_gateway_answer_seconds', { class: 'read', result, le: '+Inf' })

  it('hold no seat while they wait, are few, and leave places to others', async () => {
    const held: ServerResponse[] = []
    upstream.answerWith((req, res) => {
      if (!req.url?.includes('wait_ms')) return void res.writeHead(200).end('{}')
      res.writeProcessing()
      held.push(res)
    })
    const waiting = await callers(gateway, 16, head(NEWS, 'Connection: close'))
    await until(() => held.length === 16, { what: 'all of them at operations' })
    await until(() => taken(gateway) === 0, { what: 'the seats of those who wait' })
    expect(await inFlight(gateway)).toBe(0)
    const [before, failed] = [await reads(), await reads('failed')]
    const [seventeenth] = await callers(gateway, 1, head(NEWS, 'Connection: close'))
    await until(() => seventeenth?.ended, { what: 'the refusal of one too many' })
    expect(seventeenth?.read).toMatch(/^HTTP\/1\.1 503[\s\S]*"code":"overloaded"/)
    const others = await callers(gateway, 1, headOf(olgas, NEWS, 'Connection: close'))
    await until(() => held.length === 18 && taken(gateway) === 0, { what: 'the place of another person' })
    const short = await callers(gateway, 10, head('GET /api/v1/operations', 'Connection: close'))
    await until(() => short.every(({ ended }) => ended), { what: 'the reads beside them' })
    expect(starting(200, short)).toBe(10)
    for (const res of held) res.writeHead(200).end('{"events":[]}')
    await until(() => [...waiting, ...others].every(({ ended }) => ended), { what: 'their answers' })
    expect(starting(200, [...waiting, ...others])).toBe(17)
    // The time of a wait is no slow answer.
    expect(await reads()).toBe(before + 10)
    expect(await reads('failed')).toBe(failed)
    expect(resting(gateway)).toBe(0)
    await allFree(gateway)
  })

  it('cut no answer of theirs that is read slowly, and leave it a place', async () => {
    upstream.answerWith((req, res) => {
      if (req.url?.includes('wait_ms')) res.writeProcessing()
      else res.writeHead(200).end(LARGE)
    })
    const waiting = await callers(gateway, 16, head(NEWS))
    await until(() => resting(gateway) === 16, { what: 'all places of those who wait' })
    const content = head('GET /api/v1/operations/x/artifacts/y/content', 'Connection: close')
    const [reader] = await callers(gateway, 1, content, false)
    await until(() => resting(gateway) === 17, { what: 'a place for the reader' })
    let size = 0
    reader?.socket.on('data', (chunk) => (size += chunk.length)).resume()
    await until(() => reader?.ended, { what: 'the whole answer' })
    expect(size).toBeGreaterThan(LARGE.length)
    for (const { socket } of waiting) socket.resetAndDestroy()
    await until(() => resting(gateway) === 0, { what: 'their places' })
    await allFree(gateway)
  })

  it('give their places back when they leave', async () => {
    upstream.answerWith((_req, res) => res.writeProcessing())
    const waiting = await callers(gateway, 8, head(NEWS))
    await until(() => resting(gateway) === 8, { what: 'all places' })
    for (const { socket } of waiting) socket.resetAndDestroy()
    await until(() => resting(gateway) === 0, { what: 'their places' })
    await allFree(gateway)
  })
})

describe('clients that stop reading', () => {
  it.each([
    ['an answer', '/api/v1/resources'],
    ['a stream of events', '/api/v1/events'],
  ])('lose their connection and give back their seats: %s', async (_name, path) => {
    upstream.answerWith((_req, res) => res.writeHead(200).end(LARGE))
    const stalled = await callers(hurried, 8, head(`GET ${path}`), false)
    const kept = () => taken(hurried) + hurried.deps.streams.size() + resting(hurried)
    await until(() => kept() === 8, { what: 'eight readers' })
    await until(() => kept() === 0, { what: 'all seats', timeout_ms: 25_000 })
    await allFree(hurried)
    // A paused socket learns of its end only when it reads on.
    for (const { socket } of stalled) socket.resume()
    await until(() => stalled.every(({ ended }) => ended), { what: 'the end of the connections' })
  })

  it('keep few seats from others: few rest, and are no requests in flight; one too many keeps its seat', async () => {
    const path = '/api/v1/operations/x/artifacts/y/content'
    upstream.answerWith((req, res) => res.writeHead(200).end(req.url?.endsWith('/content') ? LARGE : '{}'))
    const stalled = await callers(gateway, 20, head(`GET ${path}`, 'Connection: close'), false)
    await until(() => resting(gateway) === 16 && taken(gateway) === 4, { what: 'the seats of the first' })
    expect(await inFlight(gateway)).toBe(4)
    const [read] = await callers(gateway, 1, headOf(olgas, 'GET /api/v1/operations', 'Connection: close'))
    await until(() => read?.ended, { what: 'the read of another person' })
    expect(read?.read).toMatch(/^HTTP\/1\.1 200/)
    let size = 0
    for (const { socket } of stalled) socket.on('data', (chunk) => (size += chunk.length)).resume()
    await until(() => stalled.every(({ ended }) => ended), { what: 'the answers to all' })
    expect(size).toBeGreaterThan(20 * LARGE.length)
    expect(resting(gateway)).toBe(0)
    await allFree(gateway)
  })

  it('do not stay in flight with a file of the console', async () => {
    const impatient = await auth.addGateway({ GATEWAY__UPSTREAM__REPLY_MS: '100' })
    expect(impatient.server.timeout).toBe(20_100)
    impatient.server.timeout = 500
    await callers(impatient, 20, head('GET /large.png'), false)
    await until(async () => (await inFlight(impatient)) === 20, { what: 'twenty readers' })
    await allFree(impatient)
  })

  it('are not those who read slowly but steadily', async () => {
    upstream.answerWith((_req, res) => res.writeHead(200).end(LARGE))
    const [reader] = await callers(hurried, 1, head('GET /api/v1/resources', 'Connection: close'), false)
    let size = 0
    reader?.socket.on('data', (chunk) => {
      size += chunk.length
      reader.socket.pause()
      setTimeout(() => reader.socket.resume(), 5)
    })
    reader?.socket.resume()
    await until(() => reader?.ended, { what: 'the whole answer' })
    expect(size).toBeGreaterThan(LARGE.length)
  })
})
