import { request } from 'undici'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { loadOperationsConfig } from '../../apps/operations/config.ts'
import { createTrust } from '../../apps/operations/wire.ts'
import { keksOf } from '../../apps/shared/codec/kek.ts'
import { newJti, signToken } from '../../apps/shared/jwt/sign.ts'
import { createTelemetry } from '../../apps/shared/telemetry.ts'
import { killKey, tendKeys } from '../../apps/token/keys.service.ts'
import { openPrivateKey } from '../../apps/token/seal.ts'
import { keySettingsOf } from '../../apps/token/wire.ts'
import { listKeys } from '../../db/token/queries.ts'
import { startUpstream } from '../gateway/support/upstream.ts'
import { type Auth, bearer, PASSWORD, send, startAuth } from '../session/support/auth.ts'
import { startLink } from '../support/link.ts'
import { until } from '../support/until.ts'

/** auth.md 14.8: rotation under load, a kill, and an outage of token, seen from outside. */

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
/** Opens a stream of events; the returned function says whether it has ended. */
const openStream = async (token: string, { url } = gateway) => {
  upstream.answerWith((req, res) => {
    res.writeHead(200)
    if (req.url === '/v1/events') res.write('event: hello\n\n')
    else res.end('{}')
  })
  const { statusCode, body } = await request(`${url}/api/v1/events`, { headers: bearer(token) })
  expect(statusCode).toBe(200)
  let ended = false
  body
    .on('error', () => {})
    .once('close', () => (ended = true))
    .resume()
  return () => ended
}
/** Every verifier of this test knows the key. */
const everywhere = (kid: string) =>
  [gateway.deps.jwks, auth.session.deps.jwks, auth.identity_deps.jwks].every((jwks) => jwks.get(kid) !== undefined)

