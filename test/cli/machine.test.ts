import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { run } from '../../apps/cli/run.ts'
import { users } from '../../db/identity/tables.ts'
import { type Auth, PASSWORD, startAuth } from '../session/support/auth.ts'
import { until } from '../support/until.ts'

let auth: Auth
let relay: Awaited<ReturnType<Auth['addRelay']>>
let url: string
const home = mkdtempSync(join(tmpdir(), 'signalbox-cli-'))
const out: string[] = []

const signalbox = async (who: string, words: string[], env: Record<string, string> = {}) => {
  out.length = 0
  const code = await run(words, { XDG_CONFIG_HOME: join(home, who), SIGNALBOX_URL: url, ...env })
  return { code, out: out.join('') }
}

const signIn = async (who: string) => {
  const { createApi } = await import('../../apps/cli/session/api.ts')
  const { createCredentials } = await import('../../apps/cli/session/credentials.ts')
  const credentials = createCredentials({ XDG_CONFIG_HOME: join(home, who) })
  await createApi({ url, credentials, token: undefined, idempotency_key: undefined }).login(who, PASSWORD)
}

beforeAll(async () => {
  for (const stream of [process.stdout, process.stderr])
    vi.spyOn(stream, 'write').mockImplementation((text) => out.push(String(text)) > 0)
  auth = await startAuth({ AUTH__MACHINES__ISSUERS: '["https://ci.example.com"]' })
  relay = await auth.addRelay()
  url = (await auth.addGateway()).url
  await auth.addUser('ada', ['admin'])
  await auth.addUser('olga')
  await signIn('ada')
})
afterAll(async () => {
  vi.restoreAllMocks()
  await auth?.stop()
  rmSync(home, { recursive: true, force: true })
})

it('makes a machine, which signs in by its key, rotates it and is locked out', async () => {
  expect(await signalbox('ada', ['machine', 'create', 'ci', '--owner', 'olga'])).toMatchObject({ code: 0 })
  expect(await signalbox('ada', ['user', 'grant', 'machine:ci', 'auditor'])).toMatchObject({ code: 0 })
  const add = ['machine', 'key', 'add', 'ci', '--permissions', 'identity:read', '--days', '30']
  const added = await signalbox('ada', add)
  const key = /sbk_\S+/.exec(added.out)?.[0] ?? ''
  expect([added.code, key]).toEqual([0, expect.stringMatching(/^sbk_/)])

  const asKey = { SIGNALBOX_TOKEN: key }
  const read = ['api', 'GET', '/v1/users/me']
  expect((await signalbox('none', read, asKey)).out).toContain('machine:ci')

  // What SIGNALBOX_TOKEN holds is not the sign-in in the file, which may be another person's.
  await signIn('olga')
  expect(await signalbox('olga', ['logout'], asKey)).toMatchObject({
    code: 2,
    out: expect.stringContaining('SIGNALBOX_TOKEN'),
  })
  expect((await signalbox('olga', read)).out).toContain('olga')

  const file = join(home, 'key.txt')
  writeFileSync(file, `${key}\n`)
  const signed = await signalbox('bot', ['login', '--machine', file])
  expect(signed).toMatchObject({ code: 0, out: expect.stringContaining('as machine:ci') })
  expect((await signalbox('bot', read)).out).toContain('machine:ci')
  // The key replaces an expired access token.
  const kept = join(home, 'bot/signalbox/credentials.json')
  writeFileSync(kept, readFileSync(kept, 'utf8').replace(/"expires_at": \d+/, '"expires_at": 0'), { mode: 0o600 })
  expect((await signalbox('bot', read)).out).toContain('machine:ci')

  expect((await signalbox('ada', ['machine', 'list'])).out).toMatch(/machine:ci.*auditor.*olga/)
  const id = JSON.parse((await signalbox('ada', ['machine', 'list', '-o', 'json'])).out)[0].credentials[0].id
  const rotated = await signalbox('ada', ['machine', 'key', 'rotate', 'ci', id.slice(-6), '--overlap', '60'])
  const next = /sbk_\S+/.exec(rotated.out)?.[0] ?? ''
  expect((await signalbox('none', read, { SIGNALBOX_TOKEN: next })).code).toBe(0)
  expect((await signalbox('none', read, asKey)).code).toBe(0)
  expect((await signalbox('ada', ['machine', 'key', 'revoke', 'ci', id.slice(-6), '--yes'])).code).toBe(0)
  expect((await signalbox('none', read, asKey)).code).toBe(9)
  const leaked = ['machine', 'disable', 'ci', '--reason', 'leaked', '--yes']
  expect((await signalbox('ada', leaked)).code).toBe(0)
  expect((await signalbox('none', read, { SIGNALBOX_TOKEN: next })).code).toBe(9)
  expect((await signalbox('bot', ['logout'])).code).toBe(0)
})

