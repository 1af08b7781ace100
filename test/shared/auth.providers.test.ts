import { mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { stringify } from 'yaml'
import { loadProviders, watchProviders } from '../../apps/shared/auth/providers.ts'

/** The file of providers: each fault stops the start with its place and its remedy (federation.md 4). */

const dir = mkdtempSync(join(tmpdir(), 'signalbox-providers-'))
const file = join(dir, 'providers.yaml')
afterAll(() => rmSync(dir, { recursive: true, force: true }))

const CORP = {
  id: 'corp',
  title: 'Example Corp',
  issuer: 'https://login.example.com/realms/corp',
  client_id: 'signalbox',
  client_secret: 'secret://file/corp',
}
const write = (...providers: object[]) => writeFileSync(file, stringify({ format: 'signalbox/providers@1', providers }))
const fault = (production: boolean, ...providers: object[]) => {
  write(...providers)
  try {
    loadProviders(file, production)
  } catch (error) {
    return (error as Error).message.replace(`${file}: `, '')
  }
  return undefined
}

describe('the file of providers', () => {
  it('is read with its defaults; the secret is in a file beside it', () => {
    write(CORP)
    const defaults = { enabled: true, max_role: 'planner', jit: { enabled: false }, algorithms: ['RS256'] }
    const [provider] = loadProviders(file, true)
    expect(provider).toMatchObject({ ...defaults, secret_file: join(dir, 'secrets/corp') })
  })

  it.each<[string, boolean, object, RegExp]>([
    ['a member that is unknown', false, { isuer: 'x' }, /^providers\.0\.isuer is unknown/],
    ['a secret as plain text', false, { client_secret: 'hunter2' }, /^providers\.0\.client_secret must match/],
    ['an issuer without TLS', false, { issuer: 'http://login.example.com' }, /issuer: is not https/],
    ['a loopback issuer in production', true, { issuer: 'http://localhost:1' }, /issuer: is not https/],
    [
      'an issuer of every tenant',
      false,
      { issuer: 'https://login.test/common/v2.0' },
      /issuer: signs for every tenant/,
    ],
    ['scopes without openid', false, { scopes: ['email'] }, /scopes: openid is missing/],
    ['a role above the ceiling', false, { groups: { map: { x: { roles: ['admin'] } } } }, /map\.x: admin is above max/],
    [
      'a requirement without groups',
      false,
      { jit: { enabled: true, require_group: ['x'] } },
      /jit\.require_group: needs/,
    ],
    [
      'a Google whose accounts are made for a domain of addresses: anyone has those',
      false,
      { issuer: 'https://accounts.google.com', allowed_domains: ['example.com'], jit: { enabled: true } },
      /jit: signs for private accounts too, also with a company's address; set require_claims: \{ hd: example\.com \}/,
    ],
    [
      'the Microsoft of private accounts',
      false,
      { issuer: 'https://login.microsoftonline.com/9188040d-6c67-4c5b-b112-36a304b66dad/v2.0' },
      /issuer: signs for every tenant/,
    ],
    ['accounts for anyone in production', true, { jit: { enabled: true } }, /jit: anyone at this issuer/],
  ])('refuses %s', (_what, production, changes, message) => {
    expect(fault(production, { ...CORP, ...changes })).toMatch(message)
  })

  it('accepts accounts for the people of a claim', () => {
    const jit = { enabled: true, require_claims: { hd: 'example.com' } }
    expect(fault(true, { ...CORP, issuer: 'https://accounts.google.com', jit })).toBeUndefined()
    expect(fault(true, { ...CORP, jit })).toBeUndefined()
    expect(fault(true, { ...CORP, jit: { enabled: true, require_claims: {} } })).toMatch(/jit: anyone at this issuer/)
  })

  it('refuses two with one id or one issuer, and an invalid file', () => {
    expect(fault(false, CORP, { ...CORP, issuer: 'https://other.example.com' })).toMatch(
      /^providers\.1\.id: occurs twice/,
    )
    expect(fault(false, CORP, { ...CORP, id: 'other' })).toMatch(/^providers\.1\.issuer: occurs twice/)
    const scim = { machine: 'machine:dir' }
    const other = { ...CORP, id: 'other', issuer: 'https://other.example.com', scim }
    expect(fault(false, { ...CORP, scim }, other)).toMatch(/^providers\.1\.scim\.machine: occurs twice/)
    expect(fault(false, { ...CORP, scim: { ...scim, match: 'email' } })).toMatch(/^providers\.0\.scim\.match /)
    expect(() => loadProviders(join(dir, 'none.yaml'), false)).toThrow(/cannot be read/)
  })

  it('is read again when it changes; an invalid one keeps the known providers and is reported', () => {
    write(CORP)
    const errors: unknown[] = []
    const providers = watchProviders(file, { production: false, onError: (error) => errors.push(error) })
    const change = (text: () => void, second: number) => {
      text()
      utimesSync(file, second, second)
      providers.reread()
    }
    change(() => write({ ...CORP, title: 'New' }), 1)
    expect(providers.get('corp')?.title).toBe('New')
    change(() => writeFileSync(file, 'providers: 7'), 2)
    expect([providers.get('corp')?.title, errors.length]).toEqual(['New', 1])
    expect(providers.fault()).not.toBeNull()
    // The old file is put back with its old time: it is the one that is in force.
    change(() => write({ ...CORP, title: 'New' }), 1)
    expect(providers.fault()).toBeNull()
    change(() => write({ ...CORP, enabled: false }), 3)
    expect([providers.get('corp'), providers.list()]).toEqual([undefined, []])
    providers.stop()
  })
})
