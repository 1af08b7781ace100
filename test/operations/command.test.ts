import { randomUUID } from 'node:crypto'
import { sql } from 'drizzle-orm'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sweep } from '../../apps/operations/upkeep/sweeper.ts'
import { until } from '../support/until.ts'
import { gated, must, type Platform, person, type Reply, startPlatform } from './support/platform.ts'

let p: Platform
beforeAll(async () => {
  p = await startPlatform({ instances: 2, env: { OPERATIONS__CANCEL__COOLOFF_S: '0' } })
})
afterAll(() => p.stop())

const running = async (states: Record<string, string> = {}, graph: unknown = gated()) => {
  const { operation_id, plan_id } = await p.startOperation(graph)
  await p.query(`update operations.operations set engine_status = 'running' where operation_id = $1`, [operation_id])
  for (const [node_id, state] of Object.entries(states))
    await p.query(`update operations.nodes set state = $3, attempt = 1 where operation_id = $1 and node_id = $2`, [
      operation_id,
      node_id,
      state,
    ])
  return { operation_id, plan_id, path: `/v1/operations/${operation_id}` }
}
const reason = 'a test'
const refusal = (category: string, code: string, status: number) => ({ status, body: { category, code, status } })
const control = async (operation_id: string) =>
  (await p.query('select * from operations.operation_control where operation_id = $1', [operation_id]))[0]

describe('pause, resume, cancel', () => {
  it('holds every claim once a pause is answered, and names the running nodes', async () => {
    const { path, operation_id } = await running({ before: 'running' })
    const { status, body } = await p.as('olga').post(`${path}/pause`, { reason })
    expect(status).toBe(200)
    expect(body).toMatchObject({
      status: 'pausing',
      control: 'pause',
      pause_reason: 'operator',
      command: { kind: 'pause' },
    })
    expect(body.allowed_actions.find(({ action }: { action: string }) => action === 'resume').allowed).toBe(true)
    expect(await control(operation_id)).toMatchObject({ control: 'pause' })
    expect(await p.as('olga').post(`${path}/pause`, { reason })).toMatchObject(
      refusal('invalid_state_transition', 'already_paused', 409),
    )
  })

  it('is not paused while a node runs that began since an earlier pause', async () => {
    const { path, operation_id } = await running({ before: 'running' })
    await p.query(`update operations.operations set engine_status = 'paused' where operation_id = $1`, [operation_id])
    expect(must(await p.as('olga').post(`${path}/pause`, { reason }), 200).body.status).toBe('pausing')
    expect(
      await p.as('olga').post(`${path}/interventions`, { type: 'release_leases', payload: {}, reason }),
    ).toMatchObject(refusal('invalid_state_transition', 'intervention_not_applicable', 409))
  })

  it('resumes only paused operations', async () => {
    const { path } = await running()
    expect(await p.as('olga').post(`${path}/resume`, { reason })).toMatchObject(
      refusal('invalid_state_transition', 'not_paused', 409),
    )
    await p.as('olga').post(`${path}/pause`, { reason })
    const resumed = await p.as('olga').post(`${path}/resume`, { reason })
    // No worker confirms here: the command is accepted, and its position is given.
    expect(resumed).toMatchObject({
      status: 202,
      body: { control: 'run', command: { kind: 'resume', status: 'accepted' } },
    })
    expect(resumed.headers.get('location')).toBe(`${path}/commands/${resumed.body.command.command_id}`)
    expect(resumed.body.command.not_after).toMatch(/^\d{4}-.*Z$/)
    expect(await p.as('vic').get(String(resumed.headers.get('location')))).toMatchObject({
      status: 200,
      body: { command: { status: 'accepted' }, outcome: null },
    })
  })

  it('does not resume over an outcome that turns out unknown while it waits for the lock', async () => {
    const { path, operation_id } = await running()
    must(await p.as('olga').post(`${path}/pause`, { reason }), 200, 202)
    const waits = () =>
      p.query(`select from pg_stat_activity where wait_event_type = 'Lock' and query like '%operation_control%'`)
    const resumed = await p.deps.db.transaction(async (tx) => {
      await tx.execute(
        sql`update operations.operations set updated_at = clock_timestamp() where operation_id = ${operation_id}`,
      )
      const answer = p.as('olga').post(`${path}/resume`, { reason })
      await until(async () => (await waits()).length > 0, { what: 'the resume waits for the lock' })
      await tx.execute(
        sql`update operations.nodes set state = 'outcome_unknown' where operation_id = ${operation_id} and node_id = 'before'`,
      )
      return { answer }
    })
    expect(await resumed.answer).toMatchObject(refusal('invalid_state_transition', 'outcome_unknown_open', 409))
  })

  it('does not resume over an unknown outcome, a drift or a lost engine', async () => {
    const { path, operation_id } = await running({ before: 'outcome_unknown' })
    await p.as('olga').post(`${path}/pause`, { reason })
    const resumed = await p.as('olga').post(`${path}/resume`, { reason })
    expect(resumed).toMatchObject(refusal('invalid_state_transition', 'outcome_unknown_open', 409))
    const offered = resumed.body.allowed_actions.find(({ action }: { action: string }) => action === 'resume')
    expect(offered).toMatchObject({ allowed: false, reason_code: 'outcome_unknown_open' })
    await p.query(`update operations.nodes set state = 'succeeded' where operation_id = $1 and node_id = 'before'`, [
      operation_id,
    ])
    const paused = (pause_reason: string) =>
      p.query('update operations.operation_control set pause_reason = $2 where operation_id = $1', [
        operation_id,
        pause_reason,
      ])
    await paused('catalog_drift')
    expect(await p.as('olga').post(`${path}/resume`, { reason })).toMatchObject(
      refusal('stale_catalog_projection', 'drift_unacknowledged', 409),
    )
    await paused('engine_lost')
    expect(await p.as('olga').post(`${path}/resume`, { reason })).toMatchObject(
      refusal('invalid_state_transition', 'engine_lost', 409),
    )
    await paused('catalog_drift')
    expect((await p.as('olga').post(`${path}/resume`, { reason, acknowledge_drift: true })).status).toBe(202)
  })

  it('cancels once per mode, never softer, and closes waiting gates', async () => {
    const { path, operation_id } = await running()
    await p.openGate(operation_id, 'go')
    expect(await p.as('both').post(`${path}/cancel`, { reason, mode: 'force' })).toMatchObject(
      refusal('invalid_state_transition', 'force_needs_cancel_first', 409),
    )
    const cancelled = await p.as('olga').post(`${path}/cancel`, { reason })
    expect(cancelled).toMatchObject({
      status: 200,
      body: { status: 'cancelling', cancel_mode: 'graceful', open_gates: [] },
    })
    expect(await p.as('olga').post(`${path}/cancel`, { reason })).toMatchObject(
      refusal('invalid_state_transition', 'already_cancelling', 409),
    )
    expect((await p.as('olga').post(`${path}/cancel`, { reason, mode: 'compensate' })).status).toBe(200)
    expect(await p.as('olga').post(`${path}/cancel`, { reason, mode: 'graceful' })).toMatchObject(
      refusal('invalid_state_transition', 'mode_not_allowed', 409),
    )
    expect(await p.as('olga').post(`${path}/cancel`, { reason, mode: 'force' })).toMatchObject(
      refusal('policy_denied', 'force_not_allowed', 403),
    )
    expect(
      await p.as({ ...p.people.both, auth_age_s: 1000 }).post(`${path}/cancel`, { reason, mode: 'force' }),
    ).toMatchObject(refusal('policy_denied', 'reauth_required', 403))
    expect((await p.as('both').post(`${path}/cancel`, { reason, mode: 'force' })).status).toBe(200)
    expect(await p.as('eva').post(`${path}/gates/go/approve`, await p.seen(operation_id, 'go'))).toMatchObject(
      refusal('gate_not_waiting', 'cancelled', 409),
    )
    expect(await p.as('olga').post(`${path}/pause`, { reason })).toMatchObject(
      refusal('invalid_state_transition', 'already_cancelling', 409),
    )
  })

  it('says when force becomes possible', async () => {
    const other = await startPlatform({ env: { OPERATIONS__CANCEL__COOLOFF_S: '3600' } })
    try {
      const { operation_id } = await other.startOperation(gated())
      const path = `/v1/operations/${operation_id}`
      await other.as('both').post(`${path}/cancel`, { reason })
      const early = await other.as('both').post(`${path}/cancel`, { reason, mode: 'force' })
      expect(early).toMatchObject(refusal('invalid_state_transition', 'cooloff_not_elapsed', 409))
      expect(Date.parse(early.body.available_at)).toBeGreaterThan(Date.now() + 3_000_000)
      const force = early.body.allowed_actions.find(({ action }: { action: string }) => action === 'cancel_force')
      expect(force).toMatchObject({
        allowed: false,
        reason_code: 'cooloff_not_elapsed',
        available_at: early.body.available_at,
      })
    } finally {
      await other.stop()
    }
  })

  it('changes no operation that has ended', async () => {
    const { path, operation_id } = await running({ before: 'failed' })
    await p.query(
      `update operations.operations set engine_status = 'failed', ended_at = clock_timestamp() where operation_id = $1`,
      [operation_id],
    )
    await p.query(`update operations.operation_control set ended = true where operation_id = $1`, [operation_id])
    const body = { reason }
    for (const act of ['pause', 'resume', 'cancel', 'nodes/before/retry'])
      expect(await p.as('olga').post(`${path}/${act}`, body)).toMatchObject(
        refusal('invalid_state_transition', 'operation_terminal', 409),
      )
  })
})

