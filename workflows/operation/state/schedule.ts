import { roomFor } from '../../../apps/shared/contracts/engine/texts.ts'
import type { EngineStatus, NodeState, OperationEnd } from '../../../apps/shared/contracts/operations/graph.ts'
import { dispatch, nodeDue } from './attempts.ts'
import { pause } from './commands.ts'
import { beginCancel, beginUndo, FORCE_DUE, forceDue, mayUndo } from './compensate.ts'
import type { Change, RecordBatch } from './events.ts'
import { gateDue } from './gates.ts'
import { item } from './graph.ts'
import { giveBack, hasLeases } from './leases.ts'
import {
  DEADLINE,
  fail,
  move,
  note,
  noteNode,
  openGates,
  reviewWanted,
  setDue,
  succeed,
  sweep,
  toGate,
} from './nodes.ts'
import { settlePatches } from './patch.ts'
import { reportOf } from './report.ts'
import type { State } from './types.ts'

/** How long routine facts wait to be batched before they are recorded. */
const FLUSH_MS = 100

/** Advances an operation as far as possible now: due times, dispatch, undo, its end, and the facts to record. */
export const schedule = (s: State, at: number) => {
  if (s.stage === 'ended') return
  reviewWanted(s, at)
  passTime(s, at)
  settlePatches(s, at)
  if (s.stage === 'open') {
    if (s.signals.length > 0 && s.waits.size > 0) hear(s, at)
    sweep(s, at)
    if (mayDispatch(s, at) && hasLeases(s, () => isAnyIdle(s, 'ready'))) dispatchReady(s, at)
    undoReady(s, at)
    giveBack(s, () => !canMove(s))
  }
  if (!s.opens_early) openGates(s)
  askForSwap(s)
  finish(s, at)
  flush(s, at)
  wake(s, at)
}

const passTime = (s: State, at: number) => {
  for (let top = s.dues.peek(); top && top[0] <= at; top = s.dues.peek()) {
    s.dues.pop()
    const key = top[1]
    if (key < 0) gateDue(s, -1 - key, at)
    else if (key === FORCE_DUE) forceDue(s, at)
    else nodeDue(s, key, at)
  }
  if (s.deadline > 0 && s.deadline <= at && s.control === 'run' && s.wanted?.to !== 'cancel') {
    const ending = { status: 'timed_out', reason: DEADLINE } as const
    s.wanted = { to: 'cancel', mode: s.on_deadline, ending, node: -1, asked: false, after_seq: 0 }
  }
}

const mayDispatch = (s: State, at: number): boolean =>
  s.control === 'run' &&
  s.wanted === null &&
  !s.rolling &&
  (s.starts_early || !isTakenBack(s)) &&
  at >= s.not_before &&
  (s.last_seq >= s.halt_seq || at >= s.halt_until)

/** Whether a command had no effect but the rows may still contain its writes: no attempt begins on those. */
const isTakenBack = (s: State): boolean => s.taking_back || s.changes.some(isUndone)
const isUndone = (change: Change): boolean => change.t === 'command' && change.status !== 'applied'

const isAnyIdle = (s: State, state: NodeState): boolean =>
  s.counts[state] > 0 && s.nodes.some((node) => node.state === state && node.doing === 'idle')

const dispatchReady = (s: State, at: number) => {
  do {
    for (let top = s.instant.pop(); top; top = s.instant.pop()) passInstant(s, top[0], at)
    sweep(s, at)
  } while (s.instant.size > 0)
  while (s.in_flight < s.max_parallel) {
    const top = s.ready.pop()
    if (!top) return
    const node = item(s.nodes, top[0])
    if (node.state !== 'ready' || node.doing !== 'idle') continue
    // A newer graph was loaded before the command of its patch arrived, or expired.
    if (node.closed_gates > 0) toGate(s, top[0], at)
    else dispatch(s, top[0], 'run', at)
  }
}

/** Barriers and waits run here, without an activity and without taking a place. */
const passInstant = (s: State, i: number, at: number) => {
  const node = item(s.nodes, i)
  if (node.state !== 'ready' || node.doing !== 'idle') return
  if (node.closed_gates > 0 && !s.out_of_order) return toGate(s, i, at)
  const profile = item(s.graph.profiles, i)
  if (profile.kind === 'wait') return beginWait(s, i, at)
  if (profile.max_failures === null || node.bad <= profile.max_failures) return succeed(s, i, at)
  const message = `${node.bad} of ${item(s.graph.deps, i).length} before it failed; at most ${profile.max_failures} may.`
  fail(s, i, { class: 'condition_failed', message, retryable: false }, at)
}

