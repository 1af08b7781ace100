import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import type { NatsConnection } from 'nats'
import { request } from 'undici'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { createPorts } from '../../apps/platform/base/ports.ts'
import { silentScreen } from '../../apps/platform/base/screen.ts'
import { locateNats, writeNatsConfig } from '../../apps/platform/servers/nats.ts'
import { connectNats, ensureStreams, prefixed } from '../../apps/shared/events/events.ts'
import { type Auth, bearer, counted, PASSWORD, send, startAuth } from '../session/support/auth.ts'
import { serverUrl } from '../support/database.ts'
import { startLink } from '../support/link.ts'
import { scratchFolder } from '../support/servers.ts'
import { until } from '../support/until.ts'
import { startUpstream } from './support/upstream.ts'

let auth: Auth
let upstream: Awaited<ReturnType<typeof startUpstream>>
let redisLink: Awaited<ReturnType<typeof startLink>>
let natsLink: Awaited<ReturnType<typeof startLink>>
let gateway: Awaited<ReturnType<Auth['addGateway']>>
let nats: NatsConnection

const login = async () =>
  String(
    (await send(`${auth.session.url}/auth/login`, { body: { username: 'eva', password: PASSWORD } })).body.access_token,
  )
const claims = (token: string) =>
  JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as { session_id: string; sub: string }
const call = (token: string, method: 'GET' | 'POST', path: string) =>
  send(`${gateway.url}${path}`, { method, headers: { ...bearer(token), 'idempotency-key': randomUUID() } })
const byKind = async (token: string) => ({
  R: (await call(token, 'GET', '/api/v1/resources')).status,
  W: (await call(token, 'POST', '/api/v1/intents')).status,
  A: (await call(token, 'POST', '/api/v1/plans/p/start')).status,
  S: (await call(token, 'POST', '/api/v1/operations/o/pause')).status,
})
const announce = (token: string) =>
  nats
    .jetstream()
    .publish(
      prefixed(auth.prefix.slice(0, -1), 'auth.session.revoked.v1'),
      JSON.stringify({
        event_id: randomUUID(),
        type: 'auth.session.revoked.v1',
        schema_version: 1,
        occurred_at: new Date().toISOString(),
        session_id: claims(token).session_id,
        user_id: claims(token).sub,
        reason: 'logout',
        access_valid_until: new Date(Date.now() + 900_000).toISOString(),
      }),
    )
const redisBack = () => until(() => gateway.deps.redis.ping(), { what: 'Redis behind the link' })
const feedLive = (live: boolean) =>
  until(() => gateway.deps.feed.isLive() === live, { what: `the feed to be ${live ? 'live' : 'away'}` })

beforeAll(async () => {
  upstream = await startUpstream()
  redisLink = await startLink(serverUrl('REDIS_URL'))
  natsLink = await startLink(serverUrl('NATS_URL'))
  auth = await startAuth({
    GATEWAY__UPSTREAM__CATALOG_URL: upstream.url,
    GATEWAY__UPSTREAM__OPERATIONS_URL: upstream.url,
  })
  await auth.addUser('eva')
  nats = await connectNats(serverUrl('NATS_URL'), 'test')
  await ensureStreams(nats, auth.prefix.slice(0, -1), ['AUTH'])
  gateway = await auth.addGateway({
    GATEWAY__REDIS__URL: redisLink.url,
    GATEWAY__REDIS__TIMEOUT_MS: '250',
    GATEWAY__NATS__URL: natsLink.url,
  })
  await feedLive(true)
  await redisBack()
})
afterAll(async () => {
  await auth?.stop()
  upstream?.stop()
  redisLink?.stop()
  natsLink?.stop()
  const jsm = await nats?.jetstreamManager()
  await jsm?.streams.delete(`${auth.prefix.slice(0, -1)}AUTH`)
  await nats?.close()
})
afterEach(async () => {
  redisLink.mend()
  natsLink.mend()
  await redisBack()
  await feedLive(true)
})

