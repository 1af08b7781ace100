import { randomUUID } from 'node:crypto'
import { Code } from '@connectrpc/connect'
import { eq } from 'drizzle-orm'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { enrolHere } from '../../apps/identity/users/bootstrap.ts'
import { verifyLog } from '../../apps/platform/ops/verify-audit.ts'
import { authorizedRoutes } from '../../apps/shared/auth/http.ts'
import { type Permission, permissionsOf, ROLES } from '../../apps/shared/auth/permissions.ts'
import { principalOf } from '../../apps/shared/auth/principals.ts'
import { Identity, UserStatus } from '../../apps/shared/contracts/gen/auth_pb.ts'
import { createRpcClient } from '../../apps/shared/rpc/client.ts'
import { appendAuditTo } from '../../db/audit.ts'
import { grants, outbox, user_events, users } from '../../db/identity/tables.ts'
import { counted } from '../session/support/auth.ts'
import { startIdentity, type TestIdentity } from './support/harness.ts'

let p: TestIdentity
let ada: Awaited<ReturnType<TestIdentity['firstAdmin']>>
beforeAll(async () => {
  p = await startIdentity()
  ada = await p.firstAdmin()
})
afterAll(() => p.stop())

const grant = (subject_id: string, role: string, more: object = {}) =>
  ada.post('/v1/admin/grants', { subject_type: 'user', subject_id, role, ...more })
/** Lets a grant end that was just made. */
const end = ({ body }: Awaited<ReturnType<typeof grant>>) =>
  p.deps.db
    .update(grants)
    .set({ expires_at: new Date().toISOString() })
    .where(eq(grants.id, String(body.id)))
const newGroup = async () => {
  const group_key = `g-${randomUUID().slice(0, 8)}`
  expect((await ada.post('/v1/admin/groups', { group_key, name: 'A group' })).status).toBe(201)
  return group_key
}
const rolesOf = async (user: { get: (url: string) => Promise<{ body: Record<string, unknown> }> }) =>
  (await user.get('/v1/users/me')).body.roles

/** The signed details of the rows about this object, by action. */
const saidOf = async (object: string) => {
  const rows = await p.deps.db.select().from(user_events).where(eq(user_events.object, object))
  return Object.fromEntries(rows.map(({ action, body }) => [action, JSON.parse(body).details]))
}

describe('the audit log', () => {
  it('says who got and lost which right where, in bodies that verify beside rows without', async () => {
    const { user_id } = await p.newUser(ada, ['viewer'])
    const { id } = (await grant(user_id, 'engineer')).body
    expect((await ada.send('DELETE', `/v1/admin/grants/${id}`)).status).toBe(204)
    const right = { subject_type: 'user', subject_id: user_id, role: 'engineer', scope: {}, expires_at: null }
    expect(await saidOf(`grant:${id}`)).toEqual({ 'grant.created': right, 'grant.deleted': right })
    const group_key = await newGroup()
    for (const act of ['PUT', 'DELETE'])
      expect((await ada.send(act, `/v1/admin/groups/${group_key}/members/${user_id}`)).status).toBe(204)
    const [added, removed] = ['group.member_added', 'group.member_removed']
    expect(await saidOf(`group:${group_key}`)).toMatchObject({
      'group.created': { name: 'A group' },
      ...{ [added]: { user_id }, [removed]: { user_id } },
    })
    const entry = { actor: 'system', action: 'test', object: 'test:1', outcome: 'done' as const }
    await p.deps.db.transaction((tx) =>
      appendAuditTo(tx, user_events, p.deps.keys.audit, [
        entry,
        { ...entry, action: 'long', details: { long: 'x'.repeat(1100), short: 1 } },
      ]),
    )
    expect(await saidOf('test:1')).toEqual({ test: undefined, long: { cut: true, short: 1 } })
    const verdict = await verifyLog(p.deps.db, 'identity.user_events', [p.deps.keys.audit])
    expect(verdict).not.toHaveProperty('fault')
  })
})