const beginWait = (s: State, i: number, at: number) => {
  const { duration_s, until, signal } = item(s.graph.profiles, i).wait ?? {}
  move(s, i, 'running', 'wait')
  noteNode(s, i, 'running', at)
  if (duration_s !== undefined) setDue(s, i, at + 1000 * duration_s)
  else if (until !== undefined) setDue(s, i, Math.max(Date.parse(until), at))
  else if (signal !== undefined) hear(s, at)
}

/** Gives signals to the wait nodes of their name; a signal that no node waits for yet is kept. */
const hear = (s: State, at: number) => {
  for (const i of [...s.waits].sort((a, b) => a - b)) {
    const name = item(s.graph.profiles, i).wait?.signal
    const heard = name === undefined ? -1 : s.signals.indexOf(name)
    if (heard < 0) continue
    s.signals.splice(heard, 1)
    succeed(s, i, at)
  }
}

const undoReady = (s: State, at: number) => {
  if (s.rolling || !mayUndo(s)) return
  if (s.control === 'cancel') {
    if (s.running > 0) return
    if (!s.undoing) beginUndo(s, at)
  }
  if (!hasLeases(s, () => isAnyIdle(s, 'compensating'))) return
  while (s.in_flight < s.max_parallel) {
    const top = s.undo_ready.pop()
    if (!top) return
    const node = item(s.nodes, top[0])
    if (node.state === 'compensating' && node.doing === 'idle') dispatch(s, top[0], 'undo', at)
  }
}

/**
 * Requests an engine-made pause or cancel once; record_changes makes it only if the rows still say `run`. A failure
 * during a pause waits for the resume; only a cancel made in the engine itself does not.
 */
const askForSwap = (s: State) => {
  const { wanted } = s
  if (wanted === null || wanted.asked || s.asking !== null || s.last_seq < wanted.after_seq) return
  const forced = wanted.to === 'cancel' && wanted.by !== undefined && s.control === 'pause'
  if (s.control !== 'run' && !forced) return
  wanted.asked = true
  if (!s.out_of_order) s.asking = wanted
  if (wanted.to === 'pause') note(s, { t: 'control', to: 'pause', reason: wanted.reason })
  else {
    const { mode, ending, by } = wanted
    note(s, { t: 'control', to: 'cancel', mode, reason: ending.reason, ...(by !== undefined && { by }) })
  }
}

/**
 * Takes the answer to a swap: it was made, or a person was faster. The rows knew of commands up to `seq`: earlier ones
 * may still be coming, and later ones may have come before this answer.
 */
export const swapped = (s: State, made: 'pause' | 'cancel' | null, seq: number, at: number) => {
  const { asking, resumed_seq } = s
  if (s.out_of_order) return swappedAsItCame(s, made, seq, at)
  if (asking === null) return
  s.asking = null
  s.resumed_seq = 0
  if (made === null) {
    asking.asked = false
    asking.after_seq = seq
    return
  }
  if (s.wanted === asking) s.wanted = null
  if (asking.to === 'cancel') {
    beginCancel(s, asking.mode, asking.ending, at)
    // A person may have escalated it already.
    s.ending = asking.ending
  } else if (resumed_seq <= seq) {
    pause(s, asking.reason, at)
    s.paused_seq = seq
    s.overspent = false
    if (s.control === 'pause') s.pause_reason = asking.reason
  }
}

const swappedAsItCame = (s: State, made: 'pause' | 'cancel' | null, seq: number, at: number) => {
  const { wanted } = s
  if (made === 'pause') pause(s, wanted?.to === 'pause' ? wanted.reason : 'failed_node', at)
  if (wanted === null) return
  if (wanted.to === 'pause') {
    if (wanted.asked) s.wanted = null
  } else if (made === 'cancel') beginCancel(s, wanted.mode, wanted.ending, at)
  else if (wanted.asked) {
    wanted.asked = false
    wanted.after_seq = seq
  }
}

/** Ends the operation when no work is left; facts without consequences are recorded with the end. */
const finish = (s: State, at: number) => {
  if (
    s.stage !== 'open' ||
    s.patching.length > 0 ||
    s.loading ||
    s.in_flight > 0 ||
    s.recording ||
    s.changes.some((change) => s.closes_apart || asks(change)) ||
    s.last_seq < s.close_seq
  )
    return
  const end = endOf(s)
  if (!end) return
  const hasNews = s.changes.length > 0 || (!s.closes_apart && s.fresh.size > 0)
  const batch = hasNews ? takeBatch(s, engineStatusOf(s, at), at) : undefined
  s.stage = 'closing'
  s.end = end
  s.activities += 1
  s.out.push({ type: 'close', ...end, last_seq: s.last_seq, ...(batch && { batch }) })
}

