import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import { timestampNow } from '@bufbuild/protobuf/wkt'
import { and, eq } from 'drizzle-orm'
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT, UnsecuredJWT } from 'jose'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { ROUTES } from '../../apps/gateway/routes/table.ts'
import { revokeUngiven } from '../../apps/identity/federation/rights.ts'
import { unlinkExternal } from '../../apps/identity/federation/unlink.ts'
import { describeClient } from '../../apps/session/browser/client.ts'
import { endRemoved } from '../../apps/session/sso/removed.ts'
import { indexOf } from '../../apps/session/store/flows.ts'
import { openFederated } from '../../apps/session/token/code.ts'
import { Session } from '../../apps/shared/contracts/gen/auth_pb.ts'
import type { UnlinkedUser } from '../../apps/shared/contracts/identity/providers.ts'
import { sha256Hex } from '../../apps/shared/data/digest.ts'
import { unavailable } from '../../apps/shared/errors.ts'
import { createRpcClient } from '../../apps/shared/rpc/client.ts'
import {
  external_identities,
  grants,
  group_members,
  groups,
  outbox,
  user_events,
  users,
} from '../../db/identity/tables.ts'
import { createAuthenticator } from '../support/authenticator.ts'
import { until } from '../support/until.ts'
import { bearer, ORIGIN, PASSWORD, send } from './support/auth.ts'
import { bearerOf, type Sso, startSso } from './support/sso.ts'

/** federation.md 4: people of a provider, and each of its answers that must not count. */

let sso: Sso
beforeAll(async () => {
  sso = await startSso()
  await sso.identity_deps.db.insert(groups).values({ group_key: 'netops', name: 'Network operations' })
})
afterAll(() => sso?.stop())
afterEach(() => {
  sso.state.amend = (claims) => claims
  sso.state.seal = undefined
  sso.configure()
})

const userNamed = async (username: string) =>
  (await sso.identity_deps.db.select().from(users).where(eq(users.username, username)))[0]
const countOf = async () => ({
  users: (await sso.identity_deps.db.select().from(users)).length,
  links: (await sso.identity_deps.db.select().from(external_identities)).length,
})
/** The rows of session's audit log, newest last. */
const audited = async (): Promise<Record<string, string>[]> => {
  const rows = await sso.redis.xrange(`${sso.prefix}auth:audit`, '-', '+')
  return rows.map(([, [, row]]) => JSON.parse(row ?? '{}'))
}
/** The rights that the provider gives this person: groups, and roles held by their own grants. */
const rightsOf = async (username: string) => {
  const { id = '' } = (await userNamed(username)) ?? {}
  const { db } = sso.identity_deps
  const memberships = await db.select().from(group_members).where(eq(group_members.user_id, id))
  const own = await db
    .select()
    .from(grants)
    .where(and(eq(grants.subject_type, 'user'), eq(grants.subject_id, id)))
  return { groups: memberships.map(({ group_key }) => group_key), roles: own.map(({ role }) => role) }
}

const signedIn = async (sub: string) => {
  const browser = sso.browser()
  await browser.signIn(sub)
  return { browser, headers: { ...(await bearerOf(browser)), 'content-type': 'application/json' } }
}

describe('a sign-in through a provider', () => {
  it('sets the cookies of a renewable session, and no token in an address', async () => {
    const browser = sso.browser()
    const done = await browser.signIn('s-mia', '?return_to=%2Foperations')
    expect(done).toMatchObject({ status: 303, location: '/operations' })
    expect(done.cookies[0]).toMatch(/^refresh_token=.*HttpOnly; Secure; SameSite=Strict$/)
    expect(done.cookies[1]).toMatch(/^__Host-device=d1\..*HttpOnly; Secure; SameSite=Lax$/)
    const headers = await bearerOf(browser)
    const me = await browser.go('/api/v1/users/me', { headers })
    expect(me.body).toMatchObject({ username: 'mia', roles: ['approver'], groups: ['netops'] })
    const list = await browser.go('/api/v1/sessions', { headers })
    expect(list.body.items).toMatchObject([{ metadata: { provider: 'corp' } }])
  })

  it('says whether its browser was known to this person, so that they hear of a new one', async () => {
    const browser = sso.browser()
    const deviceOf = async (name = 'mia') => {
      sso.state.amend = (claims) => ({ ...claims, sub: `s-${name}`, preferred_username: name })
      expect((await browser.signIn('s-mia')).status).toBe(303)
      return JSON.parse((await audited()).findLast(({ action }) => action === 'login')?.body ?? '').details.device
    }
    expect(await deviceOf()).toBe('new')
    expect(await deviceOf()).toBe('known')
    // Someone else at the same browser is new to it, and so is the first person after them.
    expect(await deviceOf('ina')).toBe('new')
    expect(await deviceOf()).toBe('new')
    browser.cookies.set('__Host-device', `${browser.cookies.get('__Host-device')}x`)
    expect(await deviceOf()).toBe('new')
  })

  it('ends the session that the browser had, whoever began it and how (ASVS 7.2.4)', async () => {
    await sso.addUser('ivo')
    const browser = sso.browser()
    const body = JSON.stringify({ username: 'ivo', password: PASSWORD })
    const headers = { 'content-type': 'application/json' }
    const first = await browser.go('/v1/token?response_mode=cookie', { method: 'POST', headers, body })
    const statusOf = async (token: unknown) =>
      (await send(`${sso.gateway.url}/api/v1/users/me`, { headers: bearer(token) })).status
    expect(await statusOf(first.body.access_token)).toBe(200)
    // A browser sends the refresh cookie to its own path alone.
    const signInAgain = async () => {
      browser.cookies.delete('refresh_token')
      expect((await browser.signIn('s-mia')).status).toBe(303)
      return bearerOf(browser)
    }
    const second = await signInAgain()
    expect(await statusOf(first.body.access_token)).toBe(401)
    const elsewhere = sso.browser()
    await elsewhere.signIn('s-mia')
    const third = await signInAgain()
    const readMe = async (headers: Record<string, string>) => (await browser.go('/api/v1/users/me', { headers })).status
    expect([await readMe(second), await readMe(third)]).toEqual([401, 200])
    expect(await readMe(await bearerOf(elsewhere))).toBe(200)
  })

  it('finds the same account at the next sign-in, whatever its name and address there (ASVS 10.5.2)', async () => {
    await sso.browser().signIn('s-mia')
    const before = await countOf()
    sso.state.amend = (claims) => ({ ...claims, preferred_username: 'renamed', email: 'other@example.com' })
    expect((await sso.browser().signIn('s-mia')).status).toBe(303)
    expect(await countOf()).toEqual(before)
    expect(await userNamed('renamed')).toBeUndefined()
  })

  it('finds no account that another provider knows by the same subject (ASVS 6.8.1)', async () => {
    const other = await sso.addUser('namesake')
    await sso.identity_deps.db
      .insert(external_identities)
      .values({ provider: 'other', subject: 's-mia', user_id: other.id })
    const browser = sso.browser()
    await browser.signIn('s-mia')
    const me = await browser.go('/api/v1/users/me', { headers: await bearerOf(browser) })
    expect(me.body.username).toBe('mia')
  })

  it('offers only the enabled providers', async () => {
    expect((await sso.browser().go('/v1/providers')).body).toMatchObject({
      items: [{ id: 'corp', title: 'Example Corp' }],
    })
    sso.configure({ enabled: false })
    expect((await sso.browser().go('/v1/providers')).body).toMatchObject({ items: [] })
    expect((await sso.browser().go('/v1/sso/corp/start')).body.code).toBe('not_found')
  })

  it('ends with its provider: sessions, and codes that an app still holds; no other session ends', async () => {
    await sso.addUser('nik')
    const local = await send(`${sso.gateway.url}/v1/token`, { body: { username: 'nik', password: PASSWORD } })
    const statusOf = async (headers: Record<string, string>) =>
      (await send(`${sso.gateway.url}/api/v1/users/me`, { headers })).status
    const client = describeClient(undefined, undefined)
    const request = { client, request_id: 'test', device_token: undefined }
    for (const change of [{ enabled: false }, { id: 'other' }]) {
      const mia = await signedIn('s-mia')
      const { id = '' } = (await userNamed('mia')) ?? {}
      const held = { ...{ user_id: id, username: 'mia', provider_id: 'corp' }, max_s: 60, auth_time: 1 }
      const open = () => openFederated(sso.session.deps, { ...held, proved_at: 1, indexes: [] }, 'json', request)
      expect(await open()).toMatchObject({ user_id: id })
      expect(await statusOf(mia.headers)).toBe(200)
      sso.configure(change)
      await until(async () => (await statusOf(mia.headers)) === 401, { what: 'the session to end' })
      expect(await open()).toBe(undefined)
      expect(await statusOf(bearer(local.body.access_token))).toBe(200)
      expect((await audited()).findLast(({ action }) => action === 'revoke_session')).toMatchObject({
        ...{ actor: 'system:provider:corp', reason: 'admin', object: `user:${id}` },
      })
      sso.configure()
    }
  })

  it('leaves no session if its provider is removed while it opens', async () => {
    await signedIn('s-mia')
    const { id = '' } = (await userNamed('mia')) ?? {}
    const { deps } = sso.session
    const { getUser } = deps.identity
    const provider = vi.spyOn(deps.providers, 'get')
    const removing = vi.spyOn(deps.identity, 'getUser').mockImplementationOnce(async (...given) => {
      provider.mockReturnValue(undefined)
      return getUser(...given)
    })
    const held = { ...{ user_id: id, username: 'mia', provider_id: 'corp' }, max_s: 60, auth_time: 1, proved_at: 1 }
    const request = { client: describeClient(undefined, undefined), request_id: 'test', device_token: undefined }
    const opened = openFederated(deps, { ...held, indexes: [indexOf('corp', 'sub', 's-mia')] }, 'json', request)
    try {
      expect(await opened).toBe(undefined)
    } finally {
      for (const spy of [provider, removing]) spy.mockRestore()
    }
  })

  it('outlasts a file that cannot be used, and ends with its provider though no replica confirms another end', async () => {
    const people = [await signedIn('s-mia'), await signedIn('s-mia')]
    const statuses = () =>
      Promise.all(
        people.map(async ({ browser, headers }) => (await browser.go('/api/v1/users/me', { headers })).status),
      )
    const { deps } = sso.session
    vi.spyOn(deps.providers, 'get').mockReturnValue(undefined)
    const fault = vi.spyOn(deps.providers, 'fault').mockReturnValue('It is no YAML.')
    vi.spyOn(deps.store, 'replicated').mockRejectedValue(new Error('no replica'))
    try {
      await endRemoved(deps)
      expect(await statuses()).toEqual([200, 200])
      fault.mockRestore()
      await expect(endRemoved(deps)).rejects.toThrow('no replica')
      expect(await statuses()).toEqual([401, 401])
    } finally {
      vi.restoreAllMocks()
    }
  })

  it('returns only to the console', async () => {
    for (const path of [
      'https://evil.test/',
      '//evil.test',
      '/\\evil.test',
      '/.//evil.test',
      '/a/..//evil.test',
      '/\t/evil.test',
      'x:1',
    ]) {
      const done = await sso.browser().signIn('s-mia', `?return_to=${encodeURIComponent(path)}`)
      expect([path, done.location]).toEqual([path, '/inbox'])
    }
  })

  it('shows a refusal to a browser on the sign-in page', async () => {
    const browser = sso.browser()
    const back = await browser.choose('s-out')
    const done = await browser.go(back, { headers: { accept: 'text/html' } })
    expect(done).toMatchObject({ status: 303, location: '/login?error=no_account' })
  })

  it('accepts a time with fractions of seconds', async () => {
    const auth_time = Math.floor(Date.now() / 1000) - 20
    sso.state.amend = (claims) => ({ ...claims, auth_time: auth_time + 0.5 })
    const browser = sso.browser()
    await browser.signIn('s-mia')
    const me = await browser.go('/api/v1/users/me', { headers: await bearerOf(browser) })
    expect(me.body.session).toMatchObject({ auth_time })
  })

  it.each([
    ['differs by most of a minute', -50, 300],
    ['dates its tokens back by five minutes, as Entra does', 330, 3900],
    ['has not seen our minute yet', 50, 20],
  ])('accepts the token of a provider whose clock %s', async (_what, ago_s, life_s) => {
    const iat = Math.floor(Date.now() / 1000) - ago_s
    sso.state.amend = (claims) => ({ ...claims, iat, nbf: iat, exp: iat + life_s })
    expect(await sso.browser().signIn('s-mia')).toMatchObject({ status: 303, location: '/inbox' })
  })

  it('asks the provider for the time, and proves no fresh sign-in if it gives none', async () => {
    const asked = new URL((await sso.browser().go('/v1/sso/corp/start')).location).searchParams.get('claims')
    expect(JSON.parse(asked ?? '{}')).toEqual({ id_token: { auth_time: { essential: true } } })
    sso.state.amend = ({ auth_time: _, ...claims }) => claims
    const browser = sso.browser()
    await browser.signIn('s-mia')
    const headers = { ...(await bearerOf(browser)), 'content-type': 'application/json' }
    const linked = await browser.go('/v1/sso/corp/start', {
      method: 'POST',
      headers,
      body: JSON.stringify({ purpose: 'link' }),
    })
    expect(linked.body.code).toBe('reauth_required')
  })
})

