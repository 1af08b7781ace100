import type { NodeState } from '../../../apps/shared/contracts/operations/graph.ts'
import { beginUndo } from './compensate.ts'
import type { GraphPage } from './events.ts'
import { isPassed, takeGates } from './gates.ts'
import { graphOf, item, linkGates, newNode } from './graph.ts'
import { isFlying, move, note, stopHere, tellAgain, toReady } from './nodes.ts'
import { GOOD, OPEN, type Patching, type State } from './types.ts'

/** States before a node's first effect: only nodes in these can be changed or removed. */
export const UNTOUCHED: ReadonlySet<NodeState> = new Set<NodeState>(['pending', 'gated', 'ready'])

/** An open patch would change these nodes: they may become ready, but do not start. */
export const hold = (s: State, patch_id: string, node_ids: readonly string[]) => {
  if (s.control === 'cancel') return
  for (const id of node_ids) {
    const i = s.graph.index.get(id)
    if (i === undefined) continue
    s.holds[i] = patch_id
    const node = item(s.nodes, i)
    if (node.state === 'ready' && !isFlying(node)) move(s, i, 'ready', 'held')
  }
}

/** The patch is decided or gone: the nodes that it held proceed. */
export const release = (s: State, patch_id: string) => {
  for (const [key, by] of Object.entries(s.holds)) {
    if (by !== patch_id) continue
    const i = Number(key)
    delete s.holds[i]
    if (item(s.nodes, i).doing === 'held') toReady(s, i)
  }
}

/** A node that a patch has removed: it never runs, and no node waits for it. */
export const takeOut = (s: State, i: number) => {
  move(s, i, 'removed', 'idle')
  const node = item(s.nodes, i)
  s.unsettled -= Number(node.settled === OPEN)
  node.settled = GOOD
}

/**
 * Takes over approved patches, one by one. The rows already have the new graph; it is loaded, and only then is the
 * command applied. A node that has moved on without a claim (a barrier, a false condition) refuses the whole patch.
 */
export const settlePatches = (s: State, at: number) => {
  for (let patch = s.patching[0]; patch; patch = s.patching[0]) {
    const changed = Object.keys(patch.generations).flatMap((id) => s.graph.index.get(id) ?? [])
    // Claims and conditions that were in flight before the hold was known return soon, without having begun.
    if (changed.some((i) => isFlying(item(s.nodes, i)) || item(s.nodes, i).doing === 'when')) return
    const begun = changed.find((i) => !UNTOUCHED.has(item(s.nodes, i).state) && item(s.nodes, i).state !== 'removed')
    if (begun !== undefined && s.control !== 'cancel') refusePatch(s, patch, item(s.graph.ids, begun), at)
    else if (s.plan_revision < patch.plan_revision) return load(s)
    else applyPatch(s, patch, at)
    s.patching.shift()
  }
  if (s.wanted_revision > s.plan_revision) load(s)
}

const load = (s: State) => {
  if (s.loading) return
  s.loading = true
  s.activities += 1
  s.out.push({ type: 'load_graph' })
}

const refusePatch = (s: State, { command_id, patch_id, generations }: Patching, node_id: string, at: number) => {
  release(s, patch_id)
  tellAgain(s, Object.keys(generations), at)
  note(s, {
    t: 'command',
    command_id,
    status: 'refused',
    category: 'patch_not_applicable',
    code: 'node_already_dispatched',
    detail: `Node "${node_id}" has gone on meanwhile.`,
  })
}

const applyPatch = (s: State, patch: Patching, at: number) => {
  for (const patch_id of [patch.patch_id, ...patch.closed]) release(s, patch_id)
  for (const [id, generation] of Object.entries(patch.generations)) {
    const i = s.graph.index.get(id)
    if (i === undefined) continue
    const node = item(s.nodes, i)
    node.generation = Math.max(node.generation, generation)
    if (s.control === 'cancel' || !UNTOUCHED.has(node.state)) continue
    move(s, i, 'pending', 'idle')
    s.touched.push(i)
  }
  takeGates(s, patch.gates, at)
  note(s, { t: 'command', command_id: patch.command_id, status: 'applied' })
}

/** Replaces the graph under the running state with the loaded one. Positions stay; new elements are appended. */
export const regraft = (s: State, pages: readonly GraphPage[], at: number) => {
  s.loading = false
  const revision = pages[0]?.plan_revision ?? 0
  if (revision <= s.plan_revision) return
  const known = s.nodes.length
  s.graph = graphOf(pages)
  for (let i = known; i < s.graph.ids.length; i++) {
    s.nodes.push(newNode(0, 0))
    s.counts.pending += 1
  }
  const head = pages[0]?.head
  for (const spec of (head?.gates ?? []).slice(s.gates.length))
    s.gates.push({ ...spec, guards: [], deadline: 0, escalation: 0, asked: false })
  linkGates(s.graph, s.gates, pages)
  s.max_parallel = head?.max_parallel ?? s.max_parallel
  adopt(s, revision, known, at)
  if (s.undoing) beginUndo(s, at)
}

/** Adapts the state to a newer graph; nodes from position `known` on are new to it. */
const adopt = (s: State, revision: number, known: number, at: number) => {
  s.plan_revision = revision
  for (const [i, node] of s.nodes.entries()) {
    const removed = s.graph.removed.has(i)
    if (removed && node.state !== 'removed' && UNTOUCHED.has(node.state)) takeOut(s, i)
    else if (!removed && node.state === 'removed') {
      move(s, i, 'pending', 'idle')
      node.settled = OPEN
    }
  }
  for (const [i, node] of s.nodes.entries()) {
    const settled = item(s.graph.deps, i).map((dep) => item(s.nodes, dep).settled)
    node.open = settled.filter((value) => value === OPEN).length
    node.good = settled.filter((value) => value === GOOD).length
    node.bad = settled.length - node.open - node.good
    node.closed_gates = item(s.graph.gates_of, i).filter((g) => !isPassed(item(s.gates, g).status)).length
    if (s.control === 'cancel' && i >= known && node.state === 'pending') stopHere(s, i, at)
    else if (node.state === 'pending') s.touched.push(i)
    else if (node.state === 'gated' && node.closed_gates === 0) toReady(s, i)
  }
  s.unsettled = s.nodes.filter((node) => node.settled === OPEN).length
}
