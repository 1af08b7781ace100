import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { timestampFromDate } from '@bufbuild/protobuf/wkt'
import { Code } from '@connectrpc/connect'
import { eq } from 'drizzle-orm'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { checkRedisSettings, pruneRevocations } from '../../apps/session/store/revocations.ts'
import { authorizedRoutes } from '../../apps/shared/auth/http.ts'
import { ResponseMode, Session } from '../../apps/shared/contracts/gen/auth_pb.ts'
import { createRpcClient } from '../../apps/shared/rpc/client.ts'
import { pruneKeys } from '../../db/command/keys.ts'
import { users } from '../../db/identity/tables.ts'
import { auth_events, idempotency, revocations } from '../../db/session/tables.ts'
import { startLink } from '../support/link.ts'
import { until } from '../support/until.ts'
import { type Answer, type Auth, bearer, cookieOf, PASSWORD, send, startAuth } from './support/auth.ts'

let auth: Auth
let eva: { id: string }
let ada: { id: string }
let me: Answer['body']
let admin: Answer['body']

const NEW_PASSWORD = 'Another-Staple-9-Lantern'
const login = async (username: string, password = PASSWORD, query = '') =>
  send(`${auth.session.url}/v1/token${query}`, { body: { username, password } })
const call = (
  method: 'GET' | 'POST' | 'DELETE',
  path: string,
  token: unknown,
  body?: unknown,
  key: string = randomUUID(),
) =>
  send(`${auth.session.url}${path}`, {
    method,
    headers: { ...bearer(token), 'idempotency-key': key },
    ...(body !== undefined && { body }),
  })
const base64 = (key: Buffer) => key.toString('base64')
const refresh = (token: unknown) => send(`${auth.session.url}/auth/refresh`, { body: { refresh_token: token } })
const claims = (token: unknown) =>
  JSON.parse(Buffer.from(String(token).split('.')[1] ?? '', 'base64url').toString()) as {
    session_id: string
    sub: string
    auth_time: number
    iat: number
  }

beforeAll(async () => {
  auth = await startAuth()
  eva = await auth.addUser('eva', ['operator'])
  ada = await auth.addUser('ada', ['admin'])
  await auth.addUser('bob')
  admin = (await login('ada')).body
})
afterAll(() => auth?.stop())
beforeEach(async () => {
  me = (await login('eva')).body
})