describe('the rights that a provider gives', () => {
  it('follow the groups of each sign-in, name their giver, and leave other rights alone', async () => {
    await sso.browser().signIn('s-mia')
    expect(await rightsOf('mia')).toEqual({ groups: ['netops'], roles: ['approver'] })
    const mia = await userNamed('mia')
    const id = mia?.id ?? ''
    const row = { id: randomUUID(), subject_type: 'user' as const, subject_id: id, role: 'viewer' }
    await sso.identity_deps.db.insert(grants).values({ ...row, created_by: 'user:ada' })
    const [membership] = await sso.identity_deps.db.select().from(group_members).where(eq(group_members.user_id, id))
    expect(membership).toMatchObject({ added_by: 'provider:corp', confirmed_by: null })

    sso.state.amend = (claims) => ({ ...claims, groups: ['staff'] })
    await sso.browser().signIn('s-mia')
    expect(await rightsOf('mia')).toEqual({ groups: [], roles: ['viewer'] })
    expect((await userNamed('mia'))?.version).toBeGreaterThan(mia?.version ?? 0)
    const events = await sso.identity_deps.db
      .select()
      .from(user_events)
      .where(eq(user_events.object, `user:${id}`))
    // Other tests here have switched the provider off meanwhile.
    expect(events[0]?.action).toBe('user.created')
    expect(new Set(events.slice(1).map(({ action }) => action))).toEqual(new Set(['user.provider_rights']))

    sso.state.amend = (claims) => claims
    await sso.browser().signIn('s-mia')
    expect((await rightsOf('mia')).groups).toEqual(['netops'])
  })

  it('cost three queries and no lock if a sign-in changes none, however many groups the map gives', async () => {
    await sso.browser().signIn('s-mia')
    const { version } = (await userNamed('mia')) ?? {}
    const asked = vi.spyOn(sso.identity_deps.pool, 'query')
    await sso.browser().signIn('s-mia')
    const texts = asked.mock.calls.map(([query]) => String((query as unknown as { text?: string }).text ?? query))
    asked.mockRestore()
    expect(
      texts.filter((text) => /external_identities|group_members|identity"."(grants|groups)/.test(text)),
    ).toHaveLength(3)
    expect((await userNamed('mia'))?.version).toBe(version)
  })

  it('stay unchanged if the provider only refers to a list of groups', async () => {
    await sso.browser().signIn('s-mia')
    const details = async () => JSON.parse((await audited()).at(-1)?.body ?? '').details
    expect(await details()).toEqual({ provider: 'corp', device: 'new' })
    sso.state.amend = ({ groups: _, ...claims }) => ({ ...claims, _claim_names: { groups: 'src1' } })
    await sso.browser().signIn('s-mia')
    expect((await rightsOf('mia')).groups).toEqual(['netops'])
    expect(await details()).toEqual({ provider: 'corp', groups_elsewhere: true, device: 'new' })
  })

  it('never exceed the ceiling, not even through a group that was given more', async () => {
    await sso.addUser('root', ['admin'])
    const group = { subject_type: 'group' as const, subject_id: 'netops', role: 'admin' }
    const given = { id: randomUUID(), ...group, created_by: 'user:ada' }
    await sso.identity_deps.db.insert(grants).values(given)
    await sso.browser().signIn('s-mia')
    expect(await rightsOf('mia')).toMatchObject({ groups: [] })
    await sso.identity_deps.db.delete(grants).where(eq(grants.role, 'admin'))
  })

  it('keep the last administrator, and the log says so once', async () => {
    const root = { noc: { roles: ['admin'] } }
    sso.configure({ max_role: 'admin', groups: { claim: 'groups', map: root } })
    await sso.browser().signIn('s-mia')
    sso.configure({ groups: { claim: 'groups', map: {} } })
    await sso.browser().signIn('s-mia')
    expect((await rightsOf('mia')).roles).toContain('admin')
    const { id = '', version } = (await userNamed('mia')) ?? {}
    for (let hour = 0; hour < 2; hour++) await revokeUngiven(sso.identity_deps)
    await sso.browser().signIn('s-mia')
    const rows = await sso.identity_deps.db
      .select()
      .from(user_events)
      .where(eq(user_events.object, `user:${id}`))
    const rights = rows.filter(({ action }) => action === 'user.provider_rights')
    expect(rights.at(-1)).toMatchObject({ reason: 'last_admin' })
    expect(rights.filter(({ reason }) => reason === 'last_admin')).toHaveLength(1)
    expect((await userNamed('mia'))?.version).toBe(version)
    await sso.identity_deps.db.delete(grants).where(eq(grants.role, 'admin'))
  })
})

