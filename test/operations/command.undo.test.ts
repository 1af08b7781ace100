import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sweep } from '../../apps/operations/upkeep/sweeper.ts'
import { recordChanges } from '../../db/operations/operations/record.ts'
import { must, type Platform, problem, startPlatform } from './support/platform.ts'

/** Decisions of a command that are taken back after people decided other things in between. No relay runs. */
let p: Platform
beforeAll(async () => {
  p = await startPlatform({ relay: false, env: { OPERATIONS__COMMANDS__WAIT_MS: '0' } })
})
afterAll(() => p.stop())

const reason = 'a test'
const graph = {
  nodes: [
    { node_id: 'a', executor: 'noop', with: {} },
    { node_id: 'b', executor: 'noop', with: { delay_ms: 1 }, depends_on: ['a'] },
  ],
  gates: [
    { gate_id: 'go', policy: { approvals: { quorum: 2, groups: [{ group: 'netops', min: 2 }] } }, guards: ['b'] },
  ],
}
const SET_INPUT = { type: 'set_input', node_id: 'b', payload: { input_overrides: { delay_ms: 7 } }, reason }
const waiting = async (policy: Record<string, unknown> = {}) => {
  const [go] = graph.gates
  const gates = [{ ...go, policy: { ...go?.policy, approvals: { ...go?.policy.approvals, ...policy } } }]
  const { operation_id } = await p.startOperation({ ...graph, gates })
  await p.openGate(operation_id, 'go')
  const path = `/v1/operations/${operation_id}`
  const gate = async () => must(await p.as('vic').get(`${path}/gates/go`), 200).body
  return {
    path,
    gate,
    approve: async (who: 'eva' | 'ada') =>
      must(await p.as(who).post(`${path}/gates/go/approve`, await p.seen(operation_id, 'go')), 200, 202).body,
    does: async (verb: string, body: Record<string, unknown>) => must(await p.as('olga').post(path + verb, body), 202),
    /** A patch that eva and ada approve, as the gate demands. */
    patched: async (...changes: Record<string, unknown>[]) => {
      const { body } = must(await p.as('both').post(`${path}/patches`, { base_revision: 1, changes, reason }), 201)
      const approve = `${path}/patches/${body.patch_id}/approve`
      const seen = { reviewed_digest: body.digest }
      must(await p.as('eva').post(approve, seen), 200)
      must(await p.as('ada').post(approve, seen), 202)
    },
    patchStatus: async () => must(await p.as('vic').get(`${path}/patches`), 200).body.items[0].status,
    /** The kinds of the commands that were withdrawn, in order. */
    withdrawn: async () => {
      const { body } = must(await p.as('vic').get(`${path}/timeline?types=command.withdrawn`), 200)
      return body.events.map(({ data }: { data: { kind: string } }) => data.kind)
    },
    row: async (node_id: string) =>
      (
        await p.query(
          `select state, removed, outputs, gate_ids, spec ->> 'on_failure' as on_failure from operations.nodes where operation_id = $1 and node_id = $2`,
          [operation_id, node_id],
        )
      )[0],
    /** The first such command that is not sent yet expires. */
    lapses: async (kind: string) => {
      await p.query(
        `update operations.operation_commands set not_after = clock_timestamp() - interval '1 s' where command_id =
         (select command_id from operations.operation_commands where operation_id = $1 and kind = $2 and status = 'pending' order by seq limit 1)`,
        [operation_id, kind],
      )
      expect(await sweep(p.deps.db)).toBe(1)
    },
  }
}
const votesOf = (gate: { votes: { actor: { name: string } }[] }) => gate.votes.map(({ actor }) => actor.name)

/** Records outcomes of commands as the reducer does, one batch a call. */
const reducerOf = (operation_id: string) => {
  const ref = { namespace: 'default', workflow_id: operation_id, run_id: '' }
  const counts = { total: 1, done: 0, running: 0, failed: 0, waiting: 0, open_gates: 0 }
  const report = { ...counts, engine_status: 'running' as const, blocked_on: [] }
  let record_seq = 0
  return (...outcomes: [command_id: string, status: 'expired' | 'applied'][]) => {
    record_seq += 1
    const changes = outcomes.map(([command_id, status]) => ({ t: 'command' as const, command_id, status }))
    return recordChanges(p.deps.db, operation_id, { record_seq, changes, report }, ref)
  }
}

