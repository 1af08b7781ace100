import { readdirSync, readFileSync } from 'node:fs'
import type { DescMessage } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { loadGatewayConfig } from '../../apps/gateway/config.ts'
import { createCors } from '../../apps/gateway/edge/headers.ts'
import { ROUTES } from '../../apps/gateway/routes/table.ts'
import { createCookies } from '../../apps/session/browser/cookies.ts'
import { loadSessionConfig } from '../../apps/session/config.ts'
import * as contracts from '../../apps/shared/contracts/gen/auth_pb.ts'
import { TOKEN_KINDS } from '../../apps/shared/jwt/claims.ts'
import { createOrigins } from '../../apps/shared/web/origins.ts'

/**
 * The rows of the specification that are only a name or a number, one by one; their behavior is tested where it is
 * implemented.
 */
const secret = JSON.stringify([Buffer.alloc(32, 7).toString('base64')])
const session = (env: Record<string, string> = {}) =>
  loadSessionConfig({
    SESSION__DATABASE__URL: 'postgres://db/x',
    SESSION__REDIS__URL: 'redis://redis',
    SESSION__SECRET__KEYS: secret,
    AUTH__SECRET__KEYS: secret,
    ...env,
  })
const gateway = (env: Record<string, string> = {}) =>
  loadGatewayConfig({
    GATEWAY__REDIS__URL: 'redis://redis',
    GATEWAY__NATS__URL: 'nats://nats',
    AUTH__SECRET__KEYS: secret,
    ...env,
  })

it('takes no secret from a predictable generator (ASVS 6.5.3)', () => {
  const apps = ['session', 'identity', 'credential', 'token'].map((app) => `apps/${app}`)
  const files = [...apps, 'apps/shared/web', 'apps/shared/jwt', 'apps/shared/data'].flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' }).flatMap((file) =>
      file.endsWith('.ts') ? [`${folder}/${file}`] : [],
    ),
  )
  expect(files.length).toBeGreaterThan(100)
  for (const file of files) expect([file, /Math\.random/.test(readFileSync(file, 'utf8'))]).toEqual([file, false])
})

