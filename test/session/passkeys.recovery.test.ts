import { randomBytes, randomUUID } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import { eq, inArray, sql } from 'drizzle-orm'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { linkExternal } from '../../apps/identity/federation/external.ts'
import { addPasskey } from '../../apps/identity/passkeys/passkeys.ts'
import { enrolHere } from '../../apps/identity/users/bootstrap.ts'
import { endLostFactors } from '../../apps/identity/users/factors.ts'
import { lossOf } from '../../apps/operations/policies/footing.ts'
import { principalOf } from '../../apps/shared/auth/principals.ts'
import { joinHalves } from '../../apps/shared/contracts/client/enrolment.ts'
import { Identity } from '../../apps/shared/contracts/gen/auth_pb.ts'
import { createRpcClient } from '../../apps/shared/rpc/client.ts'
import { grants, passkeys, user_events, users } from '../../db/identity/tables.ts'
import { type Authenticator, createAuthenticator } from '../support/authenticator.ts'
import { codeAt } from '../support/totp.ts'
import { until } from '../support/until.ts'
import { bearer, ORIGIN, PASSWORD, send } from './support/auth.ts'
import { bearerOf, type Sso, startSso } from './support/sso.ts'

/** federation.md 8: a person who lost every passkey regains access through two administrators, and in no other way. */

const NEW_PASSWORD = 'Winter-Otter-88-Lantern'
const SITE = { origin: ORIGIN, rp_id: 'console.test' }
let auth: Sso
let relay: Awaited<ReturnType<Sso['addRelay']>>
let url: string
let [ada, carl]: { id: string; access: string }[] = []

beforeAll(async () => {
  auth = await startSso({}, { SESSION__SECOND_FACTOR__ROLES: '["approver"]' })
  url = auth.gateway.url
  relay = await auth.addRelay()
  const admin = async (username: string) => {
    const { id } = await auth.addUser(username, ['admin'])
    return { id, access: String((await signIn(username)).body.access_token) }
  }
  ada = await admin('ada')
  carl = await admin('carl')
  // No administrator saw the links of these two: they check each other.
  await auth.identity_deps.db.update(users).set({ link_shown: false })
})
afterAll(() => auth?.stop())

const token = (body: object) => send(`${url}/v1/token`, { body, headers: { origin: ORIGIN } })
const signIn = (username: string, password = PASSWORD) => token({ username, password })
const keyed = (access: unknown) => ({ ...bearer(access), 'idempotency-key': randomUUID() })
const post = (path: string, access: unknown, body: object = {}) =>
  send(`${url}/api/v1${path}`, { body, headers: keyed(access) })
const challenge = async () => String((await send(`${url}/v1/token/passkey-options`, { body: {} })).body.challenge)
const add = async (access: unknown, key: Authenticator, id: string) =>
  post('/users/me/passkeys', access, { name: 'phone', attestation: key.attest(await challenge(), id) })
const byPasskey = async (key: Authenticator) =>
  token({ grant_type: 'passkey', assertion: key.assert(await challenge()) })
const reauth = (access: unknown) =>
  send(`${url}/v1/token/reauth`, { body: { password: PASSWORD }, headers: keyed(access) })
const me = (access: unknown) => send(`${url}/api/v1/users/me`, { headers: bearer(access) })

/** A person whose role requires a passkey, and who has one. */
const person = async (roles = ['approver']) => {
  const username = `p-${randomUUID().slice(0, 8)}`
  const { id } = await auth.addUser(username, roles)
  await auth.identity_deps.db.update(users).set({ link_shown: false }).where(eq(users.id, id))
  const first = (await signIn(username)).body
  const key = createAuthenticator(SITE)
  expect((await add(first.access_token, key, id)).status).toBe(201)
  // Until then the session could only add a factor.
  const { access_token, refresh_token } = (
    await token({ grant_type: 'refresh_token', refresh_token: first.refresh_token })
  ).body
  return { id, username, key, access: access_token, refresh_token }
}
const request = async (user_id: string, by = ada, path = 'recovery') => {
  const asked = await post(`/admin/users/${user_id}/${path}`, by?.access)
  expect(asked.status).toBe(202)
  return (asked.body.change as { id: string }).id
}
const digestOf = async (id: string) => {
  const { body } = await send(`${url}/api/v1/admin/changes?page_size=500`, { headers: bearer(carl?.access) })
  return (body.items as { id: string; digest: string }[]).find((one) => one.id === id)?.digest
}
const confirm = async (id: string, by = carl, digest?: string) =>
  post(`/admin/changes/${id}/confirm`, by?.access, { digest: digest ?? (await digestOf(id)) })