describe('a refused answer', () => {
  /** One sign-in of someone new: refused with this code, nothing created, one audit row. */
  const refusal = async (sub = 's-tom') => {
    const before = await countOf()
    const browser = sso.browser()
    const { status, body, cookies } = await browser.go(await browser.choose(sub))
    expect(await countOf()).toEqual(before)
    expect(cookies).toEqual([])
    const last = (await audited()).findLast(({ action }) => action === 'login')
    expect(last).toMatchObject({ action: 'login', outcome: 'denied', reason: body.code })
    return [status, body.code]
  }
  const claims = (changes: JWTPayload) => {
    sso.state.amend = (made) => ({ ...made, ...changes })
  }
  const pairOf = () => generateKeyPair('RS256')
  const signed = (made: JWTPayload, header: object, key: Parameters<SignJWT['sign']>[0]) =>
    new SignJWT(made).setProtectedHeader({ alg: 'RS256', kid: 'demo', ...header }).sign(key)
  const changedIn = (token: string) => {
    const [head, body = '', signature] = token.split('.')
    const made = { ...JSON.parse(Buffer.from(body, 'base64url').toString()), sub: 's-mia' }
    return [head, Buffer.from(JSON.stringify(made)).toString('base64url'), signature].join('.')
  }
  const ago = (seconds: number) => Math.floor(Date.now() / 1000) - seconds

  it.each<[string, () => JWTPayload, number, string]>([
    ['another issuer', () => ({ iss: 'https://evil.test' }), 401, 'id_token_issuer'],
    ['another audience', () => ({ aud: 'other' }), 401, 'id_token_audience'],
    ['two audiences and no azp', () => ({ aud: ['signalbox', 'other'] }), 401, 'id_token_audience'],
    ['another authorized party', () => ({ azp: 'other' }), 401, 'id_token_audience'],
    ['another nonce', () => ({ nonce: 'other' }), 401, 'id_token_nonce'],
    ['no nonce', () => ({ nonce: undefined }), 401, 'id_token_invalid'],
    ['an end in the past', () => ({ exp: ago(120) }), 401, 'id_token_time'],
    ['an old date of issue', () => ({ iat: ago(900) }), 401, 'id_token_time'],
    ['a date of issue in the future', () => ({ iat: ago(-900) }), 401, 'id_token_time'],
    ['a start in the future', () => ({ nbf: ago(-900) }), 401, 'id_token_time'],
    ['the hash of another access token', () => ({ at_hash: 'AAAAAAAAAAAAAAAAAAAAAA' }), 401, 'id_token_invalid'],
    ['a subject that is too long', () => ({ sub: 'x'.repeat(256) }), 401, 'id_token_invalid'],
    ['a subject that cannot be stored', () => ({ sub: 's\0x' }), 401, 'id_token_invalid'],
    ['a subject that would be stored as another', () => ({ sub: 's\ud800' }), 401, 'id_token_invalid'],
  ])('is an ID token with %s (ASVS 10.5.1, 10.5.4)', async (_what, changes, status, code) => {
    claims(changes())
    expect(await refusal()).toEqual([status, code])
  })

  it.each<[string, (claims: JWTPayload) => Promise<string>]>([
    ['no signature', async (claims) => new UnsecuredJWT(claims).encode()],
    [
      'the client secret as its key',
      (claims) => signed(claims, { alg: 'HS256' }, Buffer.from(sso.provider.client_secret)),
    ],
    ['another key under the name of the right one', async (claims) => signed(claims, {}, (await pairOf()).privateKey)],
    [
      'a key that the provider does not name',
      async (claims) => signed(claims, { kid: 'x' }, (await pairOf()).privateKey),
    ],
    [
      'its key in its own header',
      async (claims) => {
        const { publicKey, privateKey } = await pairOf()
        return signed(claims, { jwk: await exportJWK(publicKey) }, privateKey)
      },
    ],
    ['a changed claim', async (claims) => changedIn(await sso.provider.sign(claims))],
  ])('is an ID token with %s (ASVS 6.8.2)', async (_what, seal) => {
    sso.state.seal = seal
    expect(await refusal()).toEqual([401, 'id_token_invalid'])
  })

  it('is a sign-in without the second factor that the provider had to require (ASVS 6.3.3, 6.3.4, 6.8.4)', async () => {
    sso.configure({ require_amr: ['mfa', 'hwk'] })
    for (const amr of [undefined, [], ['pwd'], 'mfa']) {
      claims({ amr })
      expect(await refusal()).toEqual([403, 'provider_factor_missing'])
    }
    claims({ amr: ['pwd', 'mfa'] })
    expect((await sso.browser().signIn('s-mia')).status).toBe(303)
  })

  it('is an answer at the callback of another provider (ASVS 10.2.2)', async () => {
    const told: string[] = []
    const { fetch } = globalThis
    const listening = vi.spyOn(globalThis, 'fetch').mockImplementation((to, init) => {
      told.push(String(to instanceof Request ? to.url : to))
      return fetch(to, init)
    })
    try {
      const browser = sso.browser()
      const back = await browser.choose('s-mia')
      sso.configure({ id: 'other' })
      expect((await browser.go(back.replace('/corp/', '/other/'))).body.code).toBe('sign_in_expired')
      // Neither the code nor the verifier left us.
      expect(told).not.toContain(`${sso.provider.issuer}/token`)
      sso.configure()
      expect((await sso.browser().signIn('s-mia')).status).toBe(303)
      expect(told).toContain(`${sso.provider.issuer}/token`)
    } finally {
      listening.mockRestore()
    }
  })

  it('is a start that a page of another site led to: the person must press the button (ASVS 7.6.2)', async () => {
    for (const site of ['cross-site', 'same-site']) {
      const link = { 'sec-fetch-site': site, 'sec-fetch-dest': 'document' }
      const led = await sso.browser().go('/v1/sso/corp/start', { headers: link })
      expect([led.status, led.location, led.cookies]).toEqual([303, '/login', []])
    }
    for (const site of ['same-origin', 'none'])
      expect(
        (await sso.browser().go('/v1/sso/corp/start', { headers: { 'sec-fetch-site': site } })).location,
      ).toContain(`${sso.provider.issuer}/authorize`)
  })

  it('is an ID token whose algorithm is not on the list (ASVS 9.1.2)', async () => {
    sso.configure({ algorithms: ['ES256'] })
    expect(await refusal()).toEqual([401, 'id_token_invalid'])
  })

  it('is a state that was used, is unknown, or started in another browser (ASVS 10.1.2, 10.2.1)', async () => {
    const browser = sso.browser()
    const back = await browser.choose('s-mia')
    expect((await sso.browser().go(back)).body.code).toBe('sign_in_expired')
    expect((await browser.go(back)).body.code).toBe('sign_in_expired')
    const again = await browser.choose('s-mia')
    expect((await browser.go(again)).status).toBe(303)
    expect((await browser.go(again)).body.code).toBe('sign_in_expired')
    expect((await browser.go('/v1/sso/corp/callback?code=x&state=y')).body.code).toBe('sign_in_expired')
    expect((await audited()).at(-1)).toMatchObject({ outcome: 'denied', reason: 'sign_in_expired' })
  })

  it('is all but one of those that come at the same moment', async () => {
    const browser = sso.browser()
    const back = await browser.choose('s-mia')
    const answers = await Promise.all([1, 2, 3, 4].map(() => browser.go(back)))
    expect(answers.map(({ status }) => status).sort()).toEqual([303, 401, 401, 401])
    for (const { status, cookies } of answers) if (status === 401) expect(cookies).toEqual([])
  })

  it('is an answer that names another issuer beside the code (ASVS 10.2.2)', async () => {
    const browser = sso.browser()
    const back = new URL(await browser.choose('s-mia'))
    back.searchParams.set('iss', 'https://evil.test')
    expect((await browser.go(back.href)).body.code).toBe('id_token_invalid')
  })

  it('is a refusal by the person', async () => {
    const browser = sso.browser()
    const back = new URL(await browser.choose('s-mia'))
    back.searchParams.delete('code')
    back.searchParams.set('error', 'access_denied')
    // Okta says the same of people to whom it does not give this application.
    expect((await browser.go(back.href)).body).toMatchObject({
      code: 'sign_in_cancelled',
      detail: expect.stringContaining('refused'),
    })
  })

  it('is a provider that is busy, or where the sign-in took too long: the person reads which, not of a fault', async () => {
    for (const [error, error_description, code] of [
      ['server_error', 'maintenance', 'provider_unavailable'],
      ['temporarily_unavailable', 'maintenance', 'provider_unavailable'],
      ['temporarily_unavailable', 'authentication_expired', 'sign_in_expired'],
      ['unauthorized_client', 'not for this flow', 'provider_refuses_client'],
    ] as const) {
      const browser = sso.browser()
      const back = new URL(await browser.choose('s-mia'))
      back.searchParams.delete('code')
      for (const [name, value] of Object.entries({ error, error_description })) back.searchParams.set(name, value)
      expect([error_description, (await browser.go(back.href)).body.code]).toEqual([error_description, code])
    }
  })

  it('is a person without the group that creates accounts', async () => {
    expect(await refusal('s-out')).toEqual([403, 'no_account'])
  })

  it('is a name that no account can have, said as such; names as directories have them are accepted', async () => {
    for (const name of ['еva', 'a b', 'machine:x', 'x'.repeat(129), '<script>']) {
      claims({ sub: 's-name', preferred_username: name })
      expect([name, ...(await refusal())]).toEqual([name, 403, 'username_invalid'])
    }
    const names = [
      "pat.o'brien@example.com",
      'x_gmail.com#EXT#@t.onmicrosoft.com',
      `${'n'.repeat(64)}@${'d'.repeat(40)}.test`,
    ]
    for (const [at, name] of names.entries()) {
      claims({ sub: `s-name-${at}`, preferred_username: name })
      const browser = sso.browser()
      expect((await browser.signIn('s-tom')).status).toBe(303)
      const me = await browser.go('/api/v1/users/me', { headers: await bearerOf(browser) })
      expect(me).toMatchObject({ status: 200, body: { username: name } })
    }
  })

  it('is a new person without a name: the claim of the file is missing, not the account', async () => {
    sso.configure({ username_claim: 'upn' })
    expect(await refusal()).toEqual([403, 'username_missing'])
    expect(await refusal('s-out')).toEqual([403, 'no_account'])
  })

  it('is a new person without the claim that creates accounts', async () => {
    sso.configure({ jit: { enabled: true, require_claims: { hd: 'example.com', employed: 'yes' } } })
    expect(await refusal()).toEqual([403, 'no_account'])
    for (const hd of ['evil.test', ['example.com'], undefined]) {
      claims({ hd, employed: 'yes' })
      expect(await refusal()).toEqual([403, 'no_account'])
    }
    claims({ hd: 'example.com', employed: 'yes', sub: 's-hired', preferred_username: 'hired' })
    expect((await sso.browser().signIn('s-tom')).status).toBe(303)
    // It creates accounts; it is not asked of those that exist.
    claims({ sub: 's-hired' })
    expect((await sso.browser().signIn('s-tom')).status).toBe(303)
  })

  it('is a new person if the provider creates no accounts', async () => {
    sso.configure({ jit: { enabled: false } })
    expect(await refusal()).toEqual([403, 'no_account'])
  })

  it('is the name of a local account: it is never linked, verified address or not', async () => {
    await sso.addUser('eva', ['approver'])
    expect(await refusal('s-eva')).toEqual([409, 'username_taken'])
    sso.configure({ username_claim: 'email' })
    await sso.addUser('tom@example.com', [])
    expect(await refusal('s-tom')).toEqual([403, 'email_unverified'])
    claims({ email: 'tom@example.com', email_verified: true })
    expect(await refusal('s-tom')).toEqual([409, 'username_taken'])
  })

  it('is the name of someone who was deleted only until it is numbered: the next person gets an account of their own', async () => {
    claims({ sub: 's-again', preferred_username: 'again' })
    await sso.browser().signIn('s-mia')
    const first = await userNamed('again')
    const own = eq(users.id, first?.id ?? '')
    await sso.identity_deps.db.update(users).set({ status: 'DISABLED' }).where(own)
    claims({ sub: 's-again-2', preferred_username: 'again' })
    expect(await refusal('s-mia')).toEqual([403, 'subject_changed'])
    await sso.identity_deps.db.update(users).set({ status: 'DELETED' }).where(own)
    const browser = sso.browser()
    expect((await browser.signIn('s-tom')).status).toBe(303)
    const me = await browser.go('/api/v1/users/me', { headers: await bearerOf(browser) })
    expect(me.body).toMatchObject({ username: 'again~2', roles: [] })
    // Whoever was deleted stays out until an administrator removes the identity; then they are new here too.
    claims({ sub: 's-again', preferred_username: 'again' })
    expect(await refusal('s-mia')).toEqual([403, 'account_disabled'])
    await sso.identity_deps.db.delete(external_identities).where(eq(external_identities.subject, 's-again'))
    await sso.identity_deps.db.update(users).set({ status: 'DELETED' }).where(eq(users.username, 'again~2'))
    expect((await sso.browser().signIn('s-tom')).status).toBe(303)
    expect((await userNamed('again~3'))?.status).toBe('ACTIVE')
  })

  it('is the name of someone who was deleted, if the number would make it too long', async () => {
    const preferred_username = 'a'.repeat(128)
    claims({ sub: 's-long', preferred_username })
    expect((await sso.browser().signIn('s-tom')).status).toBe(303)
    await sso.identity_deps.db.update(users).set({ status: 'DELETED' }).where(eq(users.username, preferred_username))
    claims({ sub: 's-long-2', preferred_username })
    expect(await refusal()).toEqual([403, 'username_invalid'])
  })

  it('is another subject under the name of a known person', async () => {
    await sso.browser().signIn('s-mia')
    claims({ sub: 's-mia-2' })
    expect(await refusal('s-mia')).toEqual([403, 'subject_changed'])
  })

  it('is an unverified address, or one of another domain', async () => {
    sso.configure({ allowed_domains: ['example.com'] })
    expect(await refusal('s-tom')).toEqual([403, 'email_unverified'])
    sso.configure({ allowed_domains: ['example.org'] })
    claims({ email_verified: true })
    expect(await refusal('s-tom')).toEqual([403, 'domain_not_allowed'])
  })

  it('is a person whose account is disabled', async () => {
    claims({ sub: 's-dis', preferred_username: 'dis' })
    await sso.browser().signIn('s-tom')
    await sso.identity_deps.db.update(users).set({ status: 'DISABLED' }).where(eq(users.username, 'dis'))
    expect(await refusal('s-tom')).toEqual([403, 'account_disabled'])
  })
})

