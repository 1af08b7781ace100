import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { coneOf } from '../../apps/operations/graph/graph.ts'
import type { BatchRule, GraphNode, Place, PlannerInput, Procedure } from '../../apps/operations/graph/types.ts'
import { makePlan } from '../../apps/operations/planner/plan.ts'
import { rehearsalOf } from '../../apps/operations/rehearsal/input.ts'
import { rehearse } from '../../apps/operations/rehearsal/rehearse.ts'
import type { Join, OnFailure } from '../../apps/shared/contracts/operations/graph.ts'
import { canonicalJson } from '../../apps/shared/data/digest.ts'
import { compactHead, compactNodes } from '../../db/operations/operations/compact.ts'
import type { CommandMessage } from '../../workflows/operation/messages.ts'
import type { AttemptResult } from '../../workflows/operation/state/events.ts'
import { type Event, start, step } from '../../workflows/operation/state.ts'
import { World } from '../workflows/support/world.ts'
import { dependsOn, hosts, inputOf, library, release } from './support/planner.ts'

/** Any places, dependencies and procedures: a failure prints its seed and path. */
const worlds = fc.record({
  eu: fc.integer({ min: 1, max: 7 }),
  us: fc.integer({ min: 0, max: 5 }),
  /** Pairs of hosts by position; the first depends on the second, which precedes it. */
  needs: fc.array(fc.tuple(fc.nat(20), fc.nat(20)), { maxLength: 6 }),
  order: fc.constantFrom('dependency' as const, 'dependent' as const),
  batch: fc.record({
    by: fc.constantFrom('scope/region_id', undefined),
    canary: fc.integer({ min: 0, max: 3 }),
    size: fc.oneof(fc.integer({ min: 1, max: 5 }), fc.constantFrom('25%', '50%', '100%')),
    max_failures: fc.integer({ min: 0, max: 2 }),
  }),
  gate: fc.constantFrom<Place | undefined>('entry', 'after_canary', 'between_batches', undefined),
  shuffle: fc.array(fc.nat(1000), { minLength: 12, maxLength: 12 }),
})
type WorldSpec = typeof worlds extends fc.Arbitrary<infer T> ? T : never

const targetsOf = ({ eu, us }: WorldSpec) => [...hosts(eu), ...hosts(us, 'us1')]
const pairsOf = (spec: WorldSpec): [string, string][] => {
  const ids = targetsOf(spec).map(({ resource_id }) => resource_id)
  return spec.needs.flatMap(([a, b]): [string, string][] => {
    const [late, early] = [Math.max(a % ids.length, b % ids.length), Math.min(a % ids.length, b % ids.length)]
    return late === early ? [] : [[ids[late] ?? '', ids[early] ?? '']]
  })
}
const inputFor = (spec: WorldSpec): PlannerInput => {
  const changed = (procedure: Procedure): Procedure =>
    procedure.key !== 'release'
      ? procedure
      : {
          ...procedure,
          order: { relationship_types: ['depends_on'], first: spec.order },
          batch: spec.batch as BatchRule,
          gates: spec.gate ? [{ policy: 'cutover', at: spec.gate }] : [],
        }
  const packs = library.packs.map((pack) => ({ ...pack, procedures: pack.procedures.map(changed) }))
  const relationships = pairsOf(spec).map(([from, to]) => dependsOn(from, to))
  return { ...release(targetsOf(spec)), relationships, library: { ...library, packs } }
}
type Plan = ReturnType<typeof makePlan>