const linkOf = async (id: string) => {
  const [first = '', second = ''] = await Promise.all(
    [ada, carl].map(
      async (by) => ((await post(`/admin/changes/${id}/half`, by?.access)).body.half as { token: string }).token,
    ),
  )
  return joinHalves(first, second) ?? joinHalves(second, first) ?? ''
}
const enrol = (enrolment_token: string, new_password = NEW_PASSWORD) =>
  send(`${url}/api/v1/users/enrol`, {
    body: { enrolment_token, new_password },
    headers: { 'idempotency-key': randomUUID() },
  })
const recovered = async (user_id: string) => {
  const id = await request(user_id)
  expect((await confirm(id)).status).toBe(200)
  return id
}
/** Links this person's account to a subject of the provider, as a thief of the password or an administrator might. */
const link = async (username: string, sub: string, groups = ['staff']) => {
  auth.people.push({ sub, name: sub, groups })
  const browser = auth.browser()
  const begun = await browser.go('/v1/token?response_mode=cookie', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ username, password: PASSWORD }),
  })
  const started = await browser.go('/v1/sso/corp/start', {
    method: 'POST',
    headers: {
      ...bearer(begun.body.access_token),
      'content-type': 'application/json',
      'x-csrf-token': String(begun.body.csrf_token),
    },
    body: JSON.stringify({ purpose: 'link' }),
  })
  const back = (await browser.go(`${started.body.location}&person=${sub}`)).location
  return { browser, back }
}
const linked = async (username: string, sub: string, groups?: string[]) => {
  const { browser, back } = await link(username, sub, groups)
  expect(await browser.go(back)).toMatchObject({ status: 303, location: '/inbox' })
}
/** The account that this subject's sign-in opens, and its session. */
const bySubject = async (sub: string) => {
  const browser = auth.browser()
  await browser.signIn(sub)
  const headers = await bearerOf(browser).catch(() => undefined)
  return { headers: headers ?? {}, id: headers && claimsOf(headers).sub }
}
const claimsOf = ({ authorization }: { authorization: string }) =>
  JSON.parse(Buffer.from(authorization.split('.')[1] ?? '', 'base64url').toString() || '{}')
const rightsFrom = (user_id: string) =>
  auth.identity_deps.db
    .select()
    .from(grants)
    .where(eq(grants.created_by, 'provider:corp'))
    .then((rows) => rows.filter((row) => row.subject_id === user_id))
const NOBODY = { status: 401, body: { code: 'invalid_credentials' } }