describe('own sessions', () => {
  it('are listed newest first, with the current one marked (ASVS 7.5.2)', async () => {
    await login('eva')
    const { status, body } = await call('GET', '/v1/sessions', me.access_token)
    expect(status).toBe(200)
    const items = body.items as { id: string; current: boolean; created_at: string; mode: string; expires_at: string }[]
    expect(items.filter(({ current }) => current).map(({ id }) => id)).toEqual([claims(me.access_token).session_id])
    expect(items.map(({ created_at }) => created_at)).toEqual(
      items
        .map(({ created_at }) => created_at)
        .sort()
        .reverse(),
    )
    expect(items[0]).toMatchObject({ mode: 'json', ip_address: null, metadata: null })
    expect(Date.parse(items[0]?.expires_at ?? '') - Date.parse(items[0]?.created_at ?? '')).toBe(2_592_000_000)
    expect(JSON.stringify(body)).not.toContain('hash')
  })

  it('are listed page by page, each once', async () => {
    for (let more = 0; more < 3; more += 1) await login('eva')
    const read = async (query = '') => (await call('GET', `/v1/sessions${query}`, me.access_token)).body
    const idsIn = ({ items }: Answer['body']) => (items as { id: string }[]).map(({ id }) => id)
    const whole = await read()
    expect(whole.next_page_token).toBeNull()
    const seen: string[] = []
    for (let token: unknown = ''; token !== null; ) {
      const page = await read(`?page_size=2${token ? `&page_token=${token}` : ''}`)
      expect(idsIn(page).length).toBeLessThanOrEqual(2)
      seen.push(...idsIn(page))
      token = page.next_page_token
    }
    expect(seen.length).toBeGreaterThan(3)
    expect(seen).toEqual(idsIn(whole))
  })

  it('are listed and ended as before by a process that signs with the next key', async () => {
    const vars = { SESSION__SECRET__KEYS: JSON.stringify(auth.session.deps.config.secrets.toReversed().map(base64)) }
    const next = await auth.addSession(vars)
    const page = (await call('GET', '/v1/sessions?page_size=1', me.access_token)).body
    const path = `${next.url}/v1/sessions`
    const more = await send(`${path}?page_size=1&page_token=${page.next_page_token}`, {
      headers: bearer(me.access_token),
    })
    expect(more.status).toBe(200)
    const { session_id } = claims((await login('eva')).body.access_token)
    const key = randomUUID()
    expect((await call('DELETE', `/v1/sessions/${session_id}`, me.access_token, undefined, key)).status).toBe(204)
    const headers = { ...bearer(me.access_token), 'idempotency-key': key }
    const again = await send(`${path}/${session_id}`, { method: 'DELETE', headers })
    expect([again.status, again.headers['idempotency-replayed']]).toEqual([204, 'true'])
  })

  it('are listed while they last: one whose provider allowed less than 30 days ends before its record does', async () => {
    const { access_token } = (await login('eva')).body
    const { session_id, sub } = claims(access_token)
    const ids = async () =>
      ((await call('GET', '/v1/sessions', me.access_token)).body.items as { id: string }[]).map(({ id }) => id)
    expect(await ids()).toContain(session_id)
    await auth.redis.hset(`${auth.prefix}sess:{${sub}}:${session_id}`, 'expires_at', (Date.now() - 1000) * 1000)
    expect(await ids()).not.toContain(session_id)
    // Its last access token is still valid, but a new proof brings no other one.
    expect((await call('POST', '/v1/token/reauth', access_token, { password: PASSWORD })).status).toBe(401)
  })

  it('can be ended one by one; those of others are not found (ASVS 7.5.2, 10.4.9)', async () => {
    const other = (await login('eva')).body
    const path = `/v1/sessions/${claims(other.access_token).session_id}`
    const key = randomUUID()
    expect((await call('DELETE', path, me.access_token, undefined, key)).status).toBe(204)
    const replayed = await call('DELETE', path, me.access_token, undefined, key)
    expect([replayed.status, replayed.headers['idempotency-replayed']]).toEqual([204, 'true'])
    expect((await call('DELETE', path, me.access_token)).status).toBe(404)
    expect((await refresh(other.refresh_token)).status).toBe(401)
    expect(
      (await call('DELETE', `/v1/sessions/${claims(admin.access_token).session_id}`, me.access_token)).status,
    ).toBe(404)
    expect((await refresh(me.refresh_token)).status).toBe(200)
  })

  it('can all be ended except this one; a missing key is refused and changes nothing (ASVS 7.4.3)', async () => {
    const other = (await login('eva')).body
    const keyless = await send(`${auth.session.url}/v1/sessions/revoke-others`, {
      method: 'POST',
      headers: bearer(me.access_token),
    })
    expect([keyless.status, keyless.body.code]).toEqual([400, 'idempotency_key_required'])
    const done = await call('POST', '/v1/sessions/revoke-others', me.access_token)
    expect(done.status).toBe(200)
    expect(done.body.revoked).toBeGreaterThan(0)
    expect((await refresh(other.refresh_token)).status).toBe(401)
    expect((await refresh(me.refresh_token)).status).toBe(200)
  })
})

