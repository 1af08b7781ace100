import { generateKeyPairSync, type KeyObject, randomUUID, sign as signBytes } from 'node:crypto'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { eq, sql } from 'drizzle-orm'
import { exportJWK, SignJWT } from 'jose'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { noteEnding, noteUnused } from '../../apps/identity/machines/ending.ts'
import { listRefusals } from '../../apps/session/machines/refusals.ts'
import document from '../../apps/shared/contracts/openapi/public.json' with { type: 'json' }
import { ROTATED } from '../../db/identity/machines.ts'
import { grants, machine_credentials, outbox, user_events } from '../../db/identity/tables.ts'
import { auth_events } from '../../db/session/tables.ts'
import { type Answer, type Auth, bearer, ORIGIN, PASSWORD, send, startAuth } from '../session/support/auth.ts'
import { ANYONES, signAsAnyone } from '../support/authenticator.ts'
import { until } from '../support/until.ts'

/** Machines over the wire: gateway, session, identity, token and relay, and the test's own CI system. */

const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'
const JWT = 'urn:ietf:params:oauth:token-type:jwt'
const ASSERTION = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'
const AUDIENCE = 'https://signalbox.test'

type Operation = { 'x-permissions'?: string[]; requestBody?: { content: Record<string, { example?: unknown }> } }
type Paths = Record<string, Record<string, Operation>>

let auth: Auth
let gateway: { url: string }
let ada: Record<string, string>
let owner_id: string
let ada_id: string
let issuer: string
/** An issuer that takes connections and never answers. */
let silent: string
const mute = http.createServer(() => {})
let ci: { server: http.Server; key: KeyObject }
const own = generateKeyPairSync('ed25519')

const post = (path: string, body: unknown, headers: Record<string, string> = ada) =>
  send(`${gateway.url}${path}`, { body, headers: { 'idempotency-key': randomUUID(), ...headers } })
const get = (path: string, headers: Record<string, string>) => send(`${gateway.url}${path}`, { headers })

