import { sql } from 'drizzle-orm'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createCatalogClient } from '../../apps/operations/catalog/client.ts'
import { digestByHand } from '../support/bound.ts'
import { siteFolder } from '../support/site.ts'
import { type CatalogLog, catalogLog } from './support/catalog.ts'
import { must, type Platform, problem, type Reply, startPlatform } from './support/platform.ts'

/** Revision n + 1 is a plan: the rules for a preview and a start also bind a patch (operations.md 2.6, 3.2). */

const forbid = (id: string, detail: string, when: string, approvers = '') =>
  `@id("${id}") @detail("${detail}") ${approvers} forbid (principal, action == Action::"plan.execute", resource is Plan)
   when { ${when} };`
const WATCH = `
format: signalbox/gate-policy@1
key: watch
version: 1
question: Somebody of storage looks at what is risky?
applies: plan.risk.score >= 30
place: { at: entry }
approvals: { quorum: 1, groups: [{ group: storage, min: 1 }] }
`
let catalog: CatalogLog
let p: Platform
beforeAll(async () => {
  catalog = await catalogLog()
  catalog.loadTypes()
  catalog.put('eu1', { type_key: 'topology.region' })
  p = await startPlatform({
    relay: false,
    catalog: createCatalogClient(catalog.url, () => 'token'),
    env: {
      OPERATIONS__COMMANDS__WAIT_MS: '0',
      OPERATIONS__PROJECTION__MAX_LAG_MS: '0',
      OPERATIONS__POLICY__DIR: siteFolder({
        'hard.cedar': forbid('never_critical', 'Critical work is not done here.', 'resource.risk == "critical"'),
        'soft.cedar': forbid(
          'silver_high',
          'Silver at high risk needs a second look.',
          'resource.risk == "high" && resource.hasTag("tier") && resource.getTag("tier") == "silver"',
          '@approvers("netops-leads")',
        ),
        'gates/watch.yaml': WATCH,
      }),
    },
  })
})
afterAll(async () => {
  await p.stop()
  await catalog.close()
})

const reason = 'a test'
const call = (node_id: string, target_id: string | undefined, more: Record<string, unknown> = {}) => ({
  node_id,
  executor: 'http',
  with: { request: { method: 'POST', url: 'http://127.0.0.1:9/switch' } },
  idempotent: true,
  ...(target_id !== undefined && { target_id }),
  ...more,
})
const look = (node_id: string, more: Record<string, unknown> = {}) => ({ node_id, executor: 'noop', with: {}, ...more })
const netops = { approvals: { groups: [{ group: 'netops', min: 1 }] } }
const add = (node: unknown) => ({ op: 'add_node', node })

let number = 0
const host = () => {
  number += 1
  catalog.put(`h-${number}`, { parent_id: 'eu1' })
  return `h-${number}`
}
type Graph = { nodes: unknown[]; gates?: unknown[] }
const started = async (graph: Graph, more: Record<string, unknown> = {}) => {
  const { operation_id } = await p.startOperation(graph, { more })
  return { operation_id, path: `/v1/operations/${operation_id}` }
}
const propose = (path: string, changes: unknown[], more: Record<string, unknown> = {}) =>
  p.as('olga').post(`${path}/patches`, { base_revision: 1, reason, changes, ...more })
const approve = (path: string, { body }: Reply, by: 'ivo' | 'eva' | 'ada') =>
  p.as(by).post(`${path}/patches/${body.patch_id}/approve`, { reviewed_digest: body.digest })