describe('while Redis is away', () => {
  it('arming acts wait; all others continue by what NATS told this process', async () => {
    const token = await login()
    expect(await byKind(token)).toEqual({ R: 200, W: 200, A: 200, S: 200 })
    redisLink.cut()
    expect(await byKind(token)).toEqual({ R: 200, W: 200, A: 503, S: 200 })
    const armed = await call(token, 'POST', '/api/v1/plans/p/start')
    expect(armed.body).toMatchObject({ category: 'unavailable', code: 'revocation_unknown', retryable: true })
    expect(Number(armed.headers['retry-after'])).toBeGreaterThan(0)
    expect(await counted(gateway.deps.telemetry.metrics, 'signalbox_redis_fallback_active')).toBe(1)
  })

  it('a session that NATS reports as revoked is refused for every kind', async () => {
    const token = await login()
    redisLink.cut()
    expect((await call(token, 'GET', '/api/v1/resources')).status).toBe(200)
    await announce(token)
    await until(async () => (await call(token, 'GET', '/api/v1/resources')).status === 401, {
      what: 'the revocation by event',
    })
    expect(await byKind(token)).toEqual({ R: 401, W: 401, A: 401, S: 401 })
  })

  it('with NATS down too, writes wait as well', async () => {
    const token = await login()
    redisLink.cut()
    natsLink.cut()
    await feedLive(false)
    expect(await byKind(token)).toEqual({ R: 200, W: 503, A: 503, S: 200 })
  })

  it('refusals come at once after the first failures, not after a timeout each', async () => {
    const token = await login()
    redisLink.cut()
    for (let i = 0; i < 6; i++) await call(token, 'GET', '/api/v1/resources')
    const started = performance.now()
    for (let i = 0; i < 10; i++) await call(token, 'POST', '/api/v1/plans/p/start')
    expect(performance.now() - started).toBeLessThan(1500)
  })
})

describe('while NATS is silent', () => {
  it('it counts as down, even if its connection is open', async () => {
    const token = await login()
    natsLink.freeze()
    await until(() => !gateway.deps.feed.isLive(), { what: 'the feed to be missed' })
    redisLink.cut()
    expect(await byKind(token)).toEqual({ R: 200, W: 503, A: 503, S: 200 })
  })
})

describe('while JetStream is away behind a connection that stands', () => {
  it('a deleted stream is noticed; once it is back, all that it has by then is read', async () => {
    const token = await login()
    const jsm = await nats.jetstreamManager()
    await jsm.streams.delete(`${auth.prefix.slice(0, -1)}AUTH`)
    await feedLive(false)
    redisLink.cut()
    expect(await byKind(token)).toEqual({ R: 200, W: 503, A: 503, S: 200 })
    await ensureStreams(nats, auth.prefix.slice(0, -1), ['AUTH'])
    await announce(token)
    await feedLive(true)
    expect(await byKind(token)).toEqual({ R: 401, W: 401, A: 401, S: 401 })
  })

  it('its silence is noticed, and its return', async () => {
    const dir = scratchFolder()
    const port = await createPorts().take('nats', 0)
    const url = `nats://127.0.0.1:${port}`
    const config = writeNatsConfig(dir, port, [])
    const well = readFileSync(config, 'utf8')
    const server = spawn(await locateNats(silentScreen), ['-c', config], { stdio: 'ignore' })
    const reload = (text: string) => {
      writeFileSync(config, text)
      server.kill('SIGHUP')
    }
    try {
      const own = await until(() => connectNats(url, 'test'), { what: 'the server' })
      await ensureStreams(own, auth.prefix.slice(0, -1), ['AUTH'])
      const { feed } = (await auth.addGateway({ GATEWAY__NATS__URL: url })).deps
      await until(() => feed.isLive(), { what: 'the feed' })
      reload(well.replace('jetstream {', 'jetstream {\n  enabled: false'))
      await until(() => !feed.isLive(), { what: 'JetStream to be missed' })
      expect(await own.rtt()).toBeGreaterThanOrEqual(0)
      reload(well)
      await until(() => feed.isLive(), { what: 'the feed to be back' })
      await own.close()
    } finally {
      server.kill('SIGKILL')
      rmSync(dir, { recursive: true, force: true })
    }
  }, 90_000)
})

