import { randomBytes } from 'node:crypto'
import type { NatsConnection } from 'nats'
import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { measureRoom } from '../../apps/relay/room.ts'
import { connectNats, ensureStreams } from '../../apps/shared/events/events.ts'
import { linksOfProcess } from '../../apps/shared/links.ts'
import { createTelemetry } from '../../apps/shared/telemetry.ts'
import { serverUrl, testDatabase } from '../support/database.ts'

/** Resources that fill up before anything fails, as the relay reports them. */
const prefix = `t${randomBytes(5).toString('hex')}`
let database: Awaited<ReturnType<typeof testDatabase>>
let pool: pg.Pool
let nc: NatsConnection

beforeAll(async () => {
  database = await testDatabase('token')
  pool = new pg.Pool({ connectionString: database.url })
  pool.on('error', () => {})
  nc = await connectNats(serverUrl('NATS_URL'), 'test')
})
afterAll(async () => {
  await (await nc.jetstreamManager()).streams.delete(`${prefix}CATALOG`)
  await nc.close()
  await pool.end()
  await database.drop()
})

/** A separate reader: values that were read stay fresh for a second. */
const read = async (get: () => NatsConnection | undefined = () => nc) => {
  const telemetry = createTelemetry('test', { level: 'silent' })
  measureRoom(telemetry, pool, { get } as never, prefix)
  const text = await telemetry.metrics.metrics()
  return (name: string) => {
    const line = new RegExp(`^${name}\\{(?:stream="CATALOG",)?app="test"\\} (\\S+)$`, 'm').exec(text)
    return line ? Number(line[1]?.replace('Nan', 'NaN')) : undefined
  }
}

it('reports how much WAL a stalled replica holds back', async () => {
  const replica = await pool.connect()
  const slot = `room_${prefix}`
  try {
    await replica.query('select pg_create_physical_replication_slot($1, true, true)', [slot])
    const before = (await read())('signalbox_wal_retained_bytes') ?? Number.NaN
    await pool.query('create table filler as select md5(n::text) as text from generate_series(1, 20000) n')
    const { rows } = await pool.query<{ kept: number }>(
      'select pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::float8 as kept from pg_replication_slots where slot_name = $1',
      [slot],
    )
    expect(rows[0]?.kept).toBeGreaterThan(1_000_000)
    const after = (await read())('signalbox_wal_retained_bytes') ?? Number.NaN
    expect(after).toBeGreaterThan(before + 1_000_000)
  } finally {
    replica.release(true)
  }
})

it('reports 0 for an archive and a replica that do not exist', async () => {
  const value = await read()
  expect(value('signalbox_wal_unarchived_seconds')).toBe(0)
  expect(value('signalbox_replica_lag_seconds')).toBe(0)
})

it('a stream has the bytes of the setting from the next start on, and never fewer than it had', async () => {
  const links = linksOfProcess()
  const bytesAfter = async (setting: number | undefined) => {
    links.nats_stream_bytes = setting
    const jsm = await ensureStreams(nc, prefix, ['OPERATIONS'])
    return (await jsm.streams.info(`${prefix}OPERATIONS`)).config.max_bytes
  }
  const GIB = 1024 ** 3
  try {
    expect(await bytesAfter(undefined)).toBe(GIB)
    expect(await bytesAfter(2 * GIB)).toBe(2 * GIB)
    expect(await bytesAfter(undefined)).toBe(2 * GIB)
    await (await nc.jetstreamManager()).streams.delete(`${prefix}OPERATIONS`)
    // As after a restore, which makes the stream again.
    expect(await bytesAfter(2 * GIB)).toBe(2 * GIB)
  } finally {
    links.nats_stream_bytes = undefined
    await (await nc.jetstreamManager()).streams.delete(`${prefix}OPERATIONS`)
  }
})

it("reports the use of a stream's bytes, and nothing of streams while NATS is down", async () => {
  const jsm = await ensureStreams(nc, prefix, ['CATALOG'])
  const { config } = await jsm.streams.info(`${prefix}CATALOG`)
  await jsm.streams.update(`${prefix}CATALOG`, { ...config, max_bytes: 100_000 })
  expect((await read())('signalbox_stream_used_ratio')).toBe(0)
  await nc.jetstream().publish(`${prefix}.catalog.filler`, Buffer.alloc(85_000))
  expect((await read())('signalbox_stream_used_ratio')).toBeCloseTo(0.85, 2)
  expect((await read(() => undefined))('signalbox_stream_used_ratio')).toBeUndefined()
})
