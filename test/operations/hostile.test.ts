import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Platform, startPlatform } from './support/platform.ts'

/** Graphs, patches and expressions of an attacker: refused by name, at once, and nothing changes. */
let p: Platform
beforeAll(async () => {
  p = await startPlatform()
})
afterAll(() => p.stop())

const reason = 'a test'
const noop = (node_id: string, more: Record<string, unknown> = {}) => ({ node_id, executor: 'noop', with: {}, ...more })
/** Without commands, which the relay advances in the meantime. */
const TABLES = ['plans', 'operations', 'nodes', 'gates', 'patches', 'outbox']
const everything = async () => {
  const found: Record<string, unknown> = {}
  for (const table of TABLES)
    found[table] = (
      await p.query(
        `select count(*)::int, coalesce(sum(hashtextextended((to_jsonb(t) - 'pub_seq')::text, 0)::numeric), 0)::text as hash from operations.${table} t`,
      )
    )[0]
  return found
}
const doubling = (levels: number) => {
  const $defs: Record<string, unknown> = { [`d${levels}`]: { const: 1 } }
  for (let i = 0; i < levels; i++) {
    const next = { $ref: `#/$defs/d${i + 1}` }
    $defs[`d${i}`] = { anyOf: [next, next] }
  }
  return { $defs, $ref: '#/$defs/d0' }
}
/** Every answer comes soon: no expression or schema causes a wait. */
const soon = async <T>(work: () => Promise<T>): Promise<T> => {
  const began = performance.now()
  const result = await work()
  expect(performance.now() - began).toBeLessThan(8000)
  return result
}

const SCHEMAS: [string, unknown][] = [
  ['whose references double at each level', doubling(30)],
  ['that refers to itself', { properties: { a: { $ref: '#' } } }],
  ['that refers to itself by another name', { $defs: { a: { anyOf: [{ $ref: '#/$defs/a' }] } }, $ref: '#/$defs/a' }],
  ['that hides a reference behind another spelling', { $defs: { a: {} }, $ref: '#/%24defs/a' }],
  ['that renames itself', { $id: 'http://elsewhere/', $ref: 'http://elsewhere/' }],
  ['that refers to what is not there', { $ref: '#/$defs/nothing' }],
  ['that is none', { type: 'colour' }],
  ['with a pattern that is none', { properties: { a: { pattern: '(' } } }],
]

describe('a graph', () => {
  const refusalOf = async (graph: unknown) => {
    const stated = await p.as('pia').post('/v1/intents', { kind: 'graph', title: 'a test', reason, graph })
    if (stated.status !== 201) return stated
    const before = await everything()
    const previewed = await p.as('pia').post(`/v1/intents/${stated.body.intent_id}/plan-preview`, {})
    expect(await everything()).toEqual(before)
    return previewed
  }

  it.each(SCHEMAS)('with a schema of outputs %s is refused', async (_what, outputs_schema) => {
    const { status, body } = await soon(() => refusalOf({ nodes: [noop('a', { outputs_schema })] }))
    expect({ status, body }).toMatchObject({
      status: 422,
      body: { category: 'validation_error', violations: [{ pointer: '/nodes/a/outputs_schema' }] },
    })
  })

  const list = (n: number) => Array.from({ length: n }, () => 1)
  it.each([
    ['loops over loops', '{"$cel": "params.l.all(a, params.l.all(b, a == b))"}'],
    ['builds lists of lists of lists', '{"$cel": "params.l.map(a, params.l.map(b, params.l))"}'],
    ['reads what is not its own', '{"$cel": "plan.constructor"}'],
    ['reads a prototype', '{"$from": "plan/__proto__"}'],
    ['names a root that is not there', '{"$from": "env/HOME"}'],
    ['joins what is no text', '{"$join": [{"$cel": "1"}]}'],
    ['nests one form in another', '{"$from": {"$cel": "1"}}'],
    ['has company', '{"$cel": "1", "other": 1}'],
  ])('with a value that %s is refused', async (_what, value) => {
    const { status, body } = await soon(() =>
      refusalOf({ nodes: [noop('a', { with: { outputs: { x: JSON.parse(value), l: list(5000) } } })] }),
    )
    expect({ status, category: body.category }).toEqual({ status: 422, category: 'validation_error' })
    expect(body.violations.length).toBeGreaterThan(0)
  })

  it.each([
    [
      'a long chain that ends where it began',
      Array.from({ length: 2000 }, (_, i) => noop(`n${i}`, { depends_on: [`n${(i + 1999) % 2000}`] })),
      'cycle',
    ],
    [
      'more edges than a plan may have',
      Array.from({ length: 400 }, (_, i) =>
        noop(`n${i}`, { depends_on: Array.from({ length: i }, (_, k) => `n${k}`) }),
      ),
      'too_large',
    ],
    ['one node twice', [noop('a'), noop('a')], 'schema_violation'],
    [
      'a condition over a node that does not come before',
      [noop('a', { when: 'nodes.b.outputs.x == 1' }), noop('b')],
      'unknown_reference',
    ],
    [
      'a compensation that reads a later node',
      [
        noop('a', { compensate: { with: { outputs: { $from: 'nodes/b/outputs/x' } } } }),
        noop('b', { outputs: { x: '/x' } }),
      ],
      'unknown_reference',
    ],
    [
      'a wait until a time that no clock reaches',
      [{ node_id: 'w', kind: 'wait', with: { until: '+275760-01-01T00:00:00Z' } }],
      'schema_violation',
    ],
    ['a wait until no time', [{ node_id: 'w', kind: 'wait', with: { until: 'tomorrow' } }], 'schema_violation'],
    ['a wait for ever and a moment', [{ node_id: 'w', kind: 'wait', with: { duration_s: 1e12 } }], 'schema_violation'],
    ['a target that is not there', [noop('a', { target_id: 'nowhere' })], 'target_not_found'],
  ])(
    'with %s is refused',
    async (_what, nodes, code) => {
      const { status, body } = await soon(() => refusalOf({ nodes }))
      expect({ status, category: body.category, code: body.code }).toEqual({
        status: 422,
        category: 'validation_error',
        code,
      })
    },
    60_000,
  )

  it('with a thousand slow values is refused before they are all evaluated', async () => {
    const list = `[${Array.from({ length: 180 }, (_, i) => i)}]`
    const slow = `${list}.all(x, ${list}.all(y, ${Array(12).fill('x + y < 1000').join(' && ')})) ? 1 : 0`
    const nodes = Array.from({ length: 400 }, (_, i) => noop(`n${i}`, { with: { delay_ms: { $cel: slow } } }))
    const { status, body } = await soon(() => refusalOf({ nodes }))
    expect({ status, body }).toMatchObject({ status: 422, body: { code: 'expression_error' } })
    expect(body.violations[0].message).toMatch(/have together$/)
  }, 30_000)
})

