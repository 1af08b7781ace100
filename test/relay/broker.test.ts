import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { NatsConnection } from 'nats'
import type pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createPorts } from '../../apps/platform/base/ports.ts'
import { silentScreen } from '../../apps/platform/base/screen.ts'
import { locateNats, writeNatsConfig } from '../../apps/platform/servers/nats.ts'
import type { RelayDeps } from '../../apps/relay/deps.ts'
import { checkBroker } from '../../apps/relay/events/broker.ts'
import { findLost } from '../../apps/relay/events/lost.ts'
import { createPublisher, type PublisherDeps } from '../../apps/relay/events/publisher.ts'
import { createRestoreGuard, isRestoreHeld, raiseEpoch, renewStreams } from '../../apps/relay/events/restore.ts'
import { sequenceOnce } from '../../apps/relay/events/sequencer.ts'
import { republishRevocations } from '../../apps/relay/revocations.ts'
import { createMeters, leadSchema } from '../../apps/relay/schemas.ts'
import { connectNats, consume, ensureStreams, epochOf } from '../../apps/shared/events/events.ts'
import { holdNats } from '../../apps/shared/events/holder.ts'
import { linksOfProcess } from '../../apps/shared/links.ts'
import { createTelemetry } from '../../apps/shared/telemetry.ts'
import { createDb } from '../../db/client.ts'
import { createFence, refuseEvent } from '../../db/restore.ts'
import { testDatabase } from '../support/database.ts'
import { until } from '../support/until.ts'

/** A broker that loses acknowledged messages, and a consumer that existed before (reliability.md 4.8). */
const { log } = createTelemetry('test', { level: 'silent' })
const dir = mkdtempSync(join(tmpdir(), 'signalbox-broker-'))
const store = join(dir, 'store/jetstream/$G/streams/CATALOG')
let program: string
let config: string
let server: ChildProcess
let database: Awaited<ReturnType<typeof testDatabase>>
let pool: pg.Pool
let nc: NatsConnection
let consumer: { stop: () => Promise<void> }
const heard: string[] = []

const startServer = () => {
  server = spawn(program, ['-c', config], { stdio: 'ignore' })
}
const whileStopped = async (act: () => void) => {
  const gone = once(server, 'exit')
  server.kill('SIGKILL')
  await gone
  act()
  startServer()
  await until(() => nc.flush().then(() => true), { what: 'the connection' })
}

/** Writes events of the catalog, one resource each, and lets the relay carry them. */
const write = async (...names: string[]) => {
  await insert(...names)
  await carry()
}
const insert = async (...names: string[]) => {
  for (const name of names)
    await pool.query(
      `insert into catalog.outbox (event_id, agg_type, agg_id, agg_version, type, payload) values ($1, 'resource', $2, 1, 'resource.created', '{}')`,
      [randomUUID(), name],
    )
}
const carry = async (epoch = 0) => {
  while ((await sequenceOnce(pool, 'catalog', 1)) > 0);
  const { turn } = publisher({ epoch: () => epoch })
  while (await turn());
}
const publisher = (given: Partial<PublisherDeps>) =>
  createPublisher({ pool, schema: 'catalog', prefix: '', log, nats: () => nc, published: () => true, ...given })
const check = () => checkBroker(pool, nc, '', 'catalog', 'CATALOG', log)
const hears = (name: string) => until(async () => heard.includes(name), { what: `the consumer hears of ${name}` })

beforeAll(async () => {
  program = await locateNats(silentScreen)
  const port = await createPorts().take('nats', 0)
  config = writeNatsConfig(dir, port, [])
  startServer()
  database = await testDatabase('catalog', 'operations', 'identity', 'session')
  pool = createDb(database.url, { app: 'test', statement_timeout_ms: 10_000 }).pool
  await pool.query(`insert into catalog.relay_state (name, epoch, next) values ('relay', 1, 1)`)
  nc = await until(() => connectNats(`nats://127.0.0.1:${port}`, 'test').catch(() => undefined), {
    timeout_ms: 15_000,
    what: 'the server',
  })
  await ensureStreams(nc, '', ['CATALOG'])
  await check()
  consumer = await consume({
    nc,
    prefix: '',
    stream: 'CATALOG',
    durable: 'reader',
    handle: async ({ agg_id }) => void heard.push(String(agg_id)),
  })
}, 60_000)
afterAll(async () => {
  await consumer?.stop()
  await nc?.close()
  server?.kill('SIGKILL')
  await pool?.end()
  await database?.drop()
  rmSync(dir, { recursive: true, force: true })
})

