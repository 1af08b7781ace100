import { randomUUID } from 'node:crypto'
import { eq } from 'drizzle-orm'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { verbs } from '../../apps/identity/admin.ts'
import { handedOut } from '../../apps/identity/control/links.ts'
import { enrolHere } from '../../apps/identity/users/bootstrap.ts'
import { principalOf } from '../../apps/shared/auth/principals.ts'
import { isHalf, joinHalves } from '../../apps/shared/contracts/client/enrolment.ts'
import { Identity } from '../../apps/shared/contracts/gen/auth_pb.ts'
import document from '../../apps/shared/contracts/openapi/public.json' with { type: 'json' }
import { createRpcClient } from '../../apps/shared/rpc/client.ts'
import { changes, group_members, outbox, user_events, users } from '../../db/identity/tables.ts'
import { startIdentity, type TestIdentity } from './support/harness.ts'

type Admin = Awaited<ReturnType<TestIdentity['secondAdmin']>>
let p: TestIdentity
let [ada, bob, carl]: Admin[] = []
let early: Awaited<ReturnType<TestIdentity['newUser']>>

const adminsOf = () => [ada, bob, carl] as [Admin, Admin, Admin]
const two = () => [ada, bob] as [Admin, Admin]
const grant = (admin: Admin, subject_id: string, role: string, more: object = {}) =>
  admin.post('/v1/admin/grants', { subject_type: 'user', subject_id, role, ...more })
const rolesOf = async (user: Pick<Admin, 'get'>) => (await user.get('/v1/users/me')).body.roles
const idOf = ({ status, body }: { status: number; body: Record<string, unknown> }) => {
  expect([status, body.code]).toEqual([202, undefined])
  return (body.change as { id: string }).id
}
const auditOf = (object: string) =>
  p.deps.db.select().from(user_events).where(eq(user_events.object, object)).orderBy(user_events.id)

beforeAll(async () => {
  p = await startIdentity()
  const first = await p.firstAdmin()
  ada = { ...first, user_id: first.user_id ?? '' }
})
afterAll(() => p.stop())

describe('one administrator', () => {
  it('suffices, is informed of that, and each act is in the audit log as done alone', async () => {
    const user = await p.newUser(ada as Admin, ['approver'])
    expect(await rolesOf(user)).toEqual(['approver'])
    const { body } = await (ada as Admin).get('/v1/admin/changes')
    expect(body).toMatchObject({
      items: [],
      control: { dual_since: null, notice: 'There is only one administrator, so no one checks these changes.' },
    })
    expect(await auditOf(`user:${user.user_id}`)).toMatchObject([
      { action: 'single_control', reason: 'user.created', actor: `user:${ada?.user_id}` },
      { action: 'user.created' },
    ])
  })
  it('does not become two with accounts whose links it saw', async () => {
    const puppet = await p.newUser(ada as Admin, ['admin'])
    expect((await p.enrol(puppet.token)).status).toBe(204)
    early = await p.newUser(ada as Admin, ['approver', 'admin'], 'early')
    expect((await p.enrol(early.token)).status).toBe(204)
    expect((await (ada as Admin).get('/v1/admin/changes')).body.control).toMatchObject({ dual_since: null })
    expect((await grant(puppet, early.user_id, 'operator')).status).toBe(201)
  })
  it('becomes two if the machine lets another one in, once that one has a password', async () => {
    const { token } = await enrolHere(p.bootstrap, 'bob', ['admin'])
    expect((await (ada as Admin).get('/v1/admin/changes')).body.control).toMatchObject({ dual_since: null })
    expect((await p.enrol(token)).status).toBe(204)
    const user_id = token.split('.')[1] ?? ''
    bob = { ...p.as(user_id), user_id }
    expect((await (ada as Admin).get('/v1/admin/changes')).body.control).toMatchObject({
      dual_since: expect.any(String),
      notice: null,
    })
    const told = await p.deps.db.select().from(outbox).where(eq(outbox.type, 'auth.user.roles_changed.v1'))
    expect(told.some(({ payload }) => (payload.user_ids as string[]).includes(early.user_id))).toBe(true)
    carl = await p.secondAdmin('carl')
  })
})

