import { describe, expect, it } from 'vitest'
import { PlanRefusal } from '../../apps/operations/graph/refusal.ts'
import type { GraphGate, GraphNode } from '../../apps/operations/graph/types.ts'
import { nodeOf } from '../../apps/operations/packs/defaults.ts'
import { graphGates } from '../../apps/operations/planner/gates.ts'
import type { Running } from '../../apps/operations/planner/patch.edit.ts'
import { applyPatch } from '../../apps/operations/planner/patch.ts'
import { makePlan } from '../../apps/operations/planner/plan.ts'
import type { PlanGate } from '../../apps/shared/contracts/operations/graph.ts'
import type { PatchChange } from '../../apps/shared/contracts/operations/patches.ts'
import { host, inputOf, library } from './support/planner.ts'

type Rules = { hasPool?: (pool: string) => boolean }
const plan = (nodes: GraphNode[], gates: GraphGate[] = [], rules: Rules = {}) =>
  makePlan({ ...inputOf([host('eu1-web-01')], { kind: 'graph', graph: { nodes, gates } }), ...rules })

const violationsOf = (nodes: GraphNode[], gates: GraphGate[] = [], rules: Rules = {}) => {
  try {
    plan(nodes, gates, rules)
  } catch (error) {
    if (error instanceof PlanRefusal)
      return { code: error.code, violations: error.violations.map(({ code, pointer }) => `${code} ${pointer}`) }
    throw error
  }
  return { code: 'sound', violations: [] }
}
const noop = (node_id: string, ...depends_on: string[]): GraphNode => ({ node_id, executor: 'noop', depends_on })
const call = (node_id: string, more: Record<string, unknown>): GraphNode => ({ node_id, executor: 'http', with: more })
const get = (url: string) => ({ request: { method: 'GET', url } })