it('republishes what a rolled back stream lost, and a consumer that was further on gets later events', async () => {
  await write('a1', 'a2')
  await hears('a2')
  cpSync(join(store, 'msgs'), join(dir, 'before'), { recursive: true })
  await write('a3', 'a4', 'a5', 'a6')
  await hears('a6')
  await check()
  await whileStopped(() => {
    rmSync(join(store, 'msgs'), { recursive: true })
    cpSync(join(dir, 'before'), join(store, 'msgs'), { recursive: true })
  })
  heard.length = 0
  expect(await check()).toBe(true)
  await carry()
  await write('a7')
  await hears('a3')
  await hears('a7')
}, 120_000)

it('republishes everything to a recreated stream, and its consumer is recreated with it', async () => {
  // Many, and one that the stream would no longer hold.
  await pool.query(
    `insert into catalog.outbox (event_id, agg_type, agg_id, agg_version, type, payload, occurred_at, pub_seq, js_seq, published_at)
     select gen_random_uuid(), 'resource', 'm' || n, 1, 'resource.created', '{}', now() - interval '8 days' * (n = 0)::int, 1000 + n, 1000 + n, now()
     from generate_series(0, 2500) n`,
  )
  await pool.query(`update catalog.relay_state set next = 4000 where name = 'relay'`)
  await whileStopped(() => rmSync(join(dir, 'store'), { recursive: true }))
  heard.length = 0
  expect(await check()).toBe(true)
  // None of their numbers is one of the new stream.
  expect(await check()).toBe(false)
  const { rows } = await pool.query('select count(*)::int as n from catalog.outbox where published_at is null')
  expect(rows[0].n).toBe(2507)
  // What came before an event is not done again.
  const acts: string[] = []
  const { turn } = publisher({ before: async ({ agg_id }) => acts.push(agg_id) > 0 })
  await turn()
  expect(acts).toEqual([])
  await pool.query(`update catalog.outbox set published_at = now() where agg_id like 'm%' and published_at is null`)
  await carry()
  await write('b1')
  await hears('a1')
  await hears('b1')
}, 120_000)

it('gives a rolled back stream its revocations again, though the outbox has lost no event', async () => {
  const auth = join(dir, 'store/jetstream/$G/streams/AUTH/msgs')
  const jsm = await ensureStreams(nc, '', ['AUTH'])
  const count = async () => (await jsm.streams.info('AUTH')).state.messages
  await nc.jetstream().publish('auth.test', '{}')
  cpSync(auth, join(dir, 'before-auth'), { recursive: true })
  const lose = () => {
    rmSync(auth, { recursive: true })
    cpSync(join(dir, 'before-auth'), auth, { recursive: true })
  }
  const checkAuth = () => checkBroker(pool, nc, '', 'identity', 'AUTH', log)
  await pool.query(`insert into identity.relay_state (name, epoch, next) values ('relay', 1, 1)`)
  await pool.query(
    `insert into session.revocations (event_id, session_id, user_id, reason, access_valid_until, occurred_at, actor_type, actor_id)
     values (gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 'logout', now(), now(), 'user', '')`,
  )
  await republishRevocations(pool, nc, '')
  expect([await checkAuth(), await count()]).toEqual([false, 2])
  await whileStopped(lose)
  expect([await checkAuth(), await checkAuth()]).toEqual([true, false])

  // No position shows a loss since the last check: whoever begins or comes back publishes them once more.
  const telemetry = createTelemetry('test', { level: 'silent' })
  const nats = holdNats(`nats://${nc.getServer()}`, 'relay', log)
  const deps = { config: { SIGNALBOX__NATS__PREFIX: '', RELAY__OUTBOX__POLL_MS: 20 }, telemetry, pool, nats }
  await until(() => nats.get(), { what: 'the connection of the relay' })
  const led = await leadSchema(deps as unknown as RelayDeps, 'identity', createMeters(telemetry, ['identity']))(1)
  try {
    await until(async () => (await count()) === 2, { what: 'the revocation at the start' })
    await pool.query(`update identity.relay_state set js_last_seq = 1 where name = 'relay'`)
    await whileStopped(lose)
    await until(async () => (await count()) === 2, { what: 'the revocation after the return' })
  } finally {
    await led.stop()
    await nats.close()
  }
}, 120_000)

it('goes on with a stream that cannot have the bytes of the setting', async () => {
  const links = linksOfProcess()
  links.nats_stream_bytes = 2 ** 50
  try {
    await expect(ensureStreams(nc, '', ['CATALOG'])).rejects.toThrow('insufficient storage')
    expect(await check()).toBe(false)
    await write('room')
    await hears('room')
    // One that is made only now, such as after a restore, has the least.
    const jsm = await ensureStreams(nc, 'made-late', ['CATALOG'], { raise: false })
    expect((await jsm.streams.info('made-lateCATALOG')).config.max_bytes).toBe(1024 ** 3)
  } finally {
    links.nats_stream_bytes = undefined
  }
})

