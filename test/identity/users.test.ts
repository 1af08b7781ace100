import { randomUUID } from 'node:crypto'
import { eq, sql } from 'drizzle-orm'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { buildApp } from '../../apps/identity/app.ts'
import { loadIdentityConfig } from '../../apps/identity/config.ts'
import { createDeps } from '../../apps/identity/wire.ts'
import { getUser, listUserEvents, lockAdmins } from '../../db/identity/queries.ts'
import { idempotency, outbox, user_events, users } from '../../db/identity/tables.ts'
import { until } from '../support/until.ts'
import { PASSWORD, startIdentity, type TestIdentity } from './support/harness.ts'

let p: TestIdentity
let ada: Awaited<ReturnType<TestIdentity['firstAdmin']>>
beforeAll(async () => {
  p = await startIdentity()
  ada = await p.firstAdmin()
})
afterAll(() => p.stop())

const reason = { reason: 'left the team' }
const verify = async (user_id: string, password: string) => {
  const { getCredential } = await import('../../db/credential/queries.ts')
  return p.credentialDeps.hashing.verify(
    user_id,
    (await getCredential(p.credentialDeps.db, user_id))?.password_hash,
    password,
    { key: '' },
  )
}

type Reply = Awaited<ReturnType<typeof ada.post>>
/** On a busy machine a request may wait too long. Its repeat has the same key. */
const repeated = async (send: (key: string) => Promise<Reply>): Promise<Reply> => {
  const key = randomUUID()
  const answer = async () => {
    const reply = await send(key)
    return reply.status === 503 || reply.body.code === 'in_progress' ? undefined : reply
  }
  return until(answer, { what: 'an answer' })
}

describe('a crowd of changes', () => {
  it('waits for its turn with few connections: reads stay possible, and who waits too long can repeat', async () => {
    const waiting = async () => {
      const { rows } = await p.deps.db.execute<{ n: number }>(sql`
        select count(*)::int as n from pg_locks where locktype = 'advisory' and not granted
          and database = (select oid from pg_database where datname = current_database())`)
      return rows[0]?.n
    }
    let crowd: Promise<Reply>[] = []
    await p.deps.db.transaction(async (tx) => {
      await lockAdmins(tx)
      crowd = Array.from({ length: 20 }, (_, n) =>
        repeated((key) => ada.post('/v1/admin/users', { username: `crowd-${n}` }, { key })),
      )
      await until(async () => Number(await waiting()) >= 4)
      expect((await ada.get('/v1/admin/users')).status).toBe(200)
      expect(await waiting()).toBeLessThanOrEqual(4)
    })
    expect((await Promise.all(crowd)).map(({ status }) => status)).toEqual(Array(20).fill(201))
  })
})

