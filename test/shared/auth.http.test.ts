import http from 'node:http'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import {
  allow,
  assertRoutesAuthorized,
  authorizedRoutes,
  requireScope,
  serviceAuth,
  userAuth,
} from '../../apps/shared/auth/http.ts'
import { PERMISSIONS, permissionsOf, ROLES } from '../../apps/shared/auth/permissions.ts'
import type { Principal } from '../../apps/shared/auth/principals.ts'
import { unavailable } from '../../apps/shared/errors.ts'
import { createHttpApp, type HttpApp } from '../../apps/shared/http/app.ts'
import { AUTH_CODES } from '../../apps/shared/http/edge-codes.ts'
import { TokenRejected, verifyToken } from '../../apps/shared/jwt/verifier.ts'
import { createTelemetry } from '../../apps/shared/telemetry.ts'
import { accessClaims, forge, ISSUER, NOW, rsaKey, USER } from './support/tokens.ts'

const rsa = rsaKey()
const token = forge(rsa.privateKey, { alg: 'RS256', kid: 'k', typ: 'at+jwt' }, accessClaims())
let roles: string[]
let status: Principal['user']['status']
let gone: boolean
let identityAway: boolean
let denied: string[]

const principals = {
  get: async (id: string): Promise<Principal | undefined> => {
    if (identityAway) throw unavailable('identity', undefined, 'unavailable')
    if (gone) return undefined
    return {
      user: { id, username: 'eva', status, kind: 'person' as const },
      grants: [],
      group_keys: [],
      memberships: [],
      reset: null,
      renewal_required: false,
      behind: [],
      roles,
      permissions: permissionsOf(roles),
      version: 1,
    }
  },
  drop: () => {},
}
const newApp = () => createHttpApp({ telemetry: createTelemetry('test', { level: 'silent' }), codes: AUTH_CODES })
const guard = (app: HttpApp) =>
  app.register(userAuth, {
    principals,
    verifier: async (text) =>
      verifyToken(text, {
        type: 'access',
        issuer: ISSUER,
        audience: 'signalbox-api',
        now: NOW,
        keys: (kid) => (kid === 'k' ? { key: rsa.publicKey } : undefined),
      }),
    onDenied: async (_req, error) => void denied.push(error.code),
  })

let app: HttpApp
beforeAll(async () => {
  app = newApp()
  guard(app)
  app.register(async (routes) => {
    routes.get('/gates', { preHandler: allow('gate:decide', { kind: 'A' }) }, async (req) => ({
      user_id: req.caller.user_id,
    }))
    routes.get('/me', { preHandler: allow('self', { kind: 'R' }) }, async (req) => req.caller.username)
    routes.post('/any', { preHandler: allow(['patch:decide', 'patch:propose'], { kind: 'W' }) }, async () => 'ok')
    routes.get('/public', { preHandler: allow('none', { kind: 'R' }) }, async () => 'ok')
    for (const permission of PERMISSIONS) {
      routes.get(
        `/p/${permission.replace(':', '-')}`,
        { preHandler: allow(permission, { kind: 'R' }) },
        async () => 'ok',
      )
    }
  })
  await app.ready()
})
afterAll(() => app.close())
beforeEach(() => {
  roles = ['approver']
  status = 'ACTIVE'
  gone = identityAway = false
  denied = []
})
const get = (url: string, headers: Record<string, string> = { authorization: `Bearer ${token}` }) =>
  app.inject({ url, headers })

