import { randomUUID } from 'node:crypto'
import type { NatsConnection } from 'nats'
import type pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createPublisher } from '../../apps/relay/events/publisher.ts'
import { sequenceOnce } from '../../apps/relay/events/sequencer.ts'
import { connectNats, ensureStreams, streamName } from '../../apps/shared/events/events.ts'
import { createTelemetry } from '../../apps/shared/telemetry.ts'
import { createDb } from '../../db/client.ts'
import { serverUrl, testDatabase } from '../support/database.ts'

const log = createTelemetry('test', { level: 'silent' }).log
const prefix = `t${randomUUID().slice(0, 8)}`
let database: Awaited<ReturnType<typeof testDatabase>>
let pool: pg.Pool
let nats: NatsConnection

beforeAll(async () => {
  database = await testDatabase('operations')
  pool = createDb(database.url, { app: 'test', max: 20, statement_timeout_ms: 10_000 }).pool
  nats = await connectNats(serverUrl('NATS_URL'), 'test')
  await ensureStreams(nats, prefix, ['OPERATIONS'])
  await pool.query(`insert into operations.relay_state (name, epoch, next) values ('relay', 7, 1)`)
})
afterAll(async () => {
  const jsm = await nats.jetstreamManager()
  await jsm.streams.delete(streamName(prefix, 'OPERATIONS'))
  await nats.close()
  await pool.end()
  await database.drop()
})

/** Writes `count` events of one aggregate as a command does: row lock first, outbox row last, some transactions rolled back. */
const write = async (agg_id: string, count: number) => {
  await pool.query(
    `insert into operations.projection_version (consumer, agg_type, agg_id, ver) values ('writer', 'operation', $1, 0) on conflict do nothing`,
    [agg_id],
  )
  for (let i = 0; i < count; i++) {
    const client = await pool.connect()
    try {
      await client.query('begin')
      const { rows } = await client.query(
        `update operations.projection_version set ver = ver + 1 where consumer = 'writer' and agg_id = $1 returning ver`,
        [agg_id],
      )
      await client.query(
        `insert into operations.outbox (event_id, agg_type, agg_id, agg_version, type, payload) values ($1, 'operation', $2, $3, 'operation.changed', '{}')`,
        [randomUUID(), agg_id, rows[0].ver],
      )
      await client.query(i % 7 === 3 ? 'rollback' : 'commit')
    } finally {
      client.release()
    }
  }
}

describe('sequencer', () => {
  it('numbers every committed event once, without gaps, in the order of each aggregate, under eight writers', async () => {
    const aggregates = Array.from({ length: 8 }, (_, i) => `op-${i % 4}`)
    let writing = true
    const numbering = (async () => {
      while (writing || (await sequenceOnce(pool, 'operations', 7))) await sequenceOnce(pool, 'operations', 7)
    })()
    await Promise.all(aggregates.map((agg_id) => write(agg_id, 40)))
    writing = false
    await numbering
    await sequenceOnce(pool, 'operations', 7)

    const { rows } = await pool.query<{ pub_seq: string; agg_id: string; agg_version: string }>(
      'select pub_seq, agg_id, agg_version from operations.outbox order by pub_seq',
    )
    expect(rows.map((row) => Number(row.pub_seq))).toEqual(rows.map((_, i) => i + 1))
    for (const agg_id of new Set(aggregates)) {
      const versions = rows.filter((row) => row.agg_id === agg_id).map((row) => Number(row.agg_version))
      expect(versions).toEqual(versions.map((_, i) => i + 1))
    }
  })

  it('refuses a relay of a past epoch', async () => {
    await write('op-epoch', 1)
    await expect(sequenceOnce(pool, 'operations', 6)).rejects.toThrow(/another relay leads/)
    await sequenceOnce(pool, 'operations', 7)
  })
})

describe('publisher', () => {
  const publisher = (connection: () => NatsConnection | undefined) =>
    createPublisher({ pool, schema: 'operations', prefix, nats: connection, log, published: () => true })
  const unpublished = async () =>
    Number((await pool.query('select count(*) from operations.outbox where published_at is null')).rows[0].count)

  it('keeps everything while NATS is down, and publishes each event once, in order, when it is back', async () => {
    const before = await unpublished()
    await expect(publisher(() => undefined).turn()).rejects.toThrow('NATS is unavailable')
    expect(await unpublished()).toBe(before)

    const turn = publisher(() => nats).turn
    while (await turn());
    expect(await unpublished()).toBe(0)
    const jsm = await nats.jetstreamManager()
    expect((await jsm.streams.info(streamName(prefix, 'OPERATIONS'))).state.messages).toBe(before)
  })

  it('does the acts before an event once, however often it tries to publish it', async () => {
    const { rows } = await pool.query(
      'update operations.outbox set published_at = null, js_seq = null returning event_id',
    )
    const acts: string[] = []
    let connection: NatsConnection | undefined
    // Each turn by another relay: the row remembers, and no process.
    const turn = () =>
      createPublisher({
        ...{ pool, schema: 'operations', prefix, nats: () => connection, log, published: () => true },
        before: async ({ event_id }) => {
          acts.push(event_id)
          if (acts.length === 1) throw new Error('session is away')
          return true
        },
      }).turn()
    for (let i = 0; i < 3; i++) await expect(turn()).rejects.toThrow()
    connection = nats
    while (await turn());
    expect(await unpublished()).toBe(0)
    expect(new Set(acts).size).toBe(rows.length)
    // The one that failed is done again.
    expect(acts.length).toBe(rows.length + 1)
  })

  it('does not publish an event twice that was published but not marked', async () => {
    await pool.query('update operations.outbox set published_at = null where pub_seq <= 20')
    const jsm = await nats.jetstreamManager()
    const before = (await jsm.streams.info(streamName(prefix, 'OPERATIONS'))).state.messages
    const turn = publisher(() => nats).turn
    while (await turn());
    expect(await unpublished()).toBe(0)
    expect((await jsm.streams.info(streamName(prefix, 'OPERATIONS'))).state.messages).toBe(before)
  })
})