describe('the link of a security message', () => {
  const offers = () =>
    createRpcClient(Session, {
      url: auth.session.rpc_url,
      signer: auth.services.signer('operations'),
      audience: 'session-internal',
    })
  const signOut = (token: unknown, key: string = randomUUID()) =>
    send(`${auth.session.url}/v1/sessions/sign-out`, { headers: { 'idempotency-key': key }, body: { token } })

  it('ends all sessions of its person without a sign-in, once, and none that begin later', async () => {
    const fay = await auth.addUser('fay')
    const [first, second] = [(await login('fay')).body, (await login('fay')).body]
    const { token } = await offers().offerSignOut({ userId: fay.id })
    const key = randomUUID()
    const answer = await signOut(token, key)
    expect([answer.status, answer.body]).toEqual([200, { revoked: 2 }])
    for (const { refresh_token } of [first, second]) expect((await refresh(refresh_token)).status).toBe(401)
    const later = (await login('fay')).body
    expect((await signOut(token, key)).body).toEqual({ revoked: 2 })
    expect((await signOut(token)).body).toMatchObject({ category: 'validation_error', code: 'sign_out_link_invalid' })
    expect((await refresh(later.refresh_token)).status).toBe(200)
    expect((await refresh(me.refresh_token)).status, 'of someone else').toBe(200)
  })

  it('is refused if it was never offered or its 24 hours are over, and gives no other right', async () => {
    const { token } = await offers().offerSignOut({ userId: eva.id })
    const [stored] = await auth.redis.keys(`${auth.prefix}leave:*`)
    expect(await auth.redis.ttl(String(stored))).toBeGreaterThan(86_000)
    for (const wrong of ['so1.garbage', `${token}x`]) expect((await signOut(wrong)).status).toBe(422)
    for (const wrong of [undefined, '', 7, 'x'.repeat(200)]) expect((await signOut(wrong)).status).toBe(400)
    expect((await refresh(token)).status).toBe(401)
    expect((await call('GET', '/v1/sessions', token)).status).toBe(401)
    await auth.redis.del(String(stored))
    expect((await signOut(token)).status).toBe(422)
    expect((await refresh(me.refresh_token)).status).toBe(200)
    const stranger = createRpcClient(Session, {
      url: auth.session.rpc_url,
      signer: auth.services.signer('relay'),
      audience: 'session-internal',
    })
    await expect(stranger.offerSignOut({ userId: eva.id })).rejects.toMatchObject({ code: Code.PermissionDenied })
  })
})

