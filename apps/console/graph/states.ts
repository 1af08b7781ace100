import { createContext, useCallback, useContext, useRef, useSyncExternalStore } from 'react'
import { nodeLook, type StatusLook } from '../../shared/contracts/client/status.ts'
import type { Graph, GraphNode } from '../api/types.ts'
import { gateBox, gateOfBox } from './gates.ts'

/** The live states of a drawn graph. A change redraws only the box that shows it, through its subscription. */
export class GraphStates {
  private nodes = new Map<string, GraphNode>()
  private readonly members = new Map<string, string[]>()
  private gates = new Map<string, Graph['gates'][number]>()
  private readonly listeners = new Map<string, Set<() => void>>()
  /** How often each was told of. */
  private readonly told = new Map<string, number>()
  private graph: Graph | undefined

  /** Takes the newest states and notifies the boxes whose state changed, and their groups. */
  update(graph: Graph): void {
    if (graph === this.graph) return
    this.graph = graph
    const before = this.nodes
    const gatesBefore = this.gates
    this.nodes = new Map(graph.nodes.map((node) => [node.node_id, node]))
    this.gates = new Map(graph.gates.map((gate) => [gate.gate_id, gate]))
    this.members.clear()
    for (const node of graph.nodes) {
      if (node.group === null) continue
      const ids = this.members.get(node.group) ?? []
      ids.push(node.node_id)
      this.members.set(node.group, ids)
    }
    const moved = graph.gates.filter(({ gate_id, state }) => gatesBefore.get(gate_id)?.state !== state)
    for (const { gate_id } of moved) this.tell(gateBox(gate_id))
    for (const node of graph.nodes) {
      const old = before.get(node.node_id)
      const same = old !== undefined && SHOWN.every((member) => old[member] === node[member])
      if (same && !moved.some(({ gate_id }) => node.gates.includes(gate_id))) continue
      this.tell(node.node_id)
      if (node.group !== null) this.tell(node.group)
    }
  }

  node(id: string): GraphNode | undefined {
    return this.nodes.get(id)
  }

  gate(id: string): Graph['gates'][number] | undefined {
    return this.gates.get(id)
  }

  look(node: GraphNode): StatusLook {
    return nodeLook(
      node.state,
      node.gates.some((gate) => this.gates.get(gate)?.state === 'waiting'),
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

  /** Another number whenever what one of these nodes shows has changed. */
  news(nodes: readonly (GraphNode | undefined)[]): number {
    return nodes.reduce((sum, node) => sum + (this.told.get(node?.node_id ?? '') ?? 0), 0)
  }

  private tell(id: string): void {
    this.told.set(id, (this.told.get(id) ?? 0) + 1)
    for (const listener of this.listeners.get(id) ?? []) listener()
  }
}

/** The members of a node that its boxes and cells show. */
const SHOWN = ['state', 'attempt', 'ran_ms', 'held_by_patch', 'exception'] as const

export const StatesContext = createContext(new GraphStates())

/** The states of a graph that is read again and again: one object for as long as the drawing lives. */
export const useLiveStates = (graph: Graph): GraphStates => {
  const states = useRef<GraphStates>(undefined)
  states.current ??= new GraphStates()
  states.current.update(graph)
  return states.current
}

export const useNodeState = (id: string): { node: GraphNode | undefined; look: StatusLook | undefined } => {
  const states = useContext(StatesContext)
  const listen = useCallback((listener: () => void) => states.subscribe(id, listener), [states, id])
  const node = useSyncExternalStore(listen, () => states.node(id))
  // A gate that begins to wait changes the look of a node, but not the node.
  const look = useSyncExternalStore(listen, () => node && states.look(node))
  return { node, look }
}

/** The live state of a gate, by its box id. */
export const useGateState = (box_id: string): Graph['gates'][number] | undefined => {
  const states = useContext(StatesContext)
  return useSyncExternalStore(
    (listener) => states.subscribe(box_id, listener),
    () => states.gate(gateOfBox(box_id) ?? ''),
  )
}

/** The live states of these nodes. One subscription for all: a row of cells is drawn with each scroll. */
export const useNodes = (planned: readonly (GraphNode | undefined)[]): (GraphNode | undefined)[] => {
  const states = useContext(StatesContext)
  const listen = useCallback(
    (listener: () => void) => {
      const ends = planned.flatMap((node) => (node ? [states.subscribe(node.node_id, listener)] : []))
      return () => {
        for (const end of ends) end()
      }
    },
    [states, planned],
  )
  useSyncExternalStore(listen, () => states.news(planned))
  return planned.map((node) => node && states.node(node.node_id))
}

/** How many nodes of a group are in each state, worst first. The snapshot is a text, so equal counts do not redraw. */
export const useGroupCounts = (id: string): { look: StatusLook; count: number }[] => {
  const states = useContext(StatesContext)
  const text = useSyncExternalStore(
    (listener) => states.subscribe(id, listener),
    () => JSON.stringify(countLooks(states, states.group(id))),
  )
  return JSON.parse(text) as { look: StatusLook; count: number }[]
}

/** Whether a node failed, or may have. */
export const isBroken = (states: GraphStates, node_id: string): boolean => {
  const node = states.node(node_id)
  return node !== undefined && ['failed', 'unknown'].includes(states.look(node).word)
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

type Pointed = { at?: string | undefined; selected?: string | undefined; only?: string | undefined }

/**
 * The box that the keys have reached, the selected box, and the state that the legend singles out. They are no data of
 * the boxes: React Flow would adopt and draw every box anew at each key.
 */
export class Emphasis {
  private pointed: Pointed = {}
  private readonly listeners = new Set<() => void>()

  point(pointed: Pointed): void {
    this.pointed = pointed
    for (const listener of this.listeners) listener()
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener)
    return () => void this.listeners.delete(listener)
  }

  /** The classes of a box in the state `word`. */
  classes(id: string, word: string | undefined): string {
    const { at, selected, only } = this.pointed
    const dim = word !== undefined && only !== undefined && only !== word
    return [at === id && 'at', selected === id && 'chosen', dim && 'dim'].filter(Boolean).join(' ')
  }
}

export const EmphasisContext = createContext(new Emphasis())

export const useEmphasis = (id: string, word?: string): string => {
  const emphasis = useContext(EmphasisContext)
  return useSyncExternalStore(emphasis.subscribe, () => emphasis.classes(id, word))
}
