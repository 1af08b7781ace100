import { randomUUID } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { eq, inArray } from 'drizzle-orm'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { run } from '../../apps/cli/run.ts'
import type { IdentityConfig } from '../../apps/identity/config.ts'
import { revokeUngiven } from '../../apps/identity/federation/rights.ts'
import { createDeps } from '../../apps/identity/wire.ts'
import type { ProviderView, UnlinkedUser } from '../../apps/shared/contracts/identity/providers.ts'
import {
  external_identities,
  grants,
  group_members,
  groups,
  scim_resources,
  user_events,
  users,
} from '../../db/identity/tables.ts'
import { bearer, PASSWORD, send } from '../session/support/auth.ts'
import { type Sso, startSso } from '../session/support/sso.ts'
import { until } from '../support/until.ts'

/** Her record in the directory. */
const MIA = { provider: 'corp', type: 'User', external_id: 's-mia', name: 'mia', folded: 'mia' } as const

let sso: Sso
let ada: Record<string, string>
const tokenOf = async (username: string) =>
  bearer((await send(`${sso.gateway.url}/v1/token`, { body: { username, password: PASSWORD } })).body.access_token)
beforeAll(async () => {
  sso = await startSso({ scim: { machine: 'machine:dir', match: 'sub' }, require_amr: ['mfa'] })
  await sso.addUser('ada', ['admin'])
  await sso.addUser('olga', ['operator'])
  ada = await tokenOf('ada')
})
afterAll(() => sso?.stop())

const list = async (headers = ada) => {
  const reply = await send(`${sso.gateway.url}/api/v1/admin/providers`, { method: 'GET', headers })
  return { status: reply.status, ...(reply.body as unknown as { items: ProviderView[]; fault: string | null }) }
}

it('administrators read whom a provider lets in, what its groups grant and how many use it, without its secret', async () => {
  sso.configure({ require_amr: [] })
  expect((await sso.browser().signIn('s-mia')).location).toBe('/inbox')
  sso.configure()
  const { status, items, fault } = await list()
  expect({ status, fault }).toEqual({ status: 200, fault: null })
  expect(items).toEqual([
    {
      ...{ id: 'corp', title: 'Example Corp', enabled: true, issuer: sso.provider.issuer, people: 1 },
      creates_accounts: true,
      requires: [
        { kind: 'group', value: 'staff' },
        { kind: 'method', value: 'mfa' },
      ],
      ...{ max_role: 'approver', session_max_s: 43_200, groups_claim: 'groups' },
      map: [{ name: 'noc', groups: ['netops'], roles: ['approver'] }],
      scim: { machine: 'machine:dir', match: 'sub', people: 0, groups: 0, changed_at: null },
    },
  ])
  expect(JSON.stringify(items)).not.toContain('secret')
  expect((await list(await tokenOf('olga'))).status).toBe(403)
})

it('a provider that is switched off stays listed, and a file that cannot be used is reported while the last one applies', async () => {
  sso.configure({ enabled: false })
  expect((await list()).items).toMatchObject([{ id: 'corp', enabled: false }])
  writeFileSync(sso.file, 'format: signalbox/providers@1\nproviders: [{ id: corp }]\n')
  sso.identity_deps.providers.reread()
  const { items, fault } = await list()
  expect(items).toMatchObject([{ id: 'corp', enabled: false }])
  expect(fault).toContain('providers.0')
  expect(fault).not.toContain(sso.file)
  const told: string[] = []
  for (const stream of [process.stdout, process.stderr])
    vi.spyOn(stream, 'write').mockImplementation((text) => told.push(String(text)) > 0)
  const env = { SIGNALBOX_URL: sso.gateway.url, SIGNALBOX_TOKEN: (ada.authorization ?? '').replace('Bearer ', '') }
  expect(await run(['provider', 'list'], env)).toBe(0)
  vi.restoreAllMocks()
  expect(told.join('')).toMatch(/corp +Example Corp +off +1 +get an account +noc +machine:dir/)
  expect(told.join('')).toContain(fault)
  sso.configure()
  expect((await list()).fault).toBeNull()
})