const startCi = async () => {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const keys = [{ ...(await exportJWK(publicKey)), kid: 'ci', alg: 'RS256', use: 'sig' }]
  const server = http.createServer((req, res) => {
    const body = req.url?.endsWith('/jwks') ? { keys } : { issuer, jwks_uri: `${issuer}/jwks` }
    res.setHeader('content-type', 'application/json').end(JSON.stringify(body))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return { server, key: privateKey }
}

beforeAll(async () => {
  ci = await startCi()
  await new Promise<void>((resolve) => mute.listen(0, '127.0.0.1', resolve))
  silent = `http://127.0.0.1:${(mute.address() as AddressInfo).port}`
  auth = await startAuth({
    AUTH__MACHINES__ISSUERS: JSON.stringify([issuer, silent]),
    SESSION__LIMITS__MACHINE_FAILURES: '100000/1/100000',
  })
  await auth.addRelay()
  gateway = await auth.addGateway()
  ada_id = (await auth.addUser('ada', ['admin'])).id
  owner_id = (await auth.addUser('olga')).id
  const signed = await post('/v1/token', { username: 'ada', password: PASSWORD }, {})
  ada = bearer(signed.body.access_token)
})
afterAll(async () => {
  ci?.server.close()
  mute.close()
  mute.closeAllConnections()
  await auth?.stop()
})

const machine = async (...roles: string[]) => {
  const name = `m-${randomUUID().slice(0, 8)}`
  const made = await post('/api/v1/admin/machines', { name, owners: [owner_id] })
  expect(made.status).toBe(201)
  const id = String(made.body.id)
  for (const role of roles)
    expect((await post('/api/v1/admin/grants', { subject_type: 'user', subject_id: id, role })).status).toBe(201)
  return { id, name: `machine:${name}` }
}
const credential = (id: string, body: object) =>
  post(`/api/v1/admin/machines/${id}/credentials`, {
    kind: 'key',
    name: 'test',
    permissions: ['identity:read'],
    ...body,
  })
const keyOf = async (id: string, body: object = {}) => {
  const made = await credential(id, body)
  expect(made.status).toBe(201)
  return { id: (made.body.credential as { id: string }).id, key: String(made.body.key) }
}
const form = (fields: Record<string, string>, headers = {}) =>
  send(`${gateway.url}/oauth/token`, {
    method: 'POST',
    body: String(new URLSearchParams(fields)),
    headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
  })
const byKey = (key: string, more: object = {}) =>
  form({ grant_type: 'client_credentials', client_secret: key, ...more })
const claimsOf = ({ body }: Answer) =>
  JSON.parse(Buffer.from(String(body.access_token).split('.')[1] ?? '', 'base64url').toString())
/** The audit log's entries about a request: in the stream, or where the relay has put them. */
const auditOf = async ({ headers }: Answer) => {
  const request_id = String(headers['x-request-id'])
  const streamed = await auth.redis.xrange(`${auth.prefix}auth:audit`, '-', '+')
  const kept = await auth.session.deps.db.select().from(auth_events).where(eq(auth_events.request_id, request_id))
  const rows = [...streamed.map(([, [, row]]) => JSON.parse(row ?? '{}')), ...kept]
  return rows.find((row) => row.action === 'machine_token' && row.request_id === request_id)
}
/** The token is refused with this code; nothing is created, and the audit log has the cause. */
const expectRefused = async (answer: Promise<Answer>, code: string, cause: string) => {
  const got = await answer
  const { status, body } = got
  expect([status, body.code, body.access_token]).toEqual([code === 'invalid_scope' ? 400 : 401, code, undefined])
  expect(body.error).toBe(code)
  await until(async () => (await auditOf(got)) !== undefined)
  expect(await auditOf(got)).toMatchObject({ outcome: 'denied', reason: cause })
}

/** The token is refused once the answer says so; 202: a busy relay has not ended it within two seconds. */
const expectEnded = async ({ status }: Answer, done: number, token: Record<string, string>) => {
  expect([202, done]).toContain(status)
  const refused = async () => (await get('/api/v1/admin/users', token)).status === 401
  if (status === 202) await until(refused)
  expect(await refused()).toBe(true)
}

describe('an API key', () => {
  it('is shown once and becomes a token that the gateway accepts like any other', async () => {
    const { id, name } = await machine('auditor')
    const key = randomUUID()
    const first = await post(
      `/api/v1/admin/machines/${id}/credentials`,
      { kind: 'key', name: 'a', permissions: ['identity:read'] },
      { ...ada, 'idempotency-key': key },
    )
    const again = await post(
      `/api/v1/admin/machines/${id}/credentials`,
      { kind: 'key', name: 'a', permissions: ['identity:read'] },
      { ...ada, 'idempotency-key': key },
    )
    expect([first.status, again.status, again.body.key]).toEqual([201, 201, undefined])
    expect(again.body.credential).toEqual(first.body.credential)
    const secret = String(first.body.key)
    expect(secret).toMatch(/^sbk_[\w-]{22}_[\w-]{43}[0-9A-Za-z]{6}$/)
    const answer = await byKey(secret)
    expect(answer.body).toMatchObject({ token_type: 'Bearer', expires_in: 900, scope: 'identity:read' })
    expect(claimsOf(answer)).toMatchObject({
      sub: id,
      username: name,
      cm: 'machine',
      amr: ['key'],
      scope: ['identity:read'],
      session_id: (first.body.credential as { id: string }).id,
    })
    expect((await get('/api/v1/admin/users', bearer(answer.body.access_token))).status).toBe(200)
    const rows = await auth.identity_deps.db.select().from(machine_credentials)
    expect(JSON.stringify(rows)).not.toContain(secret)
    const listed = await get('/api/v1/admin/machines', ada)
    const [used] = (listed.body.items as { id: string; credentials: { last_used_at: string }[] }[])
      .filter((m) => m.id === id)
      .map((m) => m.credentials[0])
    expect(Date.parse(used?.last_used_at ?? '')).toBeGreaterThan(Date.now() - 60_000)
  })

  it('grants only what both the grants and the key allow (ASVS 10.3.2, 10.4.11)', async () => {
    const { id } = await machine('auditor')
    const { key } = await keyOf(id, { permissions: ['identity:read', 'plan:start'] })
    const all = bearer((await byKey(key)).body.access_token)
    // The role lacks plan:start, the key lacks audit:read.
    expect((await get('/api/v1/admin/users', all)).status).toBe(200)
    expect((await get('/api/v1/admin/user-events', all)).body.code).toBe('permission_missing')
    const less = bearer((await byKey(key, { scope: 'plan:start' })).body.access_token)
    expect((await get('/api/v1/admin/users', less)).body.code).toBe('permission_missing')
    await expectRefused(byKey(key, { scope: 'identity:read audit:read' }), 'invalid_scope', 'scope')
    await expectRefused(byKey(key, { scope: ' ' }), 'invalid_scope', 'scope')
    expect((await byKey(key, { scope: 'plan:start plan:start' })).body.scope).toBe('plan:start')
  })

  it('reads no accounts and no logs if it has a scope: these have no place', async () => {
    const { id } = await machine('auditor')
    const scope = { region_id: 'eu1' }
    const refused = await credential(id, { permissions: ['operation:read', 'audit:read', 'identity:read'], scope })
    expect(refused).toMatchObject({ status: 422, body: { code: 'schema_violation' } })
    expect(refused.body.detail).toContain('audit:read and identity:read')
    // One from before the rule.
    const { id: kept, key } = await keyOf(id, { permissions: ['audit:read', 'operation:read'] })
    await auth.identity_deps.db.update(machine_credentials).set({ scope }).where(eq(machine_credentials.id, kept))
    const token = bearer((await byKey(key)).body.access_token)
    expect((await get('/api/v1/admin/user-events', token)).body.code).toBe('permission_missing')
  })

  it('belongs to the machine that the request names, if it names one', async () => {
    const { id, name } = await machine('auditor')
    const { key } = await keyOf(id)
    await expectRefused(byKey(key, { client_id: (await machine()).name }), 'invalid_client', 'client_id')
    expect((await byKey(key, { client_id: name })).status).toBe(200)
  })

  it('is refused if it is forged, unknown or expired (ASVS 10.4.10)', async () => {
    const { id } = await machine('auditor')
    const { id: credential_id, key } = await keyOf(id)
    const broken = `${key.slice(0, 40)}${key[40] === 'A' ? 'B' : 'A'}${key.slice(41)}`
    await expectRefused(byKey(broken), 'invalid_client', 'malformed')
    await expectRefused(byKey('hunter2'), 'invalid_client', 'malformed')
    const other = await keyOf((await machine()).id)
    await auth.identity_deps.db.delete(machine_credentials)
    await expectRefused(byKey(other.key), 'invalid_client', 'unknown')
    const dated = await keyOf(id)
    await auth.identity_deps.db
      .update(machine_credentials)
      .set({ expires_at: new Date(Date.now() - 1000).toISOString() })
    await expectRefused(byKey(dated.key), 'invalid_client', 'expired')
    expect(credential_id).not.toBe(dated.id)
  })

  it('works only from its networks, and the refusal says so; its successor keeps them', async () => {
    const { id } = await machine('auditor')
    const far = await keyOf(id, { networks: ['203.0.113.0/24', '2001:db8::/32'] })
    const refused = await byKey(far.key)
    expect(refused).toMatchObject({ status: 403, body: { category: 'policy_denied', code: 'network_refused' } })
    expect(refused.body).not.toHaveProperty('access_token')
    await until(async () => (await auditOf(refused)) !== undefined)
    expect(await auditOf(refused)).toMatchObject({ outcome: 'denied', reason: 'network' })
    const near = await keyOf(id, { networks: ['127.0.0.0/8', '::1/128'] })
    expect((await byKey(near.key)).status).toBe(200)
    const rotated = await post(`/api/v1/admin/machines/${id}/credentials/${far.id}/rotate`, {})
    expect(rotated.body.credential).toMatchObject({ networks: ['203.0.113.0/24', '2001:db8::/32'] })
    expect((await byKey(String(rotated.body.key))).body.code).toBe('network_refused')
    for (const network of ['203.0.113.0', '203.0.113.0/33', '2001:db8::/129', '999.1.1.1/8', 'corp/8'])
      expect([network, (await credential(id, { networks: [network] })).body.code]).toEqual([
        network,
        'schema_violation',
      ])
  })

  it('is announced 14 and 3 days before its end, once each, to owners and administrators', async () => {
    const { id, name } = await machine('auditor')
    const now = Date.now()
    const { id: credential_id } = await keyOf(id, { expires_in_days: 30 })
    await keyOf(id, { expires_in_days: 1 })
    const at = (days: number) => ({ ...auth.identity_deps, clock: { now: () => new Date(now + days * 86_400_000) } })
    const told = async () => {
      const rows = await auth.identity_deps.db.select().from(user_events)
      const own = rows.filter(
        ({ action, reason }) => action === 'machine.credential_ending' && reason?.startsWith(name),
      )
      return own.map(({ object }) => object).sort()
    }
    const both = [`user:${owner_id}`, `user:${ada_id}`].sort()
    for (const days of [0, 15]) await noteEnding(at(days))
    expect(await told()).toEqual([])
    await Promise.all([noteEnding(at(17)), noteEnding(at(17))])
    expect(await told()).toEqual(both)
    await noteEnding(at(26.5))
    expect(await told()).toEqual(both)
    await noteEnding(at(27.5))
    expect(await told()).toHaveLength(4)
    await noteEnding(at(28.5))
    expect(await told()).toEqual([...both, ...both].sort())
    const fact = await post(`/api/v1/admin/machines/${id}/credentials/${credential_id}/rotate`, { overlap_s: 604_800 })
    expect(fact.status).toBe(201)
    await noteEnding(at(6))
    expect(await told()).toHaveLength(4)
  })

  it('is announced after 90 days without use, once until its next use, and marked in the list', async () => {
    const { id, name } = await machine('auditor')
    const { id: credential_id } = await keyOf(id, { expires_in_days: 365 })
    const { db } = auth.identity_deps
    const is = eq(machine_credentials.id, credential_id)
    const idle = (days: number, used: boolean) => {
      const at = new Date(Date.now() - days * 86_400_000).toISOString()
      return db
        .update(machine_credentials)
        .set(used ? { last_used_at: at } : { created_at: at })
        .where(is)
    }
    const told = async () => {
      await Promise.all([noteUnused(auth.identity_deps), noteUnused(auth.identity_deps)])
      const rows = await db.select().from(user_events)
      return rows.filter(({ action, reason }) => action === 'machine.credential_unused' && reason?.startsWith(name))
    }
    const listed = async () => {
      const { body } = await get('/api/v1/admin/machines?page_size=500', ada)
      const machines = body.items as { id: string; credentials: { unused: boolean }[] }[]
      return machines.find((one) => one.id === id)?.credentials[0]?.unused
    }
    await idle(89, false)
    expect([await told(), await listed()]).toEqual([[], false])
    await idle(91, false)
    expect(await listed()).toBe(false)
    expect((await told()).map(({ object }) => object).sort()).toEqual([`user:${owner_id}`, `user:${ada_id}`].sort())
    expect([(await told()).length, await listed()]).toEqual([2, true])
    await idle(0, true)
    expect([(await told()).length, await listed()]).toEqual([2, false])
    // Told long ago, used since, and idle again.
    const unused_told_at = new Date(Date.now() - 200 * 86_400_000).toISOString()
    await db.update(machine_credentials).set({ unused_told_at }).where(is)
    await idle(91, true)
    expect([await listed(), (await told()).length, await listed()]).toEqual([false, 4, true])
    await db.update(machine_credentials).set({ revoked_at: new Date().toISOString() }).where(is)
    expect(await listed()).toBe(false)
  })

  it('is announced with at most a hundred others at a time, and not if a rotation ends it', async () => {
    const { id } = await machine('auditor')
    const created_at = new Date(Date.now() - 91 * 86_400_000).toISOString()
    await auth.identity_deps.db
      .insert(machine_credentials)
      .values(
        Array.from({ length: 102 }, (_, n) => ({
          ...{ id: randomUUID(), machine_id: id, kind: 'key' as const, name: `k${n}`, secret_hash: `h${n}` },
          ...{ permissions: [], created_by: 'system', expires_at: '2100-01-01T00:00:00Z', created_at },
          told: n === 0 ? ROTATED : 0,
        })),
      )
    const runs = [await noteUnused(auth.identity_deps), await noteUnused(auth.identity_deps)]
    expect([...runs, await noteUnused(auth.identity_deps)]).toEqual([100, 1, 0])
    await auth.identity_deps.db.delete(machine_credentials).where(eq(machine_credentials.machine_id, id))
  })

  it('gives tokens that end with it', async () => {
    const { id } = await machine('auditor')
    const { key } = await keyOf(id)
    await auth.identity_deps.db
      .update(machine_credentials)
      .set({ expires_at: new Date(Date.now() + 60_000).toISOString() })
    const answer = await byKey(key)
    const { iat, exp } = claimsOf(answer)
    expect(exp - iat).toBeLessThanOrEqual(60)
    expect((await get('/api/v1/admin/users', bearer(answer.body.access_token))).status).toBe(200)
  })

  it('is refused as expired in its last second if that has no whole one left for a token', async () => {
    const { id } = await machine('auditor')
    const { key } = await keyOf(id)
    await until(async () => Date.now() % 1000 < 200)
    const expires_at = new Date(Math.floor(Date.now() / 1000) * 1000 + 999).toISOString()
    await auth.identity_deps.db.update(machine_credentials).set({ expires_at })
    await expectRefused(byKey(key), 'invalid_client', 'expired')
  })

  it('is refused as expired if it ends before the clock of session, though token still signs', async () => {
    const { id } = await machine('auditor')
    const { key } = await keyOf(id)
    const expires_at = new Date(Date.now() + 20_000).toISOString()
    await auth.identity_deps.db.update(machine_credentials).set({ expires_at })
    const { deps } = auth.session
    const { clock } = deps
    Object.assign(deps, { clock: { now: () => new Date(Date.now() + 30_000) } })
    try {
      await expectRefused(byKey(key), 'invalid_client', 'expired')
    } finally {
      Object.assign(deps, { clock })
    }
  })

  it('rotates with an overlap: both keys work, then the second alone', async () => {
    const { id } = await machine('auditor')
    const old = await keyOf(id)
    const rotated = await post(`/api/v1/admin/machines/${id}/credentials/${old.id}/rotate`, { overlap_s: 3600 })
    expect(rotated.status).toBe(201)
    const statuses = async () => [(await byKey(old.key)).status, (await byKey(String(rotated.body.key))).status]
    expect(await statuses()).toEqual([200, 200])
    const next = await post(
      `/api/v1/admin/machines/${id}/credentials/${(rotated.body.credential as { id: string }).id}/rotate`,
      { overlap_s: 0 },
    )
    await expectRefused(byKey(String(rotated.body.key)), 'invalid_client', 'expired')
    expect((await byKey(String(next.body.key))).status).toBe(200)
  })

  it('rotates for as long as the key before was given, unless another length is asked for', async () => {
    const { id } = await machine('auditor')
    const old = await keyOf(id, { expires_in_days: 1 })
    const rotate = (body: object) => post(`/api/v1/admin/machines/${id}/credentials/${old.id}/rotate`, body)
    const days = ({ body }: { body: Record<string, unknown> }) => {
      const { created_at, expires_at } = body.credential as { created_at: string; expires_at: string }
      return Math.round((Date.parse(expires_at) - Date.parse(created_at)) / 86_400_000)
    }
    expect(days(await rotate({}))).toBe(1)
    expect(days(await rotate({ expires_in_days: 7 }))).toBe(7)
    // A rotation has cut the end of the first key: its span is not the length that it was given.
    expect(days(await rotate({}))).toBe(90)
  })

  it('rotates without an overlap: the tokens of the first key end', async () => {
    const { id } = await machine('auditor')
    const old = await keyOf(id)
    const token = bearer((await byKey(old.key)).body.access_token)
    expect((await get('/api/v1/admin/users', token)).status).toBe(200)
    const rotate = () => post(`/api/v1/admin/machines/${id}/credentials/${old.id}/rotate`, { overlap_s: 0 })
    expect((await rotate()).status).toBe(201)
    // Its successor can be rotated. The key has ended, so it gives no second one.
    expect((await rotate()).status).toBe(404)
    await until(async () => (await get('/api/v1/admin/users', token)).status === 401)
  })

  it('is listed as a session once, page by page, also when it was used again meanwhile', async () => {
    const { id } = await machine('auditor')
    const keys = [await keyOf(id), await keyOf(id), await keyOf(id)]
    const unnamed = { 'user-agent': '' }
    for (const { key: client_secret } of [...keys, ...keys.slice(0, 1)])
      expect((await form({ grant_type: 'client_credentials', client_secret }, unnamed)).status).toBe(200)
    const seen: string[] = []
    for (let token: unknown = ''; token !== null; ) {
      const query = `page_size=1${token ? `&page_token=${token}` : ''}`
      const { body } = await get(`/api/v1/admin/users/${id}/sessions?${query}`, ada)
      const items = body.items as { id: string; user_agent: string | null }[]
      expect(items.map(({ user_agent }) => user_agent)).toEqual([null])
      seen.push(...items.map((one) => one.id))
      token = body.next_page_token
    }
    expect(seen).toEqual(keys.map((one) => one.id).reverse())
  })

  it('is refused everywhere once its revocation is answered, and so is its token', async () => {
    const { id } = await machine('auditor')
    const { id: credential_id, key } = await keyOf(id)
    const token = bearer((await byKey(key)).body.access_token)
    expect((await get('/api/v1/admin/users', token)).status).toBe(200)
    const url = `${gateway.url}/api/v1/admin/machines/${id}/credentials/${credential_id}`
    const gone = await send(url, { method: 'DELETE', headers: { ...ada, 'idempotency-key': randomUUID() } })
    await expectEnded(gone, 204, token)
    await expectRefused(byKey(key), 'invalid_client', 'revoked')
    const events = await auth.identity_deps.db.select().from(outbox)
    expect(events.filter(({ payload }) => payload.credential_id === credential_id)).toHaveLength(1)
  })

  it('gives no token once its machine is disabled or has no active owner', async () => {
    const { id } = await machine('auditor')
    const { key } = await keyOf(id)
    const token = bearer((await byKey(key)).body.access_token)
    await expectEnded(await post(`/api/v1/admin/users/${id}/disable`, { reason: 'leaked' }), 200, token)
    await expectRefused(byKey(key), 'invalid_client', 'machine_disabled')
    const lone = await machine('auditor')
    const { key: other } = await keyOf(lone.id)
    const others = bearer((await byKey(other)).body.access_token)
    const shared = await machine('auditor')
    const paths = `/api/v1/admin/machines/${shared.id}/owners/${ada_id}`
    const joined = await send(`${gateway.url}${paths}`, {
      method: 'PUT',
      headers: { 'idempotency-key': randomUUID(), ...ada },
    })
    expect(joined.status).toBe(204)
    const theirs = bearer((await byKey((await keyOf(shared.id)).key)).body.access_token)
    expect((await get('/api/v1/admin/users', others)).status).toBe(200)
    const made = await keyOf(shared.id, { name: 'gone' })
    await send(`${gateway.url}/api/v1/admin/machines/${shared.id}/credentials/${made.id}`, {
      method: 'DELETE',
      headers: { 'idempotency-key': randomUUID(), ...ada },
    })
    expect([200, 202]).toContain((await post(`/api/v1/admin/users/${owner_id}/disable`, { reason: 'left' })).status)
    const rows = await auth.identity_deps.db.select().from(user_events)
    const warned = rows.filter(({ action }) => action === 'machine.credential_seen')
    for (const { name } of [lone, shared])
      expect(warned.filter(({ reason }) => reason?.startsWith(`${name},`))).toMatchObject([
        { object: `user:${ada_id}`, reason: `${name}, key test; olga left` },
      ])
    // The token that it has already got ends as well; that of a machine with another owner stays.
    expect((await get('/api/v1/admin/users', others)).status).toBe(401)
    expect((await get('/api/v1/admin/users', theirs)).status).toBe(200)
    const refused = await byKey(other)
    expect([refused.status, refused.body.code]).toEqual([401, 'invalid_client'])
    expect((await post(`/api/v1/admin/users/${owner_id}/enable`, { reason: 'back' })).status).toBe(200)
  })

  it('keeps five owners at most, and a deleted machine gets none', async () => {
    const { id } = await machine('auditor')
    const add = async (machine_id: string, user_id = '') => {
      const headers = { 'idempotency-key': randomUUID(), ...ada }
      const at = `${gateway.url}/api/v1/admin/machines/${machine_id}/owners/${user_id}`
      const { status, body } = await send(at, { method: 'PUT', headers })
      return [status, body.code]
    }
    const people = await Promise.all(Array.from({ length: 6 }, (_, n) => auth.addUser(`own-${n}`)))
    const [first, second, third, ...more] = people.map((one) => one.id)
    for (const one of [first, second, third]) expect(await add(id, one)).toEqual([204, undefined])
    // Two at once want the last place.
    const answers = await Promise.all(more.slice(0, 2).map((one) => add(id, one)))
    expect(answers.toSorted()).toEqual([
      [204, undefined],
      [422, 'machine_owner_invalid'],
    ])
    expect(await add(id, first)).toEqual([204, undefined])
    // Who has left makes room.
    expect((await post(`/api/v1/admin/users/${first}/disable`, { reason: 'left' })).status).toBe(200)
    expect(await add(id, more[2])).toEqual([204, undefined])
    expect((await post(`/api/v1/admin/users/${id}/delete`, { reason: 'over' })).status).toBe(200)
    expect(await add(id, ada_id)).toEqual([409, 'user_deleted'])
  })

  it('works again soon after its machine has an owner again, and the tokens from before stay refused', async () => {
    const { id } = await machine('auditor')
    const proof = await keyOf(id)
    const before = bearer((await byKey(proof.key)).body.access_token)
    const asked_ms = Date.now() - 5000
    await auth.session.deps.store.revoke({
      session_id: proof.id,
      reason: 'admin',
      actor_type: 'system',
      request_id: 'test',
    })
    const machine_session = { session_id: proof.id, user_id: id, username: 'machine:m' }
    // Whoever proved the credential before it ended gets no session, however late.
    expect(await auth.session.deps.store.openMachine({ ...machine_session, asked_ms })).toBe(false)
    const again = await until(async () => (await byKey(proof.key)).body.access_token, { timeout_ms: 15_000 })
    expect((await get('/api/v1/admin/users', before)).status).toBe(401)
    expect((await get('/api/v1/admin/users', bearer(again))).status).toBe(200)
  })
})

const assertion = (
  name: string,
  { kid = 'own', key = own.privateKey, alg = 'EdDSA', ...claims }: Record<string, unknown> = {},
) =>
  sign(
    { iss: name, sub: name, aud: ORIGIN, ...claims },
    { kid: kid as string, alg: alg as string, key: key as KeyObject },
  )
const sign = (
  claims: Record<string, unknown>,
  { key, ...header }: { kid: string; alg: string; key: KeyObject | Uint8Array },
) => {
  const now = Math.floor(Date.now() / 1000)
  return new SignJWT({ iat: now, exp: now + 120, jti: randomUUID(), ...claims }).setProtectedHeader(header).sign(key)
}

describe('private_key_jwt', () => {
  const present = (client_assertion: string) =>
    form({ grant_type: 'client_credentials', client_assertion_type: ASSERTION, client_assertion })
  let name: string
  beforeAll(async () => {
    const made = await machine('auditor')
    name = made.name
    const jwk = { ...(await exportJWK(own.publicKey)), kid: 'own', alg: 'EdDSA' }
    expect((await credential(made.id, { kind: 'jwk', jwk })).status).toBe(201)
  })

  it('becomes a token, once', async () => {
    const token = await assertion(name)
    const answer = await present(token)
    expect(claimsOf(answer)).toMatchObject({ username: name, amr: ['pkjwt'] })
    await expectRefused(present(token), 'invalid_client', 'replayed')
  })

  it.each<[string, () => Record<string, unknown>]>([
    ['audience', () => ({ aud: 'https://other.test' })],
    ['audience', () => ({ aud: [ORIGIN, 'https://other.test'] })],
    ['audience', () => ({ aud: [ORIGIN, ORIGIN] })],
    ['audience', () => ({ aud: [] })],
    ['subject', () => ({ sub: 'machine:other' })],
    ['time', () => ({ exp: Math.floor(Date.now() / 1000) - 60 })],
    ['time', () => ({ exp: Math.floor(Date.now() / 1000) + 3600 })],
    ['time', () => ({ iat: Math.floor(Date.now() / 1000) + 600, exp: Math.floor(Date.now() / 1000) + 700 })],
    ['key', () => ({ kid: 'unknown' })],
    ['signature', () => ({ key: generateKeyPairSync('ed25519').privateKey })],
    ['algorithm', () => ({ alg: 'RS256', key: ci.key })],
    ['unknown', () => ({ iss: 'machine:nobody' })],
    ['claims', () => ({ jti: undefined })],
    ['malformed', () => ({ jti: 'a\0b' })],
    ['malformed', () => ({ iss: 'machine:\0' })],
  ])('is refused by its %s', async (cause, wrong) => {
    await expectRefused(present(await assertion(name, wrong())), 'invalid_client', cause)
  })

  it('names its audience also in a list of one, as many libraries write it', async () => {
    expect((await present(await assertion(name, { aud: [ORIGIN] }))).status).toBe(200)
  })

  it('is refused if a member occurs twice: readers would differ in what it says', async () => {
    const claims = { iss: name, sub: name, aud: ORIGIN, iat: Math.floor(Date.now() / 1000), jti: randomUUID() }
    const body = JSON.stringify({ ...claims, exp: claims.iat + 120 }).replace('{', '{"aud":"https://other.test",')
    const text = [JSON.stringify({ alg: 'EdDSA', kid: 'own' }), body]
      .map((part) => Buffer.from(part).toString('base64url'))
      .join('.')
    const signature = signBytes(null, Buffer.from(text), own.privateKey).toString('base64url')
    await expectRefused(present(`${text}.${signature}`), 'invalid_client', 'malformed')
  })

  it('by a key that anyone can sign with is refused, also if the key was stored before that rule', async () => {
    const { id, name } = await machine('auditor')
    const made = await credential(id, {
      kind: 'jwk',
      jwk: { ...(await exportJWK(own.publicKey)), kid: 'own', alg: 'EdDSA' },
    })
    const jwk = { ...ANYONES, alg: 'RS256', kid: 'own' }
    const is = eq(machine_credentials.id, (made.body.credential as { id: string }).id)
    await auth.identity_deps.db
      .update(machine_credentials)
      .set({ jwk: jwk as never })
      .where(is)
    const text = (await assertion(name, { alg: 'RS256', key: ci.key })).replace(/\.[^.]*$/, '')
    await expectRefused(present(`${text}.${signAsAnyone(text).toString('base64url')}`), 'invalid_client', 'key')
  })
})

describe('a CI token', () => {
  const CLAIMS = {
    ...{ sub: 'repo:corp/net:environment:prod', repository_id: '42' },
    ...{ repository_owner_id: '7', environment: 'prod' },
  }
  let name: string
  beforeAll(async () => {
    const made = await machine('auditor')
    name = made.name
    const trust = { issuer, audience: AUDIENCE, claims: CLAIMS }
    expect((await credential(made.id, { kind: 'trust', trust })).status).toBe(201)
    const foreign = await credential(made.id, { kind: 'trust', trust: { ...trust, issuer: 'https://evil.test' } })
    expect([foreign.status, foreign.body.code]).toEqual([422, 'issuer_not_trusted'])
  })
  const token = ({ kid = 'ci', key = ci.key, alg = 'RS256', ...claims }: Record<string, unknown> = {}) =>
    sign(
      { iss: issuer, aud: AUDIENCE, ...CLAIMS, ...claims },
      { kid: kid as string, alg: alg as string, key: key as KeyObject },
    )
  const present = (subject_token: string, client_id = name) =>
    form({ grant_type: EXCHANGE, client_id, subject_token_type: JWT, subject_token })

  it('becomes a token, once', async () => {
    const one = await token()
    const answer = await present(one)
    expect(answer.body.issued_token_type).toBe('urn:ietf:params:oauth:token-type:access_token')
    expect(claimsOf(answer)).toMatchObject({ username: name, amr: ['ci'] })
    await expectRefused(present(one), 'invalid_grant', 'replayed')
    const other = await machine('auditor')
    const trust = { issuer, audience: AUDIENCE, claims: CLAIMS }
    expect((await credential(other.id, { kind: 'trust', trust })).status).toBe(201)
    await expectRefused(present(one, other.name), 'invalid_grant', 'replayed')
    expect((await present(await token(), other.name)).status).toBe(200)
  })

  it.each<[string, () => Record<string, unknown>]>([
    ['issuer', () => ({ iss: 'https://evil.test' })],
    ['audience', () => ({ aud: 'https://other.test' })],
    ['subject', () => ({ sub: 'repo:corp/net:environment:dev' })],
    ['claims', () => ({ repository_id: '43' })],
    ['claims', () => ({ repository_id: 42 })],
    ['time', () => ({ exp: Math.floor(Date.now() / 1000) - 60 })],
    ['key', () => ({ kid: 'unknown' })],
    ['signature', () => ({ key: generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey })],
    ['algorithm', () => ({ alg: 'HS256', key: Buffer.alloc(32) })],
  ])('is refused by its %s', async (cause, wrong) => {
    await expectRefused(present(await token(wrong())), 'invalid_grant', cause)
  })

  it('names its audience also in a list, as Kubernetes does, but no second one (RFC 7519 4.1.3)', async () => {
    expect((await present(await token({ aud: [AUDIENCE] }))).status).toBe(200)
    for (const aud of [[AUDIENCE, 'https://other.test'], ['https://other.test'], []])
      await expectRefused(present(await token({ aud })), 'invalid_grant', 'audience')
  })

  it('identifies no other machine', async () => {
    const other = await machine('auditor')
    await expectRefused(present(await token(), other.name), 'invalid_grant', 'issuer')
    await expectRefused(present(await token(), 'ada'), 'invalid_grant', 'unknown')
  })
})

describe('an assertion and a CI token', () => {
  it('are refused if they bring their own key, or name a place for one (ASVS 9.1.3)', async () => {
    const { name } = await machine('auditor')
    const jwk = await exportJWK(own.publicKey)
    for (const member of [{ jwk }, { jku: `${issuer}/jwks` }, { x5u: issuer }, { x5c: ['AAAA'] }]) {
      const header = { kid: 'own', alg: 'EdDSA', key: own.privateKey, ...member }
      const client_assertion = await sign({ iss: name, sub: name, aud: ORIGIN }, header)
      const subject_token = await sign(
        { iss: issuer, aud: AUDIENCE },
        { ...header, kid: 'ci', alg: 'RS256', key: ci.key },
      )
      const asserted = { grant_type: 'client_credentials', client_assertion_type: ASSERTION, client_assertion }
      await expectRefused(form(asserted), 'invalid_client', 'malformed')
      const exchanged = { grant_type: EXCHANGE, client_id: name, subject_token_type: JWT, subject_token }
      await expectRefused(form(exchanged), 'invalid_grant', 'malformed')
    }
  })

  it('of an issuer that is away is 503, and stops nobody else: session still asks identity', async () => {
    const { id, name } = await machine('auditor')
    const trust = { issuer: silent, audience: AUDIENCE, claims: { sub: 'away' } }
    expect((await credential(id, { kind: 'trust', trust })).status).toBe(201)
    const token = () => sign({ iss: silent, aud: AUDIENCE, sub: 'away' }, { kid: 'ci', alg: 'RS256', key: ci.key })
    const present = async () =>
      form({ grant_type: EXCHANGE, client_id: name, subject_token_type: JWT, subject_token: await token() })
    const answers = await Promise.all(Array.from({ length: 30 }, present))
    expect([...new Set(answers.map(({ status, body }) => `${status} ${body.code}`))]).toEqual(['503 dependency_down'])
    const { status } = await post('/v1/token', { username: 'ada', password: PASSWORD }, {})
    expect(status).toBe(200)
  })

  it('each become one token, however often they are sent at the same moment', async () => {
    const { id, name } = await machine('auditor')
    const jwk = { ...(await exportJWK(own.publicKey)), kid: 'own', alg: 'EdDSA' }
    const trust = { issuer, audience: AUDIENCE, claims: { sub: 'raced' } }
    for (const proof of [
      { kind: 'jwk', jwk },
      { kind: 'trust', trust },
    ])
      expect((await credential(id, proof)).status).toBe(201)
    const key = { kid: 'ci', alg: 'RS256', key: ci.key }
    const forms: Record<string, string>[] = [
      {
        ...{ grant_type: 'client_credentials', client_assertion_type: ASSERTION },
        client_assertion: await assertion(name),
      },
      {
        ...{ grant_type: EXCHANGE, client_id: name, subject_token_type: JWT },
        subject_token: await sign({ iss: issuer, aud: AUDIENCE, sub: 'raced' }, key),
      },
    ]
    for (const sent of forms) {
      const answers = await Promise.all([1, 2, 3, 4].map(() => form(sent)))
      expect(answers.map(({ status }) => status).sort()).toEqual([200, 401, 401, 401])
    }
  })
})

describe('the token endpoint', () => {
  it.each([
    [{ grant_type: 'password', client_secret: 'x' }, 'unsupported_grant_type'],
    [{ grant_type: 'client_credentials' }, 'schema_violation'],
    [{ grant_type: 'client_credentials', client_secret: 'x', client_assertion: 'y' }, 'schema_violation'],
    [{ grant_type: EXCHANGE, subject_token: 'x' }, 'schema_violation'],
    [{ grant_type: EXCHANGE, subject_token: 'x.y.z', client_id: 'machine:\0' }, 'schema_violation'],
    [{ client_secret: 'x' }, 'schema_violation'],
    [{ grant_type: EXCHANGE, subject_token: 'x', client_id: 'y', requested_token_type: JWT }, 'schema_violation'],
  ])('refuses %j, also in the words of RFC 6749', async (fields, code) => {
    const answer = await form(fields as Record<string, string>)
    expect([answer.status, answer.body.code]).toEqual([400, code])
    const error = code === 'unsupported_grant_type' ? code : 'invalid_request'
    expect(answer.body).toMatchObject({ error, error_description: answer.body.detail })
  })

  it('takes what clients of RFC 6749 send: HTTP Basic, and parameters that it does not know', async () => {
    const { id, name } = await machine()
    const { key } = await keyOf(id)
    const basic = (client_id: string, secret: string) => ({
      authorization: `Basic ${Buffer.from(`${encodeURIComponent(client_id)}:${encodeURIComponent(secret)}`).toString('base64')}`,
    })
    const grant = { grant_type: 'client_credentials', resource: 'https://signalbox.example.com', audience: 'x' }
    expect((await byKey(key, { audience: 'x' })).status).toBe(200)
    expect((await form(grant, basic(name, key))).status).toBe(200)
    const plain = { authorization: `Basic ${Buffer.from(`${name}:${key}`).toString('base64')}` }
    expect((await form(grant, plain)).status).toBe(200)
    const wrong = await form(grant, basic(name, `${key}x`))
    expect([wrong.status, wrong.headers['www-authenticate']]).toEqual([401, 'Basic realm="signalbox"'])
    expect((await form(grant, basic('machine:other', key))).status).toBe(401)
    const refusals = [
      form({ ...grant, client_secret: key }, basic(name, key)),
      form({ ...grant, client_id: 'machine:other' }, basic(name, key)),
      form(grant, { authorization: 'Basic =' }),
      form(grant, basic('machine:\0', key)),
    ]
    for (const { status, body } of await Promise.all(refusals))
      expect([status, body.error]).toEqual([400, 'invalid_request'])
  })

  it('leaves no rows of the audit log for refusals beyond the limit of an address', async () => {
    const session = await auth.addSession({ SESSION__LIMITS__MACHINE_FAILURES: '1/3600/2' })
    const ask = () =>
      send(`${session.url}/oauth/token`, {
        body: { grant_type: 'client_credentials', client_secret: 'x' },
        headers: { 'x-forwarded-for': '198.51.100.11' },
      })
    const answers = [await ask(), await ask(), await ask(), await ask()]
    expect(answers.map(({ status }) => status)).toEqual([401, 401, 429, 429])
    const rows = await Promise.all(answers.map(auditOf))
    expect(rows.map((row) => row !== undefined)).toEqual([true, true, false, false])
  })

  it('makes an address with too many refusals wait, and charges people separately', async () => {
    const session = await auth.addSession({ SESSION__LIMITS__MACHINE_FAILURES: '1/3600/1' })
    const ask = () =>
      send(`${session.url}/oauth/token`, {
        body: { grant_type: 'client_credentials', client_secret: 'x' },
        headers: { 'x-forwarded-for': '198.51.100.9' },
      })
    expect([(await ask()).status, (await ask()).status]).toEqual([401, 429])
    const slow = await auth.addGateway({
      GATEWAY__LIMITS__MACHINE: '1/3600/1',
      GATEWAY__HTTP__TRUSTED_PROXIES: '["127.0.0.1/32"]',
    })
    const to = (path: string, body: object) =>
      send(`${slow.url}${path}`, { body, headers: { 'x-forwarded-for': '198.51.100.10' } })
    const machines = [await to('/oauth/token', { grant_type: 'x' }), await to('/oauth/token', { grant_type: 'x' })]
    expect(machines.map(({ status }) => status)).toEqual([400, 429])
    expect((await to('/v1/token', { username: 'ada', password: PASSWORD })).status).toBe(200)
  })
})

describe('the cause of a refusal', () => {
  type Refusal = { cause: string; claim: string | null; credential_id: string | null; address: string | null }
  const refusalsOf = async (path: string, who: Record<string, string>) => {
    const { status, body } = await get(`/api/v1/${path}/refusals`, who)
    return { status, items: (body.items ?? []) as Refusal[] }
  }
  const signedIn = async (username: string) =>
    bearer((await post('/v1/token', { username, password: PASSWORD }, {})).body.access_token)

  it('is read by the owners, administrators and auditors of the machine, and by no one else', async () => {
    const { id, name } = await machine('auditor')
    const { id: credential_id, key } = await keyOf(id)
    const token = bearer((await byKey(key)).body.access_token)
    const wrong = `${key.slice(0, -7)}${key.at(-7) === 'A' ? 'B' : 'A'}${key.slice(-6)}`
    for (const sent of [{}, { client_id: 'machine:other' }, { scope: 'catalog:read' }])
      expect((await byKey('client_id' in sent || 'scope' in sent ? key : wrong, sent)).status).toBeGreaterThan(399)
    await form({ grant_type: EXCHANGE, subject_token_type: JWT, subject_token: 'x', client_id: name })
    const own = `users/me/machines/${id}`
    const olga = await signedIn('olga')
    await until(async () => (await refusalsOf(own, olga)).items.length === 4)
    const { items } = await refusalsOf(own, olga)
    expect(items.map(({ cause }) => cause).sort()).toEqual(['client_id', 'malformed', 'malformed', 'scope'])
    expect(items.find(({ cause }) => cause === 'scope')).toMatchObject({ credential_id, address: '127.0.0.1' })
    expect(await refusalsOf(`admin/machines/${id}`, ada)).toEqual({ status: 200, items })
    expect((await get('/api/v1/users/me/machines?page_size=500', olga)).body.items).toContainEqual(
      expect.objectContaining({ id, username: name }),
    )
    // Neither another person, however they ask, nor the machine itself.
    await auth.addUser('nils', ['operator'])
    const nils = await signedIn('nils')
    expect((await refusalsOf(own, nils)).status).toBe(404)
    expect((await refusalsOf(own, ada)).status).toBe(404)
    expect((await refusalsOf('users/me/machines/nonsense', olga)).status).toBe(404)
    expect((await refusalsOf(`admin/machines/${id}`, nils)).status).toBe(403)
    expect((await get('/api/v1/users/me/machines', nils)).body.items).toEqual([])
    expect(await get(`/api/v1/${own}/refusals`, token)).toMatchObject({
      status: 403,
      body: { code: 'person_required' },
    })
  })

  it('is found by an index among all tokens of the machine', async () => {
    const { db } = auth.session.deps
    const user_id = randomUUID()
    await db.execute(sql`
      insert into session.auth_events (event_id, at, actor, action, object, outcome, body)
      select gen_random_uuid(), now(), 'x', 'machine_token', 'user:' || ${user_id}::text,
        case when n = 1 then 'denied' else 'done' end, '{}' from generate_series(1, 5000) n`)
    await db.execute(sql`analyze session.auth_events`)
    const query = listRefusals(db, { user_id, before: undefined }, 51)
    expect((await query).length).toBe(1)
    const { rows } = await db.execute(sql`explain (analyze, format json) ${query}`)
    expect(JSON.stringify(rows)).not.toMatch(/Seq Scan|"Rows Removed by Filter":[1-9]\d{2}/)
  })

  it('names the claim in which a CI token differs from the trust', async () => {
    const { id, name } = await machine('auditor')
    const trust = { issuer, audience: AUDIENCE, claims: { sub: 'job', team: 'web' } }
    expect((await credential(id, { kind: 'trust', trust })).status).toBe(201)
    const now = Math.floor(Date.now() / 1000)
    const signed = await new SignJWT({ jti: randomUUID(), team: 'data' })
      .setProtectedHeader({ alg: 'RS256', kid: 'ci' })
      .setIssuer(issuer)
      .setAudience(AUDIENCE)
      .setSubject('job')
      .setIssuedAt(now)
      .setExpirationTime(now + 60)
      .sign(ci.key)
    const sent = { grant_type: EXCHANGE, subject_token_type: JWT, subject_token: signed, client_id: name }
    await expectRefused(form(sent), 'invalid_grant', 'claims')
    await until(async () => (await refusalsOf(`admin/machines/${id}`, ada)).items.length > 0)
    const { items } = await refusalsOf(`admin/machines/${id}`, ada)
    expect(items).toMatchObject([{ cause: 'claims', claim: 'team', credential_id: null }])
  })
})

describe('the limits of a machine', () => {
  it('it holds no role that decides or administers, directly or through a group', async () => {
    const { id } = await machine()
    for (const role of ['approver', 'admin', 'engineer']) {
      const answer = await post('/api/v1/admin/grants', { subject_type: 'user', subject_id: id, role })
      expect([role, answer.status, answer.body.code]).toEqual([role, 422, 'machine_role_refused'])
    }
    const group_key = `g-${randomUUID().slice(0, 8)}`
    await post('/api/v1/admin/groups', { group_key, name: 'x' })
    const join = () =>
      send(`${gateway.url}/api/v1/admin/groups/${group_key}/members/${id}`, {
        method: 'PUT',
        headers: { ...ada, 'idempotency-key': randomUUID() },
      })
    expect((await join()).status).toBe(204)
    const grant = await post('/api/v1/admin/grants', { subject_type: 'group', subject_id: group_key, role: 'approver' })
    expect(grant.body.code).toBe('machine_role_refused')
    expect((await post(`/api/v1/admin/users/${id}/enrolment-token`, {})).body.code).toBe('not_for_machines')
  })

  it('it is not a person: people do not get the rights of a control plane', async () => {
    const controller = (subject_type: string, subject_id: string) =>
      post('/api/v1/admin/grants', { subject_type, subject_id, role: 'controller' })
    expect((await controller('user', owner_id)).body.code).toBe('person_role_refused')
    const username = `p-${randomUUID().slice(0, 8)}`
    const made = await post('/api/v1/admin/users', { username, grants: [{ role: 'controller' }] })
    expect(made.body.code).toBe('person_role_refused')
    const { id } = await machine('controller')
    const { key } = await keyOf(id, { permissions: ['signal:send'] })
    expect((await byKey(key)).body.scope).toBe('signal:send')
    const group_key = `g-${randomUUID().slice(0, 8)}`
    await post('/api/v1/admin/groups', { group_key, name: 'planes' })
    expect((await controller('group', group_key)).status).toBe(201)
    const join = await send(`${gateway.url}/api/v1/admin/groups/${group_key}/members/${owner_id}`, {
      method: 'PUT',
      headers: { ...ada, 'idempotency-key': randomUUID() },
    })
    expect(join.body.code).toBe('person_role_refused')
  })

  it('it administers nothing, even with a grant written directly into the table', async () => {
    const { id } = await machine('auditor')
    const { key } = await keyOf(id, { permissions: ['identity:read'] })
    await auth.identity_deps.db
      .insert(grants)
      .values({ id: randomUUID(), subject_type: 'user', subject_id: id, role: 'admin', created_by: 'system' })
    const token = bearer((await byKey(key)).body.access_token)
    const me = await get('/api/v1/users/me', token)
    expect(me.body).toMatchObject({ kind: 'machine', session: { mode: 'machine' } })
    expect((await post('/api/v1/admin/machines', { name: 'x', owners: [owner_id] }, token)).body.code).toBe(
      'permission_missing',
    )
    expect((await post('/v1/token/reauth', { password: PASSWORD }, token)).body.code).toBe('person_required')
  })

  it('takes no route of a person: it ends none of its other credentials, and links no identity', async () => {
    const { id } = await machine('auditor')
    const [one, other] = [await keyOf(id), await keyOf(id)]
    const token = bearer((await byKey(one.key)).body.access_token)
    const others = bearer((await byKey(other.key)).body.access_token)
    let walked = 0
    for (const [path, methods] of Object.entries(document.paths as Paths))
      for (const [method, operation] of Object.entries(methods)) {
        if (!operation['x-permissions']?.includes('self') || /notifications|\/v1\/me$/.test(path)) continue
        const filled = path.replace('{session_id}', other.id).replace('{provider}', 'corp').replace(/{\w+}/, other.id)
        const body = operation.requestBody?.content['application/json']?.example
        const reply = await send(`${gateway.url}${filled}`, {
          method: method.toUpperCase() as 'GET',
          headers: { ...token, 'idempotency-key': randomUUID(), 'if-match': '"1"' },
          ...(body !== undefined && { body }),
        })
        const served = method === 'get' && path === '/api/v1/users/me'
        expect([method, path, reply.status, reply.body.code]).toEqual(
          served ? [method, path, 200, undefined] : [method, path, 403, 'person_required'],
        )
        walked += 1
      }
    expect(walked).toBeGreaterThan(20)
    expect((await get('/api/v1/users/me', others)).status).toBe(200)
    expect((await byKey(other.key)).status).toBe(200)
  })

  it('answers for no machine', async () => {
    const { id } = await machine()
    const answer = await post('/api/v1/admin/machines', { name: `n-${randomUUID().slice(0, 8)}`, owners: [id] })
    expect([answer.status, answer.body.code]).toEqual([422, 'machine_owner_invalid'])
  })
})