describe('linking', () => {
  const linked = async (name: string, sub: string) => {
    const browser = sso.browser()
    const signed_in = await browser.go('/v1/token?response_mode=cookie', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ username: name, password: PASSWORD }),
    })
    const headers = {
      ...bearer(String(signed_in.body.access_token)),
      'x-csrf-token': String(signed_in.body.csrf_token),
      'content-type': 'application/json',
    }
    const body = JSON.stringify({ purpose: 'link', return_to: '/settings/sessions' })
    const { body: started } = await browser.go('/v1/sso/corp/start', { method: 'POST', headers, body })
    const url = new URL(String(started.location))
    expect(url.searchParams.get('prompt')).toBe('login')
    return browser.go((await browser.go(`${url.href}&person=${sub}`)).location)
  }

  it('is done by the signed-in person; afterwards the provider signs this account in', async () => {
    const lena = await sso.addUser('lena')
    sso.state.amend = (claims) => ({ ...claims, sub: 's-lena', preferred_username: 'mia' })
    expect(await linked('lena', 's-mia')).toMatchObject({ status: 303, location: '/settings/sessions' })
    const browser = sso.browser()
    await browser.signIn('s-mia')
    expect((await browser.go('/api/v1/users/me', { headers: await bearerOf(browser) })).body.id).toBe(lena.id)
  })

  it('joins two accounts of one person once the second one is unlinked and deleted', async () => {
    const { id } = await sso.addUser('rosa')
    sso.state.amend = (claims) => ({ ...claims, sub: 's-rosa', preferred_username: 'rosa@example.com' })
    await sso.browser().signIn('s-mia')
    const second = (await userNamed('rosa@example.com'))?.id ?? ''
    await sso.addUser('chief', ['admin'])
    const chief = { body: { username: 'chief', password: PASSWORD } }
    const admin = bearer((await send(`${sso.gateway.url}/auth/login`, chief)).body.access_token)
    const command = (method: 'DELETE' | 'POST', path: string, body?: object) =>
      send(`${sso.gateway.url}/api/v1/admin/users/${second}${path}`, {
        ...{ method, headers: { ...admin, 'idempotency-key': randomUUID() } },
        ...(body && { body }),
      })
    const listed = async () => {
      const { body } = await send(`${sso.gateway.url}/api/v1/admin/unlinked-users?page_size=500`, { headers: admin })
      return (body.items as UnlinkedUser[]).find(({ username }) => username === 'rosa')
    }
    const twins = [{ id: second, username: 'rosa@example.com' }]
    expect(await listed()).toMatchObject({ id, emergency: false, enrolled: true, twins })
    expect((await linked('rosa', 's-mia')).body.code).toBe('identity_linked')
    expect((await command('DELETE', '/identities/corp')).status).toBe(204)
    expect((await command('POST', '/delete', { reason: 'joined' })).status).toBeLessThan(300)
    expect((await linked('rosa', 's-mia')).status).toBe(303)
    const browser = sso.browser()
    await browser.signIn('s-mia')
    expect((await browser.go('/api/v1/users/me', { headers: await bearerOf(browser) })).body.id).toBe(id)
    expect(await listed()).toBe(undefined)
  })

  it('adds no second identity of a provider, and none without a fresh sign-in (ASVS 7.5.1)', async () => {
    await sso.addUser('pat')
    sso.state.amend = (claims) => ({ ...claims, sub: 's-pat' })
    expect((await linked('pat', 's-mia')).status).toBe(303)
    sso.state.amend = (claims) => ({ ...claims, sub: 's-pat-2' })
    const before = await countOf()
    expect((await linked('pat', 's-mia')).body.code).toBe('subject_changed')
    expect(await countOf()).toEqual(before)
  })

  it('refuses an identity of another account, and a session that was already open at the provider', async () => {
    await sso.browser().signIn('s-mia')
    await sso.addUser('nils')
    expect((await linked('nils', 's-mia')).body.code).toBe('identity_linked')
    sso.state.amend = (claims) => ({ ...claims, sub: 's-nils', auth_time: 1 })
    const before = await countOf()
    expect((await linked('nils', 's-mia')).body.code).toBe('reauth_failed')
    expect(await countOf()).toEqual(before)
    const rows = (await audited()).filter(({ action }) => action === 'link_identity')
    expect(rows.at(-1)).toMatchObject({ outcome: 'denied', reason: 'reauth_failed' })
  })
})

describe('a test sign-in', () => {
  const admin = async (name: string, roles: ['admin'] | ['operator']) => {
    if (!(await userNamed(name))) await sso.addUser(name, roles)
    return bearer(
      (await send(`${sso.gateway.url}/v1/token`, { body: { username: name, password: PASSWORD } })).body.access_token,
    )
  }
  const tried = async (sub: string) => {
    const browser = sso.browser()
    const back = await browser.signIn(sub, '?purpose=trial')
    expect(back.cookies.join()).not.toContain('refresh')
    return new URL(back.location, ORIGIN)
  }
  const read = async (trial: string | null, headers?: Record<string, string>) =>
    send(`${sso.gateway.url}/api/v1/admin/provider-trials/${trial}`, {
      method: 'GET',
      headers: headers ?? (await admin('trixie', ['admin'])),
    })

  it('shows an administrator whom it would sign in and with which rights, and leaves no trace but audit rows', async () => {
    sso.people.push({
      sub: 's-trial',
      name: 'trudi',
      email: 't@example.com',
      email_verified: true,
      groups: ['staff', 'noc'],
    })
    await admin('trixie', ['admin'])
    const before = await countOf()
    const page = await tried('s-trial')
    expect(page.pathname).toBe('/admin/providers')
    const trial = page.searchParams.get('trial')
    const { status, body } = await read(trial)
    expect({ status, body }).toEqual({
      status: 200,
      body: {
        ...{ provider: 'corp', outcome: 'created', account: 'trudi', groups: ['netops'], roles: ['approver'] },
        claims: expect.objectContaining({
          subject: 's-trial',
          username: 'trudi',
          groups: ['staff', 'noc'],
          methods: [],
        }),
        ...{ second_factor: false, refusal: null },
      },
    })
    expect(await countOf()).toEqual(before)
    expect(await userNamed('trudi')).toBeUndefined()
    expect((await read(trial, await admin('oskar', ['operator']))).status).toBe(403)
    expect((await read('unknown')).status).toBe(404)
    await until(async () =>
      (await audited()).some(({ action, outcome }) => action === 'provider_trial' && outcome === 'done'),
    )
    // A known person: rights that follow at the next sign-in are shown, and not given.
    expect((await sso.browser().signIn('s-trial')).location).toBe('/inbox')
    sso.configure({ groups: { claim: 'groups', map: { noc: { groups: ['netops'], roles: ['approver', 'viewer'] } } } })
    const known = (await read((await tried('s-trial')).searchParams.get('trial'))).body
    expect(known).toMatchObject({
      outcome: 'known',
      account: 'trudi',
      groups: ['netops'],
      roles: ['approver', 'viewer'],
    })
    const id = (await userNamed('trudi'))?.id ?? ''
    const held = await sso.identity_deps.db.select().from(grants).where(eq(grants.subject_id, id))
    expect(held.map(({ role }) => role)).toEqual(['approver'])
  })

  it('shows why it would be refused, with the claims if they could be read', async () => {
    const refusal = async (sub: string) => (await read((await tried(sub)).searchParams.get('trial'))).body
    expect(await refusal('s-out')).toMatchObject({
      outcome: 'refused',
      claims: { username: 'otto', groups: [] },
      refusal: { code: 'no_account', detail: 'You have no account here yet.' },
    })
    sso.configure({ require_amr: ['mfa'] })
    expect(await refusal('s-out')).toMatchObject({
      claims: { methods: [] },
      refusal: { code: 'provider_factor_missing' },
    })
    sso.state.amend = (claims) => ({ ...claims, aud: 'other' })
    expect(await refusal('s-out')).toMatchObject({ claims: null, refusal: { code: 'id_token_audience' } })
  })

  it('shows no time of the sign-in if the provider states none that exists, such as one in microseconds', async () => {
    sso.state.amend = (claims) => ({ ...claims, auth_time: Date.now() * 1000 * 1000 })
    const { body } = await read((await tried('s-mia')).searchParams.get('trial'))
    expect(body).toMatchObject({ outcome: 'known', claims: { subject: 's-mia', auth_time: null } })
  })
})

