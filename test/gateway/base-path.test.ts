import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createSignalbox, read } from '../../apps/client/index.ts'
import { type Auth, bearer, PASSWORD, send, startAuth } from '../session/support/auth.ts'
import { startUpstream } from './support/upstream.ts'

const BASE = '/signalbox'
let auth: Auth
let upstream: Awaited<ReturnType<typeof startUpstream>>
let gateway: Awaited<ReturnType<Auth['addGateway']>>
let token: string
const stops: (() => void)[] = []

/** A reverse proxy that serves the gateway below `BASE`, as nginx does with or without a path in `proxy_pass`. */
const startProxy = async (strips: boolean): Promise<string> => {
  const server = createServer((req, res) => {
    if (!req.url?.startsWith(`${BASE}/`)) return void res.writeHead(404).end('another application')
    const headers = { ...req.headers, ...(strips && { 'x-forwarded-prefix': BASE }) }
    const path = strips ? req.url.slice(BASE.length) : req.url
    const onward = request(`${gateway.url}${path}`, { method: req.method ?? 'GET', headers }, (answer) => {
      res.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(res)
    })
    req.pipe(onward)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  stops.push(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

beforeAll(async () => {
  upstream = await startUpstream()
  auth = await startAuth({
    GATEWAY__UPSTREAM__CATALOG_URL: upstream.url,
    GATEWAY__UPSTREAM__OPERATIONS_URL: upstream.url,
    GATEWAY__HTTP__BASE_PATH: BASE,
  })
  writeFileSync(join(auth.console_dir, 'index.html'), '<!doctype html><html><head></head></html>')
  gateway = await auth.addGateway()
  await auth.addUser('eva', ['operator'])
  upstream.answerWith((req, res) =>
    res
      .writeHead(req.method === 'POST' ? 202 : 200, {
        'content-type': 'application/json',
        ...(req.method === 'POST' && { location: '/v1/resources/a', link: '</v1/intents/b>; rel="monitor"' }),
      })
      .end(JSON.stringify({ url: req.url })),
  )
  token = String(
    (await send(`${gateway.url}/v1/token`, { body: { username: 'eva', password: PASSWORD } })).body.access_token,
  )
})
afterAll(async () => {
  for (const stop of stops) stop()
  await auth?.stop()
  upstream?.stop()
})

describe.each([
  ['keeps', false],
  ['strips', true],
])('below the base path of a proxy that %s it', (_name, strips) => {
  let outside: string
  beforeAll(async () => {
    outside = await startProxy(strips)
  })

  it('Location and Link lead to the objects that they name', async () => {
    const headers = { ...bearer(token), 'idempotency-key': crypto.randomUUID() }
    const { headers: told } = await send(`${outside}${BASE}/api/v1/resources`, { body: {}, headers })
    expect([told.location, told.link]).toEqual([`${BASE}/v1/resources/a`, `<${BASE}/v1/intents/b>; rel="monitor"`])
    for (const path of [String(told.location), `${BASE}/v1/intents/b`]) {
      const followed = await send(`${outside}${path}`, { headers: bearer(token) })
      expect([followed.status, followed.body.url]).toEqual([200, path.slice(BASE.length)])
    }
  })

  it('the document names the address that a client then uses, and the reference links to its own pages', async () => {
    const { body } = await send(`${outside}${BASE}/openapi.json`)
    expect(body.servers).toEqual([{ url: BASE }])
    const signalbox = createSignalbox({ url: `${outside}${BASE}`, token })
    expect(await read(signalbox.GET('/api/v1/resources'))).toEqual({ url: '/v1/resources' })
    const { text } = await send(`${outside}${BASE}/docs`)
    const links = [...text.matchAll(/href="(\/[^"]*)"/g)].map(([, path]) => String(path))
    for (const link of new Set(links.filter((path) => path !== `${BASE}/`)))
      expect([link, (await send(`${outside}${link}`)).status]).toEqual([link, 200])
  })

  it('a cookie of a session comes back to the path that needs it', async () => {
    const login = await send(`${outside}${BASE}/v1/token?response_mode=cookie`, {
      body: { username: 'eva', password: PASSWORD },
      headers: { origin: 'http://console.test' },
    })
    const cookies = [login.headers['set-cookie'] ?? []].flat()
    expect(cookies.find((one) => one.startsWith('refresh_token='))).toContain(`; Path=${BASE}/v1/token;`)
    expect(cookies.find((one) => one.startsWith('__Host-'))).toContain('; Path=/;')
  })

  it('is the API alone: a refusal says where the console is', async () => {
    const page = await send(`${outside}${BASE}/inbox`, { headers: { accept: 'text/html' } })
    expect([page.status, page.body.hint]).toEqual([404, 'The console is at http://console.test/.'])
  })
})

it('stays away from the root, and from a path that only the caller names', async () => {
  const headers = { ...bearer(token), 'x-forwarded-prefix': '//evil.test' }
  const at = async (path: string) => {
    const keyed = { ...headers, 'idempotency-key': crypto.randomUUID() }
    return (await send(`${gateway.url}${path}`, { body: {}, headers: keyed })).headers.location
  }
  expect(await at('/api/v1/resources')).toBe('/v1/resources/a')
  expect((await send(`${gateway.url}/openapi.json`, { headers })).body.servers).toEqual([{ url: '/' }])
  expect((await send(`${gateway.url}/inbox`, { headers: { accept: 'text/html' } })).status).toBe(200)
  for (const path of [`${BASE}//evil.test`, `${BASE}/../internal`, `${BASE}${BASE}/api/v1/resources`])
    expect([path, (await send(`${gateway.url}${path}`)).status >= 400]).toEqual([path, true])
})
