import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { until } from '../support/until.ts'
import { type Auth, bearer, counted, PASSWORD, send, startAuth } from './support/auth.ts'

let auth: Auth
let user_id: string

const FIREFOX = 'Mozilla/5.0 (X11; Linux) Gecko/20100101 Firefox/140.0'
const NEWER_FIREFOX = 'Mozilla/5.0 (X11; Linux) Gecko/20100101 Firefox/155.0'
const CHROME = 'Mozilla/5.0 (X11; Linux) AppleWebKit/537.36 Chrome/140.0 Safari/537.36'
const HOME = { 'user-agent': FIREFOX, 'x-forwarded-for': '192.0.2.7' }

const claims = (token: unknown) =>
  JSON.parse(Buffer.from(String(token).split('.')[1] ?? '', 'base64url').toString()) as Record<string, unknown>
const noted = async (session_id: string) => {
  const rows = await auth.redis.xrange(`${auth.prefix}auth:revoked`, '-', '+')
  return rows
    .filter(([, fields]) => fields.includes(session_id))
    .map(([, fields]) => fields[fields.indexOf('reason') + 1])
}

beforeAll(async () => {
  auth = await startAuth()
  user_id = (await auth.addUser('eva')).id
})
afterAll(() => auth?.stop())

/** Signs in at home and refreshes from elsewhere, at a session process with this binding. */
const move = async (mode: string, action: string, elsewhere: Record<string, string>) => {
  const bound = await auth.addSession({ SESSION__BINDING__MODE: mode, SESSION__BINDING__ACTION: action })
  const login = await send(`${bound.url}/auth/login`, { body: { username: 'eva', password: PASSWORD }, headers: HOME })
  const session_id = String(claims(login.body.access_token).session_id)
  const answer = await send(`${bound.url}/auth/refresh`, {
    body: { refresh_token: login.body.refresh_token },
    headers: { ...HOME, ...elsewhere },
  })
  const changed = await counted(bound.deps.telemetry.metrics, 'signalbox_session_binding_changed_total', { action })
  return { status: answer.status, changed, session_id, token: answer.body.access_token }
}

describe('a session that moves', () => {
  it('stays the same after an update of its browser and from another address of its network', async () => {
    for (const elsewhere of [{ 'user-agent': NEWER_FIREFOX }, { 'x-forwarded-for': '192.0.2.200' }]) {
      expect(await move('ua_ip', 'revoke', elsewhere)).toMatchObject({ status: 200, changed: 0 })
    }
  })

  it('to another browser continues and is recorded (signal), by default', async () => {
    const moved = await move('ua', 'signal', { 'user-agent': CHROME })
    expect(moved).toMatchObject({ status: 200, changed: 1 })
    const rows = await auth.redis.xrange(`${auth.prefix}auth:audit`, '-', '+')
    const events = rows.map(([, [, row]]) => JSON.parse(row ?? '{}') as Record<string, string>)
    expect(
      events.filter(({ reason, object }) => reason === 'binding_changed' && object === `user:${user_id}`),
    ).toHaveLength(1)
    expect(JSON.stringify(events)).not.toContain(moved.session_id)
  })

  it('must confirm the password again (step_up)', async () => {
    const moved = await move('ua', 'step_up', { 'user-agent': CHROME })
    expect([moved.status, claims(moved.token).auth_time]).toEqual([200, 0])
    expect(await auth.redis.hget(`${auth.prefix}sess:{${user_id}}:${moved.session_id}`, 'auth_time')).toBe('0')
  })

  it('confirms once (step_up): its next tokens are accepted, and so is a second move', async () => {
    const bound = await auth.addSession({ SESSION__BINDING__ACTION: 'step_up' })
    const gateway = await auth.addGateway({ GATEWAY__UPSTREAM__SESSION_URL: bound.url })
    const login = await send(`${bound.url}/auth/login`, {
      body: { username: 'eva', password: PASSWORD },
      headers: HOME,
    })
    let { refresh_token } = login.body
    /** The time of the proof in new tokens from this browser, which are used at once. */
    const from = async (agent: string) => {
      const renewed = await send(`${bound.url}/auth/refresh`, {
        body: { refresh_token },
        headers: { 'user-agent': agent },
      })
      refresh_token = renewed.body.refresh_token
      const token = String(renewed.body.access_token)
      expect((await send(`${gateway.url}/api/v1/sessions`, { method: 'GET', headers: bearer(token) })).status).toBe(200)
      return { token, auth_time: Number(claims(token).auth_time) }
    }
    const moved = await from(CHROME)
    expect(moved.auth_time).toBe(0)
    const headers = { ...bearer(moved.token), 'user-agent': CHROME }
    const confirmed = await send(`${gateway.url}/v1/token/reauth`, { body: { password: PASSWORD }, headers })
    expect((await from(CHROME)).auth_time).toBe(claims(confirmed.body.access_token).auth_time)
    await until(() => Date.now() / 1000 > Number(claims(confirmed.body.access_token).auth_time) + 1)
    expect((await from(FIREFOX)).auth_time).toBe(0)
    expect((await send(`${gateway.url}/api/v1/sessions`, { method: 'GET', headers })).status).toBe(401)
  })

  it('ends (revoke), by browser or by network', async () => {
    for (const [mode, elsewhere] of [
      ['ua', { 'user-agent': CHROME }],
      ['ua_ip', { 'x-forwarded-for': '198.51.100.7' }],
      ['ua_ip', { 'x-forwarded-for': '2001:db8:1::7' }],
    ] as [string, Record<string, string>][]) {
      const moved = await move(mode, 'revoke', elsewhere)
      expect([mode, moved.status, await noted(moved.session_id)]).toEqual([mode, 401, ['binding']])
    }
  })

  it('is not checked by address in mode ua, and not at all in mode off', async () => {
    expect(await move('ua', 'revoke', { 'x-forwarded-for': '198.51.100.7' })).toMatchObject({ status: 200, changed: 0 })
    expect(await move('off', 'revoke', { 'user-agent': CHROME })).toMatchObject({ status: 200, changed: 0 })
  })
})
