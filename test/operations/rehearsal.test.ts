import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { GraphNode, PlannerInput } from '../../apps/operations/graph/types.ts'
import { makePlan } from '../../apps/operations/planner/plan.ts'
import { rehearsalOf } from '../../apps/operations/rehearsal/input.ts'
import { rehearse } from '../../apps/operations/rehearsal/rehearse.ts'
import type { Assumptions } from '../../apps/operations/rehearsal/types.ts'
import type { Rehearsal } from '../../apps/shared/contracts/operations/plans.ts'
import { compileCel } from '../../apps/shared/expressions/cel.ts'
import { host, hosts, inputOf, library, release } from './support/planner.ts'

const run = (input: PlannerInput, assumed: Partial<Assumptions> = {}): Rehearsal => {
  const told = { seed: 1, approval_delay_s: 0, failures: [], ...assumed }
  const answer = rehearse(rehearsalOf(input, makePlan(input).document, told))
  if ('too_long' in answer) throw new Error(answer.too_long)
  return answer.rehearsal
}
const task = (node_id: string, depends_on: string[] = [], more: Partial<GraphNode> = {}): GraphNode => ({
  node_id,
  executor: 'noop',
  with: {},
  depends_on,
  estimate_s: 10,
  ...more,
})
const undo = { compensate: { executor: 'noop', with: {} } }
const graph = (nodes: GraphNode[], more: Partial<PlannerInput['intent']> = {}, gates: object[] = []): PlannerInput =>
  inputOf([], { kind: 'graph', graph: { nodes, gates: gates as never }, ...more })
const order = ({ lanes }: Rehearsal) =>
  lanes.map(({ node_id, attempt, undo: back }) => `${back ? '-' : ''}${node_id}:${attempt}`)