describe('the password', () => {
  it('changes with the current one, ends the other sessions and renews this one (ASVS 6.2.2, 6.2.3, 7.4.3)', async () => {
    const bob = (await login('bob')).body
    const other = (await login('bob')).body
    const wrong = await call('POST', '/v1/users/me/password', bob.access_token, {
      current_password: 'Wrong-Horse-7-Battery',
      new_password: NEW_PASSWORD,
    })
    expect([wrong.status, wrong.body.code]).toEqual([422, 'current_password_wrong'])
    const weak = await call('POST', '/v1/users/me/password', bob.access_token, {
      current_password: PASSWORD,
      new_password: 'password',
    })
    expect([weak.status, weak.body.code]).toEqual([422, 'PasswordMissingUppercaseError'])
    const key = randomUUID()
    const change = { current_password: PASSWORD, new_password: NEW_PASSWORD }
    const done = await call('POST', '/v1/users/me/password', bob.access_token, change, key)
    expect(done.status).toBe(200)
    expect(done.body).toMatchObject({ token_type: 'Bearer', revoked_sessions: 1 })
    expect((await refresh(other.refresh_token)).status).toBe(401)
    const again = await call('POST', '/v1/users/me/password', bob.access_token, change, key)
    expect(again.body.refresh_token).toBe(done.body.refresh_token)
    expect((await refresh(done.body.refresh_token)).status).toBe(200)
    expect((await login('bob')).status).toBe(401)
    expect((await login('bob', NEW_PASSWORD)).status).toBe(200)
    const rows = await auth.session.deps.db.execute(
      "select convert_from(body, 'UTF8') as body from session.idempotency",
    )
    expect(JSON.stringify(rows.rows)).not.toContain(String(done.body.refresh_token))
  })

  it('holds no connection while credential hashes: a few changes at once would stall session', async () => {
    await auth.addUser('dora')
    const { access_token } = (await login('dora')).body
    const change = { current_password: PASSWORD, new_password: NEW_PASSWORD }
    const { db } = auth.credential_deps
    const activity = async (where: string) =>
      (await db.execute(`select 1 from pg_stat_activity where datname = current_database() and ${where}`)).rows.length
    const changing = await db.transaction(async (tx) => {
      await tx.execute('lock table credential.credentials in access exclusive mode')
      const asked = call('POST', '/v1/users/me/password', access_token, change)
      await until(async () => (await activity("wait_event_type = 'Lock'")) > 0)
      expect(await activity("application_name = 'session' and state = 'idle in transaction'")).toBe(0)
      return { asked }
    })
    expect((await changing.asked).status).toBe(200)
  })

  it('met by an outage of token is renewed by a repeat, and the tokens from before end', async () => {
    await auth.addUser('cut')
    const link = await startLink(auth.vars.AUTH__RPC__TOKEN_URL ?? '')
    const { url } = await auth.addSession({ AUTH__RPC__TOKEN_URL: link.url })
    const old = (await login('cut')).body
    const key = randomUUID()
    const change = () =>
      send(`${url}/v1/users/me/password`, {
        body: { current_password: PASSWORD, new_password: NEW_PASSWORD },
        headers: { ...bearer(old.access_token), 'idempotency-key': key },
      })
    link.cut()
    expect(await change()).toMatchObject({ status: 503, body: { retryable: true } })
    link.mend()
    const again = await until(async () => {
      const answer = await change()
      return answer.status === 200 ? answer : undefined
    })
    expect(again.body).toMatchObject({ revoked_sessions: 0, refresh_token: expect.any(String) })
    expect(again.body).not.toHaveProperty('password_version')
    const third = await change()
    expect(third.body.refresh_token).toBe(again.body.refresh_token)
    expect((await refresh(again.body.refresh_token)).status).toBe(200)
    expect((await refresh(old.refresh_token)).status).toBe(401)
    link.stop()
  })

  it('proved again gives an access token with a fresh auth_time; a wrong one is 422, never 401', async () => {
    const { session_id } = claims(me.access_token)
    await auth.redis.hset(`${auth.prefix}sess:{${eva.id}}:${session_id}`, 'auth_time', '1000')
    const wrong = await call('POST', '/v1/token/reauth', me.access_token, { password: 'Wrong-Horse-7-Battery' })
    expect([wrong.status, wrong.body.code]).toEqual([422, 'current_password_wrong'])
    const done = await call('POST', '/v1/token/reauth', me.access_token, { password: PASSWORD })
    expect(done.status).toBe(200)
    expect(Object.keys(done.body).sort()).toEqual(['access_token', 'expires_in', 'token_type'])
    expect(Math.abs(claims(done.body.access_token).auth_time - Date.now() / 1000)).toBeLessThan(10)
  })

  it('that changes in the middle of another change is not changed by that one, which may be repeated', async () => {
    const user = await auth.addUser('rae')
    const { access_token } = (await login('rae')).body
    const { strength } = auth.credential_deps
    auth.credential_deps.strength = {
      ...strength,
      estimate: async (...asked) => {
        auth.credential_deps.strength = strength
        await auth.setPassword(user, NEW_PASSWORD)
        return strength.estimate(...asked)
      },
    }
    const body = { current_password: PASSWORD, new_password: 'Third-Staple-9-Lantern' }
    const key = randomUUID()
    const change = () => call('POST', '/v1/users/me/password', access_token, body, key)
    const lost = await change()
    expect(lost).toMatchObject({ status: 409, body: { category: 'version_conflict', code: 'in_progress' } })
    expect(Number(lost.headers['retry-after'])).toBeGreaterThanOrEqual(1)
    expect((await change()).body.code).toBe('current_password_wrong')
    expect((await login('rae', NEW_PASSWORD)).status).toBe(200)
  })

  it('guessed wrong twenty times in one session ends it as suspicious', async () => {
    for (let i = 0; i < 20; i++)
      await call('POST', '/v1/token/reauth', me.access_token, { password: 'Wrong-Horse-7-Battery' })
    expect((await refresh(me.refresh_token)).status).toBe(401)
    const entries = await auth.redis.xrange(`${auth.prefix}auth:revoked`, '-', '+')
    expect(
      entries.some(
        ([, fields]) => fields.includes('suspicious') && fields.includes(claims(me.access_token).session_id),
      ),
    ).toBe(true)
  })
})

