import { createHash, randomUUID } from 'node:crypto'
import { eq, sql } from 'drizzle-orm'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { enrolHere } from '../../apps/identity/users/bootstrap.ts'
import { Session } from '../../apps/shared/contracts/gen/auth_pb.ts'
import { createRpcClient } from '../../apps/shared/rpc/client.ts'
import { totp_factors } from '../../db/credential/tables.ts'
import { users } from '../../db/identity/tables.ts'
import { createAuthenticator } from '../support/authenticator.ts'
import { startLink } from '../support/link.ts'
import { codeAt } from '../support/totp.ts'
import { until } from '../support/until.ts'
import { type Auth, bearer, cookieOf, ORIGIN, PASSWORD, send, startAuth } from './support/auth.ts'

/** federation.md 8: the authenticator app as the other second factor, through the gateway and two session processes. */

const SITE = { origin: ORIGIN, rp_id: 'console.test' }
let auth: Auth
let url: string
let second_url: string
let now = new Date()
beforeAll(async () => {
  auth = await startAuth({ SESSION__SECOND_FACTOR__ROLES: '["approver"]' }, { clock: { now: () => now } })
  url = (await auth.addGateway()).url
  const other = await auth.addSession()
  second_url = (await auth.addGateway({ GATEWAY__UPSTREAM__SESSION_URL: other.url })).url
})
afterAll(() => auth?.stop())
beforeEach(() => {
  now = new Date(now.getTime() + 600_000)
})

const token = (body: object, mode = 'json', at = url) =>
  send(`${at}/v1/token?response_mode=${mode}`, { body, headers: { origin: ORIGIN } })
const signIn = (username: string, mode?: string, password = PASSWORD) => token({ username, password }, mode)
const keyed = (access: unknown) => ({ ...bearer(access), 'idempotency-key': randomUUID() })
const PATH = '/api/v1/users/me/totp'
const begin = async (access: unknown) =>
  (await send(`${url}${PATH}/setup`, { body: {}, headers: bearer(access) })).body as { secret: string; setup: string }
const set = (access: unknown, setup: string, code: string, headers = keyed(access)) =>
  send(`${url}${PATH}`, { method: 'PUT', body: { setup, code }, headers })
const read = async (access: unknown) => (await send(`${url}${PATH}`, { headers: bearer(access) })).body
const remove = (access: unknown) => send(`${url}${PATH}`, { method: 'DELETE', headers: keyed(access) })
const challenge = async () => String((await send(`${url}/v1/token/passkey-options`, { body: {} })).body.challenge)
const addPasskey = async (access: unknown, id: string) => {
  const key = createAuthenticator(SITE)
  const body = { name: 'phone', attestation: key.attest(await challenge(), id) }
  expect((await send(`${url}/api/v1/users/me/passkeys`, { body, headers: keyed(access) })).status).toBe(201)
  return key
}
/** A person whose app was set up some time ago. */
const person = async (roles = ['viewer']) => {
  const username = `t-${randomUUID().slice(0, 8)}`
  const { id } = await auth.addUser(username, roles)
  const access = (await signIn(username)).body.access_token
  const { secret, setup } = await begin(access)
  expect((await set(access, setup, codeAt(secret, now))).status).toBe(200)
  now = new Date(now.getTime() + 120_000)
  return { id, username, access, secret }
}
const halve = async (username: string, mode?: string) => {
  const answer = await signIn(username, mode)
  expect(answer).toMatchObject({ status: 403, body: { code: 'second_factor_required' } })
  return answer.body as { factor_token: string; factors: string[] }
}
const second = (factor_token: string, totp: string, mode?: string, at = url) =>
  token({ grant_type: 'second_factor', factor_token, totp }, mode, at)
const wrongOf = (secret: string) => {
  const right = [-1, 0, 1].map((steps) => codeAt(secret, now, steps))
  return ['000000', '111111', '222222', '333333'].find((code) => !right.includes(code)) ?? ''
}
const claimsOf = (access: unknown) =>
  JSON.parse(Buffer.from(String(access).split('.')[1] ?? '', 'base64url').toString())