/** A body that fits the schema of the route, so that the permission decides. */
const bodyOf = (method: string, url: string): unknown => {
  const name = `w-${randomUUID().slice(0, 8)}`
  const bodies: Record<string, unknown> = {
    'POST /v1/admin/users': { username: name },
    'POST /v1/admin/groups': { group_key: name, name },
    'POST /v1/admin/grants': { subject_type: 'user', subject_id: randomUUID(), role: 'viewer' },
    'PATCH /v1/admin/groups/:group_key': { name },
    'POST /v1/users/me/views': { list: 'inbox', name, filters: {} },
    'PATCH /v1/users/me/views/:view_id': { name },
    'PUT /v1/users/me/preferences': { theme: 'dark' },
    'POST /v1/admin/machines': { name, owners: [randomUUID()] },
    'POST /v1/admin/machines/:machine_id/credentials': { kind: 'key', name, permissions: ['catalog:read'] },
    'POST /v1/admin/machines/:machine_id/credentials/:credential_id/rotate': {},
    'POST /v1/admin/changes/:change_id/confirm': { digest: 'sha256:0' },
  }
  return bodies[`${method} ${url}`] ?? (/(able|delete)$/.test(url) ? { reason: 'x' } : undefined)
}

describe('every route', () => {
  it('is open to exactly the roles that hold its permission', async () => {
    const people: { role: string; user: Awaited<ReturnType<typeof p.newUser>> }[] = []
    // One after the other: creations share a lock, and a busy machine refuses the last of a crowd.
    for (const role of ROLES) people.push({ role, user: await p.newUser(ada, [role]) })
    const routes = authorizedRoutes(p.app).filter(({ method }) => method !== 'HEAD')
    expect(routes.length).toBeGreaterThan(15)
    for (const { method, url, permissions } of routes) {
      if (permissions.includes('none')) continue
      const path = url
        .replace(':user_id', randomUUID())
        .replace(':group_key', 'no-such')
        .replace(':grant_id', randomUUID())
        .replace(':change_id', randomUUID())
        .replace(':machine_id', randomUUID())
        .replace(':credential_id', randomUUID())
        .replace(':view_id', randomUUID())
      const anonymous = await p.app.inject({ method: method as 'GET', url: path, headers: { 'idempotency-key': 'k' } })
      expect([method, url, anonymous.statusCode]).toEqual([method, url, 401])
      for (const { role, user } of people) {
        const payload = bodyOf(method, url)
        const reply = await user.send(method, path, payload)
        const held = permissionsOf([role])
        const may = permissions.some((wanted) => wanted === 'self' || held.has(wanted as Permission))
        expect([method, url, role, reply.status === 403 && reply.body.code === 'permission_missing']).toEqual([
          method,
          url,
          role,
          !may,
        ])
      }
    }
    const boss = people.find(({ role }) => role === 'admin')
    expect((await ada.post(`/v1/admin/users/${boss?.user.user_id}/delete`, { reason: 'x' })).status).toBe(200)
  })
  it('allows no cache to store its answers', async () => {
    const routes = authorizedRoutes(p.app).filter(({ method }) => method === 'GET')
    for (const { url } of routes) {
      const path = url.replace(':user_id', ada.user_id ?? '')
      expect([url, (await ada.get(path)).headers['cache-control']]).toEqual([url, 'no-store'])
    }
    const { headers } = await ada.post('/v1/admin/users', { username: 'cached' })
    expect(headers['cache-control']).toBe('no-store')
  })
  it('counts and audits every 403 once, whatever the cause', async () => {
    const seen = () => counted(p.deps.telemetry.metrics, 'signalbox_policy_denied_total')
    const rows = async () =>
      (await ada.get('/v1/admin/user-events?page_size=500&type=request.denied')).body.items as unknown[]
    const [count, audited] = [await seen(), (await rows()).length]
    const viewer = await p.newUser(ada, ['viewer'])
    const old = { auth_time: Math.floor(Date.now() / 1000) - 901 }
    expect((await viewer.get('/v1/admin/users')).body.code).toBe('permission_missing')
    expect((await ada.post('/v1/admin/users', { username: 'late' }, old)).body.code).toBe('reauth_required')
    expect((await ada.post(`/v1/admin/users/${ada.user_id}/disable`, { reason: 'x' })).body.code).toBe('self_action')
    const self = { subject_type: 'user', subject_id: ada.user_id, role: 'operator' }
    expect((await ada.post('/v1/admin/grants', self)).body.code).toBe('self_grant')
    expect([await seen(), (await rows()).length]).toEqual([count + 4, audited + 4])
  })
  it('names the permission that is missing', async () => {
    const viewer = await p.newUser(ada, ['viewer'])
    expect((await viewer.get('/v1/admin/users')).body).toMatchObject({
      category: 'policy_denied',
      code: 'permission_missing',
      permission: 'identity:read',
    })
  })
})

