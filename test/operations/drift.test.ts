import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { createCatalogClient } from '../../apps/operations/catalog/client.ts'
import { loadLibrary } from '../../apps/operations/packs/library.ts'
import { recordLibrary } from '../../apps/operations/packs/record.ts'
import { createDriftWatch } from '../../apps/operations/upkeep/drift.ts'
import { type CatalogLog, catalogLog } from './support/catalog.ts'
import { must, type Platform, problem, startPlatform } from './support/platform.ts'

/** A target that moves is planned again as its operation was planned: by the same packs, among the same targets. */
const folder = mkdtempSync(join(tmpdir(), 'drift-'))
const packOf = (version: string, says: string) => {
  const known = { wave: { $from: 'batch/name' }, at: { $from: 'batch/index' }, size: { $cel: 'batch.size' } }
  const all = {
    of: { $cel: 'plan.targets' },
    all: { $each: { key: 'target/name', value: { $from: 'target/type_key' } } },
  }
  const outputs = { says, release: { $from: 'target/desired_state/release' }, ...known, ...all }
  const procedure = {
    ...{ key: 'tend', kind: 'change', title: 'Tend', priority: 100, gates: [{ policy: 'entry', at: 'entry' }] },
    match: { resource_type: 'fleet.host', op: 'update', paths: ['/release'] },
    steps: [{ id: 'tend', executor: 'noop', with: { outputs } }],
  }
  const dir = join(folder, version)
  mkdirSync(dir)
  const pack = { format: 'signalbox/pack@1', pack: 'tend', version, title: 'Tend', owners: ['netops'] }
  writeFileSync(join(dir, 'tend.yaml'), JSON.stringify({ ...pack, procedures: [procedure] }))
  return loadLibrary({ packs_dirs: [dir] })
}

let catalog: CatalogLog
let p: Platform
beforeAll(async () => {
  catalog = await catalogLog()
  catalog.loadTypes()
  const library = packOf('1.0.0', 'hello')
  p = await startPlatform({
    relay: false,
    catalog: createCatalogClient(catalog.url, () => 'token'),
    env: { OPERATIONS__COMMANDS__WAIT_MS: '0', OPERATIONS__PACKS__DIR: join(folder, '1.0.0') },
  })
  await recordLibrary(p.deps.db, library)
})
afterAll(async () => {
  await p.stop()
  await catalog.close()
  rmSync(folder, { recursive: true })
})

let number = 0
let hosts: string[]
beforeEach(async () => {
  number += 1
  hosts = [1, 2, 3, 4, 5, 6].map((n) => `d${number}-${n}`)
  for (const id of [...hosts, `d${number}-x`]) catalog.put(id)
  await p.deps.projection.catchUp()
})

const reason = 'a test'
/** Starts a change of six hosts in batches of two, with a seventh left out. */
const begin = async () => {
  const body = {
    ...{ kind: 'change', title: 'web 2.4.0', reason, constraints: { batch: { size: 2 } } },
    targets: [...hosts, `d${number}-x`].map((resource_id) => ({ resource_id })),
    change: { op: 'update', desired_state_patch: { release: '2.4.0' } },
  }
  const { intent_id } = must(await p.as('olga').post('/v1/intents', body), 201).body
  const preview = { exclude_targets: [`d${number}-x`] }
  const plan = must(await p.as('olga').post(`/v1/intents/${intent_id}/plan-preview`, preview), 201).body
  const start = { reviewed_plan_hash: plan.plan_hash }
  const { operation_id } = must(await p.as('olga').post(`/v1/plans/${plan.plan_id}/start`, start), 202).body
  const send = (verb: string, more = {}) =>
    p.as('olga').post(`/v1/operations/${operation_id}/${verb}`, { reason, ...more })
  const rows = (column: string) =>
    p.query(`select node_id, ${column} from operations.nodes where operation_id = $1 order by node_id`, [operation_id])
  const pins = async () =>
    (await p.query('select pins from operations.operations where operation_id = $1', [operation_id]))[0]?.pins
  return { operation_id, plan, send, rows, pins }
}
/** A version of the host that no value of a step depends on. */
const relabel = async (id: string) => {
  catalog.put(id, { labels: { rack: 'b' } })
  await p.deps.projection.catchUp()
}

it('its place among the targets of the plan is no drift, even after others are done', async () => {
  const { operation_id, send, rows } = await begin()
  const [done, , , , moved] = hosts as [string, string, string, string, string]
  const specs = await rows('spec')
  expect(JSON.stringify(specs.find(({ node_id }) => node_id === `tend.${moved}`))).toContain('batch 3 of 3')
  must(await send('pause'), 200, 202)
  await relabel(moved)
  must(await send('resume'), 200, 202)
  // A finished target has what the plan wants, so a plan made now would leave it out.
  await p.query(`update operations.nodes set state = 'succeeded' where operation_id = $1 and node_id = $2`, [
    operation_id,
    `tend.${done}`,
  ])
  catalog.put(done, { desired_state: { hostname: done, release: '2.4.0' } })
  must(await send('pause'), 200, 202)
  await relabel(moved)
  must(await send('resume'), 200, 202)
  expect(await rows('spec')).toEqual(specs)
  // A value of its own is drift, and only that value is taken.
  must(await send('pause'), 200, 202)
  catalog.put(moved, { desired_state: { hostname: moved, release: '2.3.10' } })
  const refused = await send('resume')
  expect(problem(refused)).toBe('409 stale_catalog_projection/drift_unacknowledged')
  expect(refused.body.drifted).toEqual([`tend.${moved}`])
  must(await send('resume', { acknowledge_drift: true }), 200, 202)
  const text = JSON.stringify(specs).split('2.3.9')
  const changed = JSON.stringify(await rows('spec'))
  expect([changed.includes('2.3.10'), changed.split('2.3.9').length]).toEqual([true, text.length - 1])
  expect(changed.split('batch 3 of 3')).toHaveLength(JSON.stringify(specs).split('batch 3 of 3').length)
})

it('an upgrade of its pack is no drift, nor is a package that is away', async () => {
  const { plan, send, rows, pins } = await begin()
  expect(plan.packs).toMatchObject([{ pack: 'tend', version: '1.0.0' }])
  const [specs, before, [moved, other]] = [await rows('spec'), await pins(), hosts as [string, string]]
  const library = { ...p.deps.library }
  Object.assign(p.deps.library, packOf('1.1.0', 'welcome'))
  try {
    await relabel(moved)
    expect(await createDriftWatch(p.deps)()).toBe(0)
    expect(await pins()).toEqual({ ...before, [moved]: before[moved] + 1 })
    p.deps.library.away = ['a server does not answer']
    must(await send('pause'), 200, 202)
    await relabel(other)
    must(await send('resume'), 200, 202)
    expect(await rows('spec')).toEqual(specs)
    p.deps.library.away = []
    must(await send('pause'), 200, 202)
    catalog.put(other, { desired_state: { hostname: other, release: '2.3.10' } })
    expect((await send('resume')).body.drifted).toEqual([`tend.${other}`])
    must(await send('resume', { acknowledge_drift: true }), 200, 202)
    expect(JSON.stringify(await rows('spec'))).not.toContain('welcome')
  } finally {
    Object.assign(p.deps.library, { ...library, away: [] })
  }
})
