import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { type Client, Code } from '@connectrpc/connect'
import { eq, sql } from 'drizzle-orm'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ResponseMode, Token } from '../../apps/shared/contracts/gen/auth_pb.ts'
import { MAX_KEYS, parseKeySet } from '../../apps/shared/jwt/jwks.ts'
import { verifyToken } from '../../apps/shared/jwt/verifier.ts'
import { createRpcClient } from '../../apps/shared/rpc/client.ts'
import { buildApp } from '../../apps/token/app.ts'
import { loadTokenConfig, type TokenConfig } from '../../apps/token/config.ts'
import type { TokenDeps } from '../../apps/token/deps.ts'
import { createKeyring } from '../../apps/token/keyring.ts'
import { killKey, tendKeys } from '../../apps/token/keys.service.ts'
import { createDeps, keySettingsOf } from '../../apps/token/wire.ts'
import { createDb, type Db } from '../../db/client.ts'
import { lockKeys } from '../../db/token/queries.ts'
import { key_events, keys, outbox } from '../../db/token/tables.ts'
import { testDatabase } from '../support/database.ts'
import { testServices } from '../support/services.ts'

const USER = '0195f0aa-0000-7000-8000-000000000001'
const SESSION = '0195f0aa-0000-7000-8000-000000000002'
const DAY_S = 86_400

let services: ReturnType<typeof testServices>
let database: Awaited<ReturnType<typeof testDatabase>>
let config: TokenConfig
let deps: TokenDeps
let app: ReturnType<typeof buildApp>
let db: Db
let closeDb: () => Promise<void>
let client: Client<typeof Token>
let rpcUrl: string
let now = new Date('2026-03-01T12:00:00.400Z')
const clock = { now: () => now }
const seconds = () => Math.floor(now.getTime() / 1000)
const later = (s: number) => {
  now = new Date(now.getTime() + s * 1000)
}

const request = (changes: object = {}) => ({
  userId: USER,
  sessionId: SESSION,
  username: 'eva',
  mode: ResponseMode.JSON,
  authTime: BigInt(seconds()),
  ...changes,
})
const jwks = async () => (await app.app.inject('/jwks')).json<{ keys: { kid: string }[] }>()
const verifyAccess = async (token: string) => {
  const set = parseKeySet(await jwks())
  return verifyToken(token, {
    type: 'access',
    issuer: 'http://localhost:8080',
    audience: 'signalbox-api',
    now,
    keys: (kid) => {
      const key = set.get(kid)
      return key && { key }
    },
  })
}
const statuses = async () => Object.fromEntries((await db.select().from(keys)).map((row) => [row.kid, row.status]))
const kidOf = async (status: 'active' | 'next') =>
  (await db.select().from(keys).where(eq(keys.status, status)))[0]?.kid ?? ''
const settings = () => keySettingsOf(config, db, clock)

beforeAll(async () => {
  services = testServices()
  database = await testDatabase('token')
  config = loadTokenConfig({
    TOKEN__DATABASE__URL: database.url,
    TOKEN__SECRET__KEYS: JSON.stringify([randomBytes(32).toString('base64')]),
    TOKEN__KEYS__KEK: randomBytes(32).toString('base64'),
    TOKEN__KEYS__POLL_MS: '60000',
    AUTH__SERVICES__FILE: services.registry_file,
  })
  deps = await createDeps(config, { clock })
  app = buildApp(deps)
  rpcUrl = await app.internal.listen({ host: '127.0.0.1', port: 0 })
  client = createRpcClient(Token, { url: rpcUrl, signer: services.signer('session'), audience: 'token-internal' })
  ;({ db, close: closeDb } = createDb(database.url, { app: 'test' }))
})
afterAll(async () => {
  await app.app.close()
  await app.internal.close()
  await deps.close()
  await closeDb()
  await database.drop()
  services.remove()
})

it('a process that starts while another holds the lock of the keys comes up when it is free', async () => {
  const locked = Promise.withResolvers<void>()
  // Longer than a statement waits for a lock.
  const holding = db.transaction(async (tx) => {
    await lockKeys(tx)
    locked.resolve()
    await delay(3000)
  })
  await locked.promise
  const [second] = await Promise.all([createDeps(config, { clock }), holding])
  expect(second.keyring).toBeDefined()
  await second.close()
})