describe('two administrators', () => {
  it.each(['approver', 'operator', 'admin'])('give %s together: first 202, then the right', async (role) => {
    const [a, b] = two()
    const user = await p.newUserByTwo([a, b])
    const asked = await grant(a, user.user_id, role)
    expect(asked).toMatchObject({
      status: 202,
      body: { change: { kind: 'grant.create', digest: expect.any(String), requested_by: a.user_id } },
    })
    const { expires_at } = asked.body.change as { expires_at: string }
    expect(Date.parse(expires_at) - Date.now()).toBeGreaterThan(71.9 * 3600_000)
    expect(await rolesOf(user)).toEqual([])
    const confirmed = await p.confirm(b, idOf(asked))
    expect(confirmed).toMatchObject({
      status: 200,
      body: { change: { status: 'confirmed', decided_by: b.user_id, subject: { name: user.username, gives: [role] } } },
    })
    expect(await rolesOf(user)).toEqual([role])
  })
  it('leave other roles and every removal to one', async () => {
    const [a, b] = two()
    const user = await p.newUserByTwo([a, b], ['operator'])
    expect((await grant(a, user.user_id, 'viewer')).status).toBe(201)
    const { body } = await a.get('/v1/admin/grants?page_size=500')
    const held = (body.items as { id: string; subject_id: string; role: string }[]).find(
      ({ subject_id, role }) => subject_id === user.user_id && role === 'operator',
    )
    expect((await a.delete(`/v1/admin/grants/${held?.id}`)).status).toBe(204)
    expect(await rolesOf(user)).toEqual(['viewer'])
    expect((await a.post(`/v1/admin/users/${user.user_id}/disable`, { reason: 'x' })).status).toBe(200)
  })
  it('add members to a group that holds such a role, and grant one to a group', async () => {
    const [a, b] = two()
    const user = await p.newUserByTwo([a, b])
    const group_key = `g-${randomUUID().slice(0, 8)}`
    await a.post('/v1/admin/groups', { group_key, name: 'x' })
    const member = `/v1/admin/groups/${group_key}/members/${user.user_id}`
    expect((await a.put(member)).status).toBe(204)
    await a.delete(member)
    const given = await a.post('/v1/admin/grants', { subject_type: 'group', subject_id: group_key, role: 'approver' })
    expect((await p.confirm(b, idOf(given))).status).toBe(200)
    const added = idOf(await a.put(member))
    expect(await rolesOf(user)).toEqual([])
    expect((await p.change(b, added)).subject.gives).toEqual(['approver'])
    expect((await p.confirm(b, added)).status).toBe(200)
    expect(await rolesOf(user)).toEqual(['approver'])
  })
  it('let someone who decides into any group, also one that is made again', async () => {
    const [a, b] = two()
    const [approver, other] = [await p.newUserByTwo([a, b], ['approver']), await p.newUserByTwo([a, b], ['operator'])]
    const group_key = `v-${randomUUID().slice(0, 8)}`
    const member = (id: string) => `/v1/admin/groups/${group_key}/members/${id}`
    for (const _ of [1, 2]) {
      await a.post('/v1/admin/groups', { group_key, name: 'x' })
      expect((await a.put(member(other.user_id))).status).toBe(204)
      const added = idOf(await a.put(member(approver.user_id)))
      expect((await approver.get('/v1/users/me')).body.groups).toEqual([])
      expect((await p.confirm(b, added)).status).toBe(200)
      expect((await a.put(member(approver.user_id))).status).toBe(204)
      expect((await a.delete(`/v1/admin/groups/${group_key}`)).status).toBe(204)
    }
  })
  it('enable holders of such a role; others are enabled by one', async () => {
    const [a, b] = two()
    for (const [roles, status] of [
      [['operator'], 202],
      [['viewer'], 200],
    ] as const) {
      const user = await p.newUserByTwo([a, b], [...roles])
      await a.post(`/v1/admin/users/${user.user_id}/disable`, { reason: 'away' })
      const enabled = await a.post(`/v1/admin/users/${user.user_id}/enable`, { reason: 'back' })
      expect(enabled.status).toBe(status)
      if (status === 202) expect((await p.confirm(b, idOf(enabled))).status).toBe(200)
      expect(await rolesOf(user)).toEqual(roles)
    }
  })
  it('answer a repeat with the same change, and a repeated confirmation with the same answer', async () => {
    const [a, b] = two()
    const user = await p.newUserByTwo([a, b])
    const asked = { subject_type: 'user', subject_id: user.user_id, role: 'operator' }
    const key = randomUUID()
    const first = await a.post('/v1/admin/grants', asked, { key })
    const again = await a.post('/v1/admin/grants', asked, { key })
    expect(again.body).toEqual(first.body)
    expect(again.headers['idempotency-replayed']).toBe('true')
    const { digest } = await p.change(b, idOf(first))
    const send = () => b.post(`/v1/admin/changes/${idOf(first)}/confirm`, { digest }, { key })
    expect((await send()).status).toBe(200)
    expect((await send()).headers['idempotency-replayed']).toBe('true')
  })
  it('are both in the audit log, in the grant and in the principal', async () => {
    const [a, b] = two()
    const user = await p.newUserByTwo([a, b])
    const asked = idOf(await grant(a, user.user_id, 'approver'))
    const group_key = `g-${randomUUID().slice(0, 8)}`
    await a.post('/v1/admin/groups', { group_key, name: 'x' })
    await p.confirm(b, asked)
    const given = await a.post('/v1/admin/grants', { subject_type: 'group', subject_id: group_key, role: 'operator' })
    await p.confirm(b, idOf(given))
    await p.confirm(b, idOf(await a.put(`/v1/admin/groups/${group_key}/members/${user.user_id}`)))
    expect(await auditOf(`change:${asked}`)).toMatchObject([
      { action: 'change.requested', actor: `user:${a.user_id}`, reason: 'grant.create' },
      { action: 'change.confirmed', actor: `user:${b.user_id}`, reason: 'grant.create' },
    ])
    // The notifier tells of it by these.
    const reset = idOf(await a.post(`/v1/admin/users/${user.user_id}/recovery`, {}))
    const [row] = await auditOf(`change:${reset}`)
    expect(JSON.parse(row?.body ?? '{}').details).toEqual({ subject: expect.any(String), resets: user.user_id })
    const made = await p.deps.db.select().from(user_events).where(eq(user_events.action, 'grant.created'))
    expect(made.at(-1)).toMatchObject({ actor: `user:${b.user_id}`, on_behalf_of: `user:${a.user_id}` })
    const client = createRpcClient(Identity, {
      url: p.rpc_url,
      signer: p.services.signer('operations'),
      audience: 'identity-internal',
    })
    const { principal } = await client.getPrincipal({ userId: user.user_id })
    const by = [a.user_id, b.user_id]
    expect(principal && principalOf(principal)).toMatchObject({
      grants: [
        { role: 'approver', by },
        { role: 'operator', by },
      ],
      memberships: [{ group_key, by }],
      reset: { by },
      renewal_required: false,
    })
  })
})

