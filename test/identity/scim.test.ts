import { randomUUID } from 'node:crypto'
import { and, eq, inArray, like, sql } from 'drizzle-orm'
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { SCIM_ROUTES } from '../../apps/gateway/routes/table.ts'
import { buildApp } from '../../apps/identity/app.ts'
import { linkExternal } from '../../apps/identity/federation/external.ts'
import { reportStranded } from '../../apps/identity/scim/aligning.ts'
import { lossOf } from '../../apps/operations/policies/footing.ts'
import { authorizedRoutes } from '../../apps/shared/auth/http.ts'
import { principalOf } from '../../apps/shared/auth/principals.ts'
import { Identity } from '../../apps/shared/contracts/gen/auth_pb.ts'
import { createRpcClient } from '../../apps/shared/rpc/client.ts'
import { lockAdmins } from '../../db/identity/queries.ts'
import {
  external_identities,
  grants,
  group_members,
  groups,
  machine_credentials,
  outbox,
  scim_members,
  scim_resources,
  scim_unaligned,
  user_events,
  users,
} from '../../db/identity/tables.ts'
import { bearer, PASSWORD, send } from '../session/support/auth.ts'
import { bearerOf, type Sso, startSso } from '../session/support/sso.ts'
import { until } from '../support/until.ts'

/** federation.md 9: requests as Entra ID and Okta send them, and everything that must be out of a directory's reach. */

const SCIM = { scim: { machine: 'machine:dir', match: 'sub' } }
const USER = 'urn:ietf:params:scim:schemas:core:2.0:User'
const GROUP = 'urn:ietf:params:scim:schemas:core:2.0:Group'
const ENTERPRISE = 'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User'
const PATCH = 'urn:ietf:params:scim:api:messages:2.0:PatchOp'
const LIST = 'urn:ietf:params:scim:api:messages:2.0:ListResponse'
const ERROR = 'urn:ietf:params:scim:api:messages:2.0:Error'

let sso: Sso
let key: string
let ada: { id: string; headers: Record<string, string> }
beforeAll(async () => {
  sso = await startSso(SCIM)
  await sso.addRelay()
  const { id } = await sso.addUser('ada', ['admin'])
  await sso.addUser('olga')
  const signed = await send(`${sso.gateway.url}/v1/token`, { body: { username: 'ada', password: PASSWORD } })
  ada = { id, headers: bearer(signed.body.access_token) }
  await sso.identity_deps.db.insert(groups).values({ group_key: 'netops', name: 'Network operations' })
  key = await keyOf('dir', ['scim:write'])
})
afterAll(() => sso?.stop())
beforeEach(() => sso.configure(SCIM))

const admin = (path: string, body: object = {}) =>
  send(`${sso.gateway.url}/api/v1/admin${path}`, { body, headers: { ...ada.headers, 'idempotency-key': randomUUID() } })
/** The API key of a new machine. */
const keyOf = async (name: string, permissions: string[]) => {
  const machine = await admin('/machines', { name, owners: [ada.id] })
  const made = await admin(`/machines/${machine.body.id}/credentials`, { kind: 'key', name: 'test', permissions })
  expect(made.status).toBe(201)
  return String(made.body.key)
}
const scim = async (
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE',
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
) => {
  const typed = body !== undefined && { 'content-type': 'application/scim+json' }
  const reply = await send(`${sso.gateway.url}/scim/v2${path}`, {
    method,
    body,
    headers: { ...bearer(key), ...typed, ...headers },
  })
  return { ...reply, body: reply.body as Record<string, unknown> & { id: string; Resources: { id: string }[] } }
}
const failed = (status: number, scimType?: string) => ({
  status,
  body: { schemas: [ERROR], status: String(status), detail: expect.any(String), ...(scimType && { scimType }) },
})
const find = (path: string, filter: string) => scim('GET', `${path}?filter=${encodeURIComponent(filter)}`)
const patch = (path: string, ...Operations: object[]) => scim('PATCH', path, { schemas: [PATCH], Operations })

const nameless = () => randomUUID().slice(0, 8)
/** A person as Entra ID creates one. */
const entraUser = (userName: string, externalId: string = randomUUID()) => ({
  schemas: [USER, ENTERPRISE],
  externalId,
  userName,
  active: true,
  emails: [{ primary: true, type: 'work', value: `${userName}@example.com` }],
  meta: { resourceType: 'User' },
  name: { formatted: 'Eva Example', familyName: 'Example', givenName: 'Eva' },
  roles: [],
})
const hire = async (userName = `n-${nameless()}`, externalId?: string) => {
  const made = await scim('POST', '/Users', entraUser(userName, externalId))
  expect(made.status).toBe(201)
  return made.body.id
}
const team = async (displayName: string, ...members: string[]) => {
  const made = await scim('POST', '/Groups', {
    schemas: [GROUP],
    externalId: randomUUID(),
    displayName,
    members: members.map((value) => ({ value })),
  })
  expect(made.status).toBe(201)
  return made.body.id
}
const membersOf = async (id: string) => {
  const { members } = (await scim('GET', `/Groups/${id}`)).body as unknown as { members: { value: string }[] }
  return members.map(({ value }) => value)
}
const accountOf = async (id: string) => (await sso.identity_deps.db.select().from(users).where(eq(users.id, id)))[0]
const rightsOf = async (id: string) => {
  const { db } = sso.identity_deps
  const joined = await db.select().from(group_members).where(eq(group_members.user_id, id))
  const own = await db.select().from(grants).where(eq(grants.subject_id, id))
  return [...joined.map(({ group_key }) => group_key), ...own.map(({ role }) => role)].sort()
}
/** What the directory changed about an object, from the audit log and the outbox. */
const actionsOf = async (object: string) =>
  (await sso.identity_deps.db.select().from(user_events).where(eq(user_events.object, object))).map((row) => row.action)

const denialsOf = async (object: string) => {
  const { db } = sso.identity_deps
  const rows = await db.select().from(user_events).where(eq(user_events.object, object)).orderBy(user_events.at)
  return rows.map(({ actor, reason }) => [actor, reason])
}

describe('the door', () => {
  it('is the same at the gateway and behind it', async () => {
    const rows = SCIM_ROUTES.map(({ method, path, kind }) => `${method} ${path.replace(/{(\w+)}/, ':$1')} ${kind}`)
    const { app, internal } = buildApp(sso.identity_deps)
    await app.ready()
    const served = authorizedRoutes(app).filter(({ method, url }) => url.startsWith('/scim/') && method !== 'HEAD')
    expect(served.map(({ method, url, kind }) => `${method} ${url} ${kind}`).sort()).toEqual(rows.sort())
    await Promise.all([app.close(), internal.close()])
  })

  it('describes what it supports', async () => {
    const config = await scim('GET', '/ServiceProviderConfig')
    expect(config).toMatchObject({ status: 200, body: { patch: { supported: true }, bulk: { supported: false } } })
    expect(config.headers['content-type']).toBe('application/scim+json; charset=utf-8')
    expect((await scim('GET', '/ResourceTypes')).body.Resources.map(({ id }) => id)).toEqual(['User', 'Group'])
    expect((await scim('GET', '/Schemas')).body).toMatchObject({ schemas: [LIST], totalResults: 2 })
    expect((await scim('GET', `/Schemas/${GROUP}`)).body).toMatchObject({ id: GROUP, name: 'Group' })
    expect((await scim('GET', '/ResourceTypes/User')).body).toMatchObject({ id: 'User', schema: USER })
    for (const path of ['/Schemas/x', '/ResourceTypes/x', '/x'])
      expect(await scim('GET', path)).toMatchObject(failed(404))
    expect(await scim('POST', '/.search', { filter: 'userName pr' })).toMatchObject(failed(501))
    // The gateway refuses these itself, in the same form.
    const refused = await scim('DELETE', '/Users')
    expect(refused).toMatchObject(failed(405))
    expect(refused.headers['content-type']).toBe('application/scim+json; charset=utf-8')
    for (const [path, status] of [
      ['', 404],
      ['/Users/a%2fb', 400],
    ] as const)
      expect(await scim('GET', path), path).toMatchObject(failed(status))
  })

  it('accepts the key of the machine that the file names, with the permission, and no other', async () => {
    const tries = [
      [{ authorization: '' }, 401],
      [bearer('sbk_0'), 401],
      [bearer(`${key.slice(0, -1)}${key.endsWith('A') ? 'B' : 'A'}`), 401],
      [ada.headers, 401],
      [bearer(await keyOf('other', ['scim:write'])), 403],
    ] as const
    for (const [headers, status] of tries) {
      expect(await scim('GET', '/Users', undefined, headers)).toMatchObject(failed(status))
      expect(await scim('POST', '/Users', 'no JSON', headers)).toMatchObject({ status })
    }
    const machine = (await accountNamed('machine:dir'))?.id
    const weak = await admin(`/machines/${machine}/credentials`, {
      kind: 'key',
      name: 'x',
      permissions: ['audit:read'],
    })
    const refused = await scim('GET', '/Users', undefined, bearer(weak.body.key))
    expect(refused).toMatchObject(failed(403))
    expect(refused.body.detail).toContain('file of providers')
    expect(await find('/Users', 'userName eq "a\tb"')).toMatchObject({ status: 200, body: { totalResults: 0 } })
    const far = { kind: 'key', name: 'far', permissions: ['scim:write'], networks: ['203.0.113.0/24'] }
    const elsewhere = await admin(`/machines/${machine}/credentials`, far)
    const network = await scim('GET', '/Users', undefined, bearer(elsewhere.body.key))
    expect(network).toMatchObject(failed(403))
    expect(network.body.detail).toContain('may not be used from this address')
    expect(await actionsOf('route:GET /scim/v2/Users')).toContain('request.denied')
    // Its owners read why one of their keys is refused.
    await sso.identity_deps.db
      .update(machine_credentials)
      .set({ expires_at: new Date(0).toISOString() })
      .where(eq(machine_credentials.name, 'x'))
    expect(await scim('GET', '/Users', undefined, bearer(weak.body.key))).toMatchObject(failed(401))
    expect((await denialsOf('route:GET /scim/v2/Users')).at(-1)).toEqual([`user:${machine}`, 'expired'])
    sso.configure({ ...SCIM, enabled: false })
    expect(await scim('GET', '/Users')).toMatchObject(failed(403))
  })

  it('notes no more than 60 refusals of an address in a minute', async () => {
    const { app, internal } = buildApp(sso.identity_deps)
    const other = await keyOf('noisy', ['scim:write'])
    const machine = `user:${(await accountNamed('machine:noisy'))?.id}`
    const noted = async () =>
      (await denialsOf('route:GET /scim/v2/Users')).filter(([actor]) => actor === machine).length
    const tryFrom = async (address: string) => {
      const headers = { ...bearer(other), 'x-forwarded-for': address }
      expect((await app.inject({ url: '/scim/v2/Users', headers })).statusCode).toBe(403)
    }
    for (let n = 0; n < 65; n++) await tryFrom(`2001:db8::${n}`)
    expect(await noted()).toBe(60)
    await tryFrom('198.51.100.7')
    expect(await noted()).toBe(61)
    await Promise.all([app.close(), internal.close()])
  })

  it('accepts its own content type and JSON, within limits; no other endpoint does', async () => {
    const json = { 'content-type': 'application/json' }
    expect((await scim('POST', '/Users', entraUser(`j-${nameless()}`), json)).status).toBe(201)
    for (const type of ['text/plain', 'application/xml', 'application/merge-patch+json'])
      expect(await scim('POST', '/Users', entraUser('x'), { 'content-type': type })).toMatchObject(failed(415))
    expect(await scim('POST', '/Users', '{"userName":')).toMatchObject(failed(400))
    expect(await scim('POST', '/Users', [])).toMatchObject(failed(400, 'invalidSyntax'))
    expect(await scim('POST', '/Users', { ...entraUser('big'), title: 'x'.repeat(1_048_576) })).toMatchObject(
      failed(413),
    )
    const elsewhere = await send(`${sso.gateway.url}/api/v1/admin/groups`, {
      body: { group_key: 'scim', name: 'x' },
      headers: { ...ada.headers, 'content-type': 'application/scim+json', 'idempotency-key': randomUUID() },
    })
    expect(elsewhere.status).toBe(415)
  })
})

