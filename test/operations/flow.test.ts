import { Runtime } from '@temporalio/worker'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTelemetry } from '../../apps/shared/telemetry.ts'
import { loadWorkerConfig } from '../../apps/worker/config.ts'
import { createDeps } from '../../apps/worker/deps.ts'
import { startWorkers } from '../../apps/worker/workers.ts'
import { serverUrl } from '../support/database.ts'
import { until } from '../support/until.ts'
import { type Platform, startPlatform } from './platform.ts'

let p: Platform
let worker: ReturnType<typeof startWorkers>
let close: () => Promise<void>

/** The whole way of a command: API, relay, Temporal, worker, and back into the rows. */
beforeAll(async () => {
  p = await startPlatform({ env: { OPERATIONS__COMMANDS__WAIT_MS: '5000' } })
  const config = loadWorkerConfig({
    WORKER__DATABASE__URL: p.config.OPERATIONS__DATABASE__URL,
    WORKER__NATS__URL: serverUrl('NATS_URL'),
    WORKER__TEMPORAL__ADDRESS: serverUrl('TEMPORAL_ADDRESS'),
    WORKER__TEMPORAL__QUEUE_PREFIX: p.prefix,
    WORKER__SERVICE__KEY_FILE: p.services.keyFile('worker'),
    SIGNALBOX__NATS__PREFIX: p.prefix,
  })
  const deps = createDeps(config, createTelemetry('worker'))
  worker = startWorkers(deps)
  close = deps.close
  await until(() => worker.isPolling(), { timeout_ms: 60_000, what: 'the worker polling' })
}, 90_000)
afterAll(async () => {
  await worker.stop()
  await close()
  await p.stop()
  await Runtime.instance().shutdown()
})

const reason = 'a test'
const noop = (node_id: string, delay_ms: number, ...depends_on: string[]) => ({
  node_id,
  executor: 'noop',
  with: { delay_ms },
  depends_on,
})
const status = async (operation_id: string) =>
  (await p.as('olga').get(`/v1/operations/${operation_id}`)).body.status as string
const reaches = (operation_id: string, ...wanted: string[]) =>
  until(async () => wanted.includes(await status(operation_id)), {
    timeout_ms: 30_000,
    what: `status ${wanted.join(' or ')}`,
  })
const attempts = async (operation_id: string) =>
  (await p.query('select node_id, attempt from operations.node_attempts where operation_id = $1', [operation_id]))
    .length
const policy = { approvals: { groups: [{ group: 'netops', min: 1 }] } }

