import { create } from '@bufbuild/protobuf'
import { timestampFromDate } from '@bufbuild/protobuf/wkt'
import { Code, ConnectError } from '@connectrpc/connect'
import { beforeEach, describe, expect, it } from 'vitest'
import { createPrincipals, principalOf } from '../../apps/shared/auth/principals.ts'
import { isGranted, scopeCovers } from '../../apps/shared/auth/scope.ts'
import { GetPrincipalResponseSchema, PrincipalSchema, UserStatus } from '../../apps/shared/contracts/gen/auth_pb.ts'

const USER = '0195f0aa-0000-7000-8000-000000000001'
let ms: number
let wall: Date
let calls: number
let away: boolean
let roles: string[]
let expires: Date | undefined

const identityClient = {
  getPrincipal: async ({ userId }: { userId: string }) => {
    calls += 1
    if (away) throw new ConnectError('away', Code.Unavailable)
    return create(GetPrincipalResponseSchema, {
      principal: {
        user: { id: userId, username: 'eva', status: UserStatus.ACTIVE },
        grants: roles.map((role) => ({
          id: role,
          role,
          scope: {},
          ...(expires && { expiresAt: timestampFromDate(expires) }),
        })),
        groupKeys: ['sre'],
        version: 3n,
      },
    })
  },
}
const build = () => createPrincipals({ identityClient, monotonic: () => ms, clock: { now: () => wall } })

beforeEach(() => {
  ms = 0
  wall = new Date('2026-03-01T12:00:00Z')
  calls = 0
  away = false
  roles = ['approver']
  expires = undefined
})

describe('a principal', () => {
  it('is active by its status alone, also while its account is recovered', () => {
    const of = (status: UserStatus, recovering = false) => {
      const { user, ...read } = principalOf(create(PrincipalSchema, { user: { id: USER, status }, recovering }))
      return [user.status, read.recovering ?? false]
    }
    expect(of(UserStatus.ACTIVE, true)).toEqual(['ACTIVE', true])
    expect(of(UserStatus.ACTIVE)).toEqual(['ACTIVE', false])
    expect(of(UserStatus.UNSPECIFIED)).toEqual(['DISABLED', false])
  })
  it('is fetched once in 5 s, by however many requests', async () => {
    const principals = build()
    await Promise.all(Array.from({ length: 20 }, () => principals.get(USER)))
    ms = 5000
    expect(await principals.get(USER)).toMatchObject({ roles: ['approver'], group_keys: ['sre'], version: 3 })
    expect(calls).toBe(1)
    roles = ['viewer']
    ms = 5001
    expect((await principals.get(USER))?.permissions.has('gate:decide')).toBe(false)
  })
  it('loses a right at once if an event drops it, even while an older answer is in flight', async () => {
    const principals = build()
    await principals.get(USER)
    ms = 6000
    const early = principals.get(USER)
    principals.drop([USER])
    await early
    roles = []
    expect((await principals.get(USER))?.roles).toEqual([])
    roles = ['admin']
    principals.drop('all')
    expect((await principals.get(USER))?.roles).toEqual(['admin'])
  })
  it('loses a grant at the moment it ends, within the cache time', async () => {
    const principals = build()
    expires = new Date(wall.getTime() + 1000)
    expect((await principals.get(USER))?.permissions.has('gate:decide')).toBe(true)
    wall = expires
    expect((await principals.get(USER))?.permissions.has('gate:decide')).toBe(false)
    expect(calls).toBe(1)
  })
})

describe('with identity down', () => {
  it('stopping acts use a principal of up to 15 min, all others are 503', async () => {
    const principals = build()
    await principals.get(USER)
    away = true
    ms = 5001
    for (const kind of ['R', 'W', 'A'] as const)
      await expect(principals.get(USER, kind)).rejects.toMatchObject({ status: 503 })
    ms = 15 * 60_000
    expect((await principals.get(USER, 'S'))?.roles).toEqual(['approver'])
    ms += 1
    await expect(principals.get(USER, 'S')).rejects.toMatchObject({ status: 503, code: 'dependency_down' })
  })
  it('no dropped right comes back', async () => {
    const principals = build()
    await principals.get(USER)
    away = true
    principals.drop([USER])
    await expect(principals.get(USER, 'S')).rejects.toMatchObject({ status: 503 })
  })
})

describe('scopes', () => {
  it('match when all given fields match, and a type prefix matches whole segments', () => {
    expect(scopeCovers({}, {})).toBe(true)
    expect(scopeCovers({ region_id: 'eu' }, { region_id: 'eu', type_key: 'host' })).toBe(true)
    expect(scopeCovers({ region_id: 'eu', layer_id: 'l1' }, { region_id: 'eu' })).toBe(false)
    expect(scopeCovers({ type_key: 'compute.*' }, { type_key: 'compute.host' })).toBe(true)
    expect(scopeCovers({ type_key: 'compute.*' }, { type_key: 'computer.host' })).toBe(false)
    expect(scopeCovers({ type_key: 'compute.host' }, { type_key: null })).toBe(false)
  })
  it('add up over grants', () => {
    const grant = (role: string, scope: object) => ({ id: role, role, scope, expires_at: null })
    const grants = [grant('approver', { region_id: 'eu' }), grant('viewer', {})]
    expect(isGranted(grants, 'gate:decide', { region_id: 'eu' })).toBe(true)
    expect(isGranted(grants, 'gate:decide', { region_id: 'us' })).toBe(false)
    expect(isGranted(grants, 'operation:read', { region_id: 'us' })).toBe(true)
  })
})