describe('the second administrator', () => {
  it('is neither the requester nor the person concerned', async () => {
    const [a, b, c] = adminsOf()
    const user = await p.newUserByTwo([a, b])
    const own = idOf(await grant(a, user.user_id, 'operator'))
    expect((await p.confirm(a, own)).body).toMatchObject({ status: 403, code: 'second_admin' })
    const theirs = idOf(await grant(a, b.user_id, 'operator'))
    expect((await p.confirm(b, theirs)).body).toMatchObject({ status: 403, code: 'second_admin' })
    const reset = idOf(await a.post(`/v1/admin/users/${b.user_id}/enrolment-token`))
    expect((await p.confirm(b, reset)).body).toMatchObject({ status: 403, code: 'second_admin' })
    const group_key = `g-${randomUUID().slice(0, 8)}`
    await a.post('/v1/admin/groups', { group_key, name: 'x' })
    await a.put(`/v1/admin/groups/${group_key}/members/${b.user_id}`)
    const shared = idOf(
      await a.post('/v1/admin/grants', { subject_type: 'group', subject_id: group_key, role: 'approver' }),
    )
    expect((await p.confirm(b, shared)).body).toMatchObject({ status: 403, code: 'second_admin' })
    expect((await p.confirm(c, theirs)).status).toBe(200)
    for (const id of [reset, shared]) await c.post(`/v1/admin/changes/${id}/reject`)
    expect((await grant(a, a.user_id, 'operator')).body).toMatchObject({ status: 403, code: 'self_grant' })
  })
  it('needs a fresh password, and confirms the reviewed change', async () => {
    const [a, b] = two()
    const user = await p.newUserByTwo([a, b])
    const id = idOf(await grant(a, user.user_id, 'operator'))
    const stale = { auth_time: Math.floor(Date.now() / 1000) - 1000 }
    expect((await p.confirm(b, id, stale)).body.code).toBe('reauth_required')
    const { digest } = await p.change(b, id)
    await grant(a, user.user_id, 'viewer')
    const old = await b.post(`/v1/admin/changes/${id}/confirm`, { digest })
    expect(old.body).toMatchObject({ status: 412, code: 'digest_moved' })
    expect(document.paths['/api/v1/admin/changes/{change_id}/confirm'].post.responses).toHaveProperty('412')
    expect((await p.confirm(b, id)).status).toBe(200)
  })
  it('is checked by the current rules: a requester without the role, an existing grant, a deleted user', async () => {
    const [a, b, c] = adminsOf()
    const user = await p.newUserByTwo([a, b])
    const twice = [idOf(await grant(a, user.user_id, 'operator')), idOf(await grant(c, user.user_id, 'operator'))]
    expect((await p.confirm(b, twice[0] ?? '')).status).toBe(200)
    expect((await p.confirm(b, twice[1] ?? '')).body.code).toBe('grant_exists')
    const gone = idOf(await grant(a, user.user_id, 'approver'))
    await b.post(`/v1/admin/users/${user.user_id}/delete`, { reason: 'left' })
    expect((await p.confirm(b, gone)).body.code).toBe('user_deleted')
    const dora = await p.newUserByTwo([a, b], ['admin'])
    const other = await p.newUserByTwo([a, b])
    const orphan = idOf(await grant(dora, other.user_id, 'operator'))
    await a.post(`/v1/admin/users/${dora.user_id}/disable`, { reason: 'left' })
    expect((await p.confirm(b, orphan)).body.code).toBe('change_closed')
  })
  it('says whether an account is disabled or gone if no link can be made', async () => {
    const [a, b] = two()
    const user = await p.newUserByTwo([a, b])
    const id = idOf(await a.post(`/v1/admin/users/${user.user_id}/enrolment-token`))
    await a.post(`/v1/admin/users/${user.user_id}/disable`, { reason: 'away' })
    expect((await p.confirm(b, id)).body).toMatchObject({
      status: 409,
      code: 'user_disabled',
      hint: 'Enable the user first.',
    })
    await a.post(`/v1/admin/users/${user.user_id}/delete`, { reason: 'left' })
    expect((await p.confirm(b, id)).body).toMatchObject({ status: 409, code: 'user_deleted' })
  })
  it('may reject; only the requester withdraws; a closed change stays closed', async () => {
    const [a, b] = two()
    const user = await p.newUserByTwo([a, b])
    const [one, other] = [
      idOf(await grant(a, user.user_id, 'operator')),
      idOf(await grant(a, user.user_id, 'approver')),
    ]
    expect((await b.post(`/v1/admin/changes/${one}/withdraw`)).body).toMatchObject({
      status: 403,
      code: 'not_your_change',
    })
    expect((await b.post(`/v1/admin/changes/${one}/reject`)).body.change).toMatchObject({ status: 'rejected' })
    expect((await a.post(`/v1/admin/changes/${other}/withdraw`)).body.change).toMatchObject({ status: 'withdrawn' })
    for (const id of [one, other]) {
      expect((await p.confirm(b, id)).body).toMatchObject({ status: 409, code: 'change_closed' })
      expect((await a.post(`/v1/admin/changes/${id}/withdraw`)).body.code).toBe('change_closed')
    }
    expect((await a.get('/v1/admin/changes?status=rejected')).body.items).toContainEqual(
      expect.objectContaining({ id: one, status: 'rejected' }),
    )
    expect((await b.post(`/v1/admin/changes/${randomUUID()}/confirm`, { digest: 'x' })).status).toBe(404)
    expect(await rolesOf(user)).toEqual([])
  })
  it('is too late after 72 h', async () => {
    const [a, b] = two()
    const user = await p.newUserByTwo([a, b])
    const id = idOf(await grant(a, user.user_id, 'operator'))
    await p.deps.db
      .update(changes)
      .set({ expires_at: new Date(Date.now() - 1).toISOString() })
      .where(eq(changes.id, id))
    expect((await p.change(b, id)).status).toBe('expired')
    expect((await p.confirm(b, id)).body.code).toBe('change_closed')
    expect((await a.get('/v1/admin/changes?status=expired')).body.items).toContainEqual(expect.objectContaining({ id }))
  })
  it('is the database owner if there are fewer than two', async () => {
    const [a, b] = two()
    const user = await p.newUserByTwo([a, b])
    const id = idOf(await a.post(`/v1/admin/users/${user.user_id}/enrolment-token`))
    for (const [name, value] of Object.entries(p.env)) vi.stubEnv(name, value)
    const lines: string[] = []
    const log = vi.spyOn(console, 'log').mockImplementation((line) => void lines.push(line))
    const error = vi.spyOn(console, 'error').mockImplementation(() => {})
    try {
      expect(await verbs.confirm?.([id])).toBe(0)
      expect(await verbs.confirm?.([id])).toBe(1)
      expect(await verbs.confirm?.([])).toBe(2)
      expect(await verbs.enrol?.(['--username', 'no-such'])).toBe(1)
    } finally {
      log.mockRestore()
      error.mockRestore()
      vi.unstubAllEnvs()
    }
    const second = lines[0]?.split('#')[1] ?? ''
    const first = ((await a.post(`/v1/admin/changes/${id}/half`)).body.half as { token: string }).token
    expect((await p.enrol(joinHalves(first, second) ?? '', 'Vellum.Otter.Hinge.83')).status).toBe(204)
    expect(await auditOf(`change:${id}`)).toMatchObject([{}, { action: 'change.confirmed', actor: 'system' }, {}])
  })
})

