import type { CancelMode, NodeError, NodeState } from '../../../apps/shared/contracts/operations/graph.ts'
import { backoffOf } from '../rules/nodes.ts'
import { cancelGates } from './gates.ts'
import { item } from './graph.ts'
import { enter, isFlying, loseSight, move, noteNode, setDue, stopHere, tellAgent } from './nodes.ts'
import type { Ending, State } from './types.ts'

const STARTABLE: ReadonlySet<NodeState> = new Set<NodeState>(['pending', 'gated', 'ready', 'backoff'])
const RANK: Record<CancelMode, number> = { graceful: 0, compensate: 1, force: 2 }

/** Begins a cancel, or escalates a running one: graceful, then compensate, then force. */
export const beginCancel = (s: State, mode: CancelMode, ending: Ending, at: number) => {
  const first = s.control !== 'cancel'
  if (!first && s.mode !== null && RANK[mode] <= RANK[s.mode]) return
  s.control = 'cancel'
  s.mode = mode
  s.wanted = null
  s.ending ??= ending
  s.deadline = 0
  s.deadline_left = 0
  s.halt_seq = 0
  if (first) {
    s.cancelled_at = at
    cancelGates(s)
    s.holds = {}
    for (const [i, node] of s.nodes.entries())
      if (STARTABLE.has(node.state) || node.doing === 'wait') stopHere(s, i, at)
  }
  // An undo requested by a person that has not begun: only a compensating cancel resumes it.
  if (mode === 'graceful')
    for (const [i, node] of s.nodes.entries())
      if (node.state === 'compensating' && !isFlying(node)) failUndo(s, i, NOT_UNDONE, at)
  if (mode === 'force') tellToStop(s, at)
}

/** Asks attempts to stop; those that have not ended after the grace period are closed as unknown. */
const tellToStop = (s: State, at: number) => {
  s.force_at = at + s.force_grace_ms
  s.dues.push(s.force_at, FORCE_DUE)
  if (s.nodes.some(isFlying)) s.out.push({ type: 'cancel_attempts' })
  for (const i of s.nodes.keys()) tellAgent(s, i)
  for (const [node, run] of s.nodes.entries()) if (run.state === 'compensating' && !isFlying(run)) loseUndo(s, node, at)
}
/** Key in the queue of due times, besides nodes (>= 0) and gates (-1 - position). */
export const FORCE_DUE = 1e9

export const forceDue = (s: State, at: number) => {
  if (s.force_at === 0 || s.force_at > at) return
  s.force_at = 0
  const error: NodeError = {
    class: 'cancelled',
    message: 'It did not stop in time after a forced cancel: whether it took effect is unknown.',
    retryable: false,
  }
  for (const [i, node] of s.nodes.entries()) {
    if (!isFlying(node)) continue
    if (node.state === 'compensating') loseUndo(s, i, at)
    else loseSight(s, i, error, at)
  }
}

export const NOT_UNDONE: NodeError = {
  class: 'cancelled',
  message: 'The operation was cancelled before this was undone.',
  retryable: false,
}

/** Whether undos may begin: at a person's request while no cancel runs, or during a compensating cancel. */
export const mayUndo = (s: State): boolean => s.control !== 'cancel' || s.mode === 'compensate'

const loseUndo = (s: State, i: number, at: number) =>
  failUndo(s, i, { class: 'cancelled', message: 'The undo was stopped by a forced cancel.', retryable: false }, at)

/** Lays out the undo: a node once all after it are undone. After a restore, skips these and resumes one in flight. */
export const beginUndo = (s: State, at: number) => {
  s.undoing = true
  s.undo_left = 0
  for (const [i, node] of s.nodes.entries()) {
    node.undo_open = item(s.graph.dependents, i).length
    s.undo_left += Number(isUndoable(s, i))
  }
  const free: number[] = []
  for (const [i, node] of s.nodes.entries()) if (node.undo_open === 0) free.push(i)
  passUndo(s, free, at)
}

/** Whether the node succeeded and has an undo, or its undo has begun. */
const isUndoable = (s: State, i: number): boolean => {
  const { state } = item(s.nodes, i)
  if (state === 'compensating' || state === 'compensation_failed') return true
  return state === 'succeeded' && item(s.graph.profiles, i).undo
}

/** Walks back from nodes after which everything is undone. */
const passUndo = (s: State, free: number[], at: number) => {
  for (let i = free.pop(); i !== undefined; i = free.pop()) {
    if (isUndoable(s, i)) {
      if (item(s.nodes, i).state === 'succeeded') queueUndo(s, i, at)
      continue
    }
    for (const dep of item(s.graph.deps, i)) {
      const node = item(s.nodes, dep)
      node.undo_open -= 1
      if (node.undo_open === 0) free.push(dep)
    }
  }
}

/** Queues the undo of a node; it begins when there is room for it. */
export const queueUndo = (s: State, i: number, at: number) => {
  item(s.nodes, i).undo_tries = 0
  enter(s, i, 'compensating', at, { role: 'undo' })
  s.undo_ready.push(i)
}

/** This node's effect is undone, so its dependencies may be undone next, unless nodes after it are still to be undone. */
export const undone = (s: State, i: number, at: number) => {
  enter(s, i, 'compensated', at, { role: 'undo' })
  if (!s.undoing) return
  s.undo_left -= 1
  if (s.out_of_order || item(s.nodes, i).undo_open === 0) passUndo(s, [i], at)
}

/** Retries after a backoff while tries are left; otherwise the operation stays `cancelling` until a person acts. */
export const failUndoAttempt = (s: State, i: number, error: NodeError, at: number) => {
  const node = item(s.nodes, i)
  const { retry } = item(s.graph.profiles, i)
  if (!error.retryable || node.undo_tries >= retry.max_attempts || !mayUndo(s)) return failUndo(s, i, error, at)
  move(s, i, 'compensating', 'delay')
  node.error = error
  setDue(s, i, at + 1000 * backoffOf(retry, node.undo_tries))
}

export const failUndo = (s: State, i: number, error: NodeError, at: number) => {
  item(s.nodes, i).error = error
  move(s, i, 'compensation_failed', 'idle')
  noteNode(s, i, 'compensation_failed', at, { error, role: 'undo' })
}
