import { createHmac, randomUUID } from 'node:crypto'
import { eq, isNull, sql } from 'drizzle-orm'
import type { NatsConnection } from 'nats'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { republishRevocations } from '../../apps/relay/revocations.ts'
import { deriveKey } from '../../apps/shared/data/digest.ts'
import { connectNats, ensureStreams, streamName } from '../../apps/shared/events/events.ts'
import { killKey } from '../../apps/token/keys.service.ts'
import { keySettingsOf } from '../../apps/token/wire.ts'
import { outbox as credentialOutbox } from '../../db/credential/tables.ts'
import { outbox as identityOutbox } from '../../db/identity/tables.ts'
import { auth_events, revocations } from '../../db/session/tables.ts'
import { outbox as tokenOutbox } from '../../db/token/tables.ts'
import { type Auth, bearer, PASSWORD, send, startAuth } from '../session/support/auth.ts'
import { serverUrl } from '../support/database.ts'
import { until } from '../support/until.ts'

let auth: Auth
let nats: NatsConnection

const NEW_PASSWORD = 'Another-Staple-9-Lantern'
const AWAY = 'nats://127.0.0.1:9'
const login = (username: string, password = PASSWORD, url = auth.session.url) =>
  send(`${url}/auth/login`, { body: { username, password } })
const refresh = (token: unknown) => send(`${auth.session.url}/auth/refresh`, { body: { refresh_token: token } })
const published = async (table: typeof identityOutbox | typeof credentialOutbox | typeof tokenOutbox) => {
  const rows = await auth.session.deps.db.select().from(table).where(isNull(table.published_at))
  return rows.length === 0
}

beforeAll(async () => {
  auth = await startAuth()
  nats = await connectNats(serverUrl('NATS_URL'), 'test')
})
afterAll(async () => {
  await auth?.stop()
  const jsm = await nats.jetstreamManager()
  await jsm.streams.delete(streamName(auth.vars.SIGNALBOX__NATS__PREFIX ?? '', 'AUTH')).catch(() => {})
  await nats.close()
})

describe('the message of a new password', () => {
  it('ends every session of an older password, however late it arrives, and none of the new one', async () => {
    const gateway = await auth.addGateway()
    const eva = await auth.addUser('eva')
    const old = (await login('eva')).body
    await auth.setPassword(eva, NEW_PASSWORD)
    const fresh = (await login('eva', NEW_PASSWORD)).body
    const relay = await auth.addRelay()
    await until(() => published(credentialOutbox))
    expect((await refresh(old.refresh_token)).status).toBe(401)
    const me = (token: unknown) => send(`${gateway.url}/api/v1/users/me`, { headers: bearer(token) })
    expect((await me(old.access_token)).status).toBe(401)
    expect((await me(fresh.access_token)).status).toBe(200)
    expect((await refresh(fresh.refresh_token)).status).toBe(200)
    const ended = await auth.session.deps.db.select().from(revocations).where(eq(revocations.user_id, eva.id))
    expect(ended.map(({ reason }) => reason)).toEqual(['password_changed'])
    await relay.stop()
  })

  it("leaves the sessions after a person's own change alone", async () => {
    await auth.addUser('olga')
    const one = (await login('olga')).body
    const changed = await send(`${auth.session.url}/v1/users/me/password`, {
      body: { current_password: PASSWORD, new_password: NEW_PASSWORD },
      headers: { ...bearer(one.access_token), 'idempotency-key': randomUUID() },
    })
    const other = (await login('olga', NEW_PASSWORD)).body
    const relay = await auth.addRelay()
    await until(() => published(credentialOutbox))
    expect((await refresh(changed.body.refresh_token)).status).toBe(200)
    expect((await refresh(other.refresh_token)).status).toBe(200)
    await relay.stop()
  })

  it('refuses a login that proved the old password and is still in flight', async () => {
    const relay = await auth.addRelay()
    const bob = await auth.addUser('bob')
    await until(() => published(credentialOutbox))
    const slow = await auth.addSession()
    const { credential } = slow.deps
    // Between the password's check and the session, the password is replaced, with all its consequences.
    slow.deps.credential = {
      ...credential,
      verifyPassword: async (request, options) => {
        const answer = await credential.verifyPassword(request, options)
        await auth.setPassword(bob, NEW_PASSWORD)
        await until(() => published(credentialOutbox))
        return answer
      },
    }
    const answer = await login('bob', PASSWORD, slow.url)
    expect([answer.status, answer.body.code]).toEqual([401, 'invalid_credentials'])
    expect(await auth.redis.keys(`${auth.prefix}sess:{${bob.id}}:*`)).toEqual([])
    await relay.stop()
  })
})

