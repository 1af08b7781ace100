import { afterAll, beforeAll, expect, it } from 'vitest'
import { must, type Platform, startPlatform } from './support/platform.ts'

/** The way back from an ended operation, by its rows alone; test/agent/rollback.test.ts goes it with a real tool. */
let p: Platform
beforeAll(async () => {
  p = await startPlatform()
  await p.query(`insert into operations.catalog_resources (resource_id, type_key, type_version, name, parent_id, version, lifecycle_status, labels, desired_state, observed_state)
    values ('eu1', 'topology.region', 1, 'eu1', null, 1, 'active', '{}', '{}', '{}'),
           ${['one', 'two', 'three'].map((id) => `('${id}', 't', 1, '${id}', 'eu1', 1, 'active', '{}', '{}', '{}')`).join()}`)
})
afterAll(() => p.stop())

const started = async (ids: string[]) => {
  const nodes = ids.map((id) => ({
    ...{ node_id: id, executor: 'noop', with: {}, target_id: id },
    catalog: { desired_state_patch: { release: '2' } },
  }))
  const { operation_id, plan_id } = await p.startOperation({ nodes })
  const path = `/v1/operations/${operation_id}/rollback`
  return { operation_id, plan_id, read: (query = '', who: 'vic' | 'far' = 'vic') => p.as(who).get(path + query) }
}
/** An operation that set `release` of these targets to 2, and `before` it. */
const ended = async (before: Record<string, string | null>) => {
  const ids = Object.keys(before)
  const made = await started(ids)
  await p.query(
    `update operations.nodes set state = 'succeeded', catalog = '{"status": "applied", "version": 2}', started_at = clock_timestamp(), ended_at = clock_timestamp()
     where operation_id = $1`,
    [made.operation_id],
  )
  await p.query(
    `update operations.operations set engine_status = 'succeeded', ended_at = clock_timestamp() where operation_id = $1`,
    [made.operation_id],
  )
  const diff = ids.map((resource_id) => ({
    ...{ resource_id, name: resource_id, change: 'update' },
    fields: [
      { path: '/release', before: before[resource_id], after: '2' },
      { path: '/made', before: null, after: 'now', noise: true },
    ],
  }))
  await p.query(
    `update operations.plans set report = report || jsonb_build_object('diff', $2::jsonb) where plan_id = $1`,
    [made.plan_id, JSON.stringify(diff)],
  )
  await hold(ids, '2')
  return made
}
const hold = (ids: string[], release: string) =>
  p.query('update operations.catalog_resources set desired_state = $2 where resource_id = any($1)', [ids, { release }])
const refused = (code: string, more: object = {}) => ({
  status: 409,
  body: { category: 'invalid_state_transition', code, ...more },
})

it('names the values before; targets whose values differed have intents of their own', async () => {
  const { operation_id, read } = await ended({ one: '1', two: '1', three: null })
  const { intents } = must(await read(), 200).body
  expect(intents).toMatchObject([
    {
      request: {
        ...{ kind: 'change', title: 'Roll back: a test', retry_of: operation_id },
        change: { op: 'update', desired_state_patch: { release: '1' } },
        targets: [{ resource_id: 'one' }, { resource_id: 'two' }],
      },
      targets_resolved: [{ resource_id: 'one', type_key: 't', name: 'one', version: 1 }, { resource_id: 'two' }],
    },
    {
      request: {
        change: { op: 'update', desired_state_patch: { release: null } },
        targets: [{ resource_id: 'three' }],
      },
    },
  ])
  expect(intents[0].request.change.desired_state_patch).toEqual({ release: '1' })
  // Each is an intent as it stands.
  must(await p.as('pia').post('/v1/intents', intents[0].request), 201)
  expect(must(await read('?resource_id=two'), 200).body.intents).toMatchObject([
    { request: { targets: [{ resource_id: 'two' }] } },
  ])
  expect(await read('?resource_id=four')).toMatchObject(refused('nothing_changed'))
  expect((await read('', 'far')).status).toBe(404)
})

it('refuses while it runs, without a change, and after a later one', async () => {
  const running = await started(['one'])
  expect(await running.read()).toMatchObject(refused('operation_running'))
  await p.query(
    `update operations.operations set engine_status = 'failed', ended_at = clock_timestamp() where operation_id = $1`,
    [running.operation_id],
  )
  expect(await running.read()).toMatchObject(refused('nothing_changed'))

  const first = await ended({ one: '1' })
  must(await first.read(), 200)
  await hold(['one'], '3')
  expect(await first.read()).toMatchObject(refused('changed_since', { resource_id: 'one' }))
  must(await first.read('?anyway=true'), 200)
  const second = await ended({ one: '2' })
  expect(await first.read()).toMatchObject(refused('changed_since', { operation_id: second.operation_id }))
  must(await first.read('?anyway=true'), 200)
  // What the later one undid itself is no change.
  await p.query(
    `update operations.nodes set state = 'compensated', catalog = '{"status": "restored"}' where operation_id = $1`,
    [second.operation_id],
  )
  must(await first.read(), 200)
})

it('refuses without a state before, and for a target that is gone', async () => {
  const { plan_id, read } = await ended({ one: '1', two: '1' })
  await p.query(`update operations.plans set report = report || '{"diff": []}' where plan_id = $1`, [plan_id])
  expect(await read()).toMatchObject(refused('no_state_before', { resource_id: 'one' }))
  await p.query(`delete from operations.catalog_resources where resource_id = 'two'`)
  expect(await read('?resource_id=two')).toMatchObject(refused('target_gone', { resource_id: 'two' }))
})
