import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { coneOf } from '../../apps/operations/graph/graph.ts'
import { PlanRefusal } from '../../apps/operations/graph/refusal.ts'
import type { GraphGate, GraphNode, PlannerInput } from '../../apps/operations/graph/types.ts'
import { loadLibrary } from '../../apps/operations/packs/library.ts'
import { refuseCeiling, unaskedPolicies, weigh } from '../../apps/operations/planner/bind.ts'
import type { Running } from '../../apps/operations/planner/patch.edit.ts'
import { applyPatch, type Patched } from '../../apps/operations/planner/patch.ts'
import { type Made, makePlan } from '../../apps/operations/planner/plan.ts'
import { loadPlanPolicies, refuseHard } from '../../apps/operations/policies/plans.ts'
import type { PlanGate } from '../../apps/shared/contracts/operations/graph.ts'
import type { PatchChange } from '../../apps/shared/contracts/operations/patches.ts'
import { digest } from '../../apps/shared/data/digest.ts'
import { hosts, inputOf } from './support/planner.ts'

/**
 * A site whose policies depend on the risk: at 30 points the storage group is asked, at high risk others, and at
 * critical risk no one can allow it.
 */
const siteFolder = (): string => {
  const folder = mkdtempSync(join(tmpdir(), 'site-'))
  const gate = (key: string, applies: string, at: string) =>
    `format: signalbox/gate-policy@1\nkey: ${key}\nversion: 1\nquestion: May it?\napplies: ${applies}\nplace: { at: ${at} }\napprovals: { quorum: 1, groups: [{ group: storage, min: 1 }] }\n`
  const forbid = (id: string, risk: string) =>
    `@id("${id}") @detail("No.") forbid (principal, action == Action::"plan.execute", resource is Plan) when { resource.risk == "${risk}" };`
  mkdirSync(join(folder, 'gates'))
  writeFileSync(join(folder, 'gates/watch.yaml'), gate('watch', 'plan.risk.score >= 30', 'entry'))
  writeFileSync(join(folder, 'gates/late.yaml'), gate('late', 'plan.risk.score >= 45', 'between_batches'))
  writeFileSync(join(folder, 'soft.cedar'), forbid('high', 'high'))
  writeFileSync(join(folder, 'hard.cedar'), forbid('critical', 'critical'))
  return folder
}
const site = siteFolder()
const library = loadLibrary({ policy_dir: site })
const { judge } = loadPlanPolicies(site)
const targets = hosts(3)

type NodeSpec = { deps: number[]; target: number; acts: boolean; risk: number; undo: boolean }
const nodeSpecs = fc.record<NodeSpec>({
  deps: fc.array(fc.nat(20), { maxLength: 2 }),
  target: fc.nat(3),
  acts: fc.boolean(),
  risk: fc.constantFrom(0, 0, 0, 10, 25, 40, 55, 80),
  undo: fc.boolean(),
})
const worlds = fc.record({
  before: fc.array(nodeSpecs, { minLength: 1, maxLength: 8 }),
  added: fc.array(nodeSpecs, { maxLength: 4 }),
  /** Nodes of the graph before, by position, that get another risk. */
  raised: fc.array(fc.tuple(fc.nat(20), fc.constantFrom(0, 25, 55, 80)), { maxLength: 2 }),
  removed: fc.array(fc.nat(20), { maxLength: 1 }),
  gates: fc.array(fc.array(fc.nat(20), { minLength: 1, maxLength: 3 }), { maxLength: 2 }),
  ceiling: fc.constantFrom(undefined, 'low' as const, 'medium' as const, 'high' as const),
  environment: fc.constantFrom('demo', 'prod'),
})
type World = typeof worlds extends fc.Arbitrary<infer T> ? T : never

