import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sweep } from '../../apps/operations/upkeep/sweeper.ts'
import { freePort } from '../support/ports.ts'
import { until } from '../support/until.ts'
import { must, type Platform, problem, startPlatform } from './support/platform.ts'
import { startWorker } from './support/worker.ts'

/** Interventions against a running engine: what is agreed to, what is decided twice, and what is answered. */
let p: Platform
let worker: Awaited<ReturnType<typeof startWorker>>
let folder: string
/** Nobody listens there: each attempt fails. */
let closed: string

beforeAll(async () => {
  closed = `http://127.0.0.1:${await freePort()}/`
  folder = mkdtempSync(join(tmpdir(), 'signalbox-interventions-'))
  const policy_file = join(folder, 'policy.yaml')
  const loopback = { scheme: 'http', host: '127.0.0.1', networks: ['127.0.0.0/8'], ports: ['1024-65535'] }
  const pools = { default: { destinations: [loopback], secrets: [] } }
  writeFileSync(policy_file, JSON.stringify({ format: 'signalbox/executor-policy@1', pools }))
  p = await startPlatform({
    instances: 2,
    env: { OPERATIONS__COMMANDS__WAIT_MS: '10000', WORKER__EXECUTORS__POLICY_FILE: policy_file },
  })
  worker = await startWorker(p, policy_file)
}, 120_000)
afterAll(async () => {
  await worker.stop()
  await p.stop()
  await worker.end()
  rmSync(folder, { recursive: true })
})

const reason = 'a test'
const refused = '409 invalid_state_transition/intervention_not_applicable'
const notRetryable = '409 invalid_state_transition/node_not_retryable'
const OUTPUTS = { outputs: {}, note: 'the effect is there' }

/** An operation whose node `b` has failed once. */
const failed = async (risk_level: string) => {
  const nodes = [
    { node_id: 'a', executor: 'noop', with: {}, compensate: { executor: 'noop', with: {} } },
    { node_id: 'b', executor: 'http', with: { request: { method: 'POST', url: closed } }, depends_on: ['a'] },
    { node_id: 'c', executor: 'noop', with: {}, depends_on: ['b'] },
    { node_id: 'd', executor: 'noop', with: {} },
  ]
  const { operation_id } = await p.startOperation({ nodes })
  const path = `/v1/operations/${operation_id}`
  const node = async (node_id = 'b') => must(await p.as('vic').get(`${path}/nodes/${node_id}`), 200).body
  const fails = (generation: number) =>
    until(
      async () => {
        const { state, generation: now } = await node()
        return state === 'failed' && now === generation && (await p.as('vic').get(path)).body.status === 'blocked'
      },
      { what: `generation ${generation} to fail` },
    )
  await fails(1)
  await p.query('update operations.operations set risk_level = $2 where operation_id = $1', [operation_id, risk_level])
  const ask = async (who: 'olga' | 'both', type: string, node_id: string, payload: object = {}) =>
    must(await p.as(who).post(`${path}/interventions`, { type, node_id, payload, reason }), 202).body.intervention
  const seen = (gate_id: string) => p.seen(operation_id, gate_id)
  return {
    path,
    node,
    fails,
    ask,
    seen,
    retry: (node_id = 'b', instance = 0) =>
      p.as('olga').post(`${path}/nodes/${node_id}/retry`, { reason }, { instance }),
    intervene: (who: 'olga' | 'both', type: string, payload: object = {}, instance = 0) =>
      p.as(who).post(`${path}/interventions`, { type, node_id: 'b', payload, reason }, { instance }),
    approve: (who: 'eva' | 'ada', gate_id: string, body: object, instance = 0) =>
      p.as(who).post(`${path}/gates/${gate_id}/approve`, body, { instance }),
    gate: async (gate_id: string) => must(await p.as('ada').get(`${path}/gates/${gate_id}`), 200).body,
    commands: () =>
      p.query<{ kind: string; status: string; type: string | null }>(
        `select kind, status, payload ->> 'type' as type from operations.operation_commands where operation_id = $1 order by seq`,
        [operation_id],
      ),
    told: (type: string) =>
      p.query<{ node_id: string; data: Record<string, unknown> }>(
        'select node_id, data from operations.operation_timeline_view where operation_id = $1 and type = $2 order by seq',
        [operation_id, type],
      ),
  }
}

