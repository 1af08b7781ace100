import { generateKeyPairSync, randomUUID } from 'node:crypto'
import { eq } from 'drizzle-orm'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { noteExpired } from '../../apps/identity/machines/ending.ts'
import { ENDED_CREDENTIAL } from '../../apps/identity/mutations.ts'
import { closeAccessAgain } from '../../apps/platform/restore/access.ts'
import type { LostEvent } from '../../apps/relay/events/lost.ts'
import { Identity } from '../../apps/shared/contracts/gen/auth_pb.ts'
import { createRpcClient } from '../../apps/shared/rpc/client.ts'
import { machine_credentials, outbox, user_events, users } from '../../db/identity/tables.ts'
import { startIdentity, type TestIdentity } from './support/harness.ts'

/** Two administrators must give a machine its credential, once two exist. */

type Admin = Awaited<ReturnType<TestIdentity['secondAdmin']>>
let p: TestIdentity
let ada: Admin
let bob: Admin
let early: { id: string; key: string; credential_id: string }

const machine = async () => {
  const body = { name: `m-${randomUUID().slice(0, 8)}`, owners: [ada.user_id] }
  const made = await ada.post('/v1/admin/machines', body)
  expect(made.status).toBe(201)
  return String(made.body.id)
}
const addKey = (id: string, by = ada) =>
  by.post(`/v1/admin/machines/${id}/credentials`, { kind: 'key', name: 'k', permissions: ['operation:read'] })
const grant = (id: string, role: string) => ada.post('/v1/admin/grants', { subject_type: 'user', subject_id: id, role })
const identity = () =>
  createRpcClient(Identity, {
    url: p.rpc_url,
    signer: p.services.signer('session'),
    audience: 'identity-internal',
    timeout_ms: 5000,
  })
const causeOf = async (apiKey: unknown) => {
  const { user, cause } = await identity().authenticateMachine({ apiKey: String(apiKey) })
  return user ? 'accepted' : cause
}

beforeAll(async () => {
  p = await startIdentity()
  const first = await p.firstAdmin()
  ada = { ...first, user_id: first.user_id ?? '' }
  const id = await machine()
  const { body } = await addKey(id)
  early = { id, key: String(body.key), credential_id: (body.credential as { id: string }).id }
  bob = await p.secondAdmin('bob')
})
afterAll(() => p.stop())

it('a key waits for the second administrator: it is shown to the first, and works afterwards', async () => {
  const id = await machine()
  const asked = await addKey(id)
  const change = asked.body.change as { id: string; kind: string }
  expect([asked.status, change.kind]).toEqual([202, 'machine.credential'])
  expect(await causeOf(asked.body.key)).toBe('unknown')
  expect((await p.confirm(ada, change.id)).body.code).toBe('second_admin')
  const seen = (await bob.get('/v1/admin/changes')).body.items as { id: string; request: object }[]
  const request = seen.find((one) => one.id === change.id)?.request
  expect(request).toMatchObject({ machine_id: id, kind: 'key', permissions: ['operation:read'] })
  expect(JSON.stringify(request)).not.toContain('secret')
  const confirmed_ms = Date.now()
  expect((await p.confirm(bob, change.id)).status).toBe(200)
  expect(await causeOf(asked.body.key)).toBe('accepted')
  const [row] = (await p.deps.db.select().from(machine_credentials)).filter(({ machine_id }) => machine_id === id)
  expect(row).toMatchObject({ created_by: `user:${ada.user_id}`, confirmed_by: `user:${bob.user_id}` })
  // A change may wait for days: its credential lives from the confirmation on.
  expect(Date.parse(String(row?.expires_at)) - confirmed_ms).toBeGreaterThanOrEqual(90 * 86_400_000)
  const events = await p.deps.db.select().from(user_events)
  expect(events.map(({ body }) => body).join()).not.toContain(String(asked.body.key))
})