describe('a person who lost every passkey', () => {
  it('is let in by two administrators: all ways in end, one link opens the account, a new passkey closes it (ASVS 6.4.4)', async () => {
    const eva = await person()
    const begun = (await post('/users/me/totp/setup', eva.access)).body as { secret: string; setup: string }
    const body = { setup: begun.setup, code: codeAt(begun.secret, new Date()) }
    const app = await send(`${url}/api/v1/users/me/totp`, { method: 'PUT', body, headers: keyed(eva.access) })
    expect(app.status).toBe(200)
    expect(await signIn(eva.username)).toMatchObject({
      status: 403,
      body: { code: 'second_factor_required', factors: ['passkey', 'totp'] },
    })
    const id = await request(eva.id)
    expect((await me(eva.access)).status).toBe(200)
    expect(await confirm(id)).toMatchObject({ status: 200, body: { sessions: 'revoked' } })
    expect((await me(eva.access)).status).toBe(401)
    expect((await token({ grant_type: 'refresh_token', refresh_token: eva.refresh_token })).status).toBe(401)
    expect(await byPasskey(eva.key)).toMatchObject({ status: 403, body: { code: 'assertion_invalid' } })
    expect(await signIn(eva.username)).toMatchObject(NOBODY)

    const link = await linkOf(id)
    expect((await enrol(link)).status).toBe(204)
    expect(await signIn(eva.username)).toMatchObject(NOBODY)
    // Neither the passkey nor the app is requested: both are gone.
    const back = await signIn(eva.username, NEW_PASSWORD)
    expect(back).toMatchObject({ status: 200 })
    const key = createAuthenticator(SITE)
    expect((await add(back.body.access_token, key, eva.id)).status).toBe(201)
    const halved = await signIn(eva.username, NEW_PASSWORD)
    expect(halved).toMatchObject({ status: 403, body: { code: 'second_factor_required' } })
    const { factor_token } = halved.body
    const done = await token({ grant_type: 'second_factor', factor_token, assertion: key.assert(await challenge()) })
    expect(done.status).toBe(200)

    const [notice] = await auth.identity_deps.db
      .select()
      .from(user_events)
      .where(sql`${user_events.object} = ${`user:${eva.id}`} and ${user_events.action} = 'user.recovery_started'`)
    expect(notice).toMatchObject({
      actor: `user:${carl?.id}`,
      on_behalf_of: `user:${ada?.id}`,
      reason: 'passkeys ended: 1',
    })
    expect((await enrol(link, PASSWORD)).body).toMatchObject({ status: 422, code: 'enrolment_token_invalid' })
  })

  it('is rid of an identity that another person linked, and of its rights', async () => {
    const eva = await person(['viewer'])
    const sub = `s-${randomUUID()}`
    await linked(eva.username, sub, ['staff', 'noc'])
    const thief = await bySubject(sub)
    expect(thief.id).toBe(eva.id)
    expect(await rightsFrom(eva.id)).toMatchObject([{ role: 'approver' }])
    const id = await recovered(eva.id)
    expect(await rightsFrom(eva.id)).toEqual([])
    await until(
      async () => (await send(`${url}/api/v1/users/me/passkeys`, { headers: thief.headers })).status === 401,
      { what: 'the session of the identity to end' },
    )
    expect((await enrol(await linkOf(id))).status).toBe(204)
    expect((await bySubject(sub)).id).not.toBe(eva.id)
    const rows = await auth.identity_deps.db
      .select()
      .from(user_events)
      .where(eq(user_events.object, `user:${eva.id}`))
    expect(rows.find(({ action }) => action === 'user.identity_unlinked')).toMatchObject({
      actor: `user:${carl?.id}`,
      outcome: 'done',
    })
  })

  it('gets no link from one administrator, even twice, nor by confirming it herself', async () => {
    const eva = await person(['approver', 'admin'])
    const [one, other] = [await request(eva.id), await request(eva.id)]
    for (const id of [one, other])
      expect(await confirm(id, ada)).toMatchObject({ status: 403, body: { code: 'second_admin' } })
    const own = { id: eva.id, access: String(eva.access) }
    expect(await confirm(one, own)).toMatchObject({ status: 403, body: { code: 'second_admin' } })
    expect((await post(`/admin/users/${eva.id}/recovery`, own.access)).body.code).toBe('self_action')
    expect((await byPasskey(eva.key)).status).toBe(200)
  })

  it('cannot sign in with an expired link', async () => {
    const eva = await person()
    const early = await request(eva.id, ada, 'enrolment-token')
    expect((await confirm(early)).status).toBe(200)
    const old = await linkOf(early)
    const id = await recovered(eva.id)
    // The older link opens nothing, before or after the new one is read.
    await enrol(old)
    expect((await signIn(eva.username, NEW_PASSWORD)).status).toBe(401)
    const link = await linkOf(id)
    expect((await enrol(old)).status).toBe(422)
    await auth.credential_deps.db.execute(sql`update credential.enrolment_tokens set expires_at = clock_timestamp()`)
    expect((await enrol(link)).body).toMatchObject({ status: 422, code: 'enrolment_token_invalid' })
    expect(await signIn(eva.username)).toMatchObject(NOBODY)
  })

  it('has one recovery, and one new password, if two race', async () => {
    const eva = await person()
    const [one, other] = [await request(eva.id, ada), await request(eva.id, carl)]
    const [reviewed, too] = [await digestOf(one), await digestOf(other)]
    const both = await Promise.all([confirm(one, carl, reviewed), confirm(other, ada, too)])
    expect(both.map(({ status }) => status).sort()).toEqual([200, 412])
    expect(both.find(({ status }) => status === 412)?.body.code).toBe('digest_moved')
    const link = await linkOf(both[0]?.status === 200 ? one : other)
    const passwords = [NEW_PASSWORD, `${NEW_PASSWORD}-2`]
    const used = await Promise.all(passwords.map((password) => enrol(link, password)))
    expect(used.map(({ status }) => status).sort()).toEqual([204, 422])
    const winner = passwords[used.findIndex(({ status }) => status === 204)]
    expect((await signIn(eva.username, winner)).status).toBe(200)
  })

  it('adds no passkey meanwhile, whatever session is left', async () => {
    const eva = await person()
    await auth.identity_deps.db.update(users).set({ recovering: true }).where(eq(users.id, eva.id))
    expect(await add(eva.access, createAuthenticator(SITE), eva.id)).toMatchObject({
      status: 403,
      body: { code: 'assertion_invalid' },
    })
  })

  it('votes by no right that the recovering administrators could use', async () => {
    const eva = await person()
    const identity = createRpcClient(Identity, {
      url: auth.vars.AUTH__RPC__IDENTITY_URL ?? '',
      signer: auth.services.signer('operations'),
      audience: 'identity-internal',
    })
    const since = new Date().toISOString()
    await recovered(eva.id)
    const { principal } = await identity.getPrincipal({ userId: eva.id })
    const loss = (involved: (string | undefined)[]) =>
      lossOf(principal && principalOf(principal), {
        permissions: ['gate:decide'],
        places: [{}],
        groups: undefined,
        taint: { involved: involved.map(String), providers: false, since },
      })
    expect([loss([ada?.id]), loss([carl?.id]), loss(['olga'])]).toEqual(['voter_tainted', 'voter_tainted', undefined])
  })
})