describe('a second person', () => {
  it('agrees to what they read: not after another attempt, and the dead gate closes', async () => {
    const { ask, seen, retry, fails, approve, gate, node, path } = await failed('high')
    const marked = await ask('both', 'mark_succeeded', 'b', OUTPUTS)
    const skipped = await ask('both', 'skip', 'b')
    const undone = await ask('both', 'trigger_compensation', 'a')
    const asked = [marked, skipped, undone]
    const pages = await Promise.all(asked.map(({ gate_id }) => seen(gate_id)))
    expect((await gate(marked.gate_id)).subject.intervention.payload.was).toMatchObject({
      b: { state: 'failed', generation: 1, attempt: 1 },
    })
    must(await retry(), 200)
    await fails(2)
    for (const [i, { gate_id, intervention_id }] of asked.entries()) {
      const offered = (await gate(gate_id)).allowed_actions.find(
        ({ action }: { action: string }) => action === 'approve',
      )
      expect(offered).toMatchObject({ allowed: false })
      const answer = problem(await approve('ada', gate_id, pages[i] ?? {}))
      expect([refused, '409 gate_not_waiting/cancelled']).toContain(answer)
      await sweep(p.deps.db)
      await until(async () => (await gate(gate_id)).status === 'cancelled', { what: 'the dead gate to close' })
      expect(problem(await approve('ada', gate_id, pages[i] ?? {}))).toBe('409 gate_not_waiting/cancelled')
      expect((await p.as('both').get(`${path}/commands/${intervention_id}`)).body.command).toMatchObject({
        status: 'withdrawn',
      })
    }
    expect((await p.as('vic').get(path)).body.open_gates).toEqual([])
    expect(await node()).toMatchObject({ state: 'failed', generation: 2 })
    expect(await node('a')).toMatchObject({ state: 'succeeded', generation: 1 })
  })

  it('agrees to other inputs or outputs only as long as those before are the ones they read', async () => {
    const { ask, seen, approve, node } = await failed('high')
    const first = await ask('both', 'set_input', 'c', { input_overrides: { delay_ms: 7 } })
    const second = await ask('olga', 'set_input', 'c', { input_overrides: { delay_ms: 55 } })
    const page = await seen(first.gate_id)
    must(await approve('ada', second.gate_id, await seen(second.gate_id)), 200)
    expect([refused, '409 gate_not_waiting/cancelled']).toContain(problem(await approve('ada', first.gate_id, page)))
    expect((await node('c')).inputs.effective).toMatchObject({ delay_ms: 55 })
    const outputs = (n: number) => ({ outputs: { n } })
    const older = await ask('both', 'set_output', 'd', outputs(1))
    const newer = await ask('olga', 'set_output', 'd', outputs(2))
    const read = await seen(older.gate_id)
    must(await approve('ada', newer.gate_id, await seen(newer.gate_id)), 200)
    expect([refused, '409 gate_not_waiting/cancelled']).toContain(problem(await approve('ada', older.gate_id, read)))
    expect((await node('d')).outputs).toEqual({ n: 2 })
  })

  it('hears what became of it: the vote is answered with the outcome of the intervention', async () => {
    const { ask, seen, approve, node, told } = await failed('high')
    const { gate_id, intervention_id } = await ask('both', 'skip', 'b')
    const { body } = must(await approve('ada', gate_id, await seen(gate_id)), 200)
    expect(body).toMatchObject({
      status: 'approved',
      command: { command_id: intervention_id, kind: 'intervene', status: 'applied' },
    })
    expect((await node()).state).toBe('skipped')
    expect(await told('intervention.accepted')).toMatchObject([{ node_id: 'b', data: { type: 'skip' } }])
    expect(await told('intervention.applied')).toMatchObject([{ node_id: 'b', data: { type: 'skip' } }])
  })

  it('and a retry at the same moment: one of them wins, and the other is refused', async () => {
    for (let round = 0; round < 4; round++) {
      const { ask, seen, approve, retry, gate, commands, told } = await failed('high')
      const { gate_id } = await ask('both', 'skip', 'b')
      const page = await seen(gate_id)
      const [vote, again] = await Promise.all([approve('ada', gate_id, page), retry('b', 1)])
      const done = await commands()
      if (vote.status === 200) {
        // Refused, or it came once the skip had taken effect.
        if (again.status !== 200) expect(problem(again)).toContain('409 invalid_state_transition/')
        expect(done.filter(({ status }) => status === 'refused')).toEqual([])
      } else {
        expect([refused, '409 gate_not_waiting/cancelled']).toContain(problem(vote))
        expect(again.status).toBe(200)
        await sweep(p.deps.db)
        await until(async () => (await gate(gate_id)).status === 'cancelled', { what: 'the gate to close' })
        expect(await told('intervention.applied')).toEqual([])
      }
    }
  })

  it('of two contradictory decisions on one node: one takes effect, and only that is told', async () => {
    for (let round = 0; round < 3; round++) {
      const { ask, seen, approve, commands, told } = await failed('high')
      const skip = await ask('olga', 'skip', 'b')
      const mark = await ask('both', 'mark_succeeded', 'b', OUTPUTS)
      const [one, other] = [await seen(skip.gate_id), await seen(mark.gate_id)]
      const votes = await Promise.all([approve('ada', skip.gate_id, one), approve('eva', mark.gate_id, other, 1)])
      expect(votes.map(({ status }) => status).sort()).toEqual([200, 409])
      expect(
        (await commands()).filter(({ kind, status }) => kind === 'intervene' && status === 'applied'),
      ).toHaveLength(1)
      expect(await told('intervention.accepted')).toHaveLength(1)
    }
  })
})