it('tells the owner of a machine, and an administrator, why it got no token', async () => {
  expect(await signalbox('ada', ['machine', 'create', 'cut', '--owner', 'olga'])).toMatchObject({ code: 0 })
  const added = await signalbox('ada', ['machine', 'key', 'add', 'cut', '--permissions', 'operation:read'])
  const cut = (/sbk_\S+/.exec(added.out)?.[0] ?? '').slice(0, -1)
  expect((await signalbox('none', ['api', 'GET', '/v1/users/me'], { SIGNALBOX_TOKEN: cut })).code).toBe(9)
  await signIn('olga')
  const refusals = (who: string) => signalbox(who, ['machine', 'refusals', 'cut'])
  await until(async () => /malformed +It is not a key/.test((await refusals('olga')).out))
  expect((await refusals('ada')).out).toBe((await refusals('olga')).out)
  expect((await signalbox('olga', ['machine', 'list', '--mine'])).out).toContain('machine:cut')
  expect((await signalbox('olga', ['machine', 'refusals', 'ci-not-mine'])).code).not.toBe(0)
})

it('tells how to replace a key that only the first answer showed', async () => {
  expect(await signalbox('ada', ['machine', 'create', 'lost', '--owner', 'olga'])).toMatchObject({ code: 0 })
  const add = ['machine', 'key', 'add', 'lost', '--permissions', 'operation:read', '--idempotency-key', 'lost-key-1']
  expect(await signalbox('ada', add)).toMatchObject({ code: 0, out: expect.stringContaining('shown once: sbk_') })
  const again = await signalbox('ada', add)
  expect(again).toMatchObject({ code: 0, out: expect.not.stringContaining('sbk_') })
  const remedy = /signalbox (machine key rotate lost \w{6})\n/.exec(again.out)?.[1]?.split(' ') ?? []
  expect(await signalbox('ada', remedy)).toMatchObject({ code: 0, out: expect.stringContaining('shown once: sbk_') })
})

it('gives a machine another owner', async () => {
  await auth.addUser('eva')
  const owner = (...words: string[]) => signalbox('ada', ['machine', 'owner', ...words])
  expect(await signalbox('ada', ['machine', 'create', 'shared', '--owner', 'olga'])).toMatchObject({ code: 0 })
  expect(await owner('add', 'shared', 'eva')).toMatchObject({
    code: 0,
    out: expect.stringContaining('eva now answers for machine:shared.'),
  })
  const listed = JSON.parse((await signalbox('ada', ['machine', 'list', '-o', 'json'])).out)
  const machine = listed.find(({ username }: { username: string }) => username === 'machine:shared')
  expect(machine.owners.map(({ username }: { username: string }) => username).sort()).toEqual(['eva', 'olga'])
  expect(await owner('drop', 'shared', 'eva')).toMatchObject({ code: 2 })
  expect(await signalbox('ada', ['machine', 'key', 'revoke', 'shared', 'zzzzzz'])).toMatchObject({
    code: 1,
    out: expect.stringContaining('machine:shared has no credential "zzzzzz". See: signalbox machine list'),
  })
})

it('lets a machine prove itself by its own key or by tokens of a CI system', async () => {
  const issuer = 'https://ci.example.com'
  expect(await signalbox('ada', ['machine', 'create', 'builder', '--owner', 'olga'])).toMatchObject({ code: 0 })
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  const named = (jwk: object) => JSON.stringify({ ...jwk, kid: 'builder-1', alg: 'EdDSA' })
  writeFileSync(join(home, 'public.json'), named(publicKey.export({ format: 'jwk' })))
  writeFileSync(join(home, 'private.json'), named(privateKey.export({ format: 'jwk' })))
  const add = (file: string, ...more: string[]) =>
    signalbox('ada', [
      ...['machine', 'key', 'add', 'builder', '--permissions', 'operation:read', '--jwk', join(home, file)],
      ...['--name', 'signer', '--scope', 'region_id=eu1,type_key=fleet.host', ...more],
    ])
  expect(await add('private.json')).toMatchObject({ code: 2, out: expect.stringContaining('private half') })
  expect(await add('public.json', '--scope', 'eu1')).toMatchObject({ code: 2, out: expect.stringContaining('--scope') })
  expect(await add('public.json')).toMatchObject({
    code: 0,
    out: expect.stringContaining('A new jwk of machine:builder'),
  })

  const trust = join(home, 'trust.yaml')
  writeFileSync(
    trust,
    `{ name: CI, permissions: [operation:read], trust: { issuer: ${issuer}, audience: signalbox, claims: { sub: builder } } }`,
  )
  const trusting = ['machine', 'trust', 'add', 'builder', '-f', trust]
  expect(await signalbox('ada', [...trusting, '--days', '30'])).toMatchObject({
    code: 0,
    out: expect.stringContaining('A new trust of machine:builder'),
  })
  const listed = JSON.parse((await signalbox('ada', ['machine', 'list', '-o', 'json'])).out)
  const { credentials } = listed.find(({ username }: { username: string }) => username === 'machine:builder')
  expect(credentials).toMatchObject([
    { kind: 'jwk', name: 'signer', jwk: { kid: 'builder-1' }, scope: { region_id: 'eu1', type_key: 'fleet.host' } },
    { kind: 'trust', name: 'CI', trust: { issuer, claims: { sub: 'builder' } } },
  ])
  expect(Date.parse(credentials[1].expires_at) - Date.now()).toBeLessThan(31 * 86_400_000)
  expect((await signalbox('ada', ['machine', 'trust', 'drop', 'builder', '-f', trust])).code).toBe(2)
  // The shortest key that was asked for is none, not the default.
  expect((await signalbox('ada', [...trusting, '--days', '0'])).code).not.toBe(0)
  expect((await add('public.json', '--days', '0')).code).not.toBe(0)
})