describe('unlinking an identity', () => {
  const keyed = (headers: object) => ({ ...headers, 'idempotency-key': randomUUID() })
  type Person = Awaited<ReturnType<typeof signedIn>>
  const unlink = async ({ browser, headers }: Person) =>
    browser.go('/api/v1/users/me/identities/corp', { method: 'DELETE', headers: keyed(headers) })

  it('is refused for the only way in, and without a fresh sign-in', async () => {
    const mia = await signedIn('s-mia')
    const listed = await mia.browser.go('/api/v1/users/me/identities', { headers: mia.headers })
    expect(listed.body.items).toMatchObject([{ provider: 'corp', subject: 's-mia' }])
    const before = await countOf()
    expect(await unlink(mia)).toMatchObject({ status: 409, body: { code: 'last_way_in' } })
    sso.state.amend = ({ auth_time: _, ...claims }) => claims
    expect((await unlink(await signedIn('s-mia'))).body.code).toBe('reauth_required')
    expect(await countOf()).toEqual(before)
  })

  it('keeps one of two providers, and none that is no longer in the file', async () => {
    sso.state.amend = (claims) => ({ ...claims, sub: 's-two', preferred_username: 'two' })
    const two = await signedIn('s-mia')
    const user_id = (await userNamed('two'))?.id ?? ''
    await sso.identity_deps.db.insert(external_identities).values({ provider: 'gone', subject: 'x', user_id })
    expect((await unlink(two)).body.code).toBe('last_way_in')
    const list = vi.spyOn(sso.identity_deps.providers, 'get').mockImplementation((id) => ({ id }) as never)
    const other = '/api/v1/users/me/identities/gone'
    const last = () => two.browser.go(other, { method: 'DELETE', headers: keyed(two.headers) })
    try {
      expect((await unlink(two)).status).toBe(204)
      expect((await last()).body.code).toBe('last_way_in')
    } finally {
      list.mockRestore()
    }
  })

  it("removes the provider's rights, ends the other sessions, and notifies the person; the account stays", async () => {
    const tess = await sso.addUser('tess')
    await sso.identity_deps.db
      .insert(external_identities)
      .values({ ...{ provider: 'corp', subject: 's-tess' }, user_id: tess.id })
    sso.state.amend = (claims) => ({ ...claims, sub: 's-tess' })
    const [one, other] = [await signedIn('s-mia'), await signedIn('s-mia')]
    expect(await rightsOf('tess')).toEqual({ groups: ['netops'], roles: ['approver'] })
    expect((await unlink(one)).status).toBe(204)
    expect(await rightsOf('tess')).toEqual({ groups: [], roles: [] })
    expect((await one.browser.go('/api/v1/users/me', { headers: one.headers })).body.id).toBe(tess.id)
    expect((await other.browser.go('/api/v1/users/me', { headers: other.headers })).status).toBe(401)
    expect((await unlink(one)).status).toBe(404)
    const rows = await sso.identity_deps.db.select().from(user_events)
    const own = rows.filter(({ object }) => object === `user:${tess.id}`).map(({ action }) => action)
    expect(own).toEqual(expect.arrayContaining(['user.identity_unlinked', 'user.provider_rights']))
    sso.state.amend = (claims) => ({ ...claims, sub: 's-tess', preferred_username: 'tess' })
    const again = await sso.browser().signIn('s-mia')
    expect(again.body.code).toBe('username_taken')
  })

  const challengeOf = async ({ browser }: Person) => {
    const asked = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' }
    return String((await browser.go('/v1/token/passkey-options', asked)).body.challenge)
  }
  const addKey = async (person: Person) => {
    const { browser, headers } = person
    const { id } = (await browser.go('/api/v1/users/me', { headers })).body as { id: string }
    const key = createAuthenticator({ origin: ORIGIN, rp_id: new URL(ORIGIN).hostname })
    const body = JSON.stringify({ name: 'mine', attestation: key.attest(await challengeOf(person), id) })
    const made = await browser.go('/api/v1/users/me/passkeys', { method: 'POST', headers: keyed(headers), body })
    expect(made.status).toBe(201)
    return { id: String(made.body.id), key }
  }

  it('does not free its passkey: a sign-in by it rests on the last one there, ends with it and by the logout there', async () => {
    sso.state.amend = (claims) => ({ ...claims, sub: 's-lea', preferred_username: 'lea' })
    const lea = await signedIn('s-mia')
    const { key } = await addKey(lea)
    const answer = async () => ({ assertion: key.assert(await challengeOf(lea)) })
    const signIn = async () =>
      send(`${sso.gateway.url}/v1/token`, { body: { grant_type: 'passkey', ...(await answer()) } })
    const { db } = sso.identity_deps
    const proved = (seconds: number) => {
      const proved_at = new Date(Date.now() - seconds * 1000).toISOString()
      return db.update(external_identities).set({ proved_at }).where(eq(external_identities.subject, 's-lea'))
    }
    const refresh = (refresh_token: unknown) =>
      send(`${sso.gateway.url}/v1/token`, { body: { grant_type: 'refresh_token', refresh_token } })

    // Also while the provider is away.
    await proved(43_190)
    const short = await signIn()
    expect(short.status).toBe(200)
    const listed = await send(`${sso.gateway.url}/api/v1/sessions`, { headers: bearer(short.body.access_token) })
    const own = (listed.body.items as Record<string, string>[]).find(({ current }) => current)
    expect(Date.parse(own?.expires_at ?? '') - Date.parse(own?.created_at ?? '')).toBeLessThanOrEqual(10_000)

    await proved(0)
    const open = await signIn()
    const whose = { iss: sso.provider.issuer, aud: sso.provider.client_id, sub: 's-lea' }
    const events = { 'http://schemas.openid.net/event/backchannel-logout': {} }
    const claims = { ...whose, events, iat: Math.floor(Date.now() / 1000), jti: randomUUID() }
    const logout_token = await sso.provider.sign(claims, { typ: 'logout+jwt' })
    expect((await send(`${sso.gateway.url}/v1/sso/corp/backchannel-logout`, { body: { logout_token } })).status).toBe(
      200,
    )
    expect((await refresh(open.body.refresh_token)).status).toBe(401)

    // session reads the file before identity does.
    const read = vi.spyOn(sso.session.deps.providers, 'get').mockReturnValue(undefined)
    expect((await signIn()).body).toMatchObject({ code: 'provider_required' })
    read.mockRestore()

    await proved(43_200)
    const refused = { status: 403, body: { category: 'policy_denied', code: 'provider_required' } }
    for (const [change, title] of [
      [{}, 'Example Corp'],
      [{ scim: { machine: 'machine:dir' } }, 'Example Corp'],
      [{ enabled: false }, 'corp'],
    ] as const) {
      sso.configure(change)
      const done = await signIn()
      expect(done).toMatchObject(refused)
      expect(done.body.hint).toContain(title)
    }
    const logged = (await audited()).filter(({ action }) => action === 'login').at(-1)
    expect(logged).toMatchObject({ outcome: 'denied', reason: 'provider_required' })
    sso.configure()
    // A sign-in in the second of the logout may have come before it.
    await until(async () => Date.now() / 1000 > claims.iat + 1)
    const again = await signedIn('s-mia')
    expect((await signIn()).status).toBe(200)
    await proved(43_200)
    expect(await unlink(again)).toMatchObject({ status: 409, body: { code: 'last_way_in' } })
    // Nor if the whole provider is gone.
    vi.spyOn(sso.identity_deps.providers, 'get').mockReturnValue(undefined)
    try {
      expect(await unlink(again)).toMatchObject({ status: 409, body: { code: 'last_way_in' } })
      expect(await signIn()).toMatchObject(refused)
    } finally {
      vi.restoreAllMocks()
    }
    expect((await signIn()).body.code).toBe('provider_required')
  })

  it('leaves the last passkey of an account without another way in, even if they are removed at once', async () => {
    sso.state.amend = (claims) => ({ ...claims, sub: 's-pia', preferred_username: 'pia' })
    const pia = await signedIn('s-mia')
    const keys = [await addKey(pia), await addKey(pia), await addKey(pia)].map(({ id }) => id)
    await sso.identity_deps.db.delete(external_identities).where(eq(external_identities.subject, 's-pia'))
    const remove = (key = '') =>
      pia.browser.go(`/api/v1/users/me/passkeys/${key}`, { method: 'DELETE', headers: keyed(pia.headers) })
    expect((await remove(keys[0])).status).toBe(204)
    const both = await Promise.all([remove(keys[1]), remove(keys[2])])
    expect(both.map(({ status, body }) => [status, body.code]).sort()).toEqual([
      [204, undefined],
      [409, 'last_way_in'],
    ])
    expect((await remove(randomUUID())).status).toBe(404)
  })

  it('by an administrator ends every session and passkey at once, and the account may get a password', async () => {
    sso.state.amend = (claims) => ({ ...claims, sub: 's-ula', preferred_username: 'ula' })
    const ula = await signedIn('s-mia')
    const { key } = await addKey(ula)
    const id = String((await ula.browser.go('/api/v1/users/me', { headers: ula.headers })).body.id)
    const path = `/api/v1/admin/users/${id}/identities`
    expect((await unlinkBy(ula.headers, `${path}/corp`)).status).toBe(403)
    const admin = await administrator()
    expect((await send(`${sso.gateway.url}${path}`, { headers: admin })).body.items).toHaveLength(1)
    expect((await unlinkBy(admin, `${path}/corp`)).status).toBe(204)
    expect((await ula.browser.go('/api/v1/users/me', { headers: ula.headers })).status).toBe(401)
    expect((await unlinkBy(admin, `${path}/corp`)).status).toBe(404)
    expect((await userNamed('ula'))?.provider).toBe(null)
    const assertion = key.assert(await challengeOf(ula))
    const late = await send(`${sso.gateway.url}/v1/token`, { body: { grant_type: 'passkey', assertion } })
    expect(late).toMatchObject({ status: 403, body: { code: 'assertion_invalid' } })
  })

  it('ends the sessions by the relay if session could not: of the person, or all but their own', async () => {
    const byRelay = async (ended: () => Promise<boolean>) => {
      const relay = await sso.addRelay()
      await until(ended).finally(() => relay.stop())
    }
    const lost = vi.spyOn(sso.session.deps.store, 'revokeUser')
    const meOf = async ({ browser, headers }: Person) => (await browser.go('/api/v1/users/me', { headers })).status
    try {
      sso.state.amend = (claims) => ({ ...claims, sub: 's-ida', preferred_username: 'ida' })
      const ida = await signedIn('s-mia')
      const id = String((await ida.browser.go('/api/v1/users/me', { headers: ida.headers })).body.id)
      const admin = await administrator()
      lost.mockRejectedValueOnce(unavailable('Redis is away.', undefined, 'unavailable'))
      expect((await unlinkBy(admin, `/api/v1/admin/users/${id}/identities/corp`)).status).toBe(503)
      await byRelay(async () => (await meOf(ida)) === 401)

      const jon = await sso.addUser('jon')
      const { db } = sso.identity_deps
      await db.insert(external_identities).values({ provider: 'corp', subject: 's-jon', user_id: jon.id })
      sso.state.amend = (claims) => ({ ...claims, sub: 's-jon' })
      const [one, other] = [await signedIn('s-mia'), await signedIn('s-mia')]
      lost.mockRejectedValueOnce(unavailable('Redis is away.', undefined, 'unavailable'))
      expect((await unlink(one)).status).toBe(503)
      await byRelay(async () => (await meOf(other)) === 401)
      expect(await meOf(one)).toBe(200)
    } finally {
      lost.mockRestore()
    }
  })

  it('has the relay end no session if it is not told which one stays, as by a session of an earlier build', async () => {
    const { id } = await sso.addUser('kim')
    const { db } = sso.identity_deps
    await db.insert(external_identities).values({ provider: 'corp', subject: 's-kim', user_id: id })
    const given = { userId: id, providerId: 'corp', by: id, hasPassword: true, keepSessionId: '' }
    expect(await unlinkExternal(sso.identity_deps, given as never, 'test')).toEqual({ removed: true })
    const told = (await db.select().from(outbox)).filter(({ type }) => type === 'auth.user.identity_unlinked.v1')
    expect(told.filter(({ payload }) => (payload as { user_id: string }).user_id === id)).toEqual([])
  })

  it('wins over a sign-in that the provider has already answered', async () => {
    const nova = await signedIn('s-new')
    const user = await userNamed('nova')
    const code = {
      user_id: user?.id ?? '',
      username: 'nova',
      provider_id: 'corp',
      max_s: 60,
      auth_time: 1,
      proved_at: 1,
      indexes: [],
    }
    expect((await unlinkBy(await administrator(), `/api/v1/admin/users/${user?.id}/identities/corp`)).status).toBe(204)
    const client = describeClient(undefined, undefined)
    const request = { client, request_id: 'test', device_token: undefined }
    const opened = await openFederated(sso.session.deps, code, 'json', request)
    expect(opened).toBe(undefined)
    expect((await nova.browser.go('/api/v1/users/me', { headers: nova.headers })).status).toBe(401)
    expect(await sso.session.deps.store.list(code.user_id)).toEqual([])
  })

  const unlinkBy = (headers: object, path: string) =>
    send(`${sso.gateway.url}${path}`, { method: 'DELETE', headers: keyed(headers) as Record<string, string> })
  const administrator = async () => {
    if (!(await userNamed('boss'))) await sso.addUser('boss', ['admin'])
    const signed = await send(`${sso.gateway.url}/auth/login`, { body: { username: 'boss', password: PASSWORD } })
    return bearer(signed.body.access_token)
  }
})

