import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { ROUTES } from '../../apps/gateway/routes/table.ts'
import { authorizedRoutes } from '../../apps/shared/auth/http.ts'
import { grants } from '../../db/identity/tables.ts'
import { createAuthenticator } from '../support/authenticator.ts'
import { codeAt } from '../support/totp.ts'
import { bearer, ORIGIN, PASSWORD, send } from './support/auth.ts'
import { bearerOf, type Sso, startSso } from './support/sso.ts'

/** auth.md 3.2: what a session may do before its second factor, and which tokens a fresh proof ends. */

const SITE = { origin: ORIGIN, rp_id: 'console.test' }
let auth: Sso
let url: string
beforeAll(async () => {
  auth = await startSso({}, { SESSION__SECOND_FACTOR__ROLES: '["approver"]' })
  url = auth.gateway.url
})
afterAll(() => auth?.stop())

const token = (body: object) => send(`${url}/v1/token`, { body, headers: { origin: ORIGIN } })
const signIn = async (username: string) => (await token({ username, password: PASSWORD })).body
const renewed = async (refresh_token: unknown) => (await token({ grant_type: 'refresh_token', refresh_token })).body
const keyed = (access: unknown) => ({ ...bearer(access), 'idempotency-key': randomUUID() })
const claimsOf = (access: unknown) =>
  JSON.parse(Buffer.from(String(access).split('.')[1] ?? '', 'base64url').toString())
const challenge = async () => String((await send(`${url}/v1/token/passkey-options`, { body: {} })).body.challenge)
const addPasskey = async (access: unknown, id: string) => {
  const key = createAuthenticator(SITE)
  const body = { name: 'phone', attestation: key.attest(await challenge(), id) }
  expect((await send(`${url}/api/v1/users/me/passkeys`, { body, headers: keyed(access) })).status).toBe(201)
  return key
}
const reauth = (access: unknown, body: object) => send(`${url}/v1/token/reauth`, { body, headers: bearer(access) })
const read = (access: unknown) => send(`${url}/api/v1/users/me`, { headers: bearer(access) })
const person = async (roles: string[]) => {
  const username = `p-${randomUUID().slice(0, 8)}`
  return { username, id: (await auth.addUser(username, roles)).id }
}
/** Shapes are checked before rights. */
const BODIES: Record<string, object> = {
  '/v1/sso/:provider/start': { purpose: 'link' },
  '/v1/sessions/revoke-others': {},
  '/v1/users/me/password': { current_password: PASSWORD, new_password: `${PASSWORD}-2` },
  ...Object.fromEntries(['find', 'approve', 'deny'].map((act) => [`/v1/device/${act}`, { user_code: 'BCDF-GHJK' }])),
}
const LIMITED = { status: 403, body: { category: 'policy_denied', code: 'factor_required' } }