describe('retry and interventions', () => {
  const chain = {
    nodes: [
      { node_id: 'a', executor: 'noop', with: {} },
      { node_id: 'b', executor: 'noop', with: {}, depends_on: ['a'] },
      { node_id: 'c', executor: 'noop', with: {}, depends_on: ['b'], skippable: false },
      { node_id: 'd', executor: 'noop', with: {}, depends_on: ['a'] },
    ],
    gates: [{ gate_id: 'go', policy: { approvals: { groups: [{ group: 'netops', min: 1 }] } }, guards: ['b'] }],
  }

  it('resets pending nodes that the engine may have sent, or passed, ahead of their rows', async () => {
    const step = (node_id: string, more: Record<string, unknown> = {}) => ({
      executor: 'noop',
      with: {},
      ...more,
      node_id,
    })
    const nodes = [
      step('a'),
      step('b', { depends_on: ['a'] }),
      step('later', { depends_on: ['b'] }),
      step('all', { kind: 'barrier', depends_on: ['a'] }),
      step('c', { depends_on: ['all'] }),
      step('busy'),
      step('d', { depends_on: ['a', 'busy'] }),
    ]
    const { path, operation_id } = await running({ a: 'succeeded', busy: 'running' }, { nodes })
    const { body } = must(await p.as('olga').post(`${path}/nodes/a/retry`, { reason }), 202)
    expect(body.reset_cone.sort()).toEqual(['a', 'all', 'b', 'c'])
    const rows = await p.query(
      'select node_id from operations.nodes where operation_id = $1 and generation = 2 order by node_id',
      [operation_id],
    )
    expect(rows.map(({ node_id }) => node_id)).toEqual(['a', 'all', 'b', 'c'])
  })

  it('resets exactly the cone that the dry run named, and rearms its gates', async () => {
    const { path, operation_id } = await running({ a: 'succeeded', b: 'failed', c: 'skipped', d: 'running' }, chain)
    await p.query(`update operations.gates set status = 'rejected' where operation_id = $1`, [operation_id])
    const dry = await p.as('olga').post(`${path}/nodes/b/retry`, { reason, dry_run: true })
    expect(dry).toMatchObject({ status: 200, body: { effect: { reset_cone: ['b', 'c'], rearmed_gates: ['go'] } } })
    const done = await p.as('olga').post(`${path}/nodes/b/retry`, { reason, expected_generation: 1 })
    expect(done).toMatchObject({
      status: 202,
      body: { node_id: 'b', generation: 2, state: 'pending', reset_cone: ['b', 'c'], rearmed_gates: ['go'] },
    })
    const rows = await p.query(
      'select node_id, state, generation from operations.nodes where operation_id = $1 order by node_id',
      [operation_id],
    )
    expect(rows.map((row) => Object.values(row).join())).toEqual([
      'a,succeeded,1',
      'b,pending,2',
      'c,pending,2',
      'd,running,1',
    ])
    const [gate] = await p.query('select status, round from operations.gates where operation_id = $1', [operation_id])
    expect(gate).toEqual({ status: 'armed', round: 2 })
    const [command] = await p.query(
      `select payload from operations.operation_commands where operation_id = $1 and kind = 'retry_node'`,
      [operation_id],
    )
    expect(command?.payload).toEqual({
      node_id: 'b',
      scope: 'downstream',
      generations: { b: 2, c: 2 },
      gates: { go: { status: 'armed', round: 2 } },
    })
  })

  it('refuses unfinished nodes, running ones in the cone, a moved generation and an unexplained unknown outcome', async () => {
    const { path } = await running({ a: 'succeeded', b: 'running', c: 'outcome_unknown' }, chain)
    expect(await p.as('olga').post(`${path}/nodes/d/retry`, { reason })).toMatchObject(
      refusal('invalid_state_transition', 'node_not_retryable', 409),
    )
    const busy = await p.as('olga').post(`${path}/nodes/a/retry`, { reason })
    expect(busy).toMatchObject(refusal('invalid_state_transition', 'cone_in_flight', 409))
    expect(busy.body.in_flight).toEqual(['b'])
    expect(
      await p.as('olga').post(`${path}/nodes/a/retry`, { reason, scope: 'node', expected_generation: 4 }),
    ).toMatchObject(refusal('version_conflict', 'generation_moved', 412))
    expect(await p.as('olga').post(`${path}/nodes/c/retry`, { reason })).toMatchObject(
      refusal('validation_error', 'reconciliation_required', 422),
    )
    const reconciliation = { finding: 'effect_absent', note: 'looked at the host' }
    expect((await p.as('olga').post(`${path}/nodes/c/retry`, { reason, reconciliation })).status).toBe(202)
    expect(await p.as('olga').post(`${path}/nodes/nowhere/retry`, { reason })).toMatchObject(
      refusal('not_found', 'node', 404),
    )
  })

  it('does not skip a guarded node before its gate has passed if others follow it', async () => {
    const nodes = [
      { node_id: 'a', executor: 'noop', with: {} },
      { node_id: 'b', executor: 'noop', with: {}, depends_on: ['a'] },
    ]
    const approvals = { groups: [{ group: 'netops', min: 1 }] }
    const gates = [{ gate_id: 'go', policy: { approvals }, guards: ['a'] }]
    const skip = { type: 'skip', node_id: 'a', payload: {}, reason }
    const skipping = async (status: string) => {
      const { path, operation_id } = await running({ a: 'gated', b: 'pending' }, { nodes, gates })
      await p.query(
        `update operations.gates set status = $2, approved_digest = case when $2 = 'approved' then digest end where operation_id = $1`,
        [operation_id, status],
      )
      const { body } = await p.as('olga').get(`${path}/nodes/a`)
      const offered = body.allowed_actions.find(({ action }: { action: string }) => action === 'skip')
      const { status: answer, body: told } = await p.as('olga').post(`${path}/interventions`, skip)
      expect(offered.allowed).toBe(answer < 300)
      if (answer >= 300) expect(told.code).toBe('intervention_not_applicable')
      return answer
    }
    expect(await skipping('waiting')).toBe(409)
    expect(await skipping('rejected')).toBe(409)
    expect(await skipping('approved')).toBeLessThan(300)
    expect(await skipping('bypassed')).toBeLessThan(300)
  })

  it('does not skip a node between such a node and others: they would start before its gate', async () => {
    const node = (node_id: string, ...depends_on: string[]) => ({ node_id, executor: 'noop', with: {}, depends_on })
    const nodes = [node('a'), node('b', 'a'), node('c', 'b')]
    const gates = [{ gate_id: 'go', policy: { approvals: { groups: [{ group: 'netops', min: 1 }] } }, guards: ['a'] }]
    const { path, operation_id } = await running({ a: 'gated', b: 'pending', c: 'pending' }, { nodes, gates })
    const skip = { type: 'skip', node_id: 'b', payload: {}, reason }
    expect(await p.as('olga').post(`${path}/interventions`, skip)).toMatchObject(
      refusal('invalid_state_transition', 'intervention_not_applicable', 409),
    )
    await p.query(`update operations.nodes set state = 'succeeded' where operation_id = $1 and node_id = 'a'`, [
      operation_id,
    ])
    expect((await p.as('olga').post(`${path}/interventions`, skip)).status).toBe(202)
  })

  it('neither marks a rejected node as succeeded nor retries past it: its gate would not be asked', async () => {
    const node = (node_id: string, ...depends_on: string[]) => ({ node_id, executor: 'noop', with: {}, depends_on })
    const nodes = [node('a'), node('b', 'a'), node('c', 'b')]
    const gates = [{ gate_id: 'go', policy: { approvals: { groups: [{ group: 'netops', min: 1 }] } }, guards: ['a'] }]
    const states = { a: 'failed', b: 'skipped', c: 'skipped' }
    const answers = async (status: string) => {
      const { path, operation_id } = await running(states, { nodes, gates })
      await p.query(
        `update operations.gates set status = $2, approved_digest = case when $2 = 'approved' then digest end where operation_id = $1`,
        [operation_id, status],
      )
      const offers = async (id: string, name: string) =>
        (await p.as('olga').get(`${path}/nodes/${id}`)).body.allowed_actions.find(
          ({ action }: { action: string }) => action === name,
        ).allowed
      const offered = [await offers('a', 'mark_succeeded'), await offers('b', 'retry'), await offers('c', 'retry')]
      const mark = { type: 'mark_succeeded', node_id: 'a', payload: { outputs: {}, note: 'by hand' }, reason }
      const marked = await p.as('olga').post(`${path}/interventions`, mark)
      const retried = [
        await p.as('olga').post(`${path}/nodes/b/retry`, { reason, scope: 'node' }),
        await p.as('olga').post(`${path}/nodes/c/retry`, { reason }),
      ]
      const all = [marked, ...retried].map((answer) => answer.status)
      expect(all.map((answer) => answer < 300)).toEqual(offered)
      return all
    }
    expect(await answers('rejected')).toEqual([409, 409, 409])
    expect(await answers('expired')).toEqual([409, 409, 409])
    expect(await answers('approved')).toEqual([202, 202, 202])
    // A condition skipped the guarded node, so that no one was asked: that is no way past its gate.
    const conditional = nodes.map((one) => (one.node_id === 'a' ? { ...one, when: '1 == 2' } : one))
    const unasked = async (act: (path: string) => Promise<{ status: number }>) => {
      const made = await running({ a: 'skipped', b: 'failed', c: 'pending' }, { nodes: conditional, gates })
      return (await act(made.path)).status
    }
    expect(await unasked((path) => p.as('olga').post(`${path}/nodes/b/retry`, { reason }))).toBe(202)
    const skip = { type: 'skip', node_id: 'b', payload: {}, reason }
    expect(await unasked((path) => p.as('olga').post(`${path}/interventions`, skip))).toBe(202)
    // The node that the gate guards is the one to retry.
    const { path, operation_id } = await running(states, { nodes, gates })
    await p.query(`update operations.gates set status = 'rejected' where operation_id = $1`, [operation_id])
    expect((await p.as('olga').post(`${path}/nodes/a/retry`, { reason })).status).toBe(202)
  })

  it('records an intervention as an exception, with its required members', async () => {
    const { path, operation_id } = await running({ a: 'failed', c: 'failed' }, chain)
    const intervene = (body: Record<string, unknown>) => p.as('olga').post(`${path}/interventions`, { reason, ...body })
    expect(await intervene({ type: 'skip', node_id: 'c', payload: {} })).toMatchObject(
      refusal('invalid_state_transition', 'intervention_not_applicable', 409),
    )
    expect(await intervene({ type: 'mark_succeeded', node_id: 'a', payload: {} })).toMatchObject({
      status: 400,
      body: { violations: [{ pointer: '/payload/outputs' }, { pointer: '/payload/note' }] },
    })
    expect(await intervene({ type: 'mark_compensated', node_id: 'a', payload: { note: 'x' } })).toMatchObject(
      refusal('invalid_state_transition', 'intervention_not_applicable', 409),
    )
    const done = await intervene({
      type: 'mark_succeeded',
      node_id: 'a',
      payload: { outputs: { n: 1 }, note: 'by hand' },
    })
    expect(done).toMatchObject({ status: 202, body: { intervention: { type: 'mark_succeeded', status: 'accepted' } } })
    const [node] = await p.query(
      `select outputs, exception, generation from operations.nodes where operation_id = $1 and node_id = 'a'`,
      [operation_id],
    )
    expect(node).toEqual({ outputs: { n: 1 }, exception: 'mark_succeeded', generation: 2 })
    expect(
      await p
        .as({ ...p.people.olga, auth_age_s: 1000 })
        .post(`${path}/interventions`, { reason, type: 'skip', node_id: 'b', payload: {} }),
    ).toMatchObject(refusal('policy_denied', 'reauth_required', 403))
  })
})

