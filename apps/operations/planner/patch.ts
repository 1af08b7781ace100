import type { GatePolicy, PlanGate, PlanNode } from '../../shared/contracts/operations/graph.ts'
import { GraphNode as GraphNodeSchema } from '../../shared/contracts/operations/intents.ts'
import type { PatchChange } from '../../shared/contracts/operations/patches.ts'
import { digest } from '../../shared/data/digest.ts'
import { compileSchema } from '../../shared/data/json-schema.ts'
import { mergePatch } from '../../shared/data/merge-patch.ts'
import { isObject, pointerOf } from '../../shared/data/pointer.ts'
import type { Violation } from '../../shared/errors.ts'
import { coneOf, inRankOrder } from '../graph/graph.ts'
import { checkSoundness, type SoundnessLimits } from '../graph/soundness.ts'
import type { GraphNode, Library, Target } from '../graph/types.ts'
import { nodeOf } from '../packs/defaults.ts'
import { expandParts, planRoot } from './draft.ts'
import { graphGates } from './gates.ts'

/** A running graph, as its rows have it. */
export type Running = {
  nodes: PlanNode[]
  gates: (PlanGate & { status: string })[]
  max_parallel: number
  /** Nodes of which something has happened: they cannot change any more. */
  begun: ReadonlySet<string>
  /** Ids of nodes and gates that were taken out: they are not given again. */
  spent: ReadonlySet<string>
}
export type PatchContext = {
  intent_id: string
  kind: string
  labels: Record<string, string>
  targets: Target[]
  library: Library
  limits: SoundnessLimits
}
export type Patched = {
  /** In rank order. */
  nodes: PlanNode[]
  gates: PlanGate[]
  max_parallel: number
  /** Nodes of before that change or go, or whose gates change. */
  touched: string[]
  added: string[]
  removed: string[]
  added_gates: string[]
  removed_gates: string[]
  /** Policies of the gates that have something to say about it. */
  required: GatePolicy[]
  violations: Violation[]
}
export type DiffGraph = {
  added: string[]
  removed: string[]
  changed: { node_id: string; fields: { path: string; before: unknown; after: unknown }[] }[]
  added_gates: string[]
  removed_gates: string[]
  max_parallel: { before: number; after: number } | null
}

/**
 * The graph that a patch makes of a running one, with every reason why it could not run (operations.md 2.6). Pure: the
 * proposal, each vote and the application come to the same.
 */
export const applyPatch = (running: Running, changes: readonly PatchChange[], context: PatchContext): Patched => {
  const edit = editOf(running)
  for (const [i, change] of changes.entries()) OPS[change.op](edit, change as never, `/changes/${i}`, context)
  const removed = new Set(edit.removed)
  for (const gate of edit.gates.values()) gate.guards = gate.guards.filter((id) => !removed.has(id))
  // A gate whose last guarded node is gone has nothing left to ask about.
  const emptied = [...edit.gates.values()].filter(
    (gate) => gate.guards.length === 0 && !edit.added_gates.has(gate.gate_id),
  )
  for (const { gate_id } of emptied) edit.gates.delete(gate_id)
  const nodes = inRankOrder([...edit.nodes.values()])
  const gates = [...edit.gates.values()]
  const known = new Set(context.targets.map(({ resource_id }) => resource_id))
  const touched = [...edit.touched].filter((id) => running.nodes.some(({ node_id }) => node_id === id))
  const patched = {
    nodes,
    gates,
    max_parallel: edit.max_parallel,
    touched,
    added: [...edit.added],
    removed: [...removed],
    added_gates: [...edit.added_gates],
    removed_gates: running.gates.flatMap(({ gate_id }) => (edit.gates.has(gate_id) ? [] : [gate_id])),
  }
  const sound = checkSoundness(nodes, gates, context.limits, (id) => known.has(id)).map((fault) =>
    ofCompensation(fault, running.begun),
  )
  const found = [...edit.violations, ...sound, ...weakened(running, patched)]
  const violations = [...new Map(found.map((entry) => [`${entry.code} ${entry.pointer}`, entry])).values()]
  return { ...patched, required: requiredBy(running, patched), violations }
}

type Edit = {
  nodes: Map<string, PlanNode>
  gates: Map<string, PlanGate>
  max_parallel: number
  touched: Set<string>
  added: Set<string>
  removed: Set<string>
  added_gates: Set<string>
  spent: ReadonlySet<string>
  violations: Violation[]
}