describe('a confirmation through the provider', () => {
  const confirm = async (sub: string, auth_time?: number) => {
    sso.state.amend = (claims) => ({ ...claims, auth_time: 1 })
    const browser = sso.browser()
    await browser.signIn('s-mia')
    sso.state.amend = (claims) => (auth_time === undefined ? claims : { ...claims, auth_time })
    const headers = { ...(await bearerOf(browser)), 'content-type': 'application/json' }
    const body = JSON.stringify({ purpose: 'reauth', return_to: '/inbox' })
    const { body: started } = await browser.go('/v1/sso/corp/start', { method: 'POST', headers, body })
    const done = await browser.go((await browser.go(`${started.location}&person=${sub}`)).location)
    const me = await browser.go('/api/v1/users/me', { headers: await bearerOf(browser) })
    return { done, auth_time: (me.body.session as { auth_time: number }).auth_time }
  }

  it('counts from when the person typed, however late the browser returns', async () => {
    sso.state.amend = (claims) => ({ ...claims, auth_time: 1 })
    const browser = sso.browser()
    await browser.signIn('s-mia')
    const headers = { ...(await bearerOf(browser)), 'content-type': 'application/json' }
    const body = JSON.stringify({ purpose: 'reauth' })
    const { body: started } = await browser.go('/v1/sso/corp/start', { method: 'POST', headers, body })
    const state = new URL(String(started.location)).searchParams.get('state') ?? ''
    const key = `${sso.prefix}oidc:${sha256Hex(state)}`
    const began = Math.floor(Date.now() / 1000) - 500
    await sso.redis.set(key, JSON.stringify({ ...JSON.parse((await sso.redis.get(key)) ?? ''), started_s: began }))
    sso.state.amend = (claims) => ({ ...claims, auth_time: began + 10 })
    expect((await browser.go((await browser.go(`${started.location}&person=s-mia`)).location)).status).toBe(303)
    const me = await browser.go('/api/v1/users/me', { headers: await bearerOf(browser) })
    expect((me.body.session as { auth_time: number }).auth_time).toBe(began + 10)
    // A proof that arrives after a newer one leaves that in place.
    const { id } = me.body as { id: string }
    const { session_id = '' } = (await sso.session.deps.store.list(id))[0] ?? {}
    await sso.session.deps.store.touchAuthTime({ user_id: id, session_id }, began)
    expect((await sso.session.deps.store.get(id, session_id))?.auth_time).toBe(began + 10)
  })

  it('makes the sign-in fresh only for the same person (ASVS 6.8.4)', async () => {
    const { done, auth_time } = await confirm('s-mia')
    expect(done).toMatchObject({ status: 303, location: '/inbox' })
    expect(auth_time).toBeGreaterThan(Date.now() / 1000 - 60)
    const before = await countOf()
    for (const sub of ['s-tom', 's-new']) {
      const other = await confirm(sub)
      expect(other.done.body.code).toBe('subject_changed')
      expect(other.auth_time).toBe(1)
    }
    const open = await confirm('s-mia', Math.floor(Date.now() / 1000) - 300)
    expect([open.done.body.code, open.auth_time]).toEqual(['reauth_failed', 1])
    // A confirmation creates no account, even where a sign-in would.
    expect(await countOf()).toEqual(before)
  })
})