describe('a graph is refused with the code of its fault', () => {
  const cases: [string, string, GraphNode[], string[]][] = [
    [
      'cycle',
      'cycle',
      [noop('a', 'c'), noop('b', 'a'), noop('c', 'b'), noop('d', 'c')],
      ['cycle /nodes/a/depends_on', 'cycle /nodes/b/depends_on', 'cycle /nodes/c/depends_on'],
    ],
    ['a node that depends on itself', 'cycle', [noop('a', 'a')], ['cycle /nodes/a/depends_on']],
    [
      'unreachable_node',
      'schema_violation',
      [noop('a'), noop('b', 'nowhere')],
      ['unreachable_node /nodes/b/depends_on/0'],
    ],
    ['unsatisfiable_join', 'schema_violation', [{ ...noop('a'), join: 'any' }], ['unsatisfiable_join /nodes/a/join']],
    [
      'unknown_executor',
      'unknown_executor',
      [{ node_id: 'a', executor: 'magic' }],
      ['unknown_executor /nodes/a/executor'],
    ],
    ['a task without executor', 'unknown_executor', [{ node_id: 'a' }], ['unknown_executor /nodes/a/executor']],
    [
      'inputs_invalid: a member that the executor does not know',
      'schema_violation',
      [call('a', { ...get('http://h/'), colour: 1 })],
      ['inputs_invalid /nodes/a/with/colour'],
    ],
    [
      'inputs_invalid: an integer that may have lost digits on its way',
      'schema_violation',
      [
        call('a', { request: { method: 'POST', url: 'http://h/', body: { id: [2 ** 53] } } }),
        { node_id: 'b', executor: 'external', pool: 'infra', with: { job: 'own', inputs: { n: -(2 ** 60) } } },
        { ...noop('c'), with: { outputs: { largest: 2 ** 53 - 1, measured: 1e21, text: '9007199254740993' } } },
      ],
      ['inputs_invalid /nodes/a/with/request/body/id/0', 'inputs_invalid /nodes/b/with/inputs/n'],
    ],
    [
      'inputs_invalid: a watch that outlasts its node',
      'schema_violation',
      [
        {
          node_id: 'a',
          executor: 'watch',
          timeouts: { run_s: 60 },
          with: { for_s: 61, every_s: 1, checks: [{ name: 'up', ...get('http://h/') }] },
        },
      ],
      ['inputs_invalid /nodes/a/with/for_s'],
    ],
    [
      'inputs_invalid: a path without base_url',
      'schema_violation',
      [call('a', get('/x'))],
      ['inputs_invalid /nodes/a/with/request/url'],
    ],
    [
      'inputs_invalid: a method that is none',
      'schema_violation',
      [call('a', { request: { method: 'STEAL', url: 'http://h/' } })],
      ['inputs_invalid /nodes/a/with/request/method'],
    ],
    [
      'inputs_invalid: a condition that does not compile',
      'schema_violation',
      [call('a', { ...get('http://h/'), expect: 'response.status ==' })],
      ['inputs_invalid /nodes/a/with/expect'],
    ],
    ...['', 'x'.repeat(201)].map((signal): [string, string, GraphNode[], string[]] => [
      `inputs_invalid: a wait for a signal of ${signal.length} characters, which none can have`,
      'schema_violation',
      [{ node_id: 'a', kind: 'wait', with: { signal } }],
      ['inputs_invalid /nodes/a/with/signal'],
    ]),
    [
      'inputs_invalid: an input that a job of the agent would ignore',
      'schema_violation',
      [{ node_id: 'a', executor: 'external', with: { job: 'opentofu.preview', inputs: { workspce: 'prod' } } }],
      ['inputs_invalid /nodes/a/with/inputs/workspce'],
    ],
    [
      'inputs_invalid: labels that no agent can have',
      'schema_violation',
      [{ node_id: 'a', executor: 'external', with: { job: 'x', labels: { region: 1, zone: 'a' } } }],
      ['inputs_invalid /nodes/a/with/labels/region'],
    ],
    [
      'inputs_invalid: a job that carries out a preview, without one',
      'schema_violation',
      [{ node_id: 'a', executor: 'external', with: { job: 'opentofu.apply', inputs: { source: 'net' } } }],
      ['inputs_invalid /nodes/a/with/inputs/preview'],
    ],
    ...[-1, 1.5, 99_999].map((lock_wait_s): [string, string, GraphNode[], string[]] => [
      `inputs_invalid: a lock that is waited for ${lock_wait_s} s`,
      'schema_violation',
      [{ node_id: 'a', executor: 'external', with: { job: 'opentofu.apply', inputs: { lock_wait_s } } }],
      ['inputs_invalid /nodes/a/with/inputs/lock_wait_s'],
    ]),
    [
      'inputs_invalid: a header with a line break',
      'schema_violation',
      [call('a', { ...get('http://h/'), headers: { 'x-a': 'b\r\nc: d' } })],
      ['inputs_invalid /nodes/a/with/headers'],
    ],
    [
      'inputs_invalid: a wait for nothing',
      'schema_violation',
      [{ node_id: 'a', kind: 'wait', with: {} }],
      ['inputs_invalid /nodes/a/with'],
    ],
    [
      'inputs_invalid: a form with company',
      'schema_violation',
      [call('a', { ...get('http://h/'), headers: { x: { $from: 'nodes/b/outputs/y', z: 1 } } })],
      ['inputs_invalid /nodes/a/with/headers/x'],
    ],
    [
      'unknown_reference: no such node',
      'unknown_reference',
      [call('a', { request: { method: 'GET', url: { $from: 'nodes/b/outputs/y' } } })],
      ['unknown_reference /nodes/a/with/request/url/$from'],
    ],
    [
      'unknown_reference: not before it',
      'unknown_reference',
      [
        { ...noop('b'), outputs: { y: '/y' } },
        call('a', { request: { method: 'GET', url: { $from: 'nodes/b/outputs/y' } } }),
      ],
      ['unknown_reference /nodes/a/with/request/url/$from'],
    ],
    [
      'unknown_reference: an output that is not declared',
      'unknown_reference',
      [
        noop('b'),
        { ...call('a', { request: { method: 'GET', url: { $from: 'nodes/b/outputs/y' } } }), depends_on: ['b'] },
      ],
      ['unknown_reference /nodes/a/with/request/url/$from'],
    ],
    [
      'unknown_reference: a secret that is not declared',
      'unknown_reference',
      [call('a', { ...get('http://h/'), headers: { x: { $secret: 's' } } })],
      ['unknown_reference /nodes/a/with/headers/x/$secret'],
    ],
    [
      'inputs_invalid: a signature whose secret is in the plan, in a header that is none',
      'schema_violation',
      [call('a', { ...get('http://h/'), sign: { secret: 's3cret', header: 'x: y' } })],
      ['inputs_invalid /nodes/a/with/sign/secret', 'inputs_invalid /nodes/a/with/sign/header'],
    ],
    [
      'inputs_invalid: headers that would lead to another site, or that belong to the connection',
      'schema_violation',
      [
        call('a', {
          ...get('http://h/'),
          headers: { Host: 'other' },
          sign: { secret: { $secret: 's' }, header: 'Host' },
        }),
        call('b', { request: { method: 'GET', url: 'http://h/', headers: { 'Transfer-Encoding': 'chunked' } } }),
      ],
      [
        'inputs_invalid /nodes/a/with/headers',
        'inputs_invalid /nodes/a/with/sign/header',
        'unknown_reference /nodes/a/with/sign/secret/$secret',
        'inputs_invalid /nodes/b/with/request/headers',
      ],
    ],
    [
      'target_unresolved',
      'schema_violation',
      [{ ...noop('a'), target_id: 'nowhere' }],
      ['target_unresolved /nodes/a/target_id'],
    ],
    [
      'expression_error',
      'expression_error',
      [noop('a'), { ...noop('b', 'a'), when: 'nodes.a.outputs.x.matches("y")' }],
      ['expression_error /nodes/b/when'],
    ],
    [
      'expression_error: a condition that can never be true or false',
      'expression_error',
      [noop('a'), { ...noop('b', 'a'), when: '1+1' }],
      ['expression_error /nodes/b/when'],
    ],
    [
      'unknown_reference: a condition on an output that its node does not declare',
      'unknown_reference',
      [
        call('a', get('http://h/')),
        { ...noop('b', 'a'), when: 'nodes.a.outputs.x == 1' },
        { ...noop('c'), outputs: { y: '/y' } },
        { ...noop('d', 'c'), when: 'nodes.c.outputs.x == 1' },
      ],
      ['unknown_reference /nodes/b/when', 'unknown_reference /nodes/d/when'],
    ],
    [
      'inputs_invalid: an expectation that can never be true or false',
      'schema_violation',
      [call('a', { ...get('http://h/'), expect: 'response.status + 1' })],
      ['inputs_invalid /nodes/a/with/expect'],
    ],
    ['two nodes with one id', 'schema_violation', [noop('a'), noop('a')], ['duplicate_node /nodes/a']],
  ]
  it.each(cases)('%s', (_, code, nodes, violations) => {
    expect(violationsOf(nodes)).toEqual({ code, violations })
  })

  it('inputs_invalid: a pool that the policy of the executors does not name', () => {
    const job = (pool: string) => ({ node_id: 'a', executor: 'external', pool, with: { job: 'x', inputs: {} } })
    const hasPool = (pool: string) => pool === 'idle'
    const faultsOf = (pool: string) => violationsOf([job(pool)], [], { hasPool }).violations
    expect([faultsOf('idle'), faultsOf('nosuch')]).toEqual([[], ['inputs_invalid /nodes/a/pool']])
    // Its compensation runs in the same pool.
    const compensate = { executor: 'external', with: { job: 'x', inputs: {} } }
    const undone = violationsOf([{ ...noop('a'), pool: 'nosuch', compensate }], [], { hasPool })
    expect(undone.violations).toEqual(['inputs_invalid /nodes/a/pool'])
  })

  it('too_large: more nodes or edges than one plan may have', () => {
    const many = Array.from({ length: 5001 }, (_, i) => noop(`n${i}`))
    expect(violationsOf(many).code).toBe('too_large')
    const wide = Array.from({ length: 300 }, (_, i) => noop(`n${i}`, ...Array.from({ length: i }, (_, k) => `n${k}`)))
    expect(violationsOf(wide)).toEqual({ code: 'too_large', violations: ['too_large /nodes'] })
  })

  it('gates: no nodes to guard, or an unknown policy', () => {
    const gate = { gate_id: 'go', policy: {}, guards: ['b'] }
    expect(violationsOf([noop('a')], [gate]).violations).toEqual(['unknown_node /gates/0/guards'])
    expect(violationsOf([noop('a')], [{ gate_id: 'go', policy: 'nobody', guards: ['a'] }])).toEqual({
      code: 'unknown_reference',
      violations: ['unknown_reference /graph/gates/0/policy'],
    })
  })
})