const audited = async (): Promise<Record<string, string>[]> =>
  (await auth.redis.xrange(`${auth.prefix}auth:audit`, '-', '+')).map(([, [, row]]) => JSON.parse(row ?? '{}'))
const auditedOf = async (id: string) => (await audited()).filter(({ object }) => object === `user:${id}`)
const INVALID = { status: 403, body: { code: 'totp_invalid' } }

describe('an authenticator app', () => {
  it('is set up by its first code, asked for after the password in both modes, and removed', async () => {
    const username = 'whole'
    const { id } = await auth.addUser(username, ['viewer'])
    const { access_token: access } = (await signIn(username)).body
    expect(await read(access)).toEqual({ active: false, created_at: null, last_used_at: null })
    const { secret, setup } = await begin(access)
    expect((await signIn(username)).status).toBe(200)
    expect(await set(access, setup, wrongOf(secret))).toMatchObject(INVALID)
    expect((await read(access)).active).toBe(false)
    const headers = keyed(access)
    const code = codeAt(secret, now, -1)
    const done = await set(access, setup, code, headers)
    expect(done).toMatchObject({ status: 200, body: { active: true } })
    expect(done.text).not.toContain(secret)
    expect(await set(access, setup, code, headers)).toMatchObject({ status: 200, body: done.body })

    const { factor_token, factors } = await halve(username)
    expect(factors).toEqual(['totp'])
    const signed_in = await second(factor_token, codeAt(secret, now))
    expect(signed_in).toMatchObject({ status: 200, body: { refresh_token: expect.any(String) } })
    expect(claimsOf(signed_in.body.access_token).amr).toEqual(['pwd', 'otp', 'mfa'])
    const { refresh_token } = signed_in.body
    const renewed = await token({ grant_type: 'refresh_token', refresh_token })
    expect(claimsOf(renewed.body.access_token).amr).toEqual(['pwd', 'otp', 'mfa'])

    const cookie = await halve(username, 'cookie')
    expect(await second(cookie.factor_token, codeAt(secret, now, 1), 'json')).toMatchObject({
      status: 400,
      body: { code: 'session_mode_mismatch' },
    })
    const inCookie = await second(cookie.factor_token, codeAt(secret, now, 1), 'cookie')
    expect(cookieOf(inCookie)).toMatch(/^refresh_token=/)
    expect(await read(access)).toMatchObject({ active: true, last_used_at: now.toISOString() })

    expect((await remove(access)).status).toBe(204)
    expect((await remove(access)).status).toBe(404)
    expect((await signIn(username)).status).toBe(200)
    expect((await auditedOf(id)).map(({ action }) => action)).toEqual(
      expect.arrayContaining(['set_totp', 'remove_totp']),
    )
  })

  it.each(['CREDENTIAL', 'IDENTITY'])(
    'or a passkey may answer again after an outage of %s, without the password',
    async (app) => {
      const name = `AUTH__RPC__${app}_URL`
      const link = await startLink(auth.vars[name] ?? '')
      const { url: at } = await auth.addSession({ [name]: link.url })
      const { username, secret, access, id } = await person()
      const key = await addPasskey(access, id)
      const { factor_token } = await halve(username)
      const factor = app === 'CREDENTIAL' ? { totp: codeAt(secret, now) } : { assertion: key.assert(await challenge()) }
      const prove = () => send(`${at}/v1/token`, { body: { grant_type: 'second_factor', factor_token, ...factor } })
      link.cut()
      expect(await prove()).toMatchObject({ status: 503, body: { retryable: true } })
      link.mend()
      const done = await until(async () => {
        const answer = await prove()
        return answer.status === 503 ? undefined : answer
      })
      expect(done.status).toBe(200)
      link.stop()
    },
  )

  it('is revealed to no one without the password', async () => {
    const [eva, olga] = [await person(), await person()]
    await remove(olga.access)
    const wrong = [eva, olga].map(({ username }) => signIn(username, 'json', 'Wrong-Otter-7-Battery'))
    const [with_app, without] = await Promise.all(wrong)
    const plain = ({ request_id: _, instance: __, ...body }: Record<string, unknown> = {}) => body
    expect(with_app?.status).toBe(401)
    expect(plain(with_app?.body)).toEqual(plain(without?.body))
  })

  it('is changed only after a fresh sign-in, and by no machine or other person (ASVS 7.5.1)', async () => {
    const { access, secret, id } = await person()
    const { setup } = await begin(access)
    const record = (await auth.redis.keys(`${auth.prefix}sess:{${id}}:*`))[0] ?? ''
    await auth.redis.hset(record, 'auth_time', 1)
    const old = { ...claimsOf(access), auth_time: 1 }
    const signed = await auth.session.deps.issuer.access(
      { user_id: id, session_id: old.session_id, username: old.username, mode: 'json', auth_time: 1, amr: ['pwd'] },
      'test',
    )
    for (const answer of [
      await send(`${url}${PATH}/setup`, { body: {}, headers: bearer(signed) }),
      await set(signed, setup, codeAt(secret, now)),
      await remove(signed),
    ])
      expect(answer).toMatchObject({ status: 403, body: { code: 'reauth_required' } })
    const other = await person()
    expect(await set(other.access, setup, codeAt(secret, now))).toMatchObject({
      status: 409,
      body: { code: 'challenge_expired' },
    })
  })
})

