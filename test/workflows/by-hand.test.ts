import { WorkflowNotFoundError } from '@temporalio/client'
import { sql } from 'drizzle-orm'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { uuidv7 } from '../../apps/shared/ids.ts'
import { operation_control } from '../../db/operations/tables/index.ts'
import { COMMAND_SIGNAL, REFUSE_QUERY } from '../../workflows/operation/messages.ts'
import { until } from '../support/until.ts'
import { createEngine, type Engine, gate, node } from './support/engine.ts'

/** What an engineer may send from the Temporal UI under our names. */
let engine: Engine
beforeAll(async () => {
  engine = await createEngine()
}, 60_000)
afterAll(() => engine.close())

const head = (kind: string, body: unknown, seq = 2) => ({
  ...{ v: 1, command_id: uuidv7(), seq, kind, at: new Date().toISOString(), not_after: null },
  ...{ actor: {}, request_id: null, trace: null, reason: null, body },
})
const started = async () => {
  const operation_id = await engine.start({ nodes: [node('a'), node('b')], gates: [gate('go', ['b'])] })
  await until(async () => (await engine.read.gate(operation_id, 'go')).status === 'waiting', { what: 'the gate' })
  return { operation_id, handle: engine.client.workflow.getHandle(operation_id) }
}
const cancel = (operation_id: string) =>
  engine.command(operation_id, 'cancel', { mode: 'graceful' }, (tx) =>
    tx.update(operation_control).set({ control: 'cancel' }).where(sql`operation_id = ${operation_id}`),
  )

it('ignores or refuses any signal that it cannot read; the operation still ends', async () => {
  const { operation_id, handle } = await started()
  await handle.signal(COMMAND_SIGNAL)
  const whole = head('pause', {})
  const junk = [
    ...[null, 'junk', 7, [], {}, { v: 99, seq: 5 }, { v: 1, seq: 999_999, kind: 'pause' }],
    ...Object.keys(whole).map((name) => ({ ...whole, [name]: { toString: 1 } })),
    ...['nothing', 'toString', '__proto__', 'retry_node', 'intervene', 'cancel', 'patch_applied'].map((kind) =>
      head(kind, {}),
    ),
    ...[head('resume', { guarding: null }), head('gate_decided', { gate_id: 'go', round: 1, status: 'yes' })],
    ...[
      head('intervene', { type: 'toString', node_id: 'a' }),
      head('retry_node', { node_id: 'a', generations: { a: 1e20 } }),
    ],
    ...[head('place_free', { node_ids: 5 }), head('pause', { reason: 5 })],
  ]
  for (const sent of junk) await handle.signal(COMMAND_SIGNAL, sent)
  for (const asked of [
    null,
    'retry',
    {},
    { kind: 'intervene', type: 'toString', node_id: 'a' },
    { kind: 'retry', node_id: {} },
  ])
    expect(await handle.query(REFUSE_QUERY, asked)).toMatchObject({ code: expect.any(String) })
  const told = (await handle.query('__temporal_workflow_metadata')) as { currentDetails: string }
  expect(told.currentDetails).toContain('a signal that is not from the relay')
  expect((await engine.read.operation(operation_id)).status).toBe('blocked')

  const unknown = await engine.command(operation_id, 'of_a_later_build' as never, {} as never)
  await until(async () => (await engine.read.command(unknown.command_id)).status === 'refused', { what: 'refused' })
  await cancel(operation_id)
  expect(await engine.ends(operation_id)).toMatchObject({ status: 'cancelled' })
}, 120_000)

it('takes real commands after one with a made-up number', async () => {
  const { operation_id, handle } = await started()
  await handle.signal(COMMAND_SIGNAL, head('pause', {}, 1_000_000))
  const { command_id } = await cancel(operation_id)
  expect(await engine.ends(operation_id)).toMatchObject({ status: 'cancelled' })
  expect((await engine.read.command(command_id)).status).toBe('applied')
  await expect(handle.signal(COMMAND_SIGNAL)).rejects.toThrow(WorkflowNotFoundError)
}, 120_000)