describe('interventions beside the end of a node', () => {
  const work = {
    nodes: [
      { node_id: 'a', executor: 'noop', with: { delay_ms: 1 }, compensate: { executor: 'noop', with: {} } },
      { node_id: 'b', executor: 'noop', with: { delay_ms: 1 }, depends_on: ['a'] },
      { node_id: 'c', executor: 'noop', with: {}, depends_on: ['b'] },
    ],
    gates: [{ gate_id: 'go', policy: { approvals: { groups: [{ group: 'netops', min: 1 }] } }, guards: ['b'] }],
  }
  const intervene = (path: string, body: Record<string, unknown>, who: 'olga' | 'eva' | 'both' = 'olga') =>
    p.as(who).post(`${path}/interventions`, { reason, payload: {}, ...body })
  const gate = async (operation_id: string) =>
    (
      await p.query('select status, round, guards, digest, consumed_at from operations.gates where operation_id = $1', [
        operation_id,
      ])
    )[0]
  const notApplicable = refusal('invalid_state_transition', 'intervention_not_applicable', 409)

  it('name every member that a type requires or does not accept', async () => {
    const { path } = await running({}, work)
    const pointers = async (body: Record<string, unknown>) =>
      (await intervene(path, body)).body.violations.map(({ pointer }: { pointer: string }) => pointer)
    expect(await pointers({ type: 'set_limits', node_id: 'a', payload: { note: 'x' } })).toEqual([
      '/payload/max_parallel',
      '/payload/note',
      '/node_id',
    ])
    expect(await pointers({ type: 'skip' })).toEqual(['/node_id'])
    expect(await pointers({ type: 'extend_deadline', payload: { of: 'gate', add_s: 60 } })).toEqual(['/payload/id'])
  })

  it('change the inputs of nodes that have not started, and ask approvers of other inputs again', async () => {
    const { path, operation_id } = await running({ a: 'succeeded' }, work)
    await p.query(
      `update operations.gates set status = 'approved', approved_digest = digest, consumed_at = now() where operation_id = $1`,
      [operation_id],
    )
    const before = await gate(operation_id)
    const change = { type: 'set_input', node_id: 'c', payload: { input_overrides: { delay_ms: 7 } } }
    expect(
      await intervene(path, { ...change, payload: { input_overrides: { delay_ms: { $from: 'nodes/x/outputs/y' } } } }),
    ).toMatchObject({ status: 422, body: { category: 'validation_error', code: 'parameters_invalid' } })
    expect(await gate(operation_id)).toEqual(before)
    const done = await intervene(path, change)
    expect(done).toMatchObject({ status: 202, body: { intervention: { type: 'set_input', node_id: 'c' } } })
    const after = await gate(operation_id)
    expect(after).toMatchObject({ status: 'armed', round: 2, guards: ['b', 'c'], consumed_at: null })
    expect(after?.digest).not.toBe(before?.digest)
    const [node] = await p.query(
      `select generation, input_overrides, gate_ids from operations.nodes where operation_id = $1 and node_id = 'c'`,
      [operation_id],
    )
    expect(node).toEqual({ generation: 2, input_overrides: { delay_ms: 7 }, gate_ids: ['go'] })
    expect((await p.as('olga').get(`${path}/nodes/c`)).body.inputs).toEqual({
      effective: { delay_ms: 7 },
      overridden: ['/delay_ms'],
    })
    // It was never sent in time: rows, digest and gate are as before, in a later round.
    await p.query(
      `update operations.operation_commands set status = 'pending', attempts = 0, not_after = now() - interval '1 s' where operation_id = $1 and kind = 'intervene'`,
      [operation_id],
    )
    await sweep(p.deps.db)
    expect(await gate(operation_id)).toMatchObject({ ...before, round: 2 })
    expect(await intervene(path, { ...change, node_id: 'a' })).toMatchObject(notApplicable)
  })

  it.each([
    [{ junk: 1 }, '/nodes/b/with/junk'],
    [{ delay_ms: 'soon' }, '/nodes/b/with/delay_ms'],
    [{ delay_ms: -1 }, '/nodes/b/with/delay_ms'],
    [{ outputs: 7 }, '/nodes/b/with/outputs'],
  ])('rerun a node only with inputs that it could be planned with, not %j', async (input_overrides, pointer) => {
    const { path } = await running({ a: 'succeeded', b: 'failed' }, work)
    for (const more of [{}, { dry_run: true }])
      expect(await p.as('olga').post(`${path}/nodes/b/retry`, { reason, input_overrides, ...more })).toMatchObject({
        status: 422,
        body: { code: 'parameters_invalid', violations: [{ pointer, code: 'inputs_invalid' }] },
      })
  })

  it('rerun a node with other inputs, behind the gate that had approved the first ones', async () => {
    const { path, operation_id } = await running({ a: 'succeeded', b: 'failed' }, work)
    await p.query(
      `update operations.gates set status = 'approved', approved_digest = digest, consumed_at = now() where operation_id = $1`,
      [operation_id],
    )
    const body = { reason, input_overrides: { delay_ms: 3 } }
    const dry = await p.as('olga').post(`${path}/nodes/b/retry`, { ...body, dry_run: true })
    expect(dry).toMatchObject({ status: 200, body: { effect: { reset_cone: ['b'], rearmed_gates: ['go'] } } })
    expect(await gate(operation_id)).toMatchObject({ status: 'approved', round: 1 })
    const stale = p.as({ ...p.people.olga, auth_age_s: 1000 })
    expect(await stale.post(`${path}/nodes/b/retry`, body)).toMatchObject(
      refusal('policy_denied', 'reauth_required', 403),
    )
    expect((await stale.post(`${path}/nodes/b/retry`, { reason, dry_run: true })).status).toBe(200)
    const done = await p.as('olga').post(`${path}/nodes/b/retry`, body)
    expect(done.body).toMatchObject({ rearmed_gates: ['go'], inputs: { effective: { delay_ms: 3 } } })
    expect(await gate(operation_id)).toMatchObject({ status: 'armed', round: 2, consumed_at: null })
  })

  it.each([
    ['set_input', 'b', { a: 'succeeded' }, { input_overrides: { delay_ms: 7 } }],
    ['set_output', 'a', { a: 'succeeded' }, { outputs: { n: 2 } }],
    ['mark_succeeded', 'a', { a: 'failed' }, { outputs: { n: 2 }, note: 'by hand' }],
    ['retry', 'b', { a: 'succeeded', b: 'failed' }, { input_overrides: { delay_ms: 7 } }],
  ])('keep the author of %s from approving these values', async (type, node_id, states, payload) => {
    const { path, operation_id } = await running(states, work)
    const done =
      type === 'retry'
        ? await p.as('both').post(`${path}/nodes/${node_id}/retry`, { reason, ...payload })
        : await intervene(path, { type, node_id, payload }, 'both')
    expect(done.status).toBe(202)
    await p.openGate(operation_id, 'go')
    const seen = await p.seen(operation_id, 'go', 'both')
    const refused = refusal('policy_denied', 'self_approval', 403)
    const refusedGlass = { ...seen, break_glass: { reason } }
    expect(await p.as('both').post(`${path}/gates/go/approve`, seen)).toMatchObject(refused)
    expect(await p.as('both').post(`${path}/gates/go/approve`, refusedGlass)).toMatchObject(refused)
    const { body } = await p.as('both').get(`${path}/gates/go`)
    const approve = body.allowed_actions.find(({ action }: { action: string }) => action === 'approve')
    expect(approve).toMatchObject({ allowed: false, reason_code: 'self_approval', reason: body.why_not_me })
    expect(body.why_not_me).toContain('or changed it')
    expect(body.eligible.map(({ name }: { name: string }) => name)).not.toContain('both')
    const { records } = (await p.as('vic').get(`${path}/evidence`)).body
    expect(records.at(-1)).toMatchObject({ subject: { type: 'node', id: node_id, involved: [p.people.both.id] } })
    expect(await p.as('eva').post(`${path}/gates/go/approve`, seen)).toMatchObject({ body: { status: 'approved' } })
  })

  it('leave a person without values free to approve', async () => {
    const { path, operation_id } = await running({ a: 'failed' }, work)
    const done = { type: 'mark_succeeded', node_id: 'a', payload: { outputs: {}, note: 'by hand' } }
    expect((await intervene(path, done, 'both')).status).toBe(202)
    await p.openGate(operation_id, 'go')
    const seen = await p.seen(operation_id, 'go', 'both')
    expect(await p.as('both').post(`${path}/gates/go/approve`, seen)).toMatchObject({ body: { status: 'approved' } })
  })

  it('correct outputs until something has used them', async () => {
    const { path, operation_id } = await running({ a: 'succeeded' }, work)
    const set = { type: 'set_output', node_id: 'a', payload: { outputs: { n: 2 } } }
    expect((await intervene(path, set)).status).toBe(202)
    expect((await p.as('olga').get(`${path}/nodes/a`)).body.outputs).toEqual({ n: 2 })
    await p.query(
      `insert into operations.node_attempts (operation_id, node_id, attempt, generation, fence, phase, executor, key)
       values ($1, 'b', 1, 1, 1, 'running', 'noop', 'k')`,
      [operation_id],
    )
    expect(await intervene(path, set)).toMatchObject({ ...notApplicable, body: { nodes: ['b'] } })
  })

  it('see all nodes after a wave that was left, but a retry ends at its barrier once one of them has begun', async () => {
    const noop = (node_id: string, depends_on: string[]) => ({ node_id, executor: 'noop', with: {}, depends_on })
    const wall = { node_id: 'wall', kind: 'barrier', depends_on: ['a'], join: 'settled' }
    const undo = { compensate: { executor: 'noop', with: {} } }
    const graph = { nodes: [{ ...noop('a', []), ...undo }, wall, noop('c', ['wall'])] }
    const { path, operation_id } = await running({ a: 'succeeded', wall: 'succeeded' }, graph)
    await p.query(
      `update operations.nodes set spec = spec || '{"max_failures": 1}' where operation_id = $1 and node_id = 'wall'`,
      [operation_id],
    )
    const reset = async () =>
      must(await p.as('olga').post(`${path}/nodes/a/retry`, { reason, dry_run: true }), 200).body.effect.reset_cone
    const comes = (state: string) =>
      p.query(`update operations.nodes set state = $2 where operation_id = $1 and node_id = 'c'`, [operation_id, state])
    for (const state of ['pending', 'ready']) {
      await comes(state)
      expect(await reset()).toEqual(['a', 'wall', 'c'])
    }
    await comes('running')
    expect(await reset()).toEqual(['a'])
    await p.query(
      `insert into operations.node_attempts (operation_id, node_id, attempt, generation, fence, phase, executor, key)
       values ($1, 'c', 1, 1, 1, 'running', 'noop', 'k')`,
      [operation_id],
    )
    await p.query(`update operations.operations set engine_status = 'blocked' where operation_id = $1`, [operation_id])
    const set = { type: 'set_output', node_id: 'a', payload: { outputs: { n: 2 } } }
    expect(await intervene(path, set)).toMatchObject({ ...notApplicable, body: { nodes: ['c'] } })
    expect(await intervene(path, { type: 'trigger_compensation', node_id: 'a' })).toMatchObject(notApplicable)
    const { allowed_actions } = (await p.as('olga').get(`${path}/nodes/a`)).body
    const offered = (name: string) => allowed_actions.find(({ action }: { action: string }) => action === name).allowed
    expect([offered('retry'), offered('set_output')]).toEqual([true, false])
  })

  it('undo a node only while the operation is stopped, and no node after it starts meanwhile', async () => {
    const { path, operation_id } = await running({ a: 'succeeded' }, work)
    const undo = { type: 'trigger_compensation', node_id: 'a' }
    expect(await intervene(path, undo)).toMatchObject(notApplicable)
    await p.query(`update operations.operations set engine_status = 'blocked' where operation_id = $1`, [operation_id])
    expect((await intervene(path, undo)).status).toBe(202)
    const nodes = await p.query(
      'select node_id, state, generation from operations.nodes where operation_id = $1 order by node_id',
      [operation_id],
    )
    expect(nodes.map((row) => Object.values(row).join())).toEqual(['a,compensating,2', 'b,pending,2', 'c,pending,2'])
    expect((await p.as('olga').get(path)).body.exceptions).toMatchObject([
      { kind: 'trigger_compensation', node_id: 'a' },
    ])
  })

  it('give time to the operation and to a gate, and refuse objects without a deadline', async () => {
    const { path, operation_id } = await running({}, work)
    const more = (payload: Record<string, unknown>) => intervene(path, { type: 'extend_deadline', payload })
    expect(await more({ of: 'operation', add_s: 60 })).toMatchObject(notApplicable)
    expect(await more({ of: 'attempt', id: 'a', add_s: 60 })).toMatchObject(notApplicable)
    expect(await more({ of: 'gate', id: 'go', add_s: 60 })).toMatchObject(
      refusal('gate_not_waiting', 'not_reached', 409),
    )
    for (const id of ['no', 'n'.repeat(128)])
      expect(await more({ of: 'gate', id, add_s: 60 })).toMatchObject(refusal('not_found', 'gate', 404))
    await p.openGate(operation_id, 'go')
    const before = (await p.as('eva').get(`${path}/gates/go`)).body.deadline_at
    expect((await more({ of: 'gate', id: 'go', add_s: 60 })).status).toBe(202)
    const after = (await p.as('eva').get(`${path}/gates/go`)).body.deadline_at
    expect(Date.parse(after) - Date.parse(before)).toBe(60_000)
    // The time of an operation that is being canceled has no effect, unlike that of an attempt.
    await p.query(
      `update operations.operations set deadline_at = clock_timestamp() + interval '1 h' where operation_id = $1`,
      [operation_id],
    )
    must(await p.as('olga').post(`${path}/cancel`, { reason }), 200, 202)
    for (const dry_run of [true, false])
      expect(
        await intervene(path, { type: 'extend_deadline', payload: { of: 'operation', add_s: 60 }, dry_run }),
      ).toMatchObject(notApplicable)
  })

  it('override a freeze that holds the operation, by its approvers, and no other freeze', async () => {
    const { path, operation_id } = await running({}, work)
    const span = (hours: number) => new Date(Date.now() + 3_600_000 * hours).toISOString()
    const freeze = (to: number, approvers: string[]) => ({ from: span(-2), to: span(to), approvers })
    const calendar = {
      windows: {},
      freezes: { launch: freeze(1, ['netops']), stocks: freeze(1, ['storage']), past: freeze(-1, []) },
      asked: null,
      targets: { r1: { windows: [], freezes: ['launch', 'stocks', 'past'] } },
    }
    await p.query('update operations.operation_control set calendar = $2 where operation_id = $1', [
      operation_id,
      JSON.stringify(calendar),
    ])
    const override = (freeze_id: string) => intervene(path, { type: 'override_freeze', payload: { freeze_id } })
    expect(await override('nothing')).toMatchObject(notApplicable)
    expect(await override('past')).toMatchObject(notApplicable)
    expect(await override('stocks')).toMatchObject(refusal('policy_denied', 'not_eligible', 403))
    const held = async () =>
      (await p.query('select calendar from operations.operation_control where operation_id = $1', [operation_id]))[0]
        ?.calendar
    expect(await held()).toEqual(calendar)
    expect((await override('launch')).status).toBe(202)
    const { launch: _, ...others } = calendar.freezes
    expect(await held()).toEqual({ ...calendar, freezes: others })
    expect(await override('launch')).toMatchObject(notApplicable)
    const { body } = await p.as('olga').get(path)
    expect(body.exceptions).toMatchObject([{ kind: 'override_freeze', actor: { name: 'olga' } }])
    const { events } = (await p.as('olga').get(`${path}/timeline?types=freeze.overridden`)).body
    expect(events).toMatchObject([{ data: { freeze_id: 'launch' } }])
    // Claims obey it from its commit on, so it is never withdrawn.
    await p.query(
      `update operations.operation_commands set not_after = clock_timestamp() - interval '1 s', status = 'pending', attempts = 0
       where operation_id = $1 and kind = 'intervene'`,
      [operation_id],
    )
    await sweep(p.deps.db)
    expect(await held()).toEqual({ ...calendar, freezes: others })
    expect((await p.as('olga').get(path)).body.exceptions).toMatchObject([{ kind: 'override_freeze' }])
  })

  it('override a freeze with a second person only while its author is an approver, and as both read it', async () => {
    const { path, operation_id } = await running({}, work)
    await p.query(`update operations.operations set risk_level = 'high' where operation_id = $1`, [operation_id])
    const freeze = (to: string, approvers: string[]) =>
      p.query('update operations.operation_control set calendar = $2 where operation_id = $1', [
        operation_id,
        JSON.stringify({
          windows: {},
          freezes: { launch: { from: '2020-01-01T00:00:00Z', to, approvers } },
          asked: null,
          targets: { r1: { windows: [], freezes: ['launch'] } },
        }),
      ])
    await freeze('2100-01-01T00:00:00Z', ['netops'])
    const override = { type: 'override_freeze', payload: { freeze_id: 'launch' } }
    const { gate_id } = must(await intervene(path, override, 'both'), 202).body.intervention
    const seen = await p.seen(operation_id, gate_id)
    const approve = () => p.as('eva').post(`${path}/gates/${gate_id}/approve`, seen)
    expect(must(await p.as('eva').get(`${path}/gates/${gate_id}`), 200).body.subject.intervention.payload).toEqual({
      freeze_id: 'launch',
      freeze: { from: '2020-01-01T00:00:00Z', to: '2100-01-01T00:00:00Z', approvers: ['netops'] },
    })
    const { both } = p.people
    const groups = both.groups
    both.groups = []
    try {
      expect(await approve()).toMatchObject(refusal('policy_denied', 'not_eligible', 403))
    } finally {
      both.groups = groups
    }
    await freeze('2100-01-01T00:00:00Z', ['storage'])
    expect(await approve()).toMatchObject(refusal('policy_denied', 'not_eligible', 403))
    await freeze('2101-01-01T00:00:00Z', ['netops'])
    expect(await approve()).toMatchObject(notApplicable)
    await freeze('2100-01-01T00:00:00Z', ['netops'])
    expect((await approve()).body.status).toBe('approved')
    expect((await p.as('olga').get(path)).body.exceptions).toMatchObject([
      { kind: 'override_freeze', actor: { name: 'both' } },
    ])
  })

  it('release leases while paused, and take all of them again with the resume or none', async () => {
    const { path, operation_id } = await running({}, work)
    expect(await intervene(path, { type: 'release_leases' })).toMatchObject(notApplicable)
    await p.query(`update operations.operations set engine_status = 'paused' where operation_id = $1`, [operation_id])
    await p.query(
      `update operations.operation_control set control = 'pause', pause_reason = 'operator' where operation_id = $1`,
      [operation_id],
    )
    expect(await intervene(path, { type: 'release_leases' })).toMatchObject(notApplicable)
    const lease = JSON.stringify([{ resource_id: 'r1', mode: 'exclusive' }])
    await p.query(
      `update operations.plans set document = jsonb_set(document, '{leases}', $2::jsonb)
       where plan_id = (select plan_id from operations.operations where operation_id = $1)`,
      [operation_id, lease],
    )
    await p.query(`insert into operations.leases (resource_id, operation_id, mode) values ('r1', $1, 'exclusive')`, [
      operation_id,
    ])
    expect(await intervene(path, { type: 'release_leases' })).toMatchObject({
      status: 201,
      body: { intervention: { status: 'applied' } },
    })
    const other = await running({}, work)
    await p.query(`insert into operations.leases (resource_id, operation_id, mode) values ('r1', $1, 'exclusive')`, [
      other.operation_id,
    ])
    const context = async () => (await p.as('eva').get(`${path}/gates/go`)).body.context
    expect(await context()).toMatchObject({ conflicts: [{ kind: 'lease', id: other.operation_id, resource_id: 'r1' }] })
    const resume = () => p.as('olga').post(`${path}/resume`, { reason })
    expect(await resume()).toMatchObject({
      ...refusal('plan_locked', 'resource_lease_held', 409),
      body: { blockers: [{ operation_id: other.operation_id }] },
    })
    await p.query('delete from operations.leases where operation_id = $1', [other.operation_id])
    expect((await resume()).status).toBe(202)
    expect(await p.query('select resource_id from operations.leases where operation_id = $1', [operation_id])).toEqual([
      { resource_id: 'r1' },
    ])
    expect(await context()).toMatchObject({ conflicts: [] })
  })

  it('by a patch name only secrets that the pool of their node may resolve', async () => {
    const { path } = await running({}, work)
    const propose = (secret: string, dry_run: boolean) => {
      const node = { node_id: 'more', executor: 'noop', with: {}, depends_on: ['c'], secrets: { token: secret } }
      const changes = [{ op: 'add_node', node }]
      return p.as('olga').post(`${path}/patches`, { base_revision: 1, reason, changes, dry_run })
    }
    expect(await propose('secret://file/root-password#1', false)).toMatchObject({
      ...refusal('policy_denied', 'secret_not_allowed', 403),
      body: { violations: [{ pointer: '/nodes/more/secrets/token', code: 'secret_not_allowed' }] },
    })
    expect((await propose('secret://file/fleet-token#1', true)).status).toBe(200)
  })

  it('on the whole operation are offered if they have an effect, to those who may', async () => {
    const { path, operation_id } = await running({}, work)
    const offered = async (who: Parameters<typeof p.as>[0] = 'olga') => {
      const { allowed_actions } = (await p.as(who).get(path)).body
      const said = allowed_actions.map((entry: { action: string; allowed: boolean; reason_code: string | null }) => [
        entry.action,
        entry.allowed || entry.reason_code,
      ])
      return Object.fromEntries(said)
    }
    const none = 'intervention_not_applicable'
    const first = { extend_deadline: true, set_limits: true, release_leases: none, override_freeze: none }
    expect(await offered()).toMatchObject({ ...first, delegate_gate: 'permission_missing' })
    expect(await offered('eva')).toMatchObject({ set_limits: 'permission_missing', delegate_gate: none })
    // A new sign-in would not help: the state is the reason.
    const long_ago = { ...p.people.eva, auth_age_s: 1000 }
    expect(await offered(long_ago)).toMatchObject({ delegate_gate: none })
    await p.openGate(operation_id, 'go')
    expect(await offered(long_ago)).toMatchObject({ delegate_gate: 'reauth_required' })
    expect(await offered('eva')).toMatchObject({ set_limits: 'permission_missing', delegate_gate: true })
    const calendar = (approvers: string[]) => ({
      windows: {},
      freezes: { launch: { from: '2020-01-01T00:00:00Z', to: '2100-01-01T00:00:00Z', approvers } },
      asked: null,
      targets: { r1: { windows: [], freezes: ['launch'] } },
    })
    const freeze = (approvers: string[]) =>
      p.query('update operations.operation_control set calendar = $2 where operation_id = $1', [
        operation_id,
        JSON.stringify(calendar(approvers)),
      ])
    await freeze(['storage'])
    expect(await offered()).toMatchObject({ override_freeze: 'not_eligible' })
    await freeze(['netops'])
    expect(await offered()).toMatchObject({ override_freeze: true })
    await p.query(
      `update operations.operation_control set control = 'cancel', cancel_mode = 'graceful' where operation_id = $1`,
      [operation_id],
    )
    expect(await offered()).toMatchObject({ extend_deadline: true, set_limits: 'already_cancelling' })
  })

  it('fail an attempt of a silent agent before three heartbeats are missed', async () => {
    const { path, operation_id } = await running({}, work)
    await p.query(
      `with node as (update operations.nodes set state = 'running', attempt = 1 where operation_id = $1 and node_id = 'a'),
       attempt as (insert into operations.node_attempts (operation_id, node_id, attempt, generation, fence, phase, executor, key)
         values ($1, 'a', 1, 1, 7, 'running', 'external', 'x'))
       insert into operations.executions (token_sha256, operation_id, node_id, attempt, generation, fence, pool, heartbeat_s, start_before, deadline_at, started_at, heartbeat_at)
       values ($2, $1, 'a', 1, 1, 7, 'default', 30, now() + interval '1 h', now() + interval '1 h', now(), now())`,
      [operation_id, randomUUID()],
    )
    const mark = () => intervene(path, { type: 'mark_failed', node_id: 'a', payload: { message: 'the agent is gone' } })
    expect(await mark()).toMatchObject(notApplicable)
    await p.query(`update operations.executions set heartbeat_at = now() - interval '40 s' where operation_id = $1`, [
      operation_id,
    ])
    const { allowed_actions } = (await p.as('olga').get(`${path}/nodes/a`)).body
    expect(allowed_actions).toContainEqual(expect.objectContaining({ action: 'mark_failed', allowed: true }))
    const marked = await mark()
    expect(marked).toMatchObject({ status: 202, body: { intervention: { status: 'accepted' } } })
    expect(
      await p.query(
        `select a.phase, a.error ->> 'message' as message, e.closed_at is not null as closed, n.generation
         from operations.node_attempts a join operations.executions e using (operation_id, node_id) join operations.nodes n using (operation_id, node_id)
         where a.operation_id = $1`,
        [operation_id],
      ),
    ).toEqual([{ phase: 'failed', message: 'the agent is gone', closed: true, generation: 2 }])
    const [told] = await p.query('select payload from operations.operation_commands where command_id = $1', [
      marked.body.intervention.intervention_id,
    ])
    expect(told?.payload).toMatchObject({ type: 'mark_failed', payload: { attempt: 1 } })
  })

  it('need the person who asked for them to the end: a second person alone is no two', async () => {
    const { path, operation_id } = await running({ a: 'failed' }, work)
    await p.query(`update operations.operations set risk_level = 'high' where operation_id = $1`, [operation_id])
    const { gate_id } = (await intervene(path, { type: 'skip', node_id: 'a' }, 'both')).body.intervention
    const seen = await p.seen(operation_id, gate_id)
    const approve = () => p.as('eva').post(`${path}/gates/${gate_id}/approve`, seen)
    const { both } = p.people
    const had = { ...both }
    // The approver may act everywhere, the author only where the operation does.
    await p.query(`
      insert into operations.catalog_resources (resource_id, type_key, type_version, name, parent_id, version, lifecycle_status, labels, desired_state, observed_state)
      values ('asked-eu', 'topology.region', 1, 'eu', null, 1, 'active', '{}', '{}', '{}'), ('asked-host', 'fleet.host', 1, 'h', 'asked-eu', 1, 'active', '{}', '{}', '{}')`)
    await p.query(`update operations.operations set resource_ids = '{asked-host}' where operation_id = $1`, [
      operation_id,
    ])
    const offered = async () =>
      (await p.as('eva').get(`${path}/gates/${gate_id}`)).body.allowed_actions.find(
        ({ action }: { action: string }) => action === 'approve',
      )
    for (const lost of [{ disabled: true }, { roles: ['approver'] }, { scope: { regionId: 'us1' } }]) {
      Object.assign(both, lost)
      expect(await approve()).toMatchObject(refusal('policy_denied', 'not_eligible', 403))
      // The page of the gate says so before anyone votes.
      expect(await offered()).toMatchObject({ allowed: false, reason_code: 'not_eligible' })
      Object.assign(both, { disabled: false, scope: undefined }, had)
    }
    Object.assign(both, { scope: { regionId: 'asked-eu' } })
    try {
      // A page may know rights for a moment longer; the vote asks again.
      await until(async () => (await offered()).allowed, { what: 'the offer' })
      expect((await approve()).body.status).toBe('approved')
    } finally {
      Object.assign(both, { scope: undefined }, had)
    }
  })

  it('wait for a second person if the risk is high, and take effect in one step with the approval', async () => {
    const { path, operation_id } = await running({ a: 'failed' }, work)
    await p.query(`update operations.operations set risk_level = 'high' where operation_id = $1`, [operation_id])
    const ask = (type: string, node_id: string, payload = {}) => intervene(path, { type, node_id, payload }, 'both')
    expect(
      (await intervene(path, { type: 'set_limits', payload: { max_parallel: 2 } })).body.intervention,
    ).toMatchObject({ gate_id: null })
    expect(await ask('mark_failed', 'a', { message: 'x' })).toMatchObject(notApplicable)
    const asked = await ask('skip', 'a')
    const { gate_id, intervention_id } = asked.body.intervention
    expect(asked).toMatchObject({
      status: 202,
      body: { intervention: { status: 'awaiting_second_person' }, command: { status: 'accepted' } },
    })
    const node = async () =>
      (
        await p.query(`select generation, exception from operations.nodes where operation_id = $1 and node_id = 'a'`, [
          operation_id,
        ])
      )[0]
    const command = async (id: string) =>
      (await p.query('select status, seq::int from operations.operation_commands where command_id = $1', [id]))[0]
    expect(await node()).toEqual({ generation: 1, exception: null })
    const seen = await p.seen(operation_id, gate_id)
    const approve = (who: 'both' | 'eva' | 'ada', id = gate_id, body: object = seen, instance = 0) =>
      p.as(who).post(`${path}/gates/${id}/approve`, body, { instance })
    expect(await approve('both')).toMatchObject(refusal('policy_denied', 'second_person', 403))
    expect(await approve('eva', gate_id, { ...seen, break_glass: { reason } })).toMatchObject(
      refusal('policy_denied', 'break_glass_not_allowed', 403),
    )
    const before = await command(intervention_id)
    const both = await Promise.all([approve('eva'), approve('ada', gate_id, seen, 1)])
    // Without an engine its end is not known.
    expect(both.map(({ status }) => status).sort()).toEqual([202, 409])
    expect(await node()).toEqual({ generation: 2, exception: 'skip' })
    const after = await command(intervention_id)
    expect(after?.seq).toBeGreaterThan(before?.seq)
    expect(['pending', 'sending', 'delivered']).toContain(after?.status)
    expect((await p.as('olga').get(path)).body.exceptions).toMatchObject([{ kind: 'skip', actor: { name: 'both' } }])

    await p.query(`update operations.nodes set state = 'failed' where operation_id = $1 and node_id = 'a'`, [
      operation_id,
    ])
    await p.query(`update operations.operation_commands set status = 'applied' where command_id = $1`, [
      intervention_id,
    ])
    const around = { reason, input_overrides: { delay_ms: 2 } }
    expect(await p.as('both').post(`${path}/nodes/a/retry`, around)).toMatchObject(
      refusal('policy_denied', 'second_person_needed', 403),
    )

    const second = (await ask('set_input', 'c', { input_overrides: { delay_ms: 2 } })).body.intervention
    const no = { round: 1, comment: 'no' }
    expect((await p.as('eva').post(`${path}/gates/${second.gate_id}/reject`, no)).body.status).toBe('rejected')
    // None of it has run.
    expect(await approve('ada', second.gate_id, await p.seen(operation_id, second.gate_id))).toMatchObject(
      refusal('gate_not_waiting', 'already_decided', 409),
    )
    const { body: rejected } = await p.as('ada').get(`${path}/gates/${second.gate_id}`)
    expect(rejected).toMatchObject({ consumed_at: null })
    expect(rejected.allowed_actions[0]).toMatchObject({ allowed: false, reason_code: 'already_decided' })
    expect(await command(second.intervention_id)).toMatchObject({ status: 'withdrawn' })
    const third = (await ask('set_input', 'c', { input_overrides: { delay_ms: 2 } })).body.intervention
    await p.query(`update operations.gates set deadline_at = now() - interval '1 s' where gate_id = $1`, [
      third.gate_id,
    ])
    await sweep(p.deps.db)
    expect(await command(third.intervention_id)).toMatchObject({ status: 'withdrawn' })
    const fourth = (await ask('set_input', 'c', { input_overrides: { delay_ms: 2 } })).body.intervention
    expect((await p.as('olga').post(`${path}/cancel`, { reason })).status).toBe(200)
    expect(await command(fourth.intervention_id)).toMatchObject({ status: 'superseded' })
    expect(await approve('eva', fourth.gate_id, await p.seen(operation_id, fourth.gate_id))).toMatchObject(
      refusal('gate_not_waiting', 'cancelled', 409),
    )
  })

  it('let one more person decide a gate, with the same permission and four eyes', async () => {
    const { path, operation_id } = await running({}, work)
    await p.openGate(operation_id, 'go')
    const until = new Date(Date.now() + 3_600_000).toISOString()
    const delegate = (to_user: string, who: 'olga' | 'eva') =>
      intervene(path, { type: 'delegate_gate', payload: { gate_id: 'go', to_user, until } }, who)
    const seen = await p.seen(operation_id, 'go')
    const approve = () => p.as('ivo').post(`${path}/gates/go/approve`, seen)
    expect(await approve()).toMatchObject(refusal('policy_denied', 'not_eligible', 403))
    expect(await delegate(p.people.ivo.id, 'olga')).toMatchObject(refusal('policy_denied', 'permission_missing', 403))
    expect(await delegate(randomUUID(), 'eva')).toMatchObject({ status: 422, body: { code: 'parameters_invalid' } })
    expect((await delegate(p.people.ivo.id, 'eva')).status).toBe(201)
    expect((await p.as('ivo').get('/v1/gates?for=me')).body.items).toMatchObject([{ operation_id }])
    expect(await approve()).toMatchObject({ status: 200, body: { status: 'approved' } })
  })

  it('let a second person agree to the delegation of an approver if the risk is high', async () => {
    const { path, operation_id } = await running({}, work)
    await p.openGate(operation_id, 'go')
    await p.query(`update operations.operations set risk_level = 'high' where operation_id = $1`, [operation_id])
    const until = new Date(Date.now() + 3_600_000).toISOString()
    const payload = { gate_id: 'go', to_user: p.people.ivo.id, until }
    const { gate_id } = (await intervene(path, { type: 'delegate_gate', payload }, 'eva')).body.intervention
    const seen = await p.seen(operation_id, gate_id, 'ada')
    expect(await p.as('ada').post(`${path}/gates/${gate_id}/approve`, seen)).toMatchObject({
      body: { status: 'approved' },
    })
    const own = await p.seen(operation_id, 'go', 'ivo')
    expect((await p.as('ivo').post(`${path}/gates/go/approve`, own)).body.status).toBe('approved')
  })
})

