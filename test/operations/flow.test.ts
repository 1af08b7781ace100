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
  p = await startPlatform({ instances: 2, env: { OPERATIONS__COMMANDS__WAIT_MS: '5000' } })
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

describe('a running graph', () => {
  const waitingAt = async (operation_id: string, gate_id: string) =>
    until(
      async () => (await p.as('eva').get(`/v1/operations/${operation_id}/gates/${gate_id}`)).body.status === 'waiting',
      { timeout_ms: 30_000, what: `gate ${gate_id} waiting` },
    )
  const behindGate = async () => {
    const graph = {
      nodes: [noop('a', 0), noop('b', 0, 'a'), noop('c', 0, 'b'), noop('d', 0, 'c')],
      gates: [{ gate_id: 'go', policy, guards: ['c'] }],
    }
    const { operation_id } = await p.startOperation(graph)
    await waitingAt(operation_id, 'go')
    return { operation_id, path: `/v1/operations/${operation_id}` }
  }
  const inserted = [
    { op: 'add_node', node: noop('check', 0, 'b') },
    { op: 'add_dependency', node_id: 'c', depends_on: 'check' },
    { op: 'remove_node', node_id: 'd' },
  ]

  it('takes an approved patch over: the gate asks again, the new node runs first, the removed one never', async () => {
    const { operation_id, path } = await behindGate()
    const before = await p.seen(operation_id, 'go')
    const proposal = { base_revision: 1, changes: inserted, reason }
    const dry = await p.as('olga').post(`${path}/patches`, { ...proposal, dry_run: true })
    expect(dry).toMatchObject({ status: 200, body: { effect: { held_nodes: ['c', 'd'], rearmed_gates: ['go'] } } })
    const proposed = await p.as('olga').post(`${path}/patches`, proposal)
    expect(proposed).toMatchObject({
      status: 201,
      body: {
        status: 'awaiting_approval',
        diff_graph: { added: ['check'], removed: ['d'] },
        required: { quorum: 1, groups: [{ group: 'netops', min: 1 }] },
      },
    })
    const patch = `${path}/patches/${proposed.body.patch_id}`
    expect((await p.as('vic').get(path)).body.open_patches).toMatchObject([{ patch_id: proposed.body.patch_id }])
    // Approving the old question changes nothing: what is held does not start.
    expect((await p.as('eva').post(`${path}/gates/go/approve`, before)).status).toBe(200)
    await until(async () => (await p.as('vic').get(path)).body.blocked_on[0]?.kind === 'patch', { timeout_ms: 30_000 })
    const approved = await p.as('eva').post(`${patch}/approve`, { reviewed_digest: proposed.body.digest })
    expect(approved).toMatchObject({ status: 200, body: { status: 'applied', command: { status: 'applied' } } })
    const after = await p.seen(operation_id, 'go')
    expect(after.round).toBe(before.round + 1)
    expect(after.reviewed_digest).not.toBe(before.reviewed_digest)
    expect(await p.as('eva').post(`${path}/gates/go/approve`, before)).toMatchObject({
      status: 409,
      body: { code: 'round_superseded' },
    })
    expect((await p.as('eva').post(`${path}/gates/go/approve`, after)).status).toBe(200)
    await reaches(operation_id, 'succeeded')
    const began = await p.query<{ node_id: string }>(
      'select node_id from operations.node_attempts where operation_id = $1 order by fence',
      [operation_id],
    )
    expect(began.map(({ node_id }) => node_id)).toEqual(['a', 'b', 'check', 'c'])
    expect((await p.as('vic').get(`${path}/graph`)).body).toMatchObject({ plan_revision: 2 })
    expect((await p.as('vic').get(`${path}/graph?revision=1`)).body.nodes).toHaveLength(4)
    const types = (await p.as('vic').get(`${path}/timeline?limit=1000`)).body.events.map(
      ({ type }: { type: string }) => type,
    )
    expect(types.filter((type: string) => type.startsWith('patch.'))).toEqual([
      'patch.awaiting_approval',
      'patch.voted',
      'patch.approved',
      'patch.applied',
    ])
  }, 90_000)

  it('is refused a patch by the exact reason, and nothing changes', async () => {
    const { operation_id, path } = await behindGate()
    const propose = (changes: unknown[], base_revision = 1, by: 'olga' | 'pia' | 'eva' = 'olga') =>
      p.as(by).post(`${path}/patches`, { base_revision, changes, reason })
    const limits = [{ op: 'set_limits', max_parallel: 3 }]
    const refusal = (code: string, status = 409) => ({ status, body: { category: 'patch_not_applicable', code } })
    expect(await propose(limits, 7)).toMatchObject(refusal('base_revision_moved'))
    expect(await propose([{ op: 'remove_node', node_id: 'b' }])).toMatchObject(refusal('node_already_dispatched'))
    expect(
      await propose([
        { op: 'add_dependency', node_id: 'c', depends_on: 'd' },
        { op: 'update_node', node_id: 'd', set: { executor: 'magic' } },
      ]),
    ).toMatchObject({
      ...refusal('unsound', 422),
      body: {
        violations: expect.arrayContaining([
          expect.objectContaining({ code: 'cycle' }),
          expect.objectContaining({ code: 'unknown_executor' }),
        ]),
      },
    })
    expect(await propose(limits, 1, 'eva')).toMatchObject({ status: 403, body: { code: 'permission_missing' } })
    const first = (await propose([{ op: 'update_node', node_id: 'c', set: { name: 'C' } }], 1, 'pia')).body
    expect(await propose([{ op: 'update_node', node_id: 'c', set: { name: 'CC' } }])).toMatchObject(
      refusal('patch_overlap'),
    )
    const at = `${path}/patches/${first.patch_id}`
    const vote = { reviewed_digest: first.digest }
    p.people.pia.roles.push('approver')
    p.people.pia.groups.push('netops')
    await until(async () => (await p.as('pia').get('/v1/me')).body.permissions.includes('patch:decide'))
    expect(await p.as('pia').post(`${at}/approve`, vote)).toMatchObject({
      status: 403,
      body: { code: 'self_patch_approval' },
    })
    p.people.pia.roles.pop()
    p.people.pia.groups.pop()
    expect(await p.as('ivo').post(`${at}/approve`, vote)).toMatchObject({ status: 403, body: { code: 'not_eligible' } })
    expect(await p.as('eva').post(`${at}/approve`, { reviewed_digest: `sha256:${'0'.repeat(64)}` })).toMatchObject({
      status: 412,
      body: { category: 'version_conflict', code: 'digest_moved' },
    })
    expect(await p.as('vic').post(`${at}/approve`, vote)).toMatchObject({ status: 403 })
    // Another patch on the same base is applied: this one is overtaken, and its rebase is offered.
    const limiting = (await propose(limits)).body
    expect(
      await p.as('eva').post(`${path}/patches/${limiting.patch_id}/approve`, { reviewed_digest: limiting.digest }),
    ).toMatchObject({ status: 200, body: { status: 'applied' } })
    expect(await p.as('eva').post(`${at}/approve`, vote)).toMatchObject(refusal('base_revision_moved'))
    const overtaken = (await p.as('vic').get(at)).body
    expect(overtaken).toMatchObject({ status: 'not_applicable', rebase: { base_revision: 2 } })
    const again = await propose(overtaken.rebase.changes, 2)
    expect(again.status).toBe(201)
    const rejected = await p.as('eva').post(`${path}/patches/${again.body.patch_id}/reject`, { comment: 'no' })
    expect(rejected).toMatchObject({ status: 200, body: { status: 'rejected' } })
    expect(await p.as('eva').post(`${path}/patches/${again.body.patch_id}/reject`, { comment: 'no' })).toMatchObject({
      status: 409,
      body: { category: 'invalid_state_transition', code: 'patch_closed' },
    })
    const own = (await propose(limits, 2)).body
    expect(await p.as('olga').post(`${path}/patches/${own.patch_id}/reject`, { comment: 'no' })).toMatchObject({
      body: { status: 'withdrawn' },
    })
    const open = (await propose([{ op: 'update_node', node_id: 'c', set: { name: 'C' } }], 2)).body
    expect((await p.as('olga').post(`${path}/cancel`, { reason })).status).toBe(200)
    expect((await p.as('vic').get(`${path}/patches/${open.patch_id}`)).body.status).toBe('not_applicable')
    expect(await propose(limits, 2)).toMatchObject({ status: 409, body: { category: 'invalid_state_transition' } })
    await reaches(operation_id, 'cancelled')
    const held = await p.query('select 1 from operations.nodes where operation_id = $1 and hold_patch_id is not null', [
      operation_id,
    ])
    expect(held).toEqual([])
    expect((await p.as('vic').get(path)).body).toMatchObject({ max_parallel: 3, plan_revision: 2 })
  }, 90_000)

  it('is patched whole or not at all, however close its end is', async () => {
    const outcomes = new Set<string>()
    for (let round = 0; round < 6; round++) {
      const { operation_id } = await p.startOperation({ nodes: [noop('a', 40 * round), noop('b', 0, 'a')] })
      const path = `/v1/operations/${operation_id}`
      const changes = [
        { op: 'add_node', node: noop('n', 0, 'a') },
        { op: 'add_dependency', node_id: 'b', depends_on: 'n' },
      ]
      const proposed = await p.as('olga').post(`${path}/patches`, { base_revision: 1, changes, reason })
      const vote = { reviewed_digest: proposed.body.digest ?? '' }
      const answers =
        proposed.status === 201
          ? await Promise.all(
              [0, 1].map((instance) =>
                p.as(instance === 0 ? 'eva' : 'ada').post(`${path}/patches/${proposed.body.patch_id}/approve`, vote, {
                  instance,
                }),
              ),
            )
          : [proposed]
      await reaches(operation_id, 'succeeded')
      const rows = await p.query<{ node_id: string }>(
        'select node_id from operations.node_attempts where operation_id = $1 order by fence',
        [operation_id],
      )
      const whole = answers.filter(({ status }) => status === 200)
      expect(whole.length).toBeLessThanOrEqual(1)
      expect(rows.map(({ node_id }) => node_id)).toEqual(whole.length === 1 ? ['a', 'n', 'b'] : ['a', 'b'])
      for (const { status } of answers) expect([200, 409]).toContain(status)
      for (const { body } of answers) outcomes.add(body.code ?? body.status)
    }
    expect(outcomes.size).toBeGreaterThan(0)
  }, 90_000)
})
