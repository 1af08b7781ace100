import type { GateStatus, NodeState, PlanGraph } from '../../shared/contracts/operations/graph.ts'

const COLLAPSE_ABOVE = 500

/** The live state of a node. */
type Live = {
  node_id: string
  state: NodeState
  attempt: number
  generation: number
  held: boolean
  exception: string | null
  ran_ms: number | null
}
type States = { nodes: readonly Live[]; gates: readonly { gate_id: string; status: string }[] }

/**
 * Returns a plan's graph as readers see it: nodes in rank order with their states, those that have none as pending.
 * Collapsed groups keep their counts and omit their nodes.
 */
export const viewGraph = (
  graph: PlanGraph,
  collapse: 'auto' | 'none' | 'groups' = 'none',
  states: States = { nodes: [], gates: [] },
) => {
  const liveOf = new Map(states.nodes.map((live) => [live.node_id, live]))
  const statusOf = new Map(states.gates.map(({ gate_id, status }) => [gate_id, status]))
  const nodes = graph.nodes.map((node) => {
    const live = liveOf.get(node.node_id)
    return {
      ...node,
      state: live?.state ?? ('pending' as const),
      attempt: live?.attempt ?? 0,
      generation: live?.generation ?? 1,
      held_by_patch: live?.held ?? false,
      exception: live?.exception ?? null,
      ran_ms: live?.ran_ms ?? null,
    }
  })
  const counts = new Map<string, Record<string, number>>()
  for (const { group, state } of nodes) {
    if (group === null) continue
    const count = counts.get(group) ?? {}
    count[state] = (count[state] ?? 0) + 1
    counts.set(group, count)
  }
  const collapsed = collapse === 'groups' || (collapse === 'auto' && nodes.length > COLLAPSE_ABOVE)
  return {
    nodes: collapsed ? nodes.filter(({ group }) => group === null) : nodes,
    groups: graph.groups.map((group) => ({ ...group, counts: counts.get(group.group_id) ?? {} })),
    gates: graph.gates.map((gate) => ({ ...gate, state: (statusOf.get(gate.gate_id) ?? 'armed') as GateStatus })),
    critical_path: graph.critical_path,
  }
}