/** Whether the rows' answer to this fact decides the next step. */
const asks = (change: Change): boolean => isUndone(change) || !['command', 'node', 'catalog'].includes(change.t)

const endOf = (s: State): { status: OperationEnd; end_reason: string | null } | null => {
  if (s.control === 'cancel') {
    if (s.mode === 'compensate' && (!s.undoing || s.undo_left > 0)) return null
    return { status: s.ending?.status ?? 'cancelled', end_reason: s.ending?.reason ?? null }
  }
  if (s.control !== 'run' || s.wanted !== null || s.unsettled > 0 || isUndoing(s)) return null
  return { status: hasExceptions(s) ? 'succeeded_with_exceptions' : 'succeeded', end_reason: null }
}

/** Whether an undo that a person requested is not over. */
const isUndoing = ({ counts }: State): boolean => counts.compensating + counts.compensation_failed > 0

const hasExceptions = (s: State): boolean =>
  s.overridden || s.nodes.some((node) => node.exception) || s.gates.some((gate) => gate.status === 'bypassed')

/** The engine's status; readers see it through `statusOf`. */
const engineStatusOf = (s: State, at: number): EngineStatus => {
  if (s.control === 'cancel') return 'cancelling'
  if (s.control === 'pause') {
    if (s.in_flight + s.counts.compensating === 0) return 'paused'
    const reported = s.reported?.engine_status ?? 'running'
    return reported === 'paused' ? 'running' : reported
  }
  if (s.not_before > at) return 'queued'
  return canMove(s) ? 'running' : 'blocked'
}

/** Whether anything will happen without outside help: an attempt, a backoff, a wait, a node that only needs a place. */
const canMove = (s: State): boolean =>
  s.in_flight > 0 ||
  (s.leases !== 'waiting' && s.counts.ready > s.held.size + Object.keys(s.shut).length) ||
  s.patching.length > 0 ||
  s.loading ||
  s.counts.backoff > 0 ||
  s.counts.compensating > 0 ||
  s.waits.size > 0 ||
  s.wanted !== null ||
  (s.unsettled === 0 && s.counts.compensation_failed === 0) ||
  s.changes.some(({ t }) => t === 'when') ||
  s.gates.some(({ asked, status }) => asked && status === 'armed')

/** Sends the collected facts, one batch at a time. */
const flush = (s: State, at: number) => {
  if (s.recording || s.stage === 'closing') return
  const status = engineStatusOf(s, at)
  if (status !== s.reported?.engine_status) s.urgent = true
  if (s.fresh.size > 0 || s.changes.length > 0) s.flush_at ||= at + FLUSH_MS
  const full = s.flush_at > 0 && (s.flush_at <= at || s.in_flight === 0 || s.rolling)
  if (!s.urgent && !full) return
  const batch = takeBatch(s, status, at)
  s.recording = true
  s.taking_back = batch.changes.some(isUndone)
  s.activities += 1
  s.out.push({ type: 'record', batch })
}

/** Returns all unrecorded facts, with the state of the whole operation. */
const takeBatch = (s: State, status: EngineStatus, at: number): RecordBatch => {
  for (const i of s.fresh) noteNode(s, i, 'ready', at)
  s.fresh.clear()
  const report = reportOf(s, status)
  s.record_seq += 1
  const batch = { record_seq: s.record_seq, changes: brief(s.changes), report }
  s.reported = report
  s.changes = []
  s.urgent = false
  s.flush_at = 0
  return batch
}

/** The row of an attempt has the whole text of its error. */
const brief = (changes: Change[]): Change[] => {
  const failed = changes.filter((change) => change.t === 'node' && change.error)
  const room = roomFor(Math.max(1, failed.length))
  return changes.map((change) => {
    if (change.t !== 'node' || !change.error) return change
    const { hint = '', ...error } = change.error
    if (error.message.length + hint.length <= room) return change
    return { ...change, error: { ...error, message: error.message.slice(0, room) } }
  })
}

/** One timer for the nearest due time. */
const wake = (s: State, at: number) => {
  let next = s.dues.peek()?.[0] ?? Number.POSITIVE_INFINITY
  if (s.flush_at > 0 && !s.recording) next = Math.min(next, s.flush_at)
  if (s.deadline > 0 && s.control === 'run' && s.wanted === null) next = Math.min(next, s.deadline)
  if (s.not_before > at) next = Math.min(next, s.not_before)
  if (s.halt_until > at && s.last_seq < s.halt_seq) next = Math.min(next, s.halt_until)
  if (Number.isFinite(next)) s.out.push({ type: 'wake_at', at: next })
}