describe('a crowd at one operation', () => {
  it('leaves the connections of the database to reads of other operations', async () => {
    const { path, operation_id } = await running()
    const { plan_revision: base_revision } = must(await p.as('vic').get(path), 200).body
    const propose = (node_id: string) => {
      const changes = [{ op: 'add_node', node: { node_id, executor: 'noop', with: {} } }]
      return p.as('olga').post(`${path}/patches`, { base_revision, changes, reason })
    }
    const crowd = await p.deps.db.transaction(async (tx) => {
      await tx.execute(
        sql`select from operations.operation_control where operation_id = ${operation_id} for no key update`,
      )
      const answers = Promise.all(Array.from({ length: 20 }, (_, n) => propose(`more-${n}`)))
      // Those that lock the row, and those behind the first of them; the sweeper's own locks are of another kind.
      const atRow = () =>
        p.query(
          `select from pg_stat_activity where datname = current_database() and wait_event in ('transactionid', 'tuple')`,
        )
      await until(async () => (await atRow()).length >= 4, { what: 'the crowd at the row' })
      expect((await p.as('vic').get('/v1/operations?page_size=1')).status).toBe(200)
      // The row is still held, and only the first of the crowd have connections; the others wait in line.
      expect((await atRow()).length).toBeLessThan(10)
      return { answers }
    })
    for (const { status } of await crowd.answers) expect([201, 202, 409]).toContain(status)
  })
})

