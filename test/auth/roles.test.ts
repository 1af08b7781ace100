import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { authorizedRoutes } from '../../apps/shared/auth/http.ts'
import { type Permission, permissionsOf, ROLES } from '../../apps/shared/auth/permissions.ts'
import { grants } from '../../db/identity/tables.ts'
import { type Auth, bearer, counted, PASSWORD, send, startAuth } from '../session/support/auth.ts'
import { until } from '../support/until.ts'

/** auth.md 14.9 at the session component: role x route, generated from both tables. Identity's is test/identity/rights. */

let auth: Auth
const login = async (username: string) =>
  String((await send(`${auth.session.url}/auth/login`, { body: { username, password: PASSWORD } })).body.access_token)

beforeAll(async () => {
  auth = await startAuth()
  for (const role of ROLES) await auth.addUser(role, [role])
  await auth.addUser('nobody')
})
afterAll(() => auth?.stop())

const bodyOf = (url: string): object | undefined =>
  ({
    '/v1/token/reauth': { password: PASSWORD },
    '/v1/users/me/password': { current_password: 'Wrong-Horse-7-Battery', new_password: 'Another-Staple-9-Lantern' },
  })[url]

describe('every route of session', () => {
  it('is open to exactly the roles that hold its permission; the refusal names what is missing (ASVS 10.3.2)', async () => {
    const routes = authorizedRoutes(auth.session.app).filter(({ method }) => method !== 'HEAD')
    const guarded = routes.filter(({ permissions }) => !permissions.some((one) => one === 'none' || one === 'bearer'))
    expect(guarded.length).toBeGreaterThanOrEqual(10)
    for (const name of [...ROLES, 'nobody']) {
      const token = await login(name)
      const held = permissionsOf(name === 'nobody' ? [] : [name])
      for (const { method, url, permissions } of guarded) {
        const path = url
          .replace(/:(user|session)_id/g, () => randomUUID())
          .replace(':provider', 'corp')
          .replace(':trial', 'none')
        const body = bodyOf(url)
        const reply = await send(`${auth.session.url}${path}`, {
          method: method as 'GET',
          headers: { ...bearer(token), 'idempotency-key': randomUUID() },
          ...(body && { body }),
        })
        const may = permissions.some((wanted) => wanted === 'self' || held.has(wanted as Permission))
        expect([name, method, url, reply.body.code === 'permission_missing']).toEqual([name, method, url, !may])
        if (may) continue
        expect(reply.status).toBe(403)
        expect(reply.body.permission).toBe(permissions[0])
        expect(reply.text).toContain(String(permissions[0]))
      }
    }
  })

  it('needs a token unless it says otherwise', async () => {
    for (const { method, url, permissions } of authorizedRoutes(auth.session.app)) {
      if (method === 'HEAD' || permissions.includes('none')) continue
      const reply = await send(`${auth.session.url}${url}`, {
        method: method as 'GET',
        headers: { 'idempotency-key': randomUUID() },
      })
      expect([url, reply.status, reply.body.code]).toEqual([url, 401, 'token_missing'])
    }
  })

  it('leaves a count and an audit event for each refusal', async () => {
    const { metrics } = auth.session.deps.telemetry
    const noted = async () => {
      const rows = await auth.redis.xrange(`${auth.prefix}auth:audit`, '-', '+')
      return rows.map(([, [, row]]) => JSON.parse(row ?? '{}')).filter(({ action }) => action === 'forbidden').length
    }
    const before = [await counted(metrics, 'signalbox_policy_denied_total'), await noted()]
    const ada = await login('admin')
    const { sub } = JSON.parse(Buffer.from(ada.split('.')[1] ?? '', 'base64url').toString())
    const headers = { ...bearer(ada), 'idempotency-key': randomUUID() }
    const self = await send(`${auth.session.url}/v1/admin/users/${sub}/unlock`, { method: 'POST', headers })
    expect(self.body.code).toBe('self_action')
    const foreign = await send(`${auth.session.url}/v1/token?response_mode=cookie`, {
      body: { username: 'admin', password: PASSWORD },
      headers: { origin: 'https://evil.test' },
    })
    expect(foreign.body.code).toBe('origin_not_allowed')
    const missing = await send(`${auth.session.url}/v1/admin/auth-events`, { headers: bearer(await login('viewer')) })
    expect(missing.body.code).toBe('permission_missing')
    expect([await counted(metrics, 'signalbox_policy_denied_total'), await noted()]).toEqual(before.map((n) => n + 3))
  })

  it('is closed within 5 s of a removed right', async () => {
    const token = await login('auditor')
    const read = async () => (await send(`${auth.session.url}/v1/admin/auth-events`, { headers: bearer(token) })).status
    expect(await read()).toBe(200)
    await auth.identity_deps.db.delete(grants)
    const started = performance.now()
    await until(async () => (await read()) === 403, { timeout_ms: 7000, every_ms: 200 })
    expect(performance.now() - started).toBeLessThan(6000)
  })
})