describe('grants', () => {
  it('take effect with the next request, and end with it when removed', async () => {
    const user = await p.newUser(ada)
    expect((await user.get('/v1/admin/roles')).status).toBe(403)
    const { status, body } = await grant(user.user_id, 'auditor')
    expect(status).toBe(201)
    expect((await user.get('/v1/admin/roles')).status).toBe(200)
    expect((await ada.delete(`/v1/admin/grants/${String(body.id)}`)).status).toBe(204)
    expect((await user.get('/v1/admin/roles')).status).toBe(403)
    expect((await ada.delete(`/v1/admin/grants/${String(body.id)}`)).status).toBe(404)
  })
  it('end at their time', async () => {
    const user = await p.newUser(ada)
    await grant(user.user_id, 'auditor', { expires_at: new Date(Date.now() + 3600_000).toISOString() })
    await end(await grant(user.user_id, 'viewer'))
    expect(await rolesOf(user)).toEqual(['auditor'])
  })
  it('are refused if they could never apply', async () => {
    const user = await p.newUser(ada)
    const past = { expires_at: new Date(Date.now() - 1000).toISOString() }
    const wrong = { status: 422, code: 'schema_violation', hint: expect.stringContaining('in the future') }
    expect((await grant(user.user_id, 'viewer', past)).body).toMatchObject(wrong)
    const created = await ada.post('/v1/admin/users', { username: 'late', grants: [{ role: 'viewer', ...past }] })
    expect(created.body).toMatchObject({ ...wrong, violations: [{ pointer: '/grants/0/expires_at' }] })
    for (const type_key of ['*', '*.host', 'fleet.*.host', 'fleet', 'fleet.'])
      expect([type_key, (await grant(user.user_id, 'viewer', { scope: { type_key } })).status]).toEqual([type_key, 400])
    for (const type_key of ['fleet.*', 'fleet.host'])
      expect((await grant(user.user_id, 'operator', { scope: { type_key } })).status).toBe(201)
  })
  it('are refused if doubled, for an unknown subject, with a scope on an unscoped role, and for oneself', async () => {
    const user = await p.newUser(ada)
    await grant(user.user_id, 'operator', { scope: { region_id: 'eu' } })
    expect((await grant(user.user_id, 'operator', { scope: { region_id: 'eu' } })).body).toMatchObject({
      status: 409,
      code: 'grant_exists',
    })
    expect((await grant(user.user_id, 'operator', { scope: { region_id: 'us' } })).status).toBe(201)
    expect((await grant(randomUUID(), 'viewer')).status).toBe(404)
    expect((await grant(user.user_id, 'auditor', { scope: { region_id: 'eu' } })).body).toMatchObject({
      status: 422,
      code: 'scope_not_allowed',
    })
    expect((await grant(String(ada.user_id), 'operator')).body).toMatchObject({ status: 403, code: 'self_grant' })
    expect((await grant(user.user_id, 'operator', { scope: { planet: 'mars' } })).status).toBe(400)
  })
  it('can be granted again once they have ended', async () => {
    const user = await p.newUser(ada)
    await end(await grant(user.user_id, 'viewer'))
    expect((await grant(user.user_id, 'viewer')).status).toBe(201)
    expect((await grant(user.user_id, 'viewer')).body.code).toBe('grant_exists')
    expect(await rolesOf(user)).toEqual(['viewer'])
  })
  it('promise an event that names the people whose rights have changed', async () => {
    const user = await p.newUser(ada)
    await grant(user.user_id, 'viewer')
    const events = await p.deps.db.select().from(outbox).where(eq(outbox.type, 'auth.user.roles_changed.v1'))
    expect(events.at(-1)?.payload).toMatchObject({ user_ids: [user.user_id], actor: { type: 'user', id: ada.user_id } })
  })
  it('can be listed page by page', async () => {
    const ids: unknown[] = []
    let token: string | null = null
    do {
      const { body } = await ada.get(`/v1/admin/grants?page_size=4${token ? `&page_token=${token}` : ''}`)
      const items = body.items as {
        id: string
        subject_type: string
        subject_id: string
        subject_name: string | null
      }[]
      ids.push(...items.map(({ id }) => id))
      for (const one of items) {
        const account = await ada.get(`/v1/admin/users/${one.subject_id}`)
        expect(one.subject_name).toBe(one.subject_type === 'user' ? account.body.username : null)
      }
      token = body.next_page_token as string | null
    } while (token)
    expect(new Set(ids).size).toBe(ids.length)
    expect(ids.length).toBeGreaterThan(4)
  })
})

