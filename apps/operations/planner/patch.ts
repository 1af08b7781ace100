import type { GatePolicy, PlanGate, PlanNode } from '../../shared/contracts/operations/graph.ts'
import type { PatchChange } from '../../shared/contracts/operations/patches.ts'
import { digest } from '../../shared/data/digest.ts'
import type { Violation } from '../../shared/errors.ts'
import { coneOf, inRankOrder, scheduleOf, timingOf } from '../graph/graph.ts'
import { checkSoundness } from '../graph/soundness.ts'
import { unshownPreviews } from '../packs/previews.ts'
import { gatesFor, type Weight, weigh } from './bind.ts'
import { entryPlace } from './gates.ts'
import { editGraph, type PatchContext, type Running } from './patch.edit.ts'
import { acts } from './risk.ts'

export type Patched = {
  /** In rank order. */
  nodes: PlanNode[]
  gates: PlanGate[]
  max_parallel: number
  /** Existing nodes that are changed or removed, or whose gates change. */
  touched: string[]
  added: string[]
  removed: string[]
  added_gates: string[]
  removed_gates: string[]
  /** Policies of the gates that must agree to the patch. */
  required: GatePolicy[]
  violations: Violation[]
  /** The graph's weight as a plan; undefined if the patch only removes nodes. */
  weight: Weight | undefined
}

/**
 * Returns the graph that results from a patch to a running one, with every reason why it could not run (operations.md
 * 2.6). The same limits apply as to a plan of that graph: added nodes get the gates that a plan would have got. Pure:
 * the proposal, each vote and the application get the same result.
 */
export const applyPatch = (running: Running, changes: readonly PatchChange[], context: PatchContext): Patched => {
  const edit = editGraph(running, changes, context)
  const violations = [...edit.violations]
  const nodes = inRankOrder([...edit.nodes.values()])
  const known = new Set(context.targets.map(({ resource_id }) => resource_id))
  const existed = new Set(running.nodes.map(({ node_id }) => node_id))
  const brought = nodes.filter(({ node_id }) => edit.added.has(node_id) || edit.touched.has(node_id))
  const weight = brought.length > 0 ? weigh(context, { ...context, nodes }) : undefined
  const standing = [...edit.gates.values()]
  const gates = weight
    ? bindBrought(running, { nodes, gates: standing, brought, weight }, context, violations)
    : standing
  const guarded = gates.flatMap(({ gate_id, guards }) => {
    const known = new Set(edit.gates.get(gate_id)?.guards)
    return guards.filter((id) => !known.has(id))
  })
  const touched = [...new Set([...edit.touched, ...guarded])].filter((id) => existed.has(id))
  const left = new Set(gates.map(({ gate_id }) => gate_id))
  const before = new Set(running.gates.map(({ gate_id }) => gate_id))
  const patched = {
    nodes,
    gates,
    max_parallel: edit.max_parallel,
    touched,
    added: [...edit.added],
    removed: [...edit.removed],
    added_gates: gates.flatMap(({ gate_id }) => (before.has(gate_id) ? [] : [gate_id])),
    removed_gates: running.gates.flatMap(({ gate_id }) => (left.has(gate_id) ? [] : [gate_id])),
    weight,
  }
  const { programs, hasPool } = context
  const sound = checkSoundness(nodes, gates, { ...context.limits, programs, hasPool }, (id) => known.has(id))
  const reached = reachedBy(running, patched, brought)
  violations.push(
    ...sound
      .filter((found) => !isPast(found, running.begun, edit.touched))
      .map((found) => ofCompensation(found, running.begun)),
    ...weakened(running, nodes, reached),
  )
  for (const { preview, node_id } of unshownPreviews(gates, nodes, brought, running.nodes))
    violations.push({
      pointer: `/nodes/${node_id}/with`,
      code: 'preview_unshown',
      message: `No gate before "${node_id}" shows "${preview}", which it carries out. Add a gate before it in the same patch.`,
    })
  return {
    ...patched,
    required: requiredBy(reached),
    violations: [...new Map(violations.map((entry) => [`${entry.code} ${entry.pointer}`, entry])).values()],
  }
}

type Bringing = { nodes: PlanNode[]; gates: PlanGate[]; brought: PlanNode[]; weight: Weight }

/**
 * Returns all gates of the new graph. Those that policies demand guard all that the patch adds. A freeze that the
 * operation was never asked about holds its nodes at the claim; approving it for some nodes would let the others pass.
 */