describe('keys and versions', () => {
  it('answers a repeated key with the stored bytes, over both processes, whatever has changed since', async () => {
    const { path } = await running()
    const key = randomUUID()
    const first = await p.as('olga').post(`${path}/pause`, { reason }, { key })
    await p.as('olga').post(`${path}/cancel`, { reason })
    for (const instance of [0, 1]) {
      const again = await p.as('olga').post(`${path}/pause`, { reason }, { key, instance })
      expect(again.status).toBe(first.status)
      expect(again.text).toBe(first.text)
      expect(again.headers.get('idempotency-replayed')).toBe('true')
    }
    expect(await p.as('olga').post(`${path}/pause`, { reason: 'another' }, { key })).toMatchObject(
      refusal('validation_error', 'idempotency_key_reused', 422),
    )
    // The caller is part of the key: no one reads another person's answer.
    expect(await p.as('both').post(`${path}/pause`, { reason }, { key })).toMatchObject(
      refusal('invalid_state_transition', 'already_cancelling', 409),
    )
  })

  it('carries out one command however many requests use one key at once', async () => {
    const { path, operation_id } = await running()
    const key = randomUUID()
    const asks = await Promise.all(
      Array.from({ length: 20 }, (_, n) => p.as('olga').post(`${path}/pause`, { reason }, { key, instance: n % 2 })),
    )
    expect(new Set(asks.map(({ status, text }: Reply) => `${status} ${text}`)).size).toBe(1)
    expect(
      await p.query(`select 1 from operations.operation_commands where operation_id = $1 and kind = 'pause'`, [
        operation_id,
      ]),
    ).toHaveLength(1)
  })

  it('does not store a refusal: a corrected request may use the key again', async () => {
    const { path } = await running()
    const key = randomUUID()
    expect((await p.as('olga').post(`${path}/resume`, { reason }, { key })).status).toBe(409)
    await p.as('olga').post(`${path}/pause`, { reason })
    expect((await p.as('olga').post(`${path}/resume`, { reason }, { key })).status).toBe(202)
  })

  it('compares If-Match only with the count of decided changes', async () => {
    const { path, operation_id } = await running()
    const etag = String((await p.as('olga').get(path)).headers.get('etag'))
    await p.query('update operations.operations set change_seq = change_seq + 5 where operation_id = $1', [
      operation_id,
    ])
    const any = { 'if-match': `"99-1", "nope", ${etag}` }
    expect((await p.as('olga').post(`${path}/pause`, { reason }, { headers: any })).status).toBe(200)
    const moved = await p.as('olga').post(`${path}/cancel`, { reason }, { headers: { 'if-match': etag } })
    expect(moved).toMatchObject(refusal('version_conflict', 'revision_moved', 412))
    expect(moved.body.current_version).toBeGreaterThan(1)
  })

  it('answers 409 in_progress when another command on the operation takes too long', async () => {
    const { path, operation_id } = await running()
    const blocker = await p.deps.pool.connect()
    try {
      await blocker.query('begin')
      await blocker.query('select 1 from operations.operation_control where operation_id = $1 for update', [
        operation_id,
      ])
      const late = await p.as('olga').post(`${path}/pause`, { reason })
      expect(late).toMatchObject(refusal('version_conflict', 'in_progress', 409))
      expect(late.headers.get('retry-after')).toBe('1')
    } finally {
      await blocker.query('rollback')
      blocker.release()
    }
    expect((await p.as('olga').post(`${path}/pause`, { reason })).status).toBe(200)
  })
})