describe('groups', () => {
  it('give their roles to their members, and remove them again', async () => {
    const [user, group_key] = [await p.newUser(ada), await newGroup()]
    await ada.post('/v1/admin/grants', { subject_type: 'group', subject_id: group_key, role: 'approver' })
    expect((await ada.put(`/v1/admin/groups/${group_key}/members/${user.user_id}`)).status).toBe(204)
    expect((await user.get('/v1/users/me')).body).toMatchObject({
      roles: ['approver'],
      groups: [group_key],
      grants: [{ via_group_key: group_key }],
    })
    expect((await ada.put(`/v1/admin/groups/${group_key}/members/${user.user_id}`)).status).toBe(204)
    expect((await ada.delete(`/v1/admin/groups/${group_key}/members/${user.user_id}`)).status).toBe(204)
    expect(await rolesOf(user)).toEqual([])
    await ada.put(`/v1/admin/groups/${group_key}/members/${user.user_id}`)
    expect((await ada.delete(`/v1/admin/groups/${group_key}`)).status).toBe(204)
    expect((await user.get('/v1/users/me')).body).toMatchObject({ roles: [], groups: [] })
    expect((await ada.delete(`/v1/admin/groups/${group_key}`)).status).toBe(404)
  })
  it('cannot be joined by oneself, and get no rights from their own members', async () => {
    const group_key = await newGroup()
    expect((await ada.put(`/v1/admin/groups/${group_key}/members/${ada.user_id}`)).body).toMatchObject({
      status: 403,
      code: 'self_grant',
    })
    const boss = await p.newUser(ada, ['admin'])
    expect((await boss.put(`/v1/admin/groups/${group_key}/members/${ada.user_id}`)).status).toBe(204)
    const toOwnGroup = await ada.post('/v1/admin/grants', {
      subject_type: 'group',
      subject_id: group_key,
      role: 'operator',
    })
    expect(toOwnGroup.body).toMatchObject({ status: 403, code: 'self_grant' })
    await ada.post(`/v1/admin/users/${boss.user_id}/delete`, { reason: 'x' })
  })
  it('change under If-Match only from the current version', async () => {
    const group_key = await newGroup()
    const patch = (version: number, name: string) =>
      ada.patch(`/v1/admin/groups/${group_key}`, { name }, { headers: { 'if-match': `"${version}"` } })
    const named = { group_key: `g-${randomUUID().slice(0, 8)}`, name: 'Named' }
    expect((await ada.post('/v1/admin/groups', named)).headers.etag).toBe('"1"')
    expect(await patch(1, 'New')).toMatchObject({
      status: 200,
      body: { name: 'New', version: 2 },
      headers: { etag: '"2"' },
    })
    expect((await patch(1, 'Late')).body).toMatchObject({ status: 412, code: 'version_mismatch', current_version: 2 })
    expect((await ada.delete(`/v1/admin/groups/${group_key}`, { headers: { 'if-match': '"1"' } })).status).toBe(412)
    expect(
      (await ada.patch(`/v1/admin/groups/${group_key}`, { name: 'Weak' }, { headers: { 'if-match': 'W/"2"' } })).status,
    ).toBe(200)
    for (const tags of ['"1", "3"', '*'])
      expect(
        (await ada.patch(`/v1/admin/groups/${group_key}`, { name: tags }, { headers: { 'if-match': tags } })).status,
      ).toBe(200)
    expect((await ada.patch(`/v1/admin/groups/${group_key}`, {})).status).toBe(400)
  })
  it('leave nothing behind when deleted, even if someone joins or gets rights through them at that moment', async () => {
    for (let round = 0; round < 8; round++) {
      const group_key = await newGroup()
      const user = await p.newUser(ada)
      const [removed, joined, granted] = await Promise.all([
        ada.delete(`/v1/admin/groups/${group_key}`),
        ada.put(`/v1/admin/groups/${group_key}/members/${user.user_id}`),
        ada.post('/v1/admin/grants', { subject_type: 'group', subject_id: group_key, role: 'viewer' }),
      ])
      expect(removed.status).toBe(204)
      expect([204, 404]).toContain(joined.status)
      expect([201, 404]).toContain(granted.status)
      expect((await ada.post('/v1/admin/groups', { group_key, name: 'Again' })).body.members).toEqual([])
      const { rows } = await p.deps.pool.query('select 1 from identity.grants where subject_id = $1', [group_key])
      expect(rows).toEqual([])
    }
  })

  it('have keys of one form, each used only once', async () => {
    const group_key = await newGroup()
    expect((await ada.post('/v1/admin/groups', { group_key, name: 'x' })).body).toMatchObject({
      status: 409,
      code: 'group_exists',
    })
    for (const key of ['A', 'a', '1a', 'a_b', 'a'.repeat(64)])
      expect((await ada.post('/v1/admin/groups', { group_key: key, name: 'x' })).status).toBe(400)
    expect((await ada.post('/v1/admin/groups', { group_key: 'nul', name: 'a\u0000b' })).status).toBe(400)
  })
})