describe('an enrolment link', () => {
  it('is in no reply: its halves open nothing alone, and together they set the password', async () => {
    const [a, b, c] = adminsOf()
    const asked = await a.post('/v1/admin/users', { username: 'mia', grants: [{ role: 'operator' }] })
    expect(JSON.stringify(asked.body)).not.toContain('e1.')
    const id = idOf(asked)
    expect((await a.post(`/v1/admin/changes/${id}/half`)).body.code).toBe('change_pending')
    const confirmed = await p.confirm(b, id)
    expect(JSON.stringify(confirmed.body)).not.toMatch(/[eh][12]\./)
    const halves = []
    for (const admin of [a, b]) {
      const { status, body } = await admin.post(`/v1/admin/changes/${id}/half`)
      expect(status).toBe(200)
      halves.push(body.half as { part: string; token: string; url: string })
    }
    expect(halves.map(({ part }) => part)).toEqual(['first', 'second'])
    expect((await c.post(`/v1/admin/changes/${id}/half`)).body).toMatchObject({ status: 403, code: 'not_your_change' })
    const [first = '', second = ''] = halves.map(({ token }) => token)
    for (const token of [first, second, first.replace('h1', 'e1'), second.replace('h2', 'e1')])
      expect((await p.enrol(token)).body.code).toBe('enrolment_token_invalid')
    expect([isHalf(first), joinHalves(first, first), joinHalves(first, 'x')]).toEqual([true, undefined, undefined])
    expect(joinHalves(second, first)).toBe(joinHalves(first, second))
    expect((await p.enrol(joinHalves(first, second) ?? '')).status).toBe(204)
    const { rows } = await p.deps.db.execute(`select encode(body, 'escape') as body from identity.idempotency`)
    for (const token of [first, second]) expect(JSON.stringify(rows)).not.toContain(token.split('.')[3])
  })
  it('of a reset is requested, confirmed, and replaced by a newer one (ASVS 6.4.3)', async () => {
    const [a, b, c] = adminsOf()
    const user = await p.newUserByTwo([a, b], ['viewer'])
    const url = `/v1/admin/users/${user.user_id}/enrolment-token`
    const [older, newer] = [idOf(await a.post(url)), idOf(await a.post(url))]
    expect((await p.confirm(c, older)).status).toBe(200)
    const key = randomUUID()
    const half = () => a.post(`/v1/admin/changes/${older}/half`, undefined, { key })
    expect((await half()).body.half).toMatchObject({ part: 'first' })
    expect((await p.confirm(c, newer)).status).toBe(200)
    expect((await a.post(`/v1/admin/changes/${older}/half`)).body.code).toBe('change_closed')
    // Nor does a repeat of the request that was answered get it.
    expect((await half()).body.code).toBe('change_closed')
    const token = await p.tokenOfHalves([a, c], newer)
    expect((await p.enrol(token, 'Vellum.Otter.Hinge.83')).status).toBe(204)
  })
  it('that one administrator saw restricts its account until it is renewed', async () => {
    const [a, b] = two()
    expect(await rolesOf(early)).toContain('approver')
    const refused = await grant(early as Admin, carl?.user_id ?? '', 'viewer')
    expect(refused.body).toMatchObject({ status: 403, code: 'renewal_required' })
    const id = idOf(await grant(a, (await p.newUserByTwo([a, b])).user_id, 'operator'))
    expect((await p.confirm(early as Admin, id)).body.code).toBe('renewal_required')
    expect((await grant(a, early.user_id, 'planner')).status).toBe(201)
    expect((await grant(a, early.user_id, 'operator', { scope: { region_id: 'eu' } })).body).toMatchObject({
      status: 403,
      code: 'renewal_required',
    })
    const group_key = `g-${randomUUID().slice(0, 8)}`
    await a.post('/v1/admin/groups', { group_key, name: 'x' })
    const joined = await a.put(`/v1/admin/groups/${group_key}/members/${early.user_id}`)
    expect(joined.body.code).toBe('renewal_required')
    await p.deps.db.insert(group_members).values({ group_key, user_id: early.user_id, added_by: 'system' })
    const toGroup = { subject_type: 'group', subject_id: group_key, role: 'operator' }
    expect((await a.post('/v1/admin/grants', toGroup)).body.code).toBe('renewal_required')

    const reset = idOf(await a.post(`/v1/admin/users/${early.user_id}/enrolment-token`))
    expect((await p.confirm(b, reset)).status).toBe(200)
    expect((await p.confirm(early as Admin, id)).body.code).toBe('renewal_required')
    expect((await p.enrol(await p.tokenOfHalves([a, b], reset), 'Vellum.Otter.Hinge.83')).status).toBe(204)
    expect((await p.confirm(early as Admin, id)).status).toBe(200)
    expect((await a.post('/v1/admin/grants', toGroup)).status).toBe(202)
  })
  it('that was shown does not renew the account, even if a newer one waits', async () => {
    const [user] = await p.deps.db
      .insert(users)
      .values({ id: randomUUID(), username: 'old', folded: 'OLD' })
      .returning()
    const shown = await p.deps.credential.createEnrolmentToken({ userId: user?.id ?? '', changeId: randomUUID() })
    await p.deps.db
      .update(users)
      .set({ reset_link: randomUUID() })
      .where(eq(users.id, user?.id ?? ''))
    expect((await p.enrol(shown.enrolmentToken)).status).toBe(204)
    const [after] = await p.deps.db
      .select()
      .from(users)
      .where(eq(users.id, user?.id ?? ''))
    expect(after?.link_shown).toBe(true)
  })
  it('renews an account by this build if and only if the build before it would, during a rolling upgrade', async () => {
    const alone = { requested_by: `user:${ada?.user_id}`, confirmed_by: null }
    for (const [username, by, renews] of [
      ['seen', alone, false],
      ['halved', { ...alone, confirmed_by: `user:${bob?.user_id}` }, true],
      ['machined', { ...alone, requested_by: 'system' }, true],
    ] as const) {
      const link = randomUUID()
      const row = { id: randomUUID(), username, folded: username, ...handedOut({ ...by, link }) }
      const [made] = await p.deps.db.insert(users).values(row).returning()
      const before = made?.reset_link === link && (made.link_shown || made.reset_by === 'system')
      expect([username, before]).toEqual([username, renews])
      const { enrolmentToken } = await p.deps.credential.createEnrolmentToken({ userId: row.id, changeId: link })
      expect((await p.enrol(enrolmentToken)).status).toBe(204)
      const [after] = await p.deps.db.select().from(users).where(eq(users.id, row.id))
      expect([username, after?.link_shown]).toEqual([username, !renews])
    }
  })
})