it('a rotation waits too, and leaves the old key unchanged until then', async () => {
  const path = `/v1/admin/machines/${early.id}/credentials/${early.credential_id}/rotate`
  const asked = await ada.post(path, { overlap_s: 0 })
  expect(asked.status).toBe(202)
  expect([await causeOf(early.key), await causeOf(asked.body.key)]).toEqual(['accepted', 'unknown'])
  expect((await p.confirm(bob, (asked.body.change as { id: string }).id)).status).toBe(200)
  expect([await causeOf(early.key), await causeOf(asked.body.key)]).toEqual(['expired', 'accepted'])
  // It has ended by the database's clock, which wrote its end: a process behind that clock makes no second successor.
  const clock = vi.spyOn(p.deps.clock, 'now').mockImplementation(() => new Date(Date.now() - 2000))
  expect((await ada.post(path, { overlap_s: 0 })).status).toBe(404)
  clock.mockRestore()
})

it('the overlap of a rotation starts with its confirmation, however late', async () => {
  const id = await machine()
  const first = await addKey(id)
  expect((await p.confirm(bob, (first.body.change as { id: string }).id)).status).toBe(200)
  const [{ id: credential_id } = { id: '' }] = (await p.deps.db.select().from(machine_credentials)).filter(
    ({ machine_id }) => machine_id === id,
  )
  const asked = await ada.post(`/v1/admin/machines/${id}/credentials/${credential_id}/rotate`, { overlap_s: 1 })
  await new Promise((resolve) => setTimeout(resolve, 1100))
  expect((await p.confirm(bob, (asked.body.change as { id: string }).id)).status).toBe(200)
  expect([await causeOf(first.body.key), await causeOf(asked.body.key)]).toEqual(['accepted', 'accepted'])
})

it('a machine with a key that one administrator created alone gets no sensitive role until that key is gone', async () => {
  const id = await machine()
  const asked = await addKey(id)
  expect((await p.confirm(bob, (asked.body.change as { id: string }).id)).status).toBe(200)
  expect((await grant(id, 'operator')).status).toBe(202)
  await p.deps.db.update(machine_credentials).set({ confirmed_by: null })
  const other = await machine()
  const second = await addKey(other)
  await p.confirm(bob, (second.body.change as { id: string }).id)
  const again = await addKey(id)
  await p.confirm(bob, (again.body.change as { id: string }).id)
  expect((await grant(id, 'operator')).body.code).toBe('renewal_required')
  for (const row of await p.deps.db.select().from(machine_credentials))
    expect((await bob.delete(`/v1/admin/machines/${row.machine_id}/credentials/${row.id}`)).status).toBe(204)
  expect((await grant(id, 'operator')).status).toBe(202)
})

it('a machine may get sensitive roles again once the key that one administrator created has expired', async () => {
  const id = await machine()
  const asked = await addKey(id)
  expect((await p.confirm(bob, (asked.body.change as { id: string }).id)).status).toBe(200)
  const keys = (set: object) =>
    p.deps.db.update(machine_credentials).set(set).where(eq(machine_credentials.machine_id, id))
  await keys({ confirmed_by: null })
  await p.deps.db.update(users).set({ link_shown: true }).where(eq(users.id, id))
  await noteExpired(p.deps)
  expect((await grant(id, 'operator')).body.code).toBe('renewal_required')
  await keys({ expires_at: new Date(Date.now() - 1000).toISOString() })
  await Promise.all([noteExpired(p.deps), noteExpired(p.deps)])
  expect((await grant(id, 'operator')).status).toBe(202)
})

it('a machine has a bounded number of keys', async () => {
  const id = await machine()
  await p.deps.db
    .insert(machine_credentials)
    .values(
      Array.from({ length: 10 }, (_, n) => ({
        ...{ id: randomUUID(), machine_id: id, kind: 'key' as const, name: `k${n}`, secret_hash: `h${n}` },
        ...{ permissions: [], created_by: 'system', expires_at: '2100-01-01T00:00:00Z' },
      })),
    )
  expect(await addKey(id)).toMatchObject({ status: 409, body: { code: 'too_many_credentials' } })
})