describe('administration', () => {
  it('needs session:admin, and no one can unlock themselves', async () => {
    for (const [method, path] of [
      ['POST', 'unlock'],
      ['GET', 'sessions'],
      ['DELETE', 'sessions'],
    ] as const) {
      const refused = await call(method, `/v1/admin/users/${ada.id}/${path}`, me.access_token)
      expect([refused.status, refused.body.code]).toEqual([403, 'permission_missing'])
    }
    const self = await call('POST', `/v1/admin/users/${ada.id}/unlock`, admin.access_token)
    expect([self.status, self.body.code]).toEqual([403, 'self_action'])
    expect((await call('POST', `/v1/admin/users/${randomUUID()}/unlock`, admin.access_token)).status).toBe(404)
  })

  it('unlocks a locked name', async () => {
    for (let i = 0; i < 6; i++) await login('eva', 'Wrong-Horse-7-Battery')
    expect((await login('eva')).status).toBe(429)
    expect((await call('POST', `/v1/admin/users/${eva.id}/unlock`, admin.access_token)).status).toBe(204)
    expect((await login('eva')).status).toBe(200)
  })

  it('lists and ends the sessions of a user (ASVS 7.4.5)', async () => {
    const list = await call('GET', `/v1/admin/users/${eva.id}/sessions`, admin.access_token)
    expect((list.body.items as { id: string }[]).map(({ id }) => id)).toContain(claims(me.access_token).session_id)
    const other = (await login('eva')).body
    const one = `/v1/admin/users/${eva.id}/sessions/${claims(other.access_token).session_id}`
    expect((await call('DELETE', one, admin.access_token)).status).toBe(204)
    expect((await refresh(me.refresh_token)).status).toBe(200)
    expect((await call('DELETE', `/v1/admin/users/${eva.id}/sessions`, admin.access_token)).status).toBe(204)
    expect(await auth.redis.get(`${auth.prefix}ub:{${eva.id}}`)).not.toBeNull()
    expect((await call('GET', `/v1/admin/users/${eva.id}/sessions`, admin.access_token)).body.items).toEqual([])
  })

  it('shows auditors the rows that the relay stored, page by page', async () => {
    const { db } = auth.session.deps
    for (let i = 0; i < 3; i++) {
      await db
        .insert(auth_events)
        .values({
          event_id: randomUUID(),
          at: new Date().toISOString(),
          actor: 'system',
          action: 'login',
          object: `user:${eva.id}`,
          outcome: 'denied',
          reason: `cause-${i}`,
          body: '{}',
        })
    }
    const path = `/v1/admin/auth-events?page_size=2&user_id=${eva.id}&type=login`
    const first = await call('GET', path, admin.access_token)
    expect((first.body.items as { reason: string }[]).map(({ reason }) => reason)).toEqual(['cause-2', 'cause-1'])
    const next = await call('GET', `${path}&page_token=${first.body.next_page_token}`, admin.access_token)
    expect((next.body.items as { reason: string }[]).map(({ reason }) => reason)).toEqual(['cause-0'])
    expect(next.body.next_page_token).toBeNull()
    // What happened to a person, and what that person did.
    const own = await call('GET', `${path}&actor=user:${eva.id}`, admin.access_token)
    for (const { actor } of own.body.items as { actor: string }[]) expect(actor).toBe(`user:${eva.id}`)
    const reversed = `${path}&from=2026-02-01T00:00:00Z&to=2026-01-01T00:00:00Z`
    expect(await call('GET', reversed, admin.access_token)).toMatchObject({
      status: 400,
      body: { code: 'schema_violation', violations: [{ pointer: '/querystring/from' }] },
    })
    expect((await call('GET', path, me.access_token)).status).toBe(403)
  })

  it('answers 404 for unknown users', async () => {
    for (const id of [randomUUID(), 'nobody']) {
      for (const method of ['GET', 'DELETE'] as const) {
        expect((await call(method, `/v1/admin/users/${id}/sessions`, admin.access_token)).status).toBe(404)
      }
    }
  })

  it('every route states its permission and kind', () => {
    const routes = authorizedRoutes(auth.session.app)
    expect(routes.length).toBeGreaterThanOrEqual(13)
    for (const { permissions } of routes) expect(permissions.length).toBeGreaterThan(0)
  })
})