it('says that tokens are still being ended while the relay is away', async () => {
  expect(await signalbox('ada', ['machine', 'create', 'late', '--owner', 'olga'])).toMatchObject({ code: 0 })
  await signalbox('ada', ['machine', 'key', 'add', 'late', '--permissions', 'identity:read'])
  const listed = JSON.parse((await signalbox('ada', ['machine', 'list', '-o', 'json'])).out)
  const { credentials } = listed.find(({ username }: { username: string }) => username === 'machine:late')
  await relay.stop()
  expect(await signalbox('ada', ['machine', 'key', 'revoke', 'late', credentials[0].id, '--yes'])).toMatchObject({
    code: 0,
    out: expect.stringContaining('Revoked. Its sessions and tokens are still being ended.'),
  })
})

it('asks for a token again after an exchange that failed, however long the process lives', async () => {
  let asked = 0
  const server = createServer((req, res) => {
    const answer = (status: number, body: object) =>
      res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    if (req.url !== '/oauth/token') return answer(req.headers.authorization === 'Bearer second' ? 200 : 401, {})
    asked += 1
    if (asked === 1) return answer(200, { access_token: 'first' })
    return asked === 2 ? answer(503, {}) : answer(200, { access_token: 'second' })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { createApi } = await import('../../apps/cli/session/api.ts')
  const { createCredentials } = await import('../../apps/cli/session/credentials.ts')
  const api = createApi({
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    credentials: createCredentials({ XDG_CONFIG_HOME: join(home, 'none') }),
    ...{ token: `sbk_${'x'.repeat(40)}`, idempotency_key: undefined, repeats: 0 },
  })
  try {
    // The first token is refused, and the exchange for the next one fails.
    await expect(api.get('/v1/users/me')).rejects.toThrow()
    expect(await api.get('/v1/users/me')).toEqual({})
    expect(asked).toBe(3)
  } finally {
    server.close()
  }
})

it('shows a second administrator all of a change, and who requested it, before the decision', async () => {
  await auth.addUser('root', ['admin'])
  await signIn('root')
  // No administrator saw the links of these two: they check each other.
  await auth.identity_deps.db.update(users).set({ link_shown: false })
  const trust = join(home, 'foreign.yaml')
  writeFileSync(
    trust,
    '{ name: CI, permissions: [operation:read], networks: [203.0.113.0/24], trust: { issuer: https://ci.example.com, audience: box, claims: { sub: "stran\\u200bger" } } }',
  )
  expect(
    await signalbox('ada', ['machine', 'trust', 'add', 'builder', '-f', trust, '--days', '7', '-o', 'id']),
  ).toEqual({ code: 0, out: expect.stringMatching(/[0-9a-f-]{36}/) })
  const id = /[0-9a-f-]{36}/.exec(out.join(''))?.[0] ?? ''
  const facts = [
    'kind: trust',
    'name: CI',
    'permissions: operation:read',
    'scope: no limit',
    'networks: 203.0.113.0/24',
    'expires_in_days: 7',
    'issuer: https://ci.example.com',
    'audience: box',
    'claims sub: stran\\u{200b}ger',
  ]
  const { out: listed } = await signalbox('root', ['user', 'changes'])
  for (const fact of [...facts, 'ada']) expect(listed).toContain(fact)
  const confirmed = await signalbox('root', ['user', 'confirm', id, '--yes'])
  expect(confirmed.code, confirmed.out).toBe(0)
  const [before = ''] = confirmed.out.split('Confirmed:')
  for (const fact of [...facts, 'ada requested: new credential (trust) for machine:builder'])
    expect(before).toContain(fact)
})