describe('a person of a provider who lost every factor', () => {
  /** Someone who signs in through the provider and has a passkey and an authenticator app. */
  const ofProvider = async () => {
    const sub = `s-${randomUUID()}`
    auth.people.push({ sub, name: `mia-${sub.slice(2, 10)}`, groups: ['staff', 'noc'] })
    const browser = auth.browser()
    await browser.signIn(sub)
    const { sub: id } = claimsOf(await bearerOf(browser))
    const keyedBy = (session: object) => ({ ...session, 'idempotency-key': randomUUID() })
    const addKey = async () => {
      const attestation = createAuthenticator(SITE).attest(await challenge(), id)
      const headers = keyedBy(await bearerOf(browser))
      return send(`${url}/api/v1/users/me/passkeys`, { body: { name: 'phone', attestation }, headers })
    }
    expect((await addKey()).status).toBe(201)
    const session = await bearerOf(browser)
    const begun = (await send(`${url}/api/v1/users/me/totp/setup`, { body: {}, headers: keyedBy(session) })).body
    const { secret, setup } = begun as { secret: string; setup: string }
    const body = { setup, code: codeAt(secret, new Date()) }
    const app = await send(`${url}/api/v1/users/me/totp`, { method: 'PUT', body, headers: keyedBy(session) })
    expect(app.status).toBe(200)
    return { sub, browser, id, addKey, session }
  }

  it('signs in there as before and adds a new one: passkeys, app and sessions end, the identity and its rights stay', async () => {
    const { sub, browser, id, addKey, session } = await ofProvider()
    expect((await post(`/admin/users/${id}/enrolment-token`, ada?.access)).body).toMatchObject({
      code: 'provider_account',
      hint: expect.stringContaining('/recovery'),
    })
    const change = await recovered(id)
    expect((await post(`/admin/changes/${change}/half`, ada?.access)).body.code).toBe('change_closed')
    await until(async () => (await me(session.authorization.slice(7))).status === 401, { what: 'the session to end' })
    await browser.signIn(sub)
    const again = await bearerOf(browser)
    expect(claimsOf(again)).toMatchObject({ sub: id, scope: ['enrolment'] })
    expect(await rightsFrom(id)).toMatchObject([{ role: 'approver' }])
    // No factor is left that this session would have to prove first, once credential has ended the app.
    await until(async () => (await addKey()).status === 201, { what: 'a new passkey' })
    const factors = await send(`${url}/api/v1/users/me/totp`, { headers: await bearerOf(browser) })
    expect(factors.body).toMatchObject({ active: false })
    const [notice] = await auth.identity_deps.db
      .select()
      .from(user_events)
      .where(sql`${user_events.object} = ${`user:${id}`} and ${user_events.action} = 'user.recovery_started'`)
    expect(notice).toMatchObject({ on_behalf_of: `user:${ada?.id}`, reason: 'passkeys ended: 1' })
  })

  it('loses the app after the change is made, not with one that fails, and as soon as credential answers', async () => {
    const { sub, browser, id, addKey } = await ofProvider()
    const appOf = async () =>
      (
        await auth.credential_deps.db.execute(sql`
      select from credential.totp_factors where user_id = ${id}`)
      ).rows.length
    const change = await request(id)
    // The last step of the transaction fails: none of it has happened.
    await auth.identity_deps.db.execute(
      sql`alter table identity.changes add constraint late check (status = 'pending') not valid`,
    )
    expect((await confirm(change)).status).toBe(500)
    expect(await appOf()).toBe(1)
    await auth.identity_deps.db.execute(sql`alter table identity.changes drop constraint late`)

    const away = vi.spyOn(auth.identity_deps.credential, 'removeTotp').mockRejectedValue(new Error('away'))
    expect(await confirm(change)).toMatchObject({ status: 200, body: { sessions: 'pending' } })
    await until(async () => away.mock.calls.length > 1, { what: 'a second try' })
    expect(await appOf()).toBe(1)
    // Whoever proves that app adds no way in that would outlive the recovery.
    const asked = await challenge()
    const attestation = JSON.stringify(createAuthenticator(SITE).attest(asked, id))
    const key = { userId: id, name: 'theirs', challenge: asked, attestation }
    expect(await addPasskey(auth.identity_deps, key as never, 'test')).toMatchObject({ cause: 'account' })
    const own = { userId: id, providerId: 'corp', subject: 's-theirs', externalId: '' }
    expect(await linkExternal(auth.identity_deps, own, 'test')).toEqual({ refused: 'account_disabled' })
    away.mockRestore()
    await until(async () => (await appOf()) === 0, { what: 'the app to end' })
    await browser.signIn(sub)
    await until(async () => (await addKey()).status === 201, { what: 'a new passkey' })
  })

  it('keeps the app that they set up since, and does not wait for others whose factors cannot be ended yet', async () => {
    const { db, credential: own } = auth.identity_deps
    const held = vi.spyOn(own, 'endPassword').mockRejectedValue(new Error('away'))
    const names = ['a', 'b', 'c'].map((name) => `${name}-${randomUUID().slice(0, 8)}`)
    const rest = new Set((await Promise.all(names.map((name) => auth.addUser(name)))).map(({ id }) => id))
    const mark = (ids: Iterable<string>, factors_ended_at: string | null) =>
      db
        .update(users)
        .set({ factors_ended_at })
        .where(inArray(users.id, [...ids]))
    await mark(rest, new Date().toISOString())
    const ended: string[] = []
    let done = ''
    const credential = {
      endPassword: async ({ userId }: { userId: string }) => {
        rest.delete(userId)
        if (done) return
        // While this call fails, another process ends the factors of one of the others.
        done = [...rest][0] ?? ''
        await mark([done], null)
        throw new Error('slow')
      },
      removeTotp: async ({ userId }: { userId: string }) => void ended.push(userId),
    }
    try {
      await expect(endLostFactors({ db, credential: credential as never })).rejects.toThrow('slow')
    } finally {
      held.mockRestore()
    }
    expect(ended).toHaveLength(1)
    expect(ended).not.toContain(done)
    expect([...rest]).toEqual([done])
  })
})