describe('a patch', () => {
  it.each([
    ['gives a node the value it has', [{ op: 'update_node', node_id: 'b', set: { name: 'b' } }]],
    ['gives a node the inputs it has', [{ op: 'update_node', node_id: 'b', set: { with: { delay_ms: 1 } } }]],
    ['removes what it adds', [add(look('x')), { op: 'remove_node', node_id: 'x' }]],
    ['adds a dependency that exists', [{ op: 'add_dependency', node_id: 'b', depends_on: 'a' }]],
    ['takes back its own change', [3, 2].map((max_parallel) => ({ op: 'set_limits', max_parallel }))],
  ])('that %s is refused, and holds no node', async (_what, changes) => {
    const nodes = [look('a'), look('b', { name: 'b', with: { delay_ms: 1 }, depends_on: ['a'] })]
    const gates = [{ gate_id: 'go', policy: netops, guards: ['b'] }]
    const { path } = await started({ nodes, gates }, { constraints: { max_parallel: 2 } })
    const refused = await propose(path, changes)
    expect(problem(refused)).toBe('422 patch_not_applicable/unsound')
    expect(refused.body.detail).toBe('The changes leave the graph as it is.')
    expect(refused.body.violations).toEqual([
      { pointer: '/changes', code: 'nothing_changes', message: 'leave the graph as it is' },
    ])
    // A later one may touch the node, so none holds it.
    must(await propose(path, [{ op: 'update_node', node_id: 'b', set: { with: { delay_ms: 2 } } }]), 201, 202)
  })
})

describe('a patch that another has overtaken', () => {
  it('is offered again only if it still changes the graph', async () => {
    const { path } = await started({ nodes: [look('a')] })
    const limit = (max_parallel: number) => propose(path, [{ op: 'set_limits', max_parallel }])
    const [first, equal, other] = [await limit(3), await limit(3), await limit(4)] as const
    must(await approve(path, first, 'eva'), 200, 201, 202)
    const rebase = async ({ body }: Reply) => (await p.as('vic').get(`${path}/patches/${body.patch_id}`)).body.rebase
    expect(await rebase(equal)).toBeNull()
    expect(await rebase(other)).toMatchObject({ base_revision: 2 })
  })
})

describe('a patch beside a gate', () => {
  const guarded = async (more: { target?: boolean } = {}) => {
    const target = more.target === false ? undefined : host()
    const graph = {
      nodes: [look('a'), call('b', target, { depends_on: ['a'] })],
      gates: [{ gate_id: 'go', policy: netops, guards: ['b'] }],
    }
    return { ...(await started(graph)), target, other: host() }
  }

  it('that adds a twin of a guarded node asks the guards of its target', async () => {
    const { path, target } = await guarded()
    const twin = await propose(path, [add(call('twin', target, { depends_on: ['a'] }))])
    expect(must(twin, 201).body.required).toMatchObject({ policies: ['go'], groups: [{ group: 'netops', min: 1 }] })
    expect(problem(await approve(path, twin, 'ivo'))).toBe('403 policy_denied/not_eligible')
    expect((await approve(path, twin, 'eva')).status).toBe(202)
  })

  it.each([1, 2])('leaves a subject of version %i unchanged if it changes nothing behind the gate', async (v) => {
    const { operation_id, path } = await guarded()
    const read = async () => must(await p.as('eva').get(`${path}/gates/go`), 200).body
    const { subject } = await read()
    expect(subject).toMatchObject({ v: 2, asked: { requester: { name: 'pia' }, plan_hash: expect.any(String) } })
    const { asked: _, ...rest } = subject
    const old = {
      ...rest,
      v: 1,
      releases: rest.releases.map(({ step: _step, batch: _batch, ...one }: object & Record<string, unknown>) => one),
    }
    // An older build wrote its row so.
    const began = v === 1 ? old : subject
    await p.deps.db.execute(sql`update operations.gates set subject = ${JSON.stringify(began)}::jsonb,
      digest = ${digestByHand(began)} where operation_id = ${operation_id}`)
    const limits = await propose(path, [{ op: 'set_limits', max_parallel: 3 }])
    expect((await approve(path, limits, 'ivo')).status).toBe(202)
    expect(await read()).toMatchObject({ subject: began, digest: digestByHand(began), round: 1 })
  })

  it('that makes an unguarded node act on that target asks them too', async () => {
    const target = host()
    const { path } = await started({
      nodes: [look('a', { target_id: target }), call('b', target, { depends_on: ['a'] })],
      gates: [{ gate_id: 'go', policy: netops, guards: ['b'] }],
    })
    const { executor, with: values } = call('x', target)
    const turned = await propose(path, [{ op: 'update_node', node_id: 'a', set: { executor, with: values } }])
    expect(must(turned, 201, 202).body.required.policies).toEqual(['go'])
  })

  it('that acts without a target asks the guards of every act; one elsewhere, or without effect, asks no one', async () => {
    const { path, target, other } = await guarded()
    const required = async (node: unknown) =>
      must(await propose(path, [add(node)], { dry_run: true }), 200).body.effect.required.map(
        ({ key }: { key: string }) => key,
      )
    expect(await required(call('n', undefined))).toEqual(['go'])
    expect(await required(look('n'))).toEqual([])
    expect(await required(look('n', { target_id: target }))).toEqual(['go'])
    expect(problem(await propose(path, [add(call('n', other))]))).toBe('422 patch_not_applicable/unsound')
    const nowhere = await guarded({ target: false })
    const twin = await propose(nowhere.path, [add(call('n', undefined))], { dry_run: true })
    expect(twin.body.effect.required).toHaveLength(1)
  })

  it('of a service gate, which no vote can replace, is refused', async () => {
    const target = host()
    const { path } = await started({
      nodes: [look('a'), call('b', target, { depends_on: ['a'] })],
      gates: [{ gate_id: 'probe', policy: { check: { service: 'prober', timeout_s: 60 } }, guards: ['b'] }],
    })
    const twin = await propose(path, [add(call('twin', target))])
    expect(problem(twin)).toBe('422 patch_not_applicable/unsound')
    expect(twin.body.violations).toMatchObject([{ code: 'gate_weakened', pointer: '/gates/probe' }])
    must(await propose(path, [add(call('twin', target, { depends_on: ['b'] }))]), 201, 202)
  })
})

