import { Client, Connection } from '@temporalio/client'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { sweep } from '../../apps/operations/upkeep/sweeper.ts'
import { serverUrl } from '../support/database.ts'
import { until } from '../support/until.ts'
import { gated, must, type Platform, startPlatform } from './support/platform.ts'

/** Commands on an operation whose workflow is gone: each one has an end, and no new one is promised. */
let p: Platform
beforeAll(async () => {
  p = await startPlatform({ env: { OPERATIONS__COMMANDS__WAIT_MS: '0' } })
})
afterAll(() => p.stop())

const reason = 'a test'
const lost = { status: 409, body: { category: 'invalid_state_transition', code: 'engine_lost' } }

it('settles those accepted before the loss was known, and refuses all but a cancel and a reject after it', async () => {
  const { operation_id } = await p.startOperation(gated())
  const path = `/v1/operations/${operation_id}`
  const command = async (kind: string) => {
    const query = `select command_id, status, attempts from operations.operation_commands where operation_id = $1 and kind = $2`
    const [row = {}] = await p.query(query, [operation_id, kind])
    return row
  }
  const findings = () => p.query('select found from operations.engine_findings where operation_id = $1', [operation_id])
  const gate = async () => must(await p.as('eva').get(`${path}/gates/go`), 200).body
  const propose = (node_id: string) =>
    p
      .as('olga')
      .post(`${path}/patches`, {
        ...{ base_revision: 1, reason, changes: [{ op: 'add_node', node: { node_id, executor: 'noop', with: {} } }] },
      })
  const intervene = (type: string, payload: object, node_id?: string) =>
    p.as('olga').post(`${path}/interventions`, { type, node_id, payload, reason })
  await until(async () => (await command('start')).status === 'delivered')
  await p.openGate(operation_id, 'go')
  const patch = must(await propose('more'), 201).body

  const connection = await Connection.connect({ address: serverUrl('TEMPORAL_ADDRESS') })
  await new Client({ connection }).workflow.getHandle(operation_id).terminate('lost')
  await connection.close()
  must(await p.as('eva').post(`${path}/gates/go/approve`, await p.seen(operation_id, 'go')), 202)
  await until(async () => (await findings()).length > 0)
  await sweep(p.deps.db)
  expect((await p.as('vic').get(path)).body).toMatchObject({ status: 'paused', pause_reason: 'engine_lost' })

  // It is sent again in case the engine has it back; the loss is stated once.
  const known = (await findings()).length
  const again = async () => {
    const { attempts } = await command('gate_decided')
    await until(async () => {
      await p.query('update operations.operation_commands set next_try_at = null where operation_id = $1', [
        operation_id,
      ])
      return (await command('gate_decided')).attempts > attempts
    })
  }
  await again()
  await again()
  expect(await findings()).toHaveLength(known)

  const { command_id, status } = await command('gate_decided')
  expect(status).toBe('sending')
  await p.query(
    `update operations.operation_commands set not_after = clock_timestamp() - interval '1 s' where operation_id = $1 and class = 'start'`,
    [operation_id],
  )
  await sweep(p.deps.db)
  expect((await p.as('vic').get(`${path}/commands/${command_id}`)).body.command.status).toBe('withdrawn')
  const asked = await gate()
  expect(asked).toMatchObject({ status: 'waiting', round: 2, decided: null })
  // Its own start was carried out: the operation is not said to have never begun.
  expect((await command('start')).status).toBe('delivered')

  await p.query(`update operations.nodes set state = 'failed' where operation_id = $1 and node_id = 'before'`, [
    operation_id,
  ])
  const refused = await Promise.all([
    p.as('eva').post(`${path}/gates/go/approve`, await p.seen(operation_id, 'go')),
    p.as('eva').post(`${path}/patches/${patch.patch_id}/approve`, { reviewed_digest: patch.digest }),
    p.as('olga').post(`${path}/nodes/before/retry`, { reason }),
    p.as('olga').post(`${path}/resume`, { reason }),
    intervene('skip', {}, 'before'),
    intervene('set_limits', { max_parallel: 2 }),
    propose('another'),
  ])
  for (const answer of refused) expect(answer).toMatchObject(lost)
  const allowed = [
    ...asked.allowed_actions,
    ...(await p.as('olga').get(`${path}/nodes/before`)).body.allowed_actions,
    ...(await p.as('olga').get(path)).body.allowed_actions,
  ].filter(({ allowed }) => allowed)
  expect(allowed.map(({ action }) => action).toSorted()).toEqual(['cancel', 'cancel_compensate', 'reject'])

  must(await p.as('olga').post(`${path}/cancel`, { reason }), 202)
  await until(async () => (await findings()).length > known)
  await sweep(p.deps.db)
  expect((await p.as('vic').get(path)).body).toMatchObject({
    ...{ status: 'cancelled', end_reason: 'engine_lost', pending_commands: [] },
  })
})
