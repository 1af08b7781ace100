import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { sweepReservations } from '../../apps/catalog/expiry.ts'
import { type CatalogClient, CatalogUnavailable, createCatalogClient } from '../../apps/operations/catalog/client.ts'
import { impactFor } from '../../apps/operations/policies/authority.ts'
import type { PlanView } from '../../apps/shared/contracts/operations/plans.ts'
import { startCatalog } from '../catalog/support/platform.ts'
import { gated, must, type Platform, startPlatform } from './support/platform.ts'

/** The two apps with each other: the catalog's own listener feeds the projection, and plans are made from it. */
let catalog: Awaited<ReturnType<typeof startCatalog>>
let p: Platform
let away = false
/** A client of a catalog that no longer listens. */
let stopped: CatalogClient | undefined
beforeAll(async () => {
  catalog = await startCatalog()
  catalog.deps.graph.start()
  const ada = catalog.as('ada')
  await ada.record({ resource_id: 'eu1', type_key: 'topology.region', name: 'eu1', desired_state: { code: 'eu1' } })
  await ada.record({
    resource_id: 'eu1-a',
    type_key: 'topology.datacenter',
    name: 'eu1-a',
    parent_id: 'eu1',
    desired_state: { code: 'eu1-a' },
  })
  for (const name of ['web', 'cart'])
    await ada.record({
      resource_id: name,
      type_key: 'fleet.host',
      name,
      parent_id: 'eu1-a',
      lifecycle_status: 'active',
      labels: { environment: 'demo' },
      desired_state: { hostname: name, release: '1.0.0' },
      observed_state: { base_url: `http://127.0.0.1:7181/${name}`, release: '1.0.0' },
      ...(name === 'cart' && { relationships: [{ type_key: 'depends_on', target_id: 'web' }] }),
    })
  await catalog.followed()
  const client = createCatalogClient(catalog.internal_url, catalog.services.signer('operations'))
  p = await startPlatform({
    relay: false,
    catalog: {
      ...client,
      affected: (ids) => (away ? Promise.reject(new CatalogUnavailable('', '')) : client.affected(ids)),
      compareHealth: (asked) => (stopped ?? client).compareHealth(asked),
    },
    env: { OPERATIONS__COMMANDS__WAIT_MS: '0', OPERATIONS__PROJECTION__MAX_LAG_MS: '0' },
  })
})
afterAll(async () => {
  await p.stop()
  await catalog.stop()
})

const release = (value: string) => ({
  kind: 'change',
  title: `release ${value}`,
  reason: 'a new release',
  targets: [{ selector: { type_key: 'infra.host', when: "target.scope.region_id == 'eu1'" } }],
  change: { op: 'update', desired_state_patch: { release: value } },
})

it('a snapshot and the types of the real catalog make a plan in the order of its dependencies', async () => {
  const intent = must(await p.as('olga').post('/v1/intents', release('2.0.0')), 201).body
  expect(intent.targets_resolved.map(({ resource_id }: { resource_id: string }) => resource_id)).toEqual([
    'cart',
    'web',
  ])
  const plan = must(await p.as('olga').post(`/v1/intents/${intent.intent_id}/plan-preview`, {}), 201).body
  expect(plan.counts).toMatchObject({ update: 2, nodes: 10, gates: 1 })
  expect(plan.impact).toMatchObject({ dependents_count: 0 })
  const graph = must(await p.as('vic').get(`/v1/plans/${plan.plan_id}/graph`), 200).body
  const drains = graph.nodes
    .map(({ node_id }: { node_id: string }) => node_id)
    .filter((id: string) => id.startsWith('drain'))
  expect(drains).toEqual(['drain.web', 'drain.cart'])
  expect(plan.leases.map(({ resource_id, mode }: Record<string, string>) => `${resource_id} ${mode}`)).toEqual([
    'cart exclusive',
    'eu1 shared',
    'eu1-a shared',
    'web exclusive',
  ])
})

