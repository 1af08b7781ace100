import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { unavailable } from '../../apps/shared/errors.ts'
import { external_identities } from '../../db/identity/tables.ts'
import { auth_events } from '../../db/session/tables.ts'
import { createAuthenticator } from '../support/authenticator.ts'
import { codeAt } from '../support/totp.ts'
import { until } from '../support/until.ts'
import { bearer, ORIGIN, PASSWORD, send } from './support/auth.ts'
import { type Sso, startSso } from './support/sso.ts'

/** reliability.md 3: a removal whose answer was lost is answered by its repeat as it would have been. */

let auth: Sso
let url: string
beforeAll(async () => {
  auth = await startSso()
  await auth.addRelay()
  url = auth.gateway.url
})
afterAll(() => auth?.stop())

type Headers = Record<string, string>
const keyed = (headers: Headers) => ({ ...headers, 'idempotency-key': randomUUID() })
const signIn = async (username: string) => {
  const { body } = await send(`${url}/v1/token`, {
    body: { username, password: PASSWORD },
    headers: { origin: ORIGIN },
  })
  return bearer(body.access_token)
}

/** Something of a person that can be removed, and the call of another store that removes it. */
type Thing = { path: string; store: object; call: string }
const THINGS: Record<string, (user: { id: string; username: string }, headers: Headers) => Promise<Thing>> = {
  'an identity': async ({ id: user_id }) => {
    const { db } = auth.identity_deps
    await db.insert(external_identities).values({ provider: 'corp', subject: `s-${randomUUID()}`, user_id })
    return { path: 'users/me/identities/corp', store: auth.session.deps.identity, call: 'unlinkExternal' }
  },
  'a passkey': async ({ id }, headers) => {
    const { challenge } = (await send(`${url}/v1/token/passkey-options`, { body: {} })).body
    const key = createAuthenticator({ origin: ORIGIN, rp_id: 'console.test' })
    const body = { name: 'phone', attestation: key.attest(String(challenge), id) }
    const added = await send(`${url}/api/v1/users/me/passkeys`, { body, headers: keyed(headers) })
    return { path: `users/me/passkeys/${added.body.id}`, store: auth.session.deps.identity, call: 'removePasskey' }
  },
  'an authenticator app': async (_, headers) => {
    const begun = await send(`${url}/api/v1/users/me/totp/setup`, { body: {}, headers })
    const { secret, setup } = begun.body as { secret: string; setup: string }
    const body = { setup, code: codeAt(secret, new Date()) }
    await send(`${url}/api/v1/users/me/totp`, { method: 'PUT', body, headers: keyed(headers) })
    return { path: 'users/me/totp', store: auth.session.deps.credential, call: 'removeTotp' }
  },
  'a session': async ({ username }) => {
    const { authorization } = await signIn(username)
    const { session_id } = JSON.parse(Buffer.from(authorization.split('.')[1] ?? '', 'base64url').toString())
    return { path: `sessions/${session_id}`, store: auth.session.deps.store, call: 'revoke' }
  },
}

it.each(Object.entries(THINGS))(
  'of %s is done for the repeat of a request that died after it, and missing for another one',
  async (_, make) => {
    const username = `p-${randomUUID().slice(0, 8)}`
    const user = await auth.addUser(username)
    const headers = await signIn(username)
    const { path, store, call } = await make(user, headers)
    const remove = (key: string) =>
      send(`${url}/api/v1/${path}`, { method: 'DELETE', headers: { ...headers, 'idempotency-key': key } })
    const calls = store as Record<string, (...given: unknown[]) => Promise<unknown>>
    const act = calls[call]
    const dying = vi.spyOn(calls, call).mockImplementationOnce(async (...given) => {
      await act?.(...given)
      throw unavailable('It died.', undefined, 'unavailable')
    })
    const [lost, other] = [randomUUID(), randomUUID()]
    expect((await remove(lost)).status).toBe(503)
    dying.mockRestore()
    expect((await remove(other)).status).toBe(404)
    expect((await remove(lost)).status).toBe(204)
    expect(await remove(lost)).toMatchObject({ status: 204, headers: { 'idempotency-replayed': 'true' } })
    if (call !== 'removeTotp') return
    const noted = async () =>
      (await auth.session.deps.db.select().from(auth_events)).some(
        ({ action, reason }) => action === 'remove_totp' && reason === 'repeated',
      )
    await until(noted, { what: 'its row in the audit log' })
  },
)

it('of an identity ends the other sessions by its repeat, if the first request died before it did', async () => {
  const username = `p-${randomUUID().slice(0, 8)}`
  const user = await auth.addUser(username)
  const [headers, other] = [await signIn(username), await signIn(username)]
  const { path } = await (THINGS['an identity'] as (typeof THINGS)[string])(user, headers)
  const { store } = auth.session.deps
  const { revokeUser } = store
  let dead = true
  // Nor does the relay end them.
  const dying = vi.spyOn(store, 'revokeUser').mockImplementation((ended) => {
    if (dead) throw unavailable('It died.', undefined, 'unavailable')
    return revokeUser(ended)
  })
  const key = randomUUID()
  const remove = () =>
    send(`${url}/api/v1/${path}`, { method: 'DELETE', headers: { ...headers, 'idempotency-key': key } })
  try {
    expect((await remove()).status).toBe(503)
    dead = false
    dying.mockClear()
    expect((await remove()).status).toBe(204)
    expect(dying.mock.calls.map(([ended]) => ended)).toContainEqual(
      expect.objectContaining({ user_id: user.id, reason: 'logout' }),
    )
  } finally {
    dying.mockRestore()
  }
  expect((await send(`${url}/api/v1/users/me`, { headers: other })).status).toBe(401)
  expect((await send(`${url}/api/v1/users/me`, { headers })).status).toBe(200)
})

it('of a session waits once for a database that is away', async () => {
  const username = `p-${randomUUID().slice(0, 8)}`
  const user = await auth.addUser(username)
  const headers = await signIn(username)
  const { path } = await (THINGS['a session'] as (typeof THINGS)[string])(user, headers)
  const away = Object.assign(new Error('connect'), { code: 'ECONNREFUSED' })
  const waits = vi.spyOn(auth.session.deps.db, 'transaction').mockRejectedValue(away)
  try {
    const remove = () => send(`${url}/api/v1/${path}`, { method: 'DELETE', headers: keyed(headers) })
    expect((await remove()).status).toBe(204)
    expect(waits).toHaveBeenCalledTimes(1)
    expect((await remove()).status).toBe(404)
  } finally {
    waits.mockRestore()
  }
})

it('has one winner if two requests meet', async () => {
  const username = `p-${randomUUID().slice(0, 8)}`
  const user = await auth.addUser(username)
  const headers = await signIn(username)
  for (const make of Object.values(THINGS)) {
    const { path } = await make(user, headers)
    const remove = () => send(`${url}/api/v1/${path}`, { method: 'DELETE', headers: keyed(headers) })
    const both = await Promise.all([remove(), remove()])
    expect(both.map(({ status }) => status).sort()).toEqual([204, 404])
  }
})
