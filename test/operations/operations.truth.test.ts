import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { createCatalogClient } from '../../apps/operations/catalog/client.ts'
import { sweep } from '../../apps/operations/upkeep/sweeper.ts'
import { recordChanges } from '../../db/operations/operations/record.ts'
import { type CatalogLog, catalogLog } from './support/catalog.ts'
import { must, type Platform, problem, startPlatform } from './support/platform.ts'

/**
 * Every start is checked against the catalog's own answer at that moment. Nothing follows its events here, as while
 * NATS or the consumer is away: what has not been fetched is unknown.
 */
let catalog: CatalogLog
let p: Platform
beforeAll(async () => {
  catalog = await catalogLog()
  catalog.loadTypes()
  catalog.put('eu1', { type_key: 'topology.region' })
  p = await startPlatform({
    relay: false,
    catalog: createCatalogClient(catalog.url, () => 'token'),
    env: { OPERATIONS__COMMANDS__WAIT_MS: '0' },
  })
})
afterAll(async () => {
  await p.stop()
  await catalog.close()
})

const reason = 'a test'
let number = 0
let host: string
beforeEach(async () => {
  number += 1
  host = `h-${number}`
  catalog.put(host, { parent_id: 'eu1' })
  await p.deps.projection.catchUp()
})

const planned = async (more: Record<string, unknown> = {}) => {
  const body = {
    kind: 'change',
    title: 'web 2.4.0',
    reason,
    targets: [{ resource_id: host }],
    change: { op: 'update', desired_state_patch: { release: '2.4.0' } },
    ...more,
  }
  const intent = must(await p.as('olga').post('/v1/intents', body), 201).body
  return must(await p.as('olga').post(`/v1/intents/${intent.intent_id}/plan-preview`, {}), 201).body
}
const start = (plan: { plan_id: string; plan_hash: string }, more: Record<string, unknown> = {}, options = {}) =>
  p.as('olga').post(`/v1/plans/${plan.plan_id}/start`, { reviewed_plan_hash: plan.plan_hash, ...more }, options)
const started = async (more: Record<string, unknown> = {}) => {
  const { operation_id } = must(await start(await planned(more)), 202).body
  const path = `/v1/operations/${operation_id}`
  return {
    operation_id,
    path,
    send: (verb: string, body = {}) => p.as('olga').post(`${path}/${verb}`, { reason, ...body }),
  }
}
const moved = () => catalog.put(host, { desired_state: { hostname: host, release: '2.3.10' } })
const relabelled = () => catalog.put(host, { labels: { rack: 'b' } })