it('a trust pins the claims that survive a rename, at every server of GitHub or GitLab', async () => {
  const id = await machine()
  const [github, gitlab, own] = [
    'https://token.actions.githubusercontent.com',
    'https://gitlab.com',
    'https://ci.corp.test',
  ]
  for (const one of [github, gitlab, own]) p.deps.issuers.set(one, () => Promise.reject(new Error('no token is sent')))
  const body = (claims: object, issuer = own) => ({
    ...{ kind: 'trust', name: 'ci', permissions: ['operation:read'] },
    trust: { issuer, audience: 'https://signalbox.test', claims },
  })
  const path = `/v1/admin/machines/${id}/credentials`
  const main = 'ref:refs/heads/main'
  const project = { project_id: '42', namespace_id: '7' }
  for (const [claims, issuer] of [
    [{ sub: `repo:corp/net:${main}` }, github],
    [{ sub: `repo:corp/net:${main}` }],
    [{ sub: `repository_owner:corp:${main}` }],
    [{ repository: 'corp/net', ref: 'refs/heads/main' }],
    [{ sub: 'x', environment: 'prod' }],
    [{ sub: `project_path:team/app:ref_type:branch:${main}` }],
    [{ project_path: 'team/app', ref_protected: 'true' }],
    [{ ...project, ref_protected: 'false' }],
    [{ ...project, ref_protected: 'false' }, gitlab],
    [{ sub: 'anything' }, gitlab],
  ] as [object, string?][]) {
    const loose = await ada.post(path, body(claims, issuer))
    expect([claims, loose.status, loose.body.code]).toEqual([claims, 422, 'schema_violation'])
  }
  const pinned = { repository_id: '42', repository_owner_id: '7', environment: 'prod' }
  // Other issuers have no such claims: here their subject is all that counts.
  const account = { sub: 'system:serviceaccount:repo-tools:deployer' }
  for (const [claims, issuer] of [
    [pinned, github],
    [pinned],
    [{ ...pinned, sub: `repo:corp/net:${main}` }],
    [{ ...project, ref_protected: 'true' }],
    [account],
    // Their names begin like those of GitHub and GitLab, and these survive a rename.
    [{ repositoryUuid: '{5f0f4b6e}', workspaceUuid: '{7a1c2d3e}' }],
    [{ organization_id: '8a7b', pipeline_id: '9c8d', pipeline_slug: 'net' }],
  ] as [object, string?][])
    expect([claims, (await ada.post(path, body(claims, issuer))).status]).toEqual([claims, 202])
})

