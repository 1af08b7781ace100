import { randomUUID } from 'node:crypto'
import { eq } from 'drizzle-orm'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { loadIdentityConfig } from '../../apps/identity/config.ts'
import { loadSessionConfig } from '../../apps/session/config.ts'
import { external_identities, users } from '../../db/identity/tables.ts'
import { createAuthenticator } from '../support/authenticator.ts'
import { codeAt } from '../support/totp.ts'
import { bearer, ORIGIN, PASSWORD, send } from './support/auth.ts'
import { type Sso, startSso } from './support/sso.ts'

/** federation.md 4: passwords are for a few emergency accounts, with a second factor, and each use is told. */
const SITE = { origin: ORIGIN, rp_id: 'console.test' }
const CLOSED = { AUTH__LOCAL__LOGIN: 'break_glass', AUTH__LOCAL__USERS: '["ida"]' }
const REFUSED = { status: 403, body: { category: 'policy_denied', code: 'local_login_closed' } }
const PROVIDER = 'Sign in through Example Corp.'

let sso: Sso
let closed: Awaited<ReturnType<Sso['addSession']>>
let url: string
beforeAll(async () => {
  sso = await startSso()
  closed = await sso.addSession(CLOSED)
  url = (await sso.addGateway({ GATEWAY__UPSTREAM__SESSION_URL: closed.url })).url
})
afterAll(() => sso?.stop())

const token = (body: object, at = url) => send(`${at}/v1/token`, { body })
const signIn = (username: string, password = PASSWORD, at = url) => token({ username, password }, at)
const keyed = (access: unknown) => ({ ...bearer(access), 'idempotency-key': randomUUID() })
const scopeOf = (access: unknown) =>
  JSON.parse(Buffer.from(String(access).split('.')[1] ?? '', 'base64url').toString()).scope