const accountNamed = async (username: string) =>
  (await sso.identity_deps.db.select().from(users).where(eq(users.username, username)))[0]

describe('Entra ID', () => {
  it('probes, creates, finds and changes a person', async () => {
    const probe = await find('/Users', `userName eq "${randomUUID()}"`)
    expect(probe).toMatchObject({ status: 200, body: { schemas: [LIST], totalResults: 0, Resources: [] } })
    const userName = `e-${nameless()}@example.com`
    const sent = entraUser(userName)
    const made = await scim('POST', '/Users', sent)
    const { id } = made.body
    expect(made).toMatchObject({
      status: 201,
      body: { userName, externalId: sent.externalId, active: true, meta: { resourceType: 'User' } },
    })
    expect(made.headers.location).toBe(`http://console.test/scim/v2/Users/${id}`)
    const filters = [`userName eq "${userName.toUpperCase()}"`, `externalId eq "${sent.externalId}"`, `id eq "${id}"`]
    const escaped = `userName Eq "\\u00${userName.charCodeAt(0).toString(16)}${userName.slice(1)}"`
    for (const filter of [...filters, escaped, filters.join(' and ')])
      expect((await find('/Users', filter)).body).toMatchObject({ totalResults: 1, Resources: [{ id }] })
    const changed = await patch(
      `/Users/${id}`,
      { op: 'Replace', path: 'displayName', value: 'Eva E.' },
      { op: 'Add', path: 'emails[type eq "work"].value', value: 'new@example.com' },
      { op: 'Add', path: `${ENTERPRISE}:department`, value: 'IT' },
      { op: 'replace', value: { 'name.givenName': 'Eva', [`${USER}:userName`]: `x-${userName}` } },
    )
    expect(changed).toMatchObject({ status: 200, body: { displayName: 'Eva E.', userName: `x-${userName}` } })
    // The name by which people here know the account stays.
    expect(await accountOf(id)).toMatchObject({ username: userName, provider: 'corp', link_shown: false })
    expect((await find('/Users', 'displayName eq "eva e."')).body.totalResults).toBe(1)
    const off = await patch(`/Users/${id}`, { op: 'Replace', path: 'active', value: 'False' })
    expect(off).toMatchObject({ status: 200, body: { active: false } })
    expect((await patch(`/Users/${id}`, { op: 'Add', path: 'active', value: 'True' })).body.active).toBe(true)
    // The form that a tenant sends without Microsoft's switch for the standard.
    const listed = (path: string, value: string) => ({ op: 'Replace', path, value: [{ $ref: null, value }] })
    expect(await patch(`/Users/${id}`, listed('displayName', 'Eva'), listed('active', 'False'))).toMatchObject({
      status: 200,
      body: { active: false, displayName: 'Eva' },
    })
    for (const value of [[], [{}], [{ value: 'False' }, { value: 'True' }], { value: 'False' }])
      expect(await patch(`/Users/${id}`, { op: 'replace', path: 'active', value })).toMatchObject(
        failed(400, 'invalidValue'),
      )
    expect(await actionsOf(`user:${id}`)).toEqual([
      ...['user.created', 'user.changed', 'user.disabled', 'user.enabled', 'user.disabled'],
    ])
  })

  it('creates people with apostrophes, guests and long names', async () => {
    const tag = nameless()
    for (const name of [
      `pat.o'brien.${tag}@example.com`,
      `${tag}_gmail.com#EXT#@t.onmicrosoft.com`,
      `${tag}${'n'.repeat(100)}`,
    ])
      expect(await scim('POST', '/Users', entraUser(name))).toMatchObject({ status: 201, body: { userName: name } })
    expect(await scim('POST', '/Users', entraUser('n'.repeat(129)))).toMatchObject(failed(400, 'invalidValue'))
    const made = await admin('/users', { username: `o'brien-${tag}` })
    expect(made.status).toBe(400)
  })

  it('adds and removes members, by path and by value, and checks a membership', async () => {
    const [eva, tom] = [await hire(), await hire()]
    const id = await team(`t-${nameless()}`)
    expect(
      (await patch(`/Groups/${id}`, { op: 'Add', path: 'members', value: [{ value: eva }, { value: tom }] })).status,
    ).toBe(200)
    expect((await membersOf(id)).sort()).toEqual([eva, tom].sort())
    const asked = `id eq "${id}" and members eq "${eva}"`
    const found = await scim('GET', `/Groups?excludedAttributes=members&filter=${encodeURIComponent(asked)}`)
    expect(found.body).toMatchObject({ totalResults: 1, Resources: [{ id }] })
    expect(found.text).not.toContain('members')
    const { headers, body } = await scim(
      'GET',
      `/Groups/${id}?attributes=members.value,urn:ietf:params:scim:schemas:core:2.0:Group:EXTERNALID`,
    )
    expect(Object.keys(body).sort()).toEqual(['externalId', 'id', 'members', 'meta', 'schemas'])
    expect(headers.etag).toBe((body.meta as { version: string }).version)
    expect(body.members).toContainEqual({
      value: tom,
      type: 'User',
      $ref: expect.stringMatching(`/scim/v2/Users/${tom}$`),
    })
    await patch(`/Groups/${id}`, { op: 'Remove', path: `members[value eq "${eva}"]` })
    expect(await membersOf(id)).toEqual([tom])
    expect((await find('/Groups', asked)).body.totalResults).toBe(0)
    await patch(`/Groups/${id}`, { op: 'Remove', path: 'members', value: [{ value: tom }] })
    expect(await membersOf(id)).toEqual([])
    await patch(`/Groups/${id}`, { op: 'Replace', path: 'members', value: [{ value: tom }] })
    await patch(`/Groups/${id}`, { op: 'Remove', path: 'members' })
    expect(await membersOf(id)).toEqual([])
  })
})

