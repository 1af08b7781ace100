import { randomUUID } from 'node:crypto'
import { Code, ConnectError } from '@connectrpc/connect'
import { eq } from 'drizzle-orm'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { passkeys, user_events, users } from '../../db/identity/tables.ts'
import { type Authenticator, type Bend, createAuthenticator } from '../support/authenticator.ts'
import { type Auth, bearer, ORIGIN, PASSWORD, send, startAuth } from './support/auth.ts'

/** federation.md 8: passkeys through the gateway, and each passkey answer that must not count. */

const SITE = { origin: ORIGIN, rp_id: 'console.test' }
let auth: Auth
let url: string
beforeAll(async () => {
  auth = await startAuth({ SESSION__SECOND_FACTOR__ROLES: '["approver"]' })
  url = (await auth.addGateway()).url
})
afterAll(() => auth?.stop())

const challenge = async () => String((await send(`${url}/v1/token/passkey-options`, { body: {} })).body.challenge)
const token = (body: object, mode = 'json') =>
  send(`${url}/v1/token?response_mode=${mode}`, { body, headers: { origin: ORIGIN } })
const keyed = (access: unknown) => ({ ...bearer(access), 'idempotency-key': randomUUID() })
const add = async (access: unknown, attestation: object, headers = keyed(access)) =>
  send(`${url}/api/v1/users/me/passkeys`, { body: { name: 'key of a test', attestation }, headers })
const list = async (access: unknown) =>
  (await send(`${url}/api/v1/users/me/passkeys`, { headers: bearer(access) })).body.items as { id: string }[]
const byPasskey = async (key: Authenticator, bend?: Bend) =>
  token({ grant_type: 'passkey', assertion: key.assert(await challenge(), bend) })

/** A person with a passkey, signed in by password. */
const person = async (username: string, roles: string[] = ['viewer'], kind?: 'EdDSA' | 'RS256') => {
  const { id } = await auth.addUser(username, roles)
  const signed_in = await token({ username, password: PASSWORD })
  const key = createAuthenticator(SITE, kind && { kind })
  const access = signed_in.body.access_token
  const added = await add(access, key.attest(await challenge(), id))
  expect(added).toMatchObject({ status: 201 })
  return { id, username, key, access, passkey: added.body as { id: string } }
}
const audited = async (): Promise<Record<string, unknown>[]> =>
  (await auth.redis.xrange(`${auth.prefix}auth:audit`, '-', '+')).map(([, [, row]]) => JSON.parse(row ?? '{}'))

