import { sql } from 'drizzle-orm'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { refuseTarget } from '../../activities/attempts/target.ts'
import type { PlanNode } from '../../apps/shared/contracts/operations/graph.ts'
import { nodes, operation_control } from '../../db/operations/tables/index.ts'
import { createEngine, type Engine, node } from './support/engine.ts'
import { startTarget, type Target } from './support/target.ts'

/** The target's own answer is compared with the plan just before the first effect. */
let engine: Engine
let target: Target
let runs: string
beforeAll(async () => {
  engine = await createEngine()
})
afterAll(() => engine.close())
beforeEach(async () => {
  target = await startTarget()
  runs = '2.3.9'
  target.answer('/status', () => ({ status: 200, body: { release: runs, ports: [80, 443] } }))
})
afterEach(() => target.close())

const looking = (node_id: string, more: Partial<PlanNode> = {}): PlanNode =>
  node(node_id, {
    executor: 'http',
    with: { request: { method: 'POST', url: `${target.url}/${node_id}`, body: {} } },
    read: {
      executor: 'http',
      with: {
        headers: { authorization: { $secret: 'token' } },
        request: { method: 'GET', url: `${target.url}/status` },
      },
      expect: { '/body/release': '2.3.9', '/body/ports': [80, 443] },
    },
    secrets: { token: 'secret://env/TEST_TOKEN#1' },
    ...more,
  })
const done = () => target.calls.map(({ path }) => path)

it('a target that matches the plan is read once, with the secrets of its step, and then changed', async () => {
  const operation_id = await engine.start({ nodes: [looking('a')] })
  expect((await engine.ends(operation_id)).status).toBe('succeeded')
  expect(done()).toEqual(['/status', '/a'])
  expect(target.calls[0]).toMatchObject({ key: `${operation_id}:a:1:read`, authorization: 'Bearer s3cret-token' })
})

describe('a target that differs from the plan', () => {
  // Each would otherwise let the operation continue, end it, or try again.
  it.each([
    { on_failure: 'hold' },
    { on_failure: 'compensate' },
    { on_failure: 'skip_dependents' },
    {
      on_failure: 'tolerate',
      retry: { max_attempts: 3, initial_s: 0, factor: 1, max_s: 1, retry_on: ['target_drifted'] },
    },
  ] as Partial<PlanNode>[])(
    'pauses the operation before any effect and names the difference: $on_failure',
    async (more) => {
      runs = '2.4.7'
      const operation_id = await engine.start({ nodes: [looking('a', more), looking('b', { depends_on: ['a'] })] })
      await engine.statusIs(operation_id, 'paused')
      const differs = 'The target differs from the plan: /body/release is "2.4.7", but the plan expects "2.3.9".'
      expect(await engine.read.operation(operation_id)).toMatchObject({
        pause_reason: 'target_drift',
        blocked_on: [
          { kind: 'paused', message: 'Paused because a target is not as it was planned.' },
          { kind: 'failed_node', id: 'a', message: `Do a: ${differs}` },
        ],
      })
      expect((await engine.read.node(operation_id, 'a')).error).toMatchObject({
        class: 'target_drifted',
        message: differs,
        hint: expect.stringContaining('retry this node, and resume'),
      })
      expect(done()).toEqual(['/status'])
    },
  )

  it('is changed once it matches the plan and the node is retried', async () => {
    runs = '2.4.7'
    const operation_id = await engine.start({ nodes: [looking('a')] })
    await engine.statusIs(operation_id, 'paused')
    runs = '2.3.9'
    const own = sql`operation_id = ${operation_id}`
    const again = { node_id: 'a', scope: 'downstream' as const, generations: { a: 2 }, gates: {} }
    await engine.command(operation_id, 'retry_node', again, (tx) =>
      tx.update(nodes).set({ generation: 2, state: 'pending', error: null }).where(own),
    )
    await engine.command(operation_id, 'resume', { acknowledged: [] }, (tx) =>
      tx.update(operation_control).set({ control: 'run', pause_reason: null }).where(own),
    )
    expect((await engine.ends(operation_id)).status).toBe('succeeded')
    expect(done()).toEqual(['/status', '/status', '/a'])
  })
})

it('a target that cannot be read is not changed; the read is retried with its node', async () => {
  target.answer('/status', (call) =>
    call < 3 ? { status: 503 } : { status: 200, body: { release: runs, ports: [80, 443] } },
  )
  const patient = { retry: { max_attempts: 3, initial_s: 0.1, factor: 1, max_s: 1 } }
  const operation_id = await engine.start({ nodes: [looking('a', patient)] })
  expect((await engine.ends(operation_id)).status).toBe('succeeded')
  expect(done()).toEqual(['/status', '/status', '/status', '/a'])
})

it('after a repeat a difference may be its own effect: a person decides', () => {
  const look = { executor: 'http', with: {}, expect: { '/body/release': '2.3.9' } }
  const seen = { status: 'succeeded' as const, raw: { body: {} } }
  const message = 'The target differs from the plan: /body/release is missing, but the plan expects "2.3.9".'
  expect(refuseTarget(look, seen, false)).toMatchObject({ status: 'failed', class: 'target_drifted', message })
  expect(refuseTarget(look, seen, true)).toMatchObject({ status: 'unknown', message })
})
