import { randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { loadCatalogConfig } from '../../apps/catalog/config.ts'
import { loadCredentialConfig } from '../../apps/credential/config.ts'
import { loadGatewayConfig } from '../../apps/gateway/config.ts'
import { loadIdentityConfig } from '../../apps/identity/config.ts'
import { loadOperationsConfig } from '../../apps/operations/config.ts'
import { loadRelayConfig } from '../../apps/relay/config.ts'
import { loadSessionConfig } from '../../apps/session/config.ts'
import { TOKEN_KINDS } from '../../apps/shared/jwt/claims.ts'
import { MAX_KEYS } from '../../apps/shared/jwt/jwks.ts'
import { loadTokenConfig } from '../../apps/token/config.ts'
import { loadWorkerConfig } from '../../apps/worker/config.ts'

const key = () => randomBytes(32).toString('base64')
const keys = () => JSON.stringify([key()])
const APPS = ['GATEWAY', 'SESSION', 'IDENTITY', 'CREDENTIAL', 'TOKEN', 'CATALOG', 'OPERATIONS', 'WORKER', 'RELAY']
const ORIGIN = 'https://signalbox.example'

/** An environment with which every app may start in production. */
const production = (): Record<string, string> => ({
  NODE_ENV: 'production',
  UV_THREADPOOL_SIZE: '14',
  ...Object.fromEntries(
    APPS.flatMap((app) => [
      [`${app}__DATABASE__URL`, 'postgres://app:secret@db/signalbox?sslmode=verify-full'],
      [`${app}__REDIS__URL`, 'rediss://app:secret@redis'],
      [`${app}__NATS__URL`, 'tls://app:secret@nats'],
      [`${app}__SECRET__KEYS`, keys()],
      [`${app}__SERVICE__KEY_FILE`, `/run/secrets/${app.toLowerCase()}.json`],
    ]),
  ),
  AUTH__SECRET__KEYS: keys(),
  AUTH__SERVICES__FILE: '/etc/signalbox/services.json',
  AUTH__TOKENS__ISSUER: ORIGIN,
  AUTH__JWKS__URL: 'https://token.internal/jwks',
  ...Object.fromEntries(
    ['SESSION', 'IDENTITY', 'CREDENTIAL', 'TOKEN'].map((app) => [
      `AUTH__RPC__${app}_URL`,
      `https://${app.toLowerCase()}.internal`,
    ]),
  ),
  GATEWAY__HTTP__PUBLIC_ORIGIN: ORIGIN,
  ...Object.fromEntries(
    ['SESSION', 'IDENTITY', 'TOKEN', 'CATALOG', 'OPERATIONS'].map((app) => [
      `GATEWAY__UPSTREAM__${app}_URL`,
      `https://${app.toLowerCase()}.internal`,
    ]),
  ),
  CREDENTIAL__ENROLMENT__KEY: key(),
  CREDENTIAL__FACTORS__KEK: key(),
  TOKEN__KEYS__KEK: key(),
  CATALOG__OPERATIONS__URL: 'https://operations.internal',
  OPERATIONS__CATALOG__URL: 'https://catalog.internal',
  OPERATIONS__EVIDENCE__KEY_FILE: '/run/secrets/evidence.json',
  WORKER__OPERATIONS__URL: 'https://operations.internal',
  WORKER__TEMPORAL__ADDRESS: 'tls://temporal:7233',
  RELAY__TEMPORAL__ADDRESS: 'tls://temporal:7233',
  RELAY__AUDIT__KEY_FILE: '/run/secrets/audit.json',
  RELAY__AUDIT__ANCHOR_FILE: '/var/lib/signalbox/audit-anchors.jsonl',
})
const LOADERS = {
  gateway: loadGatewayConfig,
  session: loadSessionConfig,
  identity: loadIdentityConfig,
  credential: loadCredentialConfig,
  token: loadTokenConfig,
  catalog: loadCatalogConfig,
  operations: loadOperationsConfig,
  worker: loadWorkerConfig,
  relay: loadRelayConfig,
}

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-production-'))
  mkdirSync(join(folder, 'keys'))
})
afterAll(() => rmSync(folder, { recursive: true }))