const nodeOf = (spec: NodeSpec, i: number, name: string): GraphNode => ({
  node_id: name,
  ...(spec.acts
    ? { executor: 'http', with: { request: { method: 'POST', url: 'http://127.0.0.1:9/' } } }
    : { executor: 'noop', with: {} }),
  depends_on: i === 0 ? [] : [...new Set(spec.deps.map((dep) => `n${dep % i}`))],
  ...(spec.target < targets.length && { target_id: targets[spec.target]?.resource_id ?? '' }),
  ...(spec.risk > 0 && { risk: spec.risk }),
  ...(spec.undo && { compensate: { executor: 'noop', with: {} } }),
})
const policy = { approvals: { groups: [{ group: 'netops', min: 1 }] } }

/** The graph before, the patch, and the graph that it makes, all as an author would write them. */
const stagesOf = (world: World) => {
  const before = world.before.map((spec, i) => nodeOf(spec, i, `n${i}`))
  const at = (place: number) => `n${place % before.length}`
  const gates: GraphGate[] = world.gates.map((guards, i) => ({
    gate_id: `g${i}`,
    policy,
    guards: [...new Set(guards.map(at))],
  }))
  const guarded = new Set(gates.flatMap(({ guards }) => guards))
  const needed = new Set(before.flatMap(({ depends_on = [] }) => depends_on))
  const added = world.added.map((spec, i) => nodeOf(spec, before.length, `x${i}`))
  const needs = new Set(added.flatMap(({ depends_on = [] }) => depends_on))
  const removed = world.removed.map(at).filter((id) => !guarded.has(id) && !needed.has(id) && !needs.has(id))
  const raised = new Map(world.raised.map(([place, risk]) => [at(place), risk]))
  for (const id of removed) raised.delete(id)
  const changes: PatchChange[] = [
    ...added.map((node) => ({ op: 'add_node', node }) as PatchChange),
    ...[...raised].map(([node_id, risk]) => ({ op: 'update_node', node_id, set: { risk } }) as PatchChange),
    ...removed.map((node_id) => ({ op: 'remove_node', node_id }) as PatchChange),
  ]
  const after = [...before, ...added]
    .filter(({ node_id }) => !removed.includes(node_id))
    .map((node) => {
      const risk = raised.get(node.node_id)
      return risk === undefined ? node : { ...node, risk }
    })
  return { before, after, gates, changes }
}

const inputFor = (world: World, nodes: GraphNode[], gates: GraphGate[], bound = true): PlannerInput => ({
  ...inputOf(targets, {
    kind: 'graph',
    labels: { environment: world.environment },
    constraints: bound && world.ceiling ? { risk_ceiling: world.ceiling } : {},
    graph: { nodes, gates },
  }),
  library,
  judge,
})
const planOf = (input: PlannerInput): Made | PlanRefusal => {
  try {
    return makePlan(input)
  } catch (error) {
    if (error instanceof PlanRefusal) return error
    throw error
  }
}
const runningOf = (plan: Made): Running => ({
  nodes: plan.document.nodes,
  gates: plan.document.gates.map((gate) => ({ ...gate, status: 'armed' })),
  max_parallel: 10,
  risk_level: plan.risk.level,
  begun: new Set(),
  spent: new Set(),
})
const author = (gate: PlanGate) => /^g\d$/.test(gate.gate_id)
/** Nodes that a gate of this rule holds back. */
const heldBy = (
  { nodes, gates }: { nodes: readonly { node_id: string; depends_on: string[] }[]; gates: PlanGate[] },
  { kind, policy }: PlanGate,
) =>
  coneOf(
    nodes,
    gates.flatMap((other) => (other.kind === kind && other.policy.digest === policy.digest ? other.guards : [])),
  )
const refusalOf = (input: PlannerInput, { weight }: Patched): string | undefined =>
  weight && (refuseCeiling(input.intent.constraints, weight.risk) ?? refuseHard(weight.judged))?.code

