import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { NatsConnection } from 'nats'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { takeWork } from '../../apps/operations/agents/work.ts'
import type { Work } from '../../apps/shared/contracts/engine/executions.ts'
import { connectNats } from '../../apps/shared/events/events.ts'
import { EXECUTION_STREAM, ensureExecution } from '../../apps/shared/events/execution-stream.ts'
import { serverUrl } from '../support/database.ts'

/** Agents of one pool with different labels, and their work in one stream. */
let nc: NatsConnection
const prefix = `work${randomUUID().slice(0, 8)}`
beforeAll(async () => {
  nc = await connectNats(serverUrl('NATS_URL'), 'agents')
})
afterAll(async () => {
  const jsm = await nc.jetstreamManager()
  await jsm.streams.delete(`${prefix}${EXECUTION_STREAM}`)
  await nc.close()
})

const workFor = (node_id: string, region: string): Work => ({
  ...{ v: 1, operation_id: randomUUID(), node_id, attempt: 1, generation: 1, fence: 1, key: 'key' },
  ...{ execution_token: 'exe_', deadline_at: '2099-01-01T00:00:00Z', start_before: '2099-01-01T00:00:00Z' },
  ...{ heartbeat_s: 5, results_url: 'http://a', artifacts_url: 'http://a', job: 'greet', inputs: {} },
  labels: { region },
})

const TRIES = 6
/** Pieces in step stay so until an agent asks anew. */
const WAIT_MS = 40_000

it('an idle agent gets the work with its labels, though other work and another agent take turns with it', async () => {
  const deps = { config: { SIGNALBOX__NATS__PREFIX: prefix } as never, nats: { get: () => nc } as never }
  const waitOf = async (pool: string): Promise<number> => {
    await ensureExecution(nc, prefix, pool)
    let over = false
    const ask = async (region: string): Promise<Work> => {
      const labels = { region }
      for (;;) {
        const work = await takeWork(
          deps,
          pool,
          { labels, wait_ms: WAIT_MS },
          () => over,
          async () => {},
        )
        if (work || over) return work as Work
      }
    }
    const other = ask('eu1')
    await delay(300)
    const fitting = ask('us1')
    await delay(300)
    const started = performance.now()
    // The one that asked first is offered the first piece.
    for (const [node_id, region] of [
      ['ours', 'us1'],
      ['nobodys', 'nowhere'],
    ] as const)
      await nc.jetstream().publish(`${prefix}.execution.${pool}`, JSON.stringify(workFor(node_id, region)))
    const late = delay(60_000).then(() => undefined)
    const got = await Promise.race([fitting, late])
    const waited = performance.now() - started
    over = true
    expect(got?.node_id ?? 'ours').toBe('ours')
    void other.catch(() => {})
    return Math.round(waited)
  }
  const waits = await Promise.all(Array.from({ length: TRIES }, (_, at) => waitOf(`pool${at}`)))
  expect(Math.max(...waits)).toBeLessThan(WAIT_MS - 10_000)
}, 120_000)
