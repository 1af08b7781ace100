import { NODE_STATES, type NodeState } from '../../../apps/shared/contracts/operations/graph.ts'
import type { GraphPage } from './events.ts'
import type { GateRun, Graph, NodeRun } from './types.ts'

/** Joins the pages of load_graph; positions continue from page to page. */
export const graphOf = (pages: readonly GraphPage[]): Graph => {
  const graph: Graph = {
    ids: [],
    names: [],
    index: new Map(),
    profiles: [],
    deps: [],
    dependents: [],
    gates_of: [],
    gate_index: new Map(),
    removed: new Set(),
  }
  for (const [position, gate] of (pages[0]?.head?.gates ?? []).entries()) graph.gate_index.set(gate.gate_id, position)
  for (const page of pages) {
    for (const [id, name, profile, deps, gates, removed] of page.nodes) {
      const own = page.profiles[profile]
      if (!own) throw new Error(`node ${id} has no profile`)
      if (removed) graph.removed.add(graph.ids.length)
      graph.index.set(id, graph.ids.length)
      graph.ids.push(id)
      graph.names.push(name)
      graph.profiles.push(own)
      graph.deps.push(deps)
      graph.dependents.push([])
      graph.gates_of.push(gates)
    }
  }
  for (const [node, deps] of graph.deps.entries()) for (const dep of deps) item(graph.dependents, dep).push(node)
  return graph
}

export const newNode = (deps: number, gates: number): NodeRun => ({
  state: 'pending',
  doing: 'idle',
  generation: 1,
  attempt: 0,
  tries: 0,
  undo_attempt: 0,
  undo_tries: 0,
  slice: 0,
  reopen: false,
  due: 0,
  wait_seq: 0,
  settled: 0,
  open: deps,
  good: 0,
  bad: 0,
  closed_gates: gates,
  undo_open: 0,
  exception: false,
  error: null,
})

export const gatesOf = (pages: readonly GraphPage[], graph: Graph): GateRun[] => {
  const gates = (pages[0]?.head?.gates ?? []).map(
    (spec): GateRun => ({ ...spec, guards: [], deadline: 0, escalation: 0, asked: false }),
  )
  linkGates(graph, gates, pages)
  return gates
}

/**
 * Gives each gate its guarded nodes, and those that it waits for: not removed ones, nor any that wait for the gate, be it
 * through another gate that binds what this one holds back.
 */
export const linkGates = (graph: Graph, gates: GateRun[], pages: readonly GraphPage[]): void => {
  for (const gate of gates) gate.guards = []
  for (const [node, guarding] of graph.gates_of.entries())
    for (const gate of guarding) item(gates, gate).guards.push(node)
  const bound = (pages[0]?.head?.gates ?? []).map(({ binds }) => new Set(binds))
  for (const [g, binds] of bound.entries()) {
    if (binds.size === 0) continue
    const behind = new Set(item(gates, g).guards)
    for (const i of behind) {
      for (const dependent of item(graph.dependents, i)) behind.add(dependent)
      for (const [h, others] of bound.entries())
        if (others.has(i)) for (const guarded of item(gates, h).guards) behind.add(guarded)
    }
    item(gates, g).binds = [...binds].filter((i) => !behind.has(i) && !graph.removed.has(i))
  }
}

/** Returns an element that the graph says exists: a position out of range means a broken graph. */
export const item = <T>(list: readonly T[], position: number): T => {
  const found = list[position]
  if (found === undefined) throw new Error(`position ${position} is outside of the graph`)
  return found
}

export const NO_COUNTS = () => Object.fromEntries(NODE_STATES.map((state) => [state, 0])) as Record<NodeState, number>
