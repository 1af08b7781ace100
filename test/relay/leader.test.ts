import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { NODE_ARGUMENTS } from '../../apps/platform/run/supervisor.ts'
import { startLeadership } from '../../apps/relay/leader.ts'
import { createTelemetry } from '../../apps/shared/telemetry.ts'
import { testDatabase } from '../support/database.ts'
import { until } from '../support/until.ts'

const { log } = createTelemetry('test', { level: 'silent' })
const ROOT = fileURLToPath(new URL('../..', import.meta.url))
/** A relay that only leads, as a process of its own. */
const LEADER = `
  import { startLeadership } from './apps/relay/leader.ts'
  import { createTelemetry } from './apps/shared/telemetry.ts'
  const lead = async () => ({ wake: () => {}, stop: async () => console.log('over') })
  const { leading } = startLeadership(process.argv[1], 'token', createTelemetry('test', { level: 'silent' }).log, lead)
  setInterval(() => leading() && console.log('leading'), 100)`
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

it('the lock of a relay whose process freezes is released, and the process knows it when it goes on', async () => {
  const child: ChildProcess = spawn(
    process.execPath,
    [...NODE_ARGUMENTS, '--input-type=module', '-e', LEADER, database.url],
    { cwd: ROOT, stdio: ['ignore', 'pipe', 'inherit'] },
  )
  const said = new Set<string>()
  child.stdout?.on('data', (bytes: Buffer) =>
    bytes
      .toString()
      .split('\n')
      .map((line) => said.add(line)),
  )
  let other: ReturnType<typeof startLeadership> | undefined
  try {
    await until(() => said.has('leading'), { what: 'the process leads' })
    child.kill('SIGSTOP')
    const relay = startLeadership(database.url, 'token', log, async () => ({ wake: () => {}, stop: async () => {} }))
    other = relay
    await until(() => relay.leading(), { what: 'the other leads', timeout_ms: 2 * TAKE_OVER_MS })
    expect(said).not.toContain('over')
    child.kill('SIGCONT')
    await until(() => said.has('over'), { what: 'the process stops', timeout_ms: TAKE_OVER_MS })
    expect(relay.leading()).toBe(true)
  } finally {
    const gone = once(child, 'exit')
    child.kill('SIGKILL')
    await Promise.all([gone, other?.stop()])
  }
}, 90_000)
