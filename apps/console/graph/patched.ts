import type { Graph, GraphNode, Patch, PatchChange } from '../api/types.ts'
import { gateBox } from './gates.ts'

export type Mark = 'added' | 'removed' | 'changed'
/** The graphs before and after a patch in one: removed nodes are kept, and every difference has a mark. */
export type PatchedGraph = {
  graph: Graph
  /** By box id: nodes, and gates (`gateBox`). */
  marks: ReadonlyMap<string, Mark>
  /** Dependencies as `from>to` that exist in only one of the two graphs. */
  lines: ReadonlyMap<string, 'added' | 'removed'>
}

const FOLD_ABOVE = 40

/** The result of a patch on its base graph, from the differences that the server named. Pure. */
export const patchedGraph = (base: Graph, changes: readonly unknown[], diff: Patch['diff_graph']): PatchedGraph => {
  const marks = new Map<string, Mark>()
  for (const { node_id } of diff.changed) marks.set(node_id, 'changed')
  const added_gates = addedGates(changes as PatchChange[], diff)
  const removed_gates = base.gates.filter(({ gate_id }) => diff.removed_gates.includes(gate_id))
  for (const { guards } of [...added_gates, ...removed_gates]) for (const id of guards) marks.set(id, 'changed')
  for (const id of diff.removed) marks.set(id, 'removed')
  for (const id of diff.added) marks.set(id, 'added')
  for (const id of diff.removed_gates) marks.set(gateBox(id), 'removed')
  for (const { gate_id } of added_gates) marks.set(gateBox(gate_id), 'added')

  const before = new Map(base.nodes.map(({ node_id, depends_on }) => [node_id, depends_on]))
  const after = dependenciesAfter(before, changes as PatchChange[])
  const lines = new Map<string, 'added' | 'removed'>()
  const nodes = withAdded(base.nodes, changes as PatchChange[], diff.added, after).map((node) => {
    const [was, is] = [before.get(node.node_id) ?? [], after.get(node.node_id) ?? []]
    for (const id of was) if (!is.includes(id)) lines.set(`${id}>${node.node_id}`, 'removed')
    for (const id of is) if (!was.includes(id)) lines.set(`${id}>${node.node_id}`, 'added')
    return { ...node, depends_on: [...new Set([...was, ...is])] }
  })
  return { graph: { ...base, nodes, gates: [...base.gates, ...added_gates], critical_path: [] }, marks, lines }
}

/** Groups without any change, folded if the whole graph is too large. */
export const foldedGroups = ({ graph, marks }: PatchedGraph): ReadonlySet<string> => {
  if (graph.nodes.length <= FOLD_ABOVE) return new Set()
  const open = new Set(graph.nodes.filter(({ node_id }) => marks.has(node_id)).map(({ group }) => group))
  return new Set(graph.groups.map(({ group_id }) => group_id).filter((id) => !open.has(id)))
}

const addedGates = (changes: PatchChange[], { added_gates }: Patch['diff_graph']): Graph['gates'] =>
  changes.flatMap((change) => {
    if (change.op !== 'add_gate' || !added_gates.includes(change.gate.gate_id)) return []
    const { gate_id, question = gate_id, guards } = change.gate
    return [{ gate_id, question, guards, state: 'armed' as const }]
  })

const dependenciesAfter = (before: ReadonlyMap<string, string[]>, changes: PatchChange[]): Map<string, string[]> => {
  const after = new Map(before)
  for (const change of changes) {
    if (change.op === 'add_node') after.set(change.node.node_id, change.node.depends_on ?? [])
    else if (change.op === 'remove_node') after.delete(change.node_id)
    else if (change.op === 'add_dependency' || change.op === 'remove_dependency') {
      const others = (after.get(change.node_id) ?? []).filter((id) => id !== change.depends_on)
      after.set(change.node_id, change.op === 'add_dependency' ? [...others, change.depends_on] : others)
    }
  }
  return after
}

/** The nodes with the added ones, each after its last dependency, because nodes are in rank order. */
const withAdded = (
  nodes: GraphNode[],
  changes: PatchChange[],
  added: readonly string[],
  after: ReadonlyMap<string, string[]>,
): GraphNode[] => {
  const all = [...nodes]
  for (const change of changes) {
    if (change.op !== 'add_node' || !added.includes(change.node.node_id)) continue
    const { node_id, name = node_id, kind = 'task', executor = '', target_id = null } = change.node
    const waits = after.get(node_id) ?? []
    const neighbour = all.find(
      (node) => waits.includes(node.node_id) || (after.get(node.node_id) ?? []).includes(node_id),
    )
    all.splice(all.findLastIndex((node) => waits.includes(node.node_id)) + 1, 0, {
      node_id,
      name,
      kind,
      executor,
      target_id,
      group: neighbour?.group ?? null,
      state: 'pending',
      attempt: 0,
      generation: 1,
      depends_on: [],
      join: change.node.join ?? 'all',
      gates: [],
      risk: change.node.risk ?? 0,
      on_failure: change.node.on_failure ?? 'hold',
      has_compensation: change.node.compensate !== undefined,
      estimate_s: change.node.estimate_s ?? 0,
      held_by_patch: false,
      exception: null,
      ran_ms: null,
    })
  }
  return all
}