/** Everything that comes before each node; nodes come after those that they need, or the graph has a cycle. */
const beforeOf = ({ document }: Plan): Map<string, Set<string>> => {
  const before = new Map<string, Set<string>>()
  for (const { node_id, depends_on } of document.nodes) {
    const all = new Set<string>()
    for (const id of depends_on) {
      const theirs = before.get(id)
      if (!theirs) throw new Error(`${node_id} needs ${id}, which does not stand before it`)
      all.add(id)
      for (const earlier of theirs) all.add(earlier)
    }
    before.set(node_id, all)
  }
  return before
}
/** Unguarded nodes without a predecessor that a gate guards. */
const unguarded = (plan: Plan): string[] => {
  const guarded = new Set(plan.document.gates.flatMap(({ guards }) => guards))
  const before = beforeOf(plan)
  const free = (id: string) => !guarded.has(id) && [...(before.get(id) ?? [])].every((other) => !guarded.has(other))
  return plan.document.nodes.map(({ node_id }) => node_id).filter(free)
}
const hostsOf = (plan: Plan, group_id: string) => [
  ...new Set(
    plan.document.nodes
      .filter((node) => node.group === group_id && node.kind === 'task')
      .map(({ target_id }) => target_id ?? ''),
  ),
]
const rehearsed = (input: PlannerInput, plan: Plan, approval_delay_s: number | null) => {
  const answer = rehearse(rehearsalOf(input, plan.document, { seed: 1, approval_delay_s, failures: [] }))
  if ('too_long' in answer) throw new Error(answer.too_long)
  return answer.rehearsal
}
const checkRehearsal = (input: PlannerInput, plan: Plan) => {
  const tasks = plan.document.nodes.filter(({ kind }) => kind === 'task').map(({ node_id }) => node_id)
  const approved = rehearsed(input, plan, 30)
  expect(approved.ends).toBe('succeeded')
  expect(approved.lanes.map(({ node_id }) => node_id).sort()).toEqual(tasks.toSorted())
  const over = new Map(approved.lanes.map(({ node_id, to_s }) => [node_id, to_s]))
  const before = beforeOf(plan)
  for (const { node_id, from_s } of approved.lanes)
    for (const id of before.get(node_id) ?? []) expect(over.get(id) ?? 0).toBeLessThanOrEqual(from_s)
  // No one approves: nodes behind a gate never start, and all others do.
  const free = new Set(unguarded(plan))
  const alone = rehearsed(input, plan, null)
  expect(alone.lanes.map(({ node_id }) => node_id).sort()).toEqual(tasks.filter((id) => free.has(id)).sort())
  if (free.size < plan.document.nodes.length) expect(alone.ends).not.toBe('succeeded')
}

describe('a plan of any world', () => {
  it("orders each host's steps, after those of the hosts it needs", () => {
    fc.assert(
      fc.property(worlds, (spec) => {
        const plan = makePlan(inputFor(spec))
        const before = beforeOf(plan)
        const steps = ['drain', 'deploy', 'verify', 'undrain']
        for (const { resource_id } of targetsOf(spec))
          for (const [i, step] of steps.entries())
            if (i > 0) expect(before.get(`${step}.${resource_id}`)).toContain(`${steps[i - 1]}.${resource_id}`)
        for (const [late, early] of pairsOf(spec)) {
          const [second, first] = spec.order === 'dependency' ? [late, early] : [early, late]
          expect(before.get(`drain.${second}`)).toContain(`undrain.${first}`)
        }
      }),
    )
  })

  it('cuts it into batches: each host once, canaries first, none larger than allowed, one after another', () => {
    fc.assert(
      fc.property(worlds, (spec) => {
        const plan = makePlan(inputFor(spec))
        const before = beforeOf(plan)
        const { by, canary, size } = spec.batch
        const region = new Map(targetsOf(spec).map(({ resource_id, scope }) => [resource_id, scope.region_id]))
        const groups = plan.graph.groups.map(({ group_id, kind }) => ({
          group_id,
          kind,
          members: hostsOf(plan, group_id),
        }))
        expect(groups.flatMap(({ members }) => members).sort()).toEqual([...region.keys()].sort())
        for (const [i, { group_id, kind, members }] of groups.entries()) {
          expect(members.length).toBeGreaterThan(0)
          if (by) expect(new Set(members.map((id) => region.get(id))).size).toBe(1)
          const siblings = groups.filter(
            (other) => other.group_id.replace(/[^.]*$/, '') === group_id.replace(/[^.]*$/, ''),
          )
          const total = siblings.reduce((sum, other) => sum + other.members.length, 0)
          const limit = typeof size === 'number' ? size : Math.ceil((total * Number.parseInt(size, 10)) / 100)
          if (kind === 'canary') expect(members.length).toBe(Math.min(canary, total))
          else expect(members.length).toBeLessThanOrEqual(limit)
          if (canary > 0) expect(siblings[0]?.kind).toBe('canary')
          const earlier = groups[i - 1]
          if (earlier)
            for (const id of members) expect(before.get(`drain.${id}`)).toContain(`barrier.${earlier.group_id}`)
        }
      }),
    )
  })

  it('lets no guarded node pass its gate', () => {
    fc.assert(
      fc.property(worlds, (spec) => {
        const plan = makePlan(inputFor(spec))
        const groups = plan.graph.groups.map(({ group_id }) => group_id)
        const [first = ''] = groups
        const free = new Set(
          unguarded(plan).flatMap((id) => plan.document.nodes.find(({ node_id }) => node_id === id)?.target_id ?? []),
        )
        if (spec.gate === undefined) expect(plan.document.gates).toEqual([])
        if (spec.gate === 'entry') expect([...free]).toEqual([])
        if (spec.gate === 'after_canary' && spec.batch.canary > 0 && groups.length > 1)
          expect([...free].sort()).toEqual(hostsOf(plan, first).sort())
        if (spec.gate === 'between_batches' && groups.length > 1)
          expect([...free].sort()).toEqual(hostsOf(plan, first).sort())
      }),
    )
  })

  it('is the same bytes for the same input in any order, and another document for other pins', () => {
    fc.assert(
      fc.property(worlds, fc.nat(11), (spec, moved) => {
        const input = inputFor(spec)
        const plan = makePlan(input)
        const key = (i: number) => spec.shuffle[i] ?? 0
        const mix = <T>(items: readonly T[]) =>
          items
            .map((item, i) => ({ item, k: key(i) }))
            .sort((a, b) => a.k - b.k)
            .map(({ item }) => item)
        const again = makePlan({ ...input, targets: mix(input.targets), relationships: mix(input.relationships) })
        expect(canonicalJson(again)).toBe(canonicalJson(plan))
        const targets = input.targets.map((target, i) =>
          i === moved % input.targets.length ? { ...target, version: target.version + 1 } : target,
        )
        const other = makePlan({ ...input, targets })
        expect(other.plan_hash).not.toBe(plan.plan_hash)
        expect(other.semantic_digest).toBe(plan.semantic_digest)
      }),
    )
  })

  it('is rehearsed to its end, and starts no node without approval', () => {
    fc.assert(
      fc.property(worlds, (spec) => {
        const input = inputFor(spec)
        checkRehearsal(input, makePlan(input))
      }),
      { numRuns: 60 },
    )
  })
})