describe('two decisions on one node that the engine has not heard of', () => {
  const held = async (work: (operation: Awaited<ReturnType<typeof failed>>) => Promise<void>) => {
    const operation = await failed('low')
    // As if the engine were away: the first decision is on its way.
    await p.query(
      `insert into operations.operation_commands (command_id, operation_id, seq, kind, class, status, payload, actor)
       select gen_random_uuid(), operation_id, command_seq + 1, 'intervene', 'start', 'delivered', '{"type": "skip", "node_id": "b"}', '{"kind": "user", "id": "x", "name": "ivo"}'
       from operations.operation_control where operation_id = $1`,
      [operation.path.split('/').at(-1)],
    )
    await work(operation)
  }

  it('are refused but for the first, and so says the page of the node', () =>
    held(async ({ retry, intervene, node }) => {
      expect(problem(await retry())).toBe(notRetryable)
      expect(problem(await retry('a'))).toBe(notRetryable)
      expect(problem(await intervene('both', 'skip'))).toBe(refused)
      const marked = await intervene('both', 'mark_succeeded', OUTPUTS)
      expect([problem(marked), marked.body.detail]).toEqual([refused, expect.stringContaining('ivo decided on')])
      const { allowed_actions } = await node()
      expect(allowed_actions.filter(({ allowed }: { allowed: boolean }) => allowed)).toEqual([])
    }))

  it('have one winner without a second person too, and one fact', async () => {
    const { intervene, told } = await failed('low')
    const both = await Promise.all([intervene('olga', 'skip'), intervene('both', 'mark_succeeded', OUTPUTS, 1)])
    expect(both.map(({ status }) => status).sort()).toEqual([201, 409])
    expect(await told('intervention.accepted')).toHaveLength(1)
    expect(await told('intervention.applied')).toHaveLength(1)
  })
})
