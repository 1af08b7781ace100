import { describe, expect, it } from 'vitest'
import { tAdmin } from '../../apps/console/words/admin.ts'
import { lookOf } from '../../apps/shared/contracts/client/status.ts'
import { factsOf } from '../../apps/shared/contracts/identity/change-facts.ts'
import { ChangeState, type ChangeView } from '../../apps/shared/contracts/identity/changes.ts'

const subject = { gives: ['operator'], members: ['a', 'b'] }
const scope = { region_id: 'eu1', datacenter_id: 'dc1', layer_id: 'l1', segment_id: 's1', type_key: 'fleet.*' }

/** Every member that a request can have: a new one is an error of types here. */
const whole: Required<ChangeView['request']> = {
  username: 'nadia',
  grants: [{ role: 'approver', scope: { region_id: 'us1' }, expires_at: '2030-01-01T00:00:00Z' }, { role: 'viewer' }],
  user_id: 'u1',
  group_key: 'netops',
  subject_type: 'user',
  subject_id: 'u2',
  role: 'operator',
  scope,
  expires_at: '2030-02-01T00:00:00Z',
  expires_in_days: 30,
  reason: 'back',
  machine_id: 'm1',
  credential_id: 'c1',
  kind: 'trust',
  name: 'CI',
  permissions: ['operation:read', 'plan:start'],
  networks: ['203.0.113.0/24'],
  jwk: { kty: 'OKP', kid: 'k1', alg: 'EdDSA', crv: 'Ed25519', x: 'xx', y: 'yy', n: 'nn', e: 'AQAB', use: 'sig' },
  trust: { issuer: 'https://ci.example', audience: 'signalbox', claims: { repository_id: '123', role: 'x' } },
  replaces: { credential_id: 'c0', overlap_s: 60 },
}

describe('what a change would do', () => {
  it('has every member of its request, each claim and each part of a key', () => {
    const said = factsOf({ request: whole, subject }).map(({ name, part, value }) => [name, part, value].join(' '))
    expect(said).toEqual([
      'members  2',
      'role  approver',
      'region_id  us1',
      'expires_at  2030-01-01T00:00:00Z',
      'role  viewer',
      'scope  ',
      'expires_at  ',
      'group_key  netops',
      'role  operator',
      ...Object.entries(scope).map(([name, value]) => `${name}  ${value}`),
      'expires_at  2030-02-01T00:00:00Z',
      'expires_in_days  30',
      'reason  back',
      'kind  trust',
      'name  CI',
      'permissions  operation:read, plan:start',
      'networks  203.0.113.0/24',
      ...Object.entries(whole.jwk ?? {}).map(([part, value]) => `jwk ${part} ${value}`),
      'issuer  https://ci.example',
      'audience  signalbox',
      'claims repository_id 123',
      'claims role x',
      'credential_id  c0',
      'overlap_s  60',
    ])
    const words: Record<string, string> = { ...tAdmin.change.fact, ...tAdmin.scope }
    const named = factsOf({ request: whole, subject }).map(({ name }) => name)
    expect(named.filter((name) => words[name] === undefined)).toEqual([])
  })

  it('says where no limit is set, and the roles that its subject has', () => {
    expect(factsOf({ request: { kind: 'key', scope: {}, networks: [], jwk: null }, subject })).toEqual([
      { name: 'gives', value: 'operator' },
      { name: 'members', value: '2' },
      { name: 'kind', value: 'key' },
      { name: 'scope', value: '' },
      { name: 'networks', value: '' },
    ])
    expect(
      factsOf({ request: { user_id: 'u1', role: 'viewer' }, subject: { gives: ['viewer'], members: [] } }),
    ).toEqual([
      { name: 'role', value: 'viewer' },
      { name: 'scope', value: '' },
      { name: 'expires_at', value: '' },
    ])
  })

  it('shows what would not show: another issuer looks like the right one otherwise', () => {
    const trust = { issuer: 'https://ci.example\u200b', audience: 'box', claims: { sub: 'a\u202eb\u001b[2J' } }
    expect(factsOf({ request: { trust }, subject: { gives: [], members: [] } }).map(({ value }) => value)).toEqual([
      'https://ci.example\\u{200b}',
      'box',
      'a\\u{202e}b\\u{1b}[2J',
    ])
  })

  it('has a known state, also once it is decided', () => {
    for (const state of ChangeState.enum) expect(lookOf(state).word, state).not.toBe('unknown')
  })
})