const editOf = ({ nodes, gates, max_parallel, spent }: Running): Edit => ({
  nodes: new Map(nodes.map((node) => [node.node_id, node])),
  gates: new Map(gates.map(({ status: _, ...gate }) => [gate.gate_id, gate])),
  max_parallel,
  touched: new Set(),
  added: new Set(),
  removed: new Set(),
  added_gates: new Set(),
  spent,
  violations: [],
})

/** Members of a node as a graph gives them; what a merge patch makes of one must still be such. */
const checkMembers = compileSchema({ ...GraphNodeSchema, required: [] })

type Op<K extends PatchChange['op']> = (
  edit: Edit,
  change: Extract<PatchChange, { op: K }>,
  at: string,
  context: PatchContext,
) => void

const fault = (edit: Edit, pointer: string, code: string, message: string) =>
  void edit.violations.push({ pointer, code, message })

/** The node that a change names; a fault where there is none. */
const nodeAt = (edit: Edit, id: string, at: string): PlanNode | undefined => {
  const node = edit.nodes.get(id)
  if (!node) fault(edit, `${at}/node_id`, 'unreachable_node', `there is no node "${id}"`)
  return node
}

const rootsOf = (context: PatchContext, target_id: string | undefined) => {
  const target = context.targets.find(({ resource_id }) => resource_id === target_id)
  return { ...(target && { target }), plan: planRoot(context, context.targets) }
}

const OPS: { [K in PatchChange['op']]: Op<K> } = {
  add_node: (edit, { node: given }, at, context) => {
    const { node_id } = given
    if (edit.nodes.has(node_id) || edit.spent.has(node_id))
      return fault(edit, `${at}/node/node_id`, 'duplicate_node', `the id "${node_id}" is taken`)
    const node = nodeOf(given as GraphNode)
    const ids = new Set([...edit.nodes.keys(), node_id])
    const roots = rootsOf(context, node.target_id)
    edit.nodes.set(node_id, { ...node, ...expandParts(node, roots, ids, edit.violations) })
    edit.added.add(node_id)
  },
  remove_node: (edit, { node_id }, at) => {
    if (!nodeAt(edit, node_id, at)) return
    edit.nodes.delete(node_id)
    if (!edit.added.delete(node_id)) edit.removed.add(node_id)
    edit.touched.add(node_id)
  },
  update_node: (edit, { node_id, set }, at, context) => {
    const node = nodeAt(edit, node_id, at)
    if (!node) return
    const raw = mergePatch(node, set) as Record<string, unknown>
    const named = Object.keys(set).flatMap((key) => (raw[key] === undefined ? [] : [[key, raw[key]] as const]))
    const wrong = checkMembers(Object.fromEntries(named))
    for (const { pointer, message } of wrong) fault(edit, `${at}/set${pointer}`, 'inputs_invalid', message)
    if (wrong.length > 0) return
    const parts = expandParts(
      { ...(set as Partial<PlanNode>), node_id },
      rootsOf(context, node.target_id),
      new Set(edit.nodes.keys()),
      edit.violations,
    )
    const merged = mergePatch(node, { ...set, ...parts }) as GraphNode
    edit.nodes.set(node_id, nodeOf(merged))
    edit.touched.add(node_id)
  },
  add_dependency: (edit, { node_id, depends_on }, at) => {
    const node = nodeAt(edit, node_id, at)
    if (!node) return
    edit.nodes.set(node_id, { ...node, depends_on: [...new Set([...node.depends_on, depends_on])] })
    edit.touched.add(node_id)
  },
  remove_dependency: (edit, { node_id, depends_on }, at) => {
    const node = nodeAt(edit, node_id, at)
    if (!node) return
    if (!node.depends_on.includes(depends_on))
      return fault(edit, `${at}/depends_on`, 'unreachable_node', `"${node_id}" does not depend on "${depends_on}"`)
    edit.nodes.set(node_id, { ...node, depends_on: node.depends_on.filter((id) => id !== depends_on) })
    edit.touched.add(node_id)
  },
  add_gate: (edit, { gate }, at, { library }) => {
    if (edit.gates.has(gate.gate_id) || edit.spent.has(gate.gate_id))
      return fault(edit, `${at}/gate/gate_id`, 'duplicate_node', `the id "${gate.gate_id}" is taken`)
    const [made] = graphGates([gate], library, edit.violations)
    if (!made) return
    edit.gates.set(gate.gate_id, made)
    edit.added_gates.add(gate.gate_id)
    for (const id of gate.guards) edit.touched.add(id)
  },
  remove_gate: (edit, { gate_id }, at) => {
    const gate = edit.gates.get(gate_id)
    if (!gate) return fault(edit, `${at}/gate_id`, 'unreachable_node', `there is no gate "${gate_id}"`)
    edit.gates.delete(gate_id)
    edit.added_gates.delete(gate_id)
    for (const id of gate.guards) edit.touched.add(id)
  },
  set_limits: (edit, { max_parallel }) => {
    edit.max_parallel = max_parallel
  },
}

