import type { PlanGate, PlanGraph, PlanNode } from '../../shared/contracts/operations/graph.ts'
import { pick } from '../../shared/data/pick.ts'
import type { Group, PlannerInput, Scope } from './types.ts'

type Linked = Pick<PlanNode, 'node_id' | 'depends_on'>

export const byText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

/** Returns the longest chain of nodes before each node; nodes in a cycle, and all that wait for them, have none. */
export const ranksOf = (nodes: readonly Linked[]): Map<string, number> => {
  const after = dependentsOf(nodes)
  const open = new Map(nodes.map((node) => [node.node_id, new Set(node.depends_on).size]))
  const rank = new Map<string, number>()
  const queue = nodes.filter((node) => open.get(node.node_id) === 0).map((node) => node.node_id)
  for (const id of queue) rank.set(id, 0)
  const reached = new Map<string, number>()
  for (const id of queue)
    for (const next of after.get(id) ?? []) {
      reached.set(next, Math.max(reached.get(next) ?? 0, (rank.get(id) ?? 0) + 1))
      const left = (open.get(next) ?? 0) - 1
      open.set(next, left)
      if (left === 0) {
        rank.set(next, reached.get(next) ?? 0)
        queue.push(next)
      }
    }
  return rank
}

/** Returns the direct dependents of each node, in the order of the nodes. */
const dependentsOf = (nodes: readonly Linked[]): Map<string, string[]> => {
  const after = new Map<string, string[]>()
  for (const { node_id, depends_on } of nodes)
    for (const id of new Set(depends_on)) {
      const list = after.get(id)
      if (list) list.push(node_id)
      else after.set(id, [node_id])
    }
  return after
}

/** Returns nodes in rank order, equal ranks by id: the one order in which plans, drawings and rows list them. */
export const inRankOrder = (nodes: PlanNode[]): PlanNode[] => {
  const rank = ranksOf(nodes)
  const of = (node: PlanNode) => rank.get(node.node_id) ?? Number.MAX_SAFE_INTEGER
  return nodes.toSorted((a, b) => of(a) - of(b) || byText(a.node_id, b.node_id))
}

/** Returns the given nodes and everything after them. */
export const coneOf = (nodes: readonly Linked[], from: readonly string[]): Set<string> => {
  const after = dependentsOf(nodes)
  const cone = new Set(from)
  for (const id of cone) for (const next of after.get(id) ?? []) cone.add(next)
  return cone
}

export type Timing = { p50_s: number; p90_s: number }
export const DEFAULT_ESTIMATE_S = 10

/** Estimates how long a node takes: by its step's last successes, by its author, or by assumption. */
export const timingOf =
  ({ durations }: Pick<PlannerInput, 'durations'>) =>
  (node: PlanNode): Timing => {
    const known = node.step === undefined ? undefined : durations.get(node.step)
    if (known) return known
    const assumed = node.estimate_s ?? (node.kind === 'task' ? DEFAULT_ESTIMATE_S : waitOf(node))
    return { p50_s: assumed, p90_s: assumed }
  }
const waitOf = (node: PlanNode): number => {
  const { duration_s } = (node.with ?? {}) as { duration_s?: unknown }
  return node.kind === 'wait' && typeof duration_s === 'number' ? duration_s : 0
}

/** Returns the earliest start of each node and the longest chain, if no node waits for a slot or a gate. */
export const scheduleOf = (nodes: PlanNode[], timing: (node: PlanNode) => Timing) => {
  const end = new Map<string, Timing>()
  const via = new Map<string, string>()
  let last: PlanNode | undefined
  for (const node of inRankOrder(nodes)) {
    let start: Timing = { p50_s: 0, p90_s: 0 }
    for (const id of node.depends_on.toSorted(byText)) {
      const before = end.get(id)
      if (!before) continue
      if (!via.has(node.node_id) || before.p50_s > start.p50_s) {
        start = { ...before, p90_s: Math.max(start.p90_s, before.p90_s) }
        via.set(node.node_id, id)
      }
    }
    const { p50_s, p90_s } = timing(node)
    const mine = { p50_s: start.p50_s + p50_s, p90_s: start.p90_s + p90_s }
    end.set(node.node_id, mine)
    if (!last || mine.p50_s > (end.get(last.node_id)?.p50_s ?? 0)) last = node
  }
  const critical_path: string[] = []
  for (let id = last?.node_id; id !== undefined; id = via.get(id)) critical_path.unshift(id)
  const total = last && end.get(last.node_id)
  return { p50_s: total?.p50_s ?? 0, p90_s: total?.p90_s ?? 0, critical_path }
}

/** Returns the drawing of a plan; the nodes must be in rank order. */
export const drawingOf = (
  nodes: PlanNode[],
  gates: PlanGate[],
  groups: Group[],
  critical_path: string[],
  timing: (node: PlanNode) => Timing,
): PlanGraph => {
  const guarding = new Map<string, string[]>()
  for (const gate of gates) for (const id of gate.guards) guarding.set(id, [...(guarding.get(id) ?? []), gate.gate_id])
  return {
    nodes: nodes.map((node) => ({
      ...pick(node, 'node_id', 'name', 'kind', 'executor'),
      target_id: node.target_id ?? null,
      group: node.group ?? null,
      depends_on: node.depends_on,
      join: node.join,
      gates: guarding.get(node.node_id) ?? [],
      risk: node.risk ?? 0,
      on_failure: node.on_failure,
      has_compensation: node.compensate !== undefined,
      estimate_s: timing(node).p50_s,
    })),
    groups,
    gates: gates.map(({ gate_id, question, guards }) => ({ gate_id, question, guards })),
    critical_path,
  }
}

/** The part of a scope that a containing resource of each of these types fills. */
export const PLACE: Record<string, keyof Scope> = {
  'topology.region': 'region_id',
  'topology.datacenter': 'datacenter_id',
  'topology.layer': 'layer_id',
  'topology.segment': 'segment_id',
}
