import { expect, it } from 'vitest'
import { EXECUTORS } from '../../apps/operations/graph/executors.ts'
import { checkSoundness } from '../../apps/operations/graph/soundness.ts'
import type { GraphNode, Warning } from '../../apps/operations/graph/types.ts'
import { nodeOf, policyOf } from '../../apps/operations/packs/defaults.ts'
import { bindPreviews, unshownPreviews } from '../../apps/operations/packs/previews.ts'
import type { PlanGate, PlanNode } from '../../apps/shared/contracts/operations/graph.ts'

const node = (node_id: string, depends_on: string[], inputs: object = {}) =>
  ({
    node_id,
    name: node_id,
    kind: 'task',
    executor: 'external',
    depends_on,
    with: { job: 'x', inputs },
  }) as unknown as PlanNode
const takes = (id: string) => ({ preview: { $from: `nodes/${id}/outputs/preview` } })
const gate = (gate_id: string, guards: string[]): PlanGate => ({
  gate_id,
  kind: 'approval',
  question: '?',
  policy: policyOf(gate_id, {}),
  guards,
})
const bindsOf = (gates: PlanGate[], nodes: PlanNode[], warnings: Warning[] = []) =>
  bindPreviews(gates, nodes, warnings).map(({ policy }) => policy.binds)

const graph = [node('plan', []), node('apply', ['plan'], takes('plan')), node('after', ['apply'])]

it('a gate between a preview and its apply binds it, whatever its policy says', () => {
  const [before] = [gate('go', ['apply'])]
  expect(bindsOf([before as PlanGate], graph)).toEqual([['nodes/plan/outputs/preview']])
  const [made] = bindPreviews([before as PlanGate], graph, [])
  expect(made?.policy.digest).not.toBe(before?.policy.digest)
  // A second run changes nothing more.
  expect(bindPreviews([made as PlanGate], graph, [])).toEqual([made])
})

it('a preview is bound whatever its output is called', () => {
  for (const reference of ['nodes/plan/outputs/saved', 'nodes/plan/outputs/saved/preview', 'nodes/plan/outputs']) {
    const nodes = [node('plan', []), node('apply', ['plan'], { preview: { $from: reference } })]
    expect(bindsOf([gate('go', ['apply'])], nodes)).toEqual([[reference]])
    const warnings: Warning[] = []
    bindPreviews([], nodes, warnings)
    expect(warnings).toMatchObject([{ code: 'preview_unguarded' }])
  }
})

it('a preview comes whole from one output: a gate would show no other', () => {
  const faultsOf = (inputs: unknown) => EXECUTORS.get('external')?.check({ job: 'x', inputs })
  const from = { $from: 'nodes/plan/outputs/saved' }
  const shown = { $from: 'params/inputs' }
  const plain = ['text', false, null].map((preview) => ({ preview }))
  for (const inputs of [undefined, {}, { preview: from }, { plan: { deep: from } }, shown, ...plain])
    expect(faultsOf(inputs)).toEqual([])
  const parts = [{ changes: [], plan: from }, { ...from, default: {} }, { $concat: [from] }, [from], { $$: from }, {}]
  for (const preview of parts) expect(faultsOf({ preview })).toMatchObject([{ pointer: '/inputs/preview' }])
  for (const inputs of [from, { ...shown, default: {} }, { $$: { preview: {} } }])
    expect(faultsOf(inputs)).toMatchObject([{ pointer: '/inputs' }])
  // With the preview, the message to the agent would be refused only after the approval.
  const [fault] = faultsOf({ list: 'x'.repeat(760_000), preview: from }) ?? []
  expect(fault).toMatchObject({ pointer: '/inputs', message: expect.stringContaining('750000 bytes') })
  expect(faultsOf({ list: 'x'.repeat(740_000), preview: from })).toEqual([])
})

it('a preview comes from an agent: the author of the plan could draw what another executor returns', () => {
  const carry = { executor: 'external', with: { job: 'git.push', inputs: takes('plan') } }
  const faultsOf = (executor: string, values: PlanNode['with'], acting: Partial<GraphNode>) => {
    const plan = nodeOf({ node_id: 'plan', executor, with: values, outputs: { preview: '/preview' } })
    const nodes = [plan, nodeOf({ node_id: 'act', depends_on: ['plan'], ...acting })]
    return checkSoundness(nodes, [], { nodes: 9, edges: 9 }, () => true).map(({ code, pointer }) => [code, pointer])
  }
  for (const [acting, at] of [
    [carry, '/nodes/act/with/inputs/preview'],
    [{ executor: 'noop', compensate: carry }, '/nodes/act/compensate/with/inputs/preview'],
  ] as const) {
    expect(faultsOf('external', { job: 'git.preview' }, acting)).toEqual([])
    expect(faultsOf('noop', { outputs: { preview: {} } }, acting)).toEqual([['inputs_invalid', at]])
  }
})

it('the preview of a compensation is bound like that of its step', () => {
  const compensate = { executor: 'external', with: { job: 'x', inputs: takes('plan') } }
  const nodes = [node('plan', []), { ...node('apply', ['plan']), compensate }]
  const given = [gate('go', ['apply'])]
  const preview = 'nodes/plan/outputs/preview'
  expect(bindsOf(given, nodes)).toEqual([[preview]])
  expect(unshownPreviews(given, nodes, nodes, [])).toEqual([{ node_id: 'apply', preview }])
  // A step and its compensation may share one.
  const warnings: Warning[] = []
  bindPreviews([], [node('plan', []), { ...node('apply', ['plan'], takes('plan')), compensate }], warnings)
  expect(warnings).toHaveLength(1)
})

it('a gate before the preview, or behind the change, binds none, and the plan warns', () => {
  for (const guards of [['plan'], ['after']]) {
    const warnings: Warning[] = []
    expect(bindsOf([gate('go', guards)], graph, warnings)).toEqual([[]])
    expect(warnings).toMatchObject([{ code: 'preview_unguarded', message: expect.stringContaining('"apply"') }])
  }
})

it('a gate of many binds each of their previews', () => {
  const two = [...graph, node('plan.b', []), node('apply.b', ['plan.b'], takes('plan.b'))]
  expect(bindsOf([gate('go', ['apply', 'apply.b'])], two)).toEqual([
    ['nodes/plan/outputs/preview', 'nodes/plan.b/outputs/preview'],
  ])
})

it('a patch that has a node carry out another preview needs a gate that shows it', () => {
  const [bound] = bindPreviews([gate('go', ['apply'])], graph, [])
  const apply = node('apply', ['plan', 'other'], takes('other'))
  const patched = [node('plan', []), node('other', []), apply]
  const unshown = [{ node_id: 'apply', preview: 'nodes/other/outputs/preview' }]
  expect(unshownPreviews([bound as PlanGate], patched, [apply], graph)).toEqual(unshown)
  const [more] = bindPreviews([gate('more', ['apply'])], patched, [])
  expect(unshownPreviews([bound, more] as PlanGate[], patched, [apply], graph)).toEqual([])
  // As in a plan, without any gate between.
  expect(unshownPreviews([gate('go', ['plan', 'other'])], patched, [apply], graph)).toEqual([])
  // Another change of a node does not need its preview shown again, such as behind the gate of an earlier patch.
  expect(unshownPreviews([gate('patch-1', ['apply'])], graph, graph, graph)).toEqual([])
})