/** How many revocations the stream of this prefix holds. */
const count = async (prefix: string): Promise<number> => {
  const jsm = await nats.jetstreamManager()
  const info = await jsm.streams.info(streamName(prefix, 'AUTH'), {
    subjects_filter: `${prefix}.auth.session.revoked.v1`,
  })
  return Object.values(info.state.subjects ?? {}).reduce((sum, n) => sum + n, 0)
}

describe('the late message of a status or of a recovery', () => {
  it.each([
    ['a status', 'auth.user.status_changed.v1'],
    ['a recovery', 'auth.user.recovery_started.v1'],
  ])('ends the sessions from before it, and none that began since: %s', async (_name, type) => {
    const gateway = await auth.addGateway()
    const username = `uma-${randomUUID().slice(0, 8)}`
    const { id: user_id } = await auth.addUser(username)
    const [old, fresh] = [(await login(username)).body, (await login(username)).body]
    const occurred_at = Date.now() - 60_000
    const sessionOf = (token: unknown) =>
      JSON.parse(Buffer.from(String(token).split('.')[1] ?? '', 'base64url').toString()).session_id as string
    const key = `${auth.prefix}sess:{${user_id}}:${sessionOf(old.access_token)}`
    await auth.redis.hset(key, 'created_at', (occurred_at - 1000) * 1000)
    await auth.identity_deps.db
      .insert(identityOutbox)
      .values({
        ...{ event_id: randomUUID(), agg_type: 'user', agg_id: user_id, agg_version: 1000, type },
        ...{ payload: { user_id, to: 'DISABLED' }, occurred_at: new Date(occurred_at).toISOString() },
      })
    const relay = await auth.addRelay()
    await until(() => published(identityOutbox))
    expect((await refresh(old.refresh_token)).status).toBe(401)
    const me = (token: unknown) => send(`${gateway.url}/api/v1/users/me`, { headers: bearer(token) })
    expect([(await me(old.access_token)).status, (await me(fresh.access_token)).status]).toEqual([401, 200])
    expect((await refresh(fresh.refresh_token)).status).toBe(200)
    await relay.stop()
  })
})

