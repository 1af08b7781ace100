import type { NodeError } from '../../../apps/shared/contracts/operations/graph.ts'
import { failUndo, failUndoAttempt, mayUndo, NOT_UNDONE, undone } from './compensate.ts'
import type { AttemptResult, CatalogResult, Event, Refusal, Role } from './events.ts'
import { setGate } from './gates.ts'
import { item } from './graph.ts'
import { leasesLost } from './leases.ts'
import {
  askAgain,
  type Extra,
  fail,
  failAttempt,
  isFlying,
  loseSight,
  move,
  note,
  noteNode,
  setDue,
  settle,
  stopHere,
  succeed,
  toGate,
  toReady,
} from './nodes.ts'
import { takeOut } from './patch.ts'
import { GOOD, type NodeRun, type State } from './types.ts'

/** Milliseconds before another claim if no command explains the refusal; the last one is for an absent catalog. */
const CLAIM_AGAIN_MS = 1000
/** How long to wait for a command that a claim knew of: it may be withdrawn before it is sent. */
const COMMAND_LOST_MS = 5000
const CATALOG_AGAIN_MS = 30_000
export const CATALOG_CONFLICT = 'catalog_conflict'

/** Dispatches an attempt. Its number grows only after the previous one's definite end; an open one keeps its number. */
export const dispatch = (s: State, i: number, role: Role, at: number) => {
  const node = item(s.nodes, i)
  const step = node.reopen ? 0 : 1
  node.reopen = false
  node.slice = 0
  if (role === 'run') {
    node.attempt += step
    node.tries += step
    move(s, i, 'running', 'attempt')
    noteNode(s, i, 'dispatched', at)
  } else {
    node.undo_attempt += step
    node.undo_tries += step
    move(s, i, 'compensating', 'attempt')
  }
  send(s, i, role)
}

/** Sends the next slice of an attempt that answered "pending". This is no new start, so no pause or cancel holds it. */
const nextSlice = (s: State, i: number) => {
  const node = item(s.nodes, i)
  node.slice += 1
  move(s, i, node.state, 'attempt')
  send(s, i, node.state === 'compensating' ? 'undo' : 'run')
}

const send = (s: State, i: number, role: Role) => {
  const node = item(s.nodes, i)
  s.activities += 1
  s.out.push({
    type: 'run',
    node: i,
    node_id: item(s.graph.ids, i),
    name: item(s.graph.names, i),
    role,
    generation: node.generation,
    attempt: role === 'run' ? node.attempt : node.undo_attempt,
    slice: node.slice,
    slice_s: item(s.graph.profiles, i).slice_s,
  })
}

/** Takes an activity's result. A result that is not of the attempt in flight is outdated. */
export const attemptEnded = (s: State, event: Extract<Event, { type: 'attempt_ended' }>) => {
  s.activities -= 1
  const node = item(s.nodes, event.node)
  const role = roleOf(node)
  const attempt = role === 'run' ? node.attempt : node.undo_attempt
  if (node.doing !== 'attempt' || role !== event.role || attempt !== event.attempt || node.slice !== event.slice) return
  endAttempt(s, event.node, event.result, event.at)
}

export const endAttempt = (s: State, i: number, result: AttemptResult, at: number) => {
  const node = item(s.nodes, i)
  if (result.status === 'pending') {
    move(s, i, node.state, 'poll')
    return setDue(s, i, at + 1000 * result.poll_after_s)
  }
  if (node.state === 'compensating') return endUndo(s, i, result, at)
  switch (result.status) {
    case 'succeeded':
      return finish(s, i, result.ended_at)
    case 'failed':
      return failAttempt(s, i, result.error, at, result.retry_after_s)
    case 'unknown':
      return loseSight(s, i, result.error, at)
    case 'dropped':
      return loseSight(s, i, TAKEN_OVER, at)
    case 'refused':
      return refused(s, i, result.refusal, at)
  }
}

const TAKEN_OVER: NodeError = {
  class: 'cancelled',
  message: 'The attempt was closed during the run; whether it took effect is unknown.',
  retryable: false,
}

const endUndo = (s: State, i: number, result: Exclude<AttemptResult, { status: 'pending' }>, at: number) => {
  switch (result.status) {
    case 'succeeded':
      return finishUndo(s, i, result.ended_at)
    case 'failed':
      return failUndoAttempt(s, i, result.error, at)
    case 'unknown':
      return failUndo(s, i, result.error, at)
    case 'dropped':
      return failUndo(s, i, TAKEN_OVER, at)
    case 'refused': {
      const node = item(s.nodes, i)
      giveBack(s, i, 'undo', result.refusal)
      if (result.refusal.reason === 'lease_lost') leasesLost(s)
      node.generation = Math.max(node.generation, result.refusal.generation)
      if (!mayUndo(s)) return failUndo(s, i, s.mode === 'force' ? TAKEN_OVER : NOT_UNDONE, at)
      if (shut(s, i, result.refusal, at)) return
      move(s, i, node.state, 'delay')
      return setDue(s, i, at + CLAIM_AGAIN_MS)
    }
  }
}

/** Whether the node may start only later. A reason older than the known calendar or places no longer counts. */
const shut = (s: State, i: number, { closure, seq }: Refusal, at: number): boolean => {
  if (!closure || seq < s.calendar_seq) return false
  const { state } = item(s.nodes, i)
  move(s, i, state === 'compensating' ? state : 'ready', 'shut')
  s.shut[i] = closure
  setDue(s, i, Math.max(closure.until, at + CLAIM_AGAIN_MS))
  return true
}

/** Succeeded at the target; if the node writes to the catalog, it is done once the catalog has accepted the write. */
export const finish = (s: State, i: number, at: number, extra: Extra = {}) =>
  item(s.graph.profiles, i).catalog ? applyCatalog(s, i) : succeed(s, i, at, extra)

