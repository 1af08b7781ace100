import type { PlanGate, PlanNode } from '../../shared/contracts/operations/graph.ts'
import { GraphNode as GraphNodeSchema } from '../../shared/contracts/operations/intents.ts'
import type { PatchChange } from '../../shared/contracts/operations/patches.ts'
import { compileSchema } from '../../shared/data/json-schema.ts'
import { mergePatch } from '../../shared/data/merge-patch.ts'
import type { Violation } from '../../shared/errors.ts'
import type { MemberCount } from '../../shared/expressions/values.ts'
import type { GraphNode, PlannerInput, TargetDiff } from '../graph/types.ts'
import { nodeOf } from '../packs/defaults.ts'
import { expandParts, planRoot } from './draft.ts'
import { ownUndo } from './expand.ts'
import { graphGates } from './gates.ts'
import type { RiskLevel } from './risk.ts'

/** A running graph, as stored in its rows. */
export type Running = {
  nodes: PlanNode[]
  gates: (PlanGate & { status: string })[]
  max_parallel: number
  risk_level: RiskLevel
  /** Nodes that have begun and can no longer change. */
  begun: ReadonlySet<string>
  /** Ids of removed nodes and gates, which are not assigned again. */
  spent: ReadonlySet<string>
}
/** The input for a plan of the operation's intent, with the results of its own plan. */
export type PatchContext = Omit<PlannerInput, 'types' | 'relationship_types' | 'mayResolve'> & {
  diff: TargetDiff[]
  procedure_risk: number
}

/** Applies the changes of a patch to a copy of the running graph, with every reason why one is impossible. */
export const editGraph = (running: Running, changes: readonly PatchChange[], context: PatchContext): Edit => {
  const edit = editOf(running)
  for (const [i, change] of changes.entries()) OPS[change.op](edit, change as never, `/changes/${i}`, context)
  for (const gate of edit.gates.values()) gate.guards = gate.guards.filter((id) => !edit.removed.has(id))
  // A gate whose last guarded node is gone has no question left.
  const emptied = [...edit.gates.values()].filter(
    (gate) => gate.guards.length === 0 && !edit.added_gates.has(gate.gate_id),
  )
  for (const { gate_id } of emptied) edit.gates.delete(gate_id)
  return edit
}

export type Edit = {
  nodes: Map<string, PlanNode>
  gates: Map<string, PlanGate>
  max_parallel: number
  touched: Set<string>
  added: Set<string>
  removed: Set<string>
  added_gates: Set<string>
  /** Ids that no new node or gate may have: also of those that this patch removes. */
  spent: Set<string>
  count: MemberCount
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
  spent: new Set(spent),
  count: { members: 0 },
  violations: [],
})

/** The members of a node in a graph; the result of a merge patch must still be valid ones. */
const checkMembers = compileSchema({ ...GraphNodeSchema, required: [] })

type Op<K extends PatchChange['op']> = (
  edit: Edit,
  change: Extract<PatchChange, { op: K }>,
  at: string,
  context: PatchContext,
) => void

const fault = (edit: Edit, pointer: string, code: string, message: string) =>
  void edit.violations.push({ pointer, code, message })

/** Returns the node that a change names; reports a fault if there is none. */
const nodeAt = (edit: Edit, id: string, at: string): PlanNode | undefined => {
  const node = edit.nodes.get(id)
  if (!node) fault(edit, `${at}/node_id`, 'unknown_node', `there is no node "${id}"`)
  return node
}

const rootsOf = ({ count }: Edit, context: PatchContext, target_id: string | undefined) => {
  const target = context.targets.find(({ resource_id }) => resource_id === target_id)
  const { intent, targets } = context
  return { ...(target && { target }), plan: planRoot(intent, targets), targets, count }
}

const OPS: { [K in PatchChange['op']]: Op<K> } = {
  add_node: (edit, { node: given }, at, context) => {
    const { node_id } = given
    if (edit.nodes.has(node_id) || edit.spent.has(node_id))
      return fault(edit, `${at}/node/node_id`, 'duplicate_node', `the id "${node_id}" is taken`)
    const node = nodeOf(given as GraphNode)
    const ids = new Set([...edit.nodes.keys(), node_id])
    const roots = rootsOf(edit, context, node.target_id)
    edit.nodes.set(node_id, { ...node, ...expandParts(node, roots, ids, edit.violations) })
    edit.added.add(node_id)
  },
  remove_node: (edit, { node_id }, at) => {
    if (!nodeAt(edit, node_id, at)) return
    edit.nodes.delete(node_id)
    if (!edit.added.delete(node_id)) {
      edit.removed.add(node_id)
      edit.spent.add(node_id)
    }
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
    const roots = rootsOf(edit, context, node.target_id)
    const { catalog, compensate } = raw as Partial<PlanNode>
    // An undo follows the write of its node, except for members that its author set.
    const undoes = set.catalog !== undefined || set.compensate !== undefined
    const undo = compensate && roots.target ? ownUndo(compensate, node, roots.target) : compensate
    const parts = expandParts(
      { ...(set as Partial<PlanNode>), ...(undoes && { catalog, compensate: undo }), node_id },
      roots,
      new Set(edit.nodes.keys()),
      edit.violations,
    )
    const merged = mergePatch(node, { ...set, ...parts }) as GraphNode
    edit.nodes.set(node_id, nodeOf({ ...merged, ...(parts.compensate && { compensate: parts.compensate }) }))
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
      return fault(edit, `${at}/depends_on`, 'unknown_dependency', `"${node_id}" does not depend on "${depends_on}"`)
    edit.nodes.set(node_id, { ...node, depends_on: node.depends_on.filter((id) => id !== depends_on) })
    edit.touched.add(node_id)
  },
  add_gate: (edit, { gate }, at, { library }) => {
    if (edit.gates.has(gate.gate_id) || edit.spent.has(gate.gate_id))
      return fault(edit, `${at}/gate/gate_id`, 'duplicate_gate', `the id "${gate.gate_id}" is taken`)
    const [made] = graphGates([gate], library, edit.violations)
    if (!made) return
    edit.gates.set(gate.gate_id, made)
    edit.added_gates.add(gate.gate_id)
    for (const id of gate.guards) edit.touched.add(id)
  },
  remove_gate: (edit, { gate_id }, at) => {
    const gate = edit.gates.get(gate_id)
    if (!gate) return fault(edit, `${at}/gate_id`, 'unknown_gate', `there is no gate "${gate_id}"`)
    edit.gates.delete(gate_id)
    if (!edit.added_gates.delete(gate_id)) edit.spent.add(gate_id)
    for (const id of gate.guards) edit.touched.add(id)
  },
  set_limits: (edit, { max_parallel }) => {
    edit.max_parallel = max_parallel
  },
}
