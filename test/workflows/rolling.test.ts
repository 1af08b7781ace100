import { sql } from 'drizzle-orm'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { gates } from '../../db/operations/tables.ts'
import { createEngine, type Engine, gate, node } from './engine.ts'
import { startTarget, type Target } from './target.ts'

let engine: Engine
let target: Target
beforeAll(async () => {
  target = await startTarget()
  // No cache: every task replays the whole history, which finds code that is not deterministic.
  engine = await createEngine({ worker: { maxCachedWorkflows: 0 } })
})
afterAll(async () => {
  target.close()
  await engine.close()
})

it('gives the same end when it continues as new every 40 events and nothing is cached', async () => {
  const layers = 4
  const width = 5
  const nodes = Array.from({ length: layers * width }, (_, i) =>
    node(`n${i}`, {
      executor: 'http',
      with: { request: { method: 'POST', url: `${target.url}/n${i}`, body: {} } },
      depends_on: i < width ? [] : [`n${i - width}`, `n${i - width + (i % width === width - 1 ? 1 - width : 1)}`],
    }),
  )
  const input = await engine.prepare({ nodes, gates: [gate('go', ['n10', 'n11'])], roll_events: 40, max_parallel: 3 })
  const { firstExecutionRunId } = await engine.launch(input)
  const { operation_id } = input
  await engine.statusIs(operation_id, 'blocked')
  await engine.command(
    operation_id,
    'gate_decided',
    { gate_id: 'go', round: 1, status: 'approved', digest: '' },
    (tx) =>
      tx
        .update(gates)
        .set({ status: 'approved', approved_digest: sql`digest` })
        .where(sql`operation_id = ${operation_id}`),
  )
  expect((await engine.ends(operation_id)).status).toBe('succeeded')
  const { runId } = await engine.client.workflow.getHandle(operation_id).describe()
  expect(runId).not.toBe(firstExecutionRunId)
  expect(new Set(Object.values(await engine.read.states(operation_id)))).toEqual(new Set(['succeeded']))
  expect(target.calls).toHaveLength(nodes.length)
  const at = new Map(target.paths().map((path, i) => [path.slice(1), i]))
  for (const { node_id, depends_on } of nodes)
    for (const dep of depends_on) expect(at.get(dep)).toBeLessThan(at.get(node_id) ?? -1)
  const timeline = await engine.read.timeline(operation_id)
  expect(timeline.filter(({ type }) => type === 'node.succeeded')).toHaveLength(nodes.length)
})