describe('an older session that proved only the password', () => {
  it('changes no way in of an account that has an app, until it proves a code', async () => {
    const username = `t-${randomUUID().slice(0, 8)}`
    const { id } = await auth.addUser(username, ['viewer'])
    const [older, mine] = [(await signIn(username)).body.access_token, (await signIn(username)).body.access_token]
    const [theirs, own] = [await begin(older), await begin(mine)]
    expect((await set(mine, own.setup, codeAt(own.secret, now))).status).toBe(200)
    const key = await addPasskey(mine, id)
    const reauth = async (access: unknown, proof: object) =>
      (await send(`${url}/v1/token/reauth`, { body: proof, headers: bearer(access) })).body.access_token
    const fresh = await reauth(older, { password: PASSWORD })
    expect(claimsOf(fresh).amr).toEqual(['pwd'])
    const [kept] = (await send(`${url}/api/v1/users/me/passkeys`, { headers: bearer(fresh) })).body.items as {
      id: string
    }[]
    const foreign = { name: 'theirs', attestation: createAuthenticator(SITE).attest(await challenge(), id) }
    const link = { purpose: 'link', return_to: '/settings' }
    for (const answer of [
      await remove(fresh),
      await set(fresh, theirs.setup, codeAt(theirs.secret, now)),
      await send(`${url}${PATH}/setup`, { body: {}, headers: bearer(fresh) }),
      await send(`${url}/api/v1/users/me/passkeys`, { body: foreign, headers: keyed(fresh) }),
      await send(`${url}/api/v1/users/me/passkeys/${kept?.id}`, { method: 'DELETE', headers: keyed(fresh) }),
      await send(`${url}/v1/sso/corp/start`, { body: link, headers: bearer(fresh) }),
    ])
      expect(answer).toMatchObject({ status: 403, body: { code: 'factor_required' } })
    const proved = await reauth(fresh, { assertion: key.assert(await challenge()) })
    expect((await remove(proved)).status).toBe(204)
  })
})