describe('a passkey', () => {
  it.each([undefined, 'EdDSA', 'RS256'] as const)(
    'is added, listed, used for a sign-in and removed (%s)',
    async (kind) => {
      const { id, key, access, passkey, username } = await person(`pk-${kind ?? 'es'}`.toLowerCase(), ['viewer'], kind)
      expect(await list(access)).toMatchObject([
        { id: passkey.id, credential_id: key.credential_id, last_used_at: null },
      ])
      const done = await token({ grant_type: 'passkey', assertion: key.assert(await challenge()) }, 'cookie')
      expect(done).toMatchObject({ status: 200, body: { csrf_token: expect.any(String) } })
      expect(String(done.headers['set-cookie'])).toMatch(/refresh_token=.*HttpOnly; Secure; SameSite=Strict/)
      const me = await send(`${url}/api/v1/users/me`, { headers: bearer(done.body.access_token) })
      expect(me.body).toMatchObject({ id, username })
      const sessions = await send(`${url}/api/v1/sessions`, { headers: bearer(done.body.access_token) })
      expect(sessions.body.items).toContainEqual(expect.objectContaining({ metadata: { passkey: passkey.id } }))
      const gone = await send(`${url}/api/v1/users/me/passkeys/${passkey.id}`, {
        method: 'DELETE',
        headers: keyed(access),
      })
      expect(gone.status).toBe(204)
      expect(await byPasskey(key)).toMatchObject({ status: 403, body: { code: 'assertion_invalid' } })
      const rows = await auth.identity_deps.db.select().from(user_events)
      const own = rows.filter(({ object }) => object === `user:${id}`).map(({ action }) => action)
      expect(own).toEqual(expect.arrayContaining(['user.passkey_added', 'user.passkey_removed']))
    },
  )

  it('is listed with its person for auditors alone, page by page, also when the person is gone', async () => {
    const { id, username, key } = await person('listed')
    await auth.identity_deps.db.update(users).set({ status: 'DELETED' }).where(eq(users.id, id))
    const auditor = await person('oda', ['auditor'])
    const items: { user_id: string }[] = []
    for (let page_token = ''; ; ) {
      const path = `${url}/api/v1/admin/passkeys?page_size=1${page_token && `&page_token=${page_token}`}`
      const { status, body } = await send(path, { headers: bearer(auditor.access) })
      expect([status, (body.items as object[]).length]).toEqual([200, 1])
      items.push(...(body.items as typeof items))
      if (body.next_page_token === null) break
      page_token = String(body.next_page_token)
    }
    expect(items.filter(({ user_id }) => user_id === id)).toEqual([
      { user_id: id, username, credential_id: key.credential_id, jwk: key.jwk(), created_at: expect.any(String) },
    ])
    expect(items.at(-1)).toMatchObject({ user_id: auditor.id })
    const refused = await send(`${url}/api/v1/admin/passkeys`, { headers: bearer((await person('nina')).access) })
    expect(refused).toMatchObject({ status: 403, body: { code: 'permission_missing' } })
  })

  it('answers a challenge once, and only one of ours', async () => {
    const { key } = await person('once')
    const assertion = key.assert(await challenge())
    const raced = await Promise.all([1, 2, 3].map(() => token({ grant_type: 'passkey', assertion })))
    expect(raced.map(({ status }) => status).sort()).toEqual([200, 409, 409])
    const expired = { status: 409, body: { code: 'challenge_expired' } }
    expect(await token({ grant_type: 'passkey', assertion })).toMatchObject(expired)
    const own = key.assert(Buffer.alloc(32, 7).toString('base64url'))
    expect(await token({ grant_type: 'passkey', assertion: own })).toMatchObject(expired)
    const late = await challenge()
    await auth.redis.del(await auth.redis.keys(`${auth.prefix}passkey:*`))
    expect(await token({ grant_type: 'passkey', assertion: key.assert(late) })).toMatchObject(expired)
  })

  it.each<[string, Bend, RegExp]>([
    ['another origin', { origin: 'https://evil.test' }, /origin/i],
    ['another relying party', { rp_id: 'evil.test' }, /RP ID/i],
    ['no verified person', { flags: 1 }, /verif/i],
    ['a registration as a sign-in', { type: 'webauthn.create' }, /type/i],
    ['another signature', { tamper: true }, /cause[^a-z]+signature/],
    ['another user handle', { user_handle: 'someone' }, /cause[^a-z]+user_handle/],
    ['a page inside a page of another site', { framed: true }, /crossOrigin/],
    ['a counter that goes back', { counter: 1 }, /counter/],
  ])('with %s is refused, and the cause is only in the audit log', async (name, bend, cause) => {
    const { key } = await person(name.replaceAll(' ', '-'))
    expect((await byPasskey(key)).status).toBe(200)
    const refused = await byPasskey(key, bend)
    expect(refused).toMatchObject({ status: 403, body: { code: 'assertion_invalid' } })
    expect(refused.text).not.toMatch(/evil|counter|handle/)
    const last = (await audited()).filter(({ action }) => action === 'login').at(-1)
    expect(last).toMatchObject({ outcome: 'denied', reason: 'assertion_invalid' })
    expect(JSON.stringify(last)).toMatch(cause)
  })

  it('whose counter goes back is noted as a possible copy if its signature is true, and only then', async () => {
    const { key, id } = await person('cloned')
    const noted = async () => {
      const rows = await auth.identity_deps.db
        .select()
        .from(user_events)
        .where(eq(user_events.object, `user:${id}`))
      return rows.filter(({ action }) => action === 'user.passkey_cloned').length
    }
    expect((await byPasskey(key)).status).toBe(200)
    expect((await byPasskey(key, { counter: 1, tamper: true })).body.code).toBe('assertion_invalid')
    expect(await noted()).toBe(0)
    expect((await byPasskey(key, { counter: 1 })).body.code).toBe('assertion_invalid')
    expect(await noted()).toBe(1)
  })

  it('whose answer is sent again is refused, and the log says so', async () => {
    const { key } = await person('replayed')
    const body = { grant_type: 'passkey', assertion: key.assert(await challenge()) }
    expect((await token(body)).status).toBe(200)
    expect(await token(body)).toMatchObject({ status: 409, body: { code: 'challenge_expired' } })
    const last = (await audited()).filter(({ action }) => action === 'login').at(-1)
    expect(last).toMatchObject({ outcome: 'denied', reason: 'assertion_invalid' })
    expect(JSON.stringify(last)).toContain('challenge_expired')
  })

  it('of a disabled person signs nobody in', async () => {
    const { id, key } = await person('gone')
    const { sql } = await import('drizzle-orm')
    await auth.identity_deps.db.execute(sql`update identity.users set status = 'DISABLED' where id = ${id}`)
    expect(await byPasskey(key)).toMatchObject({ status: 403, body: { code: 'assertion_invalid' } })
  })

  it('is not registered by a session from before the account was reset, though it had proved two factors', async () => {
    const { id, key } = await person('reset')
    const { access_token } = (await byPasskey(key)).body
    const { sql } = await import('drizzle-orm')
    // The relay ends that session a moment later.
    await auth.identity_deps.db.execute(
      sql`update identity.users set reset_at = now() + interval '1 second' where id = ${id}`,
    )
    expect(await add(access_token, createAuthenticator(SITE).attest(await challenge(), id))).toMatchObject({
      status: 403,
      body: { code: 'reauth_required' },
    })
  })

  it('is added by the same request again if the first answer was lost, once', async () => {
    const { id } = await auth.addUser('repeated')
    const access = (await token({ username: 'repeated', password: PASSWORD })).body.access_token
    const attestation = createAuthenticator(SITE).attest(await challenge(), id)
    const headers = keyed(access)
    const { identity } = auth.session.deps
    const { addPasskey } = identity
    const lost = vi.spyOn(identity, 'addPasskey').mockImplementationOnce(async (...about) => {
      await addPasskey(...about)
      throw new ConnectError('the answer was lost', Code.Unavailable)
    })
    try {
      expect(await add(access, attestation, headers)).toMatchObject({ status: 503, body: { code: 'dependency_down' } })
      const again = await add(access, attestation, headers)
      expect(again.status).toBe(201)
      expect(await list(access)).toMatchObject([{ id: again.body.id }])
    } finally {
      lost.mockRestore()
    }
  })

  it('is registered only for this origin, once, and after a fresh sign-in (ASVS 7.5.1, 10.3.4)', async () => {
    const { id, key, access, passkey } = await person('adder')
    const { session_id } = JSON.parse(Buffer.from(String(access).split('.')[1] ?? '', 'base64url').toString())
    const owner = { user_id: id, session_id, username: 'adder', mode: 'json' as const, amr: ['pwd' as const] }
    const auth_time = Math.floor(Date.now() / 1000) - 301
    const stale = await auth.session.deps.issuer.access({ ...owner, auth_time }, 'test')
    for (const answer of [
      await add(stale, createAuthenticator(SITE).attest(await challenge(), id)),
      await send(`${url}/api/v1/users/me/passkeys/${passkey.id}`, { method: 'DELETE', headers: keyed(stale) }),
    ])
      expect(answer).toMatchObject({ status: 403, body: { code: 'reauth_required' } })
    const other = await person('other')
    const same = createAuthenticator(SITE, { id: Buffer.from(key.credential_id, 'base64url') })
    for (const answer of [
      await add(other.access, key.attest(await challenge(), other.id)),
      // With another key, so that the answer does not say that this one was stored.
      await add(access, same.attest(await challenge(), id)),
    ])
      expect(answer).toMatchObject({ status: 409, body: { code: 'passkey_known' } })
    for (const bend of [
      { origin: 'https://evil.test' },
      { rp_id: 'evil.test' },
      { flags: 65 },
      { type: 'webauthn.get' },
      { framed: true },
    ])
      expect(await add(access, createAuthenticator(SITE).attest(await challenge(), id, bend))).toMatchObject({
        status: 403,
        body: { code: 'assertion_invalid' },
      })
    const again = keyed(access)
    const attestation = createAuthenticator(SITE).attest(await challenge(), id)
    const first = await add(access, attestation, again)
    expect(await add(access, attestation, again)).toMatchObject({ status: 201, body: first.body })
    expect(await add(access, attestation)).toMatchObject({ status: 409, body: { code: 'challenge_expired' } })
    for (let n = 2; n < 10; n++)
      expect((await add(access, createAuthenticator(SITE).attest(await challenge(), id))).status).toBe(201)
    const eleventh = await add(access, createAuthenticator(SITE).attest(await challenge(), id))
    expect(eleventh).toMatchObject({ status: 409, body: { code: 'too_many_passkeys' } })
    const foreign = await send(`${url}/api/v1/users/me/passkeys/${other.passkey.id}`, {
      method: 'DELETE',
      headers: keyed(access),
    })
    expect(foreign.status).toBe(404)
  })

  it('with a key that is too small, or for which anyone can sign, neither is added nor signs in', async () => {
    const { id, access } = await person('weak')
    for (const kind of ['small', 'anyone'] as const) {
      const key = createAuthenticator(SITE, { kind })
      const refused = { status: 403, body: { code: 'assertion_invalid' } }
      expect(await add(access, key.attest(await challenge(), id))).toMatchObject(refused)
      // One from before that rule.
      const public_key = Buffer.from(key.public_key).toString('base64url')
      const row = { id: randomUUID(), user_id: id, credential_id: key.credential_id, public_key, name: 'old' }
      await auth.identity_deps.db.insert(passkeys).values({ ...row, counter: 0, backed_up: false })
      expect(await byPasskey(key)).toMatchObject(refused)
    }
  })

  it('confirms its owner, and no one else', async () => {
    const eva = await person('confirms')
    const olga = await person('stranger')
    let { access } = eva
    const reauth = async (key: Authenticator) =>
      send(`${url}/v1/token/reauth`, { body: { assertion: key.assert(await challenge()) }, headers: bearer(access) })
    const fresh = await reauth(eva.key)
    expect(fresh).toMatchObject({ status: 200, body: { access_token: expect.any(String) } })
    access = fresh.body.access_token
    expect(await reauth(olga.key)).toMatchObject({ status: 403, body: { code: 'assertion_invalid' } })
    const both = { assertion: eva.key.assert(await challenge()), password: PASSWORD }
    const headers = bearer(access)
    expect((await send(`${url}/v1/token/reauth`, { body: both, headers })).status).toBe(400)
    expect((await send(`${url}/v1/token/reauth`, { body: {}, headers })).status).toBe(400)
  })
})