const audited = async (): Promise<Record<string, unknown>[]> => {
  const rows = await sso.redis.xrange(`${sso.prefix}auth:audit`, '-', '+')
  return rows.map(([, [, row]]) => JSON.parse(row ?? '{}'))
}
const rowsAbout = async (user_id: string) => (await audited()).filter(({ object }) => object === `user:${user_id}`)
describe('AUTH__LOCAL__LOGIN=break_glass', () => {
  it('refuses the right password of everyone else and names the provider; a wrong one answers as before (ASVS 6.3.4)', async () => {
    const { id } = await sso.addUser('uma')
    const answer = await signIn('uma')
    expect(answer).toMatchObject({ ...REFUSED, body: { ...REFUSED.body, hint: expect.stringContaining(PROVIDER) } })
    expect(await send(`${url}/auth/login`, { body: { username: 'uma', password: PASSWORD } })).toMatchObject(REFUSED)
    expect(await rowsAbout(id)).toContainEqual(
      expect.objectContaining({ action: 'login', outcome: 'denied', reason: 'local_login_closed' }),
    )
    expect(await closed.deps.store.list(id)).toEqual([])
    // Whoever guesses learns neither who exists nor which accounts are for emergencies.
    const wrong = await Promise.all(['uma', 'ida', 'nobody'].map((name) => signIn(name, 'Wrong-Horse-7-Battery')))
    const seen = wrong.map(({ status, body: { request_id: _, ...body } }) => ({ status, body }))
    expect(seen[0]).toMatchObject({ status: 401, body: { code: 'invalid_credentials' } })
    expect(String(seen[0]?.body.hint)).toContain(PROVIDER)
    expect(seen[1]).toEqual(seen[0])
    expect(seen[2]).toEqual(seen[0])
  })

  it('requires a second factor from an emergency account; one without may only set it up (ASVS 6.3.3)', async () => {
    const { id } = await sso.addUser('ida')
    const first = await signIn('Ida')
    expect(first.status).toBe(200)
    expect(scopeOf(first.body.access_token)).toEqual(['enrolment'])
    const headers = keyed(first.body.access_token)
    const begun = await send(`${url}/api/v1/users/me/totp/setup`, { body: {}, headers })
    const { secret, setup } = begun.body as { secret: string; setup: string }
    const body = { setup, code: codeAt(secret, new Date()) }
    expect((await send(`${url}/api/v1/users/me/totp`, { method: 'PUT', body, headers })).status).toBe(200)

    const half = await signIn('ida')
    expect(half).toMatchObject({ status: 403, body: { code: 'second_factor_required', factors: ['totp'] } })
    const totp = codeAt(secret, new Date(), 1)
    const done = await token({ grant_type: 'second_factor', factor_token: half.body.factor_token, totp })
    expect(done.status).toBe(200)
    expect(scopeOf(done.body.access_token)).toBeUndefined()
    // Both sign-ins are uses of an emergency account: the relay tells all administrators of such rows.
    const uses = (await rowsAbout(id)).filter(({ action }) => action === 'login')
    expect(uses.map(({ body }) => JSON.parse(String(body)))).toMatchObject([
      { outcome: 'done', details: { break_glass: 'ida', device: 'new' } },
      { outcome: 'done', details: { break_glass: 'ida', device: 'new', factor: 'totp' } },
    ])
  })

  it('accepts no closed password as a proof or for a new one, and no old session of one keeps its rights', async () => {
    await sso.addUser('eve')
    const before = await signIn('eve', PASSWORD, sso.gateway.url)
    const headers = keyed(before.body.access_token)
    expect(await send(`${url}/v1/token/reauth`, { body: { password: PASSWORD }, headers })).toMatchObject(REFUSED)
    const change = { current_password: PASSWORD, new_password: `${PASSWORD}-2` }
    expect(await send(`${url}/api/v1/users/me/password`, { body: change, headers })).toMatchObject(REFUSED)
    const { refresh_token } = before.body
    const next = await token({ grant_type: 'refresh_token', refresh_token })
    expect(scopeOf(next.body.access_token)).toEqual(['enrolment'])
  })

  it('does not count a closed password as a way in', async () => {
    const { id } = await sso.addUser('ole')
    const { body } = await signIn('ole', PASSWORD, sso.gateway.url)
    const key = createAuthenticator(SITE)
    const { challenge } = (await send(`${url}/v1/token/passkey-options`, { body: {} })).body
    const attestation = key.attest(String(challenge), id)
    const at = '/api/v1/users/me/passkeys'
    const headers = () => keyed(body.access_token)
    const made = await send(`${url}${at}`, { body: { name: 'phone', attestation }, headers: headers() })
    expect(made.status).toBe(201)
    const remove = (gateway: string) =>
      send(`${gateway}${at}/${made.body.id}`, { method: 'DELETE', headers: headers() })
    expect(await remove(url)).toMatchObject({ status: 409, body: { code: 'last_way_in' } })
    expect((await remove(sso.gateway.url)).status).toBe(204)
  })

  it('gives no link, and ends nothing, of an account whose new password would be closed', async () => {
    await sso.addUser('adam', ['admin'])
    const { id } = await sso.addUser('zoe')
    const zoe = (await signIn('zoe', PASSWORD, sso.gateway.url)).body.access_token
    const { challenge } = (await send(`${url}/v1/token/passkey-options`, { body: {} })).body
    const attestation = createAuthenticator(SITE).attest(String(challenge), id)
    const phone = { body: { name: 'phone', attestation }, headers: keyed(zoe) }
    expect((await send(`${sso.gateway.url}/api/v1/users/me/passkeys`, phone)).status).toBe(201)
    const adam = (await signIn('adam', PASSWORD, sso.gateway.url)).body.access_token
    const ask = (path: string, body = {}) =>
      send(`${sso.gateway.url}/api/v1/admin/users${path}`, { method: 'POST', body, headers: keyed(adam) })
    const open = close()
    expect(await ask(`/${id}/recovery`)).toMatchObject(REFUSED)
    expect(await ask(`/${id}/enrolment-token`)).toMatchObject(REFUSED)
    expect(await ask('', { username: 'yan' })).toMatchObject(REFUSED)
    expect((await ask('', { username: 'Ida' })).status).not.toBe(403)
    open()
    expect(
      (await send(`${sso.gateway.url}/api/v1/users/me/passkeys`, { headers: bearer(zoe) })).body.items,
    ).toHaveLength(1)
  })

  /** A local account with a passkey, and the link to a provider that it made before its password was closed. */
  const linked = async (username: string) => {
    const { id } = await sso.addUser(username)
    const identity = { provider: 'corp', subject: `s-${username}`, user_id: id }
    await sso.identity_deps.db.insert(external_identities).values(identity)
    const headers = keyed((await signIn(username, PASSWORD, sso.gateway.url)).body.access_token)
    const key = createAuthenticator(SITE)
    const challenge = async () => String((await send(`${url}/v1/token/passkey-options`, { body: {} })).body.challenge)
    const body = { name: 'phone', attestation: key.attest(await challenge(), id) }
    expect((await send(`${sso.gateway.url}/api/v1/users/me/passkeys`, { body, headers })).status).toBe(201)
    return { id, byKey: async () => token({ grant_type: 'passkey', assertion: key.assert(await challenge()) }) }
  }
  const close = (more = {}) => {
    const { config } = sso.identity_deps
    const open = { ...config }
    Object.assign(config, loadIdentityConfig({ ...sso.vars, ...CLOSED, ...more } as NodeJS.ProcessEnv))
    return () => Object.assign(config, open)
  }

  it('lets a passkey of a linked account rest on the sign-ins through its provider, which knows who has left', async () => {
    const { id, byKey } = await linked('lin')
    const { db } = sso.identity_deps
    const proved = (seconds: number) =>
      db
        .update(external_identities)
        .set({ proved_at: new Date(Date.now() - seconds * 1000).toISOString() })
        .where(eq(external_identities.user_id, id))
    await proved(43_200)
    expect((await byKey()).status).toBe(200)
    const open = close()
    try {
      const refused = { status: 403, body: { code: 'provider_required' } }
      expect(await byKey()).toMatchObject(refused)
      sso.configure({ scim: { machine: 'machine:dir' } })
      expect(await byKey()).toMatchObject(refused)
      await proved(43_100)
      const { body } = await byKey()
      const listed = await send(`${url}/api/v1/sessions`, { headers: bearer(body.access_token) })
      const [own] = (listed.body.items as Record<string, string>[]).filter(({ current }) => current)
      expect(Date.parse(own?.expires_at ?? '') - Date.parse(own?.created_at ?? '')).toBeLessThanOrEqual(100_000)
      await proved(43_200)
      // The last sign-in through any of them counts.
      await db.insert(external_identities).values({ provider: 'gone', subject: 'x', user_id: id })
      expect(await byKey()).toMatchObject(refused)
      await proved(0)
      expect((await byKey()).status).toBe(200)
      await proved(43_200)
      open()
      const named = close({ AUTH__LOCAL__USERS: '["Lin"]' })
      expect((await byKey()).status).toBe(200)
      named()
    } finally {
      open()
      sso.configure()
    }
  })

  it('leaves a person who was never linked their passkey, by which they can link, and lists them', async () => {
    const { id, byKey } = await linked('lon')
    await sso.identity_deps.db.delete(external_identities).where(eq(external_identities.user_id, id))
    if ((await signIn('adam', PASSWORD, sso.gateway.url)).status !== 200) await sso.addUser('adam', ['admin'])
    const adam = bearer((await signIn('adam', PASSWORD, sso.gateway.url)).body.access_token)
    const open = close()
    try {
      const { status, body } = await byKey()
      expect(status).toBe(200)
      const begun = await send(`${url}/v1/sso/corp/start`, {
        body: { purpose: 'link' },
        headers: keyed(body.access_token),
      })
      expect(begun).toMatchObject({ status: 200, body: { location: expect.stringContaining(sso.provider.issuer) } })
      const { body: list } = await send(`${sso.gateway.url}/api/v1/admin/unlinked-users?page_size=500`, {
        headers: adam,
      })
      expect(list.items).toContainEqual(expect.objectContaining({ id }))
    } finally {
      open()
    }
  })

  it('ends the passkeys of a linked account whose only identity an administrator removes', async () => {
    const { id, byKey } = await linked('lia')
    if ((await signIn('adam', PASSWORD, sso.gateway.url)).status !== 200) await sso.addUser('adam', ['admin'])
    const headers = keyed((await signIn('adam', PASSWORD, sso.gateway.url)).body.access_token)
    const open = close()
    try {
      expect((await byKey()).status).toBe(200)
      const path = `${sso.gateway.url}/api/v1/admin/users/${id}/identities/corp`
      expect((await send(path, { method: 'DELETE', headers })).status).toBe(204)
      expect((await byKey()).body.code).toBe('assertion_invalid')
    } finally {
      open()
    }
  })

  it('ends only the factors of a linked account that is recovered: its person signs in through the provider', async () => {
    const { id, byKey } = await linked('lou')
    if ((await signIn('adam', PASSWORD, sso.gateway.url)).status !== 200) await sso.addUser('adam', ['admin'])
    const adam = (await signIn('adam', PASSWORD, sso.gateway.url)).body.access_token
    const ask = (path: string) =>
      send(`${sso.gateway.url}/api/v1/admin/users/${id}/${path}`, { method: 'POST', body: {}, headers: keyed(adam) })
    const open = close()
    try {
      expect(await ask('enrolment-token')).toMatchObject({ status: 409, body: { code: 'provider_account' } })
      expect(await ask('recovery')).toMatchObject({ status: 200, body: { user: { username: 'lou' } } })
      expect((await byKey()).status).toBe(403)
      // What a thief has of the account lets nobody in once passwords are open again.
      expect((await signIn('lou', PASSWORD, sso.gateway.url)).status).toBe(401)
      const kept = await send(`${sso.gateway.url}/api/v1/admin/users/${id}/identities`, { headers: bearer(adam) })
      expect(kept.body.items).toMatchObject([{ provider: 'corp', subject: 's-lou' }])
    } finally {
      open()
    }
    expect((await sso.identity_deps.db.select().from(users).where(eq(users.id, id)))[0]).toMatchObject({
      ...{ recovering: false, provider: null },
    })
  })

  it('is shown on the sign-in page, and leaves the provider’s button unchanged', async () => {
    const items = [{ id: 'corp', title: 'Example Corp' }]
    expect((await send(`${url}/v1/providers`)).body).toEqual({ items, passwords: 'break_glass' })
    expect((await send(`${sso.gateway.url}/v1/providers`)).body).toEqual({ items, passwords: 'all' })
  })

  it.each([
    ['no account', { AUTH__LOCAL__USERS: '[]' }, 'AUTH__LOCAL__USERS'],
    ['six accounts', { AUTH__LOCAL__USERS: '["a","b","c","d","e","f"]' }, 'AUTH__LOCAL__USERS'],
    ['no provider', { AUTH__PROVIDERS__FILE: undefined }, 'AUTH__PROVIDERS__FILE'],
  ])('refuses to start with %s, because it would close a way in', (_, more, named) => {
    expect(() => loadSessionConfig({ ...sso.vars, ...CLOSED, ...more } as NodeJS.ProcessEnv)).toThrow(named)
  })
})
