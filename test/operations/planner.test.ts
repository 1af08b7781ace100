import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { gateSubject } from '../../apps/operations/graph/subject.ts'
import { type PlannerInput, PlanRefusal, type Target } from '../../apps/operations/graph/types.ts'
import { makePlan } from '../../apps/operations/planner/plan.ts'
import { canonicalJson } from '../../apps/shared/data/digest.ts'
import { mergeDiff, mergePatch } from '../../apps/shared/data/merge-patch.ts'
import { inverseOf, resolveValue } from '../../apps/shared/expressions/values.ts'
import { type BoundSubject, boundLines, digestByHand } from '../support/bound.ts'
import { dependsOn, host, hosts, inputOf, library, release } from './support/planner.ts'

const refusalOf = (input: PlannerInput): PlanRefusal => {
  try {
    makePlan(input)
  } catch (error) {
    if (error instanceof PlanRefusal) return error
    throw error
  }
  throw new Error('was not refused')
}
const nodeOf = (input: PlannerInput, id: string) => makePlan(input).document.nodes.find((node) => node.node_id === id)
const shuffled = <T>(items: T[], seed: number): T[] =>
  fc.sample(fc.shuffledSubarray(items, { minLength: items.length, maxLength: items.length }), {
    seed,
    numRuns: 1,
  })[0] ?? []

describe('the state that an undo restores in the catalog', () => {
  const managed = {
    terminal: ['retired'],
    transitions: [
      ['provisioning', 'active'],
      ['active', 'updating'],
      ['updating', 'active'],
      ['provisioning', 'failed'],
    ].map(([from = '', to = '']) => ({ from, to, by: ['operation'] })),
  }
  const undoOf = (catalog: object, compensate: object, target: Partial<Target> = {}) => {
    const outputs = { release: '/release', serial: '/serial', all: '' }
    const node = { node_id: 'a', target_id: 'h', executor: 'noop', with: {}, outputs, catalog, compensate }
    const intent = { kind: 'graph', graph: { nodes: [node] } } as never
    const input = inputOf([host('h', target)], intent)
    const types = input.types.map((type) => ({ ...type, lifecycle: managed }))
    return makePlan({ ...input, types }).document.nodes[0]?.compensate?.catalog
  }
  const noop = { executor: 'noop' }

  it('is the state that the plan found, member by member; new members are removed', () => {
    const desired_state = { release: '1', tags: ['a'], net: { mtu: 1500, vlan: 7 }, odd: { $from: 'here' } }
    const wanted = {
      release: '2',
      tags: [],
      net: { mtu: 9000, vlan: 7, lag: true },
      odd: 1,
      new: { deep: 1 },
      gone: null,
    }
    expect(undoOf({ desired_state_patch: wanted }, noop, { desired_state })).toEqual({
      desired_state_patch: {
        release: '1',
        tags: ['a'],
        net: { mtu: 1500, lag: null },
        odd: { $$: { $from: 'here' } },
        new: null,
      },
    })
    const from = (name: string) => ({ $from: `nodes/a/outputs/${name}` })
    const found = { release: from('release'), serial: from('serial') }
    expect(undoOf({ observed_state_patch: found }, noop, { observed_state: { release: '1' } })).toEqual({
      observed_state_patch: { release: '1', serial: null },
    })
    // The members of a whole output are unknown in advance.
    expect(undoOf({ observed_state_patch: from('all'), health_status: 'healthy' }, noop)).toBeUndefined()
  })

  it('is restored by any patch of any state: a merge of both equals the original', () => {
    const json = fc.letrec((tie) => ({
      value: fc.oneof(fc.integer(), fc.constantFrom('a', 'b'), fc.array(fc.integer(), { maxLength: 2 }), tie('object')),
      object: fc.dictionary(fc.constantFrom('a', 'b', 'c', '$from'), tie('value'), { maxKeys: 3 }),
    }))
    const objects = json.object as fc.Arbitrary<Record<string, unknown>>
    fc.assert(
      fc.property(objects, objects, (before, after) => {
        const patch = mergeDiff(before, after)
        const back = resolveValue(inverseOf({ $$: patch }, before), { nodes: {} })
        expect(mergePatch(mergePatch(before, patch), back)).toEqual(before)
      }),
    )
  })

  it("leaves the lifecycle if the type has no way back, and follows its author's values", () => {
    const updating = { lifecycle_status: 'updating' }
    expect(undoOf(updating, noop)).toEqual({ lifecycle_status: 'active' })
    expect(undoOf({ lifecycle_status: 'provisioning' }, noop, { lifecycle_status: 'planned' })).toBeUndefined()
    const said = { ...noop, catalog: { lifecycle_status: 'failed' } }
    const write = { lifecycle_status: 'provisioning', observed_state_patch: { release: '2' } }
    expect(undoOf(write, said, { lifecycle_status: 'planned', observed_state: {} })).toEqual({
      lifecycle_status: 'failed',
      observed_state_patch: { release: null },
    })
  })

  it('includes the values that a reading step noted: a rolled out and a new deployment', () => {
    const undrain = nodeOf(release([host('h')]), 'undrain.h')
    expect(undrain?.compensate?.catalog).toEqual({
      desired_state_patch: { release: '2.3.9' },
      observed_state_patch: { release: '2.3.9' },
    })
    const deployment = host('d', {
      type_key: 'infra.deployment',
      lifecycle_status: 'planned',
      annotations: { base_url: 'http://127.0.0.1:1' },
      desired_state: { release: '1' },
      observed_state: {},
    })
    const input = inputOf([deployment], { change: { op: 'create', desired_state_patch: { release: '1' } } })
    expect(nodeOf(input, 'verify.d')?.compensate).toMatchObject({
      executor: 'noop',
      with: {},
      catalog: { lifecycle_status: 'deprovisioning', observed_state_patch: { release: null } },
    })
    expect(nodeOf(input, 'deploy.d')?.compensate?.catalog).toEqual({ lifecycle_status: 'failed' })
  })
})