it('an operation is found by its targets, their containers and their dependents', async () => {
  const stated = { ...release('1.5.0'), targets: [{ resource_id: 'web' }] }
  const { intent_id } = must(await p.as('olga').post('/v1/intents', stated), 201).body
  const plan = must(await p.as('olga').post(`/v1/intents/${intent_id}/plan-preview`, {}), 201).body
  expect(plan.impact.dependents).toEqual(['cart'])
  expect(plan.impact.affected).toEqual({
    total: 1,
    at_least: false,
    unhealthy: 0,
    groups: [
      {
        type_key: 'fleet.host',
        health_status: 'unknown',
        count: 1,
        unhealthy: 0,
        nearest: [{ resource_id: 'cart', name: 'cart' }],
      },
    ],
    watermark: expect.stringMatching(/^\d+$/),
  })
  expect(must(await p.as('vic').get(`/v1/plans/${plan.plan_id}`), 200).body.impact).toEqual(plan.impact)
  const started = await p.as('olga').post(`/v1/plans/${plan.plan_id}/start`, { reviewed_plan_hash: plan.plan_hash })
  const { operation_id } = must(started, 202).body
  for (const resource_id of ['web', 'eu1-a', 'eu1', 'cart']) {
    const { items } = must(await p.as('vic').get(`/v1/resources/${resource_id}/operations`), 200).body
    expect([resource_id, items.map((item: { operation_id: string }) => item.operation_id)]).toEqual([
      resource_id,
      [operation_id],
    ])
  }
  expect((await p.as('vic').get('/v1/operations?resource_id=nowhere')).body.items).toEqual([])
  must(await p.as('olga').post(`/v1/operations/${operation_id}/cancel`, { reason: 'seen' }), 200)
})

it('dependents through any number of steps count for the risk, and are named only to those who may see them', async () => {
  for (let i = 0; i < 12; i++)
    await catalog
      .as('ada')
      .record({
        resource_id: `user-${i}`,
        type_key: 'infra.generic',
        name: `user-${i}`,
        desired_state: { provider: 'test', kind: 'thing' },
        relationships: [{ type_key: 'depends_on', target_id: i === 0 ? 'web' : `user-${i - 1}` }],
      })
  await catalog.followed()
  const stated = { ...release('1.6.0'), targets: [{ resource_id: 'web' }] }
  const { intent_id } = must(await p.as('olga').post('/v1/intents', stated), 201).body
  const path = `/v1/intents/${intent_id}/plan-preview`
  away = true
  const refused = await p.as('olga').post(path, {})
  expect([refused.status, refused.body.code]).toEqual([503, 'projection_lag'])
  away = false
  const plan = must(await p.as('olga').post(path, {}), 201).body
  expect(plan.impact.affected).toMatchObject({
    total: 13,
    groups: [{ type_key: 'infra.generic', count: 12 }, { count: 1 }],
  })
  expect(plan.impact.affected.groups[0].nearest).toHaveLength(5)
  expect(plan.risk.factors).toContainEqual({
    factor: 'dependents',
    points: 10,
    detail: '13 resources depend on them.',
    values: { count: 13 },
  })
  const impact: PlanView['impact'] = plan.impact
  const elsewhere = {
    user_id: '',
    grants: [{ id: '', role: 'viewer' as const, scope: { region_id: 'us1' }, expires_at: null }],
  }
  const { affected } = await impactFor(p.deps.db, elsewhere, impact)
  expect(affected?.groups.map(({ count, nearest }) => [count, nearest])).toEqual([
    [12, []],
    [1, []],
  ])
})

it('a change requested in the catalog becomes an intent once its event arrives', async () => {
  const { body } = await catalog
    .as('olga')
    .patch('/v1/resources/web?expected_version=1', { desired_state: { release: '3.0.0' } })
  const { intent_id } = body.operation_ref
  expect((await p.as('olga').get(`/v1/intents/${intent_id}`)).status).toBe(404)
  await catalog.sequence()
  await p.deps.projection.catchUp()
  const intent = must(await p.as('vic').get(`/v1/intents/${intent_id}`), 200).body
  expect(intent).toMatchObject({
    kind: 'change',
    status: 'open',
    requester: { name: 'olga' },
    labels: { environment: 'demo' },
  })
  const plan = must(await p.as('olga').post(`/v1/intents/${intent_id}/plan-preview`, {}), 201).body
  expect(plan.diff).toMatchObject([
    { resource_id: 'web', change: 'update', fields: [{ path: '/release', before: '1.0.0', after: '3.0.0' }] },
  ])
})

