import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createLags } from '../../apps/relay/lags.ts'
import { createTelemetry } from '../../apps/shared/telemetry.ts'
import { testDatabase } from '../support/database.ts'

let database: Awaited<ReturnType<typeof testDatabase>>
let pool: pg.Pool
const telemetry = createTelemetry('test', { level: 'silent' })

beforeAll(async () => {
  database = await testDatabase('identity', 'credential', 'session', 'token', 'catalog', 'operations')
  pool = new pg.Pool({ connectionString: database.url })
  pool.on('error', () => {})
})
afterAll(async () => {
  await database.drop()
})

const event = (columns: object) => {
  const row = {
    event_id: randomUUID(),
    agg_type: 'resource',
    agg_id: randomUUID(),
    agg_version: 1,
    type: 't',
    payload: '{}',
    ...columns,
  }
  const names = Object.keys(row)
  return pool.query(
    `insert into catalog.outbox (${names.join(', ')}) values (${names.map((_, i) => `$${i + 1}`).join(', ')})`,
    Object.values(row),
  )
}
const command = (
  status: string,
  age: string,
  [operation_id, seq, next_try_at] = [randomUUID(), 1, null] as unknown[],
) =>
  pool.query(
    `insert into operations.operation_commands (command_id, operation_id, seq, kind, class, payload, actor, status, created_at, next_try_at)
     values ($1, $2, $3, 'pause', 'stop', '{}', '{}', $4, clock_timestamp() - $5::interval, $6)`,
    [randomUUID(), operation_id, seq, status, age, next_try_at],
  )

it('reports waiting rows, their age and stalled ones; nothing at all while the database is down', async () => {
  await event({ occurred_at: '2020-01-01', pub_seq: 1, published_at: '2020-01-01' })
  await event({ occurred_at: new Date(Date.now() - 90_000), pub_seq: 2 })
  await event({})
  await event({ occurred_at: '2020-01-01', pub_seq: 3, parked: 'too large' })
  for (const [status, age] of [
    ['pending', '40 s'],
    ['sending', '70 s'],
    ['applied', '1 h'],
    ['withdrawn', '1 h'],
  ] as const)
    await command(status, age)
  // A start that waits for leases is not the engine's fault, nor are the commands behind it.
  const held = randomUUID()
  await command('pending', '2 h', [held, 1, 'infinity'])
  await command('pending', '1 h', [held, 2, null])
  // Its leases were granted 20 s ago.
  await command('pending', '3 h', [randomUUID(), 1, new Date(Date.now() - 20_000)])
  for (const version of [1, 2])
    await pool.query(
      `insert into operations.dead_letter (consumer, event_id, agg_type, agg_id, agg_version, error, tries) values ('catalog', $1, 'resource', 'r1', $2, 'poison', 5)`,
      [randomUUID(), version],
    )
  await pool.query(
    `insert into token.key_events (at, actor, action, object, outcome, body, mac) values (clock_timestamp() - interval '50 s', 'system', 'a', 'key:1', 'done', '{}', 'm')`,
  )
  const lags = createLags(pool, telemetry)
  expect(await lags()).toEqual({ events_unpublished: 2, events_parked: 1, commands_unsent: 3 })

  const text = await telemetry.metrics.metrics()
  const value = (name: string, label = '') =>
    Number(new RegExp(`^${name}\\{${label}app="test"\\} (\\S+)$`, 'm').exec(text)?.[1])
  expect(value('signalbox_outbox_unsequenced', 'schema="catalog",')).toBe(1)
  expect(value('signalbox_outbox_unpublished', 'schema="catalog",')).toBe(2)
  expect(value('signalbox_outbox_parked', 'schema="catalog",')).toBe(1)
  expect(value('signalbox_outbox_unpublished', 'schema="identity",')).toBe(0)
  expect(value('signalbox_outbox_oldest_seconds', 'schema="catalog",')).toBeCloseTo(90, -1.5)
  expect(value('signalbox_commands_undelivered')).toBe(3)
  expect(value('signalbox_commands_undelivered_oldest_seconds')).toBeCloseTo(70, -1.5)
  expect(value('signalbox_commands_in_doubt')).toBe(1)
  expect(value('signalbox_commands_withdrawn_total')).toBe(1)
  expect(value('signalbox_dead_letters', 'consumer="catalog",')).toBe(2)
  expect(value('signalbox_held_aggregates', 'consumer="catalog",')).toBe(1)
  expect(value('signalbox_audit_unsealed_oldest_seconds', 'schema="token",')).toBeCloseTo(50, -1.5)

  expect(value('signalbox_siem_behind', 'log="token.key_events",')).toBe(0)

  await pool.end()
  const away = createTelemetry('away', { level: 'silent' })
  createLags(pool, away)
  const blind = await away.metrics.metrics()
  expect(blind).toMatch(/^signalbox_commands_in_doubt\{app="away"\} Nan$/m)
  expect(blind).not.toMatch(/^signalbox_outbox_unpublished\{/m)
})