describe('the fleet release', () => {
  const plan = makePlan(release(hosts(12)))

  it('has 12 hosts × 4 steps and a barrier after canary and each batch: 52 nodes', () => {
    expect(plan.counts).toMatchObject({ update: 12, nodes: 52, gates: 1 })
    const sizes = plan.graph.groups.map(({ group_id }) => [
      group_id,
      plan.graph.nodes.filter(({ group, kind }) => group === group_id && kind === 'task').length / 4,
    ])
    expect(sizes).toEqual([
      ['canary', 1],
      ['1', 4],
      ['2', 4],
      ['3', 3],
    ])
    expect(plan.document.nodes.filter(({ kind }) => kind === 'barrier').map(({ node_id }) => node_id)).toEqual([
      'barrier.canary',
      'barrier.1',
      'barrier.2',
      'barrier.3',
    ])
  })

  it('runs the steps of a host in order, batches one after the other, the first host by name as canary', () => {
    const input = release(hosts(12))
    expect(nodeOf(input, 'drain.eu1-web-01')?.depends_on).toEqual([])
    expect(nodeOf(input, 'deploy.eu1-web-01')?.depends_on).toEqual(['drain.eu1-web-01'])
    expect(nodeOf(input, 'barrier.canary')?.depends_on).toEqual(['undrain.eu1-web-01'])
    expect(nodeOf(input, 'drain.eu1-web-05')?.depends_on).toEqual(['barrier.canary'])
    expect(nodeOf(input, 'drain.eu1-web-06')?.depends_on).toEqual(['barrier.1'])
  })

  it('puts the gate of its pack between the canary and the rest', () => {
    expect(plan.document.gates).toHaveLength(1)
    expect(plan.document.gates[0]).toMatchObject({
      gate_id: 'cutover',
      kind: 'approval',
      policy: { quorum: 1, groups: [{ group: 'netops', min: 1 }], four_eyes: true },
      guards: ['drain.eu1-web-02', 'drain.eu1-web-03', 'drain.eu1-web-04', 'drain.eu1-web-05'],
    })
  })

  it('holds its targets exclusively, and their places shared', () => {
    expect(plan.document.leases.filter(({ mode }) => mode === 'exclusive')).toHaveLength(12)
    expect(plan.document.leases.filter(({ mode }) => mode === 'shared').map(({ resource_id }) => resource_id)).toEqual([
      'eu1',
      'eu1-a',
    ])
  })

  it('fills in plan values, and leaves output values to dispatch', () => {
    const deploy = nodeOf(release(hosts(1)), 'deploy.eu1-web-01')
    expect(deploy?.with).toMatchObject({
      base_url: 'http://127.0.0.1:7181/eu1-web-01',
      headers: { authorization: { $secret: 'token' } },
      request: { body: { release: '2.4.0' } },
    })
    expect(deploy?.compensate?.with).toMatchObject({
      request: { body: { release: { $from: 'nodes/deploy.eu1-web-01/outputs/previous' } } },
    })
    const first = nodeOf(release(hosts(1)), 'drain.eu1-web-01')
    expect(first?.read).toMatchObject({
      executor: 'http',
      with: { base_url: 'http://127.0.0.1:7181/eu1-web-01', request: { method: 'GET' } },
      expect: { '/body/release': '2.3.9' },
    })
    expect(deploy?.read).toBeUndefined()
    expect(nodeOf(release(hosts(1)), 'undrain.eu1-web-01')?.catalog).toEqual({
      desired_state_patch: { release: '2.4.0' },
      observed_state_patch: { release: '2.4.0' },
    })
  })

  it('computes risk by its table', () => {
    expect(plan.risk).toMatchObject({ score: 20, level: 'medium' })
    const prod = makePlan(release(hosts(12), { release: '3' }, { labels: { environment: 'prod' } }))
    expect(prod.risk.factors.map(({ factor, points }) => [factor, points])).toEqual([
      ['environment', 20],
      ['targets', 10],
      ['procedure', 10],
    ])
  })
})