describe('the last administrator', () => {
  const enrolled = async <U extends { token: string }>(user: U): Promise<U> => {
    expect((await p.enrol(user.token)).status).toBe(204)
    return user
  }
  it('is not replaced by an account that was only invited', async () => {
    const invited = await p.newUser(ada, ['admin'])
    const { body } = await ada.get('/v1/admin/grants?page_size=500')
    const own = (body.items as { id: string; subject_id: string; role: string }[]).find(
      ({ subject_id, role }) => subject_id === ada.user_id && role === 'admin',
    )
    const refused = { status: 409, code: 'last_admin' }
    expect((await ada.delete(`/v1/admin/grants/${own?.id}`)).body).toMatchObject(refused)
    expect((await invited.post(`/v1/admin/users/${ada.user_id}/disable`, { reason: 'x' })).body).toMatchObject(refused)
    expect((await ada.post(`/v1/admin/users/${invited.user_id}/delete`, { reason: 'x' })).status).toBe(200)
  })
  it('stays, whichever way it might be removed', async () => {
    const boss = await enrolled(await p.newUser(ada, ['admin']))
    const { body } = await boss.get('/v1/admin/grants?page_size=500')
    const own = (body.items as { id: string; subject_id: string; role: string }[]).find(
      ({ subject_id, role }) => subject_id === ada.user_id && role === 'admin',
    )
    expect((await boss.delete(`/v1/admin/grants/${own?.id}`)).status).toBe(204)
    const [last] = (body.items as { id: string; subject_id: string }[]).filter(
      ({ subject_id }) => subject_id === boss.user_id,
    )
    expect((await boss.delete(`/v1/admin/grants/${last?.id}`)).body).toMatchObject({ status: 409, code: 'last_admin' })
    await boss.post('/v1/admin/grants', { subject_type: 'user', subject_id: ada.user_id, role: 'admin' })
    expect(await rolesOf(ada)).toContain('admin')
    expect((await ada.delete(`/v1/admin/grants/${last?.id}`)).status).toBe(204)
  })
  it('does not count if it is temporary, disabled, or without the role', async () => {
    const temporary = await p.newUser(ada)
    await grant(temporary.user_id, 'admin', { expires_at: new Date(Date.now() + 3600_000).toISOString() })
    expect((await temporary.post(`/v1/admin/users/${ada.user_id}/disable`, { reason: 'x' })).body).toMatchObject({
      status: 409,
      code: 'last_admin',
    })
    expect((await temporary.post(`/v1/admin/users/${ada.user_id}/delete`, { reason: 'x' })).body).toMatchObject({
      status: 409,
      code: 'last_admin',
    })
    await ada.post(`/v1/admin/users/${temporary.user_id}/delete`, { reason: 'x' })
  })
  it('stays in its group', async () => {
    const group_key = await newGroup()
    const boss = await enrolled(await p.newUser(ada))
    await ada.post('/v1/admin/grants', { subject_type: 'group', subject_id: group_key, role: 'admin' })
    await ada.put(`/v1/admin/groups/${group_key}/members/${boss.user_id}`)
    const { body } = await boss.get('/v1/admin/grants?page_size=500')
    for (const { id, subject_id, role } of body.items as { id: string; subject_id: string; role: string }[]) {
      if (subject_id === ada.user_id && role === 'admin')
        expect((await boss.delete(`/v1/admin/grants/${id}`)).status).toBe(204)
    }
    expect((await boss.delete(`/v1/admin/groups/${group_key}/members/${boss.user_id}`)).body.code).toBe('last_admin')
    expect((await boss.delete(`/v1/admin/groups/${group_key}`)).body.code).toBe('last_admin')
    expect(
      (await boss.post('/v1/admin/grants', { subject_type: 'user', subject_id: ada.user_id, role: 'admin' })).status,
    ).toBe(201)
    expect((await ada.delete(`/v1/admin/groups/${group_key}`)).status).toBe(204)
  })
  it('remains when two administrators remove each other at the same moment', async () => {
    const boss = await enrolled(await p.newUser(ada, ['admin']))
    const [one, two] = await Promise.all([
      ada.post(`/v1/admin/users/${boss.user_id}/disable`, { reason: 'x' }),
      boss.post(`/v1/admin/users/${ada.user_id}/disable`, { reason: 'x' }),
    ])
    expect([one.status, two.status].filter((status) => status === 200).length).toBe(1)
    if (one.status !== 200) ada = boss
  })
})