describe('a command that is withdrawn', () => {
  it('as more time for a gate gives back only the time: a decision made meanwhile counts', async () => {
    const { gate, approve, does, lapses } = await waiting()
    const more = { type: 'extend_deadline', payload: { of: 'gate', id: 'go', add_s: 600 }, reason }
    const before = await gate()
    await does('/interventions', more)
    await lapses('intervene')
    expect(await gate()).toMatchObject({ status: 'waiting', round: 1, deadline_at: before.deadline_at })
    await does('/interventions', more)
    await approve('eva')
    expect(await approve('ada')).toMatchObject({ status: 'approved' })
    await lapses('intervene')
    expect(await gate()).toMatchObject({ status: 'approved', round: 1, decided: { by: { name: 'ada' } } })
  })

  it('as other inputs withdraws the approvals of those: they are asked in a round of its own', async () => {
    const { gate, approve, does, lapses } = await waiting()
    const before = await gate()
    await does('/interventions', SET_INPUT)
    await approve('eva')
    const agreed = await approve('ada')
    expect(agreed.status).toBe('approved')
    await lapses('intervene')
    expect(await gate()).toMatchObject({
      status: 'waiting',
      digest: before.digest,
      decided: null,
      round: agreed.round + 1,
    })
  })

  it('as another limit or a patch leaves a later limit in force; without that the first one is back', async () => {
    const { path, does, lapses } = await waiting()
    const limit = async () => (await p.as('vic').get(path)).body.max_parallel
    const set = (max_parallel: number) =>
      does('/interventions', { type: 'set_limits', payload: { max_parallel }, reason })
    const before = await limit()
    await set(2)
    await set(3)
    await lapses('intervene')
    expect(await limit()).toBe(3)
    await lapses('intervene')
    expect(await limit()).toBe(before)
    const changes = [{ op: 'add_node', node: { node_id: 'c', executor: 'noop', with: {} } }]
    const { body } = must(await p.as('both').post(`${path}/patches`, { base_revision: 1, changes, reason }), 201)
    must(await p.as('eva').post(`${path}/patches/${body.patch_id}/approve`, { reviewed_digest: body.digest }), 202)
    await set(3)
    await lapses('patch_applied')
    expect(await limit()).toBe(3)
  })

  it.each([
    ['other inputs', 'intervene', SET_INPUT],
    ['a patch', 'patch_applied', undefined],
  ])('as %s leaves no vote behind for another subject', async (_what, kind, intervention) => {
    const { path, gate, approve, does, patched, lapses } = await waiting()
    const before = await gate()
    if (intervention) await does('/interventions', intervention)
    else await patched({ op: 'update_node', node_id: 'b', set: { with: { delay_ms: 7 } } })
    const asked = await gate()
    expect(asked.digest).not.toBe(before.digest)
    expect(votesOf(await approve('eva'))).toEqual(['eva'])
    await lapses(kind)
    const after = await gate()
    expect(after).toMatchObject({ status: 'waiting', digest: before.digest, missing: [{ group: 'netops', count: 2 }] })
    expect(votesOf(after)).toEqual([])
    expect(await approve('ada')).toMatchObject({ status: 'waiting', missing: [{ group: 'netops', count: 1 }] })
    expect(await approve('eva')).toMatchObject({ status: 'approved' })
    const { body } = await p.as('vic').get(`${path}/timeline?types=gate.reopened`)
    expect(body.events.at(-1)).toMatchObject({ gate_id: 'go', data: { round: after.round } })
    expect((await p.as('vic').get(path)).body.open_gates).toEqual([])
  })

  it.each(['withdrawn', 'expired', 'expired in the same batch'])(
    'as a patch (%s) takes later patches with it, which were reviewed on a graph that never came to be',
    async (as) => {
      const node = (node_id: string, after: string) => ({ node_id, executor: 'noop', with: {}, depends_on: [after] })
      const { operation_id } = await p.startOperation({ nodes: [{ node_id: 'a', executor: 'noop', with: {} }] })
      const path = `/v1/operations/${operation_id}`
      const patch = async (base_revision: number, added: object) => {
        const body = { base_revision, changes: [{ op: 'add_node', node: added }], reason }
        const { patch_id, digest } = must(await p.as('olga').post(`${path}/patches`, body), 201, 202).body
        const approve = `${path}/patches/${patch_id}/approve`
        return must(await p.as('eva').post(approve, { reviewed_digest: digest }), 202).body
      }
      const first = await patch(1, node('x', 'a'))
      const second = await patch(2, node('y', 'x'))
      const [one, two] = [first, second].map(({ command }) => command.command_id)
      if (as === 'withdrawn') {
        await p.query(
          `update operations.operation_commands set status = 'applied' where operation_id = $1 and kind <> 'patch_applied'`,
          [operation_id],
        )
        await p.query(
          `update operations.operation_commands set not_after = clock_timestamp() - interval '1 s' where command_id = $1`,
          [one],
        )
        await sweep(p.deps.db)
      } else {
        await p.query(`update operations.operation_commands set status = 'delivered' where operation_id = $1`, [
          operation_id,
        ])
        const says = reducerOf(operation_id)
        // The engine took the second one before it learned of that.
        if (as === 'expired') {
          await says([one, 'expired'])
          await says([two, 'applied'])
        } else await says([one, 'expired'], [two, 'applied'])
      }
      const nodes = await p.query(
        'select node_id, state from operations.nodes where operation_id = $1 order by ordinal',
        [operation_id],
      )
      expect(nodes.map(({ node_id, state }) => `${node_id} ${state}`)).toEqual(['a pending', 'x removed', 'y removed'])
      const { body } = await p.as('olga').get(`${path}/commands/${two}`)
      expect(body.command).toMatchObject({ status: 'withdrawn', code: 'withdrawn' })
      const { items } = (await p.as('olga').get(`${path}/patches`)).body
      expect(items.map(({ status }: { status: string }) => status)).toEqual(['not_applicable', 'not_applicable'])
      expect((await p.as('olga').get(`${path}/graph`)).body).toMatchObject({
        plan_revision: 5,
        nodes: [{ node_id: 'a' }],
      })
    },
  )

  it('with one that expired leaves no number for which the end of the operation would wait', async () => {
    const { path, does } = await waiting()
    const operation_id = String(path.split('/').at(-1))
    await does('/interventions', SET_INPUT)
    await p.query(`update operations.operation_commands set status = 'delivered' where operation_id = $1`, [
      operation_id,
    ])
    await does('/interventions', SET_INPUT)
    const commands = () =>
      p.query(
        'select command_id, kind, status, seq::int from operations.operation_commands where operation_id = $1 order by seq',
        [operation_id],
      )
    const first = (await commands()).find(({ kind }) => kind === 'intervene')
    await reducerOf(operation_id)([first?.command_id, 'expired'])
    const [second, last] = (await commands()).slice(-2)
    expect(second).toMatchObject({ kind: 'intervene', status: 'withdrawn' })
    expect(last).toMatchObject({ kind: 'place_free', status: 'pending' })
  })

  it('as a patch takes values with it that someone gave its node: none runs on the approval from before the patch', async () => {
    const { path, gate, approve, patched, withdrawn, lapses } = await waiting()
    await approve('eva')
    const approved = await approve('ada')
    await patched({ op: 'update_node', node_id: 'b', set: { with: { delay_ms: 7 } } })
    const other = { ...SET_INPUT, payload: { input_overrides: { delay_ms: 99 } } }
    const change = () => p.as('olga').post(`${path}/interventions`, other, { key: 'other values' })
    must(await change(), 202)
    expect(await gate()).toMatchObject({ status: 'waiting' })
    await lapses('patch_applied')
    // As if the process had died before it answered.
    await p.query(
      `update operations.idempotency set status = null, headers = null, body = null where key = 'other values'`,
    )
    expect(problem(await change())).toBe('409 invalid_state_transition/command_withdrawn')
    expect(await gate()).toMatchObject({ status: 'approved', digest: approved.digest })
    expect((await p.as('vic').get(`${path}/nodes/b`)).body.inputs).toMatchObject({ effective: { delay_ms: 1 } })
    expect(await withdrawn()).toEqual(['intervene', 'patch_applied'])
  })

  it('as other inputs takes a later patch of its node with it: no gate shows an older node', async () => {
    const { gate, does, patched, patchStatus, withdrawn, row, lapses } = await waiting()
    const before = await gate()
    await does('/interventions', SET_INPUT)
    await patched(
      { op: 'update_node', node_id: 'b', set: { on_failure: 'tolerate' } },
      { op: 'add_gate', gate: { gate_id: 'h', policy: { approvals: { quorum: 1 } }, guards: ['b'] } },
    )
    expect(await row('b')).toMatchObject({ on_failure: 'tolerate', gate_ids: expect.arrayContaining(['go', 'h']) })
    await lapses('intervene')
    expect(await row('b')).toMatchObject({ on_failure: 'hold', gate_ids: ['go'] })
    expect(await gate()).toMatchObject({ status: 'waiting', digest: before.digest })
    expect(await patchStatus()).toBe('not_applicable')
    expect(await withdrawn()).toEqual(['patch_applied', 'intervene'])
  })

  it('as a retry takes a later patch behind its gate with it: its approval covers no patch', async () => {
    const { path, gate, approve, does, patched, patchStatus, withdrawn, row, lapses } = await waiting()
    await approve('eva')
    const approved = await approve('ada')
    const operation_id = path.split('/').at(-1)
    await p.query(
      `update operations.nodes set attempt = 1, state = case node_id when 'b' then 'failed' else 'succeeded' end where operation_id = $1`,
      [operation_id],
    )
    await p.query(
      `update operations.gates set consumed_at = clock_timestamp() where operation_id = $1 and gate_id = 'go'`,
      [operation_id],
    )
    await does('/nodes/b/retry', { reason })
    await patched({ op: 'add_node', node: { node_id: 'c', executor: 'noop', with: {}, depends_on: ['b'] } })
    expect(await gate()).toMatchObject({ status: 'waiting' })
    await lapses('retry_node')
    expect(await gate()).toMatchObject({ status: 'approved', digest: approved.digest })
    expect(await row('b')).toMatchObject({ state: 'failed' })
    expect(await row('c')).toMatchObject({ removed: true })
    expect(await patchStatus()).toBe('not_applicable')
    expect(await withdrawn()).toEqual(['patch_applied', 'retry_node'])
  })
})