describe('the production profile', () => {
  it('starts with settings of its own (ASVS 7.1.1)', () => {
    for (const load of Object.values(LOADERS)) expect(() => load(production())).not.toThrow()
    expect(loadSessionConfig(production()).SESSION__IDLE__LIMIT_S).toBe(43_200)
    expect(loadSessionConfig({ ...production(), NODE_ENV: 'test' }).SESSION__IDLE__LIMIT_S).toBe(0)
  })

  it('reads each secret, and each URL with an account, from a file too', () => {
    let read = 0
    for (const [app, load] of Object.entries(LOADERS)) {
      const [wanted, env] = [load(production()), production()]
      // Each call of `production` makes new keys.
      for (const [name, value] of Object.entries(env)) {
        const file = join(folder, 'secret')
        writeFileSync(file, `${value}\n`)
        const { [name]: _, ...rest } = env
        const from = () => load({ ...rest, [`${name}_FILE`]: file }) as Record<string, unknown>
        if (
          !/__(SECRET__KEYS|KEK|ENROLMENT__KEY)$|^[A-Z]+__(DATABASE|REDIS|NATS)__URL$/.test(name) ||
          !(name in wanted)
        )
          continue
        expect([app, name, from()[name]]).toEqual([app, name, (load(env) as Record<string, unknown>)[name]])
        read += 1
        const both = () => load({ ...env, [`${name}_FILE`]: file })
        expect(both).toThrow(`${name} and ${name}_FILE are both set`)
        expect(() => load({ ...rest, [`${name}_FILE`]: `${file}.none` })).toThrow(`${name}_FILE names ${file}.none`)
        writeFileSync(file, 'hunter2')
        expect(from).toThrow(name)
        expect(from).not.toThrow('hunter2')
      }
    }
    expect(read).toBeGreaterThan(30)
  })

  it('sends mail only by TLS', () => {
    const mail = { ...production(), NOTIFY__SMTP__HOST: 'mail.example.org', NOTIFY__SMTP__TLS: 'none' }
    expect(() => loadOperationsConfig(mail)).toThrow('NOTIFY__SMTP__TLS is "none": production sends mail by TLS alone.')
    expect(() => loadOperationsConfig({ ...mail, NOTIFY__SMTP__TLS: 'implicit' })).not.toThrow()
    expect(() => loadOperationsConfig({ ...production(), NOTIFY__MAIL__DIR: '/tmp' })).toThrow(
      'NOTIFY__MAIL__DIR is set',
    )
    expect(() => loadOperationsConfig({ ...mail, NODE_ENV: 'test' })).not.toThrow()
  })

  it('has no default for required settings: it names the missing variable', () => {
    const believing = ['AUTH__TOKENS__ISSUER', 'AUTH__JWKS__URL', 'AUTH__SERVICES__FILE', 'AUTH__RPC__IDENTITY_URL']
    const needed: [keyof typeof LOADERS, string[]][] = [
      [
        'session',
        [
          'AUTH__TOKENS__ISSUER',
          'AUTH__JWKS__URL',
          'AUTH__SECRET__KEYS',
          'AUTH__SERVICES__FILE',
          'SESSION__SERVICE__KEY_FILE',
          'AUTH__RPC__IDENTITY_URL',
          'AUTH__RPC__CREDENTIAL_URL',
          'AUTH__RPC__TOKEN_URL',
          'GATEWAY__HTTP__PUBLIC_ORIGIN',
        ],
      ],
      ['identity', ['AUTH__TOKENS__ISSUER', 'AUTH__RPC__CREDENTIAL_URL', 'GATEWAY__HTTP__PUBLIC_ORIGIN']],
      ['credential', ['CREDENTIAL__ENROLMENT__KEY', 'CREDENTIAL__FACTORS__KEK', 'AUTH__SERVICES__FILE']],
      ['token', ['TOKEN__KEYS__KEK', 'AUTH__TOKENS__ISSUER']],
      [
        'relay',
        ['AUTH__RPC__SESSION_URL', 'RELAY__TEMPORAL__ADDRESS', 'RELAY__AUDIT__KEY_FILE', 'RELAY__AUDIT__ANCHOR_FILE'],
      ],
      [
        'gateway',
        ['GATEWAY__HTTP__PUBLIC_ORIGIN', 'AUTH__TOKENS__ISSUER', 'AUTH__JWKS__URL', 'GATEWAY__UPSTREAM__SESSION_URL'],
      ],
      ['catalog', [...believing, 'CATALOG__SERVICE__KEY_FILE', 'CATALOG__OPERATIONS__URL']],
      [
        'operations',
        [...believing, 'OPERATIONS__EVIDENCE__KEY_FILE', 'OPERATIONS__CATALOG__URL', 'AUTH__RPC__SESSION_URL'],
      ],
      ['worker', ['WORKER__SERVICE__KEY_FILE', 'WORKER__OPERATIONS__URL', 'WORKER__TEMPORAL__ADDRESS']],
    ]
    for (const [app, names] of needed) {
      for (const name of names) {
        const { [name]: _, ...env } = production()
        expect(() => LOADERS[app](env), `${app} without ${name}`).toThrow(`${name} is not set`)
      }
    }
  })

  it('names every fault of a start at once', () => {
    const { AUTH__JWKS__URL: _, AUTH__TOKENS__ISSUER: __, ...rest } = production()
    const env = { ...rest, CATALOG__HTTP__PORT: 'many' }
    for (const fault of ['3 settings', 'AUTH__JWKS__URL is not', 'AUTH__TOKENS__ISSUER is not', 'PORT is "many"'])
      expect(() => loadCatalogConfig(env)).toThrow(fault)
  })

  const db = 'postgres://u:hunter2@db/x'
  it.each([
    ['DATABASE__URL', db, 'sslmode=verify-full'],
    ['DATABASE__URL', `${db}?sslmode=require`, 'sslmode=verify-full'],
    ['DATABASE__URL', `${db}?sslmode=verify-ca`, 'sslmode=verify-full'],
    ['DATABASE__URL', `${db}?sslmode=verify-full&sslmode=disable`, 'sslmode=verify-full'],
    ['DATABASE__URL', `${db}?sslmode=verify-full&ssl=0`, 'sslmode=verify-full'],
    ['DATABASE__URL', 'postgres://db/x?sslmode=verify-full', 'names no account'],
    ['REDIS__URL', 'redis://u:hunter2@127.0.0.1:6379', 'write rediss://'],
    ['REDIS__URL', 'rediss://:hunter2@redis', 'names no account'],
    ['NATS__URL', 'nats://u:hunter2@nats:4222', 'write tls://'],
    ['NATS__URL', 'tls://nats:4222', 'names no account'],
    ['NATS__URL', 'tls://u:hunter2@n1:4222,tls://u:hunter2@n2:4222', 'one name that leads to each of them'],
    ['DATABASE__URL', 'postgres://u:hunter2@db1,db2/x?sslmode=verify-full', 'one name that leads to each of them'],
    ['TEMPORAL__ADDRESS', 'localhost:7233', 'write tls://'],
  ])('refuses a plain %s: %s', (setting, value, remedy) => {
    const load = (more: object = {}) => loadRelayConfig({ ...production(), [`RELAY__${setting}`]: value, ...more })
    expect(load).toThrow(new RegExp(`RELAY__${setting} .*${remedy.replace('?', '[?]')}`))
    expect(load).not.toThrow('hunter2')
    expect(() => load({ NODE_ENV: 'test' })).not.toThrow()
  })

  it('accepts a password with a comma', () => {
    const env = {
      ...production(),
      RELAY__DATABASE__URL: 'postgres://u:hun,ter2@db:5432/x?sslmode=verify-full',
      RELAY__REDIS__URL: 'rediss://u:a,b@redis:6379',
      RELAY__NATS__URL: 'tls://u:a,b@nats:4222',
    }
    expect(() => loadRelayConfig(env)).not.toThrow()
  })

  it('gives the relay no pooler, which would end its lock with a transaction', () => {
    const env = {
      ...production(),
      NODE_ENV: 'test',
      RELAY__DATABASE__URL: 'postgres://r:x@127.0.0.1/x?pooler=transaction',
    }
    expect(() => loadRelayConfig(env)).toThrow('RELAY__DATABASE__URL leads to a pooler')
  })

  it('accepts a key of NATS instead of a password', () => {
    const env = { ...production(), RELAY__NATS__URL: 'tls://nats', SIGNALBOX__NATS__NKEY_FILE: '/run/secrets/nats.nk' }
    expect(() => loadRelayConfig(env)).not.toThrow()
  })

  it('refuses development secrets and placeholders, and never prints them', () => {
    const development = key()
    writeFileSync(join(folder, 'keys/secrets.json'), JSON.stringify({ auth: development, token_kek: development }))
    const zero = Buffer.alloc(32).toString('base64')
    const cases: [keyof typeof LOADERS, string, string][] = [
      ['session', 'AUTH__SECRET__KEYS', JSON.stringify([key(), development])],
      ['session', 'SESSION__SECRET__KEYS', JSON.stringify([zero])],
      ['token', 'TOKEN__KEYS__KEK', development],
      ['token', 'TOKEN__KEYS__KEK', zero],
      ['credential', 'CREDENTIAL__ENROLMENT__KEY', development],
      ['identity', 'IDENTITY__SERVICE__KEY_FILE', '/srv/.signalbox/keys/identity.json'],
      ['credential', 'AUTH__SERVICES__FILE', '.signalbox/keys/services.json'],
      ['identity', 'GATEWAY__HTTP__PUBLIC_ORIGIN', 'http://signalbox.example'],
      ['gateway', 'GATEWAY__HTTP__PUBLIC_ORIGIN', 'http://signalbox.example'],
      ['operations', 'OPERATIONS__EVIDENCE__KEY_FILE', '.signalbox/keys/evidence.json'],
    ]
    for (const [app, name, value] of cases) {
      const start = () => LOADERS[app]({ ...production(), SIGNALBOX_DIR: folder, [name]: value })
      expect(start, name).toThrow(name)
      try {
        start()
      } catch (error) {
        expect((error as Error).message).not.toContain(development)
        expect((error as Error).message).not.toContain(zero)
      }
    }
  })

  it('refuses weak cookies, weak hashes, and a next key that verifiers may not know yet', () => {
    const cases: [keyof typeof LOADERS, string, string][] = [
      ['session', 'TOKEN__TOKENS__COOKIE_SECURE', 'false'],
      ['session', 'TOKEN__TOKENS__COOKIE_HTTPONLY', 'false'],
      ['session', 'TOKEN__TOKENS__COOKIE_SAMESITE', 'none'],
      ['session', 'SESSION__IDLE__LIMIT_S', '899'],
      ['credential', 'CREDENTIAL__HASH__MEMORY_KIB', '65535'],
      ['credential', 'CREDENTIAL__HASH__TIME', '2'],
      ['credential', 'CREDENTIAL__HASH__PARALLELISM', '3'],
      ['credential', 'CREDENTIAL__HASH__CONCURRENCY', '11'],
      ['credential', 'UV_THREADPOOL_SIZE', '13'],
      ['token', 'TOKEN__KEYS__PUBLISH_LEAD_S', '389'],
      ['token', 'TOKEN__KEYS__RSA_BITS', '1024'],
    ]
    for (const [app, name, value] of cases)
      expect(() => LOADERS[app]({ ...production(), [name]: value }), name).toThrow(name)
  })

  it('refuses to rotate keys so often that more are published than a verifier takes', () => {
    const verified_s = TOKEN_KINDS.refresh.lifetime_s + 3600
    const least = Math.ceil(verified_s / (MAX_KEYS - 2))
    const load = (rotate_s: number, lead_s: number) =>
      loadTokenConfig({
        ...production(),
        TOKEN__KEYS__ROTATE_EVERY_S: String(rotate_s),
        TOKEN__KEYS__PUBLISH_LEAD_S: String(lead_s),
      }).TOKEN__KEYS__ROTATE_EVERY_S
    expect(2 + Math.ceil(verified_s / least)).toBeLessThanOrEqual(MAX_KEYS)
    expect(() => load(least - 1, 400)).toThrow(
      `TOKEN__KEYS__ROTATE_EVERY_S is ${least - 1}: production needs at least ${least}`,
    )
    expect(load(least, 400)).toBe(least)
    // The lead delays each rotation.
    expect(load(60, least)).toBe(60)
    const jwk = { kty: 'RSA', n: 'n'.repeat(512), e: 'AQAB', kid: 'k'.repeat(43), alg: 'RS256', use: 'sig' }
    expect(JSON.stringify({ keys: Array(MAX_KEYS).fill(jwk) }).length).toBeLessThan(65_536)
  })
})