/** Undone at the target; done once the catalog has the earlier values again. */
export const finishUndo = (s: State, i: number, at: number) =>
  item(s.graph.profiles, i).undo_catalog ? applyCatalog(s, i) : undone(s, i, at)

const roleOf = ({ state }: NodeRun): Role => (state === 'compensating' ? 'undo' : 'run')

const applyCatalog = (s: State, i: number) => {
  const node = item(s.nodes, i)
  const role = roleOf(node)
  const attempt = role === 'run' ? node.attempt : node.undo_attempt
  move(s, i, role === 'run' ? 'running' : node.state, 'catalog')
  s.activities += 1
  const { generation } = node
  s.out.push({ type: 'apply_catalog', node: i, node_id: item(s.graph.ids, i), role, generation, attempt })
}

export const catalogEnded = (s: State, event: Extract<Event, { type: 'catalog_ended' }>) => {
  s.activities -= 1
  const node = item(s.nodes, event.node)
  const role = roleOf(node)
  const attempt = role === 'run' ? node.attempt : node.undo_attempt
  if (node.doing !== 'catalog' || role !== event.role || attempt !== event.attempt) return
  const end = role === 'run' ? endCatalog : endCatalogUndo
  end(s, event.node, event.result, event.at)
}

const endCatalog = (s: State, i: number, result: CatalogResult, at: number) => {
  const id = item(s.graph.ids, i)
  switch (result.status) {
    case 'applied':
      note(s, { t: 'catalog', id, at, status: 'applied', version: result.version }, false)
      return succeed(s, i, at)
    case 'conflict':
      note(s, { t: 'catalog', id, at, status: 'conflict' })
      return loseSight(s, i, { class: CATALOG_CONFLICT, message: result.message, retryable: false }, at)
    case 'refused':
      return fail(s, i, { class: 'refused', message: result.message, retryable: false }, at)
    case 'away':
      if (s.mode === 'force')
        return loseSight(s, i, { class: 'unreachable', message: result.message, retryable: false }, at)
      move(s, i, 'running', 'catalog_wait')
      return setDue(s, i, at + CATALOG_AGAIN_MS)
  }
}

/** A person judges an undo that the catalog refuses, as for an undo that failed at its target. */
const endCatalogUndo = (s: State, i: number, result: CatalogResult, at: number) => {
  const id = item(s.graph.ids, i)
  switch (result.status) {
    case 'applied':
      note(s, { t: 'catalog', id, at, status: 'applied', version: result.version, role: 'undo' }, false)
      return undone(s, i, at)
    case 'conflict':
    case 'refused':
      note(s, { t: 'catalog', id, at, status: result.status, role: 'undo' })
      return failUndo(s, i, { class: CATALOG_CONFLICT, message: result.message, retryable: false }, at)
    case 'away':
      if (s.mode === 'force')
        return failUndo(s, i, { class: 'unreachable', message: result.message, retryable: false }, at)
      move(s, i, 'compensating', 'catalog_wait')
      return setDue(s, i, at + CATALOG_AGAIN_MS)
  }
}

/** The claim was refused: the node returns to the state of its row, and waits for the reason that the row gives. */
const refused = (s: State, i: number, refusal: Refusal, at: number) => {
  const node = item(s.nodes, i)
  giveBack(s, i, 'run', refusal)
  if (s.control === 'cancel') return stopHere(s, i, at)
  if (s.graph.removed.has(i)) {
    if (!s.out_of_order) settle(s, i, GOOD)
    return takeOut(s, i)
  }
  if (refusal.seq <= s.last_seq) {
    node.generation = Math.max(node.generation, refusal.generation)
    for (const { gate_id, status, round } of refusal.gates) {
      const g = s.graph.gate_index.get(gate_id)
      if (g !== undefined) setGate(s, g, status, round, at)
    }
  }
  if (node.closed_gates > 0) {
    move(s, i, 'pending', 'idle')
    return toGate(s, i, at)
  }
  if (s.holds[i] !== undefined) return toReady(s, i)
  if (refusal.reason === 'lease_lost') {
    leasesLost(s)
    return toReady(s, i)
  }
  if (shut(s, i, refusal, at)) return void s.fresh.add(i)
  const expected = refusal.seq > s.last_seq
  move(s, i, 'ready', expected ? 'parked' : 'delay')
  s.fresh.add(i)
  node.wait_seq = expected ? refusal.seq : 0
  setDue(s, i, at + (expected ? COMMAND_LOST_MS : CLAIM_AGAIN_MS))
  if (expected && refusal.reason === 'stopped') {
    s.halt_seq = refusal.seq
    s.halt_until = at + COMMAND_LOST_MS
  }
}

/** If no attempt began, its number is free again; an open attempt resumes later under its own number. */
const giveBack = (s: State, i: number, role: Role, { repeated }: Refusal) => {
  const node = item(s.nodes, i)
  if (repeated) node.reopen = true
  else if (role === 'run') {
    node.attempt -= 1
    node.tries -= 1
  } else {
    node.undo_attempt -= 1
    node.undo_tries -= 1
  }
}

/** The due time of a node has come. */
export const nodeDue = (s: State, i: number, at: number) => {
  const node = item(s.nodes, i)
  if (node.due === 0 || node.due > at) return
  if (s.rolling && isFlying(node)) return
  node.due = 0
  switch (node.doing) {
    case 'poll':
      return nextSlice(s, i)
    case 'catalog_wait':
      return applyCatalog(s, i)
    case 'wait':
      return succeed(s, i, at)
    default:
      askAgain(s, i, at)
  }
}