it('a key that was revoked in the future that a restore lost is revoked again', async () => {
  const id = await machine()
  const asked = await addKey(id)
  await p.confirm(bob, (asked.body.change as { id: string }).id)
  const ofMachine = eq(machine_credentials.machine_id, id)
  const rows = () => p.deps.db.select().from(machine_credentials).where(ofMachine)
  const [row] = await rows()
  expect((await ada.delete(`/v1/admin/machines/${id}/credentials/${row?.id}`)).status).toBe(204)
  const kept = await addKey(id)
  await p.confirm(bob, (kept.body.change as { id: string }).id)
  const [other] = (await rows()).filter(({ revoked_at }) => revoked_at === null)
  const told = (await p.deps.db.select().from(outbox)).filter(({ type }) => type === ENDED_CREDENTIAL)
  const event = told.map(({ payload }) => payload as object).find((one) => 'user_id' in one && one.user_id === id)
  await p.deps.db.update(machine_credentials).set({ revoked_at: null }).where(ofMachine)
  expect(await causeOf(asked.body.key)).toBe('accepted')

  for (const name of ['IDENTITY__DATABASE__URL', 'IDENTITY__SECRET__KEYS'] as const) vi.stubEnv(name, p.env[name])
  const said = vi.spyOn(console, 'log').mockImplementation(() => {})
  const lost = [
    { type: ENDED_CREDENTIAL, ...event },
    // An owner was disabled by mistake, and enabled again.
    { type: 'auth.user.status_changed.v1', user_id: bob.user_id, to: 'DISABLED', request_id: 'r1' },
    { type: ENDED_CREDENTIAL, user_id: id, credential_id: other?.id, request_id: 'r1' },
    { type: 'auth.user.status_changed.v1', user_id: bob.user_id, to: 'ACTIVE', request_id: 'r2' },
    { type: 'auth.user.recovery_started.v1', user_id: bob.user_id },
  ] as unknown as LostEvent[]
  for (let times = 0; times < 2; times++) await closeAccessAgain(lost)
  const lines = said.mock.calls.flat()
  said.mockRestore()
  vi.unstubAllEnvs()
  expect(lines).toEqual([
    `credential ${row?.id} of ${id}: revoked again`,
    `credential ${other?.id} of ${id}: its last owner left; review it`,
    expect.stringContaining(`user ${bob.user_id}: ways to sign in were ended`),
    `credential ${row?.id} of ${id}: as it is`,
    `credential ${other?.id} of ${id}: its last owner left; review it`,
    expect.stringContaining(`user ${bob.user_id}: ways to sign in were ended`),
  ])
  expect(await causeOf(asked.body.key)).toBe('revoked')
  expect(await causeOf(kept.body.key)).toBe('accepted')
  const now = (await p.deps.db.select().from(outbox)).filter(({ type }) => type === ENDED_CREDENTIAL)
  expect(now).toHaveLength(told.length + 1)
  const audited = (await p.deps.db.select().from(user_events)).filter(({ object }) => object === `user:${id}`)
  expect(audited.at(-1)).toMatchObject({ action: 'machine.credential_revoked', outcome: 'done' })
})

it('accepts only public keys of the stated algorithm', async () => {
  const id = await machine()
  const own = generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' })
  const n = Buffer.alloc(256, 0xc1).toString('base64url')
  const path = `/v1/admin/machines/${id}/credentials`
  for (const key of [
    { ...own, alg: 'RS256' },
    { kty: 'OKP', crv: 'Ed25519', alg: 'EdDSA', x: 'A'.repeat(43) },
    { kty: 'RSA', alg: 'RS256', n, e: 'AQ' },
    { kty: 'RSA', alg: 'RS256', n: n.slice(0, 171), e: 'AQAB' },
  ]) {
    const body = { kind: 'jwk', name: 'a', permissions: ['operation:read'], jwk: { ...key, kid: 'a' } }
    const answer = await ada.post(path, body)
    expect([answer.status, answer.body.code]).toEqual([422, 'schema_violation'])
  }
})

it('has no two keys with one kid at a time, whichever administrator adds the second', async () => {
  const id = await machine()
  const path = `/v1/admin/machines/${id}/credentials`
  const give = (kid: string) => {
    const jwk = { ...generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' }), kid, alg: 'EdDSA' }
    return ada.post(path, { kind: 'jwk', name: 'a', permissions: ['operation:read'], jwk })
  }
  const changeOf = ({ body }: Awaited<ReturnType<typeof give>>) => (body.change as { id: string }).id
  const [one, two] = [changeOf(await give('own')), changeOf(await give('own'))]
  expect((await p.confirm(bob, one)).status).toBe(200)
  const taken = { status: 409, body: { code: 'kid_taken' } }
  expect(await p.confirm(bob, two)).toMatchObject(taken)
  expect(await give('own')).toMatchObject(taken)
  const rows = await p.deps.db.select().from(machine_credentials).where(eq(machine_credentials.machine_id, id))
  expect(rows).toHaveLength(1)
  expect((await bob.delete(`${path}/${rows[0]?.id}`)).status).toBe(204)
  expect((await p.confirm(bob, changeOf(await give('own')))).status).toBe(200)
})