it('a gate that no one opens also holds the nodes behind a batch with tolerated failures', () => {
  const batch = { by: undefined, canary: 0, size: 1, max_failures: 1 }
  const spec = { eu: 3, us: 0, needs: [], order: 'dependency' as const, batch, gate: 'entry' as const, shuffle: [] }
  const input = inputFor(spec)
  const plan = makePlan(input)
  expect(plan.document.gates).toMatchObject([{ guards: ['barrier.1', 'drain.eu1-web-01'] }])
  expect(rehearsed(input, plan, null).lanes).toEqual([])
})

it('a graph of any shape keeps its order and its gates', () => {
  const nodes = fc.array(
    fc.record({ deps: fc.array(fc.nat(20), { maxLength: 3 }), gates: fc.array(fc.nat(2), { maxLength: 2 }) }),
    { minLength: 1, maxLength: 15 },
  )
  fc.assert(
    fc.property(nodes, fc.integer({ min: 1, max: 4 }), (given, max_parallel) => {
      const graph: GraphNode[] = given.map(({ deps }, i) => ({
        node_id: `n${i}`,
        executor: 'noop',
        with: {},
        depends_on: i === 0 ? [] : [...new Set(deps.map((dep) => `n${dep % i}`))],
        estimate_s: 5,
      }))
      const gates = [0, 1, 2].flatMap((g) => {
        const guards = given.flatMap((node, i) => (node.gates.includes(g) ? [`n${i}`] : []))
        const policy = { approvals: { groups: [{ group: 'netops', min: 1 }] } }
        return guards.length > 0 ? [{ gate_id: `g${g}`, policy, guards }] : []
      })
      const input = inputOf([], { kind: 'graph', graph: { nodes: graph, gates }, constraints: { max_parallel } })
      const plan = makePlan(input)
      const before = beforeOf(plan)
      for (const { node_id, depends_on = [] } of graph)
        for (const id of depends_on) expect(before.get(node_id)).toContain(id)
      for (const { guards } of gates)
        expect(plan.document.gates.flatMap((gate) => gate.guards)).toEqual(expect.arrayContaining(guards))
      checkRehearsal(input, plan)
    }),
  )
})

