import { createHash, randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createReporter, listenForWork, type Work } from '../support/agent/agent.ts'
import { until } from '../support/until.ts'
import { must, type Platform, startPlatform } from './support/platform.ts'
import { spawnWorker, startWorker } from './support/worker.ts'

/** Work whose outcome is unknown: who gets it again, and what is said of it. */
let p: Platform
let worker: Awaited<ReturnType<typeof startWorker>>
let folder: string
let policy_file: string
let door: Awaited<ReturnType<typeof listenForWork>>
const given: Work[] = []

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-repeats-'))
  door = await listenForWork(async (work) => void given.push(work))
  const loopback = { scheme: 'http', host: '127.0.0.1', networks: ['127.0.0.0/8'], ports: ['1024-65535'] }
  const web = { destinations: [loopback], secrets: [], mode: 'http', endpoint: door.url, max_in_flight: 20 }
  policy_file = join(folder, 'policy.yaml')
  const pools = { default: { destinations: [], secrets: [] }, web }
  writeFileSync(policy_file, JSON.stringify({ format: 'signalbox/executor-policy@1', pools }))
  p = await startPlatform({
    env: { OPERATIONS__COMMANDS__WAIT_MS: '5000', WORKER__EXECUTORS__POLICY_FILE: policy_file },
  })
  worker = await startWorker(p, policy_file)
}, 90_000)
afterAll(async () => {
  await worker.stop()
  await p.stop()
  await door.close()
  rmSync(folder, { recursive: true })
  await worker.end()
})

const start = async (idempotent: boolean, start_s = 20) => {
  const timeouts = { run_s: 600, start_s, heartbeat_s: 5 }
  const job = { node_id: 'job', executor: 'external', pool: 'web', with: { job: 'greet', inputs: {} }, idempotent }
  const { operation_id } = await p.startOperation({ nodes: [{ ...job, timeouts }] })
  const path = `/v1/operations/${operation_id}`
  /** The last sign of life was this much earlier. */
  const age = (by: string) =>
    p.query(
      `update operations.executions set heartbeat_at = heartbeat_at - $2::interval where operation_id = $1 and closed_at is null`,
      [operation_id, by],
    )
  return {
    path,
    node: async () => must(await p.as('vic').get(`${path}/nodes/job`), 200).body,
    /** The handover with this number. */
    handed: (number: number) =>
      until(() => given.filter((work) => work.operation_id === operation_id)[number - 1], {
        timeout_ms: 60_000,
        what: `handover ${number}`,
      }),
    /** The agent that has begun is not heard from again. */
    lose: () => age('1 h'),
    age,
    /** The cancel was this much earlier. */
    wait: (by: string) =>
      p.query(
        `update operations.operation_control set cancelled_at = cancelled_at - $2::interval where operation_id = $1`,
        [operation_id, by],
      ),
  }
}
type Started = Awaited<ReturnType<typeof start>>
const ends = ({ node }: Started, state: string) =>
  until(async () => ((await node()).state === state ? node() : undefined), { timeout_ms: 110_000, what: state })