describe('a route behind userAuth', () => {
  it('answers 401 with WWW-Authenticate without a token, and names the error with a bad one', async () => {
    const missing = await get('/gates', {})
    expect(missing.statusCode).toBe(401)
    expect(missing.headers['www-authenticate']).toBe('Bearer')
    expect(missing.json()).toMatchObject({ category: 'invalid_token', code: 'token_missing' })
    const bad = await get('/gates', { authorization: 'Bearer x.y.z' })
    expect(bad.headers['www-authenticate']).toBe('Bearer error="invalid_token"')
    expect(bad.json()).toMatchObject({ category: 'invalid_token', code: 'invalid_token' })
    for (const authorization of [`Basic ${token}`, `Bearer  ${token}`, `Bearer ${token} x`, token]) {
      expect((await get('/gates', { authorization })).statusCode).toBe(401)
    }
    expect((await get('/gates', { authorization: `bEaReR ${token}` })).statusCode).toBe(200)
  })
  it('accepts no token from query, cookie or a second Authorization header', async () => {
    expect((await get(`/gates?access_token=${token}`, { cookie: `access_token=${token}` })).statusCode).toBe(401)
    const address = await app.listen({ host: '127.0.0.1', port: 0 })
    const doubled = await new Promise<number | undefined>((resolve) =>
      http.get(
        `${address}/gates`,
        { headers: ['Host', 'localhost', 'Authorization', `Bearer ${token}`, 'Authorization', 'Bearer x'] },
        (res) => {
          res.resume()
          resolve(res.statusCode)
        },
      ),
    )
    expect(doubled).toBe(401)
  })
  it('refuses an x-user-id other than the bearer’s', async () => {
    const as = (id: string) => get('/me', { authorization: `Bearer ${token}`, 'x-user-id': id })
    expect((await as(USER)).statusCode).toBe(200)
    expect((await as('0195f0aa-0000-7000-8000-00000000ffff')).statusCode).toBe(401)
  })
  it('names the missing permission and its holders in a 403, and writes the audit log', async () => {
    roles = ['viewer']
    const reply = await get('/gates')
    expect(reply.statusCode).toBe(403)
    expect(reply.json()).toMatchObject({
      category: 'policy_denied',
      code: 'permission_missing',
      permission: 'gate:decide',
      detail: 'This needs the permission gate:decide (role approver).',
    })
    expect(denied).toEqual(['permission_missing'])
  })
  it('is 401 for a user who is not ACTIVE or does not exist, and 503 while identity is down', async () => {
    status = 'DISABLED'
    expect((await get('/me')).statusCode).toBe(401)
    status = 'ACTIVE'
    gone = true
    expect((await get('/me')).statusCode).toBe(401)
    identityAway = true
    const reply = await get('/me')
    expect(reply.statusCode).toBe(503)
    expect(reply.headers['retry-after']).toBeDefined()
  })
  it('verifies the token before it reads the body', async () => {
    const reply = await app.inject({
      method: 'POST',
      url: '/any',
      payload: '{',
      headers: { 'content-type': 'application/json' },
    })
    expect(reply.statusCode).toBe(401)
  })
  it('answers 404, not 401, for a path that does not exist', async () => {
    expect((await get('/nowhere', {})).statusCode).toBe(404)
  })
  it('needs no token if it states `none`', async () => {
    expect((await get('/public', {})).statusCode).toBe(200)
  })
  it('accepts any one of several permissions', async () => {
    roles = ['planner']
    const reply = await app.inject({ method: 'POST', url: '/any', headers: { authorization: `Bearer ${token}` } })
    expect(reply.statusCode).toBe(200)
  })
})