describe('RPC', () => {
  const client = (name = 'session') =>
    createRpcClient(Identity, { url: p.rpc_url, signer: p.services.signer(name), audience: 'identity-internal' })

  it('answers an unknown user with an empty result, never with an error', async () => {
    expect((await client().getUser({ id: randomUUID() })).user).toBeUndefined()
    expect((await client().getUser({ id: 'no uuid' })).user).toBeUndefined()
    expect((await client().getUserByUsername({ username: 'ghost\u0000' })).user).toBeUndefined()
    expect((await client().getPrincipal({ userId: 'x' })).principal).toBeUndefined()
  })
  it('says how messages to a person are written, once they have chosen', async () => {
    const user = await p.newUser(ada)
    const ask = (userId: string) => client('operations').getPreferences({ userId })
    for (const id of ['x', user.user_id]) expect(await ask(id)).toMatchObject({ zone: '', language: '' })
    await user.put('/v1/users/me/preferences', { body: { zone: 'Europe/Berlin', language: 'de', theme: 'dark' } })
    expect(await ask(user.user_id)).toMatchObject({ zone: 'Europe/Berlin', language: 'de' })
  })
  it('finds users by any spelling of their name, and gives their status', async () => {
    const user = await p.newUser(ada, [], 'Käthe.Grün')
    await ada.post(`/v1/admin/users/${user.user_id}/disable`, { reason: 'x' })
    const found = await client().getUserByUsername({ username: 'KÄTHE.grün'.normalize('NFD') })
    expect(found.user).toMatchObject({ id: user.user_id, username: 'Käthe.Grün', status: UserStatus.DISABLED })
    expect(found.user?.disabledAt).toBeDefined()
  })
  it('finds an account whose name has become a reserved one', async () => {
    const row = { id: randomUUID(), username: 'System', folded: 'system' }
    await p.deps.db.insert(users).values(row)
    expect((await client().getUserByUsername({ username: 'system' })).user).toMatchObject({ id: row.id })
    const { token } = await enrolHere(p.bootstrap, 'system', undefined)
    expect((await p.enrol(token)).status).toBe(204)
    await expect(enrolHere(p.bootstrap, 'machine', ['viewer'])).rejects.toThrow('reserved')
  })
  it('gives principals with scoped and inherited grants, and none to users who are not ACTIVE', async () => {
    const { rows } = await p.deps.db.execute<{ id: string }>(
      `select u.id from identity.users u join identity.grants g on g.subject_id = u.id::text and g.scope ? 'region_id' where u.status = 'ACTIVE' limit 1`,
    )
    const { principal } = await client('operations').getPrincipal({ userId: rows[0]?.id ?? '' })
    if (!principal) throw new Error('a principal was expected')
    expect(principalOf(principal)).toMatchObject({
      user: { status: 'ACTIVE' },
      roles: ['operator'],
      grants: expect.arrayContaining([expect.objectContaining({ scope: { region_id: 'eu' } })]),
    })
    const disabled = await p.deps.db.execute<{ id: string }>(
      `select id from identity.users where status <> 'ACTIVE' limit 1`,
    )
    expect((await client().getPrincipal({ userId: disabled.rows[0]?.id ?? '' })).principal?.grants).toEqual([])
  })
  it('names who gave each right, and who could have set the password', async () => {
    const user = await p.newUser(ada, ['approver'])
    const group_key = await newGroup()
    expect((await ada.send('PUT', `/v1/admin/groups/${group_key}/members/${user.user_id}`)).status).toBe(204)
    const read = async () => {
      const { principal } = await client('operations').getPrincipal({ userId: user.user_id })
      if (!principal) throw new Error('a principal was expected')
      return principalOf(principal)
    }
    const by = [ada.user_id]
    expect(await read()).toMatchObject({
      grants: [{ role: 'approver', by, since: expect.any(String) }],
      memberships: [{ group_key, by, since: expect.any(String) }],
      reset: { by, at: expect.any(String) },
    })
    const { version } = await read()
    const boss = await p.newUser(ada, ['admin'])
    expect((await boss.post(`/v1/admin/users/${user.user_id}/enrolment-token`, {})).status).toBe(201)
    const after = await read()
    expect(after.reset?.by).toEqual([boss.user_id])
    // Components that cache principals are notified.
    expect(after.version).toBe(version + 1)
  })
  it('lists principals of a role page by page', async () => {
    const ids: (string | undefined)[] = []
    let pageToken = ''
    do {
      const reply = await client('operations').listPrincipals({ role: 'viewer', pageSize: 1, pageToken })
      ids.push(...reply.principals.map(({ user }) => user?.id))
      pageToken = reply.nextPageToken
    } while (pageToken)
    expect(ids.length).toBeGreaterThan(0)
    expect(new Set(ids).size).toBe(ids.length)
  })
  it('is for registered callers only', async () => {
    await expect(client('relay').getUser({ id: randomUUID() })).rejects.toMatchObject({ code: Code.Unauthenticated })
  })
})