/** What an undo needs of a node that is gone: the succeeded node itself cannot change any more. */
const ofCompensation = (found: Violation, begun: ReadonlySet<string>): Violation => {
  const [, , id = '', part] = found.pointer.split('/')
  return found.code === 'unknown_reference' && part === 'compensate' && begun.has(id)
    ? { ...found, code: 'compensation_broken' }
    : found
}

type Changes = Omit<Patched, 'required' | 'violations'>

const gateCones = ({ nodes, gates }: Running, patched: Changes) =>
  gates.map((gate) => {
    const after = patched.gates.find(({ gate_id }) => gate_id === gate.gate_id)
    return {
      gate,
      before: coneOf(nodes, gate.guards),
      after: after ? coneOf(patched.nodes, after.guards) : new Set<string>(),
    }
  })

/**
 * Takes nodes from behind a gate that its own approvers cannot give away: one that an outer service answers, or one that
 * was refused already. Other gates are asked: their policies are among the required ones.
 */
const weakened = (running: Running, patched: Changes): Violation[] => {
  const left = new Set(patched.nodes.map(({ node_id }) => node_id))
  return gateCones(running, patched).flatMap(({ gate, before, after }) => {
    const beyond = gate.kind === 'external_check' || gate.status === 'rejected' || gate.status === 'expired'
    const freed = beyond ? [...before].filter((id) => left.has(id) && !after.has(id) && !running.begun.has(id)) : []
    if (freed.length === 0) return []
    return [
      {
        pointer: `/gates/${gate.gate_id}`,
        code: 'gate_weakened',
        message: `takes ${freed.slice(0, 5).join(', ')} from behind a gate that nobody can waive`,
      },
    ]
  })
}

/** Policies of the gates of before whose cones the patch touches, before or after. */
const requiredBy = (running: Running, patched: Changes): GatePolicy[] => {
  const concerned = [...patched.touched, ...patched.added]
  const asked = gateCones(running, patched)
    .filter(({ before, after }) => concerned.some((id) => before.has(id) || after.has(id)))
    .filter(({ gate }) => gate.kind !== 'external_check')
  return [...new Map(asked.map(({ gate }) => [digest(gate.policy), gate.policy])).values()]
}

/** What a reader compares: nodes by id, members of changed ones by path. */
export const diffGraph = (running: Running, patched: Patched): DiffGraph => {
  const before = new Map(running.nodes.map((node) => [node.node_id, node]))
  const changed = patched.nodes.flatMap((node) => {
    const old = before.get(node.node_id)
    const fields = old ? [...fieldsOf(old, node, '')] : []
    return fields.length > 0 ? [{ node_id: node.node_id, fields }] : []
  })
  return {
    added: patched.added,
    removed: patched.removed,
    changed,
    added_gates: patched.added_gates,
    removed_gates: patched.removed_gates,
    max_parallel:
      patched.max_parallel === running.max_parallel
        ? null
        : { before: running.max_parallel, after: patched.max_parallel },
  }
}

function* fieldsOf(
  before: unknown,
  after: unknown,
  path: string,
): Generator<DiffGraph['changed'][number]['fields'][number]> {
  if (isObject(before) && isObject(after)) {
    for (const key of new Set([...Object.keys(before), ...Object.keys(after)]))
      yield* fieldsOf(before[key], after[key], path + pointerOf(key))
  } else if (digest(before ?? null) !== digest(after ?? null))
    yield { path, before: before ?? null, after: after ?? null }
}

/** The graph of a revision: what an approval of the patch is bound to. */
export const resultHash = ({ nodes, gates, max_parallel }: Pick<Patched, 'nodes' | 'gates' | 'max_parallel'>): string =>
  digest({ nodes, gates: gates.toSorted((a, b) => (a.gate_id < b.gate_id ? -1 : 1)), max_parallel })