describe('each race has one winner', () => {
  const race = async () => {
    const [a, b, c] = adminsOf()
    const user = await p.newUserByTwo([a, b])
    const id = idOf(await grant(a, user.user_id, 'operator'))
    const { digest } = await p.change(b, id)
    const confirm = (admin: Admin) => admin.post(`/v1/admin/changes/${id}/confirm`, { digest })
    return { a, b, c, user, id, confirm }
  }
  it('confirm and confirm', async () => {
    for (let round = 0; round < 5; round++) {
      const { b, c, id, user, confirm } = await race()
      const replies = await Promise.all([confirm(b), confirm(c)])
      expect(replies.map(({ status }) => status).sort()).toEqual([200, expect.any(Number)])
      expect(replies.filter(({ status }) => status === 200)).toHaveLength(1)
      expect(await rolesOf(user)).toEqual(['operator'])
      expect((await auditOf(`change:${id}`)).filter(({ action }) => action === 'change.confirmed')).toHaveLength(1)
    }
  })
  it('confirm and withdraw, confirm and reject', async () => {
    for (let round = 0; round < 6; round++) {
      const { a, b, c, id, user, confirm } = await race()
      const ending = round % 2 ? a.post(`/v1/admin/changes/${id}/withdraw`) : c.post(`/v1/admin/changes/${id}/reject`)
      const [confirmed, ended] = await Promise.all([confirm(b), ending])
      expect([confirmed.status, ended.status].sort()).toEqual([200, 409])
      expect(await rolesOf(user)).toEqual(confirmed.status === 200 ? ['operator'] : [])
    }
  })
  it('confirm and the end of its time', async () => {
    for (let round = 0; round < 6; round++) {
      const { b, id, user, confirm } = await race()
      const expires_at = new Date(Date.now() + round * 4).toISOString()
      await p.deps.db.update(changes).set({ expires_at }).where(eq(changes.id, id))
      const { status } = await confirm(b)
      const { status: state } = await p.change(b, id)
      expect([status, state, await rolesOf(user)]).toEqual(
        status === 200 ? [200, 'confirmed', ['operator']] : [409, 'expired', []],
      )
    }
  })
  it('confirm and a change of the account, in either order', async () => {
    for (let round = 0; round < 5; round++) {
      const { a, b, user, confirm } = await race()
      const [confirmed, disabled] = await Promise.all([
        confirm(b),
        a.post(`/v1/admin/users/${user.user_id}/disable`, { reason: 'left' }),
      ])
      expect(disabled.status).toBe(200)
      expect([200, 412]).toContain(confirmed.status)
      const { rows } = await p.deps.pool.query('select 1 from identity.grants where subject_id = $1', [user.user_id])
      expect(rows).toHaveLength(confirmed.status === 200 ? 1 : 0)
    }
  })
  it('two administrators who disable each other during a confirmation', async () => {
    const [a, b] = two()
    const dora = await p.newUserByTwo([a, b], ['admin'])
    const user = await p.newUserByTwo([a, b])
    const id = idOf(await grant(a, user.user_id, 'operator'))
    const { digest } = await p.change(dora, id)
    const [confirmed, ended] = await Promise.all([
      dora.post(`/v1/admin/changes/${id}/confirm`, { digest }),
      b.post(`/v1/admin/users/${dora.user_id}/disable`, { reason: 'left' }),
    ])
    expect(ended.status).toBe(200)
    const when = async (object: string, action: string) =>
      (await auditOf(object)).find((row) => row.action === action)?.id ?? 0n
    if (confirmed.status === 200)
      expect(await when(`change:${id}`, 'change.confirmed')).toBeLessThan(
        await when(`user:${dora.user_id}`, 'user.disabled'),
      )
    else expect([401, 403]).toContain(confirmed.status)
  })
})
