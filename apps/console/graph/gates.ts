import type { Graph } from '../api/types.ts'

/** A gate's box in the drawing; no node's id holds a slash. */
const PREFIX = 'gate/'
export const gateBox = (gate_id: string): string => PREFIX + gate_id
export const gateOfBox = (box_id: string): string | undefined =>
  box_id.startsWith(PREFIX) ? box_id.slice(PREFIX.length) : undefined

/** Where a gate stands: before the first of what it guards, and behind what those wait for where all wait for the same. */
export type StandingGate = {
  gate_id: string
  /** The nodes it guards that stand behind no other that it guards. */
  first: readonly string[]
  /** What all of `first` wait for; nothing where they differ: then the gate stands beside what they wait for. */
  behind: readonly string[] | undefined
}

/** The gates that guard a node of this graph, as they stand in it. Drawn so, they never close a circle. Pure. */
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

/** Every node that waits for one of these, however far. */
const behindAnyOf = (ids: ReadonlySet<string>, { nodes }: Graph): ReadonlySet<string> => {
  const found = new Set<string>()
  // Nodes come in rank order; where a patch has moved one, another pass finds what it left behind.
  for (let before = -1; before < found.size; ) {
    before = found.size
    for (const { node_id, depends_on } of nodes)
      if (depends_on.some((id) => ids.has(id) || found.has(id))) found.add(node_id)
  }
  return found
}