describe('a rehearsal', () => {
  it('gives the same bytes for the same seed, and other durations for another', () => {
    const input = {
      ...release(hosts(12)),
      durations: new Map([['fleet@1.4.0/release.deploy', { p50_s: 20, p90_s: 60 }]]),
    }
    const [one, same, other] = [run(input), run(input), run(input, { seed: 2 })]
    expect(JSON.stringify(same)).toBe(JSON.stringify(one))
    expect(other.duration_s).not.toBe(one.duration_s)
    expect(one).toMatchObject({ ends: 'succeeded', lanes_count: 48, compensations: [] })
  })

  it('keeps draws independent: the duration of a node depends only on the seed, the node and the attempt', () => {
    const spread = { durations: new Map([['s', { p50_s: 10, p90_s: 30 }]]) }
    const of = (nodes: GraphNode[]) => run({ ...graph(nodes), ...spread }).lanes.find(({ node_id }) => node_id === 'b')
    const length = (lane: ReturnType<typeof of>) => Math.round(1000 * ((lane?.to_s ?? 0) - (lane?.from_s ?? 0)))
    const alone = of([task('b', [], { step: 's' })])
    const among = of([task('a', [], { step: 's' }), task('b', ['a'], { step: 's' }), task('c', [], { step: 's' })])
    expect(length(among)).toBe(length(alone))
    expect(length(alone)).not.toBe(10_000)
  })

  it('runs nodes in dependency order within the available places', () => {
    const input = graph([task('a'), task('b'), task('c', [], { estimate_s: 9 }), task('d', ['a', 'b'])], {
      constraints: { max_parallel: 2 },
    })
    const { lanes, duration_s, critical_path } = run(input)
    expect(lanes.map(({ node_id, from_s, to_s }) => [node_id, from_s, to_s])).toEqual([
      ['a', 0, 10],
      ['b', 0, 10],
      ['c', 10, 19],
      ['d', 10, 20],
    ])
    expect([duration_s, critical_path]).toEqual([20, ['a', 'd']])
  })

  it('retries after the back-off, by the class of the failure', () => {
    const retry = { max_attempts: 3, initial_s: 5, factor: 2, max_s: 60 }
    const nodes = [task('a', [], { retry }), task('b', ['a'])]
    const failing = (name: string, attempts: number[]) => ({
      failures: attempts.map((attempt) => ({ node_id: 'a', attempt, class: name })),
    })
    expect(run(graph(nodes), failing('timeout', [1, 2]))).toMatchObject({
      ends: 'succeeded',
      duration_s: 10 + 5 + 10 + 10 + 10 + 10,
      lanes: [{ failure: 'timeout' }, { failure: 'timeout' }, { attempt: 3, failure: null }, { node_id: 'b' }],
    })
    const refused = run(graph(nodes), failing('refused', [1]))
    expect(refused).toMatchObject({ ends: 'blocked', lanes_count: 1 })
    expect(refused.warnings).toContainEqual(expect.objectContaining({ code: 'stands_still' }))
  })

  it('undoes succeeded nodes in reverse order if a failure requires it', () => {
    const nodes = [
      task('a', [], undo),
      task('b', ['a'], undo),
      task('c', ['b']),
      task('d', ['c'], { on_failure: 'compensate' }),
    ]
    const seen = run(graph(nodes), { failures: [{ node_id: 'd', attempt: 1, class: 'exit_code' }] })
    expect(order(seen)).toEqual(['a:1', 'b:1', 'c:1', 'd:1', '-b:1', '-a:1'])
    expect(seen).toMatchObject({ ends: 'failed', compensations: ['b', 'a'], duration_s: 60 })
  })

  it('repeats an unknown outcome if that is allowed, and otherwise waits for a person', () => {
    const failures = [{ node_id: 'a', attempt: 1, class: 'outcome_unknown' }]
    expect(run(graph([task('a', [], { idempotent: true })]), { failures })).toMatchObject({
      ends: 'succeeded',
      duration_s: 20,
    })
    expect(run(graph([task('a', [], { idempotent: false })]), { failures })).toMatchObject({ ends: 'blocked' })
  })

  it('opens gates when their frontier is reached; approved after the delay, or never: the expiry shows', () => {
    const policy = {
      approvals: { groups: [{ group: 'netops', min: 1 }] },
      deadline_s: 600,
      escalation: [{ after_s: 120, add_groups: ['leads'] }],
      on_reject: 'cancel_operation',
    }
    const input = graph([task('a'), task('b', ['a'])], {}, [{ gate_id: 'go', policy, guards: ['b'] }])
    expect(run(input, { approval_delay_s: 300 })).toMatchObject({
      ends: 'succeeded',
      duration_s: 10 + 300 + 10,
      gates: [
        {
          gate_id: 'go',
          status: 'approved',
          at: 10,
          decided_at: 310,
          escalations: [{ at: 130, add_groups: ['leads'] }],
        },
      ],
    })
    const never = run(input, { approval_delay_s: null })
    expect(never).toMatchObject({ ends: 'failed', duration_s: 610, gates: [{ status: 'expired', decided_at: 610 }] })
    expect(never.warnings).toMatchObject([{ code: 'gate_expires' }])
    expect(order(never)).toEqual(['a:1'])
  })

  it('asks the groups of each level in its time, once each', () => {
    const escalation = [60, 120, 900].map((after_s) => ({ after_s, add_groups: [`after-${after_s}`] }))
    const policy = { approvals: { groups: [{ group: 'netops', min: 1 }] }, deadline_s: 600, escalation }
    const gates = run(graph([task('a')], {}, [{ gate_id: 'go', policy, guards: ['a'] }]), {
      approval_delay_s: null,
    }).gates
    expect(gates).toMatchObject([
      {
        status: 'expired',
        escalations: [
          { at: 60, add_groups: ['after-60'] },
          { at: 120, add_groups: ['after-120'] },
        ],
      },
    ])
  })

  it('retries a failed undo if that is allowed; otherwise it waits for a person, and nothing before it is undone', () => {
    const retry = { max_attempts: 2, initial_s: 5, factor: 2, max_s: 60 }
    const nodes = [
      task('a', [], undo),
      task('b', ['a'], { ...undo, retry }),
      task('c', ['b'], { on_failure: 'compensate' }),
    ]
    const broken = { node_id: 'c', attempt: 1, class: 'exit_code' }
    const failing = (...attempts: [number, string][]) => ({
      failures: [broken, ...attempts.map(([attempt, name]) => ({ node_id: 'b', attempt, class: name, undo: true }))],
    })
    const again = run(graph(nodes), failing([1, 'timeout']))
    expect(order(again)).toEqual(['a:1', 'b:1', 'c:1', '-b:1', '-b:2', '-a:1'])
    expect(again).toMatchObject({ ends: 'failed', compensations: ['b', 'a'] })
    const stuck = run(graph(nodes), failing([1, 'refused']))
    expect(order(stuck)).toEqual(['a:1', 'b:1', 'c:1', '-b:1'])
    expect(stuck).toMatchObject({ ends: 'blocked', compensations: [] })
    expect(stuck.warnings).toContainEqual(expect.objectContaining({ code: 'stands_still' }))
  })

  it('ends by the deadline of the operation', () => {
    const nodes = [task('a', [], undo), task('b', ['a'], { estimate_s: 500 }), task('c', ['b'])]
    const seen = run(graph(nodes, { constraints: { deadline_s: 60, on_deadline: 'compensate' } }))
    expect(seen).toMatchObject({ ends: 'timed_out', compensations: ['a'] })
    expect(order(seen)).toEqual(['a:1', 'b:1', '-a:1'])
  })

  it('honors windows of a target, the requested window, and freezes', () => {
    const night = {
      window_id: 'night',
      applies: compileCel('target.scope.region_id == "eu1"', ['target']),
      timezone: 'UTC',
      days: ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'],
      from: '22:00',
      to: '23:00',
    }
    const freeze = {
      freeze_id: 'cup',
      title: 'The cup',
      applies: night.applies,
      from: '2026-06-01T00:00:00Z',
      to: '2026-06-02T00:00:00Z',
      approvers: ['netops'],
      digest: '',
    }
    const nodes = [task('here', [], { target_id: 'eu1-web-01' }), task('there', [], { target_id: 'us1-web-01' })]
    const at = '2026-06-01T20:00:00.000Z'
    const world = (windows: object[], freezes: object[], constraints = {}): PlannerInput => ({
      ...inputOf([host('eu1-web-01'), ...hosts(1, 'us1')], { kind: 'graph', graph: { nodes }, constraints }),
      library: { ...library, windows: windows as never, freezes: freezes as never },
      at,
    })
    const begins = (input: PlannerInput, assumed = {}) =>
      Object.fromEntries(run(input, assumed).lanes.map(({ node_id, from_s }) => [node_id, from_s / 3600]))
    expect(begins(world([night], []))).toEqual({ here: 2, there: 0 })
    expect(begins(world([night], [], { window_id: 'night' }))).toEqual({ here: 2, there: 2 })
    // The gate of the freeze: an approval lets it pass; without one the plan waits forever, not for the thaw.
    expect(begins(world([], [freeze]))).toEqual({ here: 0, there: 0 })
    const frozen = run(world([], [freeze]), { approval_delay_s: null })
    expect(frozen.gates).toMatchObject([{ gate_id: 'cup', status: 'expired' }])
    // A node that waits for its window gives its place to others, as in the engine.
    expect(begins(world([night], [], { max_parallel: 1 }))).toEqual({ here: 2, there: 0 })
    // Windows that have no moment in common: the rehearsal reports it instead of running forever.
    const noon = { ...night, window_id: 'noon', from: '12:00', to: '13:00' }
    const never = run(world([night, { ...noon, applies: compileCel('false', ['target']) }], [], { window_id: 'noon' }))
    expect(never).toMatchObject({ ends: 'blocked', lanes: [{ node_id: 'there', from_s: 16 * 3600 }] })
    expect(never.warnings.map(({ code }) => code)).toContain('window_never_opens')
    // A freeze that begins after the plan's expected end has no gate; nodes that run into it wait.
    const late = { ...freeze, from: '2026-06-01T20:00:30Z' }
    expect(begins(world([], [late], { not_before: '2026-06-01T21:00:00Z' })).here).toBe(4)
  })

  it('assumes that conditions on outputs hold, and says so', () => {
    const nodes = [task('a', [], { outputs: { x: '/x' } }), task('b', ['a'], { when: 'nodes.a.outputs.x == 1' })]
    const seen = run(graph(nodes))
    expect(order(seen)).toEqual(['a:1', 'b:1'])
    expect(seen.warnings).toMatchObject([{ code: 'condition_assumed' }])
  })

  it('refuses a failure of a node that is not in the plan', () => {
    const input = graph([task('a')])
    const told = { seed: 1, approval_delay_s: 0, failures: [{ node_id: 'z', attempt: 1, class: 'timeout' }] }
    expect(() => rehearsalOf(input, makePlan(input).document, told)).toThrow('no node "z"')
  })
})