it('holds everything back if the database was restored, until a person accepts it', async () => {
  const place = { pool, schema: 'catalog' as const, prefix: '' }
  const found: boolean[] = []
  const lead = () => createRestoreGuard({ ...place, log, found: (held) => found.push(held) })
  expect(await (await lead()).clear(nc)).toBe(true)
  expect(await isRestoreHeld(place)).toBe(false)

  await write('c1', 'c2', 'c3')
  await hears('c3')
  await pool.query(`delete from catalog.outbox where agg_id in ('c2', 'c3')`)
  await pool.query(`update catalog.relay_state set next = next - 2 where name = 'relay'`)
  const guard = await lead()
  expect(await guard.clear(undefined)).toBe(true)
  expect(await guard.clear(nc)).toBe(false)
  expect(guard.isHeld()).toBe(true)
  // The numbers have advanced, and another relay takes over.
  await pool.query(`update catalog.relay_state set next = next + 100 where name = 'relay'`)
  const other = await lead()
  expect(await other.clear(nc)).toBe(false)
  expect(found).toEqual([false, false, true, true])

  // A consumer that was away in the meantime accepts none of it, before and after.
  const { db, close } = createDb(database.url, { app: 'test' })
  const fence = createFence(db, 'catalog')
  const believed: string[] = []
  const refused: string[] = []
  const careful = await consume({
    nc,
    prefix: '',
    stream: 'CATALOG',
    durable: 'careful',
    fenced: async (message) => {
      const why = refuseEvent(await fence(), 'catalog', epochOf(message))
      if (why) refused.push(why)
      return why
    },
    handle: async ({ agg_id }) => void believed.push(String(agg_id)),
  })
  await until(() => refused.length > 0, { what: 'a message is held' })
  expect(believed).toEqual([])

  heard.length = 0
  const lost = await findLost(pool, nc, '', 'catalog')
  expect(lost.map(({ agg_id }) => agg_id)).toEqual(['c2', 'c3'])
  await renewStreams(place, nc, lost)
  await raiseEpoch(place, 1, lost)
  expect([await guard.clear(nc), await other.clear(nc)]).toEqual([true, true])
  expect([guard.epoch(), other.epoch()]).toEqual([1, 1])
  await carry(1)
  await write('c4')
  await hears('c1')
  await hears('c4')
  expect(heard).not.toContain('c2')
  // Events of another epoch wait, whatever delivers them.
  await until(() => believed.includes('c1'), { what: 'the careful consumer goes on' })
  expect(believed).not.toContain('c2')
  expect(believed).not.toContain('c4')
  expect(refused).toContain('it was told in epoch 0, and the database is in epoch 1')
  const { rows } = await pool.query<{ pub_seq: string }>(`select pub_seq from catalog.outbox where agg_id = 'c4'`)
  expect(Number(rows[0]?.pub_seq)).toBeGreaterThan(Math.max(...lost.map(({ pub_seq }) => Number(pub_seq))))
  await careful.stop()
  await close()
  expect(await (await lead()).clear(nc)).toBe(true)
}, 120_000)

it('gives no number before it has asked the broker about a restore', async () => {
  await insert('d1')
  await carry(1)
  await pool.query(`delete from catalog.outbox where agg_id = 'd1'`)
  await pool.query(`update catalog.relay_state set next = next - 1 where name = 'relay'`)
  await pool.query(`delete from catalog.relay_state where name = 'checked catalog'`)
  await insert('early')
  const telemetry = createTelemetry('test', { level: 'silent' })
  const nats = holdNats(`nats://${nc.getServer()}`, 'relay', log)
  const deps = { config: { SIGNALBOX__NATS__PREFIX: '', RELAY__OUTBOX__POLL_MS: 20 }, telemetry, pool, nats }
  await until(() => nats.get(), { what: 'the connection of the relay' })
  const led = await leadSchema(deps as unknown as RelayDeps, 'catalog', createMeters(telemetry, ['catalog']))(1)
  try {
    await until(() => isRestoreHeld({ pool }), { what: 'the restore is noticed' })
  } finally {
    await led.stop()
    await nats.close()
  }
  // The alert takes the most that any relay reports, also one that no longer leads.
  expect(await telemetry.metrics.metrics()).toMatch(/^signalbox_broker_ahead\{schema="catalog",app="test"\} 0$/m)
  // Every turn has ended: none that began before the restore was noticed is left to give a number.
  const { rows } = await pool.query(`select pub_seq from catalog.outbox where agg_id = 'early'`)
  expect(rows).toEqual([{ pub_seq: null }])
}, 60_000)
