import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { type AddressInfo, createServer as createListener } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { silentScreen } from '../../apps/platform/base/screen.ts'
import { ENDLESS, signIn, soon } from '../../apps/platform/demo/client.ts'
import { startDemoProvider, startProvider } from '../../apps/platform/demo/provider.ts'

/** A gateway that refuses `times` times before it answers. */
let refusals: { status: number; seconds: number; times: number }
let asked: number[]
const server = createServer((_req, res) => {
  asked.push(performance.now())
  res.setHeader('content-type', 'application/json')
  if (asked.length > refusals.times) return void res.end('{"access_token":"t"}')
  res.writeHead(refusals.status, { 'retry-after': String(refusals.seconds) })
  res.end(JSON.stringify({ category: 'unavailable', code: 'busy', retryable: refusals.status === 503 }))
})
let url: string
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterAll(() => void server.close())
beforeEach(() => {
  asked = []
})
const eva = { username: 'eva', password: 'p', roles: [] }

it('retries when the refusal says, and not before', async () => {
  for (const status of [429, 503]) {
    asked = []
    refusals = { status, seconds: 1, times: 2 }
    await signIn(url, eva)
    expect(asked).toHaveLength(3)
    for (const [i, at] of asked.slice(1).entries()) expect(at - (asked[i] as number)).toBeGreaterThanOrEqual(990)
  }
})

it('that only waits tells the reason, if it lasts', async () => {
  refusals = { status: 503, seconds: 1, times: 2 }
  const told: string[] = []
  await signIn(url, eva, { ...ENDLESS, tell: { every_ms: 500, line: (text) => void told.push(text) } })
  expect(told.length).toBeGreaterThan(0)
  for (const line of told) expect(line).toMatch(/^waits and tries again: POST \/v1\/token: 503 unavailable\/busy/)
})

it('gives up if its patience ends before the time that the refusal names', async () => {
  refusals = { status: 429, seconds: 30, times: 2 }
  await expect(signIn(url, eva, { tries: 8, ms: 5000 })).rejects.toThrow('POST /v1/token: 429')
  expect(asked).toHaveLength(1)
})

it('does not repeat permanent failures', async () => {
  refusals = { status: 403, seconds: 0, times: 9 }
  await expect(signIn(url, eva, ENDLESS)).rejects.toThrow('403')
  expect(asked).toHaveLength(1)
})

it('treats an answer that breaks off as temporary', async () => {
  let tries = 0
  const breaking = createServer((_req, res) => {
    tries += 1
    res.writeHead(200, { 'content-type': 'application/json', 'content-length': '20' })
    if (tries > 1) return void res.end('{"access_token":"t"}')
    res.write('{"access')
    setTimeout(() => res.destroy(), 50)
  })
  await new Promise<void>((resolve) => breaking.listen(0, '127.0.0.1', resolve))
  try {
    await signIn(`http://127.0.0.1:${(breaking.address() as AddressInfo).port}`, eva, { tries: 8, ms: 60_000 })
    expect(tries).toBe(2)
  } finally {
    breaking.close()
  }
})

it('treats a broken connection as temporary', async () => {
  let tries = 0
  const answer = await soon(async () => {
    tries += 1
    return fetch(tries === 1 ? 'http://127.0.0.1:59998/' : url)
  })
  expect(answer.status).toBeGreaterThan(0)
})

it('the provider of the demo moves to a free port, and a taken one is an error of its start', async () => {
  const holder = createListener()
  // If another program has the port already, that one is the holder.
  await new Promise<void>((done) => holder.once('error', () => done()).listen(7190, '127.0.0.1', done))
  const dir = mkdtempSync(join(tmpdir(), 'signalbox-provider-'))
  const provider = await startDemoProvider(dir, silentScreen)
  try {
    const port = Number(new URL(provider.issuer).port)
    expect(port).toBeGreaterThan(7190)
    await expect(startProvider({ port, people: [] })).rejects.toThrow('EADDRINUSE')
  } finally {
    delete process.env.AUTH__PROVIDERS__FILE
    await provider.stop()
    holder.close()
    rmSync(dir, { recursive: true, force: true })
  }
})
