import { createContext, useContext, useSyncExternalStore } from 'react'
import { nodeLook, type StatusLook } from '../../shared/contracts/client/status.ts'
import type { Graph, GraphNode } from '../api/types.ts'

/**
 * The live states of a drawn graph. A change reaches the one box that shows it, through its own subscription; the
 * drawing itself is never touched.
 */
export class GraphStates {
  private nodes = new Map<string, GraphNode>()
  private readonly members = new Map<string, string[]>()
  private open = new Set<string>()
  private readonly listeners = new Map<string, Set<() => void>>()

  /** Takes over the newest states and tells the boxes of those that changed, and of their groups. */
  update(graph: Graph): void {
    const before = this.nodes
    const openBefore = this.open
    this.nodes = new Map(graph.nodes.map((node) => [node.node_id, node]))
    this.open = new Set(graph.gates.filter((gate) => gate.state === 'waiting').map((gate) => gate.gate_id))
    this.members.clear()
    for (const node of graph.nodes) {
      if (node.group === null) continue
      const ids = this.members.get(node.group) ?? []
      ids.push(node.node_id)
      this.members.set(node.group, ids)
    }
    const gatesMoved = openBefore.size !== this.open.size || [...this.open].some((gate) => !openBefore.has(gate))
    for (const node of graph.nodes) {
      const old = before.get(node.node_id)
      const same = old !== undefined && old.state === node.state && old.attempt === node.attempt
      if (same && !(gatesMoved && node.gates.length > 0)) continue
      this.tell(node.node_id)
      if (node.group !== null) this.tell(node.group)
    }
  }

  node(id: string): GraphNode | undefined {
    return this.nodes.get(id)
  }

  look(node: GraphNode): StatusLook {
    return nodeLook(
      node.state,
      node.gates.some((gate) => this.open.has(gate)),
    )
  }

  group(id: string): GraphNode[] {
    return (this.members.get(id) ?? []).flatMap((node) => this.nodes.get(node) ?? [])
  }

  subscribe(id: string, listener: () => void): () => void {
    const set = this.listeners.get(id) ?? new Set()
    set.add(listener)
    this.listeners.set(id, set)
    return () => void set.delete(listener)
  }

  private tell(id: string): void {
    for (const listener of this.listeners.get(id) ?? []) listener()
  }
}

export const StatesContext = createContext(new GraphStates())

/** The node's own live state. */
export const useNodeState = (id: string): { node: GraphNode | undefined; look: StatusLook | undefined } => {
  const states = useContext(StatesContext)
  const node = useSyncExternalStore(
    (listener) => states.subscribe(id, listener),
    () => states.node(id),
  )
  return { node, look: node && states.look(node) }
}

/** How many nodes of a group are in which state, worst first; a text, so that equal counts draw nothing. */
export const useGroupCounts = (id: string): { look: StatusLook; count: number }[] => {
  const states = useContext(StatesContext)
  const text = useSyncExternalStore(
    (listener) => states.subscribe(id, listener),
    () => JSON.stringify(countLooks(states, states.group(id))),
  )
  return JSON.parse(text) as { look: StatusLook; count: number }[]
}

export const countLooks = (states: GraphStates, nodes: GraphNode[]): { look: StatusLook; count: number }[] => {
  const counts = new Map<string, { look: StatusLook; count: number }>()
  for (const node of nodes) {
    const look = states.look(node)
    const entry = counts.get(look.word) ?? { look, count: 0 }
    entry.count += 1
    counts.set(look.word, entry)
  }
  return [...counts.values()].sort((a, b) => a.look.rank - b.look.rank)
}
