import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  createServiceKey,
  type RegistryEntry,
  registryEntryOf,
  type ServiceJwk,
  thumbprintOf,
} from '../../apps/shared/service/keys.ts'
import {
  createServiceSigner,
  loadRegistry,
  type Registry,
  verifyServiceToken,
} from '../../apps/shared/service/tokens.ts'
import { until } from '../support/until.ts'

const session = createServiceKey()
const relay = createServiceKey()
let folder: string
let file: string
let registry: Registry

const write = (entries: Record<string, RegistryEntry>) => writeFileSync(file, JSON.stringify(entries))
const keyFile = (name: string, key: ReturnType<typeof createServiceKey>) => {
  const path = join(folder, `${name}.json`)
  writeFileSync(path, JSON.stringify(key.private_jwk))
  return path
}
const all = () => ({
  session: registryEntryOf('session', [session.public_jwk]),
  relay: registryEntryOf('relay', [relay.public_jwk]),
})

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-'))
  file = join(folder, 'services.json')
  write(all())
  registry = loadRegistry(file, { every_ms: 20 })
})
afterEach(() => {
  registry.close()
  rmSync(folder, { recursive: true })
})

describe('a service token', () => {
  it('carries the scopes of the target and is accepted there', () => {
    const sign = createServiceSigner({ name: 'session', key_file: keyFile('session', session) })
    const caller = verifyServiceToken(registry, 'credential-internal', sign('credential-internal'))
    expect(caller.name).toBe('session')
    const scopes = ['password:change', 'password:verify', 'totp:remove', 'totp:verify', 'totp:write']
    expect([...caller.scopes].sort()).toEqual(scopes)
  })
  it('is signed again at 60 % of its life', () => {
    let now = Date.now()
    const sign = createServiceSigner({
      name: 'session',
      key_file: keyFile('session', session),
      clock: { now: () => new Date(now) },
    })
    const first = sign('token-internal')
    now += 179_000
    expect(sign('token-internal')).toBe(first)
    now += 2_000
    expect(sign('token-internal')).not.toBe(first)
  })
  it('is refused with 401 at another audience, at an unregistered one, and from an unknown key', () => {
    const sign = createServiceSigner({ name: 'session', key_file: keyFile('session', session) })
    expect(() => verifyServiceToken(registry, 'identity-internal', sign('token-internal'))).toThrow(
      expect.objectContaining({ status: 401 }),
    )
    expect(() => verifyServiceToken(registry, 'catalog-internal', sign('catalog-internal'))).toThrow(
      expect.objectContaining({ status: 401 }),
    )
    const stranger = createServiceSigner({ name: 'session', key_file: keyFile('stranger', createServiceKey()) })
    expect(() => verifyServiceToken(registry, 'token-internal', stranger('token-internal'))).toThrow(
      expect.objectContaining({ status: 401, code: 'invalid_token' }),
    )
  })
  it('is refused with 403 with a scope that is not registered for its caller', () => {
    const sign = createServiceSigner({
      name: 'session',
      key_file: keyFile('session', session),
      scopes: ['password:set'],
    })
    expect(() => verifyServiceToken(registry, 'credential-internal', sign('credential-internal'))).toThrow(
      expect.objectContaining({ status: 403, code: 'permission_missing' }),
    )
  })
  it('that was verified before remains bound to its audience, its time and its key', async () => {
    const sign = createServiceSigner({ name: 'session', key_file: keyFile('session', session) })
    const token = sign('token-internal')
    const verify =
      (audience: string, now = new Date()) =>
      () =>
        verifyServiceToken(registry, audience, token, { now })
    for (let i = 0; i < 2; i++) expect(verify('token-internal')()).toMatchObject({ name: 'session' })
    expect(verify('identity-internal')).toThrow(expect.objectContaining({ status: 401 }))
    expect(verify('token-internal', new Date(Date.now() + 300_000))).toThrow(expect.objectContaining({ status: 401 }))
    expect(verify('token-internal', new Date(Date.now() - 60_000))).toThrow(expect.objectContaining({ status: 401 }))
    write({ relay: all().relay })
    await registry.reload()
    expect(verify('token-internal')).toThrow(expect.objectContaining({ status: 401 }))
    write(all())
    await registry.reload()
  })
  it('of one app is not accepted from another', () => {
    const sign = createServiceSigner({ name: 'session', key_file: keyFile('relay', relay) })
    expect(() => verifyServiceToken(registry, 'token-internal', sign('token-internal'))).toThrow(
      expect.objectContaining({ status: 401 }),
    )
  })
})

describe('the registry', () => {
  it('applies a changed file, and keeps its contents if the change is invalid', async () => {
    const fresh = createServiceKey()
    write({ ...all(), session: registryEntryOf('session', [session.public_jwk, fresh.public_jwk]) })
    await until(() => registry.key(fresh.public_jwk.kid))
    writeFileSync(file, '{ broken')
    await expect(registry.reload()).rejects.toThrow()
    expect(registry.key(session.public_jwk.kid)).toBeDefined()
    write({ relay: all().relay })
    await until(() => !registry.key(session.public_jwk.kid))
    const sign = createServiceSigner({ name: 'session', key_file: keyFile('session', session) })
    expect(() => verifyServiceToken(registry, 'token-internal', sign('token-internal'))).toThrow(
      expect.objectContaining({ status: 401 }),
    )
  })
  it.each<[string, unknown]>([
    ['a private key', { x: { keys: [session.private_jwk], audiences: [], scopes: [] } }],
    ['a wrong kid', { x: { keys: [{ ...session.public_jwk, kid: 'other' }], audiences: [], scopes: [] } }],
    ['one key of two callers', { x: all().session, y: all().session }],
    [
      'three keys',
      {
        x: {
          keys: [createServiceKey(), createServiceKey(), createServiceKey()].map((k) => k.public_jwk),
          audiences: [],
          scopes: [],
        },
      },
    ],
    ['a name that is none', { 'X Y': { keys: [], audiences: [], scopes: [] } }],
  ])('refuses to start with %s, naming variable and file', (_what, value) => {
    writeFileSync(file, JSON.stringify(value))
    expect(() => loadRegistry(file)).toThrow(/AUTH__SERVICES__FILE names .*services\.json/)
  })
  it('names a key that proves no owner, and the caller to whom it is given', () => {
    const point = { kty: 'OKP', crv: 'Ed25519', x: 'A'.repeat(43) } as const
    const kid = thumbprintOf(point)
    const keys: ServiceJwk[] = [{ ...point, kid }]
    write({ ...all(), x: { keys, audiences: [], scopes: [] } })
    expect(() => loadRegistry(file)).toThrow(`the key ${kid} of x is a point of small order`)
  })
  it('names the variable of an unreadable key file', () => {
    expect(() => createServiceSigner({ name: 'session', key_file: '/nowhere.json' })).toThrow(
      'SESSION__SERVICE__KEY_FILE',
    )
  })
})