/** Carries a plan out by the real reducer while no one passes a gate; returns the nodes that began or succeeded. */
const carriedOut = (
  { document: { nodes, gates: given } }: Plan,
  rejects: boolean,
  fails: (i: number) => boolean,
): string[] => {
  const gates = given.map((gate, i) => ({ ...gate, gate_id: `g${i}` }))
  const guarding = (id: string) => gates.flatMap(({ gate_id, guards }) => (guards.includes(id) ? [gate_id] : []))
  const rows = nodes.map((spec) => ({ ...spec, gate_ids: guarding(spec.node_id), spec }))
  const [ids, gate_ids] = [nodes.map(({ node_id }) => node_id), gates.map(({ gate_id }) => gate_id)]
  const head = compactHead(
    gates.map((gate) => ({ ...gate, policy: { ...gate.policy, binds: [] }, status: 'armed', round: 1 })),
    ids,
    {},
    { max_parallel: 3, deadline_at: null, force_grace_s: 0 },
  )
  const world = new World([{ ...compactNodes(rows, ids, gate_ids, 60), plan_revision: 1, next: null, head }])
  const state = start('op', world.pages, world.command('start', {}), world.now)
  const ran = new Set<string>()
  const take = (event: Event) => world.accept(step(state, event).effects)
  take({ type: 'due', at: world.now })
  for (let task = world.tasks.shift(); task; task = world.tasks.shift()) {
    const at = world.now
    if (task.kind === 'run') {
      const times = { started_at: at, ended_at: at }
      const error = { class: 'remote_error', message: 'no', retryable: false }
      const refusal = world.claim(task.effect)
      if (!refusal) ran.add(task.effect.node_id)
      const result: AttemptResult = refusal
        ? { status: 'refused', refusal }
        : world.result(
            task.effect,
            fails(task.effect.node) ? { status: 'failed', ...times, error } : { status: 'succeeded', ...times },
          )
      take({ ...task.effect, type: 'attempt_ended', at, result })
    } else if (task.kind === 'record') {
      for (const change of task.batch.changes)
        if (change.t === 'node' && change.state === 'succeeded') ran.add(change.id)
      take({ type: 'recorded', at, result: world.record(task.batch) })
    } else if (task.kind === 'close') take(world.close(task.effect))
    for (const [g, gate] of world.gates.entries()) {
      if (!rejects || gate.status !== 'waiting') continue
      gate.status = 'rejected'
      const body = { gate_id: gates[g]?.gate_id ?? '', round: gate.round, status: 'rejected' as const, digest: 'd' }
      take({ type: 'command', at, command: world.command('gate_decided', body) as CommandMessage })
    }
  }
  return [...ran]
}

it('no node behind a gate begins without it, whatever fails and is passed over, and whichever conditions are false', () => {
  const node = fc.record({
    deps: fc.array(fc.nat(20), { maxLength: 3 }),
    join: fc.constantFrom<Join>('all', 'all', 'any', 'settled'),
    on_failure: fc.constantFrom<OnFailure>('hold', 'tolerate', 'skip_dependents', 'fail'),
    when: fc.boolean(),
    barrier: fc.boolean(),
    fails: fc.boolean(),
  })
  const shapes = fc.record({
    nodes: fc.array(node, { minLength: 2, maxLength: 10 }),
    guards: fc.array(fc.nat(20), { minLength: 1, maxLength: 2 }),
    rejects: fc.boolean(),
    /** A policy demands it; otherwise it is its author's, who may guard a step that only sometimes runs. */
    demanded: fc.boolean(),
  })
  const { policy } = [...library.policies.values()].find(({ applies }) => applies) ?? {}
  const seen = { author: 0, demanded: 0 }
  fc.assert(
    fc.property(shapes, ({ nodes: given, guards, rejects, demanded }) => {
      // The conditions of this world are false for ids of three letters.
      const id = (i: number) => `${'abcdefghij'[i]}${given[i]?.when ? 'xx' : 'x'}`
      const nodes: GraphNode[] = given.map(({ deps, join, on_failure, when, barrier }, i) => ({
        node_id: id(i),
        ...(barrier ? { kind: 'barrier' as const } : { executor: 'noop', with: {} }),
        depends_on: i === 0 ? [] : [...new Set(deps.map((dep) => id(dep % i)))],
        join: i === 0 || deps.length === 0 ? 'all' : join,
        on_failure,
        ...(demanded && { risk: 40 }),
        ...(when && (demanded || !guards.some((g) => g % given.length === i)) && { when: '1 == 2' }),
      }))
      const own = { approvals: { groups: [{ group: 'netops', min: 1 }] } }
      const named = [...new Set(guards.map((i) => id(i % given.length)))]
      const gate = { gate_id: 'g0', policy: demanded ? (policy?.key ?? '') : own, guards: named }
      const graph = { nodes, gates: [gate] }
      const plan = makePlan(inputOf([], { kind: 'graph', graph, labels: { environment: demanded ? 'prod' : 'demo' } }))
      const behind = coneOf(plan.document.nodes, named)
      const fails = (i: number) => given.find((_, n) => id(n) === plan.document.nodes[i]?.node_id)?.fails ?? false
      expect(carriedOut(plan, rejects, fails).filter((ran) => behind.has(ran))).toEqual([])
      const { guards: completed = [] } = plan.document.gates.find(({ gate_id }) => gate_id === 'g0') ?? {}
      expect(completed).toEqual(expect.arrayContaining(named))
      expect([...behind]).toEqual(expect.arrayContaining(completed))
      if (completed.length > named.length) seen[demanded ? 'demanded' : 'author'] += 1
    }),
    { numRuns: 500 },
  )
  expect(Math.min(seen.author, seen.demanded)).toBeGreaterThan(20)
})