describe('a gateway that starts after a revocation', () => {
  it('reads the last minutes before it relies on NATS', async () => {
    const token = await login()
    await announce(token)
    const late = await auth.addGateway({ GATEWAY__REDIS__URL: 'redis://127.0.0.1:9' })
    await until(() => late.deps.feed.isLive(), { what: 'the feed of the late gateway' })
    const answer = await send(`${late.url}/api/v1/resources`, { headers: bearer(token) })
    expect([answer.status, answer.body.code]).toEqual([401, 'invalid_token'])
    expect((await send(`${late.url}/health/ready`)).status).toBe(200)
  })

  it('is not ready without both Redis and NATS, and degraded without one of them', async () => {
    const nowhere = { GATEWAY__REDIS__URL: 'redis://127.0.0.1:9', GATEWAY__REDIS__TIMEOUT_MS: '250' }
    const lost = await auth.addGateway({ ...nowhere, GATEWAY__NATS__URL: 'nats://127.0.0.1:9' })
    expect((await send(`${lost.url}/health/ready`)).status).toBe(503)
    const token = await login()
    const by = async (method: 'GET' | 'POST', path: string) =>
      (await send(`${lost.url}${path}`, { method, headers: { ...bearer(token), 'idempotency-key': randomUUID() } }))
        .status
    expect([await by('GET', '/api/v1/resources'), await by('POST', '/api/v1/intents')]).toEqual([200, 503])
    const half = await auth.addGateway(nowhere)
    await until(() => half.deps.feed.isLive(), { what: 'the feed without Redis' })
    expect((await send(`${half.url}/health/ready`)).body).toEqual({ status: 'degraded' })
  })

  it('is not ready without keys', async () => {
    const blind = await auth.addGateway({ AUTH__JWKS__URL: 'http://127.0.0.1:9/jwks' })
    expect((await send(`${blind.url}/health/ready`)).status).toBe(503)
    expect((await send(`${blind.url}/health/live`)).status).toBe(200)
    // An outage is 503, never 401: a 401 would log users out.
    const answer = await send(`${blind.url}/api/v1/resources`, { headers: bearer(await login()) })
    expect([answer.status, answer.body.category]).toEqual([503, 'unavailable'])
  })
})

describe('event streams', () => {
  const openStream = async (token: string) => {
    const reply = await request(`${gateway.url}/api/v1/events?topics=me`, {
      headers: { ...bearer(token), accept: 'text/event-stream' },
    })
    let text = ''
    let ended = false
    reply.body.on('data', (chunk: Buffer) => {
      text += chunk.toString()
    })
    reply.body.on('error', () => {})
    reply.body.on('close', () => {
      ended = true
    })
    return { status: reply.statusCode, text: () => text, ended: () => ended, close: () => reply.body.destroy() }
  }

  it('pass through piece by piece, at most ten per session, and end with the session', async () => {
    const send_next: (() => void)[] = []
    upstream.answerWith((_req, res) => {
      res.writeHead(200, { 'content-type': 'text/event-stream' })
      res.write('event: hello\ndata: 1\n\n')
      send_next.push(() => res.write('event: node\ndata: 2\n\n'))
    })
    const token = await login()
    const streams = [await openStream(token)]
    const [first] = streams
    await until(() => first?.text() === 'event: hello\ndata: 1\n\n', { what: 'the first frame' })
    expect(upstream.last()?.headers['x-request-deadline']).toBeUndefined()
    send_next[0]?.()
    await until(() => first?.text().endsWith('data: 2\n\n'), { what: 'the second frame' })
    for (let i = 1; i < 10; i++) streams.push(await openStream(token))
    const eleventh = await call(token, 'GET', '/api/v1/events')
    expect([eleventh.status, eleventh.body.code]).toEqual([429, 'rate_limited'])
    streams[9]?.close()
    await until(async () => (await openStream(token)).status === 200, { what: 'the place of a closed stream' })
    await announce(token)
    await until(() => streams.every((stream) => stream.ended()), { what: 'the end of all streams' })
    upstream.answerWith((_req, res) => res.writeHead(200).end('{}'))
  })

  it('end when a fresh proof ends the token that opened them, and only then', async () => {
    upstream.answerWith((_req, res) => {
      res.writeHead(200, { 'content-type': 'text/event-stream' })
      res.write('event: hello\ndata: 1\n\n')
    })
    const [token, other] = [await login(), await login()]
    const [older, neighbor] = [await openStream(token), await openStream(other)]
    const proof = { body: { password: PASSWORD }, headers: bearer(token) }
    const fresh = String((await send(`${auth.session.url}/v1/token/reauth`, proof)).body.access_token)
    const newer = await openStream(fresh)
    expect([older.status, neighbor.status, newer.status]).toEqual([200, 200, 200])
    await until(older.ended, { what: 'the end of the older stream' })
    expect([neighbor.ended(), newer.ended()]).toEqual([false, false])
    neighbor.close()
    newer.close()
    upstream.answerWith((_req, res) => res.writeHead(200).end('{}'))
  })
})