describe('a logout at the provider', () => {
  const EVENTS = { 'http://schemas.openid.net/event/backchannel-logout': {} }
  const token = (claims: { [name: string]: unknown }) => {
    // A sign-in of the same second would count as older.
    const iat = Math.floor(Date.now() / 1000) - 1
    const made = { iss: sso.provider.issuer, aud: 'signalbox', iat, jti: randomUUID(), events: EVENTS, ...claims }
    return sso.provider.sign(made, { typ: 'logout+jwt' })
  }
  const tell = async (logout_token: string) =>
    sso
      .browser()
      .go('/v1/sso/corp/backchannel-logout', {
        method: 'POST',
        body: new URLSearchParams({ logout_token, extra: 'x' }),
      })
  const signedIn = async (sub: string) => {
    const browser = sso.browser()
    await browser.signIn(sub)
    const headers = await bearerOf(browser)
    return { alive: async () => (await browser.go('/api/v1/users/me', { headers })).status === 200 }
  }

  it('ends the session of its sid, or all of a person, and no other (ASVS 7.1.3, 7.6.1)', async () => {
    const [mia, tom] = [await signedIn('s-mia'), await signedIn('s-tom')]
    expect(await tell(await token({ sid: 'sid-s-mia', sub: 's-mia' }))).toMatchObject({ status: 200, body: {} })
    expect([await mia.alive(), await tom.alive()]).toEqual([false, true])
    const again = await signedIn('s-tom')
    expect((await tell(await token({ sub: 's-tom' }))).status).toBe(200)
    expect([await tom.alive(), await again.alive()]).toEqual([false, false])
    const revoked = await sso.redis.xrevrange(`${sso.prefix}auth:revoked`, '+', '-', 'COUNT', 1)
    expect(revoked[0]?.[1].join()).toContain('reason,logout')
  })

  it('ends a session that was opened without a sid by the subject, and no session of another sid', async () => {
    sso.state.amend = ({ sid: _, ...claims }) => claims
    const without = await signedIn('s-mia')
    sso.state.amend = (claims) => claims
    const other = await signedIn('s-mia')
    expect((await tell(await token({ sid: 'a-third', sub: 's-mia' }))).status).toBe(200)
    expect([await without.alive(), await other.alive()]).toEqual([false, true])
  })

  it('counts when it comes again after the process died that ended the sessions', async () => {
    const mia = await signedIn('s-mia')
    const told = await token({ sub: 's-mia', jti: 'died' })
    const key = `${sso.prefix}ojti:${sha256Hex('corp died')}`
    await sso.session.deps.flows.once('corp died', 1)
    expect((await tell(told)).status).toBe(400)
    await expect.poll(() => sso.redis.exists(key), { timeout: 5000 }).toBe(0)
    expect((await tell(told)).status).toBe(200)
    expect(await mia.alive()).toBe(false)
    expect(await sso.redis.ttl(key)).toBeGreaterThan(500)
  })

  it('finds the sessions that still live, however many there were', async () => {
    const members = () => sso.redis.smembers(`${sso.prefix}osid:${indexOf('corp', 'sub', 's-eva')}`)
    sso.configure({ username_claim: 'sub' })
    for (let round = 0; round < 3; round++) {
      await signedIn('s-eva')
      expect(await members()).toHaveLength(1)
      await tell(await token({ sub: 's-eva' }))
      expect(await members()).toEqual([])
    }
    await signedIn('s-eva')
    for (const key of await sso.redis.keys(`${sso.prefix}sess:*`))
      if (await sso.redis.hget(key, 'indexes')) await sso.redis.del(key)
    await signedIn('s-eva')
    expect(await members()).toHaveLength(1)
  })

  it('voids no fewer sign-ins if an earlier one arrives after it', async () => {
    const now = Math.floor(Date.now() / 1000)
    for (const iat of [now - 1, now - 60]) expect((await tell(await token({ sub: 's-late', iat }))).status).toBe(200)
    expect(await sso.redis.get(`${sso.prefix}oend:${indexOf('corp', 'sub', 's-late')}`)).toBe(String(now - 1))
  })

  it('counts once (ASVS 10.5.5)', async () => {
    const once = await token({ sub: 's-mia' })
    const told = await Promise.all([1, 2, 3].map(() => tell(once)))
    expect(told.map(({ status }) => status).sort()).toEqual([200, 400, 400])
    const mia = await signedIn('s-mia')
    expect(await tell(once)).toMatchObject({ status: 400, body: { code: 'logout_token_replayed' } })
    expect(await mia.alive()).toBe(true)
    expect((await audited()).findLast(({ action }) => action === 'provider_logout')).toMatchObject({
      outcome: 'denied',
      reason: 'logout_token_replayed',
    })
  })

  it('of another provider ends no session of the same subject here', async () => {
    const mia = await signedIn('s-mia')
    const { providers } = sso.session.deps
    const corp = providers.get('corp')
    // A file names no issuer twice.
    const both = vi.spyOn(providers, 'get').mockImplementation((id) => corp && { ...corp, id })
    const body = { logout_token: await token({ sub: 's-mia', sid: 'sid-s-mia' }) }
    expect((await send(`${sso.gateway.url}/v1/sso/other/backchannel-logout`, { body })).status).toBe(200)
    both.mockRestore()
    expect(await mia.alive()).toBe(true)
  })

  it('is not held up by the limits on people and machines of the same address', async () => {
    const names = ['REFRESH_IP', 'SSO_IP', 'MACHINE'].map((name) => [`GATEWAY__LIMITS__${name}`, '1/600/1'])
    const narrow = await sso.addGateway(Object.fromEntries(names))
    const mia = await signedIn('s-mia')
    for (const sub of ['s-eva', 's-tom', 's-mia']) {
      const body = { logout_token: await token({ sub }) }
      expect((await send(`${narrow.url}/v1/sso/corp/backchannel-logout`, { body })).status).toBe(200)
    }
    expect(await mia.alive()).toBe(false)
    const route = ROUTES.find(({ path }) => path.endsWith('/backchannel-logout'))
    expect(route?.priority).toBe('stop')
  })

  it('also ends a sign-in that an app has yet to complete', async () => {
    const code_verifier = randomBytes(32).toString('base64url')
    const code_challenge = createHash('sha256').update(code_verifier).digest('base64url')
    const redirect_uri = 'http://127.0.0.1:7777/callback'
    const query = new URLSearchParams({ redirect_uri, code_challenge, state: 's'.repeat(22) })
    const codeNow = async () => {
      const back = new URL((await sso.browser().signIn('s-tom', `?${query}`)).location)
      return { grant_type: 'authorization_code', code: back.searchParams.get('code'), code_verifier, redirect_uri }
    }
    for (const named of [{ sub: 's-tom' }, { sid: 'sid-s-tom' }]) {
      const body = await codeNow()
      expect((await tell(await token({ ...named, iat: Math.floor(Date.now() / 1000) }))).status).toBe(200)
      expect((await send(`${sso.gateway.url}/v1/token`, { body })).body.code).toBe('invalid_grant')
    }
    // The provider signed them in again.
    sso.state.amend = (claims) => ({ ...claims, iat: Number(claims.iat) + 2 })
    expect((await send(`${sso.gateway.url}/v1/token`, { body: await codeNow() })).status).toBe(200)
  })

  it('is refused if it is forged, foreign, old or not a logout token (ASVS 10.5.5)', async () => {
    const mia = await signedIn('s-mia')
    const { privateKey } = await generateKeyPair('RS256')
    const iat = Math.floor(Date.now() / 1000)
    const claims = { iss: sso.provider.issuer, aud: 'signalbox', iat, jti: 'x', sub: 's-mia', events: EVENTS }
    const forged = await new SignJWT(claims).setProtectedHeader({ alg: 'RS256', kid: 'demo' }).sign(privateKey)
    const unsigned = `${Buffer.from('{"alg":"none"}').toString('base64url')}.${forged.split('.')[1]}.`
    const others = [
      { iss: 'https://evil.test' },
      { aud: 'other' },
      { iat: iat - 600 },
      { events: {} },
      { events: undefined },
      { nonce: 'n' },
      { jti: undefined },
      { sub: undefined },
      { exp: iat - 60 },
      { iat: undefined },
    ]
    const untyped = await sso.provider.sign(claims)
    const id_token = await sso.provider.sign(claims, { typ: 'JWT' })
    const made = await Promise.all(others.map((other) => token({ sub: 's-mia', ...other })))
    for (const refused of [forged, unsigned, 'garbage', untyped, id_token, ...made])
      expect(await tell(refused)).toMatchObject({ status: 400, body: { code: 'logout_token_invalid' } })
    expect(await mia.alive()).toBe(true)
  })
})

describe('an app outside the browser', () => {
  const REDIRECT = 'http://127.0.0.1:7777/callback'
  const verifier = randomBytes(32).toString('base64url')
  const start = async (redirect_uri = REDIRECT) => {
    const digest = await crypto.subtle.digest('SHA-256', Buffer.from(verifier))
    const code_challenge = Buffer.from(digest).toString('base64url')
    const state = randomBytes(16).toString('base64url')
    return `?${new URLSearchParams({ redirect_uri, code_challenge, state })}`
  }
  const redeem = (code: string, more = {}) =>
    send(`${sso.gateway.url}/v1/token`, {
      body: { grant_type: 'authorization_code', code, code_verifier: verifier, redirect_uri: REDIRECT, ...more },
    })
  const codeOf = async () => {
    const done = await sso.browser().signIn('s-mia', await start())
    const url = new URL(done.location)
    expect(url.href.startsWith(`${REDIRECT}?code=`)).toBe(true)
    expect(done.cookies).toEqual([])
    return url.searchParams.get('code') ?? ''
  }

  it('gets its tokens for a code of one minute and the verifier; a second use ends the session (ASVS 6.5.1, 10.4.2, 10.4.3)', async () => {
    const code = await codeOf()
    const key = `${sso.prefix}ocode:${createHash('sha256').update(code).digest('hex')}`
    expect(await sso.redis.ttl(key)).toSatisfy((seconds: number) => seconds > 0 && seconds <= 60)
    const reply = await redeem(code)
    expect(reply).toMatchObject({ status: 200, body: { token_type: 'Bearer', refresh_token: expect.any(String) } })
    const me = () => send(`${sso.gateway.url}/api/v1/users/me`, { headers: bearer(String(reply.body.access_token)) })
    expect((await me()).body.username).toBe('mia')
    expect((await redeem(code)).body.code).toBe('invalid_grant')
    expect((await me()).status).toBe(401)
  })

  it('is known by the device token that it got, if it asked for one', async () => {
    const deviceAfter = async (more: object) => {
      const { body } = await redeem(await codeOf(), more)
      const row = (await audited()).findLast(({ action, outcome }) => action === 'login' && outcome === 'done')
      return [body.device_token, JSON.parse(row?.body ?? '').details.device]
    }
    expect(await deviceAfter({})).toEqual([undefined, 'new'])
    const [device_token] = await deviceAfter({ remember_device: true })
    expect(await deviceAfter({ device_token })).toEqual([expect.stringMatching(/^d1\./), 'known'])
  })

  it('signs a person in who typed their credentials at the provider for it, and for no longer than it allows (ASVS 7.3.2, 7.6.1, 10.7.1)', async () => {
    const started = new URL((await sso.browser().go(`/v1/sso/corp/start${await start()}`)).location)
    expect([started.searchParams.get('prompt'), started.searchParams.get('max_age')]).toEqual(['login', '0'])
    sso.state.amend = (claims) => ({ ...claims, auth_time: Math.floor(Date.now() / 1000) - 300 })
    const done = new URL((await sso.browser().signIn('s-mia', await start())).location)
    expect([done.searchParams.get('error'), done.searchParams.get('code')]).toEqual(['reauth_failed', null])
    sso.state.amend = (claims) => claims
    sso.configure({ session_max_s: 3600 })
    const browser = sso.browser()
    await browser.signIn('s-mia')
    const { access_token } = (await redeem(await codeOf())).body
    for (const headers of [await bearerOf(browser), bearer(access_token)]) {
      const { items } = (await send(`${sso.gateway.url}/api/v1/sessions`, { headers })).body
      const own = (items as Record<string, string>[]).find(({ current }) => current)
      expect(Date.parse(own?.expires_at ?? '') - Date.parse(own?.created_at ?? '')).toBe(3_600_000)
    }
  })

  it('gets none for a code from before all sessions of its person ended, or all but theirs; one from after counts', async () => {
    await sso.addUser('ends', ['admin'])
    const signIn = { username: 'ends', password: PASSWORD }
    const { access_token } = (await send(`${sso.gateway.url}/v1/token`, { body: signIn })).body
    const theirs = sso.browser()
    await theirs.signIn('s-mia')
    const { id = '' } = (await userNamed('mia')) ?? {}
    const keyed = (headers: Record<string, string>) => ({ ...headers, 'idempotency-key': randomUUID() })
    const relay = createRpcClient(Session, {
      url: sso.session.rpc_url,
      signer: sso.services.signer('relay'),
      audience: 'session-internal',
    })
    const ends = {
      theirs: async () => {
        const headers = keyed({ ...(await bearerOf(theirs)), origin: ORIGIN })
        const others = `${sso.gateway.url}/api/v1/sessions/revoke-others`
        expect((await send(others, { body: {}, headers })).status).toBe(200)
      },
      admin: async () => {
        const all = `${sso.gateway.url}/api/v1/admin/users/${id}/sessions`
        expect((await send(all, { method: 'DELETE', headers: keyed(bearer(access_token)) })).status).toBe(204)
      },
      // The account was disabled, and enabled again before the message came.
      disabled: () => relay.revokeUserSessions({ userId: id, reason: 'user_disabled', occurredAt: timestampNow() }),
      password: () => relay.revokeUserSessions({ userId: id, reason: 'password_changed', passwordVersion: 1 }),
    }
    for (const [by, end] of Object.entries(ends)) {
      const code = await codeOf()
      await end()
      expect([by, await redeem(code)]).toMatchObject([by, { status: 401, body: { code: 'invalid_grant' } }])
      expect([by, (await redeem(await codeOf())).status]).toEqual([by, 200])
    }
    // An earlier build notes no time.
    const code = await codeOf()
    const key = `${sso.prefix}ocode:${createHash('sha256').update(code).digest('hex')}`
    const { begun_at: _, ...offer } = JSON.parse((await sso.redis.get(key)) ?? '')
    await sso.redis.set(key, JSON.stringify(offer), 'KEEPTTL')
    await ends.admin()
    expect((await redeem(code)).status).toBe(200)
  })

  it('keeps no session if its code is used twice at the same moment (ASVS 10.4.2)', async () => {
    for (let round = 0; round < 8; round++) {
      const code = await codeOf()
      const answers = await Promise.all(Array.from({ length: 3 }, () => redeem(code)))
      expect(answers.filter(({ status }) => status === 200).length).toBeLessThanOrEqual(1)
      for (const { status, body } of answers) {
        if (status !== 200) expect(body.code).toBe('invalid_grant')
        else
          expect(
            (await send(`${sso.gateway.url}/api/v1/users/me`, { headers: bearer(body.access_token) })).status,
          ).toBe(401)
      }
    }
  })

  it('gets none with another verifier or address, and the code is gone (ASVS 10.4.6)', async () => {
    // The method "plain" would take the challenge as its own verifier.
    const plain = createHash('sha256').update(verifier).digest('base64url')
    for (const wrong of [
      { code_verifier: 'x'.repeat(43) },
      { code_verifier: plain },
      { redirect_uri: 'http://127.0.0.1:7778/callback' },
    ]) {
      const code = await codeOf()
      expect((await redeem(code, wrong)).body.code).toBe('invalid_grant')
      expect((await audited()).at(-1)).toMatchObject({ action: 'login', outcome: 'denied', reason: 'invalid_grant' })
      expect((await redeem(code)).body.code).toBe('invalid_grant')
    }
  })

  it('learns of a refusal, and starts only at an address of one of our apps (ASVS 10.4.1, 10.4.6)', async () => {
    const done = await sso.browser().signIn('s-out', await start())
    expect(new URL(done.location).searchParams.get('error')).toBe('no_account')
    const elsewhere = ['http://localhost:7777/callback', 'http://127.0.0.1:7777/x', 'https://evil.test/callback']
    const odd = [
      'http://127.0.0.1:65536/callback',
      'http://127.0.0.1:7777/callback?x',
      'http://x@127.0.0.1:7777/callback',
    ]
    for (const uri of [...elsewhere, ...odd])
      expect((await sso.browser().go(`/v1/sso/corp/start${await start(uri)}`)).body.code).toBe('schema_violation')
    expect((await sso.browser().go(`/v1/sso/corp/start?redirect_uri=${REDIRECT}`)).body.code).toBe('schema_violation')
    const plain = `/v1/sso/corp/start${await start()}&code_challenge_method=plain`
    expect((await sso.browser().go(plain)).body.code).toBe('schema_violation')
  })

  it('of an https address starts only at exactly that address (ASVS 10.4.1)', async () => {
    const app = 'https://app.example.com/callback'
    const session = await sso.addSession({ SESSION__SSO__REDIRECT_URIS: JSON.stringify([app]) })
    const startAt = async (uri: string) => {
      const reply = await fetch(`${session.url}/v1/sso/corp/start${await start(uri)}`, { redirect: 'manual' })
      return reply.status
    }
    expect(await startAt(app)).toBe(303)
    for (const uri of [
      `${app}/`,
      `${app}/../x`,
      `${app}?x`,
      'https://app.example.com/CALLBACK',
      'https://app.example.com',
    ])
      expect([uri, await startAt(uri)]).toEqual([uri, 400])
  })
})