it("an operation's result moves pins and values, and the health of a resource neither", async () => {
  const intent = must(await p.as('olga').post('/v1/intents', release('4.0.0')), 201).body
  const plan = must(await p.as('olga').post(`/v1/intents/${intent.intent_id}/plan-preview`, {}), 201).body
  await catalog.observe('web', { status: 'healthy' })
  await catalog.sequence()
  await p.deps.projection.catchUp()
  expect(must(await p.as('vic').get(`/v1/plans/${plan.plan_id}`), 200).body.pins_moved).toEqual([])
  const { version } = (await catalog.as('vic').get('/v1/resources/web')).body
  must(
    await catalog.result('web', { expected_version: version, changes: { desired_state_patch: { release: '1.5.0' } } }),
    200,
  )
  await catalog.sequence()
  await p.deps.projection.catchUp()
  expect(must(await p.as('vic').get(`/v1/plans/${plan.plan_id}`), 200).body.pins_moved).toEqual([
    { resource_id: 'web', planned: version, current: version + 1 },
  ])
  const [row] = await p.query(
    `select health_status, desired_state ->> 'release' as release from operations.catalog_resources where resource_id = 'web'`,
  )
  expect(row).toEqual({ health_status: 'healthy', release: '1.5.0' })
})

it('a plan holds the capacity of its reservation, and no longer: of two plans for the last place one starts', async () => {
  const ada = catalog.as('ada')
  const vms = ['vm-1', 'vm-2']
  for (const name of vms)
    await ada.record({
      resource_id: name,
      type_key: 'infra.virtual_machine',
      name,
      parent_id: 'eu1-a',
      lifecycle_status: 'active',
      desired_state: { hostname: name },
    })
  const offered = {
    capability_key: 'compute.slots',
    version: '1.0.0',
    attributes: { cpu_cores: 8, memory_mib: 4096, arch: 'amd64' },
    capacity: { total: 1 },
  }
  const ids = () => ({ command_id: randomUUID(), idempotency_key: randomUUID() })
  const versionOf = async (id: string) => (await ada.get(`/v1/resources/${id}`)).body.version
  const provided = await catalog.internally('POST', '/resources/web/provided-capabilities', {
    ...ids(),
    resource_id: 'web',
    expected_version: await versionOf('web'),
    mode: 'merge',
    provided_capability_changes: [{ op: 'add', ...offered }],
  })
  expect([provided.status, provided.text]).toEqual([200, expect.any(String)])
  const claim = (op: string, properties = {}) => ({
    op,
    type_key: 'uses_capability',
    target_id: 'web',
    properties: { requirement_key: 'slot', capability_key: 'compute.slots', ...properties },
  })
  const reserve = async (vm: string) => {
    const expires_at = new Date(catalog.deps.clock.now().getTime() + 60_000).toISOString()
    const change = {
      resource_id: vm,
      expected_version: await versionOf(vm),
      relationship_changes: [claim('add', { expires_at })],
    }
    const { body } = await ada.post('/v1/resources:bulk?mode=record_only', { items: [{ op: 'relate', change }] })
    await catalog.followed()
    return body.results[0]
  }
  const plan = async (vm: string) => {
    const node = { node_id: 'place', executor: 'noop', with: {}, target_id: vm }
    const nodes = [{ ...node, catalog: { relationship_changes: [claim('update')] } }]
    const stated = {
      kind: 'graph',
      title: `place ${vm}`,
      reason: 'room',
      targets: [{ resource_id: vm }],
      graph: { nodes },
    }
    const { intent_id } = must(await p.as('olga').post('/v1/intents', stated), 201).body
    return p.as('olga').post(`/v1/intents/${intent_id}/plan-preview`, {})
  }
  const start = ({ plan_id, plan_hash }: { plan_id: string; plan_hash: string }) =>
    p.as('olga').post(`/v1/plans/${plan_id}/start`, { reviewed_plan_hash: plan_hash })
  const lost = { status: 409, body: { category: 'stale_catalog_projection', code: 'reservation_lost' } }

  expect(await plan('vm-1')).toMatchObject(lost)
  expect(await reserve('vm-1')).toMatchObject({ status: 200 })
  expect(await reserve('vm-2')).toMatchObject({ status: 422, body: { code: 'no_capacity' } })
  const first = must(await plan('vm-1'), 201).body
  // It has expired before any sweep: no resource has changed yet.
  const { clock } = p.deps
  p.deps.clock = { ...clock, now: () => new Date(clock.now().getTime() + 61_000) }
  expect(await start(first)).toMatchObject(lost)
  p.deps.clock = clock
  catalog.wait(61_000)
  await sweepReservations(catalog.deps)
  await catalog.followed()
  expect(await start(first)).toMatchObject(lost)

  // Both want the free place. The winner starts; the earlier plan starts only if the place is its own again.
  const got = await Promise.all(vms.map(reserve))
  expect(got.map(({ status }) => status).sort()).toEqual([200, 422])
  const won = got[0]?.status === 200 ? 'vm-1' : 'vm-2'
  const second = await plan('vm-2')
  expect(second.status).toBe(won === 'vm-2' ? 201 : 409)
  const starts = await Promise.all([start(first), ...(second.status === 201 ? [start(second.body)] : [])])
  expect(starts.filter(({ status }) => status === 202)).toHaveLength(1)
  expect(starts[0]?.status).toBe(won === 'vm-1' ? 202 : 409)
})

