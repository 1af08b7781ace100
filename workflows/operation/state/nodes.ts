import {
  type GateStatus,
  type NodeError,
  type NodeState,
  TARGET_DRIFTED,
} from '../../../apps/shared/contracts/operations/graph.ts'
import { backoffOf } from '../rules/nodes.ts'
import type { Change, Role } from './events.ts'
import { item } from './graph.ts'
import {
  BAD,
  type Doing,
  type GateRun,
  GOOD,
  type NodeRun,
  OPEN,
  type Settled,
  type State,
  type Wanted,
} from './types.ts'

const FLYING: ReadonlySet<Doing> = new Set<Doing>(['attempt', 'poll', 'catalog', 'catalog_wait'])
const ATTENTION: ReadonlySet<NodeState> = new Set<NodeState>(['failed', 'outcome_unknown', 'compensation_failed'])

/** Whether an attempt of the node is running: it then holds one of the operation's places. */
export const isFlying = (node: NodeRun): boolean => FLYING.has(node.doing)

/** Moves a node to a state and updates every counter that depends on it; records no fact. */
export const move = (s: State, i: number, state: NodeState, doing: Doing) => {
  const node = item(s.nodes, i)
  const before = isFlying(node)
  s.counts[node.state] -= 1
  s.counts[state] += 1
  const was = node.state
  if (node.doing === 'shut') delete s.shut[i]
  node.state = state
  node.doing = doing
  node.due = 0
  const after = isFlying(node)
  s.in_flight += Number(after) - Number(before)
  s.running += Number(after && state === 'running') - Number(before && was === 'running')
  if (ATTENTION.has(state)) s.attention.add(i)
  else s.attention.delete(i)
  if (doing === 'wait') s.waits.add(i)
  else s.waits.delete(i)
  if (doing === 'parked') s.parked.add(i)
  else s.parked.delete(i)
  if (doing === 'held') s.held.add(i)
  else s.held.delete(i)
  s.fresh.delete(i)
}

/** Notes a fact for record_changes. Routine facts wait a moment to be batched; others are sent at once. */
export const note = (s: State, change: Change, urgent = true) => {
  s.changes.push(change)
  if (urgent) s.urgent = true
}

export type Extra = { role?: Role; error?: NodeError; due?: number; exception?: string; again?: true }

const ROUTINE: ReadonlySet<NodeState> = new Set<NodeState>(['dispatched', 'succeeded', 'compensated'])

export const noteNode = (s: State, i: number, state: NodeState, at: number, extra: Extra = {}) => {
  const { generation, attempt, undo_attempt } = item(s.nodes, i)
  const number = extra.role === 'undo' ? undo_attempt : attempt
  const change: Change = { t: 'node', id: item(s.graph.ids, i), state, at, generation, attempt: number, ...extra }
  note(s, change, !ROUTINE.has(state))
}

/** Records the state of these nodes again, because a command without effect wrote another state into their rows. */
export const tellAgain = (s: State, node_ids: readonly string[], at: number) => {
  for (const i of node_ids.flatMap((id) => s.graph.index.get(id) ?? [])) {
    const node = item(s.nodes, i)
    if (!isFlying(node) && node.state !== 'removed') noteNode(s, i, node.state, at, { again: true })
  }
}

/** Moves a node and notes the fact. */
export const enter = (s: State, i: number, state: NodeState, at: number, extra: Extra = {}) => {
  move(s, i, state, 'idle')
  noteNode(s, i, state, at, extra)
}

/** Sets a node's settled value for its dependents; the next `sweep` checks those that this may release. */
export const settle = (s: State, i: number, value: Settled) => {
  const node = item(s.nodes, i)
  const was = node.settled
  if (was === value) return
  node.settled = value
  s.unsettled += Number(value === OPEN) - Number(was === OPEN)
  for (const d of item(s.graph.dependents, i)) {
    const dependent = item(s.nodes, d)
    dependent.open += Number(value === OPEN) - Number(was === OPEN)
    dependent.good += Number(value === GOOD) - Number(was === GOOD)
    dependent.bad += Number(value === BAD) - Number(was === BAD)
    if (value !== OPEN) s.touched.push(d)
    // The answer on its way is about the earlier end of this node.
    else if (dependent.doing === 'when' && !s.trusts_answers) dependent.doing = 'idle'
  }
}

/** Whether a node's join releases it, can never do so, or is still open. */
const joinOf = (s: State, i: number): 'go' | 'never' | 'wait' => {
  const { open, good, bad } = item(s.nodes, i)
  switch (item(s.graph.profiles, i).join) {
    case 'all':
      return bad > 0 ? 'never' : open === 0 ? 'go' : 'wait'
    case 'any':
      return open > 0 ? 'wait' : good > 0 || bad === 0 ? 'go' : 'never'
    case 'settled':
      return open === 0 ? 'go' : 'wait'
  }
}