describe('the second step', () => {
  it('accepts a code once, whichever process and whichever half of a sign-in sends it (ASVS 6.5.1)', async () => {
    const { username, secret } = await person()
    const halves = await Promise.all(Array.from({ length: 6 }, () => halve(username)))
    const code = codeAt(secret, now)
    const answers = await Promise.all(
      halves.map(({ factor_token }, i) => second(factor_token, code, 'json', i % 2 ? url : second_url)),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 403, 403, 403, 403, 403])
    const next = await halve(username)
    const one_token = await Promise.all(
      [url, second_url, url].map((at) => second(next.factor_token, codeAt(secret, now, 1), 'json', at)),
    )
    expect(one_token.map(({ status }) => status).sort()).toEqual([200, 409, 409])
  })

  it('allows a mistyped code to be corrected, five times', async () => {
    const { username, secret, id } = await person()
    const { factor_token } = await halve(username)
    expect(await second(factor_token, wrongOf(secret))).toMatchObject(INVALID)
    expect((await second(factor_token, codeAt(secret, now))).status).toBe(200)
    const again = await halve(username)
    for (let guess = 0; guess < 5; guess++)
      expect(await second(again.factor_token, wrongOf(secret))).toMatchObject(INVALID)
    expect((await second(again.factor_token, codeAt(secret, now, 1))).status).toBe(409)
    const causes = (await auditedOf(id)).filter(({ reason }) => reason === 'totp_invalid')
    expect(causes).toHaveLength(6)
    expect(JSON.parse(causes[0]?.body ?? '').details).toEqual({ cause: 'wrong_code' })
  })

  it('must follow the password within five minutes, however many codes are wrong', async () => {
    const { username, secret } = await person()
    const { factor_token } = await halve(username)
    const name = `${auth.prefix}factor:${createHash('sha256').update(factor_token).digest('hex')}`
    expect(await auth.redis.ttl(name)).toBeGreaterThan(290)
    await auth.redis.expire(name, 100)
    expect(await second(factor_token, wrongOf(secret))).toMatchObject(INVALID)
    expect(await auth.redis.ttl(name)).toBeLessThanOrEqual(100)
    expect((await second(factor_token, codeAt(secret, now))).status).toBe(200)
  })

  it('is void once all sessions of its person have ended, or the password was replaced: the person starts again', async () => {
    await auth.addUser('closes', ['admin'])
    const { username, secret, id } = await person()
    const admin = (await signIn('closes')).body.access_token
    const all = `${url}/api/v1/admin/users/${id}/sessions`
    const again = { status: 409, body: { code: 'challenge_expired', hint: 'Start again with your password.' } }
    const first = await halve(username)
    expect(await second(first.factor_token, wrongOf(secret))).toMatchObject(INVALID)
    expect((await send(all, { method: 'DELETE', headers: keyed(admin) })).status).toBe(204)
    expect(await second(first.factor_token, codeAt(secret, now))).toMatchObject(again)

    const before = await halve(username)
    await auth.setPassword({ id, username }, 'Winter-Otter-88-Lantern')
    // The message about the new password comes after a sign-in with it.
    const after = await token({ username, password: 'Winter-Otter-88-Lantern' })
    const relay = createRpcClient(Session, {
      url: auth.session.rpc_url,
      signer: auth.services.signer('relay'),
      audience: 'session-internal',
    })
    await relay.revokeUserSessions({ userId: id, reason: 'password_changed', passwordVersion: 2 })
    expect(await second(before.factor_token, codeAt(secret, now, 1))).toMatchObject(again)
    now = new Date(now.getTime() + 60_000)
    expect((await second(String(after.body.factor_token), codeAt(secret, now))).status).toBe(200)
  })

  it('closes for an hour after ten wrong codes and notifies the person; password and passkey stay (ASVS 6.6.3)', async () => {
    const { username, secret, id, access } = await person()
    const key = await addPasskey(access, id)
    const halves = [await halve(username), await halve(username)]
    const guesses: Awaited<ReturnType<typeof second>>[] = []
    for (const { factor_token: half } of halves)
      for (let guess = 0; guess < 5; guess++) guesses.push(await second(half, wrongOf(secret)))
    const last = guesses.pop()
    for (const guess of guesses) expect(guess).toMatchObject(INVALID)
    expect(last).toMatchObject({ status: 429, body: { code: 'totp_locked', retry_after_ms: 3_600_000 } })
    const { factor_token, factors } = await halve(username)
    expect(factors).toEqual(['passkey', 'totp'])
    expect(await second(factor_token, codeAt(secret, now))).toMatchObject({
      status: 429,
      body: { code: 'totp_locked' },
    })
    expect((await auditedOf(id)).filter(({ action }) => action === 'totp_locked')).toHaveLength(1)
    const assertion = key.assert(await challenge())
    const done = await token({ grant_type: 'second_factor', factor_token, assertion })
    expect(done.status).toBe(200)
    expect(claimsOf(done.body.access_token).amr).toEqual(['pwd', 'hwk', 'mfa'])
    now = new Date(now.getTime() + 3_600_000)
    expect((await second((await halve(username)).factor_token, codeAt(secret, now))).status).toBe(200)
  })

  it('is sent completely or not at all', async () => {
    const { username, secret } = await person()
    const { factor_token } = await halve(username)
    const totp = codeAt(secret, now)
    const assertion = createAuthenticator(SITE).assert(await challenge())
    for (const [body, code] of [
      [{ grant_type: 'second_factor', totp }, 'missing_grant'],
      [{ grant_type: 'second_factor', factor_token }, 'missing_grant'],
      [{ grant_type: 'passkey', totp }, 'ambiguous_grant'],
      [{ grant_type: 'second_factor', factor_token, totp, assertion }, 'ambiguous_grant'],
      [{ grant_type: 'second_factor', factor_token, totp, username, password: PASSWORD }, 'ambiguous_grant'],
      [{ grant_type: 'second_factor', factor_token, totp: '12345' }, 'schema_violation'],
      [{ grant_type: 'second_factor', factor_token, totp: ' 123456' }, 'schema_violation'],
    ] as const)
      expect(await token(body)).toMatchObject({ status: 400, body: { code } })
    expect((await second(factor_token, totp)).status).toBe(200)
  })

  it('is asked of a role by its passkey, and of anyone by their app', async () => {
    const { username, id } = await auth.addUser('approves', ['approver'])
    const { access_token } = (await signIn(username)).body
    await addPasskey(access_token, id)
    expect((await halve(username)).factors).toEqual(['passkey'])
    const viewer = await auth.addUser('views', ['viewer'])
    await addPasskey((await signIn('views')).body.access_token, viewer.id)
    expect((await signIn('views')).status).toBe(200)
  })
})