beforeAll(async () => {
  upstream = await startUpstream()
  auth = await startAuth({
    GATEWAY__UPSTREAM__CATALOG_URL: upstream.url,
    GATEWAY__UPSTREAM__OPERATIONS_URL: upstream.url,
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
    /** One client: uses its access token and all its earlier ones, and refreshes all the time. */
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
        // The purpose of the lead time: the next key is known before it signs.
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

  it('are killed at once: their tokens are refused, new ones are not, and no caller sees an error of ours (ASVS 7.4.5)', async () => {
    const settings = keySettingsOf(auth.token_deps.config, auth.identity_deps.db)
    const old = await login()
    expect(await asked(old.access_token)).toBe(200)
    const killed = kidOf(old.access_token)
    const ends = await openStream(old.access_token)
    expect(await killKey(settings, killed)).toBe('killed')
    const started = performance.now()
    await until(async () => (await asked(old.access_token)) === 401, { what: 'the refusal of the killed key' })
    await until(ends, { what: 'the end of the stream that it opened' })
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

  it('are killed at every verifier within a second, even if NATS does not report it', async () => {
    const settings = keySettingsOf(auth.token_deps.config, auth.identity_deps.db)
    const deaf = await auth.addSession({ SESSION__NATS__URL: 'nats://127.0.0.1:9', AUTH__JWKS__CACHE_S: '3600' })
    const hearing = await auth.addSession({ AUTH__JWKS__CACHE_S: '3600' })
    const operations = createTrust(
      loadOperationsConfig({
        ...auth.vars,
        OPERATIONS__DATABASE__URL: auth.vars.IDENTITY__DATABASE__URL,
        OPERATIONS__NATS__URL: 'nats://127.0.0.1:9',
        OPERATIONS__SECRET__KEYS: auth.vars.IDENTITY__SECRET__KEYS,
        OPERATIONS__SERVICE__KEY_FILE: auth.services.keyFile('operations'),
        OPERATIONS__EVIDENCE__KEY_FILE: auth.services.keyFile('operations'),
        AUTH__JWKS__CACHE_S: '3600',
      }),
      createTelemetry('operations'),
    )
    const { access_token, refresh_token } = await login()
    const verified = async () =>
      operations.verifier(access_token).then(
        () => ({ status: 200 }),
        () => ({ status: 401 }),
      )
    await until(async () => (await verified()).status === 200, { what: 'the keys of operations' })
    const sessions = (url: string) => send(`${url}/v1/sessions`, { headers: bearer(access_token) })
    const me = () => send(`${auth.vars.GATEWAY__UPSTREAM__IDENTITY_URL}/v1/users/me`, { headers: bearer(access_token) })
    const still = await auth.addGateway({ GATEWAY__NATS__URL: 'nats://127.0.0.1:9' })
    const ends = await openStream(access_token, still)
    for (const { url } of [deaf, hearing]) expect((await sessions(url)).status).toBe(200)
    expect((await me()).status).toBe(200)
    await killKey(settings, kidOf(access_token))
    const killed_at = performance.now()
    const took = async (what: string, ask: () => Promise<{ status: number }>) => {
      await until(async () => (await ask()).status === 401, { what })
      return performance.now() - killed_at
    }
    const refresh = () => send(`${deaf.url}/auth/refresh`, { body: { refresh_token } })
    const times = await Promise.all([
      took('a session that hears', () => sessions(hearing.url)),
      took('identity', me),
      took('a session that does not hear', () => sessions(deaf.url)),
      took('a refresh', refresh),
      took('operations', verified),
    ])
    operations.close()
    // A poll of a second, plus this machine's overhead.
    for (const ms of times) expect(ms).toBeLessThan(2000)
    await until(ends, { what: 'the end of a stream at a gateway that does not hear' })
  })

  it('are known before they are needed, also when several are killed in a row: no valid token is refused for long', async () => {
    const settings = keySettingsOf(auth.token_deps.config, auth.identity_deps.db)
    // Only the event makes these read the keys again; an unknown key does so once in 30 s.
    const session = await auth.addSession({ AUTH__JWKS__CACHE_S: '3600' })
    const edge = await auth.addGateway({ AUTH__JWKS__CACHE_S: '3600' })
    for (let turn = 1; turn <= 3; turn++) {
      const killed = kidOf((await login()).access_token)
      await killKey(settings, killed)
      await until(() => auth.token_deps.keyring.active()?.kid !== killed)
      const { access_token } = await until(() => login())
      for (const url of [`${session.url}/v1/sessions`, `${edge.url}/api/v1/resources`]) {
        const accepted = async () => (await send(url, { headers: bearer(access_token) })).status === 200
        await until(accepted, { what: `the new key of turn ${turn} at ${url}`, timeout_ms: 5000 })
      }
    }
  })

  it('end no one’s session once they are killed, whoever has them', async () => {
    const settings = keySettingsOf(auth.token_deps.config, auth.identity_deps.db)
    // A verifier that learns nothing of it: no events, and a key set that it cannot read again.
    const blind = { SESSION__NATS__URL: 'nats://127.0.0.1:9', AUTH__JWKS__URL: `${link.url.replace(/\/$/, '')}/jwks` }
    const stale = await auth.addSession({ ...blind, SESSION__BINDING__ACTION: 'revoke' })
    const alone = await auth.addSession({ ...blind, AUTH__RPC__TOKEN_URL: 'http://127.0.0.1:9' })
    const { access_token } = await until(() => login())
    const victim = JSON.parse(Buffer.from(access_token.split('.')[1] ?? '', 'base64url').toString())
    const rows = await listKeys(auth.identity_deps.db)
    const row = rows.find(({ kid }) => kid === kidOf(access_token)) as (typeof rows)[number] & { private_key: Buffer }
    const stolen = openPrivateKey(keksOf(auth.token_deps.config.TOKEN__KEYS__KEK, 'TOKEN__KEYS__KEK'), row)
    link.cut()
    await killKey(settings, row.kid)
    await until(() => auth.token_deps.keyring.verifying(row.kid) === undefined)
    const iat = Math.floor(Date.now() / 1000) - 5
    const claims = {
      iss: victim.iss,
      sub: victim.sub,
      aud: auth.token_deps.config.AUTH__TOKENS__REFRESH_AUDIENCE,
      type: 'refresh' as const,
      iat,
      exp: iat + 2_592_000,
      jti: newJti(),
      session_id: victim.session_id,
    }
    const forged = signToken('refresh', claims, { kid: row.kid, private_key: stolen })
    const alive = () => auth.session.deps.store.get(victim.sub, victim.session_id)
    const present = (url: string, agent?: string) =>
      send(`${url}/auth/refresh`, { body: { refresh_token: forged }, headers: agent ? { 'user-agent': agent } : {} })
    for (const agent of [undefined, 'curl/8']) expect((await present(stale.url, agent)).status).toBe(401)
    expect(await alive()).toMatchObject({ state: 'active' })
    expect((await present(alone.url)).status).toBe(503)
    expect(await alive()).toMatchObject({ state: 'active' })
    link.mend()
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