const bindBrought = (
  running: Running,
  { nodes, gates, brought, weight }: Bringing,
  context: PatchContext,
  violations: Violation[],
): PlanGate[] => {
  const entry = brought.map(({ node_id }) => node_id)
  const asked = new Set(running.gates.flatMap(({ kind, policy }) => (kind === 'freeze' ? [policy.key] : [])))
  const freezes = context.library.freezes.filter(({ freeze_id }) => asked.has(freeze_id))
  const { p90_s } = scheduleOf(nodes, timingOf(context))
  const places = [entryPlace(entry)]
  const spent = new Set([...running.spent, ...running.gates.map(({ gate_id }) => gate_id)])
  const guarded = { nodes, gates, places, entry, until_s: p90_s, spent, running }
  const bound = gatesFor({ ...context, library: { ...context.library, freezes } }, guarded, weight, [], violations)
  // Existing gates keep their policy as it was read; whether silence may still approve is checked at their deadline.
  const kept = new Map(running.gates.map(({ gate_id }) => [gate_id, gates.find((gate) => gate.gate_id === gate_id)]))
  return bound.map((gate) => ({ ...gate, ...kept.get(gate.gate_id), guards: gate.guards }))
}

/** Rules for inputs may be newer than a node that has begun: they bind only the inputs that a retry replaces. */
const isPast = ({ code, pointer }: Violation, begun: ReadonlySet<string>, touched: ReadonlySet<string>): boolean => {
  const [, , id = '', part] = pointer.split('/')
  return code === 'inputs_invalid' && begun.has(id) && !(touched.has(id) && part === 'with')
}

/** An undo needs a removed node. The fault is the compensation's, because the succeeded node can no longer change. */
const ofCompensation = (found: Violation, begun: ReadonlySet<string>): Violation => {
  const [, , id = '', part] = found.pointer.split('/')
  return found.code === 'unknown_reference' && part === 'compensate' && begun.has(id)
    ? { ...found, code: 'compensation_broken' }
    : found
}

type Reached = {
  gate: Running['gates'][number]
  /** Nodes behind the gate, before and after the patch. */
  before: Set<string>
  after: Set<string>
  /** Nodes behind the gate that the patch changes, adds or removes. */
  within: string[]
  /** Added nodes that are not behind the gate, but act on the targets of nodes that it guards. */
  beside: string[]
}

/** Returns how a patch affects each existing gate. */
const reachedBy = (
  running: Running,
  { nodes, gates, touched, added }: Pick<Patched, 'nodes' | 'gates' | 'touched' | 'added'>,
  brought: PlanNode[],
): Reached[] =>
  running.gates.map((gate) => {
    const now = gates.find(({ gate_id }) => gate_id === gate.gate_id)
    const before = coneOf(running.nodes, gate.guards)
    const after = now ? coneOf(nodes, now.guards) : new Set<string>()
    const guarded = [...running.nodes, ...nodes].filter(({ node_id }) => before.has(node_id) || after.has(node_id))
    return {
      gate,
      before,
      after,
      within: [...touched, ...added].filter((id) => before.has(id) || after.has(id)),
      beside: brought
        .filter((node) => !after.has(node.node_id) && guarded.some((other) => meet(node, other)))
        .map(({ node_id }) => node_id),
    }
  })

/** Whether two nodes share a target. If one of them names none, two nodes that act may act on the same target. */
const meet = (a: PlanNode, b: PlanNode): boolean =>
  a.target_id !== undefined && b.target_id !== undefined ? a.target_id === b.target_id : acts(a) && acts(b)

/**
 * Returns what no approver of a gate can waive: nodes removed from behind a gate that a service answers or that was
 * already rejected, and nodes added beside a service's gate that do what it guards. Other gates are asked: their
 * policies are required.
 */
const weakened = (running: Running, nodes: readonly PlanNode[], reached: readonly Reached[]): Violation[] => {
  const left = new Set(nodes.map(({ node_id }) => node_id))
  return reached.flatMap(({ gate, before, after, beside }) => {
    const served = gate.kind === 'external_check'
    const beyond = served || gate.status === 'rejected' || gate.status === 'expired'
    const freed = beyond ? [...before].filter((id) => left.has(id) && !after.has(id) && !running.begun.has(id)) : []
    const around = served ? beside.filter((id) => !freed.includes(id)) : []
    const message = [
      ...(freed.length > 0 ? [`moves ${listed(freed)} out from behind a gate that no one can waive`] : []),
      ...(around.length > 0
        ? [`places ${listed(around)} beside a gate of a service; make it depend on a node that the gate guards`]
        : []),
    ].join(', and ')
    return message ? [{ pointer: `/gates/${gate.gate_id}`, code: 'gate_weakened', message }] : []
  })
}
const listed = (ids: readonly string[]): string => ids.slice(0, 5).join(', ')

/** Returns existing gates' policies that must agree: the patch changes their cones or adds like nodes beside them. */
const requiredBy = (reached: readonly Reached[]): GatePolicy[] => {
  const asked = reached.filter(
    ({ gate, within, beside }) => gate.kind !== 'external_check' && within.length + beside.length > 0,
  )
  return [...new Map(asked.map(({ gate }) => [digest(gate.policy), gate.policy])).values()]
}
