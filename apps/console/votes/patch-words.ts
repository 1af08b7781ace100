import type { Patch, PatchChange } from '../api/types.ts'
import { shown } from '../kit/format.ts'
import { tChange } from '../words/change.ts'
import { inSentence } from '../words/frame/language.ts'
import { tOperation } from '../words/operation.ts'

/** A change of a patch in one sentence; `nameOf` returns the name of a node if it is known. */
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

/** A new or changed step's call: method and URL, or program and `args`. Dispatch values and secrets stay references. */
export const callOf = (change: unknown): string | null => {
  const given = change as PatchChange
  const values = given.op === 'add_node' ? given.node?.with : given.op === 'update_node' ? given.set?.with : undefined
  const { request, base_url, program, args, job } = (values ?? {}) as Record<string, unknown>
  if (request !== undefined) {
    const { method = 'GET', url } = (request ?? {}) as Record<string, unknown>
    return `${plain(method)} ${base_url === undefined ? '' : plain(base_url)}${plain(url)}`
  }
  if (program !== undefined) return [program, ...(Array.isArray(args) ? args : [])].map(plain).join(' ')
  return job === undefined ? null : plain(job)
}

const plain = (value: unknown): string => {
  if (typeof value === 'string') return shown(value)
  const [reference] = Object.values((value ?? {}) as object)
  return `{${typeof reference === 'string' ? shown(reference) : JSON.stringify(value)}}`
}

const memberWord = (member: string): string => (member === 'with' ? inSentence(tOperation.node.inputs) : member)

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