describe('a command that a cancel supersedes', () => {
  it('leaves the decisions of its gates to those who made them', async () => {
    const { path, gate, patched } = await waiting()
    const decisions = async () => {
      const { events } = must(await p.as('vic').get(`${path}/timeline`), 200).body
      const told = events.filter(
        (one: { type: string; gate_id: string | null }) =>
          one.gate_id === 'go' && /^gate\.(approved|rejected|reopened)$/.test(one.type),
      )
      return told.map(({ type, actor }: { type: string; actor: { name: string } }) => [type, actor.name])
    }
    const operation_id = String(path.split('/').at(-1))
    const { round } = await p.seen(operation_id, 'go')
    must(await p.as('eva').post(`${path}/gates/go/reject`, { round, comment: 'no' }), 200, 202)
    await patched({ op: 'add_node', node: { node_id: 'c', executor: 'noop', with: {}, depends_on: ['b'] } })
    must(await p.as('olga').post(`${path}/cancel`, { reason }), 200, 202)
    expect(await gate()).toMatchObject({ status: 'rejected', round: 1 })
    expect(await decisions()).toEqual([['gate.rejected', 'eva']])
  })

  it('as a retry states no refusal in the name of whoever cancels', async () => {
    const { path, gate } = await waiting()
    const operation_id = String(path.split('/').at(-1))
    const { round } = await p.seen(operation_id, 'go')
    must(await p.as('eva').post(`${path}/gates/go/reject`, { round, comment: 'no' }), 200, 202)
    await p.query(
      `update operations.nodes set attempt = 1, state = case node_id when 'b' then 'failed' else 'succeeded' end where operation_id = $1`,
      [operation_id],
    )
    await p.query(`update operations.operation_commands set status = 'applied' where operation_id = $1`, [operation_id])
    must(await p.as('olga').post(`${path}/nodes/b/retry`, { reason }), 202)
    must(await p.as('both').post(`${path}/cancel`, { reason }), 200, 202)
    expect(await gate()).toMatchObject({ status: 'rejected', round: 2 })
    const { body } = must(await p.as('vic').get(`${path}/timeline?types=gate.rejected`), 200)
    expect(body.events.map(({ actor }: { actor: { name: string } }) => actor.name)).toEqual(['eva', 'Signalbox'])
  })

  it('as a retry states no approval once more', async () => {
    const { path, gate, approve } = await waiting()
    await approve('eva')
    await approve('ada')
    const operation_id = path.split('/').at(-1)
    await p.query(
      `update operations.nodes set attempt = 1, state = case node_id when 'b' then 'failed' else 'succeeded' end where operation_id = $1`,
      [operation_id],
    )
    await p.query(`update operations.gates set consumed_at = clock_timestamp() where operation_id = $1`, [operation_id])
    must(await p.as('olga').post(`${path}/nodes/b/retry`, { reason }), 202)
    must(await p.as('both').post(`${path}/cancel`, { reason }), 200, 202)
    expect(await gate()).toMatchObject({ status: 'approved', round: 1 })
    const { body } = must(await p.as('vic').get(`${path}/timeline?types=gate.approved`), 200)
    expect(body.events.map(({ actor }: { actor: { name: string } }) => actor.name)).toEqual(['ada'])
  })
})