describe('a patch that acts on a further target of the operation', () => {
  const leasesOf = async (operation_id: string) =>
    (
      await p.query('select resource_id, mode from operations.leases where operation_id = $1 order by 1', [
        operation_id,
      ])
    ).map((row) => Object.values(row).join(' '))

  it('takes its lease, unless another operation holds it', async () => {
    const [own, next] = [host(), host()]
    const targets = [own, next].map((resource_id) => ({ resource_id }))
    const { path, operation_id } = await started({ nodes: [call('a', own)] }, { targets })
    expect(await leasesOf(operation_id)).toEqual(['eu1 shared', `${own} exclusive`])
    const further = await propose(path, [add(call('n', next))])
    const other = await started({ nodes: [call('x', next)] })
    expect(problem(await approve(path, further, 'ivo'))).toBe('409 plan_locked/resource_lease_held')
    must(await p.as('olga').post(`${other.path}/cancel`, { reason }), 200, 202)
    must(await approve(path, further, 'ivo'), 202)
    expect(await leasesOf(operation_id)).toEqual(['eu1 shared', `${own} exclusive`, `${next} exclusive`])
  })
})

describe('a patch that acts on a place of which the operation has only a share', () => {
  const leaseOf = (operation_id: string, resource_id: string) =>
    p.query('select mode from operations.leases where operation_id = $1 and resource_id = $2', [
      operation_id,
      resource_id,
    ])

  it('takes it whole, unless another operation works in it', async () => {
    catalog.put('dc1', { type_key: 'topology.region' })
    const inside = () => {
      const id = host()
      catalog.put(id, { parent_id: 'dc1' })
      return id
    }
    const [one, two] = [inside(), inside()]
    const targets = [one, 'dc1'].map((resource_id) => ({ resource_id }))
    const { path, operation_id } = await started({ nodes: [call('a', one)] }, { targets })
    expect(await leaseOf(operation_id, 'dc1')).toEqual([{ mode: 'shared' }])
    const whole = await propose(path, [add(call('n', 'dc1'))])
    const other = await started({ nodes: [call('x', two)] })
    expect(problem(await approve(path, whole, 'ivo'))).toBe('409 plan_locked/resource_lease_held')
    expect(await leaseOf(operation_id, 'dc1')).toEqual([{ mode: 'shared' }])
    must(await p.as('olga').post(`${other.path}/cancel`, { reason }), 200, 202)
    must(await approve(path, whole, 'ivo'), 202)
    expect(await leaseOf(operation_id, 'dc1')).toEqual([{ mode: 'exclusive' }])
    expect(await leaseOf(operation_id, one)).toEqual([{ mode: 'exclusive' }])
  })
})

