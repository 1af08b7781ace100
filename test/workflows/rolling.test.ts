import { randomBytes } from 'node:crypto'
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js'
import { sql } from 'drizzle-orm'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { EncryptingCodec } from '../../apps/shared/codec/payload.ts'
import { gates } from '../../db/operations/tables/index.ts'
import { createEngine, type Engine, gate, node } from './support/engine.ts'
import { startTarget, type Target } from './support/target.ts'

let engine: Engine
let target: Target
beforeAll(async () => {
  target = await startTarget()
  const codec = new EncryptingCodec({ current: 'k1', keys: { k1: randomBytes(32).toString('base64url') } })
  // No cache: every task replays the whole history, which finds code that is not deterministic.
  engine = await createEngine({ codec, worker: { maxCachedWorkflows: 0 } })
})
afterAll(async () => {
  target.close()
  await engine.close()
})

it('gives the same end if it continues as new every 40 events, nothing is cached and all is encrypted', async () => {
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
  expect(await plainTexts(operation_id)).toEqual([])
})

/** The payloads of a history that anyone with access to the engine's store could read. */
const plainTexts = async (workflowId: string): Promise<string[]> => {
  const history = await engine.client.workflow.getHandle(workflowId).fetchHistory()
  const plain: string[] = []
  const look = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return
    const { metadata, data } = value as { metadata?: { encoding?: string }; data?: string }
    if (metadata?.encoding !== undefined && Buffer.from(metadata.encoding, 'base64').toString() !== 'binary/encrypted')
      plain.push(Buffer.from(data ?? '', 'base64').toString())
    for (const part of Object.values(value)) look(part)
  }
  const { events } = JSON.parse(historyToJSON(history)) as { events: Record<string, unknown>[] }
  // Statuses and ids for the engine's index; notes of the SDK about its own markers (the name of a patch, times).
  const open = new Set(['searchAttributes', 'patch-data', 'data'])
  for (const event of events)
    look(
      JSON.parse(
        JSON.stringify(event, (name, value) => (open.has(name) && typeof value === 'object' ? undefined : value)),
      ),
    )
  return plain
}