describe('an operation that the engine has not looked at since', () => {
  it('keeps the time that was added for it when the engine reports an earlier extension', async () => {
    const { operation_id } = await p.startOperation(graph, { more: { constraints: { deadline_s: 3600 } } })
    await p.query(`update operations.operation_commands set status = 'delivered' where operation_id = $1`, [
      operation_id,
    ])
    const path = `/v1/operations/${operation_id}`
    const more = async (add_s: number) => {
      const body = { type: 'extend_deadline', payload: { of: 'operation', add_s }, reason }
      return must(await p.as('olga').post(`${path}/interventions`, body), 202).body.command.command_id
    }
    const [first] = [await more(600), await more(1200)]
    const stored = async () =>
      Date.parse(
        (await p.query('select deadline_at from operations.operations where operation_id = $1', [operation_id]))[0]
          ?.deadline_at,
      )
    const both = await stored()
    const counts = { total: 1, done: 0, running: 0, failed: 0, waiting: 0, open_gates: 0 }
    const report = { ...counts, engine_status: 'running' as const, blocked_on: [] }
    const changes = [
      { t: 'command' as const, command_id: first, status: 'applied' as const },
      { t: 'deadline' as const, deadline_at: both - 1_200_000 },
    ]
    await recordChanges(
      p.deps.db,
      operation_id,
      { record_seq: 1, changes, report },
      { namespace: 'default', workflow_id: operation_id, run_id: '' },
    )
    expect(await stored()).toBe(both)
  })

  it('is blocked only on what the rows still know, and shows its deadline while its time runs', async () => {
    const { operation_id } = await p.startOperation(graph, { more: { constraints: { deadline_s: 3600 } } })
    await p.openGate(operation_id, 'go')
    const path = `/v1/operations/${operation_id}`
    const look = async () => must(await p.as('vic').get(path), 200).body
    const kinds = async () => (await look()).blocked_on.map(({ kind }: { kind: string }) => kind)
    const counts = { total: 2, done: 1, running: 0, failed: 0, waiting: 1, open_gates: 1 }
    const gate = { kind: 'gate' as const, id: 'go', message: 'Gate go waits for a decision.' }
    const paused = { kind: 'paused' as const, id: operation_id, message: 'Paused by an operator.' }
    const report = { ...counts, engine_status: 'blocked' as const, blocked_on: [gate, paused] }
    const ref = { namespace: 'default', workflow_id: operation_id, run_id: '' }
    await recordChanges(p.deps.db, operation_id, { record_seq: 1, changes: [], report }, ref)
    expect(await kinds()).toEqual(['gate'])
    expect((await look()).deadline_at).toEqual(expect.any(String))
    must(await p.as('olga').post(`${path}/pause`, { reason }), 200, 202)
    expect(await kinds()).toEqual(['gate', 'paused'])
    expect((await look()).deadline_at).toBeNull()
    must(await p.as('olga').post(`${path}/cancel`, { reason }), 200, 202)
    expect(await kinds()).toEqual([])
  })
})