describe('the role table', () => {
  const TABLE: Record<string, string> = {
    'catalog:read': 'viewer planner operator approver engineer admin auditor controller',
    'operation:read': 'viewer planner operator approver engineer admin auditor controller',
    'log:read': 'viewer planner operator approver engineer auditor controller',
    'intent:create': 'planner operator',
    'patch:propose': 'planner operator',
    'plan:start': 'operator',
    'operation:control': 'operator',
    'operation:intervene': 'operator',
    'catalog:write': 'operator',
    'gate:decide': 'approver',
    'patch:decide': 'approver',
    'engine:inspect': 'engineer',
    'platform:read': 'engineer',
    'catalog:record': 'admin controller',
    'signal:send': 'controller',
    'identity:admin': 'admin',
    'session:admin': 'admin',
    'identity:read': 'admin auditor',
    'audit:read': 'admin auditor',
    'scim:write': '',
  }
  it('applies on a real route for every role and permission', async () => {
    expect(Object.keys(TABLE).sort()).toEqual([...PERMISSIONS].sort())
    for (const role of ROLES) {
      roles = [role]
      for (const permission of PERMISSIONS) {
        const expected = TABLE[permission]?.split(' ').includes(role) ? 200 : 403
        expect([role, permission, (await get(`/p/${permission.replace(':', '-')}`)).statusCode]).toEqual([
          role,
          permission,
          expected,
        ])
      }
    }
  })
  it('gives a control plane rights that no person has', () => {
    const held = Object.keys(TABLE).filter((permission) => TABLE[permission]?.split(' ').includes('controller'))
    expect([...permissionsOf(['controller'])].sort()).toEqual(held.sort())
  })
  it('gives an unknown role no rights', () => {
    expect(permissionsOf(['root', '__proto__']).size).toBe(0)
  })
})

describe('an app', () => {
  it('cannot be built with a route that states no permission', async () => {
    const open = newApp()
    guard(open)
    open.register(async (routes) => void routes.get('/open', async () => 'x'))
    await expect(open.ready()).rejects.toThrow('GET /open')
  })
  it('refuses everyone at a route that was added before its guard', async () => {
    const early = newApp()
    early.get('/early', async () => 'x')
    guard(early)
    expect((await early.inject('/early')).statusCode).toBe(500)
    expect((await early.inject('/nowhere')).statusCode).toBe(404)
  })
  it('keeps the kinds of two routes with one schema apart', async () => {
    const twin = newApp()
    guard(twin)
    twin.register(async (routes) => {
      const schema = { description: 'Decides.' }
      routes.post('/approve', { schema, preHandler: allow('gate:decide', { kind: 'A' }) }, async () => 'x')
      routes.post('/reject', { schema, preHandler: allow('gate:decide', { kind: 'S' }) }, async () => 'x')
      expect(schema).toEqual({ description: 'Decides.' })
    })
    await twin.ready()
    expect(authorizedRoutes(twin).map(({ url, kind }) => [url, kind])).toEqual([
      ['/approve', 'A'],
      ['/reject', 'S'],
    ])
  })
  it('lists every route with its permission and kind', () => {
    assertRoutesAuthorized(app)
    expect(authorizedRoutes(app)).toContainEqual({
      method: 'GET',
      url: '/gates',
      permissions: ['gate:decide'],
      kind: 'A',
    })
    expect(() => assertRoutesAuthorized(newApp())).toThrow('userAuth')
  })
  it('cannot be built with an internal route that states no scope', async () => {
    const internal = newApp()
    const registry = {
      key: () => undefined,
      caller: () => undefined,
      verify: () => {
        throw new TokenRejected('unknown_key')
      },
      reload: async () => {},
      close: () => {},
    }
    internal.register(serviceAuth, { registry, audience: 'x-internal' })
    internal.register(async (routes) => void routes.get('/a', { preHandler: requireScope('x:y') }, async () => 'x'))
    await internal.ready()
    const none = await internal.inject({ url: '/a' })
    expect(none.json()).toMatchObject({ code: 'token_missing', status: 401 })
    const user = await internal.inject({ url: '/a', headers: { authorization: `Bearer ${token}` } })
    expect(user.statusCode).toBe(401)
    const claimed = await internal.inject({ url: '/a', headers: { 'x-user-id': USER } })
    expect(claimed.json()).toMatchObject({ status: 400, code: 'forbidden_header' })
    const open = newApp()
    open.register(serviceAuth, { registry, audience: 'x-internal' })
    open.register(async (routes) => void routes.get('/b', async () => 'x'))
    await expect(open.ready()).rejects.toThrow('GET /b')
  })
})

it('TokenRejected never carries the token', () => {
  expect(JSON.stringify(new TokenRejected('signature'))).not.toContain(token)
})