describe('a patch', () => {
  let path: string
  beforeAll(async () => {
    const started = await p.startOperation({
      nodes: [
        noop('a'),
        noop('b', { depends_on: ['a'], outputs: { x: '/x' }, compensate: {} }),
        noop('c', { depends_on: ['b'] }),
      ],
      gates: [{ gate_id: 'go', policy: { approvals: { groups: [{ group: 'netops', min: 1 }] } }, guards: ['b'] }],
    })
    path = `/v1/operations/${started.operation_id}`
  })
  const set = (values: Record<string, unknown>) => [{ op: 'update_node', node_id: 'c', set: values }]

  it.each<[string, unknown[]]>([
    ...SCHEMAS.map(([what, outputs_schema]): [string, unknown[]] => [
      `brings a schema ${what}`,
      set({ outputs_schema }),
    ]),
    ['sets no name', set({ name: 7 })],
    ['sets an executor that is none', set({ executor: { $from: 'x' } })],
    ['sets values that are no object', set({ with: [] })],
    ['sets a join that is none', set({ join: 'most' })],
    ['sets a condition that is none', set({ when: 7 })],
    ['sets a condition that does not compile', set({ when: 'nodes.' })],
    ['sets no truth', set({ idempotent: 'yes' })],
    ['sets outputs that are none', set({ outputs: 'all' })],
    ['sets a schema that is none', set({ outputs_schema: 7 })],
    ['sets a time that is none', set({ timeouts: { run_s: -1 } })],
    ['sets times that are none', set({ timeouts: 'soon' })],
    ['sets a retry without end', set({ retry: { max_attempts: 1e9 } })],
    ['sets a retry that is none', set({ retry: [] })],
    ['sets an end that is none', set({ on_failure: 'ignore' })],
    ['sets an undo that is none', set({ compensate: 'please' })],
    ['sets a write that is none', set({ catalog: { delete_everything: true } })],
    ['sets secrets that are none', set({ secrets: 'all' })],
    ['sets a secret that is a value', set({ secrets: { token: 'hunter2' } })],
    ['sets tags that are none', set({ tags: { a: 1 } })],
    ['sets a risk that is none', set({ risk: 'high' })],
    ['sets an estimate that is none', set({ estimate_s: -1 })],
    ['changes a node that is not there', [{ op: 'update_node', node_id: 'z', set: { name: 'z' } }]],
    ['makes a node depend on itself', [{ op: 'add_dependency', node_id: 'c', depends_on: 'c' }]],
    ['closes a cycle', [{ op: 'add_dependency', node_id: 'b', depends_on: 'c' }]],
    ['takes away what is not there', [{ op: 'remove_dependency', node_id: 'c', depends_on: 'a' }]],
    ['adds what is there', [{ op: 'add_node', node: noop('a') }]],
    ['guards nothing', [{ op: 'add_gate', gate: { gate_id: 'g2', policy: {}, guards: ['nowhere'] } }]],
    ['adds a gate that is there', [{ op: 'add_gate', gate: { gate_id: 'go', policy: {}, guards: ['c'] } }]],
    ['takes a gate away that is not there', [{ op: 'remove_gate', gate_id: 'nowhere' }]],
    [
      'loops',
      [
        {
          op: 'add_node',
          node: noop('n', { with: { outputs: { x: { $cel: 'plan.x.all(a, plan.x.all(b, plan.x.all(c, true)))' } } } }),
        },
      ],
    ],
  ])('that %s is refused, and nothing is held', async (_what, changes) => {
    const before = await everything()
    const { status, body } = await soon(() =>
      p.as('olga').post(`${path}/patches`, { base_revision: 1, reason, changes }),
    )
    expect([400, 422], JSON.stringify(body).slice(0, 400)).toContain(status)
    expect(['patch_not_applicable', 'validation_error']).toContain(body.category)
    if (status === 422) expect(body.violations.length).toBeGreaterThan(0)
    expect(await everything()).toEqual(before)
  })
})