describe('a renewed account', () => {
  it("has lost its passkeys to the machine's link for the last administrator", async () => {
    const boss = await person(['admin', 'approver'])
    const { db, keys, credential } = auth.identity_deps
    const { token: link } = await enrolHere({ db, audit_key: keys.audit, credential }, boss.username, undefined)
    expect((await byPasskey(boss.key)).status).toBe(200)
    expect((await enrol(link)).status).toBe(204)
    expect((await byPasskey(boss.key)).status).toBe(403)
    expect((await signIn(boss.username, NEW_PASSWORD)).status).toBe(200)
  })

  it('keeps its passkey after a reset of the password, and is asked for it beside the new one of 128 characters (ASVS 6.2.9, 6.4.3)', async () => {
    const eva = await person()
    const id = await request(eva.id, ada, 'enrolment-token')
    expect((await confirm(id)).status).toBe(200)
    const long = `Aa1-${Array.from(randomBytes(124), (byte) => ['ä', 'ß', 'ø', 'Ω', 'ж', '日', '🦊', '€'][byte % 8]).join('')}`
    expect([...long]).toHaveLength(128)
    expect((await enrol(await linkOf(id), `${long}x`)).status).toBe(400)
    expect((await enrol(await linkOf(id), long)).status).toBe(204)
    expect(await signIn(eva.username)).toMatchObject(NOBODY)
    expect(await signIn(eva.username, long)).toMatchObject({ status: 403, body: { code: 'second_factor_required' } })
    expect((await byPasskey(eva.key)).status).toBe(200)
  })

  it('keeps no identity from a time when an administrator could sign in as it', async () => {
    const bob = await person(['viewer'])
    const sub = `s-${randomUUID()}`
    await linked(bob.username, sub)
    await auth.identity_deps.db.update(users).set({ link_shown: true }).where(eq(users.id, bob.id))
    const id = await request(bob.id, ada, 'enrolment-token')
    expect((await confirm(id)).status).toBe(200)
    const token = await linkOf(id)
    // She signs in again and again, also while he sets his password, and holds back the end of another link.
    const before = await bySubject(sub)
    expect(before.id).toBe(bob.id)
    const held = await link(bob.username, `s-${randomUUID()}`)
    const [{ status }, meanwhile] = await Promise.all([enrol(token), bySubject(sub)])
    expect(status).toBe(204)
    // Just after the identity ended, her sign-in opens an account of her own.
    for (const { headers, id: opened } of [before, meanwhile])
      if (opened === bob.id) expect((await send(`${url}/api/v1/users/me`, { headers })).status).toBe(401)
    expect((await held.browser.go(held.back)).body.code).toBe('sign_in_expired')
    expect((await bySubject(sub)).id).not.toBe(bob.id)
    const own = await signIn(bob.username, NEW_PASSWORD)
    expect(own.status).toBe(200)
    await setTimeout(1000)
    expect((await me(own.body.access_token)).status).toBe(200)
  })

  it('keeps no passkey from a time when an administrator could sign in as it', async () => {
    const eva = await person(['viewer'])
    await auth.identity_deps.db.update(users).set({ link_shown: true }).where(eq(users.id, eva.id))
    const id = await request(eva.id, ada, 'enrolment-token')
    expect((await confirm(id)).status).toBe(200)
    expect((await enrol(await linkOf(id))).status).toBe(204)
    expect(await byPasskey(eva.key)).toMatchObject({ status: 403, body: { code: 'assertion_invalid' } })
    expect(await auth.identity_deps.db.select().from(passkeys).where(eq(passkeys.user_id, eva.id))).toEqual([])
  })
})

describe('while the relay is away', () => {
  it('an account in recovery proves no password and makes no request, and the answer says that its sessions still end', async () => {
    const eva = await person(['admin'])
    const id = await request(eva.id)
    await relay.stop()
    expect(await confirm(id)).toMatchObject({ status: 200, body: { sessions: 'pending' } })
    expect((await reauth(eva.access)).status).toBe(401)
    await until(
      async () => (await post('/admin/groups', eva.access, { group_key: 'late', name: 'x' })).status === 401,
      { what: 'the caches of its rights to end' },
    )
  })
})