describe('a start that is withdrawn', () => {
  it('closes the patches of its operation, approved ones too', async () => {
    const { path, patched, lapses } = await waiting()
    await patched({ op: 'update_node', node_id: 'b', set: { with: { delay_ms: 7 } } })
    const changes = [{ op: 'update_node', node_id: 'b', set: { with: { delay_ms: 8 } } }]
    must(await p.as('both').post(`${path}/patches`, { base_revision: 2, changes, reason }), 201)
    await lapses('start')
    const { items } = must(await p.as('vic').get(`${path}/patches`), 200).body
    expect(items.map(({ status }: { status: string }) => status)).toEqual(['not_applicable', 'not_applicable'])
    const { body } = await p.as('vic').get(`${path}/timeline?types=patch.not_applicable`)
    expect(body.events.map(({ data }: { data: object }) => data)).toEqual([
      { why: 'operation_ended' },
      { why: 'operation_ended' },
    ])
    const { patch_id, digest: reviewed_digest } = items[0]
    const late = await p.as('eva').post(`${path}/patches/${patch_id}/approve`, { reviewed_digest })
    expect([problem(late), late.body.detail]).toEqual([
      '409 invalid_state_transition/patch_closed',
      'The operation has ended: the patch no longer applies.',
    ])
    const held = 'select from operations.nodes where operation_id = $1 and hold_patch_id is not null'
    expect(await p.query(held, [path.split('/').at(-1)])).toEqual([])
  })

  it('stays withdrawn if a relay that was stopped sends it all the same', async () => {
    const { path } = await waiting()
    const operation_id = path.split('/').at(-1) ?? ''
    must(await p.as('olga').post(`${path}/cancel`, { reason }), 200, 202)
    const [start] = await p.query(
      `select command_id, status from operations.operation_commands where operation_id = $1 and kind = 'start'`,
      [operation_id],
    )
    expect(start?.status).toBe('superseded')
    const { command_id } = start as { command_id: string }
    expect(await reducerOf(operation_id)([command_id, 'applied'])).toMatchObject({ withdrawn: true })
    const { body } = must(await p.as('olga').get(`${path}/commands/${command_id}`), 200)
    expect(body.command).toMatchObject({ status: 'withdrawn', code: 'superseded' })
    const { events } = must(await p.as('vic').get(`${path}/timeline?types=operation.ended`), 200).body
    expect(events).toHaveLength(1)
  })
})