describe('the first start', () => {
  it('creates one active and one next key, however many processes start at once', async () => {
    await Promise.all(Array.from({ length: 5 }, () => tendKeys(settings())))
    expect(Object.values(await statuses()).sort()).toEqual(['active', 'next'])
    expect((await jwks()).keys.length).toBe(2)
  })
  it('stores no private key in the clear and nothing that opens under another key id', async () => {
    const rows = await db.select().from(keys)
    for (const row of rows) {
      expect(JSON.stringify(row.public_jwk)).not.toMatch(/"(d|p|q|dp|dq|qi)"/)
      expect(row.private_key?.includes(Buffer.from('308204', 'hex').subarray(0, 3))).toBe(false)
    }
    const { openPrivateKey } = await import('../../apps/token/seal.ts')
    const { keksOf } = await import('../../apps/shared/codec/kek.ts')
    const [a, b] = rows
    if (!a?.private_key || !b?.private_key) throw new Error('two keys expected')
    const keks = keksOf(config.TOKEN__KEYS__KEK, 'TOKEN__KEYS__KEK')
    expect(openPrivateKey(keks, { ...a, private_key: a.private_key }).asymmetricKeyType).toBe('rsa')
    expect(() => openPrivateKey(keks, { ...a, private_key: b.private_key as Buffer })).toThrow()
  })
})

describe('GET /jwks', () => {
  it('publishes public members only, with ETag, max-age and 304, at both paths', async () => {
    const reply = await app.app.inject('/jwks')
    expect(reply.headers['cache-control']).toBe('public, max-age=300')
    for (const key of reply.json().keys) expect(Object.keys(key)).toEqual(['kty', 'n', 'e', 'kid', 'alg', 'use'])
    const again = await app.app.inject({
      url: '/.well-known/jwks.json',
      headers: { 'if-none-match': String(reply.headers.etag) },
    })
    expect([again.statusCode, again.body]).toEqual([304, ''])
  })
})

describe('GenerateTokens', () => {
  it('signs what every verifier accepts, with exactly the claims of the specification and ours (ASVS 9.2.4)', async () => {
    const { accessToken, refreshToken, refreshJti, refreshIat, refreshKid } = await client.generateTokens(
      request({ mode: ResponseMode.COOKIE }),
    )
    const claims = await verifyAccess(accessToken)
    expect(claims).toMatchObject({
      sub: USER,
      username: 'eva',
      session_id: SESSION,
      type: 'access',
      cm: 'cookie',
      amr: ['pwd'],
      auth_time: seconds(),
    })
    expect(claims.exp - claims.iat).toBe(900)
    const parsed = await client.parseToken({ refreshToken })
    expect(parsed).toMatchObject({ sessionId: SESSION, userId: USER, jti: refreshJti, iat: refreshIat })
    expect(refreshKid).toBe(await kidOf('active'))
  })
  it('gives two different refresh tokens in one second, and the same bytes for a repeat (ASVS 7.2.2)', async () => {
    const first = await client.generateTokens(request())
    const second = await client.generateTokens(request())
    expect(second.refreshToken).not.toBe(first.refreshToken)
    const repeat = await client.generateTokens(
      request({ refreshJti: first.refreshJti, refreshIat: first.refreshIat, refreshKid: first.refreshKid }),
    )
    expect(repeat.refreshToken).toBe(first.refreshToken)
    expect(repeat.accessToken).not.toBe(first.accessToken)
  })
  it('gives only an access token on request', async () => {
    expect(await client.generateTokens(request({ accessOnly: true }))).toMatchObject({
      refreshToken: '',
      refreshJti: '',
      refreshIat: 0n,
    })
  })
  it.each<[string, object]>([
    ['a user id that is no UUID', { userId: 'eva' }],
    ['a mode that is not stated', { mode: ResponseMode.UNSPECIFIED }],
    ['an empty username', { username: '' }],
    ['half of a refresh token to repeat', { refreshJti: 'A'.repeat(22) }],
    ['a refresh token from the future', { refreshJti: 'A'.repeat(22), refreshIat: 4_000_000_000n, refreshKid: 'x' }],
  ])('refuses %s', async (_what, changes) => {
    const error = await client.generateTokens(request(changes)).catch((e: unknown) => e)
    expect([Code.InvalidArgument, Code.FailedPrecondition]).toContain((error as { code: Code }).code)
  })
})

describe('ParseToken', () => {
  it('refuses access tokens, expired ones and garbage as invalid_argument', async () => {
    const { accessToken, refreshToken } = await client.generateTokens(request())
    await expect(client.parseToken({ refreshToken: accessToken })).rejects.toMatchObject({ code: Code.InvalidArgument })
    await expect(client.parseToken({ refreshToken: `${refreshToken}=` })).rejects.toMatchObject({
      code: Code.InvalidArgument,
    })
    const before = now
    later(30 * DAY_S)
    await expect(client.parseToken({ refreshToken })).rejects.toMatchObject({ code: Code.InvalidArgument })
    now = before
  })
})

