import { randomUUID } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js'
import { sql } from 'drizzle-orm'
import type { OperationCalendar } from '../../apps/shared/data/calendar.ts'
import { gates, nodes, operation_control, operations } from '../../db/operations/tables/index.ts'
import { until } from '../support/until.ts'
import { createEngine, gate, node } from './support/engine.ts'

/**
 * Records the history of an operation for replay.test.ts. It has parallel nodes, a retry, a condition, an intervention,
 * a patch, a gate that releases leases, an approval that comes too late and a pause over a drift. A freeze comes and
 * goes, an agent and a full pool have work, and a cancel is forced. Run it with `node test/workflows/record-history.ts
 * <name>` with the servers' addresses in the environment. Old histories stay: code that cannot continue them must not
 * be deployed over running operations.
 */
const name = process.argv[2]
if (!name || !/^[a-z0-9-]+$/.test(name)) throw new Error('usage: node test/workflows/record-history.ts <name>')
const engine = await createEngine()
const compensate = { executor: 'noop', with: {}, idempotent: true }
const operation_id = await engine.start({
  nodes: [
    node('first', { with: { outputs: { go: true } }, compensate }),
    node('left', { depends_on: ['first'], compensate }),
    node('right', { depends_on: ['first'], when: 'nodes["first"].outputs.go' }),
    node('never', { depends_on: ['first'], when: '!nodes["first"].outputs.go' }),
    node('broken', { depends_on: ['first'], executor: 'missing', on_failure: 'tolerate' }),
    node('all', { kind: 'barrier', executor: '', depends_on: ['left', 'right', 'never', 'broken'] }),
    node('guarded', { depends_on: ['all'], target_id: 'host' }),
    node('last', { depends_on: ['guarded'], executor: 'missing', on_failure: 'compensate' }),
    ...['outside', 'waits'].map((node_id) =>
      node(node_id, { depends_on: ['guarded'], executor: 'external', pool: 'lab', with: { job: 'stall' } }),
    ),
  ],
  gates: [gate('go', ['guarded'], { lease_policy: 'release' })],
  leases: [{ resource_id: 'host', mode: 'exclusive' }],
})
await engine.statusIs(operation_id, 'blocked')
await engine.command(operation_id, 'intervene', { type: 'set_limits', node_id: null, payload: { max_parallel: 3 } })
const own = sql`operation_id = ${operation_id}`
const patch_id = randomUUID()
await engine.command(operation_id, 'patch_proposed', { patch_id, node_ids: ['guarded'] })
const taken = { patch_id, plan_revision: 2, generations: { guarded: 2 }, gates: {}, closed: [] }
await engine.command(operation_id, 'patch_applied', taken, async (tx) => {
  await tx.update(operations).set({ plan_revision: 2 }).where(own)
  await tx.update(nodes).set({ generation: 2 }).where(sql`${own} and node_id = 'guarded'`)
})
await engine.command(operation_id, 'pause', {}, (tx) =>
  tx.update(operation_control).set({ control: 'pause' }).where(own),
)
await engine.statusIs(operation_id, 'paused')
const resumed = { acknowledged: ['last'], gates: {}, guarding: { go: ['guarded', 'last'] } }
await engine.command(operation_id, 'resume', resumed, async (tx) => {
  await tx.update(operation_control).set({ control: 'run' }).where(own)
  await tx
    .update(gates)
    .set({ guards: ['guarded', 'last'] })
    .where(own)
  await tx
    .update(nodes)
    .set({ gate_ids: ['go'] })
    .where(sql`${own} and node_id = 'last'`)
})
const calendarIs = (calendar: OperationCalendar | null) =>
  engine.command(operation_id, 'calendar_changed', { entry_ids: ['launch'] }, (tx) =>
    tx.update(operation_control).set({ calendar }).where(own),
  )
await calendarIs({
  windows: {},
  freezes: { launch: { from: '2020-01-01T00:00:00Z', to: '2100-01-01T00:00:00Z', approvers: [] } },
  asked: null,
  targets: { host: { windows: [], freezes: ['launch'] } },
})
const approve = (round: number, more: { not_after?: string } = {}) =>
  engine.command(
    operation_id,
    'gate_decided',
    { gate_id: 'go', round, status: 'approved', digest: '' },
    (tx) => tx.update(gates).set({ status: 'approved', approved_digest: sql`digest` }).where(own),
    more,
  )
// Its rows are restored before anything starts.
await approve(1, { not_after: new Date(Date.now() - 1000).toISOString() })
await until(async () => {
  const { status, round } = await engine.read.gate(operation_id, 'go')
  return status === 'waiting' && round === 2
})
await approve(2)
await until(async () => (await engine.read.operation(operation_id)).blocked_on[0]?.kind === 'freeze')
await calendarIs(null)
await until(async () => {
  const [{ cancel_mode, busy }] = (
    await engine.pool.query(
      `select cancel_mode, exists (select from operations.pool_waits where operation_id = $1) as busy
       from operations.operation_control where operation_id = $1`,
      [operation_id],
    )
  ).rows
  return cancel_mode === 'compensate' && busy
})
await engine.command(operation_id, 'cancel', { mode: 'force' }, (tx) =>
  tx.update(operation_control).set({ cancel_mode: 'force' }).where(own),
)
console.log(await engine.ends(operation_id))
const history = historyToJSON(await engine.client.workflow.getHandle(operation_id).fetchHistory())
const file = new URL(`./histories/${name}.json`, import.meta.url)
writeFileSync(file, JSON.stringify({ workflow_id: operation_id, history: JSON.parse(history) }))
await engine.close()
console.log(`wrote ${file.pathname}`)