describe('the same input gives the same bytes', () => {
  it('whatever the order of targets, edges and types in the input', () => {
    const targets = [...hosts(9), ...hosts(5, 'us1')]
    const edges = [
      dependsOn('eu1-web-03', 'eu1-web-01'),
      dependsOn('us1-web-02', 'us1-web-05'),
      dependsOn('eu1-web-09', 'us1-web-01'),
    ]
    const plain = canonicalJson(makePlan({ ...release(targets), relationships: edges }))
    fc.assert(
      fc.property(fc.integer(), (seed) => {
        const input = release(shuffled(targets, seed))
        const again = makePlan({ ...input, relationships: shuffled(edges, seed), types: shuffled(input.types, seed) })
        expect(canonicalJson(again)).toBe(plain)
      }),
      { numRuns: 25 },
    )
  })

  it('gives graphs whose every node follows its dependencies, for random targets and edges', () => {
    const world = fc.record({
      count: fc.integer({ min: 1, max: 14 }),
      edges: fc.array(fc.tuple(fc.nat(13), fc.nat(13)), { maxLength: 30 }),
    })
    fc.assert(
      fc.property(world, ({ count, edges }) => {
        const targets = hosts(count)
        const name = (i: number) => targets[i % count]?.resource_id ?? ''
        const relationships = edges
          .map(([a, b]) => dependsOn(name(a), name(b)))
          .filter((edge) => edge.from_id !== edge.to_id)
        const { nodes } = makePlan({ ...release(targets), relationships }).document
        const place = new Map(nodes.map(({ node_id }, i) => [node_id, i]))
        for (const [i, node] of nodes.entries())
          for (const id of node.depends_on) expect(place.get(id) ?? i).toBeLessThan(i)
        expect(nodes.filter(({ kind }) => kind === 'task')).toHaveLength(count * 4)
      }),
      { numRuns: 60 },
    )
  })
})