describe('the list of allowed acts', () => {
  it('agrees with the outcome, for every act, state and person', async () => {
    const acts = {
      pause: {},
      resume: { acknowledge_drift: true },
      cancel: {},
      cancel_compensate: { mode: 'compensate' },
      cancel_force: { mode: 'force' },
    }
    const states: { engine: string; control: string; cancel_mode?: string; ended?: boolean }[] = [
      { engine: 'queued', control: 'run' },
      { engine: 'blocked', control: 'run' },
      { engine: 'running', control: 'pause' },
      { engine: 'paused', control: 'pause' },
      { engine: 'running', control: 'cancel', cancel_mode: 'graceful' },
      { engine: 'running', control: 'cancel', cancel_mode: 'force' },
      { engine: 'succeeded', control: 'run', ended: true },
    ]
    const { path, operation_id } = await running()
    for (const { engine, control: wanted, cancel_mode = null, ended = false } of states) {
      await p.query('update operations.operations set engine_status = $2 where operation_id = $1', [
        operation_id,
        engine,
      ])
      await p.query(
        `update operations.operation_control set control = $2, cancel_mode = $3, ended = $4, pause_reason = null,
           cancelled_at = case when $2 = 'cancel' then clock_timestamp() - interval '1 h' end where operation_id = $1`,
        [operation_id, wanted, cancel_mode, ended],
      )
      for (const who of ['olga', 'both', 'eva'] as const) {
        const { body } = await p.as(who).get(path)
        for (const [act, more] of Object.entries(acts)) {
          const said = body.allowed_actions.find(({ action }: { action: string }) => action === act)
          const tried = await p.as(who).post(`${path}/${act.replace(/_.*/, '')}`, { reason, ...more, dry_run: true })
          const seen = tried.status === 200 ? [true, null, null] : [false, tried.body.category, tried.body.code]
          expect([act, who, engine, wanted, said.allowed, said.reason_category, said.reason_code]).toEqual([
            act,
            who,
            engine,
            wanted,
            ...seen,
          ])
        }
      }
    }
  })
})