/** Checks every node whose dependencies moved, without recursion: a chain of thousands may fall at once. */
export const sweep = (s: State, at: number) => {
  for (let i = s.touched.pop(); i !== undefined; i = s.touched.pop()) consider(s, i, at)
}

/** A person no longer insists that the node runs whatever became of those before it. */
export const desist = (s: State, i: number) => {
  s.insisted = s.insisted.filter((other) => other !== i)
}

/** Checks a pending node: it proceeds, is skipped because its inputs will never come, or keeps waiting. */
const consider = (s: State, i: number, at: number) => {
  const node = item(s.nodes, i)
  if (node.state !== 'pending' || node.doing !== 'idle' || s.control === 'cancel') return
  const insisted = s.insisted.includes(i)
  const join = insisted ? (node.open > 0 ? 'wait' : 'go') : joinOf(s, i)
  if (join === 'wait') return
  if (insisted) desist(s, i)
  if (join === 'never') {
    enter(s, i, 'skipped', at)
    settle(s, i, BAD)
  } else if (item(s.graph.profiles, i).when) {
    node.doing = 'when'
    note(s, { t: 'when', id: item(s.graph.ids, i) })
  } else toGate(s, i, at)
}

/**
 * A node whose join and condition are met goes to its gates, or becomes ready. A gate that was rejected or expired
 * between its dispatch and its claim fails it now.
 */
export const toGate = (s: State, i: number, at: number) => {
  const node = item(s.nodes, i)
  if (node.closed_gates === 0) return toReady(s, i)
  const gates = item(s.graph.gates_of, i).map((g) => item(s.gates, g))
  const refusing = gates.find(({ status, on_reject }) => on_reject === 'fail_nodes' && isRefused(status))
  if (refusing && !s.gates_once) return fail(s, i, refusedBy(refusing), at)
  enter(s, i, 'gated', at)
  for (const gate of gates) {
    if (mayOpen(s, gate)) openGate(s, gate)
  }
}

/** A gate that binds outputs opens once each of these nodes is settled: nobody approves what is not there yet. */
const mayOpen = (s: State, { status, asked, binds = [] }: GateRun): boolean =>
  status === 'armed' && !asked && (s.opens_early || binds.every((i) => item(s.nodes, i).settled !== OPEN))

const openGate = (s: State, gate: GateRun) => {
  gate.asked = true
  note(s, { t: 'gate_open', gate_id: gate.gate_id, round: gate.round })
}

/** Opens gates whose last bound output has arrived, or that were armed again, while a guarded node waits at them. */
export const openGates = (s: State) => {
  for (const gate of s.gates)
    if (gate.binds && mayOpen(s, gate) && gate.guards.some((i) => item(s.nodes, i).state === 'gated')) openGate(s, gate)
}

export const isRefused = (status: GateStatus): boolean => status === 'rejected' || status === 'expired'

export const refusedBy = ({ gate_id, status }: Pick<GateRun, 'gate_id' | 'status'>): NodeError => ({
  class: 'rejected',
  message: `Gate ${gate_id} ${status === 'expired' ? status : `was ${status}`}.`,
  retryable: false,
  hint: 'Retry the node to open the gate again.',
})

export const toReady = (s: State, i: number) => {
  const held = s.holds[i] !== undefined
  move(s, i, 'ready', held ? 'held' : 'idle')
  s.fresh.add(i)
  if (!held) queue(s, i)
}

/** Tells the agent that may have the attempt to stop; the activity knows whether there is one. */
export const tellAgent = (s: State, i: number) => {
  const { state, doing, attempt, undo_attempt } = item(s.nodes, i)
  const undo = state === 'compensating'
  if ((doing !== 'attempt' && doing !== 'poll') || !(undo || item(s.graph.profiles, i).executor === 'external')) return
  const node_id = item(s.graph.ids, i)
  s.out.push({ type: 'cancel_attempt', node_id, role: undo ? 'undo' : 'run', attempt: undo ? undo_attempt : attempt })
}

/** A node that waited for a time or an answer claims again. */
export const askAgain = (s: State, i: number, at: number) => {
  const { state, closed_gates } = item(s.nodes, i)
  if (state === 'compensating') {
    move(s, i, state, 'idle')
    s.undo_ready.push(i)
  } else if (state === 'backoff' && closed_gates > 0 && !s.gates_once) toGate(s, i, at)
  else if (state === 'backoff' || state === 'ready') toReady(s, i)
}

const queue = (s: State, i: number) => {
  if (item(s.graph.profiles, i).kind === 'task') s.ready.push(i)
  else s.instant.push(i)
}

export const setDue = (s: State, i: number, due: number) => {
  item(s.nodes, i).due = due
  s.dues.push(due, i)
}

/** A definite success: settled as good. */
export const succeed = (s: State, i: number, at: number, extra: Extra = {}) => {
  item(s.nodes, i).error = null
  enter(s, i, 'succeeded', at, extra)
  settle(s, i, GOOD)
}