describe('the diff', () => {
  const changeOf = (input: PlannerInput) => makePlan(input).diff[0]
  const target = (more: Partial<Target>) => [host('eu1-web-01', more)]

  it('update: leaf by leaf, with the values before and after', () => {
    expect(changeOf(release(hosts(1)))).toEqual({
      resource_id: 'eu1-web-01',
      name: 'eu1-web-01',
      type_key: 'fleet.host',
      region_id: 'eu1',
      change: 'update',
      fields: [{ path: '/release', before: '2.3.9', after: '2.4.0' }],
    })
  })

  it('no_change: gets no nodes, and an empty plan says so', () => {
    const plan = makePlan(release(hosts(2), { release: '2.3.9' }))
    expect(plan.counts).toMatchObject({ no_change: 2, nodes: 0, gates: 0 })
    expect(plan.warnings.map(({ code }) => code)).toContain('nothing_to_do')
  })

  it('noise: defaults of the schema, and members that only commands write, are no change', () => {
    const plain = target({ desired_state: { hostname: 'h', release: '2.3.9' } })
    expect(changeOf(release(plain, { traffic: 'in' }))).toMatchObject({
      change: 'no_change',
      fields: [{ path: '/traffic', before: null, after: 'in', noise: true }],
    })
    expect(changeOf(release(plain, { booted_at: 'now' }))).toMatchObject({ change: 'no_change' })
  })

  it('replace: an immutable field changes, and the missing procedure is refused by name', () => {
    const refusal = refusalOf(release(hosts(1), { serial_number: 'B2' }))
    expect(refusal.code).toBe('unsupported_change')
    expect(refusal.message).toContain('replace of /serial_number')
  })

  it('create: only resources that the catalog holds as planned; delete: not those already gone', () => {
    const create = { kind: 'change' as const, change: { op: 'create' as const } }
    const planned = host('cart', {
      type_key: 'infra.deployment',
      lifecycle_status: 'planned',
      annotations: { base_url: 'http://127.0.0.1:7181/cart' },
      desired_state: { release: 'v1' },
    })
    expect(makePlan(inputOf([planned], create))).toMatchObject({ counts: { create: 1, nodes: 2, gates: 1 } })
    expect(makePlan(inputOf([{ ...planned, lifecycle_status: 'active' }], create)).counts).toMatchObject({
      no_change: 1,
    })
    const remove = { kind: 'change' as const, change: { op: 'delete' as const } }
    expect(refusalOf(inputOf(hosts(1), remove)).code).toBe('unsupported_change')
    expect(makePlan(inputOf(target({ lifecycle_status: 'retired' }), remove)).counts).toMatchObject({ no_change: 1 })
  })

  it('unknown: no one can predict what an action changes', () => {
    const rotate = { kind: 'action' as const, action: { action_key: 'rotate_certificate' } }
    const plan = makePlan(inputOf(hosts(3), rotate))
    expect(plan.diff.map(({ change }) => change)).toEqual(['unknown', 'unknown', 'unknown'])
    expect(plan.counts).toMatchObject({ nodes: 6, gates: 1 })
    expect(plan.document.gates[0]).toMatchObject({
      gate_id: 'entry',
      guards: ['rotate.eu1-web-01', 'rotate.eu1-web-02', 'rotate.eu1-web-03'],
    })
  })
})

describe('matching', () => {
  it('names the paths that no procedure changes', () => {
    const refusal = refusalOf(release(hosts(2), { release: '3', hostname: 'x' }))
    expect(refusal).toMatchObject({ code: 'unsupported_change' })
    expect(refusal.violations.map(({ pointer }) => pointer)).toEqual(['/targets/eu1-web-01', '/targets/eu1-web-02'])
    expect(refusal.message).toContain('/hostname')
  })

  it('names the unmet condition of the procedure', () => {
    const refusal = refusalOf(release([host('eu1-web-01', { lifecycle_status: 'failed' })]))
    expect(refusal.message).toContain("requires target.lifecycle_status in ['active', 'maintenance']")
  })

  it('ignores procedures made only for a derived type', () => {
    expect(refusalOf(release([host('h', { type_key: 'infra.host' })])).code).toBe('unsupported_change')
  })

  it('checks parameters by the schema of the procedure, and names the pointer', () => {
    const input = release(hosts(1))
    const wrong = {
      ...input,
      intent: {
        ...input.intent,
        change: { op: 'update' as const, desired_state_patch: { release: '3' }, parameters: { drain_s: 'x', y: 1 } },
      },
    }
    const refusal = refusalOf(wrong)
    expect(refusal.code).toBe('parameters_invalid')
    expect(refusal.violations.map(({ pointer }) => pointer).sort()).toEqual([
      '/change/parameters/drain_s',
      '/change/parameters/y',
    ])
  })

  it('fills in defaults of parameters', () => {
    const input = release(hosts(1))
    const change = { op: 'update' as const, desired_state_patch: { release: '3' } }
    expect(nodeOf({ ...input, intent: { ...input.intent, change } }, 'drain.eu1-web-01')?.with).toMatchObject({
      request: { body: { seconds: 30 } },
    })
  })
})