describe('Okta', () => {
  it('pages, replaces a whole person and deactivates without a path', async () => {
    const ids = [await hire(), await hire(), await hire()]
    const page = await scim('GET', '/Users?startIndex=2&count=2')
    expect(page.body).toMatchObject({ startIndex: 2, itemsPerPage: 2 })
    expect(Number(page.body.totalResults)).toBeGreaterThanOrEqual(ids.length)
    expect((await scim('GET', '/Users?count=0')).body).toMatchObject({ itemsPerPage: 0, Resources: [] })
    const [id = ''] = ids
    const { body } = await scim('GET', `/Users/${id}`)
    const whole = { ...body, displayName: 'Okta Person', locale: 'en-US', groups: [], password: 'never kept' }
    expect(await scim('PUT', `/Users/${id}`, whole)).toMatchObject({
      status: 200,
      body: { displayName: 'Okta Person' },
    })
    const off = await patch(`/Users/${id}`, { op: 'replace', value: { active: false } })
    expect(off).toMatchObject({ status: 200, body: { active: false, displayName: 'Okta Person' } })
    const { displayName: _, ...rest } = whole
    const back = await scim('PUT', `/Users/${id}`, { ...rest, active: true })
    expect(back).toMatchObject({ status: 200, body: { active: true } })
    expect(back.body.displayName).toBeUndefined()
  })

  it('pushes a group, renames it and replaces its members', async () => {
    const [eva, tom] = [await hire(), await hire()]
    const name = `o-${nameless()}`
    const id = await team(name, eva)
    expect((await find('/Groups', `displayName eq "${name}"`)).body.Resources[0]?.id).toBe(id)
    const renamed = await patch(`/Groups/${id}`, { op: 'replace', value: { id, displayName: `${name}-2` } })
    expect(renamed.body.displayName).toBe(`${name}-2`)
    const put = { schemas: [GROUP], id, displayName: name, members: [{ value: tom, display: 'tom' }] }
    expect(await scim('PUT', `/Groups/${id}`, put)).toMatchObject({ status: 200, body: { members: [{ value: tom }] } })
    expect((await scim('DELETE', `/Groups/${id}`)).status).toBe(204)
    expect(await scim('GET', `/Groups/${id}`)).toMatchObject(failed(404))
  })

  it('shows all of its name: rights are granted by the exact text', async () => {
    for (const text of ['no\u202ec', 'n\u200boc', '  ', 'a\nb'])
      for (const body of [{ displayName: text }, { displayName: `g-${nameless()}`, externalId: text }])
        expect(await scim('POST', '/Groups', body), JSON.stringify(body)).toMatchObject(failed(400, 'invalidValue'))
  })

  it('keeps its name as sent: a look-alike gains no rights, and what the map spells alike does', async () => {
    const [lab, alike, spelled] = ['lab', 'ｌａｂ', '運用（東京）']
    const map = { [lab]: { roles: ['approver'] }, [spelled]: { roles: ['viewer'] } }
    sso.configure({ ...SCIM, groups: { claim: 'groups', map } })
    const [eva, tom] = [await hire(), await hire()]
    const group = await team(alike, eva)
    expect(await rightsOf(eva)).toEqual([])
    await patch(`/Groups/${group}`, { op: 'replace', path: 'displayName', value: 'other' })
    await patch(`/Groups/${group}`, { op: 'replace', path: 'displayName', value: alike })
    expect(await rightsOf(eva)).toEqual([])
    // They stay one name for filters, and for a second group.
    expect((await find('/Groups', `displayName eq "${lab}"`)).body.Resources[0]?.id).toBe(group)
    expect(await scim('POST', '/Groups', { displayName: lab })).toMatchObject(failed(409, 'uniqueness'))
    const own = await team(spelled, tom)
    expect(await rightsOf(tom)).toEqual(['viewer'])
    expect((await scim('GET', `/Groups/${own}`)).body.displayName).toBe(spelled)
    for (const id of [group, own]) await scim('DELETE', `/Groups/${id}`)
  })
})

/** Why an approval by this person does not count, by the rule and with the answer that operations gets. */
const voteOf = async (id: string) => {
  const identity = createRpcClient(Identity, {
    url: sso.vars.AUTH__RPC__IDENTITY_URL ?? '',
    signer: sso.services.signer('operations'),
    audience: 'identity-internal',
  })
  const { principal } = await identity.getPrincipal({ userId: id })
  const footing = { permissions: ['gate:decide'], places: [{}], groups: ['netops'], taint: undefined } as const
  return lossOf(principal && principalOf(principal), footing)
}

describe('a leaver', () => {
  it('is disabled by a request that also changes what never changes, and keeps the old id', async () => {
    const off = { op: 'replace', path: 'active', value: 'False' }
    const requests: ((path: string, sent: object) => Promise<{ status: number }>)[] = [
      (path) => patch(path, { op: 'replace', value: { active: false, externalId: null } }),
      (path) => patch(path, off, { op: 'remove', path: 'externalId' }),
      (path) => patch(path, { op: 'replace', path: 'externalId', value: randomUUID() }, off),
      (path) => patch(path, { op: 'replace', path: 'id', value: randomUUID() }, off),
      (path, sent) => scim('PUT', path, { ...sent, active: false, externalId: '' }),
    ]
    for (const [at, request] of requests.entries()) {
      const sent = entraUser(`off-${nameless()}`)
      const id = await hire(sent.userName, sent.externalId)
      expect([at, (await request(`/Users/${id}`, sent)).status]).toEqual([at, 200])
      expect([at, (await accountOf(id))?.status]).toEqual([at, 'DISABLED'])
      expect((await scim('GET', `/Users/${id}`)).body).toMatchObject({ active: false, externalId: sent.externalId })
    }
  })

  it('is signed out everywhere within seconds', async () => {
    const id = await hire(`mia-${nameless()}`, 's-mia')
    await patch(`/Groups/${await team('noc', id)}`, { op: 'add', path: 'members', value: [{ value: id }] })
    const browser = sso.browser()
    expect((await browser.signIn('s-mia')).status).toBe(303)
    const headers = await bearerOf(browser)
    const me = () => browser.go('/api/v1/users/me', { headers })
    expect((await me()).body).toMatchObject({ id, groups: ['netops'], roles: ['approver'] })
    expect((await patch(`/Users/${id}`, { op: 'Replace', path: 'active', value: 'False' })).status).toBe(200)
    // The answer waited for the end of the sessions.
    expect((await me()).status).toBe(401)
    expect((await sso.browser().signIn('s-mia')).body.code).toBe('account_disabled')
    const told = await sso.identity_deps.db.select().from(outbox).where(eq(outbox.agg_id, id))
    expect(told).toMatchObject([{ type: 'auth.user.status_changed.v1', payload: { from: 'ACTIVE', to: 'DISABLED' } }])
    // Operations' answer when it asks again about a vote: the rights stay, but the account is disabled.
    expect(await rightsOf(id)).toEqual(['approver', 'netops'])
    expect(await voteOf(id)).toBe('voter_disabled')
    await patch(`/Users/${id}`, { op: 'Replace', path: 'active', value: 'True' })
    expect(await voteOf(id)).toBeUndefined()
  })

  it('who is deleted reads as missing, loses the groups, and returns as the same person', async () => {
    const name = `d-${nameless()}`
    const sent = entraUser(name)
    const { id } = (await scim('POST', '/Users', sent)).body
    const group = await team(`x-${nameless()}`, id)
    expect((await scim('DELETE', `/Users/${id}`)).status).toBe(204)
    expect(await scim('GET', `/Users/${id}`)).toMatchObject(failed(404))
    expect(await scim('DELETE', `/Users/${id}`)).toMatchObject(failed(404))
    expect((await find('/Users', `userName eq "${name}"`)).body.totalResults).toBe(0)
    expect([await membersOf(group), (await accountOf(id))?.status]).toEqual([[], 'DISABLED'])
    expect(await scim('POST', '/Users', sent)).toMatchObject({ status: 201, body: { id, active: true } })
  })

  it('whose name comes back with another id is another person: a new account without the old rights', async () => {
    const name = `again-${nameless()}`
    const [first, second] = [`s-${name}-1`, `s-${name}-2`]
    for (const sub of [first, second]) sso.people.push({ sub, name, groups: [] })
    const old = await hire(name, first)
    expect((await sso.browser().signIn(first)).status).toBe(303)
    await admin('/grants', { subject_type: 'user', subject_id: old, role: 'approver' })
    // Still there, if only disabled: neither name nor record passes to another person.
    await patch(`/Users/${old}`, { op: 'replace', value: { active: false } })
    expect(await scim('POST', '/Users', entraUser(name, second))).toMatchObject(failed(409, 'uniqueness'))
    const taken = await scim('PUT', `/Users/${old}`, entraUser(name, second))
    expect(taken).toMatchObject(failed(400, 'mutability'))
    expect(taken.body.detail).toContain('DELETE')
    expect((await scim('DELETE', `/Users/${old}`)).status).toBe(204)
    const made = await scim('POST', '/Users', entraUser(name, second))
    expect(made).toMatchObject({ status: 201, body: { userName: name, active: true } })
    const { id } = made.body
    expect(id).not.toBe(old)
    expect(await accountOf(id)).toMatchObject({ username: `${name}~2`, status: 'ACTIVE' })
    expect(await rightsOf(id)).toEqual([])
    expect((await find('/Users', `userName eq "${name}"`)).body.Resources).toMatchObject([{ id }])
    expect((await sso.browser().signIn(first)).body.code).toBe('account_disabled')
    expect((await sso.browser().signIn(second)).status).toBe(303)
    expect((await accountOf(old))?.status).toBe('DISABLED')
    // A third one. The first can come back, but not under a name that is now another's.
    await scim('DELETE', `/Users/${id}`)
    const third = await scim('POST', '/Users', entraUser(name))
    expect(await accountOf(third.body.id)).toMatchObject({ username: `${name}~3` })
    expect(await scim('POST', '/Users', entraUser(name, first))).toMatchObject(failed(409, 'uniqueness'))
    const back = await scim('POST', '/Users', entraUser(`${name}-b`, first))
    expect(back).toMatchObject({ status: 201, body: { id: old, userName: `${name}-b` } })
  })

  it('is out even if the name that comes with it is refused', async () => {
    const [eva, tom] = [await hire(), await hire(`tom-${nameless()}`)]
    const taken = (await accountOf(tom))?.username
    const off = { op: 'replace', path: 'active', value: false }
    for (const [id, userName] of [
      [eva, taken],
      [tom, 'ada'],
      [await hire(), 'no name at all'],
    ] as const) {
      const before = (await scim('GET', `/Users/${id}`)).body.userName
      const rename = { op: 'replace', path: 'userName', value: userName }
      expect((await patch(`/Users/${id}`, rename)).status).toBeGreaterThanOrEqual(400)
      expect(await patch(`/Users/${id}`, rename, off)).toMatchObject({
        status: 200,
        body: { active: false, userName: before },
      })
      expect((await accountOf(id))?.status).toBe('DISABLED')
    }
  })

  it('gets the name that another person there gave up, or that a deleted account had, with a numbered account', async () => {
    const name = `up-${nameless()}`
    const first = await hire(name)
    expect((await patch(`/Users/${first}`, { op: 'replace', value: { userName: `${name}.k` } })).status).toBe(200)
    expect(await accountOf(await hire(name))).toMatchObject({ username: `${name}~2` })
    const third = await hire()
    const free = `free-${nameless()}`
    await scim('DELETE', `/Users/${await hire(free)}`)
    expect(await patch(`/Users/${third}`, { op: 'replace', value: { userName: free } })).toMatchObject({
      status: 200,
      body: { userName: free },
    })
    const local = await sso.addUser(`local-${nameless()}`)
    await admin(`/users/${local.id}/delete`, { reason: 'left' })
    const { username = '' } = (await accountOf(local.id)) ?? {}
    expect(await accountOf(await hire(username))).toMatchObject({ username: `${username}~2` })
  })

  it('whose own account was deleted before the directory knew it comes back once it is unlinked', async () => {
    const [name, sub] = [`was-${nameless()}`, `s-${nameless()}`]
    sso.people.push({ sub, name, groups: ['staff'] })
    expect((await sso.browser().signIn(sub)).status).toBe(303)
    const [old] = await sso.identity_deps.db.select().from(users).where(eq(users.username, name))
    expect((await admin(`/users/${old?.id}/delete`, { reason: 'left' })).status).toBe(200)
    const refused = await scim('POST', '/Users', entraUser(name, sub))
    expect(refused).toMatchObject(failed(409, 'uniqueness'))
    expect(refused.body.detail).toContain('unlink')
    const headers = { ...ada.headers, 'idempotency-key': randomUUID() }
    const path = `${sso.gateway.url}/api/v1/admin/users/${old?.id}/identities/corp`
    expect((await send(path, { method: 'DELETE', headers })).status).toBe(204)
    expect(await accountOf(await hire(name, sub))).toMatchObject({ username: `${name}~2`, status: 'ACTIVE' })
  })

  it.each(['after a sign-in', 'before any'])(
    'whose managed account was deleted %s comes back once it is unlinked',
    async (when) => {
      const [name, sub] = [`back-${nameless()}`, `s-${nameless()}`]
      sso.people.push({ sub, name, groups: ['staff'] })
      const old = await hire(name, sub)
      const signIn = () => sso.browser().signIn(sub)
      if (when === 'after a sign-in') expect((await signIn()).status).toBe(303)
      expect((await admin(`/users/${old}/delete`, { reason: 'left' })).status).toBe(200)
      const refused = await scim('POST', '/Users', entraUser(name, sub))
      expect(refused).toMatchObject(failed(409, 'uniqueness'))
      expect(refused.body.detail).toContain('unlink')
      expect((await signIn()).body.code).toBe('account_disabled')
      const headers = { ...ada.headers, 'idempotency-key': randomUUID() }
      const unlink = (at = 'corp') =>
        send(`${sso.gateway.url}/api/v1/admin/users/${old}/identities/${at}`, { method: 'DELETE', headers })
      expect((await unlink()).status).toBe(204)
      expect((await unlink()).status).toBe(204)
      headers['idempotency-key'] = randomUUID()
      expect((await unlink()).status).toBe(404)
      expect(await actionsOf(`user:${old}`)).toContain('user.identity_unlinked')
      const id = await hire(name, sub)
      expect(await accountOf(id)).toMatchObject({ username: `${name}~2`, status: 'ACTIVE' })
      expect((await signIn()).status).toBe(303)
      expect((await accountOf(old))?.status).toBe('DELETED')
    },
  )

  it('whose account an administrator deleted is gone for the directory, and the name is free for another', async () => {
    const name = `del-${nameless()}`
    const sent = entraUser(name)
    const { id } = (await scim('POST', '/Users', sent)).body
    const [bo, eva] = [await hire(), await hire()]
    const crew = await team(`t-${nameless()}`, id, bo)
    const gone = await admin(`/users/${id}/delete`, { reason: 'left' })
    expect([gone.status, (await accountOf(id))?.status]).toEqual([200, 'DELETED'])
    expect((await find('/Users', `userName eq "${name}"`)).body.totalResults).toBe(0)
    expect(await patch(`/Users/${id}`, { op: 'replace', value: { active: true } })).toMatchObject(failed(404))
    // An older build left the membership.
    await sso.identity_deps.db.insert(scim_members).values({ group_id: crew, user_id: id })
    expect(await membersOf(crew)).toEqual([bo])
    expect((await find('/Groups', `members eq "${id}"`)).body.totalResults).toBe(0)
    // The directory still names them, and that keeps nobody else in or out.
    const add = (...members: string[]) =>
      patch(`/Groups/${crew}`, { op: 'add', path: 'members', value: members.map((value) => ({ value })) })
    const only = { schemas: [GROUP], displayName: `t-${nameless()}`, members: [{ value: id }] }
    expect((await scim('PUT', `/Groups/${crew}`, only)).status).toBe(200)
    expect(await membersOf(crew)).toEqual([])
    expect((await add(id, eva)).status).toBe(200)
    expect(await membersOf(crew)).toEqual([eva])
    expect(await add(id, randomUUID())).toMatchObject(failed(400, 'invalidValue'))
    expect(await scim('POST', '/Users', sent)).toMatchObject(failed(409, 'uniqueness'))
    const removed = entraUser(`del-${nameless()}`)
    const { id: both } = (await scim('POST', '/Users', removed)).body
    expect((await scim('DELETE', `/Users/${both}`)).status).toBe(204)
    await admin(`/users/${both}/delete`, { reason: 'left' })
    expect(await scim('POST', '/Users', removed)).toMatchObject(failed(409, 'uniqueness'))
    const made = await scim('POST', '/Users', entraUser(name))
    expect(made).toMatchObject({ status: 201, body: { userName: name } })
    expect((await accountOf(id))?.status).toBe('DELETED')
  })

  it('whom an administrator disabled stays out, whoever did it first', async () => {
    const [eva, tom] = [await hire(), await hire()]
    const off = { op: 'replace', value: { active: false } }
    const on = { op: 'replace', value: { active: true } }
    await patch(`/Users/${tom}`, off)
    for (const id of [eva, tom]) {
      expect((await admin(`/users/${id}/disable`, { reason: 'left' })).status).toBe(200)
      expect(await patch(`/Users/${id}`, on)).toMatchObject(failed(409, 'mutability'))
      expect((await patch(`/Users/${id}`, off)).status).toBe(200)
      expect((await accountOf(id))?.status).toBe('DISABLED')
    }
  })
})