/** Retries after the backoff if the failure allows it; otherwise the node has failed and its policy decides. */
export const failAttempt = (s: State, i: number, error: NodeError, at: number, retry_after_s = 0) => {
  const node = item(s.nodes, i)
  const { retry } = item(s.graph.profiles, i)
  const again = retry.retry_on?.length ? retry.retry_on.includes(error.class) : error.retryable
  if (!again || error.class === TARGET_DRIFTED || node.tries >= retry.max_attempts || s.control === 'cancel')
    return fail(s, i, error, at)
  const due = at + 1000 * Math.max(backoffOf(retry, node.tries), retry_after_s)
  node.error = error
  enter(s, i, 'backoff', at, { error, due })
  setDue(s, i, due)
}

/** A definite end without success: the node's `on_failure` decides the effect on the rest. */
export const fail = (s: State, i: number, error: NodeError, at: number, extra: Extra = {}) => {
  const node = item(s.nodes, i)
  // A person must look at a target that is not as planned, whatever `on_failure` says.
  const drifted = error.class === TARGET_DRIFTED
  const on_failure = drifted ? 'hold' : item(s.graph.profiles, i).on_failure
  const passedOver = s.control !== 'cancel' && (on_failure === 'tolerate' || on_failure === 'skip_dependents')
  node.error = error
  node.exception ||= passedOver
  enter(s, i, 'failed', at, { ...extra, error, ...(passedOver && { exception: on_failure }) })
  if (s.control === 'cancel') return
  if (passedOver) s.attention.delete(i)
  if (on_failure === 'tolerate') return settle(s, i, GOOD)
  if (on_failure === 'skip_dependents') settle(s, i, BAD)
  else if (on_failure === 'hold') holdBack(s, i, drifted)
  else if (s.wanted?.to !== 'cancel') {
    const mode = on_failure === 'compensate' ? 'compensate' : 'graceful'
    s.wanted = {
      to: 'cancel',
      mode,
      ending: { status: 'failed', reason: 'node_failed' },
      node: i,
      asked: false,
      after_seq: 0,
    }
  }
  overspend(s, i)
}

/** The reason of an end by the operation's own deadline. */
export const DEADLINE = 'deadline'

/** Pauses once more tasks fail, or end unknown, than the plan allows; during a pause it is noted for the resume. */
const overspend = (s: State, i: number) => {
  const waits = s.control !== 'run' || s.wanted !== null
  if (s.overspent || s.control === 'cancel' || (waits && s.out_of_order) || !isOverspent(s)) return
  if (waits) s.overspent = true
  else s.wanted = { to: 'pause', reason: 'failure_budget', node: i, asked: false, after_seq: 0 }
}

/** Failures that a step tolerates do not count. */
const isOverspent = ({ nodes, failure_budget, graph }: State): boolean =>
  failure_budget !== null &&
  nodes.filter(
    ({ state, settled }, i) =>
      (state === 'outcome_unknown' || (state === 'failed' && settled !== GOOD)) &&
      item(graph.profiles, i).kind === 'task',
  ).length > failure_budget

/** A waiting swap is made only if its reason remains: people may have dealt with the failure or moved the deadline. */
export const reviewWanted = (s: State, at: number) => {
  if (s.out_of_order || s.control !== 'run') return
  const { wanted } = s
  if (wanted && !wanted.asked && isSettled(s, wanted, at)) s.wanted = null
  if (s.wanted !== null || !s.overspent) return
  s.overspent = false
  overspend(s, -1)
}

const isSettled = (s: State, wanted: Wanted, at: number): boolean => {
  if (wanted.to === 'pause' && wanted.reason === 'failure_budget') return !isOverspent(s)
  if (wanted.to === 'cancel' && wanted.ending.reason === DEADLINE) return s.deadline > at && !s.as_it_came
  return wanted.node >= 0 && !ATTENTION.has(item(s.nodes, wanted.node).state)
}

const holdBack = (s: State, i: number, drifted: boolean) => {
  if ((s.pause_on_failure || drifted) && s.wanted === null)
    s.wanted = { to: 'pause', reason: drifted ? 'target_drift' : 'failed_node', node: i, asked: false, after_seq: 0 }
}

/** It is unknown whether it took effect: a person decides, and it is never repeated silently. */
export const loseSight = (s: State, i: number, error: NodeError, at: number) => {
  item(s.nodes, i).error = error
  enter(s, i, 'outcome_unknown', at, { error })
  overspend(s, i)
}

/** Canceled before it began; one that had begun may have taken effect, and nothing will repeat it. */
export const stopHere = (s: State, i: number, at: number) => {
  const node = item(s.nodes, i)
  if (!node.reopen) return enter(s, i, 'cancelled', at)
  node.reopen = false
  const message = 'The worker was lost while it ran, and the operation was cancelled before it could be repeated.'
  loseSight(s, i, { class: 'cancelled', message, retryable: false }, at)
}
