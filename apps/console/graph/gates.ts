import type { Graph, GraphNode } from '../api/types.ts'

/** The prefix of a gate's box id; node ids contain no slash. */
const PREFIX = 'gate/'
export const gateBox = (gate_id: string): string => PREFIX + gate_id
export const gateOfBox = (box_id: string): string | undefined =>
  box_id.startsWith(PREFIX) ? box_id.slice(PREFIX.length) : undefined

/** The position of a gate: before the first guarded nodes, and after their dependencies if all of them share these. */
export type StandingGate = {
  gate_id: string
  /** The guarded nodes that depend on no other guarded node. */
  first: readonly string[]
  /** The common dependencies of all of `first`. `undefined` if they differ: then the gate is drawn beside the nodes. */
  behind: readonly string[] | undefined
}

/** The gates that guard a node of this graph, with their positions. Drawn this way, they never close a cycle. Pure. */
export const standingGates = (graph: Graph): StandingGate[] => {
  const waits = new Map(graph.nodes.map(({ node_id, depends_on }) => [node_id, depends_on]))
  return graph.gates.flatMap(({ gate_id, guards }) => {
    const guarded = new Set(guards.filter((id) => waits.has(id)))
    const later = behindAnyOf(guarded, graph)
    const first = graph.nodes.flatMap(({ node_id }) => (guarded.has(node_id) && !later.has(node_id) ? [node_id] : []))
    const keyOf = (id: string) => [...(waits.get(id) ?? [])].sort().join(' ')
    const same = new Set(first.map(keyOf)).size === 1
    return first.length === 0 ? [] : [{ gate_id, first, behind: same ? waits.get(first[0] ?? '') : undefined }]
  })
}

/** The nodes that have not begun and depend on this one, directly or indirectly. Pure. */
export const waitingBehind = (node_id: string, graph: Graph): GraphNode[] => {
  const behind = behindAnyOf(new Set([node_id]), graph)
  return graph.nodes.filter((node) => node.state === 'pending' && behind.has(node.node_id))
}

/** Every node that depends on one of these, directly or indirectly. */
const behindAnyOf = (ids: ReadonlySet<string>, { nodes }: Graph): ReadonlySet<string> => {
  const found = new Set<string>()
  // Nodes come in rank order; if a patch has moved one, another pass finds the rest.
  for (let before = -1; before < found.size; ) {
    before = found.size
    for (const { node_id, depends_on } of nodes)
      if (depends_on.some((id) => ids.has(id) || found.has(id))) found.add(node_id)
  }
  return found
}