describe('a start', () => {
  it('right after a write to a target in the catalog is refused, and the plan is stale', async () => {
    const plan = await planned()
    moved()
    expect(problem(await start(plan, { dry_run: true }))).toBe('409 stale_catalog_projection/resource_version_moved')
    expect(problem(await start(plan))).toBe('409 stale_catalog_projection/resource_version_moved')
    expect((await p.as('vic').get(`/v1/plans/${plan.plan_id}`)).body.status).toBe('stale')
  })

  it('sees a write without a number in the log, of which no event exists yet', async () => {
    const plan = await planned()
    catalog.put(host, { desired_state: { hostname: host, release: '2.3.11' } }, [], { pub_seq: null })
    expect(problem(await start(plan))).toBe('409 stale_catalog_projection/resource_version_moved')
  })

  it('adopts a version that changed without a value', async () => {
    const plan = await planned()
    relabelled()
    const { operation_id } = must(await start(plan), 202).body
    const [row] = await p.query(`select pins from operations.operations where operation_id = $1`, [operation_id])
    expect(row).toEqual({ pins: { [host]: 2 } })
  })

  it('is refused while the catalog does not answer, with a hint, and succeeds under its key when it does', async () => {
    const plan = await planned()
    const key = randomUUID()
    catalog.state.away = true
    try {
      const refused = await start(plan, {}, { key })
      expect(problem(refused)).toBe('503 stale_catalog_projection/projection_lag')
      expect(refused.body).toMatchObject({ retryable: true, hint: expect.stringContaining('Pause and cancel') })
      expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
      // A caller who may not start it, or reads another paper, is told so first.
      expect(
        problem(await p.as('vic').post(`/v1/plans/${plan.plan_id}/start`, { reviewed_plan_hash: plan.plan_hash })),
      ).toBe('403 policy_denied/permission_missing')
      expect(problem(await start({ ...plan, plan_hash: `sha256:${'0'.repeat(64)}` }))).toBe(
        '412 version_conflict/plan_hash_moved',
      )
    } finally {
      catalog.state.away = false
    }
    const accepted = must(await start(plan, {}, { key }), 202)
    catalog.state.away = true
    expect((await start(plan, {}, { key })).text).toBe(accepted.text)
    catalog.state.away = false
  })

  it("is refused if the catalog's answer expired before it was used", async () => {
    const plan = await planned()
    const key = randomUUID()
    const { catalog: client } = p.deps.trust
    const now = performance.now.bind(performance)
    // The process stops for a moment, right after the answer.
    const versions: typeof client.versions = async (ids) => {
      const answer = await client.versions(ids)
      vi.spyOn(performance, 'now').mockImplementation(() => now() + 5100)
      return answer
    }
    p.deps.trust.catalog = { ...client, versions }
    try {
      const refused = await start(plan, {}, { key })
      expect(problem(refused)).toBe('503 stale_catalog_projection/projection_lag')
      expect(refused.body).toMatchObject({ retryable: true, detail: expect.stringContaining('More than 5 s') })
    } finally {
      p.deps.trust.catalog = client
      vi.restoreAllMocks()
    }
    must(await start(plan, {}, { key }), 202)
  })

  it('is refused if the catalog is older than seen before: it was restored', async () => {
    relabelled()
    await p.deps.projection.catchUp()
    const plan = await planned()
    const now = catalog.documents.get(host)
    if (!now) throw new Error('no document')
    catalog.documents.set(host, { ...now, version: 1 })
    expect(problem(await start(plan))).toBe('503 stale_catalog_projection/projection_gap')
  })

  it('asks no catalog about a node without a target', async () => {
    catalog.state.away = true
    await p.query('update operations.projection set at = clock_timestamp()')
    await p.startOperation({ nodes: [{ node_id: 'a', executor: 'noop', with: {} }] })
    catalog.state.away = false
  })
})