it('a gate shows how the metrics of its canary compare; a catalog that is stopped takes them away, not the decision; a decided gate keeps them', async () => {
  const { record } = catalog.as('ada')
  await record({
    resource_id: 'plain',
    type_key: 'infra.host',
    name: 'plain',
    parent_id: 'eu1-a',
    desired_state: { hostname: 'plain' },
  })
  await catalog.sequence()
  await p.deps.projection.catchUp()
  const { operation_id } = await p.startOperation(gated())
  const gate = `/v1/operations/${operation_id}/gates/go`
  const read = async () => must(await p.as('vic').get(gate), 200).body
  const aim = (canary: string) =>
    p.query(
      `update operations.nodes set target_id = case node_id when 'before' then $2 else 'cart' end,
         started_at = clock_timestamp() - interval '20 min', ended_at = case node_id when 'before' then clock_timestamp() - interval '10 min' end
       where operation_id = $1`,
      [operation_id, canary],
    )
  await p.query(
    `update operations.gates set subject = jsonb_set(subject, '{releases,0,target_id}', '"cart"') where operation_id = $1`,
    [operation_id],
  )
  await p.query(`update operations.operations set resource_ids = '{web,cart,plain}' where operation_id = $1`, [
    operation_id,
  ])
  await aim('web')
  expect((await read()).brief.canary).not.toHaveProperty('metrics')
  await p.openGate(operation_id, 'go')
  const observe = async (id: string, ago_min: number, p95_ms: number) =>
    must(
      await catalog.observe(id, {
        observed_at: new Date(Date.now() - ago_min * 60_000).toISOString(),
        attributes: { p95_ms },
      }),
      200,
    )
  const none = { median: null, samples: 0 }
  expect((await read()).brief.canary.metrics).toMatchObject([{ own: none }, { own: none }])
  for (const [minutes, own, rest] of [
    [30, 40, 41],
    [9, 250, 43],
    [6, 260, 45],
    [3, 240, 47],
  ] as const) {
    await observe('web', minutes, own)
    await observe('cart', minutes, rest)
  }
  const before = await read()
  expect(before.brief.canary).toMatchObject({
    named: [{ resource_id: 'web' }],
    metrics: [
      { key: 'errors_pct', own: none, rest: none, before: none },
      {
        key: 'p95_ms',
        own: { median: 250, samples: 3 },
        rest: { median: 45, samples: 3 },
        before: { median: 40, samples: 1 },
      },
    ],
  })
  await aim('plain')
  expect((await read()).brief.canary).toMatchObject({ named: [{ resource_id: 'plain' }], metrics: [] })
  stopped = createCatalogClient('http://127.0.0.1:9', catalog.services.signer('operations'))
  const { brief, digest, subject, round } = await read()
  expect(brief.canary.metrics).toBeNull()
  // The context is not bound: with any of these the digest is the same.
  expect([digest, subject]).toEqual([before.digest, before.subject])
  must(await p.as('eva').post(`${gate}/approve`, { reviewed_digest: digest, round }), 200, 202)
  expect((await read()).brief.canary.metrics).toBeNull()
  stopped = undefined
  // The record keeps the figures as they were at the decision.
  await aim('web')
  await observe('web', 0, 900)
  expect((await read()).brief.canary.metrics).toEqual(before.brief.canary.metrics)
})
