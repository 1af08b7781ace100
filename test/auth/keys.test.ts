import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { keySettingsOf } from '../../apps/token/deps.ts'
import { killKey, tendKeys } from '../../apps/token/keys.service.ts'
import { listKeys } from '../../db/token/queries.ts'
import { startUpstream } from '../gateway/support/upstream.ts'
import { type Auth, bearer, PASSWORD, send, startAuth } from '../session/support/auth.ts'
import { startLink } from '../support/link.ts'
import { until } from '../support/until.ts'

/** auth.md 14.8: rotation under load, kill, and an outage of token, seen from outside. */

type Tokens = { access_token: string; refresh_token: string }
let auth: Auth
let upstream: Awaited<ReturnType<typeof startUpstream>>
let gateway: Awaited<ReturnType<Auth['addGateway']>>
let link: Awaited<ReturnType<typeof startLink>>

const kidOf = (token: string): string => JSON.parse(Buffer.from(token.split('.')[0] ?? '', 'base64url').toString()).kid
const login = async (url = gateway.url) => {
  const answer = await send(`${url}/auth/login`, { body: { username: 'eva', password: PASSWORD } })
  if (answer.status !== 200) throw new Error(answer.text)
  return answer.body as Tokens
}
const asked = async (token: string) =>
  (await send(`${gateway.url}/api/v1/resources`, { headers: bearer(token) })).status
/** Every verifier of this test knows the key. */
const everywhere = (kid: string) =>
  [gateway.deps.jwks, auth.session.deps.jwks, auth.identity_deps.jwks].every((jwks) => jwks.get(kid) !== undefined)

beforeAll(async () => {
  upstream = await startUpstream()
  auth = await startAuth({
    GATEWAY__UPSTREAM__CATALOG_URL: upstream.url,
    AUTH__JWKS__CACHE_S: '1',
    TOKEN__KEYS__ROTATE_EVERY_S: '60',
    TOKEN__KEYS__PUBLISH_LEAD_S: '0',
    TOKEN__KEYS__POLL_MS: '20',
  })
  await auth.addRelay()
  gateway = await auth.addGateway()
  await auth.addUser('eva')
  link = await startLink(auth.vars.GATEWAY__UPSTREAM__TOKEN_URL ?? '')
})
afterAll(async () => {
  await auth?.stop()
  upstream?.stop()
  link?.stop()
})

describe('the keys of token', () => {
  it('rotate under load without one false 401', async () => {
    const settings = keySettingsOf(auth.token_deps.config, auth.identity_deps.db)
    const refused: [string, number][] = []
    const kids = new Set<string>()
    let running = true
    /** One client: uses its access token and all it had before, and refreshes all the time. */
    const client = async () => {
      let tokens = await login()
      const before: string[] = []
      while (running) {
        before.push(tokens.access_token)
        kids.add(kidOf(tokens.access_token))
        for (const token of before.slice(-8)) {
          const status = await asked(token)
          if (status !== 200) refused.push(['access', status])
        }
        const next = await send(`${gateway.url}/auth/refresh`, { body: { refresh_token: tokens.refresh_token } })
        if (next.status !== 200) refused.push(['refresh', next.status])
        else tokens = next.body as Tokens
      }
    }
    const clients = [client(), client(), client()]
    try {
      await until(() => kids.size === 1)
      for (let turn = 1; turn <= 3; turn++) {
        const next = (await listKeys(auth.identity_deps.db)).find(({ status }) => status === 'next')?.kid ?? ''
        // What the lead time is for: the next key is known before it signs.
        await until(() => everywhere(next), { what: 'every verifier to know the next key' })
        await tendKeys({ ...settings, clock: { now: () => new Date(Date.now() + turn * 61_000) } })
        await until(() => auth.token_deps.keyring.active()?.kid === next)
        await until(() => kids.has(next), { what: 'tokens of the new key' })
      }
    } finally {
      running = false
      await Promise.all(clients)
    }
    expect(refused).toEqual([])
    expect(kids.size).toBeGreaterThanOrEqual(4)
  })

  it('are killed at once: their tokens are refused, new ones are not, nobody sees an error of ours', async () => {
    const settings = keySettingsOf(auth.token_deps.config, auth.identity_deps.db)
    const old = await login()
    expect(await asked(old.access_token)).toBe(200)
    const killed = kidOf(old.access_token)
    expect(await killKey(settings, killed)).toBe('killed')
    const started = performance.now()
    await until(async () => (await asked(old.access_token)) === 401, { what: 'the refusal of the killed key' })
    expect(performance.now() - started).toBeLessThan(2000)
    await until(() => auth.token_deps.keyring.active()?.kid !== killed)
    const fresh = await until(() => login())
    expect(await asked(fresh.access_token)).toBe(200)
    expect(kidOf(fresh.access_token)).not.toBe(killed)
    const refresh = await until(async () => {
      const answer = await send(`${gateway.url}/auth/refresh`, { body: { refresh_token: old.refresh_token } })
      return answer.status !== 200 && answer
    })
    expect((refresh as { status: number }).status).toBe(401)
  })

  it('stay known while token is away: tokens verify, services call each other, login and refresh are 503 and rotate nothing', async () => {
    const tokens = await login()
    const cut = await auth.addSession({
      AUTH__RPC__TOKEN_URL: 'http://127.0.0.1:9',
      AUTH__JWKS__URL: `${link.url.replace(/\/$/, '')}/jwks`,
    })
    link.cut()
    // Identity is asked for the principal with a service token that session signed itself.
    expect((await send(`${cut.url}/v1/sessions`, { headers: bearer(tokens.access_token) })).status).toBe(200)
    for (const [path, body] of [
      ['/auth/login', { username: 'eva', password: PASSWORD }],
      ['/auth/refresh', { refresh_token: tokens.refresh_token }],
    ] as const) {
      const answer = await send(`${cut.url}${path}`, { body })
      expect([path, answer.status, answer.body.category]).toEqual([path, 503, 'unavailable'])
      expect(Number(answer.headers['retry-after'])).toBeGreaterThanOrEqual(1)
    }
    link.mend()
    const again = await send(`${gateway.url}/auth/refresh`, { body: { refresh_token: tokens.refresh_token } })
    expect(again.status).toBe(200)
  })
})