const line = (text: string) => ({
  seq: 1,
  time: new Date().toISOString(),
  stream: 'log' as const,
  level: 'info' as const,
  text,
})
const plan = (bytes: string) => {
  const sha256 = createHash('sha256').update(bytes).digest('hex')
  return { name: 'plan', kind: 'saved_plan', media_type: 'application/octet-stream', size: bytes.length, sha256 }
}
/** Sends one and the same message each time. */
const sending = (work: Work, phase: 'started') => {
  const { operation_id, node_id, attempt, generation, fence, results_url, execution_token } = work
  const ids = { result_id: randomUUID(), operation_id, node_id, attempt, generation, fence }
  const body = JSON.stringify({ ...ids, sequence: 1, phase })
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${execution_token}` }
  return async () => {
    const answer = await fetch(results_url, { method: 'POST', headers, body })
    return { ...((await answer.json()) as object), status: answer.status }
  }
}
const unknown = { error: { class: 'timeout', message: 'The tool had to be killed.' } }

it.each([
  ['reports that it does not know', (work: Work) => createReporter(work)('unknown', { ...unknown })],
  ['is lost', (_: Work, started: Started) => started.lose()],
])(
  'an agent %s: another one does the work again, with its own log and artifacts',
  async (_, go) => {
    const started = await start(true)
    const first = await started.handed(1)
    const one = createReporter(first)
    expect((await one('started')).status).toBe(200)
    expect((await one('progress', { lines: [line('by the first')], artifacts: [plan('one')] })).status).toBe(200)
    await go(first, started)
    const second = await started.handed(2)
    expect([second.key, second.attempt]).toEqual([first.key, first.attempt])
    expect(second.fence).toBeGreaterThan(first.fence)
    const two = createReporter(second)
    expect((await two('started')).status).toBe(200)
    expect((await one('succeeded')).code).toBe('stale_fence')
    expect((await two('progress', { lines: [line('by the second')], artifacts: [plan('two')] })).status).toBe(200)
    expect((await two('succeeded', { lines: [line('by the second')] })).status).toBe(200)
    const node = await ends(started, 'succeeded')
    expect(node.attempts).toHaveLength(1)
    const { lines } = must(await p.as('vic').get(`${started.path}/nodes/job/logs`), 200).body
    expect(lines.map(({ seq, text }: { seq: number; text: string }) => [seq, text])).toEqual([
      [1, 'by the first'],
      [2, 'by the second'],
    ])
  },
  120_000,
)

it.each([true, false])(
  'an agent that missed the answer to "started" begins no work that was given up meanwhile (may be repeated: %s)',
  async (idempotent) => {
    const started = await start(idempotent)
    const first = await started.handed(1)
    const begin = sending(first, 'started')
    expect(await begin()).toMatchObject({ status: 200, accepted: true, duplicate: false })
    await started.age('12 s')
    // A repeat in time is a sign of life: the agent counts from it.
    expect(await begin()).toMatchObject({ status: 200, accepted: true, duplicate: true, cancel_requested: false })
    await started.age('12 s')
    expect(await begin()).toMatchObject({ status: 200, duplicate: true })
    await started.lose()
    const second = idempotent && createReporter(await started.handed(2))
    if (second) expect((await second('started')).status).toBe(200)
    else await ends(started, 'outcome_unknown')
    expect(await begin()).toMatchObject({ status: 409, code: idempotent ? 'stale_fence' : 'attempt_closed' })
    if (second) expect((await second('succeeded')).status).toBe(200)
  },
  120_000,
)

it('the history tells once that the heartbeats of work that is over were refused, and separately how it ended', async () => {
  const started = await start(false)
  const report = createReporter(await started.handed(1))
  await report('started')
  expect((await report('succeeded')).status).toBe(200)
  await ends(started, 'succeeded')
  for (const phase of ['heartbeat', 'heartbeat', 'heartbeat', 'failed'] as const)
    expect(await report(phase, unknown)).toMatchObject({ status: 409, code: 'attempt_closed' })
  await report('heartbeat', { lines: [line('one'), { ...line('two'), seq: 2 }] })
  for (const seq of [1, 2, 2])
    expect(await report('heartbeat', { lines: [{ ...line('other'), seq }] })).toMatchObject({ code: 'log_conflict' })
  const { events } = must(await p.as('vic').get(`${started.path}/timeline?types=node.result_refused`), 200).body
  expect(events.map(({ data }: { data: { code: string; phase: string } }) => [data.code, data.phase])).toEqual([
    ['attempt_closed', 'heartbeat'],
    ['attempt_closed', 'failed'],
    ['log_conflict', 'heartbeat'],
    ['log_conflict', 'heartbeat'],
  ])
}, 60_000)

it('lines whose answer was lost come again near the end of the log, and count once', async () => {
  const started = await start(true)
  const report = createReporter(await started.handed(1))
  await report('started')
  expect((await report('heartbeat', { lines: [line('one')] })).status).toBe(200)
  await p.query(`update operations.node_attempts set log_bytes = $2 where operation_id = $1`, [
    started.path.split('/').at(-1),
    50 * 1024 * 1024 - 2,
  ])
  expect((await report('heartbeat', { lines: [line('one')] })).status).toBe(200)
  expect((await report('succeeded', { lines: [{ ...line('2'), seq: 2 }] })).status).toBe(200)
  await ends(started, 'succeeded')
  const { lines } = must(await p.as('vic').get(`${started.path}/nodes/job/logs`), 200).body
  expect(lines.map(({ text }: { text: string }) => text)).toEqual(['one', '2'])
}, 60_000)

it('the repeated answer to "started" tells of a cancel that was accepted in between', async () => {
  const started = await start(false)
  const work = await started.handed(1)
  const begin = sending(work, 'started')
  expect(await begin()).toMatchObject({ status: 200, cancel_requested: false })
  const cancel = (mode: string) => p.as('both').post(`${started.path}/cancel`, { reason: 'a test', mode })
  must(await cancel('graceful'), 200, 202)
  await started.wait('2 min')
  must(await cancel('force'), 200, 202)
  expect(await begin()).toMatchObject({ status: 200, duplicate: true, cancel_requested: true })
  expect((await createReporter(work)('failed', unknown)).status).toBe(200)
}, 120_000)

it('a step that may not be repeated waits for a person, and one that is never known does so after five handovers', async () => {
  const once = await start(false)
  const report = createReporter(await once.handed(1))
  await report('started')
  expect((await report('unknown', unknown)).status).toBe(200)
  expect((await ends(once, 'outcome_unknown')).error_message).toBe('The tool had to be killed.')
  const ever = await start(true)
  for (const number of [1, 2, 3, 4, 5]) {
    const report = createReporter(await ever.handed(number))
    await report('started')
    const ran = { ...unknown, ...(number === 1 && { executed: { tool: 'greet' } }) }
    expect((await report('unknown', ran)).status).toBe(200)
  }
  await ends(ever, 'outcome_unknown')
  expect(given.filter(({ operation_id }) => ever.path.endsWith(operation_id))).toHaveLength(5)
  const [attempt] = await p.query<{ executed: unknown }>(
    'select executed from operations.node_attempts where operation_id = $1',
    [ever.path.split('/').at(-1)],
  )
  expect(attempt?.executed).toMatchObject({ tool: 'greet' })
}, 120_000)

it('the work of a lost agent is never said to have had no effect', async () => {
  const left = await start(true, 10)
  const cancelled = await start(true, 10)
  for (const started of [left, cancelled]) {
    expect((await createReporter(await started.handed(1))('started')).status).toBe(200)
    await started.lose()
  }
  const next = await cancelled.handed(2)
  must(await p.as('olga').post(`${cancelled.path}/cancel`, { reason: 'a test' }), 200, 202)
  expect((await createReporter(next)('started')).code).toBe('attempt_closed')
  expect((await ends(cancelled, 'outcome_unknown')).error_message).toBe(
    'The operation was cancelled after its agent was lost.',
  )
  expect((await ends(left, 'outcome_unknown')).error_message).toMatch(/An agent was lost/)
}, 240_000)

it.each([
  ['the agent of work that may not be repeated', false],
  ['the last of five agents', true],
])(
  'a worker that dies as it gives up %s: no other agent gets the work',
  async (_, idempotent) => {
    await worker.stop()
    const doomed = spawnWorker(p, policy_file, 'external.after_close')
    const lost = await start(idempotent)
    const work = await lost.handed(1)
    expect((await createReporter(work)('started')).status).toBe(200)
    if (idempotent)
      await p.query(
        `insert into operations.executions select (jsonb_populate_record(e, jsonb_build_object(
           'token_sha256', md5(n::text) || md5(e.token_sha256), 'fence', e.fence - n, 'closed_at', e.created_at))).*
         from operations.executions e, generate_series(1, 4) n where e.operation_id = $1`,
        [work.operation_id],
      )
    await lost.lose()
    await doomed.ended
    worker = await startWorker(p, policy_file)
    expect((await ends(lost, 'outcome_unknown')).error_message).toBe('The agent was lost.')
    expect(given.filter(({ operation_id }) => operation_id === work.operation_id)).toHaveLength(1)
  },
  240_000,
)

it('an agent of work that is done once has a beat to be heard again, as after an outage; then its outcome is unknown', async () => {
  const started = await start(false)
  const work = await started.handed(1)
  const report = createReporter(work)
  expect((await report('started')).status).toBe(200)
  const resume = async () =>
    (await p.query('select resume from operations.node_attempts where operation_id = $1', [work.operation_id]))[0]
      ?.resume
  await started.age('60 s')
  await until(async () => (await resume())?.silent === true, { what: 'a look that finds silence' })
  expect((await report('heartbeat')).status).toBe(200)
  await until(async () => (await resume())?.silent === undefined, { what: 'a look that finds none' })
  await started.lose()
  const node = await ends(started, 'outcome_unknown')
  expect(node.attempts[0].error).toMatchObject({ message: expect.stringContaining('silent') })
}, 180_000)