describe('an account created by a provider', () => {
  it('has no password, and gets no link to set one', async () => {
    await sso.browser().signIn('s-mia')
    await sso.addUser('ada', ['admin'])
    const ada = await send(`${sso.gateway.url}/auth/login`, { body: { username: 'ada', password: PASSWORD } })
    const { id } = (await userNamed('mia')) ?? {}
    const reset = await send(`${sso.gateway.url}/api/v1/admin/users/${id}/enrolment-token`, {
      method: 'POST',
      headers: { ...bearer(String(ada.body.access_token)), 'idempotency-key': randomUUID() },
    })
    expect(reset).toMatchObject({ status: 409, body: { code: 'provider_account' } })
    const guess = await send(`${sso.gateway.url}/auth/login`, { body: { username: 'mia', password: PASSWORD } })
    expect(guess.body.code).toBe('invalid_credentials')
  })
})

describe('a provider that refuses this installation', () => {
  const file = () => join(dirname(sso.file), 'secrets/corp')
  afterEach(() => writeFileSync(file(), sso.provider.client_secret))

  it('is told from one that is away, and a renewed secret counts at once', async () => {
    writeFileSync(file(), 'expired')
    const refused = await sso.browser().signIn('s-mia')
    expect([refused.status, refused.body.code]).toEqual([503, 'provider_refuses_client'])
    writeFileSync(file(), sso.provider.client_secret)
    expect((await sso.browser().signIn('s-mia')).status).toBe(303)
  })

  it('is told so too if it takes the secret in the header', async () => {
    const proxy = createServer(async (req, res) => {
      const own = `http://localhost:${(proxy.address() as AddressInfo).port}`
      if (req.url === '/token')
        return void res.writeHead(401, { 'www-authenticate': 'Basic realm="corp"' }).end('{"error":"invalid_client"}')
      if (req.url === '/jwks') return void res.end('{"keys":[]}')
      const authorization_endpoint = `${sso.provider.issuer}/authorize`
      res.end(
        JSON.stringify({
          issuer: own,
          authorization_endpoint,
          token_endpoint: `${own}/token`,
          jwks_uri: `${own}/jwks`,
        }),
      )
    }).listen(0, '127.0.0.1')
    await once(proxy, 'listening')
    const own = `http://localhost:${(proxy.address() as AddressInfo).port}`
    sso.configure({ issuer: own })
    const browser = sso.browser()
    const back = (await browser.choose('s-mia')).replace(
      encodeURIComponent(sso.provider.issuer),
      encodeURIComponent(own),
    )
    const refused = await browser.go(back)
    expect([refused.status, refused.body.code]).toEqual([503, 'provider_refuses_client'])
    proxy.close()
    sso.configure()
  })
})

describe('a provider that is down', () => {
  it('is one whose metadata names another issuer (ASVS 10.5.3)', async () => {
    const liar = createServer((_req, res) => {
      const { issuer } = sso.provider
      res.end(JSON.stringify({ issuer, authorization_endpoint: issuer, token_endpoint: issuer, jwks_uri: issuer }))
    }).listen(0, '127.0.0.1')
    await once(liar, 'listening')
    sso.configure({ issuer: `http://localhost:${(liar.address() as AddressInfo).port}` })
    const started = await sso.browser().go('/v1/sso/corp/start')
    expect([started.status, started.body.code]).toEqual([503, 'provider_unavailable'])
    liar.close()
  })

  it('is one whose keys cannot be read: its tokens are not counted against the caller', async () => {
    const liar = createServer((req, res) => {
      const { issuer } = sso.provider
      const own = `http://localhost:${(liar.address() as AddressInfo).port}`
      if (req.url === '/jwks') return void res.writeHead(500).end('<html>')
      const ends = { authorization_endpoint: `${issuer}/authorize`, token_endpoint: `${issuer}/token` }
      const methods = { token_endpoint_auth_methods_supported: ['client_secret_post'] }
      res.end(JSON.stringify({ issuer: own, ...ends, ...methods, jwks_uri: `${own}/jwks` }))
    }).listen(0, '127.0.0.1')
    await once(liar, 'listening')
    const iss = `http://localhost:${(liar.address() as AddressInfo).port}`
    sso.configure({ issuer: iss })
    const browser = sso.browser()
    expect(await browser.go('/v1/sso/corp/start')).toMatchObject({
      status: 503,
      body: { code: 'provider_unavailable' },
    })
    const now = Math.floor(Date.now() / 1000)
    const events = { 'http://schemas.openid.net/event/backchannel-logout': {} }
    const claims = { iss, aud: 'signalbox', iat: now, exp: now + 60, jti: randomUUID(), sub: 's-mia', events }
    const logout_token = await sso.provider.sign(claims, { typ: 'logout+jwt' })
    const told = await send(`${sso.gateway.url}/v1/sso/corp/backchannel-logout`, { body: { logout_token } })
    expect(told).toMatchObject({ status: 503, body: { code: 'provider_unavailable' } })
    liar.close()
  })

  it.each(['javascript:alert(1)', 'nowhere', 5])('is one whose sign-in page is %s', async (authorization_endpoint) => {
    const liar = createServer((_req, res) => {
      const issuer = `http://localhost:${(liar.address() as AddressInfo).port}`
      res.end(JSON.stringify({ issuer, authorization_endpoint, token_endpoint: issuer, jwks_uri: issuer }))
    }).listen(0, '127.0.0.1')
    await once(liar, 'listening')
    sso.configure({ issuer: `http://localhost:${(liar.address() as AddressInfo).port}` })
    const started = await sso.browser().go('/v1/sso/corp/start')
    expect([started.status, started.body.code]).toEqual([503, 'provider_unavailable'])
    liar.close()
  })

  it('is reported as such, and passwords still sign in', async () => {
    const other = await startSso()
    try {
      await other.addUser('lena')
      const late = other.browser()
      const back = await late.choose('s-mia')
      await other.provider.stop()
      const away = { status: 503, body: { category: 'unavailable', code: 'provider_unavailable' } }
      expect(await late.go(back)).toMatchObject(away)
      // A process that has not reached the provider yet cannot even begin.
      const gateway = await other.addGateway({ GATEWAY__UPSTREAM__SESSION_URL: (await other.addSession()).url })
      expect(await send(`${gateway.url}/v1/sso/corp/start`)).toMatchObject(away)
      const local = await send(`${gateway.url}/auth/login`, { body: { username: 'lena', password: PASSWORD } })
      expect(local.status).toBe(200)
    } finally {
      await other.stop().catch(() => {})
    }
  })
})