describe('a resume that is withdrawn', () => {
  const control = async (path: string) =>
    (
      await p.query('select control, lease_state from operations.operation_control where operation_id = $1', [
        path.split('/').at(-1),
      ])
    )[0]
  const steer = async (path: string, ...verbs: string[]) => {
    for (const verb of verbs) must(await p.as('olga').post(`${path}/${verb}`, { reason }), 200, 202)
  }

  it('pauses no operation that a later resume lets run', async () => {
    const { path, lapses } = await waiting()
    await steer(path, 'pause', 'resume', 'pause', 'resume')
    await lapses('resume')
    expect(await control(path)).toMatchObject({ control: 'run' })
    await lapses('resume')
    expect(await control(path)).toMatchObject({ control: 'pause' })
  })

  it('leaves an operation paused that was paused since', async () => {
    const { path, lapses } = await waiting()
    await steer(path, 'pause', 'resume', 'pause')
    await lapses('resume')
    expect(await control(path)).toMatchObject({ control: 'pause' })
    await steer(path, 'resume')
    expect(await control(path)).toMatchObject({ control: 'run' })
  })

  it('is followed by one that tells the engine of every gate that asks again', async () => {
    const { path, gate, does } = await waiting()
    await does('/interventions', SET_INPUT)
    await steer(path, 'pause', 'resume')
    const { round } = await gate()
    const [resumed] = await p.query(
      `select payload from operations.operation_commands where operation_id = $1 and kind = 'resume'`,
      [path.split('/').at(-1)],
    )
    expect(round).toBe(2)
    expect(resumed?.payload).toMatchObject({ gates: { go: { status: 'waiting', round } }, guarding: { go: ['b'] } })
  })

  it('gives back the leases that it had taken again', async () => {
    const { path, lapses } = await waiting()
    const operation_id = path.split('/').at(-1)
    await p.query(
      `update operations.plans set document = jsonb_set(document, '{leases}', '[{"resource_id":"r1","mode":"exclusive"}]')
       where plan_id = (select plan_id from operations.operations where operation_id = $1)`,
      [operation_id],
    )
    await p.query(`insert into operations.leases (resource_id, operation_id, mode) values ('r1', $1, 'exclusive')`, [
      operation_id,
    ])
    const held = () => p.query('select resource_id from operations.leases where operation_id = $1', [operation_id])
    await steer(path, 'pause')
    await p.query(`update operations.operations set engine_status = 'paused' where operation_id = $1`, [operation_id])
    must(await p.as('olga').post(`${path}/interventions`, { type: 'release_leases', payload: {}, reason }), 201)
    expect(await held()).toEqual([])
    await steer(path, 'resume')
    expect(await held()).toEqual([{ resource_id: 'r1' }])
    await steer(path, 'pause', 'resume')
    await lapses('resume')
    expect(await control(path)).toEqual({ control: 'run', lease_state: 'held' })
    await lapses('resume')
    expect(await control(path)).toEqual({ control: 'pause', lease_state: 'given_back' })
    expect(await held()).toEqual([])
  })
})