describe('a directory', () => {
  it('sees and changes only accounts that it created', async () => {
    const theirs = await hire()
    await sso.identity_deps.db.update(scim_resources).set({ provider: 'other' }).where(eq(scim_resources.id, theirs))
    for (const id of [ada.id, theirs, randomUUID(), 'x']) {
      expect(await scim('GET', `/Users/${id}`)).toMatchObject(failed(404))
      expect(await patch(`/Users/${id}`, { op: 'replace', value: { active: false } })).toMatchObject(failed(404))
      expect(await scim('PUT', `/Users/${id}`, entraUser('ada'))).toMatchObject(failed(404))
      expect(await scim('DELETE', `/Users/${id}`)).toMatchObject(failed(404))
    }
    expect((await find('/Users', 'userName eq "ada"')).body.totalResults).toBe(0)
    for (const name of ['ada', 'ADA', 'machine:dir'])
      expect((await scim('POST', '/Users', entraUser(name))).status).toBe(name.startsWith('machine') ? 400 : 409)
    const id = await hire()
    expect(await patch(`/Users/${id}`, { op: 'replace', value: { userName: 'ada' } })).toMatchObject(
      failed(409, 'uniqueness'),
    )
    const group = await team(`s-${nameless()}`)
    for (const member of [ada.id, randomUUID(), 'x'])
      expect(await patch(`/Groups/${group}`, { op: 'add', path: 'members', value: [{ value: member }] })).toMatchObject(
        failed(400, 'invalidValue'),
      )
    expect((await accountOf(ada.id))?.status).toBe('ACTIVE')
  })

  it('links a person once by the claim that identifies them there, and never by name or address', async () => {
    const { db } = sso.identity_deps
    const linked = async (id: string) =>
      db.select().from(external_identities).where(eq(external_identities.user_id, id))
    // It has the same name and the verified address of s-eva, but another id.
    const namesake = (
      await scim('POST', '/Users', { ...entraUser('eva', 's-other'), emails: [{ value: 'eva@example.com' }] })
    ).body.id
    expect((await sso.browser().signIn('s-eva')).body.code).toBe('username_taken')
    expect(await linked(namesake)).toEqual([])
    const tom = await hire('thomas', 's-tom')
    // The claims of s-tom name no mapped group; the directory does, and it decides.
    const noc = (await find('/Groups', 'displayName eq "noc"')).body.Resources[0]?.id ?? (await team('noc'))
    await patch(`/Groups/${noc}`, { op: 'add', path: 'members', value: [{ value: tom }] })
    expect((await sso.browser().signIn('s-tom')).status).toBe(303)
    expect(await linked(tom)).toMatchObject([{ provider: 'corp', subject: 's-tom' }])
    expect(await rightsOf(tom)).toEqual(['approver', 'netops'])
    expect((await sso.browser().signIn('s-tom')).status).toBe(303)
    expect(await linked(tom)).toHaveLength(1)
    // A claim other than the subject counts if the file says so; a second subject never replaces the first.
    sso.configure({ scim: { machine: 'machine:dir', match: 'oid' } })
    sso.state.amend = (claims) => ({ ...claims, oid: 's-tom' })
    expect((await sso.browser().signIn('s-out')).body.code).toBe('subject_changed')
    sso.state.amend = (claims) => claims
  })

  it.each<[string, (id: string) => Promise<unknown>]>([
    ['the directory took the person out of the group', (id) => leave(id)],
    ['an administrator disabled the account', (id) => close(id)],
    ['the identity was unlinked', (id) => unlink(id)],
  ])('gives no right back if %s during the sign-in', async (_what, meanwhile) => {
    const sub = `s-${nameless()}`
    sso.people.push({ sub, name: sub, groups: [] })
    const id = await hire(sub, sub)
    const names = { noc: { groups: ['netops'], roles: ['approver'] } }
    // Before she is in the group: a changed file gives its people their rights by itself.
    sso.configure({ ...SCIM, groups: { claim: 'groups', map: names } })
    expect((await sso.browser().signIn(sub)).status).toBe(303)
    const noc = (await find('/Groups', 'displayName eq "noc"')).body.Resources[0]?.id ?? (await team('noc'))
    const { db } = sso.identity_deps
    await db.insert(scim_members).values({ group_id: noc, user_id: id })
    let done: Promise<unknown> | undefined
    await db.transaction(async (tx) => {
      await lockAdmins(tx)
      // It has read that the person is in the group, and waits to write their rights.
      done = sso.browser().signIn(sub)
      await until(async () => (await waiting()) > 0)
      await meanwhile(id)
    })
    await done
    expect(await rightsOf(id)).toEqual([])
  })
  const waiting = async () => {
    const sql = `select 1 from pg_locks l join pg_database d on d.oid = l.database and d.datname = current_database()
      where not l.granted and l.locktype = 'advisory'`
    return (await sso.identity_deps.db.$client.query(sql)).rows.length
  }
  const leave = (id: string) => sso.identity_deps.db.delete(scim_members).where(eq(scim_members.user_id, id))
  const close = (id: string) => sso.identity_deps.db.update(users).set({ status: 'DISABLED' }).where(eq(users.id, id))
  const unlink = (id: string) =>
    sso.identity_deps.db.delete(external_identities).where(eq(external_identities.user_id, id))

  it('adopts accounts that this provider created at sign-in, by the same subject', async () => {
    sso.configure()
    const { people } = sso
    people.push({ sub: 's-jit', name: 'jitta', groups: ['staff'] })
    expect((await sso.browser().signIn('s-jit')).status).toBe(303)
    sso.configure(SCIM)
    const { id = '' } = (await accountNamed('jitta')) ?? {}
    expect(await scim('POST', '/Users', entraUser('jitta', 's-jit'))).toMatchObject({ status: 201, body: { id } })
  })

  /** An account with a name that the directory does not use, and the subject that its person has linked. */
  const linkedAs = async (subject: string, provider: string | null = null) => {
    const { id } = await sso.addUser(`l-${nameless()}`)
    const { db } = sso.identity_deps
    await db.insert(external_identities).values({ provider: 'corp', subject, user_id: id })
    await db.update(users).set({ provider }).where(eq(users.id, id))
    return id
  }

  it('adopts a local account that its person has linked, by the same subject and never by the name', async () => {
    const sub = `s-${nameless()}`
    const id = await linkedAs(sub)
    const { username = '' } = (await accountOf(id)) ?? {}
    expect(await scim('POST', '/Users', entraUser(username))).toMatchObject(failed(409, 'uniqueness'))
    const signed = await send(`${sso.gateway.url}/v1/token`, { body: { username, password: PASSWORD } })
    const me = () => send(`${sso.gateway.url}/api/v1/users/me`, { headers: bearer(signed.body.access_token) })
    expect((await me()).status).toBe(200)
    const userName = `n-${nameless()}`
    expect(await scim('POST', '/Users', entraUser(userName, sub))).toMatchObject({
      status: 201,
      body: { id, userName },
    })
    await patch(`/Users/${id}`, { op: 'Replace', path: 'active', value: 'False' })
    expect((await accountOf(id))?.status).toBe('DISABLED')
    expect((await me()).status).toBe(401)
    expect((await send(`${sso.gateway.url}/v1/token`, { body: { username, password: PASSWORD } })).status).toBe(401)
  })

  it('adopts no account for emergencies, and none of another provider', async () => {
    const [sub, theirs] = [`s-${nameless()}`, `s-${nameless()}`]
    const emergency = await linkedAs(sub)
    const other = await linkedAs(theirs, 'other')
    const { config } = sso.identity_deps
    const { AUTH__LOCAL__USERS } = config
    Object.assign(config, { AUTH__LOCAL__USERS: [String((await accountOf(emergency))?.username).toUpperCase()] })
    for (const one of [sub, theirs])
      expect(await scim('POST', '/Users', entraUser(`n-${nameless()}`, one))).toMatchObject(failed(409, 'uniqueness'))
    Object.assign(config, { AUTH__LOCAL__USERS })
    for (const id of [emergency, other]) expect(await scim('GET', `/Users/${id}`)).toMatchObject(failed(404))
  })

  it('sees an adopted account no longer once it is named for emergencies', async () => {
    const sub = `s-${nameless()}`
    const id = await linkedAs(sub)
    const userName = `n-${nameless()}`
    expect(await scim('POST', '/Users', entraUser(userName, sub))).toMatchObject({ status: 201, body: { id } })
    const { config } = sso.identity_deps
    const { AUTH__LOCAL__USERS } = config
    Object.assign(config, { AUTH__LOCAL__USERS: [String((await accountOf(id))?.username).toUpperCase()] })
    try {
      expect(await scim('GET', `/Users/${id}`)).toMatchObject(failed(404))
      for (const filter of [`userName eq "${userName}"`, `externalId eq "${sub}"`])
        expect((await find('/Users', filter)).body.totalResults).toBe(0)
      const off = { op: 'Replace', path: 'active', value: 'False' }
      expect(await patch(`/Users/${id}`, off)).toMatchObject(failed(404))
      expect(await scim('PUT', `/Users/${id}`, { ...entraUser(userName, sub), active: false })).toMatchObject(
        failed(404),
      )
      expect(await scim('DELETE', `/Users/${id}`)).toMatchObject(failed(404))
      expect(await scim('POST', '/Users', { ...entraUser(userName, sub), active: false })).toMatchObject(
        failed(409, 'uniqueness'),
      )
      // Nor can it be revived, if the directory had removed it before.
      const { db } = sso.identity_deps
      await db.update(scim_resources).set({ removed: true }).where(eq(scim_resources.id, id))
      expect(await scim('POST', '/Users', { ...entraUser(userName, sub), active: false })).toMatchObject(
        failed(409, 'uniqueness'),
      )
      expect((await accountOf(id))?.status).toBe('ACTIVE')
    } finally {
      Object.assign(config, { AUTH__LOCAL__USERS })
    }
  })

  it('manages one account of a person: no second one is linked or made', async () => {
    const { id: local } = await sso.addUser(`l-${nameless()}`)
    const link = (userId: string, externalId: string) =>
      linkExternal(sso.identity_deps, { userId, providerId: 'corp', subject: externalId, externalId }, 'test')
    const known = `s-${nameless()}`
    await hire(undefined, known)
    expect(await link(local, known)).toEqual({ refused: 'identity_linked' })
    const sub = `s-${nameless()}`
    sso.people.push({ sub, name: sub, groups: ['staff'] })
    expect(await link(local, sub)).toMatchObject({ user: { id: local } })
    expect(await scim('POST', '/Users', entraUser(`n-${nameless()}`, sub))).toMatchObject({ status: 201 })
    await unlink(local)
    expect((await sso.browser().signIn(sub)).body.code).toBe('identity_linked')
    expect(await accountNamed(sub)).toBeUndefined()
    expect(await link(local, sub)).toMatchObject({ user: { id: local } })
    expect((await sso.browser().signIn(sub)).status).toBe(303)
  })

  it('refuses the sign-in of a linked account beside the one that the directory made; its deletion lets both go on', async () => {
    const [sub, oid] = [`s-${nameless()}`, randomUUID()]
    const id = await linkedAs(sub)
    sso.configure({ scim: { machine: 'machine:dir', match: 'oid' } })
    sso.people.push({ sub, name: sub, groups: ['staff'] })
    sso.state.amend = (claims) => ({ ...claims, oid })
    try {
      const userName = `n-${nameless()}`
      const made = await hire(userName, oid)
      expect(made).not.toBe(id)
      expect((await sso.browser().signIn(sub)).body.code).toBe('identity_linked')
      expect(await denialsOf(`user:${id}`)).toEqual([['provider:corp', expect.stringContaining(made)]])
      expect((await admin(`/users/${made}/delete`, { reason: 'a second account' })).status).toBe(200)
      expect((await sso.browser().signIn(sub)).status).toBe(303)
      expect(await scim('POST', '/Users', entraUser(userName, oid))).toMatchObject({
        status: 201,
        body: { id, userName },
      })
      expect((await sso.browser().signIn(sub)).status).toBe(303)
      await patch(`/Users/${id}`, { op: 'Replace', path: 'active', value: 'False' })
      expect((await accountOf(id))?.status).toBe('DISABLED')
    } finally {
      sso.state.amend = (claims) => claims
    }
  })

  it('links a local account once the empty one of its person is deleted', async () => {
    const { id } = await sso.addUser(`l-${nameless()}`)
    const sub = `s-${nameless()}`
    const link = () =>
      linkExternal(sso.identity_deps, { userId: id, providerId: 'corp', subject: sub, externalId: sub }, 'test')
    const made = await hire(undefined, sub)
    expect(await link()).toEqual({ refused: 'identity_linked' })
    await sso.identity_deps.db.update(users).set({ status: 'DELETED' }).where(eq(users.id, made))
    expect(await link()).toMatchObject({ user: { id } })
    expect(await scim('POST', '/Users', entraUser(`n-${nameless()}`, sub))).toMatchObject({ status: 201, body: { id } })
  })

  it('makes one account of a first sign-in and a request of the directory at once', async () => {
    const sub = `s-${nameless()}`
    sso.people.push({ sub, name: sub, groups: ['staff'] })
    const { db } = sso.identity_deps
    let signing: Promise<{ status: number }> | undefined
    // Another process makes the account while the sign-in waits for its lock.
    const made = await db.transaction(async (tx) => {
      await lockAdmins(tx)
      signing = sso.browser().signIn(sub)
      await until(async () => (await waiting()) > 0)
      const id = randomUUID()
      const name = `n-${nameless()}`
      await tx.insert(users).values({ id, username: name, folded: name, link_shown: false, provider: 'corp' })
      await tx
        .insert(scim_resources)
        .values({ id, provider: 'corp', type: 'User', external_id: sub, name, folded: name, display_name: null })
      return id
    })
    expect((await signing)?.status).toBe(303)
    expect(await accountNamed(sub)).toBeUndefined()
    const linked = await db.select().from(external_identities).where(eq(external_identities.subject, sub))
    expect(linked).toMatchObject([{ user_id: made }])
  })

  it('lets a managed local account in by its id again while passwords are closed', async () => {
    const sub = `s-${nameless()}`
    const id = await linkedAs(sub)
    sso.people.push({ sub, name: sub, groups: ['staff'] })
    expect(await scim('POST', '/Users', entraUser(`n-${nameless()}`, sub))).toMatchObject({ status: 201, body: { id } })
    await unlink(id)
    const { config } = sso.identity_deps
    const { break_glass } = config
    try {
      const { folded = '' } = (await accountOf(id)) ?? {}
      Object.assign(config, { break_glass: new Set([folded]) })
      expect((await sso.browser().signIn(sub)).body.code).toBe('identity_linked')
      Object.assign(config, { break_glass: new Set(['root']) })
      expect((await sso.browser().signIn(sub)).status).toBe(303)
    } finally {
      Object.assign(config, { break_glass })
    }
    const linked = await sso.identity_deps.db
      .select()
      .from(external_identities)
      .where(eq(external_identities.user_id, id))
    expect(linked).toMatchObject([{ subject: sub }])
  })

  it('adopts them by the claim of the file too, with rights from the claims until then', async () => {
    const BY_OID = { scim: { machine: 'machine:dir', match: 'oid' } }
    const noc = randomUUID()
    const map = { [noc]: { groups: ['netops'], roles: ['approver'] } }
    const [sub, oid] = [`s-${nameless()}`, randomUUID()]
    sso.configure({ ...BY_OID, groups: { claim: 'groups', map } })
    sso.people.push({ sub, name: sub, groups: ['staff', noc] })
    sso.state.amend = (claims) => ({ ...claims, oid })
    expect((await sso.browser().signIn(sub)).status).toBe(303)
    const { id = '' } = (await accountNamed(sub)) ?? {}
    expect(await rightsOf(id)).toEqual(['approver', 'netops'])
    expect((await sso.browser().signIn(sub)).status).toBe(303)
    expect(await rightsOf(id)).toEqual(['approver', 'netops'])
    // Another person's id does not lead to it, nor does the name.
    expect(await scim('POST', '/Users', entraUser(sub))).toMatchObject(failed(409, 'uniqueness'))
    expect(await scim('POST', '/Users', entraUser(sub, oid))).toMatchObject({ status: 201, body: { id } })
    // Now the directory decides.
    expect((await sso.browser().signIn(sub)).status).toBe(303)
    expect(await rightsOf(id)).toEqual([])
    await scim('POST', '/Groups', { displayName: `n-${nameless()}`, externalId: noc, members: [{ value: id }] })
    expect(await rightsOf(id)).toEqual(['approver', 'netops'])
    await patch(`/Users/${id}`, { op: 'Replace', path: 'active', value: 'False' })
    expect((await sso.browser().signIn(sub)).body.code).toBe('account_disabled')
    sso.state.amend = (claims) => claims
  })

  it('finds an account of an earlier version at its next sign-in', async () => {
    const [sub, oid] = [`s-${nameless()}`, randomUUID()]
    sso.people.push({ sub, name: sub, groups: ['staff'] })
    sso.configure()
    expect((await sso.browser().signIn(sub)).status).toBe(303)
    const { id = '' } = (await accountNamed(sub)) ?? {}
    sso.configure({ scim: { machine: 'machine:dir', match: 'oid' } })
    expect(await scim('POST', '/Users', entraUser(sub, oid))).toMatchObject(failed(409, 'uniqueness'))
    sso.state.amend = (claims) => ({ ...claims, oid })
    expect((await sso.browser().signIn(sub)).status).toBe(303)
    sso.state.amend = (claims) => claims
    expect(await scim('POST', '/Users', entraUser(sub, oid))).toMatchObject({ status: 201, body: { id } })
  })

  it('names groups of the map in one way: by their ids if it names people so, else by their names', async () => {
    const [secret, person] = [randomUUID(), await hire()]
    const map = { [secret]: { roles: ['approver'] }, bridge: { roles: ['viewer'] } }
    const groups = { claim: 'groups', map }
    sso.configure({ scim: { machine: 'machine:dir', match: 'oid' }, groups })
    const own = await team(`own-${nameless()}`, person)
    for (const displayName of [secret, 'bridge']) {
      await patch(`/Groups/${own}`, { op: 'replace', path: 'displayName', value: displayName })
      expect([displayName, await rightsOf(person)]).toEqual([displayName, []])
    }
    sso.configure({ ...SCIM, groups })
    await scim('POST', '/Groups', { displayName: secret.slice(1), externalId: secret, members: [{ value: person }] })
    await patch(`/Groups/${own}`, { op: 'replace', path: 'displayName', value: 'bridge-2' })
    expect(await rightsOf(person)).toEqual([])
    await patch(`/Groups/${own}`, { op: 'replace', path: 'displayName', value: 'bridge' })
    expect(await rightsOf(person)).toEqual(['viewer'])
    await scim('DELETE', `/Groups/${own}`)
  })

  it('tells groups of one name apart by their ids, and refuses the second only where the map names groups', async () => {
    const [first, second, name] = [randomUUID(), randomUUID(), `g-${nameless()}`]
    const map = { [second]: { roles: ['viewer'] } }
    const [tim, tam] = [await hire(), await hire()]
    const create = (externalId?: string, ...members: string[]) =>
      scim('POST', '/Groups', { displayName: name, externalId, members: members.map((value) => ({ value })) })
    sso.configure({ scim: { machine: 'machine:dir', match: 'oid' }, groups: { claim: 'groups', map } })
    expect((await create(first, tim)).status).toBe(201)
    expect((await create(second, tam)).status).toBe(201)
    expect([await rightsOf(tim), await rightsOf(tam)]).toEqual([[], ['viewer']])
    expect(await create(second)).toMatchObject(failed(409, 'uniqueness'))
    // Without an id only the name shows that a request is repeated.
    expect(await create()).toMatchObject(failed(409, 'uniqueness'))
    const other = await team(`g-${nameless()}`)
    const named = { op: 'replace', path: 'displayName', value: name }
    expect((await patch(`/Groups/${other}`, named)).status).toBe(200)
    expect((await find('/Groups', `displayName eq "${name}"`)).body.totalResults).toBe(3)
    sso.configure()
    expect(await create(randomUUID())).toMatchObject(failed(409, 'uniqueness'))
    expect(await patch(`/Groups/${await team(`g-${nameless()}`)}`, named)).toMatchObject(failed(409, 'uniqueness'))
  })

  it('names no group for the map of another provider (ASVS 6.8.1)', async () => {
    const { db } = sso.identity_deps
    const sub = `s-${nameless()}`
    const id = await hire(sub, sub)
    const group = (await find('/Groups', 'displayName eq "noc"')).body.Resources[0]?.id ?? (await team('noc'))
    await patch(`/Groups/${group}`, { op: 'add', path: 'members', value: [{ value: id }] })
    // Now both are of another provider, at which this person works; here they only linked an identity.
    await db
      .update(scim_resources)
      .set({ provider: 'other' })
      .where(inArray(scim_resources.id, [id, group]))
    await db.update(users).set({ provider: 'other' }).where(eq(users.id, id))
    await db.delete(grants).where(eq(grants.subject_id, id))
    await db.delete(group_members).where(eq(group_members.user_id, id))
    await db.insert(external_identities).values({ provider: 'corp', subject: sub, user_id: id })
    sso.people.push({ sub, name: sub, groups: ['staff'] })
    expect((await sso.browser().signIn(sub)).status).toBe(303)
    expect(await rightsOf(id)).toEqual([])
    await db.delete(scim_resources).where(eq(scim_resources.id, group))
  })

  it('grants the rights of the map, up to the ceiling, and removes them', async () => {
    const id = await hire()
    const map = { lab: { groups: ['netops', 'bosses'], roles: ['viewer'] } }
    const { db } = sso.identity_deps
    await db.insert(groups).values({ group_key: 'bosses', name: 'Bosses' }).onConflictDoNothing()
    await db
      .insert(grants)
      .values({ id: randomUUID(), subject_type: 'group', subject_id: 'bosses', role: 'admin', created_by: 'system' })
    sso.configure({ ...SCIM, groups: { claim: 'groups', map } })
    await team(`idle-${nameless()}`, id)
    expect(await rightsOf(id)).toEqual([])
    const group = await team('lab', id)
    expect(await rightsOf(id)).toEqual(['netops', 'viewer'])
    const given = await db.select().from(group_members).where(eq(group_members.user_id, id))
    expect(given).toMatchObject([{ added_by: 'provider:corp', confirmed_by: null }])
    // A sign-in with different claims changes none of it.
    await patch(`/Groups/${group}`, { op: 'replace', value: { displayName: 'lab-2' } })
    expect(await rightsOf(id)).toEqual([])
    await patch(`/Groups/${group}`, { op: 'replace', value: { displayName: 'lab' } })
    expect(await rightsOf(id)).toEqual(['netops', 'viewer'])
    await admin('/grants', { subject_type: 'user', subject_id: id, role: 'auditor' })
    await scim('DELETE', `/Groups/${group}`)
    expect(await rightsOf(id)).toEqual(['auditor'])
    await db.delete(grants).where(eq(grants.subject_id, 'bosses'))
  })

  it('costs a sign-in of its people no query of its own, if no right changes', async () => {
    const sub = `s-${nameless()}`
    sso.configure({ ...SCIM, groups: { claim: 'groups', map: { counted: { roles: ['viewer'] } } } })
    const group = await team('counted', await hire(sub, sub))
    sso.people.push({ sub, name: sub, groups: ['staff'] })
    await sso.browser().signIn(sub)
    const asked = vi.spyOn(sso.identity_deps.pool, 'query')
    expect((await sso.browser().signIn(sub)).location).toBe('/inbox')
    const texts = asked.mock.calls.map(([query]) => String((query as unknown as { text?: string }).text ?? query))
    asked.mockRestore()
    // What identity does in its own time names the queue.
    const ours = texts.filter((text) => text.includes('scim_members') && !text.includes('scim_unaligned'))
    expect(ours).toEqual([expect.stringMatching(/^update "identity"."external_identities"/)])
    await scim('DELETE', `/Groups/${group}`)
  })

  it('keeps the last administrator', async () => {
    const id = await hire()
    await admin('/grants', { subject_type: 'user', subject_id: id, role: 'admin' })
    const { db } = sso.identity_deps
    const own = and(eq(grants.subject_id, ada.id), eq(grants.role, 'admin'))
    const [grant] = await db.delete(grants).where(own).returning()
    expect(await patch(`/Users/${id}`, { op: 'replace', value: { active: false } })).toMatchObject(failed(409))
    expect(await scim('DELETE', `/Users/${id}`)).toMatchObject(failed(409))
    expect((await accountOf(id))?.status).toBe('ACTIVE')
    if (grant) await db.insert(grants).values(grant)
    expect((await scim('DELETE', `/Users/${id}`)).status).toBe(204)
  })
})