describe('RPC', () => {
  const client = (name: string) =>
    createRpcClient(Session, {
      url: auth.session.rpc_url,
      signer: auth.services.signer(name),
      audience: 'session-internal',
    })

  it('revokes for the relay, once, and refuses other callers', async () => {
    const user = {
      userId: eva.id,
      keepSessionId: '',
      reason: 'user_disabled',
      requestId: 'request-1',
      clearLockout: false,
      actorId: '',
    }
    expect((await client('relay').revokeUserSessions(user)).revoked).toBeGreaterThan(0)
    expect((await client('relay').revokeUserSessions(user)).revoked).toBe(0)
    expect((await refresh(me.refresh_token)).status).toBe(401)
    await expect(client('catalog').revokeUserSessions(user)).rejects.toMatchObject({ code: Code.Unauthenticated })
    await expect(client('relay').createSession({ userId: eva.id, mode: ResponseMode.JSON })).rejects.toMatchObject({
      code: Code.PermissionDenied,
    })
    await expect(client('relay').revokeUserSessions({ ...user, reason: 'because' })).rejects.toMatchObject({
      code: Code.InvalidArgument,
    })
    await expect(
      client('relay').revokeSession({ sessionId: 'x', reason: 'admin', requestId: '' }),
    ).rejects.toMatchObject({ code: Code.InvalidArgument })
  })

  it('spares what began after a late change of the password, with that password or without one', async () => {
    const { id } = await auth.addUser('lea')
    const { store } = auth.session.deps
    const open = async (more: object) => {
      const session_id = randomUUID()
      const session = { session_id, user_id: id, username: 'lea', mode: 'json' as const, ...more }
      const { created_at } = await store.create(session, 20, { actor_type: 'system', request_id: 'request-1' })
      return { session_id, created_at }
    }
    const old = [await open({ password_version: 1 }), await open({ amr: ['hwk'] })]
    const at = (old.at(-1)?.created_at ?? 0) / 1000 + 2
    await delay(5)
    // Proved before it, by a request that waited for the next one.
    old.push(await open({ amr: ['fed'], begun_at: Math.floor(at - 1) * 1000 }))
    const kept = [await open({ password_version: 2 }), await open({ amr: ['fed'] })]
    const late = { userId: id, reason: 'password_changed', passwordVersion: 2 }
    await client('relay').revokeUserSessions({ ...late, occurredAt: timestampFromDate(new Date(at)) })
    const found = await Promise.all([...old, ...kept].map(({ session_id }) => store.get(id, session_id)))
    expect(found.map((record) => record !== undefined)).toEqual([false, false, false, true, true])
    // The tokens of those that stay count on.
    const ub = Number(await auth.redis.get(`${auth.prefix}ub:{${id}}`))
    expect(ub).toBeLessThanOrEqual(Math.floor((kept[0]?.created_at ?? 0) / 1_000_000))
  })

  it('creates pending sessions without tokens, only for active users and in a stated mode', async () => {
    const maker = createRpcClient(Session, {
      url: auth.session.rpc_url,
      signer: auth.services.sessionMaker,
      audience: 'session-internal',
    })
    const finn = await auth.addUser('finn')
    const agent = `${'x'.repeat(511)}🦊`
    const wanted = { userId: finn.id, mode: ResponseMode.JSON, userAgent: agent, metadata: { from: 'import' } }
    const { session } = await maker.createSession(wanted)
    expect(session).toMatchObject({ userId: finn.id, mode: ResponseMode.JSON, metadata: { from: 'import' } })
    expect(session?.userAgent).toHaveLength(512)
    expect(JSON.stringify(session, (_k, v) => (typeof v === 'bigint' ? String(v) : v))).not.toContain('hash')
    const record = await auth.redis.hgetall(`${auth.prefix}sess:{${finn.id}}:${session?.id}`)
    expect([record.state, record.refresh_token_hash]).toEqual(['pending', undefined])

    const refused = async (more: object, code = Code.InvalidArgument) =>
      expect(maker.createSession({ ...wanted, ...more }), JSON.stringify(more)).rejects.toMatchObject({ code })
    await refused({ mode: ResponseMode.UNSPECIFIED })
    await refused({ userId: randomUUID() })
    await refused({ userId: 'finn' })
    await refused({ metadata: { long: 'x'.repeat(2048) } })
    await auth.identity_deps.db.update(users).set({ status: 'DISABLED' }).where(eq(users.id, finn.id))
    await refused({})
    const cut = await auth.addSession({ AUTH__RPC__IDENTITY_URL: 'http://127.0.0.1:9' })
    const away = createRpcClient(Session, {
      url: cut.rpc_url,
      signer: auth.services.sessionMaker,
      audience: 'session-internal',
    })
    await expect(away.createSession(wanted)).rejects.toMatchObject({ code: Code.Unavailable })
  })

  it('refreshes JSON sessions, and reports a bad token as a bad argument', async () => {
    const maker = createRpcClient(Session, {
      url: auth.session.rpc_url,
      signer: auth.services.sessionMaker,
      audience: 'session-internal',
    })
    const retryKey = randomUUID()
    const first = await maker.refreshTokens({ refreshToken: String(me.refresh_token), retryKey, userAgent: 'x' })
    const again = await maker.refreshTokens({ refreshToken: String(me.refresh_token), retryKey, userAgent: 'x' })
    expect(again.refreshToken).toBe(first.refreshToken)
    const cookie = cookieOf(await login('eva', PASSWORD, '?response_mode=cookie')).slice('refresh_token='.length)
    for (const request of [
      { refreshToken: 'garbage' },
      { refreshToken: cookie },
      { refreshToken: first.refreshToken, retryKey: 'short' },
      { refreshToken: first.accessToken },
    ])
      await expect(maker.refreshTokens(request)).rejects.toMatchObject({ code: Code.InvalidArgument })
    await expect(maker.refreshTokens({ refreshToken: String(me.refresh_token) })).rejects.toMatchObject({
      code: Code.InvalidArgument,
    })
    expect((await refresh(first.refreshToken)).status).toBe(401)
  })

  it('reports a session that was idle for too long as over', async () => {
    const fresh = await auth.addSession({ SESSION__IDLE__LIMIT_S: '900' })
    const settings = { signer: auth.services.signer('operations'), audience: 'session-internal', timeout_ms: 5000 }
    const rpc = createRpcClient(Session, { url: fresh.rpc_url, ...settings })
    const { session_id, sub } = claims((await login('eva')).body.access_token)
    const active = async () => (await rpc.getSessionState({ userId: sub, sessionId: session_id })).active
    expect(await active()).toBe(true)
    await auth.redis.hset(`${auth.prefix}sess:{${sub}}:${session_id}`, 'last_used_at', (Date.now() - 901_000) * 1000)
    expect(await active()).toBe(false)
  })

  it('revokes a session by its id alone', async () => {
    const { session_id } = claims(me.access_token)
    await client('relay').revokeSession({ sessionId: session_id, reason: 'admin', requestId: 'request-2' })
    await client('relay').revokeSession({ sessionId: session_id, reason: 'admin', requestId: 'request-2' })
    expect((await refresh(me.refresh_token)).status).toBe(401)
  })
})