describe('an operation', () => {
  it('starts, waits at its gate, goes on when it is approved, and ends with evidence', async () => {
    const graph = { nodes: [noop('a', 0), noop('b', 0, 'a')], gates: [{ gate_id: 'go', policy, guards: ['b'] }] }
    const { operation_id, started, intent_id } = await p.startOperation(graph)
    expect(started.status).toBe(201)
    expect(started.body.command).toMatchObject({ kind: 'start', status: 'applied' })
    const path = `/v1/operations/${operation_id}`
    await until(async () => (await p.as('eva').get(`${path}/gates/go`)).body.status === 'waiting', {
      timeout_ms: 30_000,
    })
    await reaches(operation_id, 'blocked')
    expect((await p.as('vic').get(path)).body.blocked_on).toMatchObject([{ kind: 'gate', id: 'go' }])
    const approved = await p.as('eva').post(`${path}/gates/go/approve`, await p.seen(operation_id, 'go'))
    expect(approved).toMatchObject({ status: 200, body: { status: 'approved' } })
    await reaches(operation_id, 'succeeded')
    const { body } = await p.as('vic').get(path)
    expect(body).toMatchObject({ progress: { total: 2, done: 2 }, pending_commands: [], open_gates: [] })
    const evidence = (await p.as('vic').get(`${path}/evidence?limit=1000`)).body
    expect(evidence.head).toEqual(body.evidence_head)
    expect(evidence.records.map(({ kind }: { kind: string }) => kind)).toEqual(
      expect.arrayContaining(['plan', 'start', 'vote', 'gate_decision', 'node_result', 'end']),
    )
    const gate = (await p.as('vic').get(`${path}/gates/go`)).body
    expect(gate.consumed_at).not.toBeNull()
    expect((await p.as('vic').get(`/v1/intents/${intent_id}`)).body.status).toBe('fulfilled')
  }, 90_000)

  it('starts nothing after a pause was answered, and goes on after a resume', async () => {
    const graph = { nodes: Array.from({ length: 12 }, (_, n) => noop(`n${n}`, 150, ...(n === 0 ? [] : [`n${n - 1}`]))) }
    const { operation_id } = await p.startOperation(graph)
    const path = `/v1/operations/${operation_id}`
    await until(async () => (await attempts(operation_id)) > 1, { timeout_ms: 30_000 })
    expect((await p.as('olga').post(`${path}/pause`, { reason })).status).toBe(200)
    const begun = await attempts(operation_id)
    await reaches(operation_id, 'paused')
    expect(await attempts(operation_id)).toBe(begun)
    const inFlight = await p.query(
      `select 1 from operations.node_attempts where operation_id = $1 and phase in ('dispatched', 'running')`,
      [operation_id],
    )
    expect(inFlight).toEqual([])
    expect(await p.as('olga').post(`${path}/resume`, { reason })).toMatchObject({
      status: 200,
      body: { command: { status: 'applied' } },
    })
    await reaches(operation_id, 'succeeded')
    expect(await attempts(operation_id)).toBe(12)
  }, 90_000)

  it('holds at a rejected gate, and a retry asks again', async () => {
    const graph = {
      nodes: [noop('a', 0), noop('b', 0, 'a'), noop('c', 0, 'b')],
      gates: [{ gate_id: 'go', policy, guards: ['b'] }],
    }
    const { operation_id } = await p.startOperation(graph)
    const path = `/v1/operations/${operation_id}`
    const waiting = (round: number) =>
      until(
        async () => {
          const { body } = await p.as('eva').get(`${path}/gates/go`)
          return body.status === 'waiting' && body.round === round
        },
        { timeout_ms: 30_000, what: `round ${round}` },
      )
    await waiting(1)
    expect((await p.as('eva').post(`${path}/gates/go/reject`, { round: 1, comment: 'not yet' })).status).toBe(200)
    await until(async () => (await p.as('olga').get(`${path}/nodes/b`)).body.state === 'failed', { timeout_ms: 30_000 })
    const dry = (await p.as('olga').post(`${path}/nodes/b/retry`, { reason, dry_run: true })).body
    expect(dry.effect.rearmed_gates).toEqual(['go'])
    expect(await p.as('olga').post(`${path}/nodes/b/retry`, { reason })).toMatchObject({
      status: 200,
      body: { command: { status: 'applied' }, reset_cone: dry.effect.reset_cone },
    })
    await waiting(2)
    expect((await p.as('eva').post(`${path}/gates/go/approve`, await p.seen(operation_id, 'go'))).status).toBe(200)
    await reaches(operation_id, 'succeeded')
  }, 90_000)

  it('goes on after a failed node was skipped, and ends with an exception', async () => {
    const unkept = { outputs: { n: '/n' }, outputs_schema: { type: 'object', required: ['n'] } }
    const graph = { nodes: [{ ...noop('a', 0), ...unkept }, noop('b', 0, 'a')] }
    const { operation_id } = await p.startOperation(graph)
    const path = `/v1/operations/${operation_id}`
    await until(async () => (await p.as('olga').get(`${path}/nodes/a`)).body.state === 'failed', { timeout_ms: 30_000 })
    const skipped = await p
      .as('olga')
      .post(`${path}/interventions`, { type: 'skip', node_id: 'a', payload: {}, reason })
    expect(skipped).toMatchObject({ status: 201, body: { intervention: { status: 'applied' } } })
    await reaches(operation_id, 'succeeded_with_exceptions')
  }, 90_000)

  it('is cancelled while it waits, whoever approves at that moment', async () => {
    const graph = { nodes: [noop('a', 0), noop('b', 0, 'a')], gates: [{ gate_id: 'go', policy, guards: ['b'] }] }
    const { operation_id } = await p.startOperation(graph)
    const path = `/v1/operations/${operation_id}`
    await until(async () => (await p.as('eva').get(`${path}/gates/go`)).body.status === 'waiting', {
      timeout_ms: 30_000,
    })
    const seen = await p.seen(operation_id, 'go')
    const [approved, cancelled] = await Promise.all([
      p.as('eva').post(`${path}/gates/go/approve`, seen),
      p.as('olga').post(`${path}/cancel`, { reason }),
    ])
    expect(cancelled.status).toBe(200)
    await reaches(operation_id, 'cancelled')
    const [b] = await p.query<{ state: string }>(
      `select state from operations.nodes where operation_id = $1 and node_id = 'b'`,
      [operation_id],
    )
    // Later than the cancel: the gate is closed. Earlier, but not sent yet: the cancel takes the approval back.
    const answers = ['gate_not_waiting/cancelled', 'invalid_state_transition/already_cancelling']
    if (approved.status !== 200) expect(answers).toContain(`${approved.body.category}/${approved.body.code}`)
    expect(['cancelled', 'succeeded']).toContain(b?.state)
    const pending = await p.query(
      `select kind from operations.operation_commands where operation_id = $1 and status in ('pending', 'sending', 'delivered')`,
      [operation_id],
    )
    expect(pending).toEqual([])
  }, 90_000)
})
