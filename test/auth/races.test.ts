import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startUpstream } from '../gateway/upstream.support.ts'
import { type Auth, bearer, PASSWORD, send, startAuth } from '../session/auth.support.ts'

/** auth.md 14.2: no usable token survives a race with what ends the session, over two session processes. */

type Tokens = { access_token: string; refresh_token: string }
let auth: Auth
let urls: string[]
let gateway: string
let admin: Tokens
let upstream: Awaited<ReturnType<typeof startUpstream>>

const ROUNDS = 8
const login = (username: string, url = urls[0]) => send(`${url}/auth/login`, { body: { username, password: PASSWORD } })
const refresh = (token: string, url = urls[1]) => send(`${url}/auth/refresh`, { body: { refresh_token: token } })
const command = (url: string, token: string, body?: object) =>
  send(url, {
    method: 'POST',
    headers: { ...bearer(token), 'idempotency-key': randomUUID() },
    ...(body && { body }),
  })

/** Every token that anybody got hold of is worth nothing. */
const expectDead = async (answers: { status: number; body: object }[]) => {
  for (const { status, body } of answers) {
    if (status !== 200) continue
    const { access_token, refresh_token } = body as Tokens
    expect((await send(`${gateway}/api/v1/resources`, { headers: bearer(access_token) })).status).toBe(401)
    if (refresh_token) expect((await refresh(refresh_token)).status).toBe(401)
  }
}

beforeAll(async () => {
  upstream = await startUpstream()
  auth = await startAuth({ GATEWAY__UPSTREAM__CATALOG_URL: upstream.url })
  urls = [auth.session.url, (await auth.addSession()).url]
  gateway = (await auth.addGateway()).url
  await auth.addRelay()
  await auth.addUser('ada', ['admin'])
  admin = (await login('ada')).body as Tokens
})
afterAll(async () => {
  await auth?.stop()
  upstream?.stop()
})

describe('no usable token survives', () => {
  it('refreshes that race a logout', async () => {
    await auth.addUser('eva')
    for (let round = 0; round < ROUNDS; round++) {
      const first = await login('eva')
      const { access_token, refresh_token } = first.body as Tokens
      const [out, ...answers] = await Promise.all([
        command(`${urls[round % 2]}/auth/logout`, access_token),
        refresh(refresh_token),
      ])
      expect(out.status).toBe(204)
      await expectDead([first, ...answers])
    }
  })

  it('refreshes and logins that race a disable', async () => {
    for (let round = 0; round < ROUNDS / 2; round++) {
      const user = await auth.addUser(`racer-${round}`)
      const first = await login(user.username)
      const { refresh_token } = first.body as Tokens
      const [disabled, ...answers] = await Promise.all([
        command(`${auth.vars.GATEWAY__UPSTREAM__IDENTITY_URL}/v1/admin/users/${user.id}/disable`, admin.access_token, {
          reason: 'left',
        }),
        refresh(refresh_token),
        ...urls.map((url) => login(user.username, url)),
        ...urls.map((url) => login(user.username, url)),
      ])
      expect([disabled.status, disabled.body.sessions]).toEqual([200, 'revoked'])
      await expectDead([first, ...answers])
      expect(await auth.redis.keys(`${auth.prefix}sess:{${user.id}}:*`)).toEqual([])
    }
  })

  it('refreshes of other sessions that race a change of the password', async () => {
    for (let round = 0; round < ROUNDS / 2; round++) {
      const { username } = await auth.addUser(`changer-${round}`)
      const mine = (await login(username)).body as Tokens
      const other = await login(username)
      const [changed, ...answers] = await Promise.all([
        command(`${urls[round % 2]}/v1/users/me/password`, mine.access_token, {
          current_password: PASSWORD,
          new_password: 'Another-Staple-9-Lantern',
        }),
        refresh((other.body as Tokens).refresh_token),
        login(username),
      ])
      expect(changed.status).toBe(200)
      await expectDead([other, ...answers])
      expect((await refresh(String(changed.body.refresh_token))).status).toBe(200)
    }
  })
})
