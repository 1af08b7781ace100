import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createServiceKey } from '../../apps/shared/service/keys.ts'
import { serverUrl } from '../support/database.ts'
import { until } from '../support/until.ts'
import { createEngine, type Engine, node, TEST_POLICY } from './support/engine.ts'
import { startTarget, type Target } from './support/target.ts'

const MAIN = new URL('../../apps/worker/main.ts', import.meta.url).pathname
const ROOT = new URL('../..', import.meta.url).pathname
/** As the workflow sets it (launch.ts). */
const HEARTBEAT_MS = 10_000
let engine: Engine
let target: Target
let key_file: string
const started: ChildProcess[] = []

beforeAll(async () => {
  target = await startTarget()
  engine = await createEngine()
  await engine.stopWorkers()
  key_file = join(mkdtempSync(join(tmpdir(), 'worker-')), 'worker.json')
  writeFileSync(key_file, JSON.stringify(createServiceKey().private_jwk), { mode: 0o600 })
})
afterAll(async () => {
  for (const worker of started) worker.kill('SIGKILL')
  target.close()
  await engine.close()
})

/** The worker as a separate process, on this test's database and queues. */
const startWorker = (crash_at?: string): ChildProcess => {
  const worker = spawn(process.execPath, [MAIN], {
    cwd: ROOT,
    stdio: 'ignore',
    env: {
      ...process.env,
      WORKER__DATABASE__URL: engine.database_url,
      WORKER__NATS__URL: serverUrl('NATS_URL'),
      WORKER__INTERNAL__PORT: '0',
      WORKER__SERVICE__KEY_FILE: key_file,
      WORKER__TEMPORAL__ADDRESS: serverUrl('TEMPORAL_ADDRESS'),
      WORKER__TEMPORAL__QUEUE_PREFIX: engine.prefix,
      WORKER__EXECUTORS__POLICY_FILE: TEST_POLICY,
      SIGNALBOX__NATS__PREFIX: engine.prefix,
      ...(crash_at !== undefined && { SIGNALBOX_CRASH_AT: crash_at }),
    },
  })
  started.push(worker)
  return worker
}

it.each([
  ['before the effect', 'activity.after_claim'],
  ['after the effect', 'activity.after_effect'],
])(
  'killed %s, every effect happens once and what cannot be repeated waits for a person',
  async (_when, point) => {
    target.effects.length = 0
    target.calls.length = 0
    const call = (node_id: string, idempotent: boolean, depends_on: string[] = []) =>
      node(node_id, {
        executor: 'http',
        idempotent,
        depends_on,
        with: { request: { method: 'POST', url: `${target.url}/${node_id}`, body: {} } },
      })
    const repeatable = await engine.start({ nodes: [call('a', true), call('b', true, ['a']), call('c', true, ['b'])] })
    const doomed = startWorker(`${point}@2`)
    await once(doomed, 'exit')
    const second = startWorker()
    expect((await engine.ends(repeatable)).status).toBe('succeeded')
    expect(target.paths()).toEqual(['/a', '/b', '/c'])
    const keys = target.calls.map(({ key }) => key)
    expect(new Set(keys)).toEqual(new Set(['a', 'b', 'c'].map((id) => `${repeatable}:${id}:1`)))
    second.kill('SIGKILL')
    await once(second, 'exit')

    target.effects.length = 0
    target.calls.length = 0
    const once_only = await engine.start({ nodes: [call('x', false), call('y', false, ['x'])] })
    await once(startWorker(`${point}@2`), 'exit')
    const last = startWorker()
    await engine.statusIs(once_only, 'blocked', 60_000)
    expect(await engine.read.states(once_only)).toEqual({ x: 'succeeded', y: 'outcome_unknown' })
    expect(target.calls.filter(({ path }) => path === '/y').length).toBeLessThanOrEqual(1)
    last.kill('SIGKILL')
    await once(last, 'exit')
  },
  180_000,
)

it('stopped for longer than its heartbeat, the worker continues as if it had never been away: each effect happens once', async () => {
  target.effects.length = 0
  target.calls.length = 0
  let released = false
  target.answer('/slow/done', () => ({ status: 200, body: { done: released } }))
  const operation_id = await engine.start({
    nodes: [
      node('slow', {
        executor: 'http',
        idempotent: true,
        timeouts: { run_s: 120 },
        with: {
          request: { method: 'POST', url: `${target.url}/slow`, body: {} },
          poll: {
            request: { method: 'GET', url: `${target.url}/slow/done` },
            until: 'response.body.done',
            interval_s: 1,
            timeout_s: 100,
          },
        },
      }),
      node('after', { depends_on: ['slow'] }),
    ],
  })
  const worker = startWorker()
  await until(() => target.calls.some(({ path }) => path === '/slow/done'), {
    timeout_ms: 60_000,
    what: 'the first look',
  })
  worker.kill('SIGSTOP')
  await delay(HEARTBEAT_MS + 4000)
  worker.kill('SIGCONT')
  released = true
  expect((await engine.ends(operation_id)).status).toBe('succeeded')
  expect(target.effects.filter(({ path }) => path === '/slow')).toHaveLength(1)
  worker.kill('SIGKILL')
  await once(worker, 'exit')
}, 120_000)

it('killed during a watch, the next worker continues at the same sample', async () => {
  target.calls.length = 0
  const request = { method: 'GET', url: `${target.url}/watched` }
  const operation_id = await engine.start({
    nodes: [
      node('w', {
        executor: 'watch',
        idempotent: true,
        with: { for_s: 8, every_s: 2, checks: [{ name: 'health', request }] },
      }),
    ],
  })
  const probes = () => target.calls.filter(({ path }) => path === '/watched').length
  const doomed = startWorker()
  await until(() => probes() === 3, { what: 'the third sample' })
  doomed.kill('SIGKILL')
  await once(doomed, 'exit')
  const next = startWorker()
  expect((await engine.ends(operation_id)).status).toBe('succeeded')
  // The third sample is taken again only if the worker died before it was recorded.
  expect([5, 6]).toContain(probes())
  next.kill('SIGKILL')
  await once(next, 'exit')
}, 120_000)