describe('a session that still needs a second factor', () => {
  it('is refused on every route of the gateway and of the services except those that set one up (ASVS 6.3.3)', async () => {
    const { username } = await person(['viewer', 'approver'])
    const { access_token } = await signIn(username)
    expect(claimsOf(access_token)).toMatchObject({ scope: ['enrolment'], amr: ['pwd'] })
    const guarded = ROUTES.filter(({ permission }) => permission !== 'none')
    expect(guarded.length).toBeGreaterThan(100)
    for (const { method, path, enrols } of guarded) {
      if (enrols) continue
      const at = `${url}${path.replaceAll(/\{[^}]+\}/g, randomUUID())}`
      const body = method === 'GET' || method === 'DELETE' ? {} : { body: {} }
      expect([path, await send(at, { method, headers: keyed(access_token), ...body })]).toMatchObject([path, LIMITED])
    }
    const open = guarded.filter(({ enrols }) => enrols).map(({ method, path }) => `${method} ${path}`)
    const served = authorizedRoutes(auth.session.app).filter(({ method }) => method !== 'HEAD')
    const said = served
      .filter(({ enrols }) => enrols)
      .map(({ method, url }) => `${method} ${url.replace('/v1/users', '/api/v1/users')}`)
    expect([...said, 'POST /auth/logout'].sort()).toEqual(open.sort())
    for (const { method, url: path, enrols, permissions } of served) {
      if (enrols || permissions.some((one) => one === 'none' || one === 'bearer')) continue
      const at = `${auth.session.url}${path.replace(':provider', 'corp').replaceAll(/:\w+/g, randomUUID())}`
      const asked = {
        method: method as 'GET',
        headers: keyed(access_token),
        ...(BODIES[path] && { body: BODIES[path] }),
      }
      expect([path, await send(at, asked)]).toMatchObject([path, LIMITED])
    }
    const identity = `${auth.vars.GATEWAY__UPSTREAM__IDENTITY_URL}/v1/users/me`
    expect(await send(identity, { headers: bearer(access_token) })).toMatchObject(LIMITED)
    const hint = (await read(access_token)).body.hint
    expect(hint).toContain('/settings/passkeys')
  })

  it('is refused as ended once it has ended', async () => {
    const { username } = await person(['viewer', 'approver'])
    const { access_token } = await signIn(username)
    expect((await send(`${url}/auth/logout`, { body: {}, headers: bearer(access_token) })).status).toBe(204)
    expect(await read(access_token)).toMatchObject({ status: 401, body: { code: 'invalid_token' } })
  })

  it('is limited from its first access token: the way back from a provider, which gives none, asks for no rights', async () => {
    await auth.browser().signIn('s-mia')
    const asked = vi.spyOn(auth.session.deps.identity, 'getPrincipal')
    const browser = auth.browser()
    expect((await browser.signIn('s-mia')).location).toBe('/inbox')
    expect(asked).not.toHaveBeenCalled()
    const { authorization } = await bearerOf(browser)
    expect(asked).toHaveBeenCalled()
    asked.mockRestore()
    expect(claimsOf(authorization)).toMatchObject({ scope: ['enrolment'], amr: ['fed'] })
  })

  it('has all rights after a passkey was added, and its refreshes keep them', async () => {
    const { username, id } = await person(['viewer', 'approver'])
    const first = await signIn(username)
    const second = await renewed(first.refresh_token)
    expect(await read(second.access_token)).toMatchObject(LIMITED)
    await addPasskey(second.access_token, id)
    expect(await read(second.access_token)).toMatchObject(LIMITED)
    const third = await renewed(second.refresh_token)
    expect(claimsOf(third.access_token)).not.toHaveProperty('scope')
    expect(claimsOf(third.access_token).amr).toEqual(['pwd', 'hwk', 'mfa'])
    expect((await read(third.access_token)).status).toBe(200)
    expect(await token({ username, password: PASSWORD })).toMatchObject({ body: { code: 'second_factor_required' } })
  })

  it('has all rights after an authenticator app was set up', async () => {
    const { username } = await person(['approver'])
    const { access_token, refresh_token } = await signIn(username)
    const begun = await send(`${url}/api/v1/users/me/totp/setup`, { body: {}, headers: bearer(access_token) })
    const { secret, setup } = begun.body as { secret: string; setup: string }
    const asked = { method: 'PUT', body: { setup, code: codeAt(secret, new Date()) }, headers: keyed(access_token) }
    expect((await send(`${url}/api/v1/users/me/totp`, asked as never)).status).toBe(200)
    expect((await read((await renewed(refresh_token)).access_token)).status).toBe(200)
  })

  it('adds no factor to an account that has one by now, until it proves that one', async () => {
    const { username, id } = await person(['approver'])
    const older = await signIn(username)
    const begin = (access: unknown) => send(`${url}/api/v1/users/me/totp/setup`, { body: {}, headers: bearer(access) })
    const { secret, setup } = (await begin(older.access_token)).body as { secret: string; setup: string }
    const key = await addPasskey((await signIn(username)).access_token, id)
    const fresh = (await reauth(older.access_token, { password: PASSWORD })).body.access_token
    expect(claimsOf(fresh).amr).toEqual(['pwd'])
    const set = (access: unknown) => {
      const body = { setup, code: codeAt(secret, new Date()) }
      return send(`${url}/api/v1/users/me/totp`, { method: 'PUT', body, headers: keyed(access) })
    }
    const foreign = { name: 'theirs', attestation: createAuthenticator(SITE).attest(await challenge(), id) }
    for (const answer of [
      await set(fresh),
      await begin(fresh),
      await send(`${url}/api/v1/users/me/passkeys`, { body: foreign, headers: keyed(fresh) }),
    ])
      expect(answer).toMatchObject(LIMITED)
    expect(claimsOf((await renewed(older.refresh_token)).access_token).scope).toEqual(['enrolment'])
    const confirmed = await reauth(fresh, { assertion: key.assert(await challenge()) })
    expect((await set(confirmed.body.access_token)).status).toBe(200)
  })

  it('is any password-only session whose person was given such a role, until a factor is confirmed', async () => {
    const { username, id } = await person(['viewer'])
    const { refresh_token } = await signIn(username)
    const key = await addPasskey((await signIn(username)).access_token, id)
    await auth.identity_deps.db
      .insert(grants)
      .values({
        ...{ id: randomUUID(), subject_type: 'user', subject_id: id },
        ...{ role: 'approver', scope: {}, created_by: 'system' },
      })
    const limited = await renewed(refresh_token)
    expect(await read(limited.access_token)).toMatchObject(LIMITED)
    const by_password = await reauth(limited.access_token, { password: PASSWORD })
    expect(await read(by_password.body.access_token)).toMatchObject(LIMITED)
    const confirmed = await reauth(by_password.body.access_token, { assertion: key.assert(await challenge()) })
    expect((await read(confirmed.body.access_token)).status).toBe(200)
  })

  it('does not arise for a sign-in by a passkey, or for a role that needs no factor', async () => {
    const { username, id } = await person(['approver'])
    const key = await addPasskey((await signIn(username)).access_token, id)
    const strong = await token({ grant_type: 'passkey', assertion: key.assert(await challenge()) })
    expect((await read(strong.body.access_token)).status).toBe(200)
    expect((await read((await signIn((await person(['viewer'])).username)).access_token)).status).toBe(200)
  })
})