describe('the allowed acts on gates and nodes', () => {
  type Said = { action: string; allowed: boolean; reason_category: string | null; reason_code: string | null }
  const outcomeOf = ({ status, body }: Reply) =>
    status === 200 ? [true, null, null] : [false, body.category, body.code]
  const saidOf = (body: { allowed_actions: Said[] }, wanted: string) => {
    const said = body.allowed_actions.find(({ action }) => action === wanted)
    return [said?.allowed, said?.reason_category, said?.reason_code]
  }

  it('agree with the outcome at a gate', async () => {
    const { path, operation_id } = await running()
    const out = person('out', ['operator', 'approver'])
    Object.assign(p.people, { out })
    for (const status of ['armed', 'waiting', 'approved', 'rejected', 'expired', 'cancelled']) {
      await p.query('update operations.gates set status = $2 where operation_id = $1', [operation_id, status])
      for (const who of ['eva', 'ivo', 'olga', 'both', out] as const) {
        const { body } = await p.as(who).get(`${path}/gates/go`)
        const seen = { round: body.round, reviewed_digest: body.digest }
        const tries = {
          approve: ['approve', seen],
          reject: ['reject', { round: body.round, comment: 'x' }],
          break_glass: ['approve', { ...seen, break_glass: { reason: 'x' } }],
        } as const
        for (const [action, [verb, command]] of Object.entries(tries)) {
          const tried = await p.as(who).post(`${path}/gates/go/${verb}`, { ...command, dry_run: true })
          expect([status, who, action, ...saidOf(body, action)]).toEqual([status, who, action, ...outcomeOf(tried)])
        }
      }
    }
  })

  it('agree with the outcome at a node', async () => {
    const { path, operation_id } = await running()
    const payloads = {
      skip: {},
      mark_succeeded: { outputs: {}, note: 'x' },
      mark_failed: { message: 'x' },
      mark_compensated: { note: 'x' },
      set_output: { outputs: {} },
      set_input: { input_overrides: {} },
      trigger_compensation: {},
    }
    const reconciliation = { finding: 'effect_absent', note: 'x' }
    for (const state of ['pending', 'running', 'failed', 'outcome_unknown', 'succeeded', 'compensation_failed']) {
      await p.query(`update operations.nodes set state = $2 where operation_id = $1 and node_id = 'before'`, [
        operation_id,
        state,
      ])
      for (const who of ['olga', 'eva'] as const) {
        const { body } = await p.as(who).get(`${path}/nodes/before`)
        const retry = await p.as(who).post(`${path}/nodes/before/retry`, { reason, reconciliation, dry_run: true })
        expect([state, who, 'retry', ...saidOf(body, 'retry')]).toEqual([state, who, 'retry', ...outcomeOf(retry)])
        for (const [type, payload] of Object.entries(payloads)) {
          const command = { type, node_id: 'before', payload, reason, dry_run: true }
          const tried = await p.as(who).post(`${path}/interventions`, command)
          expect([state, who, type, ...saidOf(body, type)]).toEqual([state, who, type, ...outcomeOf(tried)])
        }
      }
    }
  })
})