describe('order and batches', () => {
  const planned = (more: Partial<PlannerInput>, targets = hosts(4)) => makePlan({ ...release(targets), ...more })
  const barriers = (plan: ReturnType<typeof makePlan>) => plan.graph.groups.map(({ group_id }) => group_id)

  it('puts dependencies first, level by level, each level with its canary', () => {
    const plan = planned({
      relationships: [dependsOn('eu1-web-01', 'eu1-web-04'), dependsOn('eu1-web-02', 'eu1-web-01')],
    })
    expect(barriers(plan)).toEqual(['l1.canary', 'l1.1', 'l2.canary', 'l3.canary'])
    const levelOf = (id: string) => plan.graph.nodes.find(({ node_id }) => node_id === `drain.${id}`)?.group
    expect(['eu1-web-04', 'eu1-web-01', 'eu1-web-02'].map(levelOf)).toEqual(['l1.1', 'l2.canary', 'l3.canary'])
    expect(plan.document.gates).toHaveLength(1)
  })

  it('cuts a cycle at the smallest id, and says so', () => {
    const plan = planned({
      relationships: [dependsOn('eu1-web-02', 'eu1-web-03'), dependsOn('eu1-web-03', 'eu1-web-02')],
    })
    expect(plan.warnings).toEqual([
      {
        code: 'order_cycle',
        message: 'The dependencies form a cycle through "eu1-web-02", which comes first in it.',
        values: { resource: 'eu1-web-02' },
      },
    ])
    const groupOf = (id: string) => plan.graph.nodes.find(({ node_id }) => node_id === `drain.${id}`)?.group
    expect([groupOf('eu1-web-02'), groupOf('eu1-web-03')]).toEqual(['l1.1', 'l2.canary'])
  })

  it('finishes one region before it starts the next', () => {
    const plan = makePlan(release([...hosts(3), ...hosts(2, 'us1')]))
    expect(barriers(plan)).toEqual(['eu1.canary', 'eu1.1', 'us1.canary', 'us1.1'])
    expect(nodeOf(release([...hosts(3), ...hosts(2, 'us1')]), 'drain.us1-web-01')?.depends_on).toEqual([
      'barrier.eu1.1',
    ])
  })

  it('warns if no target has the place by which batches are to be grouped', () => {
    const warned = (by: string) =>
      makePlan(release(hosts(12), { release: '3' }, { constraints: { batch: { by } } })).warnings.map(
        ({ code }) => code,
      )
    expect(warned('labels/nosuch')).toContain('batch_by_absent')
    expect(warned('parent_id')).not.toContain('batch_by_absent')
  })

  it('takes sizes from the constraints of the intent', () => {
    const plan = makePlan(release(hosts(12), { release: '3' }, { constraints: { batch: { size: 11 } } }))
    expect(barriers(plan)).toEqual(['canary', '1'])
    expect(plan.counts.nodes).toBe(50)
  })

  it('follows relationships through resources outside the plan, inverse keys backwards', () => {
    const deployment = (name: string) =>
      host(name, {
        type_key: 'infra.deployment',
        annotations: { base_url: `http://127.0.0.1:7181/${name}` },
        desired_state: { release: 'v1' },
      })
    const plan = makePlan({
      ...release([deployment('cart'), deployment('web')], { release: 'v2' }),
      relationships: [dependsOn('web', 'svc-cart'), { type_key: 'member_of', from_id: 'cart', to_id: 'svc-cart' }],
    })
    const web = plan.document.nodes.find(({ node_id }) => node_id === 'drain.web')
    expect(web?.depends_on).toEqual(['undrain.cart'])
    expect(plan.document.gates[0]?.guards).toEqual(['drain.cart'])
  })

  it('shortens ids of nodes that would be too long, and keeps them apart', () => {
    const long = 'a'.repeat(120)
    const { nodes } = makePlan(release([host(`${long}1`), host(`${long}2`)])).document
    expect(new Set(nodes.map(({ node_id }) => node_id)).size).toBe(nodes.length)
    expect(Math.max(...nodes.map(({ node_id }) => node_id.length))).toBeLessThanOrEqual(96)
  })
})