describe('a second factor', () => {
  it('follows the password of a role that needs it, once there is a passkey (ASVS 6.3.3)', async () => {
    const { username, key, id } = await person('factor', ['approver'])
    const halved = await token({ username, password: PASSWORD })
    expect(halved).toMatchObject({ status: 403, body: { code: 'second_factor_required' } })
    expect(halved.text).not.toContain('eyJ')
    const { factor_token } = halved.body
    const second = async (by: Authenticator, with_token: unknown = factor_token) =>
      token({ grant_type: 'second_factor', factor_token: with_token, assertion: by.assert(await challenge()) })
    expect(await second(key)).toMatchObject({ status: 200, body: { access_token: expect.any(String) } })
    expect(await second(key)).toMatchObject({ status: 409, body: { code: 'challenge_expired' } })
    const stranger = await person('no-factor')
    const again = (await token({ username, password: PASSWORD })).body.factor_token
    expect(await second(stranger.key, again)).toMatchObject({ status: 403, body: { code: 'assertion_invalid' } })
    expect(await second(key, again)).toMatchObject({ status: 409, body: { code: 'challenge_expired' } })
    const rows = (await audited()).filter(
      (row) => row.object === `user:${id}` && row.outcome === 'done' && row.action === 'login',
    )
    expect(rows).toHaveLength(2)
    expect(rows.map(({ body }) => JSON.parse(String(body)).details.device)).toEqual(['new', 'new'])
  })

  it('is sent completely or not at all', async () => {
    const { key, username } = await person('whole')
    const assertion = key.assert(await challenge())
    for (const [body, code] of [
      [{ grant_type: 'passkey' }, 'missing_grant'],
      [{ grant_type: 'second_factor', assertion }, 'missing_grant'],
      [{ grant_type: 'passkey', assertion, factor_token: 'x' }, 'ambiguous_grant'],
      [{ grant_type: 'passkey', assertion, username, password: PASSWORD }, 'ambiguous_grant'],
    ] as const)
      expect(await token(body)).toMatchObject({ status: 400, body: { code } })
  })
})
