import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createHttpApp } from '../../apps/shared/http/app.ts'
import { AUTH_CODES } from '../../apps/shared/http/edge-codes.ts'
import { measurePool } from '../../apps/shared/process/pool.ts'
import { createTelemetry } from '../../apps/shared/telemetry.ts'
import { createDb } from '../../db/client.ts'
import { testDatabase } from '../support/database.ts'
import { until } from '../support/until.ts'

let database: Awaited<ReturnType<typeof testDatabase>>
beforeAll(async () => {
  database = await testDatabase('token')
})
afterAll(() => database.drop())

it('reports the running build, and counts requests that were not answered in time', async () => {
  const telemetry = createTelemetry('test', { level: 'silent' })
  const app = createHttpApp({ telemetry, codes: AUTH_CODES, deadline_ms: 40 })
  app.get('/slow', async () => delay(400, {}))
  app.get('/quick', async () => ({}))
  expect((await app.inject('/quick')).statusCode).toBe(200)
  expect((await app.inject('/slow')).statusCode).toBe(503)
  const text = await telemetry.metrics.metrics()
  expect(text).toMatch(/^signalbox_build_info\{version="\d+\.\d+\.\d+",node="v\d+\.\d+\.\d+",app="test"\} 1$/m)
  expect(text).toMatch(/^signalbox_deadline_exceeded_total\{app="test"\} 1$/m)
  await app.close()
})

it('reports the connections of a pool and the wait for one, by statements and by transactions', async () => {
  const telemetry = createTelemetry('test', { level: 'silent' })
  const { db, pool, close } = createDb(database.url, { app: 'test', max: 1 })
  measurePool(telemetry, pool)
  const metric = async (name: string) =>
    Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(await telemetry.metrics.metrics())?.[1])
  const connections = (state: string) => metric(`signalbox_pg_pool_connections\\{state="${state}",app="test"\\}`)
  const long = db.transaction((tx) => tx.execute('select pg_sleep(0.4)'))
  const second = pool.query('select 1')
  await until(async () => (await connections('waiting')) === 1, { what: 'the second waits' })
  expect(await connections('busy')).toBe(1)
  await Promise.all([long, second])
  expect([await connections('busy'), await connections('idle'), await connections('waiting')]).toEqual([0, 1, 0])
  expect(await metric('signalbox_pg_pool_wait_seconds_count\\{app="test"\\}')).toBe(2)
  expect(await metric('signalbox_pg_pool_wait_seconds_sum\\{app="test"\\}')).toBeGreaterThan(0.3)
  await close()
})