describe('the internal listener', () => {
  it('answers no one without a service token for it that holds the scope', async () => {
    const as = (name: string, audience: string) =>
      createRpcClient(Token, { url: rpcUrl, signer: services.signer(name), audience })
    await expect(as('session', 'identity-internal').generateTokens(request())).rejects.toMatchObject({
      code: Code.Unauthenticated,
    })
    await expect(as('gateway', 'token-internal').generateTokens(request())).rejects.toMatchObject({
      code: Code.Unauthenticated,
    })
    const { accessToken } = await client.generateTokens(request())
    const withUserToken = createRpcClient(Token, { url: rpcUrl, signer: () => accessToken, audience: 'token-internal' })
    await expect(withUserToken.generateTokens(request())).rejects.toMatchObject({ code: Code.Unauthenticated })
    await expect(client.parseToken({ refreshToken: 'x' }, { headers: { 'x-user-id': USER } })).rejects.toMatchObject({
      code: Code.InvalidArgument,
    })
  })
  it('reports whether it is ready', async () => {
    expect((await app.internal.inject('/health/ready')).json()).toMatchObject({ status: 'ready' })
  })
})

it('a copy of the keys never goes back to what was read earlier and answered later', async () => {
  const [row] = await db.select().from(keys)
  const [old, killed] = [
    { ...row, status: 'next' },
    { ...row, status: 'killed' },
  ]
  const answers = [() => delay(200).then(() => [old]), async () => [killed]]
  const stub = { select: () => ({ from: () => ({ orderBy: () => answers.shift()?.() }) }) }
  const keyring = createKeyring({ db: stub as never, keks: [] })
  await Promise.all([keyring.refresh(), keyring.refresh()])
  expect(keyring.verifying(row?.kid ?? '')).toBeUndefined()
})

describe('rotation', () => {
  it('switches to the published next key when due, and refuses no token that is valid', async () => {
    const before = await client.generateTokens(request())
    const [active, next] = [await kidOf('active'), await kidOf('next')]
    later(29 * DAY_S)
    await tendKeys(settings())
    expect(await kidOf('active')).toBe(active)
    later(DAY_S)
    const young = await client.generateTokens(request())
    await Promise.all([tendKeys(settings()), tendKeys(settings())])
    await deps.keyring.refresh()
    expect(await statuses()).toMatchObject({ [active]: 'retired', [next]: 'active' })
    await expect(verifyAccess(young.accessToken)).resolves.toBeDefined()
    await expect(client.parseToken({ refreshToken: young.refreshToken })).resolves.toMatchObject({ userId: USER })
    const after = await client.generateTokens(request())
    expect(after.refreshKid).toBe(next)
    const repeat = await client.generateTokens(
      request({ refreshJti: young.refreshJti, refreshIat: young.refreshIat, refreshKid: young.refreshKid }),
    )
    expect(repeat.refreshToken).toBe(young.refreshToken)
    expect(before.refreshKid).toBe(active)
    const [retired] = await db.select().from(keys).where(eq(keys.kid, active))
    expect(retired?.private_key).toBeNull()
  })
  it('does not use a key published for less than the lead time', async () => {
    const active = await kidOf('active')
    await db
      .update(keys)
      .set({ activated_at: new Date(now.getTime() - 40 * DAY_S * 1000).toISOString() })
      .where(eq(keys.kid, active))
    later(DAY_S - 60)
    await tendKeys(settings())
    expect(await kidOf('active')).toBe(active)
    later(60)
    await tendKeys(settings())
    expect(await kidOf('active')).not.toBe(active)
    await deps.keyring.refresh()
  })
  it('removes a retired key 30 days and an hour after its last signature', async () => {
    const retired = async () => Object.values(await statuses()).filter((status) => status === 'retired').length
    expect(await retired()).toBe(2)
    later(30 * DAY_S + 3599)
    await db.update(keys).set({ activated_at: now.toISOString() }).where(eq(keys.status, 'active'))
    await tendKeys(settings())
    expect(await retired()).toBe(1)
    later(1)
    await tendKeys(settings())
    expect(await retired()).toBe(0)
  })
  it('waits while verifiers take no more keys', async () => {
    const [active] = await db.select().from(keys).where(eq(keys.status, 'active'))
    if (!active) throw new Error('no key is active')
    const retired = { ...active, status: 'retired' as const, private_key: null, kek_id: null }
    const verify_until = new Date(now.getTime() + 60 * DAY_S * 1000).toISOString()
    await db
      .insert(keys)
      .values(Array.from({ length: MAX_KEYS - 2 }, (_, i) => ({ ...retired, kid: `old-${i}`, verify_until })))
    later(31 * DAY_S)
    await tendKeys(settings())
    expect(await kidOf('active')).toBe(active.kid)
    await db.delete(keys).where(eq(keys.status, 'retired'))
  })
})