describe('a change', () => {
  it('of one group by several requests at once loses no member', async () => {
    const people = await Promise.all(Array.from({ length: 8 }, () => hire()))
    const id = await team(`r-${nameless()}`, ...people.slice(0, 2))
    const moves = people.map((value, at) =>
      at < 2
        ? patch(`/Groups/${id}`, { op: 'remove', path: `members[value eq "${value}"]` })
        : patch(`/Groups/${id}`, { op: 'add', path: 'members', value: [{ value }] }),
    )
    expect((await Promise.all(moves)).map(({ status }) => status)).toEqual(people.map(() => 200))
    expect((await membersOf(id)).sort()).toEqual(people.slice(2).sort())
  })

  it('that arrives twice is made once, and one person is created once', async () => {
    const id = await hire()
    const rename = () => patch(`/Users/${id}`, { op: 'Replace', path: 'displayName', value: 'Same' })
    const first = await rename()
    expect((await rename()).headers.etag).toBe(first.headers.etag)
    expect((await actionsOf(`user:${id}`)).filter((action) => action === 'user.changed')).toHaveLength(1)
    const sent = entraUser(`once-${nameless()}`)
    const both = await Promise.all([scim('POST', '/Users', sent), scim('POST', '/Users', sent)])
    expect(both.map(({ status }) => status).sort()).toEqual([201, 409])
    expect(both.find(({ status }) => status === 409)).toMatchObject(failed(409, 'uniqueness'))
  })

  it('of what never changes is refused, not ignored; the own id is no change', async () => {
    const person = await hire()
    const group = await team(`g-${nameless()}`)
    for (const [path, id] of [
      [`/Users/${person}`, person],
      [`/Groups/${group}`, group],
    ] as const) {
      for (const operation of [
        { op: 'replace', path: 'id', value: randomUUID() },
        { op: 'remove', path: 'id' },
        { op: 'replace', value: { id: randomUUID() } },
        { op: 'remove', path: 'externalId' },
        { op: 'replace', value: { externalId: null } },
      ])
        expect([operation, await patch(path, operation)]).toMatchObject([operation, failed(400, 'mutability')])
      expect((await patch(path, { op: 'replace', value: { id } })).status).toBe(200)
    }
  })

  it('that removes a person overtakes all that wait for their turn', async () => {
    const [leaver, others] = [await hire(), [] as string[]]
    while (others.length < 8) others.push(await hire())
    const { db } = sso.identity_deps
    const waiting = async () => {
      const { rows } = await db.execute<{ n: number }>(sql`
        select count(*)::int as n from pg_locks where locktype = 'advisory' and not granted
          and database = (select oid from pg_database where datname = current_database())`)
      return rows[0]?.n ?? 0
    }
    const requests = await db.transaction(async (tx) => {
      await lockAdmins(tx)
      const changes = others.map((id) => patch(`/Users/${id}`, { op: 'replace', path: 'displayName', value: 'x' }))
      await until(async () => (await waiting()) === 4)
      const removal = scim('DELETE', `/Users/${leaver}`)
      await until(async () => (await waiting()) === 5)
      return [removal, ...changes]
    })
    for (const { status } of await Promise.all(requests)) expect([200, 204, 503]).toContain(status)
  })

  it('that waits too long for others is told to come back, in the way that directories heed', async () => {
    const id = await hire()
    await sso.identity_deps.db.transaction(async (tx) => {
      await lockAdmins(tx)
      const waited = await patch(`/Users/${id}`, { op: 'replace', value: { active: false } })
      expect(waited).toMatchObject({ ...failed(503), headers: { 'retry-after': expect.stringMatching(/^\d+$/) } })
    })
    expect((await patch(`/Users/${id}`, { op: 'replace', value: { active: false } })).status).toBe(200)
  })

  it('of a version other than the current one is refused', async () => {
    const id = await hire()
    const { headers } = await scim('GET', `/Users/${id}`)
    const put = (version: unknown) =>
      scim('PUT', `/Users/${id}`, { userName: `v-${nameless()}` }, { 'if-match': String(version) })
    expect((await put(headers.etag)).status).toBe(200)
    expect(await put(headers.etag)).toMatchObject(failed(412))
    const { headers: now } = await scim('GET', `/Users/${id}`)
    expect((await put(`${headers.etag}, ${now.etag}`)).status).toBe(200)
    expect((await put('*')).status).toBe(200)
  })

  it.each<[string, () => Promise<unknown>, ReturnType<typeof failed>]>([
    ['a filter of another kind', () => find('/Users', 'userName co "a"'), failed(400, 'invalidFilter')],
    ['a filter on what is not kept', () => find('/Users', 'title eq "a"'), failed(400, 'invalidFilter')],
    [
      'a filter, in the spelling of the standard,',
      () => find('/Users', 'x eq "a"'),
      { ...failed(400), body: { detail: expect.stringContaining('externalId, userName, displayName') } } as never,
    ],
    ['a filter of two lines', () => find('/Users', 'userName eq "a\nb" and'), failed(400, 'invalidFilter')],
    [
      'a filter for a character that no name can have',
      () => find('/Users', 'userName eq "a\\u0000"'),
      failed(400, 'invalidFilter'),
    ],
    ['half a filter', () => find('/Users', 'userName eq "a" and '), failed(400, 'invalidFilter')],
    [
      'a filter of four terms',
      () => find('/Users', Array(4).fill('userName eq "a"').join(' and ')),
      failed(400, 'invalidFilter'),
    ],
    ['a filter with or', () => find('/Groups', 'id eq "a" or id eq "b"'), failed(400, 'invalidFilter')],
    ['a page that is none', () => scim('GET', '/Users?count=many'), failed(400, 'invalidValue')],
    ['a person without a name', () => scim('POST', '/Users', { schemas: [USER] }), failed(400, 'invalidValue')],
    ['a name of two scripts', () => scim('POST', '/Users', entraUser('еva')), failed(400, 'invalidValue')],
    ['a group without a name', () => scim('POST', '/Groups', { members: [] }), failed(400, 'invalidValue')],
    ['an unknown operation', async () => patch(`/Users/${await hire()}`, { op: 'move' }), failed(400, 'invalidSyntax')],
    ['no operations', async () => patch(`/Users/${await hire()}`), failed(400, 'invalidSyntax')],
    [
      'an attribute in two spellings',
      () => scim('POST', '/Users', { userName: `n-${nameless()}`, USERNAME: 'olga' }),
      failed(400, 'invalidSyntax'),
    ],
    ['a removal of nothing', async () => patch(`/Users/${await hire()}`, { op: 'remove' }), failed(400, 'noTarget')],
    [
      'an activity that is none',
      async () => patch(`/Users/${await hire()}`, { op: 'replace', path: 'active', value: 'maybe' }),
      failed(400, 'invalidValue'),
    ],
    [
      'another external id',
      async () => patch(`/Users/${await hire()}`, { op: 'replace', path: 'externalId', value: 'new' }),
      failed(400, 'mutability'),
    ],
    [
      'a group in a group',
      async () => {
        const value = [{ value: await hire(), type: 'Group' }]
        return patch(`/Groups/${await team(`g-${nameless()}`)}`, { op: 'add', path: 'members', value })
      },
      failed(400, 'invalidValue'),
    ],
    [
      'a group of a name that is taken',
      async () => {
        const name = `g-${nameless()}`
        await team(name)
        return scim('POST', '/Groups', { displayName: name })
      },
      failed(409, 'uniqueness'),
    ],
  ])('with %s is refused with a SCIM error', async (_what, act, answer) => {
    expect(await act()).toMatchObject(answer)
  })

  it('on a part of what is kept is refused: a member who seems removed would stay', async () => {
    const person = await hire()
    const id = await team(`g-${nameless()}`, person)
    for (const path of [
      ...['members.value', 'members[', 'members[type eq "User"]', `members [value eq "${person}"]`],
      ...[`members[value eq "${person}"].value`, 'displayName.x', 'displayName[x]', ']]', ' '],
    ])
      for (const op of ['remove', 'replace'])
        expect([path, await patch(`/Groups/${id}`, { op, path, value: [] })]).toMatchObject([
          path,
          failed(400, 'invalidPath'),
        ])
    expect(await patch(`/Users/${person}`, { op: 'replace', path: 'active.x', value: false })).toMatchObject(
      failed(400, 'invalidPath'),
    )
    expect(await membersOf(id)).toEqual([person])
    // Parts of attributes that are not kept are ignored, as the attributes are.
    const ignored = ['emails[type eq "work"].value', 'name.familyName', `${ENTERPRISE}:department`, 'manager']
    const extension = 'urn:example:params:scim:schemas:extension:custom:2.0:User'
    for (const path of [...ignored, `${extension}:displayName`, `${extension}:active`])
      expect((await patch(`/Users/${person}`, { op: 'Replace', path, value: 'x' })).status).toBe(200)
  })

  it('without a value is refused, whatever it would add or replace; an empty list still empties a group', async () => {
    const person = await hire()
    const id = await team(`g-${nameless()}`, person)
    for (const place of [`/Groups/${id} members`, `/Groups/${id} displayName`, `/Users/${person} displayName`])
      for (const op of ['add', 'Replace']) {
        const [object = '', path] = place.split(' ')
        expect([place, op, await patch(object, { op, path })]).toMatchObject([place, op, failed(400, 'invalidValue')])
      }
    expect(await patch(`/Groups/${id}`, { op: 'replace' })).toMatchObject(failed(400, 'invalidSyntax'))
    expect(await membersOf(id)).toEqual([person])
    expect((await patch(`/Groups/${id}`, { op: 'replace', path: 'members', value: [] })).status).toBe(200)
    expect(await membersOf(id)).toEqual([])
  })

  it('by the URN of our schema as path is one of the whole person', async () => {
    const id = await hire()
    const done = await patch(`/Users/${id}`, { op: 'replace', path: USER, value: { active: false } })
    expect(done.body.active).toBe(false)
    expect(await patch(`/Users/${id}`, { op: 'remove', path: USER })).toMatchObject(failed(400, 'noTarget'))
  })

  /** People of the directory, written directly. */
  /** As directories do: what a busy machine could not write in time is sent again. */
  const taken = (send: () => ReturnType<typeof scim>) =>
    until(
      async () => {
        const answer = await send()
        return answer.status === 503 ? undefined : answer
      },
      { what: 'an answer that is no 503' },
    )
  const crowd = async (n: number) => {
    const { db } = sso.identity_deps
    const tag = nameless()
    const people = Array.from({ length: n }, (_, at) => ({ id: randomUUID(), name: `${tag}-${at}` }))
    // A statement of all of them can take longer than it may on a busy machine.
    for (let from = 0; from < n; from += 1000) {
      const some = people.slice(from, from + 1000)
      const made = { provider: 'corp', link_shown: false }
      await db.insert(users).values(some.map(({ id, name }) => ({ ...made, id, username: name, folded: name })))
      const kept = { provider: 'corp', type: 'User' as const }
      await db.insert(scim_resources).values(some.map(({ id, name }) => ({ ...kept, id, name, folded: name })))
    }
    return people
  }
  const inNetops = () => sso.identity_deps.db.$count(group_members, eq(group_members.group_key, 'netops'))

  it('of a large group moves everyone at once, in every form that directories send', async () => {
    const name = `all-${nameless()}`
    sso.configure({ ...SCIM, groups: { claim: 'groups', map: { [name]: { groups: ['netops'], roles: ['viewer'] } } } })
    const people = await crowd(1200)
    const members = people.map(({ id: value, name: display }) => ({ value, display }))
    const id = await team(name)
    const before = await inNetops()
    expect((await scim('PUT', `/Groups/${id}`, { displayName: name, members })).status).toBe(200)
    expect(await inNetops()).toBe(before + 1200)
    const [first] = people
    expect(await rightsOf(first?.id ?? '')).toEqual(['netops', 'viewer'])
    expect((await actionsOf(`user:${first?.id}`)).filter((one) => one === 'user.provider_rights')).toHaveLength(1)
    // Without one person; then Entra's references, and one operation for each person.
    expect((await scim('PUT', `/Groups/${id}`, { displayName: name, members: members.slice(1) })).status).toBe(200)
    expect([await inNetops(), await rightsOf(first?.id ?? '')]).toEqual([before + 1199, []])
    const some = people.slice(0, 1000)
    const value = some.map((one) => ({ $ref: null, value: one.id }))
    expect((await patch(`/Groups/${id}`, { op: 'Remove', path: 'members', value })).status).toBe(200)
    const each = some.map((one) => ({ op: 'Add', path: 'members', value: [{ value: one.id }] }))
    expect((await patch(`/Groups/${id}`, ...each)).status).toBe(200)
    expect(await inNetops()).toBe(before + 1200)
    expect(await patch(`/Groups/${id}`, ...each, ...each.slice(0, 1))).toMatchObject(failed(400, 'invalidSyntax'))
    expect((await scim('DELETE', `/Groups/${id}`)).status).toBe(204)
    expect(await inNetops()).toBe(before)
  })

  it('keeps the last administrator among many who leave', async () => {
    const name = `root-${nameless()}`
    const map = { [name]: { roles: ['admin'] } }
    sso.configure({ ...SCIM, max_role: 'admin', groups: { claim: 'groups', map } })
    const { db } = sso.identity_deps
    const own = and(eq(grants.subject_id, ada.id), eq(grants.role, 'admin'))
    const people = await crowd(3)
    const id = await team(name, ...people.map((one) => one.id))
    const grant = await db.delete(grants).where(own).returning()
    expect((await patch(`/Groups/${id}`, { op: 'remove', path: 'members' })).status).toBe(200)
    const left = await Promise.all(people.map((one) => rightsOf(one.id)))
    expect(left.flat()).toEqual(['admin'])
    await db.insert(grants).values(grant)
    await db.delete(grants).where(eq(grants.created_by, 'provider:corp'))
  })

  it('is in the audit log', async () => {
    const rows = await sso.identity_deps.db
      .select()
      .from(user_events)
      .where(like(user_events.object, 'directory_group:%'))
    const machine = await accountNamed('machine:dir')
    expect(new Set(rows.map(({ actor }) => actor))).toEqual(new Set([`user:${machine?.id}`]))
    expect(rows.every(({ reason }) => reason === 'provider:corp')).toBe(true)
  })

  const rename = (id: string, displayName: string) =>
    patch(`/Groups/${id}?excludedAttributes=members`, { op: 'replace', value: { displayName } })

  it('of a group too large for one transaction gives and takes rights soon after the answer', async () => {
    const name = `soon-${nameless()}`
    sso.configure({ ...SCIM, groups: { claim: 'groups', map: { [name]: { groups: ['netops'], roles: ['viewer'] } } } })
    const people = await crowd(4500)
    const id = await team(`${name}-0`, ...people.map((one) => one.id))
    const before = await inNetops()
    expect((await rename(id, name)).status).toBe(200)
    await until(async () => (await inNetops()) === before + 4500, { what: 'everyone to join' })
    expect(await rightsOf(people.at(-1)?.id ?? '')).toEqual(['netops', 'viewer'])
    expect((await scim('DELETE', `/Groups/${id}`)).status).toBe(204)
    await until(async () => (await inNetops()) === before, { what: 'everyone to leave' })
    expect(await rightsOf(people.at(-1)?.id ?? '')).toEqual([])
  })

  it('that waits for a directory no longer in the file is reported, and made once the directory is back', async () => {
    const id = await hire()
    await sso.identity_deps.db.execute(sql`insert into ${scim_unaligned} values (${id})`)
    const error = vi.spyOn(sso.identity_deps.telemetry.log, 'error')
    await reportStranded(sso.identity_deps)
    expect(error).not.toHaveBeenCalled()
    for (const gone of [{ scim: undefined }, { ...SCIM, enabled: false }]) {
      sso.configure(gone)
      await sso.identity_deps.db.execute(sql`insert into ${scim_unaligned} values (${id}) on conflict do nothing`)
      await reportStranded(sso.identity_deps)
      expect(error).toHaveBeenLastCalledWith({ provider: 'corp', people: 1 }, expect.stringContaining('cannot follow'))
    }
    error.mockRestore()
    sso.configure(SCIM)
    await until(async () => (await sso.identity_deps.db.$count(scim_unaligned)) === 0)
  })

  it('of the file gives rights back at once: its provider is switched on again, or its map names the group again', async () => {
    const name = `back-${nameless()}`
    const groups = { claim: 'groups', map: { [name]: { groups: ['netops'], roles: ['viewer'] } } }
    const person = await hire()
    const rightsBe = (...rights: string[]) =>
      until(async () => JSON.stringify(await rightsOf(person)) === JSON.stringify(rights), { what: rights.join() })
    sso.configure({ ...SCIM, groups })
    await team(name, person)
    await rightsBe('netops', 'viewer')
    for (const off of [
      { ...SCIM, groups, enabled: false },
      { ...SCIM, groups: { claim: 'groups', map: {} } },
    ]) {
      sso.configure(off)
      await rightsBe()
      sso.configure({ ...SCIM, groups })
      await rightsBe('netops', 'viewer')
    }
    sso.configure(SCIM)
  })

  // The last ones: they leave tables of a size that slows others down.
  it('of as many people as a directory sends at once is written by one request', async () => {
    const people = await crowd(10_000)
    const members = people.map(({ id: value, name: display }) => ({ value, display }))
    const displayName = `wide-${nameless()}`
    const made = await taken(() => scim('POST', '/Groups', { schemas: [GROUP], displayName, members }))
    expect(made.status).toBe(201)
    expect(await membersOf(made.body.id)).toHaveLength(10_000)
  })

  it('of more people than one statement of Postgres has parameters is still mapped and emptied', async () => {
    const id = await team(`most-${nameless()}`)
    for (let n = 0; n < 66_000; n += 1000)
      await sso.identity_deps.db.execute(sql`
        with made as (insert into ${users} (id, username, folded, link_shown, provider)
          select gen_random_uuid(), ${id} || n, ${id} || n, false, 'corp' from generate_series(${n + 1}::int, ${n + 1000}::int) n
          returning id, username),
        kept as (insert into ${scim_resources} (id, name, folded, provider, type)
          select id, username, username, 'corp', 'User' from made)
        insert into ${scim_members} (group_id, user_id) select ${id}, id from made`)
    const name = `mapped-${nameless()}`
    sso.configure({ ...SCIM, groups: { claim: 'groups', map: { [name]: { groups: ['netops'] } } } })
    for (const displayName of [name, `${name}-2`]) expect((await taken(() => rename(id, displayName))).status).toBe(200)
    expect((await taken(() => patch(`/Groups/${id}`, { op: 'remove', path: 'members' }))).status).toBe(200)
    expect(await membersOf(id)).toEqual([])
  })
})
