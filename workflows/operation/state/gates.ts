import type { GateStatus } from '../../../apps/shared/contracts/operations/graph.ts'
import type { GatesNow } from '../messages.ts'
import type { RecordResult } from './events.ts'
import { item } from './graph.ts'
import { fail, isRefused, move, note, noteNode, refusedBy, toReady } from './nodes.ts'
import type { GateRun, State } from './types.ts'

/** How long a gate waits before it asks again about a time that is not yet over on Postgres's clock. */
const AGAIN_MS = 1000

/** Whether a gate lets its guarded nodes start. */
export const isPassed = (status: GateStatus): boolean => status === 'approved' || status === 'bypassed'

/** Takes a gate's state from the rows. Earlier rounds are outdated; within one, a decided status never changes back. */
export const setGate = (s: State, g: number, status: GateStatus, round: number, at: number) => {
  const gate = item(s.gates, g)
  if (round < gate.round || (round === gate.round && isDecided(gate.status) && status !== gate.status)) return
  const was = gate.status
  const news = round !== gate.round || status !== was
  gate.round = round
  gate.status = status
  // A bypass stays an exception, even if the gate is decided again.
  if (was === 'bypassed' && status !== was) s.overridden = true
  if (news) {
    gate.asked = false
    gate.deadline = 0
    gate.escalation = 0
  }
  if (isPassed(was) !== isPassed(status)) shift(s, gate, isPassed(status) ? -1 : 1, at)
  if (news && status === 'armed') reopen(s, gate)
  if (news && isRefused(status)) close(s, gate, at)
}

const isDecided = (status: GateStatus): boolean => status !== 'armed' && status !== 'waiting'

/** Sets the deadline of a waiting gate; 0: it waits forever. */
const setDeadline = (s: State, g: number, deadline: number) => {
  const gate = item(s.gates, g)
  gate.deadline = gate.status === 'waiting' ? deadline : 0
  if (gate.deadline > 0) s.dues.push(gate.deadline, -1 - g)
}

const shift = (s: State, gate: GateRun, by: 1 | -1, at: number) => {
  for (const i of gate.guards) shiftNode(s, i, by, at)
}

const shiftNode = (s: State, i: number, by: 1 | -1, at: number) => {
  const node = item(s.nodes, i)
  node.closed_gates += by
  if (node.state === 'gated' && node.closed_gates === 0) toReady(s, i)
  else if (node.state === 'ready' && node.closed_gates > 0) {
    move(s, i, 'gated', 'idle')
    noteNode(s, i, 'gated', at)
  }
}

/** Makes a gate guard one more node. */
export const guard = (s: State, g: number, i: number, at: number) => {
  const gate = item(s.gates, g)
  if (gate.guards.includes(i)) return
  // Keeps the order of a reloaded graph, so that a run continues in the same way after it was unloaded.
  insert(gate.guards, i)
  insert(item(s.graph.gates_of, i), g)
  if (!isPassed(gate.status)) shiftNode(s, i, 1, at)
}

const insert = (sorted: number[], value: number) => {
  const place = sorted.findIndex((other) => other > value)
  sorted.splice(place < 0 ? sorted.length : place, 0, value)
}

/** Armed again while a guarded node waits at it: asks for it to be opened at once. */
const reopen = (s: State, gate: GateRun) => {
  if (!gate.guards.some((i) => item(s.nodes, i).state === 'gated') || (gate.binds && !s.opens_early)) return
  gate.asked = true
  note(s, { t: 'gate_open', gate_id: gate.gate_id, round: gate.round })
}

/** Rejected or expired: the policy's `on_reject` decides the effect on the guarded nodes. */
const close = (s: State, gate: GateRun, at: number) => {
  if (s.control === 'cancel' || gate.on_reject === 'hold') return
  if (gate.on_reject === 'cancel_operation') {
    if (s.wanted?.to === 'cancel') return
    const ending = { status: 'failed', reason: `gate_${gate.status}` } as const
    s.wanted = { to: 'cancel', mode: 'graceful', ending, node: -1, asked: false, after_seq: 0 }
    return
  }
  for (const i of gate.guards) {
    const { state } = item(s.nodes, i)
    const waits = state === 'pending' || state === 'gated' || state === 'ready'
    if (waits || (state === 'backoff' && !s.gates_once)) fail(s, i, refusedBy(gate), at)
  }
}

/** A waiting gate is due: Postgres decides by its own clock whether it expires or asks more people. */
export const gateDue = (s: State, g: number, at: number) => {
  const gate = item(s.gates, g)
  if (gate.status !== 'waiting' || gate.asked) return
  const isOver = (time: number) => time > 0 && time <= at
  const t = isOver(gate.deadline) ? 'gate_expire' : isOver(gate.escalation) ? 'gate_escalate' : undefined
  if (!t) return
  gate.asked = true
  note(s, { t, gate_id: gate.gate_id, round: gate.round })
}

/** Takes the result of record_changes after it opened, expired or escalated gates. */
export const gateRecorded = (
  s: State,
  { gate_id, status, round, deadline_at, escalates_at = null }: RecordResult['gates'][number],
  at: number,
) => {
  const g = s.graph.gate_index.get(gate_id)
  if (g === undefined) return
  const gate = item(s.gates, g)
  // If a time seems over but the row says otherwise, the clocks differ slightly: ask again soon.
  const due = gate.asked && gate.status === 'waiting' && gate.deadline + gate.escalation > 0
  const soon = (time: string | null) => (time === null ? 0 : Math.max(Date.parse(time), due ? at + AGAIN_MS : 0))
  const was = gate.status
  gate.asked = false
  setGate(s, g, status, round, at)
  // The report of this batch still says that the gate waits, and no other fact may follow, such as by another gate.
  if (was === 'waiting' && gate.status !== 'waiting' && !s.expires_unsaid) s.urgent = true
  if (gate.status !== 'waiting') return
  setDeadline(s, g, soon(deadline_at))
  gate.escalation = soon(escalates_at)
  if (gate.escalation > 0) s.dues.push(gate.escalation, -1 - g)
}

/** Asks the row of a gate that waits in a new round for its times. */
export const askTimes = (s: State, g: number) => {
  const gate = item(s.gates, g)
  if (gate.status !== 'waiting' || gate.asked) return
  gate.asked = true
  note(s, { t: 'gate_open', gate_id: gate.gate_id, round: gate.round })
}

/** The operation is canceled or over: its gates ask no one. */
export const cancelGates = (s: State) => {
  for (const gate of s.gates) {
    if (gate.status !== 'armed' && gate.status !== 'waiting') continue
    gate.status = 'cancelled'
    gate.deadline = 0
    gate.escalation = 0
    gate.asked = false
  }
}

/** Takes over the state of these gates from the rows, with their deadlines. */
export const takeGates = (s: State, gates: GatesNow = {}, at: number) => {
  for (const [gate_id, { status, round, deadline_at = null }] of Object.entries(gates)) {
    const g = s.graph.gate_index.get(gate_id)
    if (g === undefined) continue
    setGate(s, g, status, round, at)
    if (deadline_at !== null) setDeadline(s, g, Date.parse(deadline_at))
    askTimes(s, g)
  }
}