describe('policies', () => {
  const critical = { labels: { environment: 'prod' } }

  it('a policy that applies is asked only once, even if its pack names it too', () => {
    const plan = makePlan(release(hosts(12), { release: '3' }, critical))
    expect(plan.document.gates.map(({ gate_id }) => gate_id)).toEqual(['cutover'])
  })

  it('a policy that applies is asked at the entry if no batch follows the canary', () => {
    const cutover = library.policies.get('cutover')
    if (!cutover) throw new Error('cutover is missing')
    const { applies: _, ...plain } = cutover
    const always = {
      ...plain,
      applies: { ...(cutover.applies as NonNullable<typeof cutover.applies>), test: () => true },
    }
    const input = {
      ...release(hosts(1)),
      library: { ...library, policies: new Map(library.policies).set('cutover', always) },
    }
    expect(makePlan(input).document.gates).toMatchObject([{ gate_id: 'cutover', guards: ['drain.eu1-web-01'] }])
    expect(makePlan(release(hosts(1))).warnings.map(({ code }) => code)).toEqual(['gate_without_nodes'])
  })

  it('lets silence approve only low risk, and says so', () => {
    const cutover = library.policies.get('cutover')
    if (!cutover) throw new Error('cutover is missing')
    const silent = {
      ...cutover,
      policy: { ...cutover.policy, on_timeout: 'approve' as const, digest: 'sha256:approve' },
    }
    const policies = new Map(library.policies).set('cutover', silent)
    const made = (more = {}) =>
      makePlan({ ...release(hosts(4), { release: '3' }, more), library: { ...library, policies } })
    expect(made().risk.level).toBe('low')
    expect(made().document.gates).toMatchObject([{ policy: { on_timeout: 'approve', digest: 'sha256:approve' } }])
    const risky = made(critical)
    expect(risky.risk.level).not.toBe('low')
    expect(risky.document.gates[0]?.policy.on_timeout).toBe('reject')
    expect(risky.document.gates[0]?.policy.digest).not.toBe('sha256:approve')
    expect(risky.warnings).toMatchObject([{ code: 'silence_rejects' }])
    // Silence cannot sign, however low the risk.
    policies.set('cutover', { ...silent, policy: { ...silent.policy, signature: 'required' } })
    const signed = made()
    expect(signed.risk.level).toBe('low')
    expect(signed.document.gates).toMatchObject([{ policy: { on_timeout: 'reject', signature: 'required' } }])
    expect(signed.warnings).toMatchObject([{ code: 'silence_rejects' }])
  })

  it('refuses plans above the ceiling of the intent', () => {
    const refusal = refusalOf(release(hosts(12), { release: '3' }, { constraints: { risk_ceiling: 'low' } }))
    expect(refusal).toMatchObject({ category: 'policy_denied', code: 'risk_ceiling' })
    expect(
      makePlan(release(hosts(12), { release: '3' }, { constraints: { risk_ceiling: 'medium' } })).counts.nodes,
    ).toBe(52)
  })
})

const asked = {
  requester: { kind: 'user', id: 'u-olga', name: 'olga' },
  ...{ title: 'web 3', reason: 'because', ticket: null, plan_hash: 'sha256:0' },
} as const