describe('rights that a provider gave', () => {
  const { noc, none } = {
    noc: { groups: { claim: 'groups', map: { noc: { groups: ['netops'], roles: ['approver'] } } }, require_amr: [] },
    none: { groups: { claim: 'groups', map: {} }, require_amr: [] },
  }
  const db = () => sso.identity_deps.db
  const idOf = async (name: string) => (await db().select().from(users).where(eq(users.username, name)))[0]?.id ?? ''
  const held = async (id: string) => ({
    groups: (await db().select().from(group_members).where(eq(group_members.user_id, id))).map((row) => row.group_key),
    roles: (await db().select().from(grants).where(eq(grants.subject_id, id))).map(({ role }) => role),
  })
  const becomes = (id: string, wanted: Awaited<ReturnType<typeof held>>) =>
    until(async () => JSON.stringify(await held(id)) === JSON.stringify(wanted), { what: JSON.stringify(wanted) })
  const signedIn = async () => {
    sso.configure(noc)
    expect((await sso.browser().signIn('s-mia')).status).toBe(303)
    const id = await idOf('mia')
    expect(await held(id)).toEqual({ groups: ['netops'], roles: ['approver'] })
    return id
  }
  beforeAll(async () => {
    await db().insert(groups).values({ group_key: 'netops', name: 'Network operations' })
  })

  it('end when the file no longer gives them, and the log says so; other rights and a faulty file change none', async () => {
    const id = await signedIn()
    const own = { id: randomUUID(), subject_type: 'user' as const, subject_id: id, role: 'viewer' }
    await db()
      .insert(grants)
      .values({ ...own, created_by: 'user:ada' })
    const before = (await db().select().from(users).where(eq(users.id, id)))[0]?.version ?? 0
    writeFileSync(sso.file, 'providers: 7\n')
    sso.identity_deps.providers.reread()
    await revokeUngiven(sso.identity_deps)
    expect(await held(id)).toMatchObject({ groups: ['netops'] })
    sso.configure({ ...noc, groups: { claim: 'groups', map: { noc: { groups: ['netops'] } } } })
    await becomes(id, { groups: ['netops'], roles: ['viewer'] })
    expect((await db().select().from(users).where(eq(users.id, id)))[0]?.version).toBeGreaterThan(before)
    sso.configure({ ...noc, enabled: false })
    await becomes(id, { groups: [], roles: ['viewer'] })
    const events = await db()
      .select()
      .from(user_events)
      .where(eq(user_events.object, `user:${id}`))
    expect(events.at(-1)).toMatchObject({ actor: 'provider:corp', action: 'user.provider_rights', outcome: 'done' })
    await db().delete(grants).where(eq(grants.id, own.id))
  })

  it('end where the ceiling was lowered below a role of the group, or the group got a higher one, also for people of the directory', async () => {
    const id = await signedIn()
    const row = { id, provider: 'corp', type: 'User', external_id: 's-mia', name: 'mia', folded: 'mia' } as const
    await db().insert(scim_resources).values(row)
    const role = { id: randomUUID(), subject_type: 'group' as const, subject_id: 'netops', role: 'approver' }
    await db()
      .insert(grants)
      .values({ ...role, created_by: 'user:ada' })
    const map = { groups: { claim: 'groups', map: { noc: { groups: ['netops'] } } } }
    sso.configure({ ...noc, ...map, max_role: 'approver' })
    await becomes(id, { groups: ['netops'], roles: [] })
    sso.configure({ ...noc, ...map, max_role: 'planner' })
    await becomes(id, { groups: [], roles: [] })
    await db().delete(scim_resources).where(eq(scim_resources.id, id))
    await db().delete(grants).where(eq(grants.id, role.id))
  })

  it('cannot be taken away by hand while a directory states them: they would come back', async () => {
    const id = await signedIn()
    await db()
      .insert(scim_resources)
      .values({ id, ...MIA })
    const [grant] = await db().select().from(grants).where(eq(grants.subject_id, id))
    const paths = [`/groups/netops/members/${id}`, `/grants/${grant?.id}`]
    const remove = (path: string) =>
      send(`${sso.gateway.url}/api/v1/admin${path}`, {
        method: 'DELETE',
        headers: { ...ada, 'idempotency-key': randomUUID() },
      })
    const { body } = await send(`${sso.gateway.url}/api/v1/admin/groups`, { headers: ada })
    const { items } = body as { items: { group_key: string; members: object[] }[] }
    const { members = [] } = items.find(({ group_key }) => group_key === 'netops') ?? {}
    expect(members).toContainEqual(expect.objectContaining({ id, added_by: 'provider:corp' }))
    for (const path of paths) expect(await remove(path)).toMatchObject({ status: 409, body: { code: 'group_managed' } })
    expect(await held(id)).toEqual({ groups: ['netops'], roles: ['approver'] })
    // Until the next hour the app may not have followed the file.
    const gone = { added_by: 'provider:gone' }
    await db().update(group_members).set(gone).where(eq(group_members.user_id, id))
    expect((await remove(`/groups/netops/members/${id}`)).status).toBe(204)
    expect(await held(id)).toEqual({ groups: [], roles: ['approver'] })
    // No directory: only a sign-in gives them.
    await db().delete(scim_resources).where(eq(scim_resources.id, id))
    expect((await remove(`/grants/${grant?.id}`)).status).toBe(204)
    expect(await held(id)).toEqual({ groups: [], roles: [] })
  })

  it('end at the start if the file lost its provider while this app was down', async () => {
    const id = await signedIn()
    const { AUTH__PROVIDERS__FILE: _, ...config } = sso.identity_deps.config
    const other = createDeps(config as IdentityConfig)
    try {
      await becomes(id, { groups: [], roles: [] })
    } finally {
      await other.close()
    }
  })

  it('end thirty days after it last signed the person in, unless its directory maintains them', async () => {
    const id = await signedIn()
    const ago = new Date(Date.now() - 31 * 86_400_000).toISOString()
    await db().update(external_identities).set({ proved_at: ago }).where(eq(external_identities.user_id, id))
    await db()
      .insert(scim_resources)
      .values({ id, ...MIA })
    await revokeUngiven(sso.identity_deps)
    expect(await held(id)).toEqual({ groups: ['netops'], roles: ['approver'] })
    await db().delete(scim_resources).where(eq(scim_resources.id, id))
    await revokeUngiven(sso.identity_deps)
    expect(await held(id)).toEqual({ groups: [], roles: [] })
  })

  it('stay with the last administrator', async () => {
    const everyone = await db().select().from(grants).where(eq(grants.role, 'admin'))
    sso.configure({ ...noc, max_role: 'admin', groups: { claim: 'groups', map: { noc: { roles: ['admin'] } } } })
    await sso.browser().signIn('s-mia')
    await db()
      .delete(grants)
      .where(
        inArray(
          grants.id,
          everyone.map(({ id }) => id),
        ),
      )
    sso.configure(none)
    await revokeUngiven(sso.identity_deps)
    expect((await held(await idOf('mia'))).roles).toEqual(['admin'])
    await db().insert(grants).values(everyone)
    await revokeUngiven(sso.identity_deps)
    expect((await held(await idOf('mia'))).roles).toEqual([])
    sso.configure()
  })
})