describe('a code confirms', () => {
  it('its owner once, and the session records the method', async () => {
    const { access, secret, username } = await person()
    const other = await person()
    const reauth = (totp: string, by: unknown = access) =>
      send(`${url}/v1/token/reauth`, { body: { totp }, headers: bearer(by) })
    const done = await reauth(codeAt(secret, now))
    expect(claimsOf(done.body.access_token)).toMatchObject({ username, amr: ['pwd', 'otp', 'mfa'] })
    const fresh = done.body.access_token
    expect(await reauth(codeAt(secret, now), fresh)).toMatchObject(INVALID)
    expect(await reauth(codeAt(secret, now, 1), other.access)).toMatchObject(INVALID)
    const both = { totp: codeAt(secret, now, 1), password: PASSWORD }
    expect((await send(`${url}/v1/token/reauth`, { body: both, headers: bearer(fresh) })).status).toBe(400)
    expect((await reauth(codeAt(secret, now, 1), fresh)).status).toBe(200)
  })
})

describe('an account that starts over', () => {
  it('loses its app by the link that gives its person sole access, and by no other', async () => {
    const boss = await person(['admin', 'approver'])
    const { db, keys, credential } = auth.identity_deps
    const enrol = (enrolment_token: string, new_password: string) =>
      send(`${url}/api/v1/users/enrol`, {
        body: { enrolment_token, new_password },
        headers: { 'idempotency-key': randomUUID() },
      })
    const rows = () => auth.credential_deps.db.select().from(totp_factors).where(eq(totp_factors.user_id, boss.id))
    await auth.setPassword(boss, 'Winter-Otter-88-Lantern')
    expect(await rows()).toHaveLength(1)
    const { token: link } = await enrolHere({ db, audit_key: keys.audit, credential }, boss.username, undefined)
    expect(await rows()).toHaveLength(1)
    expect((await enrol(link, PASSWORD)).status).toBe(204)
    expect(await rows()).toEqual([])
    expect((await signIn(boss.username)).status).toBe(200)

    const eva = await person()
    const older = await enrolHere({ db, audit_key: keys.audit, credential }, eva.username, undefined)
    await db.update(users).set({ reset_link: sql`gen_random_uuid()::text` }).where(eq(users.id, eva.id))
    expect((await enrol(older.token, PASSWORD)).status).toBe(204)
    expect((await halve(eva.username)).factors).toEqual(['totp'])
  })
})
