import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import type { Context } from '../../apps/cli/command.ts'
import { planCommands } from '../../apps/cli/operations/plan.ts'
import { createOutput } from '../../apps/cli/terminal/output.ts'
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
type Field = { path: string; before: unknown; after: unknown }
/** An operation that made these changes to one target, whose desired state is `now`. */
const changed = async (id: string, fields: Field[], now: object) => {
  const made = await ended({ [id]: '1' })
  await p.query(
    `update operations.plans set report = report || jsonb_build_object('diff', $2::jsonb) where plan_id = $1`,
    [made.plan_id, JSON.stringify([{ resource_id: id, name: id, change: 'update', fields }])],
  )
  await p.query('update operations.catalog_resources set desired_state = $2 where resource_id = $1', [id, now])
  return made
}
const patchIn = async ({ read }: Awaited<ReturnType<typeof ended>>) =>
  must(await read(), 200).body.intents[0].request.change.desired_state_patch
/** An operation by which an agent applied this commit to the targets, and wrote no value. */
const applied = async (ids: string[], commit: string) => {
  const made = await ended(Object.fromEntries(ids.map((id) => [id, '1'])))
  await p.query(
    `update operations.nodes set spec = spec - 'catalog' || '{"with": {"job": "ansible.run"}}' where operation_id = $1`,
    [made.operation_id],
  )
  await p.query(
    `insert into operations.node_attempts (operation_id, node_id, attempt, generation, fence, phase, executor, key, executed, started_at)
     select operation_id, node_id, 1, 1, 1, 'succeeded', 'external', node_id, $2, clock_timestamp() from operations.nodes where operation_id = $1`,
    [made.operation_id, { commit }],
  )
  return made
}
const typed = async (id: string, document: { type_key: string; [member: string]: unknown }) => {
  await p.query(`insert into operations.catalog_types (type_key, version, document) values ($1, 1, $2)`, [
    document.type_key,
    document,
  ])
  await p.query('update operations.catalog_resources set type_key = $2 where resource_id = $1', [id, document.type_key])
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
  expect(await read('?resource_id=nope')).toMatchObject({ status: 422, body: { code: 'target_not_found' } })
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

it('brings back what a node wrote before it was retried in vain', async () => {
  const { operation_id, read } = await ended({ one: '1' })
  const move = (engine_status: string, state: string) =>
    p.query(
      `with o as (update operations.operations set engine_status = $2, ended_at = case when $2 = 'paused' then null else clock_timestamp() end
         where operation_id = $1),
         c as (update operations.operation_control set control = case when $2 = 'paused' then 'pause' else 'run' end where operation_id = $1)
       update operations.nodes set state = $3 where operation_id = $1`,
      [operation_id, engine_status, state],
    )
  await move('paused', 'succeeded')
  const retry = { reason: 'once more' }
  must(await p.as('olga').post(`/v1/operations/${operation_id}/nodes/one/retry`, retry), 200, 202)
  await move('failed', 'failed')
  expect(must(await read(), 200).body.intents).toMatchObject([
    { request: { change: { desired_state_patch: { release: '1' } }, targets: [{ resource_id: 'one' }] } },
  ])
})

it('brings back members that every object inherits, and leaves no object empty that the change added', async () => {
  const odd = await changed(
    'three',
    [
      { path: '/constructor/note', before: 'old', after: 'new' },
      { path: '/__proto__/polluted', before: 'old', after: 'new' },
    ],
    JSON.parse('{"constructor": {"note": "new"}, "__proto__": {"polluted": "new"}}'),
  )
  const patch = await patchIn(odd)
  expect(JSON.stringify(patch)).toBe('{"constructor":{"note":"old"},"__proto__":{"polluted":"old"}}')
  expect([Object.keys(Object), Object.hasOwn(Object, 'note'), 'polluted' in {}]).toEqual([[], false, false])

  const added = (...paths: string[]) => paths.map((path) => ({ path, before: null, after: 'new' }))
  const nested = added('/tags/deep/a', '/tags/b')
  expect(await patchIn(await changed('three', nested, { tags: { deep: { a: 'new' }, b: 'new' } }))).toEqual({
    tags: null,
  })
  expect(await patchIn(await changed('three', nested, { tags: { deep: { a: 'new' }, b: 'new', kept: 1 } }))).toEqual({
    tags: { deep: null, b: null },
  })
  // The schema demands the object itself.
  const schema = { type: 'object', required: ['tags'], properties: { tags: { type: 'object' } } }
  const document = { type_key: 'needs', lifecycle: { terminal: [] }, desired_state_schema: schema }
  await typed('three', document)
  expect(await patchIn(await changed('three', nested, { tags: { deep: { a: 'new' }, b: 'new' } }))).toEqual({
    tags: { deep: null, b: null },
  })
})

it('leaves out targets that an earlier part has brought back', async () => {
  const { read } = await ended({ one: '1', two: '1', three: null })
  await hold(['one', 'two'], '1')
  expect(must(await read(), 200).body.intents).toMatchObject([{ request: { targets: [{ resource_id: 'three' }] } }])
  await p.query(`update operations.catalog_resources set desired_state = '{}' where resource_id = 'three'`)
  expect(await read()).toMatchObject(refused('nothing_changed'))
})

it('applies a commit again only if the type has that action; the same commit once more is no later change', async () => {
  const [a, b] = ['a'.repeat(40), 'b'.repeat(40)]
  await applied(['one', 'two'], a)
  const moved = await applied(['one', 'two'], b)
  expect(await moved.read()).toMatchObject(refused('no_state_before', { resource_id: 'one' }))
  await typed('one', { type_key: 'unit', lifecycle: { terminal: [] }, actions: [{ action_key: 'apply' }] })
  await p.query(`update operations.catalog_resources set type_key = 'unit' where resource_id = 'two'`)
  const ways = async () =>
    must(await moved.read(), 200).body.intents.map(
      ({ request }: { request: { action: object; targets: object[] } }) => [request.action, request.targets],
    )
  const back = { action_key: 'apply', parameters: { ref: a } }
  expect(await ways()).toEqual([[back, [{ resource_id: 'one' }, { resource_id: 'two' }]]])
  await applied(['one'], b)
  expect(await ways()).toEqual([[back, [{ resource_id: 'one' }, { resource_id: 'two' }]]])
  await applied(['one'], a)
  expect(await ways()).toEqual([[back, [{ resource_id: 'two' }]]])
  // Values alone leave the commit in force.
  await ended({ one: '1' })
  expect(await ways()).toEqual([[back, [{ resource_id: 'two' }]]])
  const third = await applied(['two'], 'c'.repeat(40))
  expect(await moved.read()).toMatchObject(refused('changed_since', { operation_id: third.operation_id }))
})

it('the command prints the intents that it made, although a plan is refused', async () => {
  const { operation_id } = await ended({ one: '1' })
  // No procedure serves this type.
  await p.query(`update operations.catalog_resources set type_key = 't' where resource_id = 'one'`)
  const pia = p.as('pia')
  const ask = async (reply: ReturnType<typeof pia.get>) => {
    const { status, body } = await reply
    if (status >= 400) throw new Error(body.code)
    return body
  }
  const api = {
    get: (path: string) => ask(pia.get(path.replace('/api', ''))),
    post: (path: string, body: object) => ask(pia.post(path.replace('/api', ''), body)),
  }
  const context = { api, out: createOutput({ format: 'json', jsonl: false, select: undefined }), dry_run: false }
  const printed: string[] = []
  const stdout = vi.spyOn(process.stdout, 'write').mockImplementation((text) => printed.push(String(text)) > 0)
  const command = planCommands.find(({ name }) => name === 'op rollback')
  try {
    await expect(command?.run(context as unknown as Context, [operation_id], {})).rejects.toThrow('unsupported_change')
  } finally {
    stdout.mockRestore()
  }
  const { plans, unplanned } = JSON.parse(printed.join(''))
  expect([plans, unplanned]).toMatchObject([[], [{ title: 'Roll back: a test' }]])
})

it('refuses without a state before, and for a target that is gone', async () => {
  const { plan_id, read } = await ended({ one: '1', two: '1' })
  await p.query(`update operations.plans set report = report || '{"diff": []}' where plan_id = $1`, [plan_id])
  expect(await read()).toMatchObject(refused('no_state_before', { resource_id: 'one' }))
  await p.query(`delete from operations.catalog_resources where resource_id = 'two'`)
  expect(await read('?resource_id=two')).toMatchObject(refused('target_gone', { resource_id: 'two' }))
})