describe('people whom no provider signs in', () => {
  const unlinked = async () => {
    const { status, body } = await send(`${sso.gateway.url}/api/v1/admin/unlinked-users?page_size=500`, {
      headers: ada,
    })
    expect(status).toBe(200)
    return (body.items as UnlinkedUser[]).map(({ username }) => username)
  }

  it('are listed while there is a provider, page by page; those of a directory and who left are not', async () => {
    const { id } = await sso.addUser('dora')
    expect(await unlinked()).toEqual(expect.arrayContaining(['ada', 'dora', 'olga']))
    const page = await send(`${sso.gateway.url}/api/v1/admin/unlinked-users?page_size=1`, { headers: ada })
    expect(page.body).toMatchObject({ items: [{ username: 'ada', roles: ['admin'], twins: [] }] })
    expect(page.body.next_page_token).toEqual(expect.any(String))
    const dora = { ...MIA, id, external_id: 's-dora', name: 'dora', folded: 'dora' }
    await sso.identity_deps.db.insert(scim_resources).values(dora)
    expect(await unlinked()).not.toContain('dora')
    sso.configure({ enabled: false })
    expect(await unlinked()).toEqual([])
    sso.configure()
  })

  it('are listed to administrators and auditors alone', async () => {
    const headers = await tokenOf('olga')
    expect((await send(`${sso.gateway.url}/api/v1/admin/unlinked-users`, { headers })).status).toBe(403)
  })
})