describe('hashes', () => {
  const base = release(hosts(3))
  const plan = makePlan(base)
  const moved = (more: Partial<Target>) =>
    makePlan({ ...base, targets: base.targets.map((target) => ({ ...target, ...more })) })

  it('a version that changes without a value changes only the plan_hash', () => {
    const later = moved({ version: 9 })
    expect(later.plan_hash).not.toBe(plan.plan_hash)
    expect(later.semantic_digest).toBe(plan.semantic_digest)
    const gate = (made: typeof plan) => {
      const [first] = made.document.gates
      if (!first) throw new Error('no gate')
      return gateSubject('op', first, made.document.nodes, made.diff, { asked }).digest
    }
    expect(gate(later)).toBe(gate(plan))
  })

  it('a different value changes all three', () => {
    const other = makePlan({
      ...base,
      intent: { ...base.intent, change: { op: 'update', desired_state_patch: { release: '9' } } },
    })
    expect(other.plan_hash).not.toBe(plan.plan_hash)
    expect(other.semantic_digest).not.toBe(plan.semantic_digest)
  })

  it('a different value before changes the effect: the same nodes, another diff', () => {
    expect(moved({ desired_state: { hostname: 'h', release: '2.3.8' } }).semantic_digest).not.toBe(plan.semantic_digest)
  })

  it('a new version of a pack with the same steps has the same effect', () => {
    const packs = library.packs.map((pack) => ({
      ...pack,
      version: '9.9.9',
      digest: 'sha256:other',
      procedures: pack.procedures.map((procedure) => ({ ...procedure, version: '9.9.9' })),
    }))
    const other = makePlan({ ...base, library: { ...library, packs } })
    expect(other.plan_hash).not.toBe(plan.plan_hash)
    expect(other.semantic_digest).toBe(plan.semantic_digest)
  })

  it('time and past durations change estimates only', () => {
    const durations = new Map([['fleet@1.4.0/release.drain', { p50_s: 3, p90_s: 8 }]])
    const other = makePlan({ ...base, at: '2027-07-07T00:00:00.000Z', durations })
    expect(other.plan_hash).toBe(plan.plan_hash)
    expect(other.estimates.p50_s).toBeLessThan(plan.estimates.p50_s)
  })
})