describe('a running operation', () => {
  const act = (node_id: string, release: unknown) => ({
    node_id,
    executor: 'http',
    idempotent: true,
    target_id: host,
    with: { request: { method: 'POST', url: 'http://127.0.0.1:9/', body: { release } } },
  })

  it("is resumed only on the catalog's current state", async () => {
    const { send } = await started()
    must(await send('pause'), 200, 202)
    moved()
    const refused = await send('resume')
    expect(problem(refused)).toBe('409 stale_catalog_projection/drift_unacknowledged')
    expect(refused.body.drifted).toContain(`drain.${host}`)
    must(await send('resume', { acknowledge_drift: true }), 200, 202)
  })

  it('is resumed only on the state that the first step of a target expects, and an undo restores', async () => {
    const { operation_id, send } = await started()
    must(await send('pause'), 200, 202)
    catalog.put(host, { observed_state: { base_url: `http://127.0.0.1:7181/${host}`, release: '2.3.8' } })
    expect((await send('resume')).body.drifted).toEqual([`drain.${host}`, `undrain.${host}`])
    must(await send('resume', { acknowledge_drift: true }), 200, 202)
    const rows = await p.query(
      `select spec #> '{read,expect}' as expects, spec #> '{compensate,catalog,observed_state_patch}' as restores
       from operations.nodes where operation_id = $1 and node_id = any($2) order by node_id`,
      [operation_id, [`drain.${host}`, `undrain.${host}`]],
    )
    expect(rows).toEqual([
      { expects: { '/body/release': '2.3.8' }, restores: null },
      { expects: null, restores: { release: '2.3.8' } },
    ])
  })

  it("retries a node only on the catalog's current state, or if a resume follows", async () => {
    const { operation_id, path, send } = await started()
    await p.query(`update operations.nodes set state = 'failed' where operation_id = $1 and node_id = $2`, [
      operation_id,
      `drain.${host}`,
    ])
    const retry = () => p.as('olga').post(`${path}/nodes/drain.${host}/retry`, { reason })
    moved()
    const refused = await retry()
    expect(problem(refused)).toBe('409 stale_catalog_projection/drift_unacknowledged')
    expect(refused.body.hint).toContain('acknowledge_drift')
    must(await send('pause'), 200, 202)
    must(await retry(), 200, 202)
    expect(problem(await send('resume'))).toBe('409 stale_catalog_projection/drift_unacknowledged')
  })

  it("retries a node only on the catalog's current state, if others adopted a newer version", async () => {
    const graph = { nodes: [act('a', { $from: 'target/desired_state/release' }), act('b', 'x')] }
    const { operation_id, path, send } = await started({ kind: 'graph', targets: undefined, change: undefined, graph })
    const retry = (node_id: string) => p.as('olga').post(`${path}/nodes/${node_id}/retry`, { reason })
    const end = () =>
      p.query(`update operations.nodes set state = 'succeeded', attempt = 1 where operation_id = $1`, [operation_id])
    await end()
    moved()
    // It does not affect b, and a is done.
    must(await retry('b'), 200, 202)
    expect(problem(await retry('a'))).toBe('409 stale_catalog_projection/drift_unacknowledged')
    must(await send('pause'), 200, 202)
    await end()
    must(await retry('a'), 200, 202)
    expect(problem(await send('resume'))).toBe('409 stale_catalog_projection/drift_unacknowledged')
    must(await send('resume', { acknowledge_drift: true }), 200, 202)
    expect(
      JSON.stringify(await p.query('select spec from operations.nodes where operation_id = $1', [operation_id])),
    ).toContain('2.3.10')
  })

  it.each(['withdrawn', 'expired'])('drops accepted values if the retry before the resume is %s', async (as) => {
    const policy = { approvals: { quorum: 1 } }
    const graph = {
      nodes: [act('a', { $from: 'target/desired_state/release' })],
      gates: [{ gate_id: 'go', policy, guards: ['a'] }],
    }
    const { operation_id, path, send } = await started({ kind: 'graph', targets: undefined, change: undefined, graph })
    await p.query(`update operations.nodes set state = 'failed', attempt = 1 where operation_id = $1`, [operation_id])
    await p.query(
      `update operations.gates set status = 'approved', approved_digest = digest, consumed_at = clock_timestamp() where operation_id = $1`,
      [operation_id],
    )
    const now = async () =>
      (
        await p.query(
          `select c.control, n.state, n.spec, n.spec_digest, n.gate_ids, g.status, g.digest, g.subject,
             g.consumed_at is not null as used, o.pins
           from operations.operations o join operations.operation_control c using (operation_id)
             join operations.nodes n using (operation_id) join operations.gates g using (operation_id)
           where operation_id = $1 and gate_id = 'go'`,
          [operation_id],
        )
      )[0]
    const before = await now()
    must(await p.as('olga').post(`${path}/nodes/a/retry`, { reason }), 200, 202)
    must(await send('pause'), 200, 202)
    moved()
    must(await send('resume', { acknowledge_drift: true }), 200, 202)
    const accepted = await now()
    expect(accepted).toMatchObject({ control: 'run', state: 'pending', status: 'waiting', pins: { [host]: 2 } })
    expect(JSON.stringify(accepted?.spec)).toContain('2.3.10')
    const commands = () =>
      p.query('select command_id, kind from operations.operation_commands where operation_id = $1 order by seq', [
        operation_id,
      ])
    if (as === 'withdrawn') {
      await p.query(
        `update operations.operation_commands set not_after = clock_timestamp() - interval '1 s' where operation_id = $1 and kind = 'retry_node'`,
        [operation_id],
      )
      expect(await sweep(p.deps.db)).toBe(1)
    } else {
      // The engine takes all at once after an absence, the resume still in time.
      await p.query(`update operations.operation_commands set status = 'delivered' where operation_id = $1`, [
        operation_id,
      ])
      const outcome = (kind: string, command_id: string) =>
        ({ t: 'command', command_id, status: kind === 'retry_node' ? 'expired' : 'applied' }) as const
      const changes = (await commands()).map(({ kind, command_id }) => outcome(kind, command_id))
      const counts = { total: 1, done: 0, running: 0, failed: 0, waiting: 0, open_gates: 0 }
      const report = { ...counts, engine_status: 'running' as const, blocked_on: [] }
      const ref = { namespace: 'default', workflow_id: operation_id, run_id: '' }
      await recordChanges(p.deps.db, operation_id, { record_seq: 1, changes, report }, ref)
      // It is told that the resume that it took does not count.
      expect((await commands()).slice(-2).map(({ kind }) => kind)).toEqual(['pause', 'place_free'])
    }
    expect(await now()).toEqual({ ...before, control: 'pause' })
    const { body } = await p.as('vic').get(`${path}/timeline?types=command.withdrawn`)
    expect(body.events.map(({ data }: { data: { kind: string } }) => data.kind)).toEqual(
      as === 'withdrawn' ? ['resume', 'retry_node'] : ['resume'],
    )
  })

  it('adopts versions that changed without a value if a retry or a patch starts a node', async () => {
    const { operation_id, path } = await started()
    // Everything is done, so no one has checked the version that came then.
    await p.query(`update operations.nodes set state = 'succeeded', attempt = 1 where operation_id = $1`, [
      operation_id,
    ])
    const [last] = await p.query<{ node_id: string }>(
      `update operations.nodes set state = 'failed' where operation_id = $1 and node_id like 'undrain%' returning node_id`,
      [operation_id],
    )
    const pinned = async () =>
      (await p.query(`select pins from operations.operations where operation_id = $1`, [operation_id]))[0]?.pins[host]
    relabelled()
    must(await p.as('olga').post(`${path}/nodes/${last?.node_id}/retry`, { reason }), 200, 202)
    expect(await pinned()).toBe(2)
    await p.query(`update operations.nodes set state = 'succeeded' where operation_id = $1`, [operation_id])
    catalog.put(host, { labels: { rack: 'c' } })
    const node = { node_id: 'more', executor: 'noop', with: {}, target_id: host }
    const changes = [{ op: 'add_node', node }]
    const proposed = must(await p.as('olga').post(`${path}/patches`, { base_revision: 1, reason, changes }), 201, 202)
    const vote = { reviewed_digest: proposed.body.digest }
    must(await p.as('eva').post(`${path}/patches/${proposed.body.patch_id}/approve`, vote), 200, 202)
    expect(await pinned()).toBe(3)
  })

  it('can be paused and canceled while the catalog is down, but not resumed, retried or patched', async () => {
    const { operation_id, path, send } = await started()
    await p.query(`update operations.nodes set state = 'failed' where operation_id = $1 and node_id = $2`, [
      operation_id,
      `drain.${host}`,
    ])
    const lag = '503 stale_catalog_projection/projection_lag'
    catalog.state.away = true
    try {
      expect(problem(await p.as('olga').post(`${path}/nodes/drain.${host}/retry`, { reason }))).toBe(lag)
      const changes = [{ op: 'set_limits', max_parallel: 2 }]
      expect(problem(await send('patches', { base_revision: 1, changes }))).toBe(lag)
      must(await send('pause'), 200, 202)
      expect(problem(await send('resume'))).toBe(lag)
      must(await send('cancel'), 200, 202)
    } finally {
      catalog.state.away = false
    }
  })
})