/** Graphs whose nodes depend on earlier ones, with policies and failures of every kind. */
const anyGraph = fc.array(
  fc.record({
    back: fc.array(fc.integer({ min: 1, max: 4 }), { maxLength: 3 }),
    on_failure: fc.constantFrom('hold', 'tolerate', 'skip_dependents', 'fail', 'compensate'),
    join: fc.constantFrom('all', 'any', 'settled'),
    max_attempts: fc.integer({ min: 1, max: 2 }),
    undo: fc.boolean(),
    estimate_s: fc.integer({ min: 0, max: 30 }),
    fails: fc.option(fc.constantFrom('timeout', 'refused', 'outcome_unknown'), { freq: 3 }),
    undo_fails: fc.option(fc.constantFrom('timeout', 'refused'), { freq: 3 }),
  }),
  { minLength: 1, maxLength: 12 },
)

it('for any graph and failures it ends or says why not, starts no node before its dependencies, and undoes in reverse', () => {
  fc.assert(
    fc.property(
      anyGraph,
      fc.integer({ min: 1, max: 4 }),
      fc.integer({ min: 1, max: 99 }),
      (given, max_parallel, seed) => {
        const nodes = given.map(({ back, fails: _, undo_fails: __, undo: undoes, max_attempts, join, ...more }, i) => {
          const needs = [...new Set(back.filter((n) => n <= i).map((n) => `n${i - n}`))]
          const retry = { max_attempts, initial_s: 1 }
          // A join of any needs something to join.
          return task(`n${i}`, needs, {
            ...more,
            join: needs.length === 0 ? 'all' : join,
            retry,
            ...(undoes && undo),
          } as Partial<GraphNode>)
        })
        const failures = given.flatMap(({ fails, undo_fails }, i) => [
          ...(fails ? [{ node_id: `n${i}`, attempt: 1, class: fails }] : []),
          ...(undo_fails ? [{ node_id: `n${i}`, attempt: 1, class: undo_fails, undo: true }] : []),
        ])
        const seen = run(graph(nodes, { constraints: { max_parallel } }), { seed, failures })
        const ran = seen.lanes.filter((lane) => !lane.undo)
        const endOf = (id: string) => Math.max(...ran.filter(({ node_id }) => node_id === id).map(({ to_s }) => to_s))
        for (const { node_id, from_s } of ran) {
          const needs = nodes.find((node) => node.node_id === node_id)?.depends_on ?? []
          for (const id of needs)
            if (ran.some((lane) => lane.node_id === id)) expect(endOf(id)).toBeLessThanOrEqual(from_s)
          const at_once = seen.lanes.filter((lane) => lane.from_s <= from_s && from_s < lane.to_s)
          expect(at_once.length).toBeLessThanOrEqual(max_parallel)
        }
        if (seen.ends === 'blocked') expect(seen.warnings.map(({ code }) => code)).toContain('stands_still')
        const place = new Map(seen.compensations.map((id, i) => [id, i]))
        for (const { node_id, depends_on } of nodes)
          for (const id of depends_on ?? [])
            if (place.has(id) && place.has(node_id)) expect(place.get(node_id)).toBeLessThan(place.get(id) ?? -1)
      },
    ),
    { numRuns: 300 },
  )
})