describe('the subject of a gate', () => {
  it('covers the whole cone behind the gate with its changes, and no earlier node', () => {
    const plan = makePlan(release(hosts(12)))
    const [gate] = plan.document.gates
    if (!gate) throw new Error('no gate')
    const { subject, digest } = gateSubject('op-1', gate, plan.document.nodes, plan.diff, { asked })
    expect(Object.keys(subject).sort()).toEqual(
      ['asked', 'bound_outputs', 'changes', 'gate_id', 'kind', 'operation_id', 'policy', 'releases', 'v'].sort(),
    )
    expect(subject.releases).toHaveLength(47)
    expect(subject.changes).toHaveLength(11)
    expect(subject.changes.some(({ resource_id }) => resource_id === 'eu1-web-01')).toBe(false)
    // In the order in which they may run: a reader needs no plan to draw the steps and the batches.
    expect([...new Set(subject.releases.map(({ step }) => step))]).toEqual([
      'drain',
      'deploy',
      'verify',
      'undrain',
      'barrier',
    ])
    expect([...new Set(subject.releases.map(({ batch }) => batch))]).toEqual(['1', '2', '3'])
    expect(subject.changes[0]).toMatchObject({ name: 'eu1-web-02', type_key: 'fleet.host', region_id: 'eu1' })
    expect(digest).toMatch(/^sha256:[0-9a-f]{64}$/)
  })

  it('keeps its first form in an operation started without one: its coverage, and the order', () => {
    const plan = makePlan(release(hosts(12)))
    const [gate] = plan.document.gates
    if (!gate) throw new Error('no gate')
    const { subject } = gateSubject('op-1', gate, plan.document.nodes, plan.diff, {})
    expect(subject).not.toHaveProperty('asked')
    expect(subject.v).toBe(1)
    expect(Object.keys(subject.changes[0] ?? {})).toEqual(['resource_id', 'change', 'fields'])
    expect(subject.releases[0]).not.toHaveProperty('batch')
    const ids = subject.releases.map(({ node_id }) => node_id)
    expect(ids).toEqual(ids.toSorted())
  })

  it('does not change with nodes that are not behind the gate', () => {
    const plan = makePlan(release(hosts(12)))
    const [gate] = plan.document.gates
    if (!gate) throw new Error('no gate')
    const [first, ...rest] = plan.document.nodes
    if (!first) throw new Error('no node')
    const more = { ...first, node_id: 'warm-up', depends_on: [] }
    const nodes = [more, { ...first, depends_on: ['warm-up'] }, ...rest].toReversed()
    const digestOf = (of: typeof nodes) => gateSubject('op', gate, of, plan.diff, { asked }).digest
    expect(digestOf(nodes)).toBe(digestOf(plan.document.nodes))
  })

  it('differs with requester, reason, ticket, name, type, region or batch, as anyone can compute', () => {
    const plan = makePlan(release(hosts(12)))
    const [gate] = plan.document.gates
    if (!gate) throw new Error('no gate')
    const { nodes } = plan.document
    const [, entry] = plan.diff
    const inDiff = (more: object) => plan.diff.map((one) => (one === entry ? { ...one, ...more } : one))
    const boundBy = (by: object, of = nodes, diff = plan.diff) => {
      const { subject, digest } = gateSubject('op', gate, of, diff, { asked: { ...asked, ...by } })
      expect(digest).toBe(digestByHand(subject))
      return digest
    }
    const digests = [
      boundBy({}),
      boundBy({ requester: { ...asked.requester, name: 'mallory' } }),
      boundBy({ reason: 'another' }),
      boundBy({ ticket: 'CHG-1' }),
      boundBy({ plan_hash: 'sha256:1' }),
      boundBy({}, nodes, inDiff({ name: 'db-01' })),
      boundBy({}, nodes, inDiff({ type_key: 'fleet.db' })),
      boundBy({}, nodes, inDiff({ region_id: 'us1' })),
      boundBy(
        {},
        nodes.map((node) => (node.node_id === 'deploy.eu1-web-02' ? { ...node, group: '3' } : node)),
      ),
    ]
    expect(new Set(digests).size).toBe(digests.length)
    const { subject } = gateSubject('op', gate, nodes, plan.diff, { asked })
    expect(boundLines(subject as unknown as BoundSubject)).toEqual([
      'olga: “because” · plan 0',
      '11 changes: drain, deploy, verify, undrain',
      '11 × fleet.host in eu1 · batches 4, 4, 3',
    ])
  })

  it('shows 200 releases and covers the rest by a digest', () => {
    const plan = makePlan(release(hosts(100)))
    const [gate] = plan.document.gates
    if (!gate) throw new Error('no gate')
    const { subject } = gateSubject('op-1', gate, plan.document.nodes, plan.diff, { asked })
    expect(subject.releases).toHaveLength(200)
    expect(subject.releases_count).toBe(99 * 4 + 25)
    expect(subject.releases_digest).toMatch(/^sha256:/)
  })

  it('changes with each guarded node, whichever member changes', () => {
    const plan = makePlan(release(hosts(3)))
    const [gate] = plan.document.gates
    if (!gate) throw new Error('no gate')
    const { nodes } = plan.document
    const digestOf = (changed: typeof nodes) => gateSubject('op', gate, changed, plan.diff, { asked }).digest
    const plain = digestOf(nodes)
    const changed = (id: string) =>
      nodes.map((node) => (node.node_id === id ? { ...node, retry: { ...node.retry, max_attempts: 9 } } : node))
    expect(digestOf(changed('verify.eu1-web-03'))).not.toBe(plain)
    expect(digestOf(changed('verify.eu1-web-01'))).toBe(plain)
  })
})

it('plans a thousand hosts in linear time and within the limit of nodes', () => {
  expect(makePlan(release(hosts(1000))).counts.nodes).toBe(4251)
  const large = release(hosts(1200))
  expect(refusalOf(large)).toMatchObject({
    code: 'too_large',
    message: expect.stringMatching(
      /has \d+ nodes, and a plan at most 5000: select fewer .*OPERATIONS__LIMITS__PLAN_NODES/,
    ),
  })
  // Both ways out lead somewhere: the limit is the site's own.
  const raised = { nodes: 12_000, edges: 50_000, graph_nodes: 2000 }
  expect(makePlan({ ...release(hosts(2400)), limits: raised }).counts.nodes).toBeGreaterThan(9600)
}, 120_000)