describe('a patch that raises the risk', () => {
  const plain = (labels: Record<string, string> = {}, constraints: Record<string, unknown> = {}) =>
    started({ nodes: [look('a'), look('b', { depends_on: ['a'] })] }, { labels, constraints })
  const risky = (risk: number) => [add(look('n', { depends_on: ['a'], risk }))]

  it('above the ceiling of its intent is refused, like a plan', async () => {
    const more = { constraints: { risk_ceiling: 'low' } }
    await expect(started({ nodes: [look('a', { risk: 25 })] }, more)).rejects.toThrow('risk_ceiling')
    const { path } = await plain({}, more.constraints)
    expect(problem(await propose(path, risky(25)))).toBe('403 policy_denied/risk_ceiling')
    expect(problem(await propose(path, risky(25), { dry_run: true }))).toBe('403 policy_denied/risk_ceiling')
    const update = [{ op: 'update_node', node_id: 'b', set: { risk: 25 } }]
    expect(problem(await propose(path, update))).toBe('403 policy_denied/risk_ceiling')
    must(await propose(path, risky(19)), 201, 202)
  })

  it('changes the risk of the operation, so that interventions need a second person; a withdrawal restores it', async () => {
    const { path, operation_id } = await plain()
    const levelOf = async () => must(await p.as('vic').get(path), 200).body.risk_level
    const proposed = must(await propose(path, risky(55)), 201, 202)
    expect(proposed.body.diff_graph).toMatchObject({ risk: { before: 'low', after: 'high' } })
    expect(await levelOf()).toBe('low')
    must(await approve(path, proposed, 'ivo'), 201, 202)
    expect(await levelOf()).toBe('high')
    const second = { type: 'skip', node_id: 'b', payload: {}, reason }
    expect((await p.as('olga').post(`${path}/interventions`, second)).body).toMatchObject({
      intervention: { status: 'awaiting_second_person' },
    })
    // The engine never took over the patch: a cancel takes it back.
    must(await p.as('olga').post(`${path}/cancel`, { reason }), 200, 202)
    const [row] = await p.query(`select status from operations.patches where operation_id = $1`, [operation_id])
    expect(row).toEqual({ status: 'not_applicable' })
    expect(await levelOf()).toBe('low')
  })

  it('is refused by the current hard policies, at its proposal and at each vote', async () => {
    const { path } = await plain()
    const refused = await propose(path, risky(90))
    expect(problem(refused)).toBe('403 policy_denied/hard_policy')
    expect(refused.body).toMatchObject({ policy_ids: ['never_critical'], detail: 'Critical work is not done here.' })
  })

  it('gets the gates of soft policies and of gate policies around its changes', async () => {
    const { path, operation_id } = await plain({ tier: 'silver' })
    const changes = [...risky(55), { op: 'update_node', node_id: 'b', set: { name: 'B' } }]
    const proposed = must(await propose(path, changes), 201, 202)
    expect(proposed.body.diff_graph.added_gates.toSorted()).toEqual(['silver_high', 'watch'])
    const dry = { reviewed_digest: proposed.body.digest, dry_run: true }
    const foreseen = await p.as('ivo').post(`${path}/patches/${proposed.body.patch_id}/approve`, dry)
    expect(must(foreseen, 200).body.effect.rearmed_gates).toEqual([])
    must(await approve(path, proposed, 'ivo'), 201, 202)
    const own = `patch-${proposed.body.patch_id}`
    const gates = await p.query(
      'select gate_id, kind, guards, status from operations.gates where operation_id = $1 order by gate_id',
      [operation_id],
    )
    expect(gates).toEqual([
      { gate_id: own, kind: 'approval', guards: ['b', 'n'], status: 'approved' },
      { gate_id: 'silver_high', kind: 'policy_override', guards: ['b', 'n'], status: 'armed' },
      { gate_id: 'watch', kind: 'approval', guards: ['b', 'n'], status: 'armed' },
    ])
    const nodes = await p.query(
      'select node_id, gate_ids from operations.nodes where operation_id = $1 order by node_id',
      [operation_id],
    )
    expect(nodes).toEqual([
      { node_id: 'a', gate_ids: [] },
      { node_id: 'b', gate_ids: expect.arrayContaining([own, 'silver_high', 'watch']) },
      { node_id: 'n', gate_ids: expect.arrayContaining([own, 'silver_high', 'watch']) },
    ])
    // Nodes already behind them are not asked about twice.
    const more = [add(look('m', { depends_on: ['n'] }))]
    const again = must(await propose(path, more, { base_revision: 2 }), 201, 202)
    expect(again.body.diff_graph.added_gates).toEqual([])
    expect(again.body.required.policies.toSorted()).toEqual(['patch', 'silver_high', 'watch'])
  })

  it('cannot remove a gate of such a policy: it is asked again', async () => {
    const graph = { nodes: [look('a'), look('b', { depends_on: ['a'], risk: 30 })] }
    const { path } = await started(graph)
    const { body } = await p.as('vic').get(`${path}/gates`)
    expect(body.items).toMatchObject([{ gate_id: 'watch', guards: ['a'] }])
    const proposed = must(await propose(path, [{ op: 'remove_gate', gate_id: 'watch' }]), 201, 202)
    expect(proposed.body).toMatchObject({
      diff_graph: { added_gates: ['watch-2'], removed_gates: ['watch'] },
      required: { policies: ['watch'] },
    })
  })

  it('takes no vote past its end, though the sweeper comes later', async () => {
    const { path } = await started({ nodes: [look('a')] })
    const patch = await propose(path, [add(look('b'))])
    expect(patch.status).toBe(201)
    await p.query(
      `update operations.patches set expires_at = clock_timestamp() - interval '1 ms' where patch_id = $1`,
      [patch.body.patch_id],
    )
    const { allowed_actions } = (await p.as('eva').get(`${path}/patches/${patch.body.patch_id}`)).body
    expect(allowed_actions.filter(({ allowed }: { allowed: boolean }) => allowed)).toEqual([])
    expect(await approve(path, patch, 'eva')).toMatchObject({ status: 409, body: { code: 'patch_closed' } })
  })

  it('that only removes is never refused for existing nodes', async () => {
    const { path, operation_id } = await started({ nodes: [look('a'), look('b', { depends_on: ['a'], risk: 20 })] })
    await p.query(
      `update operations.operations set constraints = constraints || '{"risk_ceiling": "low"}' where operation_id = $1`,
      [operation_id],
    )
    expect((await propose(path, [{ op: 'set_limits', max_parallel: 2 }], { dry_run: true })).status).toBe(200)
    expect((await propose(path, [{ op: 'remove_node', node_id: 'b' }], { dry_run: true })).status).toBe(200)
    expect(problem(await propose(path, [{ op: 'update_node', node_id: 'a', set: { name: 'A' } }]))).toBe(
      '403 policy_denied/risk_ceiling',
    )
  })
})