describe('a graph as its author wrote it', () => {
  it('gets defaults: one attempt, 60 s, hold, join all, idempotent where its method is', () => {
    const { nodes } = plan([
      call('read', get('http://h/')),
      { ...call('write', { request: { method: 'POST', url: 'http://h/' } }), depends_on: ['read'] },
    ]).document
    expect(nodes[0]).toMatchObject({
      idempotent: true,
      retry: { max_attempts: 1 },
      timeouts: { run_s: 60 },
      on_failure: 'hold',
      join: 'all',
    })
    expect(nodes[1]).toMatchObject({ idempotent: false })
  })

  it('keeps references to outputs of earlier nodes, with conditions over them', () => {
    const { nodes } = plan([
      { ...noop('a.1'), outputs: { url: '/url' } },
      {
        ...call('b', { request: { method: 'GET', url: { $from: 'nodes/a.1/outputs/url' } } }),
        depends_on: ['a.1'],
        when: 'nodes["a.1"].outputs.url != target.name',
        target_id: 'eu1-web-01',
      },
    ]).document
    expect(nodes[1]?.with).toEqual({ request: { method: 'GET', url: { $from: 'nodes/a.1/outputs/url' } } })
    expect(nodes[1]?.when).toBe('nodes["a.1"]["outputs"]["url"] != dyn("eu1-web-01")')
  })

  it('keeps conditions over any output of an executor whose whole result is its outputs', () => {
    const { nodes } = plan([noop('a'), { ...noop('b', 'a'), when: 'nodes.a.outputs.x == 1' }]).document
    expect(nodes[1]?.when).toBe('nodes["a"]["outputs"]["x"] == 1')
  })

  it('has the gates that were written, by key or in full, and leases for the targets of its nodes', () => {
    const made = plan(
      [noop('a'), { ...noop('b', 'a'), target_id: 'eu1-web-01' }],
      [
        { gate_id: 'go', policy: 'cutover', guards: ['b'] },
        { gate_id: 'again', policy: { approvals: { quorum: 2 } }, question: 'Sure?', guards: ['b'] },
      ],
    )
    expect(made.document.gates).toMatchObject([
      { gate_id: 'go', policy: { key: 'cutover' }, question: 'Let the rest follow the canary?' },
      { gate_id: 'again', policy: { key: 'again', quorum: 2, four_eyes: true }, question: 'Sure?' },
    ])
    expect(made.document.leases[0]).toEqual({ resource_id: 'eu1', mode: 'shared' })
    expect(made.document.leases.find(({ resource_id }) => resource_id === 'eu1-web-01')?.mode).toBe('exclusive')
    expect(made.graph.nodes.map(({ node_id, gates }) => [node_id, gates])).toEqual([
      ['a', []],
      ['b', ['go', 'again']],
    ])
  })

  it('finds the longest chain', () => {
    const made = plan([
      { ...noop('a'), estimate_s: 5 },
      { ...noop('b', 'a'), estimate_s: 50 },
      { ...noop('c', 'a'), estimate_s: 20 },
      { ...noop('d', 'b', 'c'), estimate_s: 1 },
    ])
    expect(made.estimates).toEqual({ p50_s: 56, p90_s: 56, critical_path: ['a', 'b', 'd'] })
  })
})