describe('bad input', () => {
  it('is refused specifically, never as a server fault, and changes nothing', async () => {
    const { path, operation_id } = await running({ before: 'failed' })
    await p.openGate(operation_id, 'go')
    const before = await p.query('select * from operations.operation_control where operation_id = $1', [operation_id])
    const olga = p.as('olga')
    const eva = p.as('eva')
    const big = JSON.stringify({ reason: 'x', padding: 'y'.repeat(5_000_000) })
    const unknown = `/v1/operations/${randomUUID()}`
    const bare = { type: 'mark_compensated', node_id: 'before', payload: {}, reason }
    expect((await olga.post(`${path}/interventions`, bare)).body.detail).toBe(
      'mark_compensated: /payload/note is required.',
    )
    const cases: [string, Promise<Reply>, number, string, string?][] = [
      ['unknown field', olga.post(`${path}/pause`, { reason, more: 1 }), 400, 'validation_error', 'schema_violation'],
      ['wrong type', olga.post(`${path}/pause`, { reason: 7 }), 400, 'validation_error', 'schema_violation'],
      [
        'too long',
        olga.post(`${path}/pause`, { reason: 'x'.repeat(2001) }),
        400,
        'validation_error',
        'schema_violation',
      ],
      ['missing reason', olga.post(`${path}/cancel`, {}), 400, 'validation_error', 'schema_violation'],
      ['unseen reason', olga.post(`${path}/pause`, { reason: '\u200b' }), 400, 'validation_error', 'schema_violation'],
      [
        'unknown mode',
        olga.post(`${path}/cancel`, { reason, mode: 'gently' }),
        400,
        'validation_error',
        'schema_violation',
      ],
      ['no body', olga.post(`${path}/pause`), 400, 'validation_error', 'schema_violation'],
      ['not JSON', olga.post(`${path}/pause`, undefined, { raw: '{' }), 400, 'validation_error', 'schema_violation'],
      ['a list', olga.post(`${path}/pause`, []), 400, 'validation_error', 'schema_violation'],
      [
        'a member twice',
        olga.post(`${path}/pause`, undefined, { raw: '{"reason":"a","reason":"b"}' }),
        400,
        'validation_error',
        'schema_violation',
      ],
      [
        'a poisoned prototype',
        olga.post(`${path}/pause`, undefined, { raw: '{"reason":"a","__proto__":{"x":1}}' }),
        400,
        'validation_error',
        'schema_violation',
      ],
      [
        'another content type',
        olga.post(`${path}/pause`, undefined, { raw: 'reason=x', content_type: 'application/x-www-form-urlencoded' }),
        415,
        'validation_error',
        'schema_violation',
      ],
      [
        'text',
        olga.post(`${path}/pause`, undefined, { raw: 'x', content_type: 'text/plain' }),
        415,
        'validation_error',
        'schema_violation',
      ],
      [
        'an oversized body',
        olga.post(`${path}/pause`, undefined, { raw: big }),
        413,
        'validation_error',
        'schema_violation',
      ],
      [
        'no key',
        olga.post(`${path}/pause`, { reason }, { key: null }),
        400,
        'validation_error',
        'idempotency_key_required',
      ],
      [
        'a key too long',
        olga.post(`${path}/pause`, { reason }, { key: 'k'.repeat(256) }),
        400,
        'validation_error',
        'schema_violation',
      ],
      [
        'an If-Match that is none of ours',
        olga.post(`${path}/pause`, { reason }, { headers: { 'if-match': '"nope"' } }),
        412,
        'version_conflict',
        'revision_moved',
      ],
      ['an unknown operation', olga.post(`${unknown}/pause`, { reason }), 404, 'not_found', 'operation'],
      [
        'an unknown gate',
        eva.post(`${path}/gates/none/approve`, { round: 1, reviewed_digest: `sha256:${'0'.repeat(64)}` }),
        404,
        'not_found',
        'gate',
      ],
      ['no digest', eva.post(`${path}/gates/go/approve`, { round: 1 }), 400, 'validation_error', 'schema_violation'],
      [
        'a digest that is none',
        eva.post(`${path}/gates/go/approve`, { round: 1, reviewed_digest: 'x' }),
        400,
        'validation_error',
        'schema_violation',
      ],
      [
        'a reject without comment',
        eva.post(`${path}/gates/go/reject`, { round: 1 }),
        400,
        'validation_error',
        'schema_violation',
      ],
      [
        'an unknown intervention',
        olga.post(`${path}/interventions`, { type: 'wish', node_id: 'before', payload: {}, reason }),
        400,
        'validation_error',
        'schema_violation',
      ],
      ['an id that is none', olga.get('/v1/operations/42'), 400, 'validation_error', 'schema_violation'],
      ['an unknown route', olga.get('/v1/operation'), 404, 'not_found', 'route'],
      ['an unknown query', olga.get('/v1/operations?colour=red'), 400, 'validation_error', 'schema_violation'],
      [
        'a page that is too large',
        olga.get('/v1/operations?page_size=501'),
        400,
        'validation_error',
        'schema_violation',
      ],
      [
        'a page token of nobody',
        olga.get('/v1/operations?page_token=abc.def'),
        400,
        'validation_error',
        'page_token_invalid',
      ],
      ['a viewer', p.as('vic').post(`${path}/pause`, { reason }), 403, 'policy_denied', 'permission_missing'],
      ['nobody', p.as('nobody').get(path), 403, 'policy_denied', 'permission_missing'],
      ['no token', olga.get(path, { headers: { authorization: '' } }), 401, 'policy_denied', 'invalid_token'],
      [
        'a foreign token',
        olga.get(path, { headers: { authorization: 'Bearer a.b.c' } }),
        401,
        'policy_denied',
        'invalid_token',
      ],
      [
        "another's x-user-id",
        olga.get(path, { headers: { 'x-user-id': randomUUID() } }),
        401,
        'policy_denied',
        'invalid_token',
      ],
    ]
    for (const [name, call, status, category, code] of cases) {
      const reply = await call
      expect([name, reply.status, reply.body?.category, reply.body?.code], reply.text).toEqual([
        name,
        status,
        category,
        code,
      ])
      expect(reply.headers.get('content-type'), name).toContain('application/problem+json')
      expect(reply.body.hint, name).toBeTruthy()
      expect(reply.body.request_id, name).toBe(reply.headers.get('x-request-id'))
    }
    expect(await p.query('select * from operations.operation_control where operation_id = $1', [operation_id])).toEqual(
      before,
    )
    expect(
      await p.query(`select kind from operations.operation_commands where operation_id = $1`, [operation_id]),
    ).toEqual([{ kind: 'start' }])
  })
})