describe('the key that seals signing keys', () => {
  it('seals anew, at the start, what an older one sealed, so that a leaked one opens no key', async () => {
    // No rotation of the signing keys is due.
    await db.update(keys).set({ activated_at: now.toISOString() }).where(eq(keys.status, 'active'))
    const old = config.TOKEN__KEYS__KEK
    const [fresh, first] = [randomBytes(32).toString('base64'), randomBytes(32).toString('base64')]
    const sealedBy = async () =>
      new Set((await db.select().from(keys)).filter(({ private_key }) => private_key).map(({ kek_id }) => kek_id))
    const start = async (...keks: string[]) =>
      (await createDeps({ ...config, TOKEN__KEYS__KEK: JSON.stringify(keks) }, { clock })).close()
    const before = await sealedBy()
    await start(fresh, first, old)
    expect([...(await sealedBy())].filter((id) => before.has(id))).toEqual([])
    await start(fresh)
    await start(old, fresh)
    expect(await sealedBy()).toEqual(before)
  })
  it('leaves what no key of the setting opens as it is, and names the missing key', async () => {
    const [row] = await db.select().from(keys).where(eq(keys.status, 'active'))
    const other = { ...config, TOKEN__KEYS__KEK: randomBytes(32).toString('base64') }
    await expect(createDeps(other, { clock })).rejects.toThrow(`the key ${row?.kek_id}, which no setting holds`)
    expect(await db.select().from(keys).where(eq(keys.status, 'active'))).toEqual([row])
  })
})

describe('kill-key', () => {
  it('ends the key and all its tokens; the next one takes over; verifiers are informed once', async () => {
    await deps.keyring.refresh()
    const victim = await kidOf('active')
    const heir = await kidOf('next')
    const { accessToken, refreshToken, refreshJti, refreshIat, refreshKid } = await client.generateTokens(request())
    expect(await Promise.all([killKey(settings(), victim), killKey(settings(), victim)])).toEqual(
      expect.arrayContaining(['killed', 'already_killed']),
    )
    await deps.keyring.refresh()
    expect((await jwks()).keys.map(({ kid }) => kid)).not.toContain(victim)
    await expect(verifyAccess(accessToken)).rejects.toMatchObject({ reason: 'unknown_key' })
    await expect(client.parseToken({ refreshToken })).rejects.toMatchObject({ code: Code.InvalidArgument })
    await expect(client.generateTokens(request({ refreshJti, refreshIat, refreshKid }))).rejects.toMatchObject({
      code: Code.FailedPrecondition,
    })
    expect((await client.generateTokens(request())).refreshKid).toBe(heir)
    const events = await db.select().from(outbox)
    expect(events.map(({ type, payload }) => [type, payload.kid])).toEqual([['auth.key.revoked.v1', victim]])
  })
  it('names the existing keys if it gets another', async () => {
    expect(await killKey(settings(), 'ghost')).toMatchObject({ known: expect.arrayContaining([await kidOf('active')]) })
  })
  it('leaves an audit row for every key change', async () => {
    const rows = await db
      .select({ action: key_events.action, n: sql<number>`count(*)::int` })
      .from(key_events)
      .groupBy(key_events.action)
    expect(Object.fromEntries(rows.map(({ action, n }) => [action, n]))).toEqual({
      'key.create_active': 1,
      'key.create_next': 4,
      'key.activate': 3,
      'key.retire': 2,
      'key.remove': 2,
      'key.kill': 1,
    })
  })
})

describe('the configuration', () => {
  it('names a wrong variable and never shows a key', () => {
    const env = {
      TOKEN__DATABASE__URL: database.url,
      TOKEN__SECRET__KEYS: JSON.stringify([randomBytes(32).toString('base64')]),
      TOKEN__KEYS__KEK: 'too-short-secret',
    }
    expect(() => loadTokenConfig(env)).toThrow(/TOKEN__KEYS__KEK/)
    expect(() => loadTokenConfig(env)).not.toThrow(/too-short-secret/)
    expect(() =>
      loadTokenConfig({ ...env, TOKEN__KEYS__KEK: randomBytes(32).toString('base64'), TOKEN__KEYS__RSA_BITS: '1024' }),
    ).toThrow('TOKEN__KEYS__RSA_BITS')
  })
})
