import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { endUserSessions } from '../../apps/session/sessions/end.ts'
import { startLink } from '../support/link.ts'
import { startOwnRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'
import { type Auth, PASSWORD, send, startAuth } from './support/auth.ts'

/** reliability.md 4.9, 4.11: sessions on a Redis that has replicas, and on a different Redis than before. */

type Tokens = { access_token: string; refresh_token: string }
let auth: Auth

const claims = (token: string) =>
  JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as { sub: string; session_id: string }
const login = async (url: string): Promise<Tokens> => {
  const answer = await send(`${url}/auth/login`, { body: { username: 'eva', password: PASSWORD } })
  expect(answer.status).toBe(200)
  return answer.body as Tokens
}
const refresh = (url: string, refresh_token: string, key: string = randomUUID()) =>
  send(`${url}/auth/refresh`, { body: { refresh_token }, headers: { 'idempotency-key': key } })
/** Sends the same request until a replica has its change: a busy machine may take longer than a session waits. */
const untilReplicated = (url: string, refresh_token: string, key: string = randomUUID()) =>
  until(async () => {
    const answer = await refresh(url, refresh_token, key)
    expect([200, 503]).toContain(answer.status)
    return answer.status === 200 ? answer : undefined
  })

beforeAll(async () => {
  auth = await startAuth()
  await auth.addUser('eva')
})
afterAll(() => auth?.stop())

describe('with SESSION__REDIS__WAIT_REPLICAS', () => {
  it('a rotation and a logout count once a replica has them; without one they are 503, and the same request succeeds later', async () => {
    const primary = await startOwnRedis()
    const replica = await startOwnRedis()
    const { url } = await auth.addSession({
      SESSION__REDIS__URL: primary.url,
      SESSION__REDIS__WAIT_REPLICAS: '1',
      SESSION__REFRESH__RETRY_WINDOW_S: '60',
    })
    try {
      await replica.follow(primary.url)
      const [first, ended] = [await login(url), await login(url)]
      const { sub, session_id } = claims(first.access_token)
      const stored = () => replica.client.hget(`${auth.prefix}sess:{${sub}}:${session_id}`, 'gen')
      const next = await untilReplicated(url, first.refresh_token)
      expect(Number(await stored())).toBeGreaterThan(0)

      await replica.promote()
      await until(async () => (await primary.client.info('replication')).includes('connected_slaves:0'))
      const { access_token, refresh_token } = next.body as Tokens
      const key = randomUUID()
      const alone = await refresh(url, refresh_token, key)
      expect([alone.status, alone.body.code, alone.body.retryable]).toEqual([503, 'dependency_down', true])
      // It has not rotated, so no repeat is a replay: not of a client without keys, and however late.
      for (let i = 0; i < 2; i++) expect((await refresh(url, refresh_token)).status).toBe(503)
      const logoutOf = (token: string) =>
        send(`${url}/auth/logout`, { method: 'POST', headers: { authorization: `Bearer ${token}` } })
      for (let i = 0; i < 2; i++) expect((await logoutOf(ended.access_token)).status).toBe(503)
      const audited = await primary.client.xrange(`${auth.prefix}auth:audit`, '-', '+')
      const rows = audited.map(([, [, row]]) => JSON.parse(row ?? '{}') as { action: string })
      expect(rows.filter(({ action }) => action === 'logout')).toHaveLength(1)

      await replica.follow(primary.url)
      await untilReplicated(url, refresh_token, key)
      expect(await primary.client.xlen(`${auth.prefix}auth:revoked`)).toBe(1)
      await until(async () => (await logoutOf(access_token)).status === 204)
      expect(await stored()).toBeNull()
    } finally {
      await Promise.all([primary.stop(), replica.stop()])
    }
  })
})

it('ending nothing while a replica is missing adds no row to the audit log, however often the relay repeats it', async () => {
  const audit = vi.fn()
  const replicated = async () => Promise.reject(new Error('no replica'))
  const deps = { ...auth.session.deps, audit, store: { ...auth.session.deps.store, replicated } }
  const ended = endUserSessions(deps, { user_id: randomUUID() }, 'admin', { actor_type: 'system', request_id: 'test' })
  await expect(ended).rejects.toThrow('no replica')
  expect(audit).not.toHaveBeenCalled()
})

describe('an audit stream that nobody empties', () => {
  it('states how many rows had to go', async () => {
    const prefix = `${auth.prefix}full_`
    const { url } = await auth.addSession({ AUTH__REDIS__PREFIX: prefix })
    const stream = `${prefix}auth:audit`
    const add = auth.redis.pipeline()
    for (let n = 0; n < 100_100; n++) add.xadd(stream, '*', 'row', '{}')
    await add.exec()
    await send(`${url}/auth/login`, { body: { username: 'eva', password: 'wrong' } })
    const rows = await until(async () => {
      const newest = await auth.redis.xrevrange(stream, '+', '-', 'COUNT', 2)
      const told = newest.map(([, [, row]]) => JSON.parse(row ?? '{}')).find(({ action }) => action === 'data_loss')
      return told && (JSON.parse(told.body).details as { rows: number }).rows
    })
    expect(rows).toBeGreaterThanOrEqual(100)
    await auth.redis.del(stream)
  })
})

describe('the same Redis after a lost connection', () => {
  it('is served at once, without Postgres', async () => {
    const own = await startOwnRedis()
    const postgres = await startLink(auth.vars.SESSION__DATABASE__URL ?? '')
    const session = { SESSION__REDIS__URL: own.url, SESSION__DATABASE__URL: postgres.url }
    const { url, deps } = await auth.addSession(session)
    try {
      const { access_token } = await login(url)
      postgres.cut()
      const lost = once(deps.redis, 'close')
      await own.client.client('KILL', 'TYPE', 'normal')
      await lost
      await until(() => deps.redis.status === 'ready' || undefined)
      const headers = { authorization: `Bearer ${access_token}` }
      await until(async () => {
        const { status } = await send(`${url}/auth/logout`, { method: 'POST', headers })
        return status === 204 || undefined
      })
    } finally {
      postgres.stop()
      await own.stop()
    }
  })
})

describe('a replaced Redis', () => {
  it('revives no session, although it has the epoch: revocations are applied again before any request is served', async () => {
    const primary = await startOwnRedis()
    const stale = await startOwnRedis()
    const link = await startLink(primary.url)
    const { url, deps } = await auth.addSession({ SESSION__REDIS__URL: link.url })
    try {
      const [ended, kept] = [await login(url), await login(url)]
      await stale.follow(primary.url)
      await stale.promote()
      const headers = { authorization: `Bearer ${ended.access_token}` }
      expect((await send(`${url}/auth/logout`, { method: 'POST', headers })).status).toBe(204)
      const { sub, session_id } = claims(ended.access_token)
      const record = `${auth.prefix}sess:{${sub}}:${session_id}`
      const before = [record, `${auth.prefix}auth:epoch`].map((key) => stale.client.exists(key))
      expect(await Promise.all(before)).toEqual([1, 1])

      link.turnTo(stale.url)
      await until(() => deps.redis.status !== 'ready' || undefined)
      const served = await until(
        async () => {
          const answer = await refresh(url, ended.refresh_token)
          return answer.status === 503 ? undefined : answer
        },
        { what: 'session to come back' },
      )
      expect([served.status, served.body.code]).toEqual([401, 'invalid_grant'])
      expect(await stale.client.exists(record)).toBe(0)
      expect(await stale.client.exists(`${auth.prefix}deny:{${sub}}:${session_id}`)).toBe(1)
      expect((await refresh(url, kept.refresh_token)).status).toBe(200)
    } finally {
      link.stop()
      await Promise.all([primary.stop(), stale.stop()])
    }
  })
})
