import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, utimesSync } from 'node:fs'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createApi } from '../../apps/cli/session/api.ts'
import { createCredentials } from '../../apps/cli/session/credentials.ts'
import { loginBusy, problemOf, unavailable } from '../../apps/shared/errors.ts'
import { type Auth, PASSWORD, send, startAuth } from '../session/support/auth.ts'
import { codeAt } from '../support/totp.ts'

let auth: Auth
let gateway: Awaited<ReturnType<Auth['addGateway']>>
const home = mkdtempSync(join(tmpdir(), 'signalbox-cli-'))
const credentials = createCredentials({ XDG_CONFIG_HOME: home })
const client = (url: string, say = (_: string) => {}) =>
  createApi({ url, credentials, token: undefined, idempotency_key: undefined, say })

beforeAll(async () => {
  auth = await startAuth({ GATEWAY__LIMITS__LOGIN_NAME: '8/600/8' })
  gateway = await auth.addGateway()
  for (const name of ['Eva', 'olga']) await auth.addUser(name)
})
afterAll(async () => {
  await auth?.stop()
  rmSync(home, { recursive: true, force: true })
})

/** A gateway that is busy `times` times before it admits a login; `lost`: answers of the real one that never arrive. */
const busyAtFirst = async (times: number, refusal: () => ReturnType<typeof loginBusy>, lost = 0) => {
  const server = createServer((req, res) => {
    times -= 1
    if (times >= 0) {
      const body = JSON.stringify(problemOf(refusal(), 'request-1', '/v1/token'))
      return void req
        .resume()
        .on('end', () => res.writeHead(503, { 'content-type': 'application/problem+json' }).end(body))
    }
    const { method, headers } = req
    const through = request(`${gateway.url}${req.url}`, { method, headers }, (answer) => {
      lost -= 1
      if (lost >= 0) return void answer.resume().on('end', () => res.destroy())
      res.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(res)
    })
    req.pipe(through)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, stop: () => server.close() }
}

describe('signalbox login', () => {
  it('is a known device from the second time on, even after a logout, whatever strangers do', async () => {
    const api = client(gateway.url)
    await api.login('eva', PASSWORD)
    const file = join(home, 'signalbox/devices.json')
    expect(statSync(file).mode & 0o777).toBe(0o600)
    await api.logout()
    const guess = () =>
      send(`${gateway.url}/auth/login`, { body: { username: 'eva', password: 'Wrong-Horse-7-Battery' } })
    for (let i = 0; i < 10; i++) await guess()
    expect((await guess()).status).toBe(429)
    // The name in another spelling is the same person.
    await api.login('EVA', PASSWORD)
    expect(readFileSync(file, 'utf8')).not.toContain(PASSWORD)
    expect(credentials.device(gateway.url, 'eva')).toMatch(/^d1\./)
    expect(credentials.device('https://elsewhere.test', 'eva')).toBeUndefined()
  })

  it('asks for the code of an authenticator app, again after a wrong one, and names the next step without one', async () => {
    const api = client(gateway.url)
    await api.login('olga', PASSWORD)
    const { body } = await api.send<{ secret: string; setup: string }>('POST', '/api/v1/users/me/totp/setup', {})
    const code = codeAt(body.secret, new Date(), -1)
    await api.send('PUT', '/api/v1/users/me/totp', { setup: body.setup, code })
    await api.logout()
    await expect(api.login('olga', PASSWORD)).rejects.toThrow(/needs a code of your authenticator app/)
    const asked: boolean[] = []
    await api.login('olga', PASSWORD, async (again) => {
      asked.push(again)
      return again ? codeAt(body.secret, new Date()) : code
    })
    expect(asked).toEqual([false, true])
    await api.send('DELETE', '/api/v1/users/me/totp')
    await api.logout()
  })

  it('waits as long as a busy server asks, says so and tries again; a wrong password is tried once', async () => {
    const busy = await busyAtFirst(2, () => loginBusy(60))
    try {
      const said: string[] = []
      await client(busy.url, (line) => void said.push(line)).login('olga', PASSWORD)
      expect(said).toEqual(Array(2).fill('The server is busy. Trying again in 1 s.'))
      await expect(client(gateway.url, (line) => void said.push(line)).login('nobody', PASSWORD)).rejects.toThrow(
        /invalid_credentials/,
      )
      expect(said.length).toBe(2)
    } finally {
      busy.stop()
    }
  })
})

describe('a refresh', () => {
  it('is repeated with its key after a refusal that will pass, and soon after a lost answer: the sign-in lives', async () => {
    const away = () => unavailable('away', undefined, 'unavailable')
    for (const [busy, lost] of [
      [1, 0],
      [0, 2],
    ] as const) {
      await client(gateway.url).login('olga', PASSWORD)
      const through = await busyAtFirst(busy, away, lost)
      try {
        const entry = credentials.get(gateway.url)
        if (!entry) throw new Error('nobody is signed in')
        credentials.save(through.url, { ...entry, expires_at: 0 })
        const me = await client(through.url).get<{ username: string }>('/api/v1/users/me')
        expect(me.username).toBe('olga')
        credentials.save(through.url, undefined)
      } finally {
        through.stop()
      }
    }
    const events = await auth.redis.xrange(`${auth.prefix}auth:revoked`, '-', '+')
    expect(events.filter(([, fields]) => fields.includes('replay'))).toEqual([])
  })
})

describe('the lock of the credentials', () => {
  it('is renewed while its process works, however long that takes, and no other one enters', async () => {
    const lock = `${credentials.file}.lock`
    let inside = 0
    const entered = async () => {
      inside += 1
      expect(inside).toBe(1)
    }
    const first = credentials.alone(async () => {
      await entered()
      const past = new Date(Date.now() - 5000)
      utimesSync(lock, past, past)
      // Long enough for a lock that nobody renews to become stale.
      await delay(6500)
      inside -= 1
    })
    const second = createCredentials({ XDG_CONFIG_HOME: home }).alone(entered)
    await Promise.all([first, second])
    expect(existsSync(lock)).toBe(false)
  })
})