describe('an intervention that takes effect with its commit', () => {
  it.each(['medium', 'high'])('is never withdrawn, at %s risk', async (risk_level) => {
    const { path, row } = await waiting()
    const operation_id = String(path.split('/').at(-1))
    await p.query(`update operations.operations set risk_level = $2 where operation_id = $1`, [
      operation_id,
      risk_level,
    ])
    await p.query(`update operations.nodes set state = 'succeeded' where operation_id = $1 and node_id = 'a'`, [
      operation_id,
    ])
    const set = { type: 'set_output', node_id: 'a', payload: { outputs: { n: 2 } }, reason }
    const { intervention } = must(await p.as('olga').post(`${path}/interventions`, set), 201, 202).body
    if (intervention.gate_id) {
      const seen = await p.seen(operation_id, intervention.gate_id)
      must(await p.as('eva').post(`${path}/gates/${intervention.gate_id}/approve`, seen), 202)
    }
    expect(
      await p.query('select class, status, not_after from operations.operation_commands where command_id = $1', [
        intervention.intervention_id,
      ]),
    ).toEqual([{ class: 'edit', status: 'pending', not_after: null }])
    expect(await row('a')).toMatchObject({ outputs: { n: 2 } })
  })
})

describe('an intervention that a second person agrees to', () => {
  it('has its time from its start on, while that waits for leases', async () => {
    const { path } = await waiting()
    const operation_id = path.split('/').at(-1)
    await p.query(`update operations.operations set risk_level = 'high' where operation_id = $1`, [operation_id])
    await p.query(
      `update operations.operation_commands set next_try_at = 'infinity', not_after = null where operation_id = $1 and kind = 'start'`,
      [operation_id],
    )
    const asked = must(await p.as('olga').post(`${path}/interventions`, SET_INPUT), 201, 202).body.intervention
    const seen = await p.seen(String(operation_id), asked.gate_id)
    must(await p.as('eva').post(`${path}/gates/${asked.gate_id}/approve`, seen), 202)
    const [row] = await p.query('select status, not_after from operations.operation_commands where command_id = $1', [
      asked.intervention_id,
    ])
    expect(row).toEqual({ status: 'pending', not_after: null })
  })
})

describe('an approval that is withdrawn', () => {
  it('asks the others again with the full time, however late it was', async () => {
    const { path, gate, approve } = await waiting({ reject_rule: 'majority' })
    await approve('eva')
    await approve('ada')
    // It was decided in time, and that time is over now.
    await p.query(
      `update operations.gates set waiting_since = clock_timestamp() - interval '2 h', deadline_at = clock_timestamp() - interval '1 h', escalation_level = 1 where operation_id = $1`,
      [path.split('/').at(-1)],
    )
    const { round } = await gate()
    must(await p.as('eva').post(`${path}/gates/go/reject`, { round, comment: 'wait' }), 200, 202)
    const again = await gate()
    expect(again).toMatchObject({ status: 'waiting', round: round + 1, escalation: { level: 0 } })
    expect(votesOf(again).sort()).toEqual(['ada', 'ada', 'eva', 'eva'])
    expect(Date.parse(again.deadline_at) - Date.parse(again.waiting_since)).toBe(86_400_000)
    expect(Date.parse(again.deadline_at)).toBeGreaterThan(Date.now())
  })
})