describe('a sign-in through a provider', () => {
  const signInAtCorp = async (sub = 's-mia') => {
    const browser = auth.browser()
    expect((await browser.signIn(sub)).status).toBe(303)
    const headers = await bearerOf(browser)
    return { browser, headers, claims: claimsOf(headers.authorization.split(' ')[1]) }
  }
  const readBy = (headers: Record<string, string>) => send(`${url}/api/v1/users/me`, { headers })
  const named = (amr: string[]) => {
    auth.state.amend = (claims) => ({ ...claims, amr })
  }

  it('counts as one factor, whatever the provider states, unless require_amr asked for more (ASVS 6.3.3, 6.8.4)', async () => {
    named(['pwd', 'mfa'])
    const single = await signInAtCorp()
    expect(single.claims).toMatchObject({ scope: ['enrolment'], amr: ['fed'] })
    expect(await readBy(single.headers)).toMatchObject(LIMITED)
    // Nova holds no such role.
    expect((await readBy((await signInAtCorp('s-new')).headers)).status).toBe(200)
    auth.configure({ require_amr: ['mfa'] })
    const both = await signInAtCorp()
    expect(both.claims.amr).toEqual(['fed', 'mfa'])
    expect((await readBy(both.headers)).status).toBe(200)
    auth.configure()
  })

  it('changes no factor of an account that has one, until it proves that one or the provider did', async () => {
    auth.configure({ require_amr: ['mfa'] })
    named(['mfa'])
    const { headers, claims } = await signInAtCorp()
    const key = createAuthenticator(SITE)
    const add = async (by: Record<string, string>, one = createAuthenticator(SITE)) => {
      const body = { name: 'phone', attestation: one.attest(await challenge(), claims.sub) }
      return send(`${url}/api/v1/users/me/passkeys`, { body, headers: { ...by, 'idempotency-key': randomUUID() } })
    }
    expect((await add(headers, key)).status).toBe(201)
    expect((await add((await signInAtCorp()).headers)).status).toBe(201)
    auth.configure()
    const single = await signInAtCorp()
    expect(await add(single.headers)).toMatchObject(LIMITED)
    const confirmed = await single.browser.go('/v1/token/reauth', {
      method: 'POST',
      headers: { ...single.headers, 'content-type': 'application/json' },
      body: JSON.stringify({ assertion: key.assert(await challenge()) }),
    })
    expect((await add({ ...single.headers, ...bearer(confirmed.body.access_token) })).status).toBe(201)
  })

  it('adds the methods of a confirmation there to the session', async () => {
    const browser = auth.browser()
    await browser.signIn('s-new')
    auth.configure({ require_amr: ['mfa'] })
    named(['mfa'])
    const headers = { ...(await bearerOf(browser)), 'content-type': 'application/json' }
    const body = JSON.stringify({ purpose: 'reauth', return_to: '/inbox' })
    const { body: started } = await browser.go('/v1/sso/corp/start', { method: 'POST', headers, body })
    await browser.go((await browser.go(`${started.location}&person=s-new`)).location)
    const after = await bearerOf(browser)
    expect(claimsOf(after.authorization.split(' ')[1]).amr).toEqual(['fed', 'mfa'])
    auth.configure()
  })
})