describe('a patch is refused with the code of its fault', () => {
  const nodes = [
    noop('a'),
    { ...noop('b', 'a'), outputs: { n: '/n' } },
    noop('c', 'b'),
    noop('d', 'c'),
    noop('j', 'a'),
  ].map(nodeOf)
  const policy = { approvals: { groups: [{ group: 'netops', min: 1 }] } }
  const gate = (kind: 'approval' | 'external_check', status: string) => ({
    ...(graphGates([{ gate_id: 'go', policy, guards: ['c'] }], library, [])[0] as PlanGate),
    kind,
    status,
  })
  const running = (more: Partial<Running> = {}): Running => ({
    nodes,
    gates: [gate('approval', 'armed')],
    max_parallel: 10,
    risk_level: 'low',
    begun: new Set(['a']),
    spent: new Set(['old']),
    ...more,
  })
  const context = {
    ...inputOf([host('eu1-web-01')], { kind: 'graph', labels: {} }),
    limits: { nodes: 7, edges: 100, graph_nodes: 7 },
    diff: [],
    procedure_risk: 0,
  }
  const codes = (changes: PatchChange[], more: Partial<Running> = {}) =>
    applyPatch(running(more), changes, context).violations.map(({ code }) => code)
  const add = (node: GraphNode) => ({ op: 'add_node', node }) as PatchChange
  const undone = nodeOf({
    ...noop('u', 'b'),
    compensate: { executor: 'noop', with: { outputs: { $from: 'nodes/b/outputs/n' } } },
  })
  const cases: [string, PatchChange[], Partial<Running>?][] = [
    ['cycle', [{ op: 'add_dependency', node_id: 'b', depends_on: 'd' }]],
    [
      'unreachable_node',
      [
        { op: 'remove_node', node_id: 'c' },
        { op: 'remove_gate', gate_id: 'go' },
      ],
    ],
    ['unsatisfiable_join', [add({ ...noop('n'), join: 'any' })]],
    ['unknown_reference', [add({ ...noop('n', 'a'), with: { outputs: { $from: 'nodes/c/outputs/x' } } })]],
    ['unknown_executor', [{ op: 'update_node', node_id: 'd', set: { executor: 'magic' } }]],
    ['inputs_invalid', [{ op: 'update_node', node_id: 'd', set: { with: { colour: 1 } } }]],
    ['target_unresolved', [add({ ...noop('n'), target_id: 'somewhere-else' })]],
    ['gate_weakened', [{ op: 'remove_gate', gate_id: 'go' }], { gates: [gate('external_check', 'armed')] }],
    [
      'gate_weakened',
      [{ op: 'remove_dependency', node_id: 'd', depends_on: 'c' }],
      { gates: [gate('approval', 'rejected')] },
    ],
    [
      'compensation_broken',
      [{ op: 'update_node', node_id: 'b', set: { outputs: { n: null } } }],
      { nodes: [...nodes, undone], begun: new Set(['a', 'u']) },
    ],
    ['too_large', [add(noop('n')), add(noop('o')), add(noop('p'))]],
    ['unknown_node', [{ op: 'remove_node', node_id: 'nope' }]],
    ['unknown_gate', [{ op: 'remove_gate', gate_id: 'nope' }]],
    ['unknown_dependency', [{ op: 'remove_dependency', node_id: 'b', depends_on: 'nope' }]],
    ['duplicate_node', [add(noop('old'))]],
    ['duplicate_node', [{ op: 'remove_node', node_id: 'j' }, add(noop('j', 'a'))]],
    [
      'duplicate_gate',
      [
        { op: 'remove_gate', gate_id: 'go' },
        { op: 'add_gate', gate: { gate_id: 'go', policy: { approvals: { quorum: 2 } }, guards: ['c'] } } as PatchChange,
      ],
    ],
  ]
  it.each(cases)('%s', (code, changes, more) => {
    expect(new Set(codes(changes, more))).toEqual(new Set([code]))
  })

  it('may take back an id that it brought itself', () => {
    expect(codes([add(noop('n')), { op: 'remove_node', node_id: 'n' }, add(noop('n', 'a'))])).toEqual([])
  })

  it('asks the approvers of every gate whose cone it touches, before or after', () => {
    const required = (changes: PatchChange[]) => applyPatch(running(), changes, context).required.map(({ key }) => key)
    expect(required([{ op: 'update_node', node_id: 'd', set: { name: 'D' } }])).toEqual(['go'])
    expect(required([{ op: 'remove_dependency', node_id: 'd', depends_on: 'c' }])).toEqual(['go'])
    expect(required([{ op: 'remove_gate', gate_id: 'go' }])).toEqual(['go'])
    expect(required([{ op: 'update_node', node_id: 'j', set: { name: 'J' } }])).toEqual([])
    expect(required([{ op: 'set_limits', max_parallel: 2 }])).toEqual([])
  })
})
