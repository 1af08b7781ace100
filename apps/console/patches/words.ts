import type { Patch, PatchChange } from '../api/types.ts'
import { tChange } from '../words/change.ts'
import { tOperation } from '../words/operation.ts'

/** A change of a patch in one sentence; `nameOf` gives the name of a node where one is known. */
export const changeWords = (change: unknown, nameOf: (node_id: string) => string = (id) => id): string => {
  const words = tChange.patch.words
  const given = change as PatchChange
  try {
    switch (given.op) {
      case 'add_node':
        return words.add_node(given.node.name ?? given.node.node_id)
      case 'remove_node':
        return words.remove_node(nameOf(given.node_id))
      case 'update_node':
        return words.update_node(nameOf(given.node_id), Object.keys(given.set).map(memberWord))
      case 'add_dependency':
        return words.add_dependency(nameOf(given.node_id), nameOf(given.depends_on))
      case 'remove_dependency':
        return words.remove_dependency(nameOf(given.node_id), nameOf(given.depends_on))
      case 'add_gate':
        return words.add_gate(given.gate.gate_id, given.gate.guards.map(nameOf))
      case 'remove_gate':
        return words.remove_gate(given.gate_id)
      case 'set_limits':
        return words.set_limits(given.max_parallel)
      default:
        return tChange.patch.unknown_change
    }
  } catch {
    // A change that is being typed may lack any of its members.
    return tChange.patch.unknown_change
  }
}

const memberWord = (member: string): string => (member === 'with' ? tOperation.node.inputs.toLowerCase() : member)

/** Names of nodes by id: those of the running graph, and those that the changes add. */
export const nodeNames = (
  nodes: readonly { node_id: string; name: string }[] = [],
  changes: readonly unknown[] = [],
): ((node_id: string) => string) => {
  const names = new Map(nodes.map(({ node_id, name }) => [node_id, name]))
  for (const change of changes as PatchChange[]) {
    if (change.op === 'add_node' && change.node?.name) names.set(change.node.node_id, change.node.name)
  }
  return (node_id) => names.get(node_id) ?? node_id
}

/** `1 added, 2 changed, 0 removed`. */
export const countWords = ({ added, removed, changed, added_gates, removed_gates }: Patch['diff_graph']): string =>
  tChange.patch.counts(added.length, changed.length, removed.length, added_gates.length + removed_gates.length)
