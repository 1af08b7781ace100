import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { startLeadership } from '../../apps/relay/leader.ts'
import { createTelemetry } from '../../apps/shared/telemetry.ts'
import { testDatabase } from '../support/database.ts'
import { until } from '../support/until.ts'

const { log } = createTelemetry('test', { level: 'silent' })
/** Two relays must not be without a leader for longer. */
const TAKE_OVER_MS = 15_000
let database: Awaited<ReturnType<typeof testDatabase>>
let pool: pg.Pool
beforeAll(async () => {
  database = await testDatabase('token')
  pool = new pg.Pool({ connectionString: database.url, max: 2 })
})
afterAll(async () => {
  await pool.end()
  await database.drop()
})

it('one of two relays leads; once its connection dies the other does, with a higher epoch, and the first waits', async () => {
  const epochs: number[] = []
  const working = new Set<string>()
  const relays = ['a', 'b'].map((name) => ({
    name,
    ...startLeadership(database.url, 'token', log, async (epoch) => {
      epochs.push(epoch)
      working.add(name)
      return { wake: () => {}, stop: async () => void working.delete(name) }
    }),
  }))
  const leaders = () => relays.filter((relay) => relay.leading()).map(({ name }) => name)
  const lose = () =>
    pool.query(
      "select pg_terminate_backend(pid) from pg_locks join pg_stat_activity using (pid) where locktype = 'advisory' and application_name = 'relay:token' and granted",
    )
  try {
    for (const term of [1, 2, 3]) {
      await until(() => leaders().length === 1 && epochs.length === term, {
        what: `leader ${term}`,
        timeout_ms: TAKE_OVER_MS,
      })
      expect([...working]).toEqual(leaders())
      if (term < 3) await lose()
    }
    expect(epochs).toEqual(epochs.toSorted((a, b) => a - b))
    expect(new Set(epochs).size).toBe(3)
  } finally {
    await Promise.all(relays.map((relay) => relay.stop()))
  }
  expect([...working]).toEqual([])
}, 60_000)