it('has for each line of the ASVS a test that carries its id, or a reason why the line does not apply', () => {
  const lines = readFileSync('apps/session/asvs.md', 'utf8').matchAll(/^\| ([\d.]+) +\|.*\| (.+?) +\|$/gm)
  const proofs = new Map([...lines].map(({ 1: id = '', 2: proof = '' }) => [id, proof]))
  expect(proofs.size).toBe(89)
  const cited = [...proofs].flatMap(([id, proof]) =>
    [...proof.matchAll(/`(test\/[^`]+)`/g)].map(([, file]) => `${id} ${file}`),
  )
  const without = [...proofs.keys()].filter((id) => !cited.some((one) => one.startsWith(`${id} `)))
  expect(without.filter((id) => !proofs.get(id)?.startsWith('does not apply'))).toEqual([])
  const files = readdirSync('test', { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'))
  const carried = files.flatMap((file) =>
    [...readFileSync(`test/${file}`, 'utf8').matchAll(/\(ASVS ([\d., ]+)\)['"]/g)].flatMap(([, ids = '']) =>
      ids.split(', ').map((id) => `${id} test/${file}`),
    ),
  )
  expect([...new Set(carried)].sort()).toEqual([...new Set(cited)].sort())
})

describe('the messages of the specification', () => {
  const numbersOf = (message: DescMessage) =>
    Object.fromEntries(message.fields.map(({ name, number }) => [name, number]))

  it('keep their field numbers', () => {
    expect(numbersOf(contracts.UserSchema)).toEqual({
      id: 1,
      username: 2,
      status: 3,
      created_at: 4,
      disabled_at: 6,
      // Our own codes, after those of the specification.
      kind: 7,
    })
    expect(numbersOf(contracts.VerifyPasswordRequestSchema)).toMatchObject({ user_id: 1, password: 2 })
    expect(numbersOf(contracts.VerifyPasswordResponseSchema)).toMatchObject({ is_valid: 1 })
    expect(contracts.UserStatus).toMatchObject({ ACTIVE: 1, DISABLED: 2, DELETED: 3 })
    expect(contracts.UserStatusSchema.values.map(({ name, number }) => [number, name]).slice(1)).toEqual([
      [1, 'USER_STATUS_ACTIVE'],
      [2, 'USER_STATUS_DISABLED'],
      [3, 'USER_STATUS_DELETED'],
    ])
  })

  it('belong to operations with these names, each of them served', () => {
    const named = (service: { methods: readonly { name: string }[] }) => service.methods.map(({ name }) => name)
    expect(named(contracts.Identity)).toEqual(expect.arrayContaining(['GetUserByUsername', 'GetUser']))
    expect(named(contracts.Credential)).toEqual(
      expect.arrayContaining(['VerifyPassword', 'SetPassword', 'ChangePassword']),
    )
    expect(named(contracts.Session)).toEqual(
      expect.arrayContaining(['CreateSession', 'RefreshTokens', 'RevokeSession']),
    )
    expect(named(contracts.Token)).toEqual(expect.arrayContaining(['GenerateTokens', 'ParseToken']))
  })
})

describe('the paths of the specification', () => {
  it('are rows of the gateway, with these methods', () => {
    const rows = ROUTES.map(({ method, path }) => `${method} ${path}`)
    expect(rows).toEqual(
      expect.arrayContaining(['POST /auth/login', 'POST /auth/refresh', 'POST /auth/logout', 'POST /v1/token']),
    )
  })

  it('are not the only ways in: the design names each route that is open without a token (ASVS 6.1.3, 6.3.4)', () => {
    const documents = ['apps/session/auth.md', 'apps/identity/federation.md'].map((path) => readFileSync(path, 'utf8'))
    const open = ROUTES.filter(({ permission, upstream }) => permission === 'none' && /session|identity/.test(upstream))
    expect(open.length).toBeGreaterThan(10)
    for (const { path } of open) expect([path, documents.some((text) => text.includes(path))]).toEqual([path, true])
  })
})

describe('the numbers of the specification', () => {
  it('are the lives of tokens and the cache of keys', () => {
    expect(TOKEN_KINDS.access).toMatchObject({ alg: 'RS256', lifetime_s: 900 })
    expect(TOKEN_KINDS.refresh).toMatchObject({ alg: 'RS256', lifetime_s: 2_592_000 })
    expect(gateway().AUTH__JWKS__CACHE_S).toBe(300)
  })
})

describe('the limits of the design', () => {
  it('are the defaults of the gateway (ASVS 6.1.1)', () => {
    const minute = (count: number, burst: number) => ({ count, seconds: 60, burst })
    expect(gateway().limits).toEqual({
      login_ip: minute(10, 20),
      login_name: minute(10, 10),
      login_device: minute(10, 10),
      refresh: { count: 150, seconds: 300, burst: 30 },
      page: { count: 600, seconds: 300, burst: 120 },
      sso: { count: 600, seconds: 300, burst: 120 },
      api: minute(600, 100),
      machine: minute(1200, 200),
      failed_tokens: minute(60, 60),
      jwks: minute(60, 60),
      enrol: minute(10, 10),
      device: minute(10, 20),
      work: minute(6000, 600),
      logout: minute(12000, 3000),
    })
  })
})

describe('the settings of the specification', () => {
  it('have its defaults', () => {
    for (const config of [session(), gateway()]) {
      expect(config).toMatchObject({ TOKEN__CORS__ENABLED: true, TOKEN__CORS__ALLOW_ORIGINS: [] })
    }
    expect(gateway().TOKEN__CORS__ALLOW_CREDENTIALS).toBe(true)
  })

  it('make the refresh cookie, attribute by attribute', () => {
    expect(createCookies(session()).refresh('t')).toBe(
      'refresh_token=t; Max-Age=2592000; Path=/v1/token; HttpOnly; Secure; SameSite=Strict',
    )
    const other = createCookies(
      session({
        TOKEN__TOKENS__COOKIE_NAME: 'rt',
        TOKEN__TOKENS__COOKIE_PATH: '/v1',
        TOKEN__TOKENS__COOKIE_DOMAIN: 'example.org',
        TOKEN__TOKENS__COOKIE_SECURE: 'false',
        TOKEN__TOKENS__COOKIE_HTTPONLY: 'false',
        TOKEN__TOKENS__COOKIE_SAMESITE: 'lax',
      }),
    )
    expect(other.refresh('t')).toBe('rt=t; Max-Age=2592000; Domain=example.org; Path=/v1; SameSite=Lax')
    expect(other.expired()).toBe('rt=; Max-Age=0; Domain=example.org; Path=/v1; SameSite=Lax')
    expect(other.readRefresh('refresh_token=a; rt=b')).toBe('b')
  })

  it('decide which other origins may read answers', () => {
    const web = 'https://app.example.org'
    const corsFor = (env: Record<string, string>) => {
      const config = gateway({ TOKEN__CORS__ALLOW_ORIGINS: JSON.stringify([web]), ...env })
      const origins = createOrigins('https://here.example.org', config.TOKEN__CORS__ALLOW_ORIGINS)
      const flags = { enabled: config.TOKEN__CORS__ENABLED, credentials: config.TOKEN__CORS__ALLOW_CREDENTIALS }
      return createCors(origins, flags)
    }
    const allowed = corsFor({}).preflight(web)
    for (const part of [web, 'access-control-allow-credentials']) expect(allowed).toContain(part)
    expect(allowed[allowed.indexOf('access-control-allow-methods') + 1]).toContain('POST')
    expect(allowed[allowed.indexOf('access-control-expose-headers') + 1]).toContain('X-CSRF-Token')
    expect(corsFor({}).preflight('https://evil.example.org')).toEqual(['vary', 'Origin'])
    expect(corsFor({ TOKEN__CORS__ENABLED: 'false' }).preflight(web)).toEqual(['vary', 'Origin'])
    expect(corsFor({ TOKEN__CORS__ALLOW_CREDENTIALS: 'false' }).answer(web)).not.toContain(
      'access-control-allow-credentials',
    )
    for (const wrong of ['["*"]', '["null"]', '["https://*.example.org"]', '["https://app.example.org/"]']) {
      const list = gateway({ TOKEN__CORS__ALLOW_ORIGINS: wrong }).TOKEN__CORS__ALLOW_ORIGINS
      expect(() => createOrigins('https://here.example.org', list), wrong).toThrow()
    }
  })
})