describe('creating a user', () => {
  it('answers the user with its grants and a one-time link on the public origin', async () => {
    const { status, body } = await ada.post('/v1/admin/users', {
      username: 'Olga',
      grants: [{ role: 'operator', scope: { region_id: 'eu' } }],
    })
    expect(status).toBe(201)
    expect(body).toMatchObject({
      user: {
        username: 'Olga',
        status: 'ACTIVE',
        disabled_at: null,
        roles: ['operator'],
        groups: [],
        grants: [{ role: 'operator', scope: { region_id: 'eu' }, expires_at: null, via_group_key: null }],
      },
      enrolment: { url: expect.stringMatching(/^http:\/\/localhost:8080\/enrol#e1\./) },
    })
  })
  it('happens once per Idempotency-Key: the same user, the same link, marked as a replay, and the link stored nowhere', async () => {
    const key = randomUUID()
    const first = await ada.post('/v1/admin/users', { username: 'twice' }, { key })
    const second = await ada.post('/v1/admin/users', { username: 'twice' }, { key })
    expect(second.body).toEqual(first.body)
    expect(second.headers['idempotency-replayed']).toBe('true')
    expect((await ada.post('/v1/admin/users', { username: 'other' }, { key })).body).toMatchObject({
      status: 422,
      code: 'idempotency_key_reused',
    })
    const { token } = first.body.enrolment as { token: string }
    const { rows } = await p.deps.db.execute(`select encode(body, 'escape') as body from identity.idempotency`)
    expect(JSON.stringify(rows)).not.toContain(token.split('.')[3])
    const events = await p.deps.db.select({ body: user_events.body }).from(user_events)
    expect(JSON.stringify(events)).not.toContain(token.split('.')[3])
  })
  it('creates one user from many parallel requests with one name', async () => {
    const replies = await Promise.all(
      Array.from({ length: 8 }, () => ada.post('/v1/admin/users', { username: 'racer' })),
    )
    expect(replies.filter(({ status }) => status === 201).length).toBe(1)
    expect(replies.filter(({ body }) => body.code === 'username_taken').length).toBe(7)
  })
  it('distinguishes names only by their folded form', async () => {
    await p.newUser(ada, [], 'Straße')
    for (const username of ['STRASSE', 'strasse', 'ＳＴＲＡＳＳＥ']) {
      expect((await ada.post('/v1/admin/users', { username })).body).toMatchObject({
        status: 409,
        code: 'username_taken',
      })
    }
  })
  it.each([
    ['', 'an empty name'],
    ['a b', 'white space'],
    ['x'.repeat(65), 'a long name'],
    ['a\u0000b', 'NUL'],
    ['ﷺ', 'a character that becomes a phrase'],
    [`${'ｘ'.repeat(60)}ﬃﬃ`, 'a name that grows beyond 64'],
    ['\u0435va', 'a Cyrillic letter among Latin ones'],
    ['olg\u03b1', 'a Greek letter among Latin ones'],
    ['..', 'a step in a path'],
    ['System', 'an actor of history'],
  ])('refuses %j (%s) with 400', async (username) => {
    expect((await ada.post('/v1/admin/users', { username })).status).toBe(400)
  })
  it.each(['ева', 'Ágnes-2', '山田ハナ', '김-하나', 'بثينة', 'o’brien'.replace('’', '.')])(
    'accepts %j: one script, as people write it',
    async (username) => {
      expect((await ada.post('/v1/admin/users', { username })).status).toBe(201)
    },
  )
  it('refuses a scope for admin and auditor, unknown fields, and a request without a key', async () => {
    const made = (body: object) => ada.post('/v1/admin/users', body)
    expect(
      (await made({ username: 'n1', grants: [{ role: 'admin', scope: { region_id: 'eu' } }] })).body,
    ).toMatchObject({ status: 422, code: 'scope_not_allowed' })
    expect((await made({ username: 'n2', status: 'ACTIVE' })).body).toMatchObject({
      status: 400,
      code: 'schema_violation',
    })
    expect((await made({ username: 'n3', grants: [{ role: 'root' }] })).status).toBe(400)
    expect((await p.app.inject({ method: 'POST', url: '/v1/admin/users' })).statusCode).toBe(401)
    expect((await ada.post('/v1/admin/users', { username: 'n4' }, { headers: { 'idempotency-key': '' } })).status).toBe(
      400,
    )
  })
  it('refuses a repeated grant at the second one, also if only its end or the order of its scope differs', async () => {
    const [role, scope] = ['viewer', { region_id: 'eu', datacenter_id: 'eu1' }]
    const turned = { datacenter_id: 'eu1', region_id: 'eu' }
    for (const grants of [
      [{ role }, { role }],
      [{ role }, { role, expires_at: '2999-01-01T00:00:00Z' }],
      [
        { role, scope },
        { role, scope: turned },
      ],
    ])
      expect((await ada.post('/v1/admin/users', { username: 'double', grants })).body).toMatchObject({
        status: 422,
        code: 'schema_violation',
        violations: [{ pointer: '/grants/1' }],
      })
    const other = { username: 'double', grants: [{ role }, { role, scope }] }
    expect((await ada.post('/v1/admin/users', other)).status).toBe(201)
  })
})

describe('enrolment', () => {
  it('sets the first password once (ASVS 6.4.1)', async () => {
    const user = await p.newUser(ada)
    expect((await p.enrol(user.token)).status).toBe(204)
    expect(await verify(user.user_id, PASSWORD)).toBe(true)
    expect((await p.enrol(user.token, 'Vellum.Otter.Hinge.83')).body).toMatchObject({
      status: 422,
      code: 'enrolment_token_invalid',
    })
    expect(await verify(user.user_id, PASSWORD)).toBe(true)
  })
  it('answers a repeat with the same key as the first time', async () => {
    const user = await p.newUser(ada)
    const key = randomUUID()
    expect((await p.enrol(user.token, PASSWORD, { key })).status).toBe(204)
    const again = await p.enrol(user.token, PASSWORD, { key })
    expect([again.status, again.headers['idempotency-replayed']]).toEqual([204, 'true'])
  })
  it('shares its place in the queue of hashes with its whole network', async () => {
    const asked = vi.spyOn(p.deps.credential, 'setPassword')
    for (const address of ['2001:db8:1:2::1', '2001:db8:1:2:ffff::2', '2001:db8:1:3::1']) {
      const { token } = await p.newUser(ada)
      expect((await p.enrol(token, PASSWORD, { headers: { 'x-forwarded-for': address } })).status).toBe(204)
    }
    const [one, same, other] = asked.mock.calls.map(([{ queueKey }]) => queueKey)
    asked.mockRestore()
    expect(same).toBe(one)
    expect(other).not.toBe(one)
  })
  it('refuses another password under the same key', async () => {
    const user = await p.newUser(ada)
    const key = randomUUID()
    expect((await p.enrol(user.token, PASSWORD, { key })).status).toBe(204)
    expect((await p.enrol(user.token, 'Vellum.Otter.Hinge.83', { key })).body).toMatchObject({
      status: 422,
      code: 'idempotency_key_reused',
    })
    expect(await verify(user.user_id, PASSWORD)).toBe(true)
    const rows = await p.deps.db.select().from(idempotency)
    expect(rows.filter(({ caller }) => caller === `enrolment:${user.token.split('.')[2]}`)).toHaveLength(1)
  })
  it('leaves one audit row for each use and refused use of a link, and the link in none', async () => {
    const user = await p.newUser(ada)
    const key = randomUUID()
    for (let i = 0; i < 2; i++) await p.enrol(user.token, PASSWORD, { key })
    await p.enrol(user.token, PASSWORD)
    const rows = await p.deps.db
      .select()
      .from(user_events)
      .where(eq(user_events.object, `user:${user.user_id}`))
    expect(rows.map(({ action, outcome, reason }) => [action, outcome, reason])).toEqual([
      ['single_control', 'done', 'user.created'],
      ['user.created', 'done', null],
      ['user.enrolled', 'done', null],
      ['user.enrolled', 'denied', 'enrolment_token_invalid'],
    ])
    expect(JSON.stringify(rows, (_key, value) => (typeof value === 'bigint' ? String(value) : value))).not.toContain(
      user.token.split('.')[3],
    )
  })
  it('names the first rule that a weak password breaks, and all of them', async () => {
    const user = await p.newUser(ada)
    const { body } = await p.enrol(user.token, 'abc')
    expect(body).toMatchObject({ status: 422, category: 'validation_error', code: 'PasswordTooWeakError' })
    expect((body.violations as { code: string; pointer: string }[]).map(({ code }) => code)).toEqual(
      expect.arrayContaining([
        'PasswordMissingUppercaseError',
        'PasswordMissingDigitError',
        'PasswordMissingSpecialCharError',
      ]),
    )
    expect((await p.enrol(user.token)).status).toBe(204)
  })
  it('counts the username as a weak word', async () => {
    const user = await p.newUser(ada, [], 'wolfgang.amadeus')
    expect((await p.enrol(user.token, 'Wolfgang.amadeus1')).body.code).toBe('PasswordTooWeakError')
  })
  it.each(['', 'x', 'e1.a.b.c', `e1.${randomUUID()}.${randomUUID()}.AAAA`])(
    'refuses the token %j, never with a 500',
    async (token) => {
      expect([400, 422]).toContain((await p.enrol(token)).status)
    },
  )
  it('refuses half a character and over-long passwords with 400', async () => {
    const user = await p.newUser(ada)
    expect((await p.enrol(user.token, 'Tr0mbone-\ud800-Glacier')).status).toBe(400)
    expect((await p.enrol(user.token, 'x'.repeat(129))).status).toBe(400)
  })
  it('ends for a user who is disabled', async () => {
    const user = await p.newUser(ada)
    await ada.post(`/v1/admin/users/${user.user_id}/disable`, reason)
    expect((await p.enrol(user.token)).body.code).toBe('enrolment_token_invalid')
  })
  it('can be started again by another administrator, never for oneself', async () => {
    const user = await p.newUser(ada)
    const { status, body } = await ada.post(`/v1/admin/users/${user.user_id}/enrolment-token`)
    expect(status).toBe(201)
    expect((await p.enrol((body.enrolment as { token: string }).token)).status).toBe(204)
    expect((await ada.post(`/v1/admin/users/${ada.user_id}/enrolment-token`)).body).toMatchObject({
      status: 403,
      code: 'self_action',
    })
    expect((await ada.post(`/v1/admin/users/${randomUUID()}/enrolment-token`)).status).toBe(404)
  })
})

describe('a newer link', () => {
  it('ends the older ones of its account, and only it ends a recovery', async () => {
    const user = await p.newUser(ada)
    const path = `/v1/admin/users/${user.user_id}`
    const tokenOf = ({ body }: { body: Record<string, unknown> }) => (body.enrolment as { token: string }).token
    const key = randomUUID()
    const first = tokenOf(await ada.post(`${path}/enrolment-token`, undefined, { key }))
    expect((await p.enrol(user.token)).body.code).toBe('enrolment_token_invalid')
    const newest = tokenOf(await ada.post(`${path}/recovery`))
    expect((await p.enrol(first)).body.code).toBe('enrolment_token_invalid')
    const again = await ada.post(`${path}/enrolment-token`, undefined, { key })
    expect(again).toMatchObject({ status: 409, body: { code: 'change_closed' } })
    const recovering = async () => (await getUser(p.deps.db, user.user_id))?.recovering
    expect(await recovering()).toBe(true)
    expect((await p.enrol(newest)).status).toBe(204)
    expect(await recovering()).toBe(false)
  })

  it('is the only one that works, of twenty that were made at once', async () => {
    const user = await p.newUser(ada)
    const made = await Promise.all(
      Array.from({ length: 20 }, () =>
        repeated((key) => ada.post(`/v1/admin/users/${user.user_id}/recovery`, undefined, { key })),
      ),
    )
    const links = made.flatMap(({ body }) => (body.enrolment as { token: string } | undefined)?.token ?? [])
    expect(links.length).toBeGreaterThan(0)
    const used = []
    for (const link of links) used.push((await repeated((key) => p.enrol(link, PASSWORD, { key }))).status)
    expect(used.filter((status) => status === 204)).toEqual([204])
    expect((await getUser(p.deps.db, user.user_id))?.recovering).toBe(false)
  })
})

describe('disable, enable, delete', () => {
  it('answers 202 while the sessions may still live, and 200 once the relay has ended them', async () => {
    const user = await p.newUser(ada, ['viewer'])
    const key = randomUUID()
    const url = `/v1/admin/users/${user.user_id}/disable`
    p.relay.runs = false
    expect(await ada.post(url, reason, { key })).toMatchObject({
      status: 202,
      body: { sessions: 'pending', user: { status: 'DISABLED', roles: [] } },
    })
    expect((await user.get('/v1/users/me')).status).toBe(401)
    // Another request finds the status as wanted, while the sessions of the first change still live.
    expect(await ada.post(url, reason)).toMatchObject({ status: 202, body: { sessions: 'pending' } })
    p.relay.runs = true
    expect(await ada.post(url, reason, { key })).toMatchObject({ status: 200, body: { sessions: 'revoked' } })
  })
  it('promises one event per change, with dense versions, and none for an unchanged user', async () => {
    const user = await p.newUser(ada)
    const move = async (verb: string) => {
      const { status, body } = await ada.post(`/v1/admin/users/${user.user_id}/${verb}`, reason)
      expect(status).toBe(200)
      return body.user as { status: string; disabled_at: string | null }
    }
    expect((await move('disable')).disabled_at).not.toBeNull()
    expect((await move('disable')).status).toBe('DISABLED')
    expect(await move('enable')).toMatchObject({ status: 'ACTIVE', disabled_at: null })
    expect((await move('delete')).status).toBe('DELETED')
    const events = await p.deps.db
      .select()
      .from(outbox)
      .where(eq(outbox.agg_id, user.user_id))
      .orderBy(outbox.agg_version)
    expect(events.map(({ payload, type }) => [type, payload.from, payload.to, payload.user_version])).toEqual([
      ['auth.user.status_changed.v1', 'ACTIVE', 'DISABLED', 2],
      ['auth.user.status_changed.v1', 'DISABLED', 'ACTIVE', 3],
      ['auth.user.status_changed.v1', 'ACTIVE', 'DELETED', 4],
    ])
    expect(events[0]?.payload).toMatchObject({ user_id: user.user_id, actor: { type: 'user', id: ada.user_id } })
  })
  it('is final for a deleted user, whose name is never reused (ASVS 10.3.3)', async () => {
    const user = await p.newUser(ada, [], 'gone')
    await ada.post(`/v1/admin/users/${user.user_id}/delete`, reason)
    expect((await ada.post(`/v1/admin/users/${user.user_id}/enable`, reason)).body).toMatchObject({
      status: 409,
      code: 'user_deleted',
    })
    expect((await ada.post('/v1/admin/users', { username: 'GONE' })).body.code).toBe('username_taken')
    expect(
      (await ada.post('/v1/admin/grants', { subject_type: 'user', subject_id: user.user_id, role: 'viewer' })).body
        .code,
    ).toBe('user_deleted')
  })
  it('is refused for oneself and for unknown users', async () => {
    for (const verb of ['disable', 'delete']) {
      expect((await ada.post(`/v1/admin/users/${ada.user_id}/${verb}`, reason)).body).toMatchObject({
        status: 403,
        code: 'self_action',
      })
    }
    for (const id of [randomUUID(), 'nobody', 'x'.repeat(64)])
      expect((await ada.post(`/v1/admin/users/${id}/disable`, reason)).status).toBe(404)
  })
  it('needs a reason', async () => {
    const user = await p.newUser(ada)
    for (const body of [{}, { reason: '' }, undefined])
      expect((await ada.post(`/v1/admin/users/${user.user_id}/disable`, body)).status).toBe(400)
  })
})

describe('a fresh password', () => {
  const stale = Math.floor(Date.now() / 1000) - 1000
  it('is needed to grant, not to revoke', async () => {
    const user = await p.newUser(ada)
    for (const [url, body] of [
      ['/v1/admin/users', { username: 'stale' }],
      ['/v1/admin/groups', { group_key: 'stale', name: 'x' }],
      ['/v1/admin/grants', { subject_type: 'user', subject_id: user.user_id, role: 'viewer' }],
      [`/v1/admin/users/${user.user_id}/enrolment-token`, undefined],
    ] as const) {
      expect([url, (await ada.post(url, body, { auth_time: stale })).body.code]).toEqual([url, 'reauth_required'])
    }
    expect((await ada.post(`/v1/admin/users/${user.user_id}/disable`, reason, { auth_time: stale })).status).toBe(200)
    expect((await ada.post(`/v1/admin/users/${user.user_id}/enable`, reason, { auth_time: stale })).body.code).toBe(
      'reauth_required',
    )
  })
})

describe('reading', () => {
  it('shows oneself with the session', async () => {
    const user = await p.newUser(ada, ['approver'])
    const { status, body, headers } = await user.get('/v1/users/me')
    expect(status).toBe(200)
    expect(body).toMatchObject({
      id: user.user_id,
      username: user.username,
      roles: ['approver'],
      groups: [],
      session: { mode: 'json' },
    })
    expect(headers['cache-control']).toBe('no-store')
  })
  it('pages through users by name without gap or repeat, also while others are added', async () => {
    for (let i = 0; i < 7; i++) await p.newUser(ada, [], `page-${i}`)
    const names: string[] = []
    let token: string | null = null
    do {
      const { body } = await ada.get(
        `/v1/admin/users?q=page-&page_size=3${token ? `&page_token=${encodeURIComponent(token)}` : ''}`,
      )
      names.push(...(body.items as { username: string }[]).map(({ username }) => username))
      token = body.next_page_token as string | null
    } while (token)
    expect(names).toEqual(Array.from({ length: 7 }, (_, i) => `page-${i}`))
    const { body } = await ada.get('/v1/admin/users?q=page-&page_size=3')
    expect((await ada.get(`/v1/admin/users?page_token=${String(body.next_page_token)}`)).status).toBe(400)
    expect((await ada.get('/v1/admin/users?page_token=forged.token')).status).toBe(400)
  })
  it('goes on with pages and replays changes in a process that signs with the next key', async () => {
    const keys = (JSON.parse(p.env.IDENTITY__SECRET__KEYS) as string[]).toReversed()
    const deps = createDeps(loadIdentityConfig({ ...p.env, IDENTITY__SECRET__KEYS: JSON.stringify(keys) }))
    const { app, internal } = buildApp(deps)
    await deps.jwks.start()
    for (const list of ['users', 'user-events']) {
      const { body } = await ada.get(`/v1/admin/${list}?page_size=1`)
      const more = `/v1/admin/${list}?page_size=1&page_token=${body.next_page_token}`
      expect((await ada.get(more, { at: app })).status).toBe(200)
    }
    const [key, created] = [randomUUID(), { username: 'rotated', grants: [] }]
    const first = await ada.post('/v1/admin/users', created, { key })
    const again = await ada.post('/v1/admin/users', created, { key, at: app })
    expect(again).toMatchObject({ status: 201, body: first.body, headers: { 'idempotency-replayed': 'true' } })
    await Promise.all([app.close(), internal.close()])
    await deps.close()
  })
  it('finds by status and by part of the name, and treats wildcards as text', async () => {
    await p.newUser(ada, [], 'per_cent')
    expect(((await ada.get('/v1/admin/users?q=per%25')).body.items as unknown[]).length).toBe(0)
    expect(((await ada.get('/v1/admin/users?q=r_c')).body.items as unknown[]).length).toBe(1)
    expect((await ada.get('/v1/admin/users?status=GONE')).status).toBe(400)
    expect((await ada.get('/v1/admin/users?q=%00')).status).toBe(400)
  })
  it('gives one user with an ETag that changes with every grant', async () => {
    const user = await p.newUser(ada)
    const url = `/v1/admin/users/${user.user_id}`
    const before = (await ada.get(url)).headers.etag
    await ada.post('/v1/admin/grants', { subject_type: 'user', subject_id: user.user_id, role: 'viewer' })
    expect((await ada.get(url)).headers.etag).not.toBe(before)
    expect((await ada.get('/v1/admin/users/nobody')).status).toBe(404)
  })
})

describe('the audit log', () => {
  it('has a row for every change and every refusal, and can be searched', async () => {
    const user = await p.newUser(ada)
    await ada.post(`/v1/admin/users/${user.user_id}/disable`, reason)
    const { body } = await ada.get(`/v1/admin/user-events?user_id=${user.user_id}`)
    expect(body.items).toMatchObject([
      { action: 'user.disabled', actor: `user:${ada.user_id}`, outcome: 'done', reason: reason.reason },
      { action: 'user.created', roles: ['admin'] },
      { action: 'single_control', reason: 'user.created' },
    ])
    const viewer = await p.newUser(ada, ['viewer'])
    await viewer.post('/v1/admin/users', { username: 'x' })
    const subject = { subject_type: 'user', subject_id: viewer.user_id, role: 'operator' }
    const { id } = (await ada.post('/v1/admin/grants', subject)).body as { id: string }
    expect((await ada.delete(`/v1/admin/grants/${id}`)).status).toBe(204)
    const about = (await ada.get(`/v1/admin/user-events?user_id=${viewer.user_id}&page_size=2`)).body
    expect(about.items).toMatchObject([
      { action: 'grant.deleted', object: `grant:${id}`, details: subject },
      { action: 'grant.created', object: `grant:${id}`, details: subject },
    ])
    const by = (await ada.get(`/v1/admin/user-events?user_id=${viewer.user_id}&actor=user:${viewer.user_id}`)).body
    expect(by.items).toEqual([])
    const acts = (await ada.get(`/v1/admin/user-events?actor=user:${ada.user_id}&object=grant:${id}`)).body
    const actions = (acts.items as { action: string }[]).map(({ action }) => action)
    expect(actions).toEqual(['grant.deleted', 'grant.created', 'single_control'])
    const reversed = '/v1/admin/user-events?from=2026-02-01T00:00:00Z&to=2026-01-01T00:00:00Z'
    const violations = [{ pointer: '/querystring/from' }]
    expect(await ada.get(reversed)).toMatchObject({ status: 400, body: { violations } })
    await ada.post(`/v1/admin/users/${ada.user_id}/disable`, reason)
    const denied = (await ada.get('/v1/admin/user-events?type=request.denied&page_size=2')).body.items as {
      actor: string
      reason: string
    }[]
    expect(denied.map(({ actor, reason: why }) => [actor, why])).toEqual([
      [`user:${ada.user_id}`, 'self_action'],
      [`user:${viewer.user_id}`, 'permission_missing'],
    ])
  })

  it('finds the events of a user by indexes', async () => {
    const { db } = p.deps
    await db.execute(sql`insert into identity.user_events (actor, action, object, outcome, body, mac)
      select 'system', 'grant.created', case when n % 2 = 0 then 'grant:' else 'user:' end || gen_random_uuid(), 'done',
        '{"details":{"subject_id":"' || gen_random_uuid() || '"}}', '' from generate_series(1, 5000) n`)
    await db.execute(sql`analyze identity.user_events`)
    const user = await p.newUser(ada, ['viewer'])
    const query = listUserEvents(db, { user_id: user.user_id }, 51)
    expect((await query).map(({ action }) => action)).toContain('user.created')
    const { rows } = await db.execute(sql`explain (analyze, format json) ${query}`)
    const plan = JSON.stringify(rows)
    expect(plan).toContain('user_events_named_user')
    expect(plan).not.toMatch(/Seq Scan|"Rows Removed by Filter":[1-9]\d{2}/)
  })
})

it('no user is kept without a folded name, and none has two', async () => {
  const rows = await p.deps.db.select().from(users)
  expect(new Set(rows.map(({ folded }) => folded)).size).toBe(rows.length)
})