describe('the relay of the auth apps', () => {
  it('wakes at each commit, not at its poll', async () => {
    const ada = await auth.addUser('ada', ['admin'])
    const cora = await auth.addUser('cora')
    const relay = await auth.addRelay({ RELAY__OUTBOX__POLL_MS: '60000' })
    // A new leader begins with the earlier rows.
    for (const table of [identityOutbox, credentialOutbox]) await until(() => published(table))
    const admin = (await login('ada')).body
    const command = (path: string, body: object) =>
      send(`${auth.vars.GATEWAY__UPSTREAM__IDENTITY_URL}${path}`, {
        body,
        headers: { ...bearer(admin.access_token), 'idempotency-key': randomUUID() },
      })
    const granted = await command('/v1/admin/grants', { subject_type: 'user', subject_id: cora.id, role: 'viewer' })
    expect(granted.status).toBe(201)
    await until(() => published(identityOutbox))
    await auth.setPassword(ada, NEW_PASSWORD)
    await until(() => published(credentialOutbox))
    const again = (await login('ada', NEW_PASSWORD)).body
    admin.access_token = again.access_token
    const disabled = await command(`/v1/admin/users/${cora.id}/disable`, { reason: 'left' })
    expect([disabled.status, disabled.body.sessions]).toEqual([200, 'revoked'])
    const settings = keySettingsOf(auth.token_deps.config, auth.identity_deps.db)
    expect(await killKey(settings, auth.token_deps.keyring.active()?.kid ?? '')).toBe('killed')
    await until(() => published(tokenOutbox))
    await relay.stop()
  })

  it('stores audit rows of session with their MAC', async () => {
    const relay = await auth.addRelay()
    const dora = await auth.addUser('dora')
    await login('dora', 'Wrong-Horse-7-Battery')
    const row = await until(async () => {
      const rows = await auth.session.deps.db
        .select()
        .from(auth_events)
        .where(eq(auth_events.object, `user:${dora.id}`))
      return rows.find(({ action }) => action === 'login')
    })
    const [secret] = auth.session.deps.config.secrets
    expect(row.mac).toBe(createHmac('sha256', deriveKey(secret, 'audit')).update(row.body).digest('hex'))
    await relay.stop()
  })

  it('sets aside an entry that can never be stored, and continues behind it', async () => {
    const audit = `${auth.prefix}auth:audit`
    const revoked = `${auth.prefix}auth:revoked`
    await auth.redis.xadd(audit, '*', 'row', '{')
    await auth.redis.xadd(revoked, '*', 'event_id', 'no-uuid', 'reason', 'logout')
    const hal = await auth.addUser('hal')
    const { body } = await login('hal')
    await send(`${auth.session.url}/auth/logout`, { method: 'POST', headers: bearer(body.access_token) })
    const relay = await auth.addRelay()
    for (const stream of [audit, revoked]) {
      await until(async () => (await auth.redis.xlen(stream)) === 0)
      expect(await auth.redis.xlen(`${stream}:parked`)).toBe(1)
    }
    const stored = await auth.session.deps.db
      .select()
      .from(auth_events)
      .where(eq(auth_events.object, `user:${hal.id}`))
    // The same relay carries the message about hal's first password, which leaves its own rows.
    const said = stored.map(({ action }) => action).filter((action) => action.startsWith('log'))
    expect(said.sort()).toEqual(['login', 'logout'])
    await relay.stop()
  })

  it('that died with revocations in flight, unsent or just sent, leaves each to be sent once', async () => {
    const stream = `${auth.prefix}auth:revoked`
    const prefix = auth.vars.SIGNALBOX__NATS__PREFIX ?? ''
    await ensureStreams(nats, prefix, ['AUTH'])
    await auth.redis.xgroup('CREATE', stream, 'relay', '$', 'MKSTREAM').catch(() => {})
    const { id: user_id } = await auth.addUser('ida')
    for (let i = 0; i < 2; i++) {
      const { body } = await login('ida')
      await send(`${auth.session.url}/auth/logout`, { method: 'POST', headers: bearer(body.access_token) })
    }
    const { db } = auth.session.deps
    const mine = eq(revocations.user_id, user_id)
    await db.delete(revocations).where(mine)
    const before = await count(prefix)
    const taken = await auth.redis.xreadgroup('GROUP', 'relay', 'relay', 'STREAMS', stream, '>')
    const entries = (taken as [string, [string, string[]][]][])[0]?.[1] ?? []
    expect(entries).toHaveLength(2)
    const fields = entries[1]?.[1] ?? []
    const msgID = fields[fields.indexOf('event_id') + 1] as string
    await nats.jetstream().publish(`${prefix}.auth.session.revoked.v1`, '{}', { msgID })

    const relay = await auth.addRelay()
    await until(async () => (await auth.redis.xlen(stream)) === 0)
    expect((await count(prefix)) - before).toBe(2)
    expect(await db.select().from(revocations).where(mine)).toHaveLength(2)
    await relay.stop()
  })

  it('stores all revocations while NATS is down, however many', async () => {
    const { db } = auth.session.deps
    const ids = Array.from({ length: 450 }, () => randomUUID())
    const at = new Date().toISOString()
    const user_id = randomUUID()
    const add = auth.redis.pipeline()
    for (const session_id of ids) {
      const event = { event_id: randomUUID(), session_id, user_id, reason: 'logout', access_valid_until: at }
      const by = { occurred_at: at, request_id: '', actor_type: 'system', actor_id: '' }
      add.xadd(`${auth.prefix}auth:revoked`, '*', ...Object.entries({ ...event, ...by }).flat())
    }
    await add.exec()
    const cut = await auth.addRelay({ RELAY__NATS__URL: AWAY })
    const mine = eq(revocations.user_id, user_id)
    await until(async () => (await db.select().from(revocations).where(mine)).length === ids.length, {
      what: 'all rows',
      timeout_ms: 20_000,
    })
    await cut.stop()
    await auth.redis.del(`${auth.prefix}auth:revoked`)
    await db.delete(revocations).where(mine)
  })

  it('keeps revocations in Postgres while NATS is down, publishes each once when it is back, and again for a new broker', async () => {
    const { db } = auth.session.deps
    const gus = await auth.addUser('gus')
    const { body } = await login('gus')
    await send(`${auth.session.url}/auth/logout`, { method: 'POST', headers: bearer(body.access_token) })
    const mine = eq(revocations.user_id, gus.id)
    await db.delete(revocations).where(mine)
    const cut = await auth.addRelay({ RELAY__NATS__URL: AWAY })
    const row = await until(async () => (await db.select().from(revocations).where(mine))[0])
    await cut.stop()

    const prefix = auth.vars.SIGNALBOX__NATS__PREFIX ?? ''
    await ensureStreams(nats, prefix, ['AUTH'])
    const before = await count(prefix)
    const relay = await auth.addRelay()
    await until(async () => (await auth.redis.xlen(`${auth.prefix}auth:revoked`)) === 0)
    expect(await count(prefix)).toBe(before + 1)

    const lost = `${prefix}x`
    await ensureStreams(nats, lost, ['AUTH'])
    await db.update(revocations).set({ occurred_at: '2020-01-01T00:00:00Z' }).where(eq(revocations.reason, 'logout'))
    await db.update(revocations).set({ occurred_at: new Date().toISOString() }).where(mine)
    const rows = await db.select().from(revocations)
    const recent = rows.filter(({ occurred_at }) => new Date(occurred_at).getTime() > Date.now() - 16 * 60_000)
    expect(await republishRevocations(relay.deps.pool, nats, lost)).toBe(recent.length)
    expect(await count(lost)).toBe(recent.length)
    expect(row.reason).toBe('logout')
    await relay.stop()
    await (await nats.jetstreamManager()).streams.delete(streamName(lost, 'AUTH'))
  })
  it('that fills a recreated stream ends no session of a person enabled since', async () => {
    const { id: user_id } = await auth.addUser('nia')
    const prefix = auth.vars.SIGNALBOX__NATS__PREFIX ?? ''
    const first = await auth.addRelay()
    const old = (await login('nia')).body
    await auth.identity_deps.db
      .insert(identityOutbox)
      .values({
        ...{ event_id: randomUUID(), agg_type: 'user', agg_id: user_id, agg_version: 1000 },
        ...{ type: 'auth.user.status_changed.v1', payload: { user_id, to: 'DISABLED' } },
      })
    await until(() => published(identityOutbox))
    expect((await refresh(old.refresh_token)).status).toBe(401)
    await first.stop()

    const since = (await login('nia')).body
    const { streams } = await nats.jetstreamManager()
    await streams.delete(streamName(prefix, 'AUTH'))
    const second = await auth.addRelay()
    const last_by_subj = `${prefix}.auth.user.status_changed.v1`
    await until(() => streams.getMessage(streamName(prefix, 'AUTH'), { last_by_subj }), { what: 'the event again' })
    expect((await refresh(since.refresh_token)).status).toBe(200)
    await second.stop()
  })
  it('outlives the end of a connection in its transaction', async () => {
    const { deps, stop } = await auth.addRelay()
    const client = await deps.pool.connect()
    const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
    await client.query('begin')
    await client.query('select 1')
    const ended = new Promise((resolve) => client.once('end', resolve))
    await auth.session.deps.db.execute(sql`select pg_terminate_backend(${rows[0]?.pid})`)
    await ended
    await expect(client.query('select 1')).rejects.toThrow()
    client.release(true)
    await stop()
  })
})