describe('a fresh proof', () => {
  it('ends the requesting token at once, and every token of an older proof (ASVS 7.2.4, 10.1.1)', async () => {
    const { username, id } = await person(['viewer'])
    const { access_token, refresh_token } = await signIn(username)
    const other = await signIn(username)
    const fresh = await reauth(access_token, { password: PASSWORD })
    expect(fresh.status).toBe(200)
    expect(await read(access_token)).toMatchObject({ status: 401, body: { code: 'invalid_token' } })
    expect((await read(fresh.body.access_token)).status).toBe(200)
    expect((await read(other.access_token)).status).toBe(200)
    const { session_id } = claimsOf(access_token)
    const owner = { user_id: id, session_id, username, mode: 'json' as const, amr: ['pwd' as const] }
    const older = await auth.session.deps.issuer.access(
      { ...owner, auth_time: claimsOf(access_token).auth_time - 1 },
      'test',
    )
    expect((await read(older)).status).toBe(401)
    const next = await renewed(refresh_token)
    expect(claimsOf(next.access_token).auth_time).toBe(claimsOf(fresh.body.access_token).auth_time)
    expect((await read(next.access_token)).status).toBe(200)
    expect((await reauth(next.access_token, { password: 'Wrong-Otter-7-Battery' })).status).toBe(422)
    expect((await read(next.access_token)).status).toBe(200)
  })
})

describe('ending one’s other sessions', () => {
  it('requires a sign-in in the last 15 minutes; the current one ends at any time (ASVS 7.5.2)', async () => {
    const { username, id } = await person(['viewer'])
    const [mine, lost, third] = [await signIn(username), await signIn(username), await signIn(username)]
    const { session_id } = claimsOf(mine.access_token)
    await auth.redis.hset(`${auth.prefix}sess:{${id}}:${session_id}`, 'auth_time', Math.floor(Date.now() / 1000) - 901)
    const stale = (await renewed(mine.refresh_token)).access_token
    const end = (access: unknown, session: string) =>
      send(`${url}/api/v1/sessions/${session}`, { method: 'DELETE', headers: keyed(access) })
    const others = (access: unknown) =>
      send(`${url}/api/v1/sessions/revoke-others`, { body: {}, headers: keyed(access) })
    const refused = { status: 403, body: { code: 'reauth_required', max_age_s: 900 } }
    expect(await end(stale, claimsOf(lost.access_token).session_id)).toMatchObject(refused)
    expect(await others(stale)).toMatchObject(refused)
    expect((await read(lost.access_token)).status).toBe(200)
    const fresh = (await reauth(stale, { password: PASSWORD })).body.access_token
    expect((await end(fresh, claimsOf(lost.access_token).session_id)).status).toBe(204)
    expect(await others(fresh)).toMatchObject({ status: 200, body: { revoked: 1 } })
    expect((await read(third.access_token)).status).toBe(401)
    await auth.redis.hset(`${auth.prefix}sess:{${id}}:${session_id}`, 'auth_time', 1)
    const old = await auth.session.deps.issuer.access(
      { user_id: id, session_id, username, mode: 'json', amr: ['pwd'], auth_time: claimsOf(fresh).auth_time },
      'test',
    )
    expect((await end(old, session_id)).status).toBe(204)
  })
})
