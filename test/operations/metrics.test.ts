import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { startPlatform } from './support/platform.ts'

let p: Awaited<ReturnType<typeof startPlatform>>
beforeAll(async () => {
  p = await startPlatform()
})
afterAll(() => p.stop())

const valueIn = async (name: string, labels = ''): Promise<number> => {
  const lines = (await p.deps.telemetry.metrics.metrics()).split('\n')
  return Number(
    lines
      .find((line) => line.startsWith(`${name}{`) && line.includes(labels))
      ?.split(' ')
      .at(-1) ?? 0,
  )
}

it('shows the agents of each pool, their last sign of life, and the work that waits or runs', async () => {
  // There from the start, so that its first failure counts.
  expect(await p.deps.telemetry.metrics.metrics()).toMatch(/attempts_total\{.*pool="demo",result="failed".*\} 0/)
  await p.query(`
    insert into operations.agents (agent, machine, pools, labels, draining, seen_at)
    select v.agent, 'machine:a', v.pools, '{}', false, clock_timestamp() - make_interval(secs => v.ago)
    from (values ('a', '{demo,lab}'::text[], 10), ('b', '{demo}', 300), ('c', '{gone}', 900)) v(agent, pools, ago)`)
  await p.query(`
    insert into operations.executions (token_sha256, operation_id, node_id, attempt, generation, fence, pool, heartbeat_s, start_before, deadline_at, created_at, started_at, heartbeat_at, closed_at, agent)
    select i::text, gen_random_uuid(), 'n', 1, 1, i, v.pool, 30, now, now, now - make_interval(secs => v.ago), v.begun, v.begun, v.over, v.agent
    from (select clock_timestamp() as now) t, lateral (values (1, 'demo', 200, null, null, null), (2, 'demo', 100, null, null, null),
      (3, 'demo', 50, now, null, 'a'), (4, 'gone', 999, null, now, null)) v(i, pool, ago, begun, over, agent)`)
  await p.query(
    `insert into operations.pool_waits (operation_id, node_id, pool, places) values (gen_random_uuid(), 'n', 'lab', 1)`,
  )
  await new Promise((resolve) => setTimeout(resolve, 1100))
  const agents = (labels: string) => valueIn('signalbox_agents', labels)
  expect(
    await Promise.all(
      [
        'pool="demo",status="working"',
        'pool="demo",status="silent"',
        'pool="lab",status="working"',
        'pool="gone",status="silent"',
      ].map(agents),
    ),
  ).toEqual([1, 1, 1, 1])
  const work = (labels: string) => valueIn('signalbox_agent_work', labels)
  expect(
    await Promise.all(
      ['pool="demo",state="waiting"', 'pool="demo",state="running"', 'pool="lab",state="queued"', 'pool="gone"'].map(
        work,
      ),
    ),
  ).toEqual([2, 1, 1, 0])
  expect(await valueIn('signalbox_agent_wait_oldest_seconds', 'pool="demo"')).toBeCloseTo(200, -1.5)
  expect(await valueIn('signalbox_agent_seen_seconds', 'pool="gone"')).toBeCloseTo(900, -1.5)
  expect(await valueIn('signalbox_agent_seen_seconds', 'pool="lab"')).toBeLessThan(60)
})

it('shows open operations, waits for a person, the use of keys, and the duration of outcomes', async () => {
  expect([
    await valueIn('signalbox_operations_open', 'status="queued"'),
    await valueIn('signalbox_gates_waiting'),
  ]).toEqual([0, 0])
  const { operation_id } = await p.startOperation({ nodes: [{ node_id: 'a', executor: 'noop' }] })
  await p.query(
    `insert into operations.gates (operation_id, gate_id, question, policy, guards, status, subject, digest, waiting_since)
     values ($1, 'g', 'go on?', '{}', '{a}', 'waiting', '{}', 'd', clock_timestamp() - interval '90 s')`,
    [operation_id],
  )
  await new Promise((resolve) => setTimeout(resolve, 1100))
  expect(await valueIn('signalbox_operations_open', 'status="queued"')).toBe(1)
  expect(await valueIn('signalbox_gates_waiting')).toBe(1)
  expect(await valueIn('signalbox_gate_oldest_seconds')).toBeCloseTo(90, -1.5)

  const first = await valueIn('signalbox_idempotency_total', 'result="first"')
  const key = randomUUID()
  const pause = (reason: string) => p.as('olga').post(`/v1/operations/${operation_id}/pause`, { reason }, { key })
  await pause('to look')
  await pause('to look')
  expect((await pause('another')).status).toBe(422)
  expect(await valueIn('signalbox_idempotency_total', 'result="first"')).toBe(first + 1)
  expect(await valueIn('signalbox_idempotency_total', 'result="replayed"')).toBe(1)
  expect(await valueIn('signalbox_idempotency_total', 'result="reused"')).toBe(1)
  expect(await valueIn('signalbox_command_outcome_seconds_count', 'kind="pause"')).toBe(1)

  const message = {
    result_id: randomUUID(),
    operation_id,
    node_id: 'a',
    attempt: 1,
    generation: 1,
    fence: 1,
    sequence: 1,
  }
  const answer = await fetch(`${p.running[0]?.internal_url}/internal/v1/execution-results`, {
    method: 'POST',
    headers: { authorization: `Bearer exe_${'x'.repeat(40)}`, 'content-type': 'application/json' },
    body: JSON.stringify({ ...message, phase: 'started' }),
  })
  expect(answer.status).toBe(401)
  expect(await valueIn('signalbox_execution_results_total', 'result="refused"')).toBe(1)
  // A stranger is not told what the body should contain.
  const stranger = await fetch(`${p.running[0]?.internal_url}/internal/v1/execution-results`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{}',
  })
  expect(stranger.status).toBe(401)
  expect(await stranger.text()).not.toMatch(/violations|fence|phase/)
})