describe('data with a lifetime', () => {
  it('is removed when its time is over, and no other data', async () => {
    const { db } = auth.session.deps
    const key = randomUUID()
    await call('POST', '/v1/sessions/revoke-others', me.access_token, undefined, key)
    await call('DELETE', `/v1/sessions/${claims(me.access_token).session_id}`, me.access_token)
    const [kept] = await db.select().from(idempotency).where(eq(idempotency.key, key))
    const old = randomUUID()
    await db
      .insert(idempotency)
      .values({ ...(kept as typeof idempotency.$inferSelect), key: old, created_at: '2020-01-01T00:00:00Z' })
    const rows = await db.select().from(revocations)
    const [first] = rows
    if (!first) throw new Error('nothing was revoked')
    await db
      .update(revocations)
      .set({ expires_at: '2020-01-01T00:00:00Z' })
      .where(eq(revocations.event_id, first.event_id))
    expect([await pruneKeys(db, idempotency), await pruneRevocations(db)]).toEqual([1, 1])
    expect(await db.select().from(idempotency).where(eq(idempotency.key, key))).toHaveLength(1)
    expect(await db.select().from(revocations)).toHaveLength(rows.length - 1)
  })
})

describe('a Redis that lost data', () => {
  it('revives no session: revocations are applied again before any request is served', async () => {
    const { session_id } = claims(me.access_token)
    const key = `${auth.prefix}sess:{${eva.id}}:${session_id}`
    const old = await auth.redis.hgetall(key)
    await call('DELETE', `/v1/sessions/${session_id}`, me.access_token)
    const [row] = await auth.session.deps.db.select().from(revocations)
    expect(row).toBeDefined()
    // An older copy of the data: the record is back, the denial and the epoch are not.
    await auth.redis.hset(key, old)
    await auth.redis.del(`${auth.prefix}deny:{${eva.id}}:${session_id}`, `${auth.prefix}auth:epoch`)
    const fresh = await auth.addSession()
    expect(await auth.redis.exists(key)).toBe(0)
    expect(await auth.redis.exists(`${auth.prefix}deny:{${eva.id}}:${session_id}`)).toBe(1)
    expect((await send(`${fresh.url}/auth/refresh`, { body: { refresh_token: me.refresh_token } })).status).toBe(401)
  })

  it('is refused in production if its settings may lose sessions', async () => {
    const settings: Record<string, string> = {
      appendonly: 'no',
      appendfsync: 'everysec',
      'maxmemory-policy': 'allkeys-lru',
    }
    const weak = { config: async (_get: string, name: string) => [name, settings[name]] } as unknown as Parameters<
      typeof checkRedisSettings
    >[0]
    const { log } = auth.session.deps.telemetry
    await expect(checkRedisSettings(weak, true, log)).rejects.toThrow(
      /appendonly is no.*appendfsync is everysec.*maxmemory-policy is allkeys-lru/,
    )
    expect(await checkRedisSettings(weak, false, log)).toMatch(/appendonly/)
    Object.assign(settings, { appendonly: 'yes', appendfsync: 'always', 'maxmemory-policy': 'noeviction' })
    expect(await checkRedisSettings(weak, true, log)).toBeUndefined()
  })
})

it('cookie sessions keep a current cookie after a password change', async () => {
  await auth.addUser('cora')
  const answer = await login('cora', PASSWORD, '?response_mode=cookie')
  const done = await call('POST', '/v1/users/me/password', answer.body.access_token, {
    current_password: PASSWORD,
    new_password: NEW_PASSWORD,
  })
  expect(done.body.refresh_token).toBeUndefined()
  const next = await send(`${auth.session.url}/v1/token?response_mode=cookie`, {
    body: { grant_type: 'refresh_token' },
    headers: { cookie: cookieOf(done), 'x-csrf-token': String(done.body.csrf_token) },
  })
  expect(next.status).toBe(200)
})