describe('a patch of any graph', () => {
  it('is refused or gated like a plan of the resulting graph', () => {
    const seen = { refused: 0, gated: 0, risk: new Set<string>() }
    fc.assert(
      fc.property(worlds, (world) => {
        const { before, after, gates, changes } = stagesOf(world)
        // The plan before holds, or there is nothing to patch: its ceiling is checked only in the plan after.
        const planned = planOf(inputFor(world, before, gates, false))
        if (planned instanceof PlanRefusal || refuseHard(planned.policy_results)) return
        const input = inputFor(world, after, gates)
        const context = { ...input, diff: planned.diff, procedure_risk: planned.procedure_risk }
        const patched = applyPatch(runningOf(planned), changes, context)
        const again = planOf(input)
        if (!patched.weight) {
          // It only removes: nothing exists that was not planned.
          expect(patched.nodes.map(({ node_id }) => node_id)).not.toContainEqual(expect.stringMatching(/^x/))
          return
        }
        seen.risk.add(patched.weight.risk.level)
        if (again instanceof PlanRefusal) {
          expect(refusalOf(input, patched) ?? patched.violations[0]?.code).toBe(again.code)
          seen.refused += 1
          return
        }
        expect(patched.violations).toEqual([])
        expect(patched.weight.risk).toEqual(again.risk)
        expect(refusalOf(input, patched)).toBe(refuseHard(again.policy_results)?.code)
        const brought = new Set([...patched.added, ...patched.touched])
        for (const gate of again.document.gates.filter((one) => !author(one))) {
          const held = heldBy(patched, gate)
          for (const id of heldBy(again.document, gate)) if (brought.has(id)) expect(held).toContain(id)
          seen.gated += 1
        }
        // And the gates that guarded before still guard, as long as nodes remain behind them.
        for (const gate of planned.document.gates.filter(({ guards }) =>
          guards.some((id) => !patched.removed.includes(id)),
        ))
          expect(patched.gates.find(({ gate_id }) => gate_id === gate.gate_id)?.policy).toEqual(gate.policy)
      }),
      { numRuns: 400 },
    )
    expect(seen.refused).toBeGreaterThan(20)
    expect(seen.gated).toBeGreaterThan(20)
    expect([...seen.risk].sort()).toEqual(['critical', 'high', 'low', 'medium'])
  })

  it('asks every gate that guards a target of an added node', () => {
    let asked = 0
    fc.assert(
      fc.property(worlds, (world) => {
        const { before, gates, changes } = stagesOf(world)
        const planned = planOf(inputFor(world, before, gates, false))
        if (planned instanceof PlanRefusal) return
        const context = { ...inputFor(world, before, gates), diff: [], procedure_risk: 0 }
        const patched = applyPatch(runningOf(planned), changes, context)
        const brought = patched.nodes.filter(({ node_id }) => [...patched.added, ...patched.touched].includes(node_id))
        const required = new Set(patched.required.map(({ digest }) => digest))
        for (const gate of planned.document.gates) {
          const cone = coneOf(planned.document.nodes, gate.guards)
          const guarded = new Set(
            planned.document.nodes.flatMap(({ node_id, target_id }) =>
              cone.has(node_id) && target_id !== undefined ? [target_id] : [],
            ),
          )
          if (!brought.some(({ target_id }) => target_id !== undefined && guarded.has(target_id))) continue
          expect(required).toContain(gate.policy.digest)
          asked += 1
        }
      }),
      { numRuns: 200 },
    )
    expect(asked).toBeGreaterThan(20)
  })

  it('guards what it lets start past a gate, and leaves other gates as they were read', () => {
    const node = (node_id: string, depends_on: string[], more: Partial<GraphNode> = {}): GraphNode => ({
      node_id,
      executor: 'noop',
      with: {},
      depends_on,
      ...more,
    })
    const nodes = [node('a', []), node('b', ['a']), node('c', ['b']), node('d', []), node('e', ['d'])]
    const gates = [
      { gate_id: 'g0', policy, guards: ['a'] },
      { gate_id: 'g1', policy, guards: ['d'] },
    ]
    const input = inputOf(targets, { kind: 'graph', graph: { nodes, gates } })
    const planned = makePlan(input)
    expect(planned.document.gates.map(({ guards }) => guards)).toEqual([['a'], ['d']])
    // The graph of an operation that began before such nodes were guarded.
    const running = runningOf(planned)
    for (const other of running.nodes) if (other.node_id === 'd') other.on_failure = 'tolerate'
    const patched = (...changes: PatchChange[]) => {
      const made = applyPatch(running, changes, { ...input, diff: [], procedure_risk: 0 })
      return { guards: made.gates.slice(0, 2).map(({ guards }) => guards), touched: made.touched }
    }
    expect(patched({ op: 'update_node', node_id: 'a', set: { on_failure: 'tolerate' } })).toEqual({
      guards: [['a', 'b'], ['d']],
      touched: ['a', 'b'],
    })
    // An author may guard a step that only sometimes runs.
    expect(patched({ op: 'update_node', node_id: 'a', set: { when: '1 == 2' } })).toEqual({
      guards: [['a'], ['d']],
      touched: ['a'],
    })
    expect(patched({ op: 'add_node', node: node('f', ['d']) } as PatchChange).guards).toEqual([['a'], ['d', 'f']])
  })

  it('is not refused for the inputs of a node that began under other rules', () => {
    const nodes: GraphNode[] = ['a', 'b'].map((node_id) => ({ node_id, executor: 'noop', with: {}, depends_on: [] }))
    const input = inputOf(targets, { kind: 'graph', graph: { nodes, gates: [] } })
    const running = runningOf(makePlan(input))
    for (const node of running.nodes)
      if (node.node_id === 'a')
        Object.assign(node, { executor: 'external', with: { job: 'x', inputs: { preview: { changes: [] } } } })
    const renamed = { op: 'update_node', node_id: 'b', set: { name: 'other' } } as PatchChange
    const codesOf = (begun: string[], change = renamed) => {
      const context = { ...input, diff: [], procedure_risk: 0 }
      const { violations } = applyPatch({ ...running, begun: new Set(begun) }, [change], context)
      return violations.map(({ code, pointer }) => `${code} ${pointer}`)
    }
    expect(codesOf(['a'])).toEqual([])
    expect(codesOf([])).toEqual(['inputs_invalid /nodes/a/with/inputs/preview'])
    // A retry replaces inputs, and no other part.
    for (const node of running.nodes)
      if (node.node_id === 'b') {
        Object.assign(node, { compensate: { executor: 'noop', with: { junk: 1 } } })
        Object.assign(node, { outputs_schema: { type: 'no such type' } })
      }
    const again = (delay_ms: unknown) =>
      codesOf(['a', 'b'], { op: 'update_node', node_id: 'b', set: { with: { delay_ms } } } as PatchChange)
    expect(again(5)).toEqual([])
    expect(again('soon')).toEqual(['inputs_invalid /nodes/b/with/delay_ms'])
  })

  it('cannot let nodes pass the gate of a policy by a condition, whoever wrote that gate', () => {
    const node = (node_id: string, depends_on: string[], more: Partial<GraphNode> = {}): GraphNode => ({
      node_id,
      executor: 'noop',
      with: {},
      depends_on,
      risk: 40,
      ...more,
    })
    const inputWith = (nodes: GraphNode[], gates: GraphGate[]) => ({
      ...inputOf(targets, { kind: 'graph', graph: { nodes, gates } }),
      library,
      judge,
    })
    const guardsOf = (gates: readonly PlanGate[]) =>
      gates.filter(({ policy: { key } }) => key === 'watch').map(({ guards }) => guards)
    const skipped = [node('a', [], { when: '1 == 2' }), node('b', ['a']), node('c', ['b'])]
    expect(guardsOf(makePlan(inputWith(skipped, [])).document.gates)).toEqual([['a', 'b']])
    const own = { gate_id: 'own', policy: 'watch', guards: ['a'] }
    expect(guardsOf(makePlan(inputWith(skipped, [own])).document.gates)).toEqual([['a', 'b']])

    const input = inputWith([node('a', []), node('b', ['a']), node('c', ['b'])], [own])
    const planned = makePlan(input)
    expect(guardsOf(planned.document.gates)).toEqual([['a']])
    const change = { op: 'update_node', node_id: 'a', set: { when: '1 == 2' } } as const
    const patched = applyPatch(runningOf(planned), [change], { ...input, diff: [], procedure_risk: 0 })
    expect(guardsOf(patched.gates)).toEqual([['a', 'b']])
    expect(patched.touched).toEqual(['a', 'b'])
  })

  it('behind a gate of the policy that also shows the findings of a watch is not asked about twice', () => {
    const noop = (node_id: string, depends_on: string[]) => ({ node_id, executor: 'noop', with: {}, depends_on })
    const checks = [{ name: 'errors', prometheus: 'http://127.0.0.1:9', query: 'errors', max: 1 }]
    const watch = { ...noop('observe', []), executor: 'watch', with: { for_s: 1, every_s: 1, checks } }
    const own = { gate_id: 'own', policy: 'watch', guards: ['rest'] }
    const graph = { nodes: [watch, noop('rest', ['observe'])], gates: [own] }
    const input = { ...inputOf(targets, { kind: 'graph', graph }), library, judge }
    const planned = makePlan(input)
    expect(planned.document.gates).toMatchObject([{ gate_id: 'own', policy: { binds: ['nodes/observe/outputs'] } }])
    const added = { op: 'add_node', node: { ...noop('more', ['rest']), risk: 40 } } as PatchChange
    const patched = applyPatch(runningOf(planned), [added], { ...input, diff: [], procedure_risk: 0 })
    expect(patched.gates.map(({ gate_id }) => gate_id)).toEqual(['own'])

    // A preview that a soft policy forbids raises the gate while the operation runs.
    const running = runningOf(planned)
    const raisedTo = (quorum: number): Running => ({
      ...running,
      gates: running.gates.map((gate) => {
        const groups = [...gate.policy.groups, { group: 'security', min: 1 }]
        const policy = { ...gate.policy, quorum, groups, raised_by: ['soft'] }
        return { ...gate, policy: { ...policy, digest: digest(policy) } }
      }),
    })
    const gatesOf = (before: Running) =>
      applyPatch(before, [added], { ...input, diff: [], procedure_risk: 0 }).gates.map(({ gate_id }) => gate_id)
    expect(gatesOf(raisedTo(2))).toEqual(['own'])
    // A gate that still asks for less than the policy does not replace its own.
    expect(gatesOf(raisedTo(0))).toHaveLength(2)
  })

  it('and a start know the gate of a policy that names a value twice', () => {
    const folder = siteFolder()
    const twice = 'binds: [nodes/a/outputs, nodes/a/outputs]'
    writeFileSync(
      join(folder, 'gates/twice.yaml'),
      `format: signalbox/gate-policy@1\nkey: twice\nversion: 1\nquestion: May it?\napplies: "true"\nplace: { at: entry }\n${twice}\n`,
    )
    const site_library = loadLibrary({ policy_dir: folder })
    const noop = (node_id: string, depends_on: string[]) => ({ node_id, executor: 'noop', with: {}, depends_on })
    const graph = { nodes: [noop('a', []), noop('b', ['a'])], gates: [] }
    const input = { ...inputOf(targets, { kind: 'graph', graph }), library: site_library, judge }
    const { document } = makePlan(input)
    expect(document.gates.map(({ policy: { key } }) => key)).toEqual(['twice'])
    const weight = weigh(input, { nodes: document.nodes, diff: [], procedure_risk: 0 })
    expect(unaskedPolicies(site_library, document, weight)).toEqual([])
  })
})
