import { GATE_STATUSES, NODE_INTERVENTIONS } from '../../apps/shared/contracts/operations/graph.ts'
import type { CommandBodies, CommandMessage, OperationOutcome } from './messages.ts'
import { blank, canLeave, restore, type Snapshot, snapshot } from './snapshot.ts'
import { attemptEnded, catalogEnded } from './state/attempts.ts'
import { takeCommand, unpark } from './state/commands.ts'
import type { Effect, Event, GraphPage, RecordResult } from './state/events.ts'
import { gateRecorded } from './state/gates.ts'
import { item } from './state/graph.ts'
import { leasesRecorded } from './state/leases.ts'
import { enter, fail, settle, toGate } from './state/nodes.ts'
import { regraft } from './state/patch.ts'
import { schedule, swapped } from './state/schedule.ts'
import { GOOD, type State } from './state/types.ts'

export type { Effect, Event } from './state/events.ts'
export type { State } from './state/types.ts'
export { canLeave, restore, type Snapshot, snapshot }

/** Returns the state of an operation whose graph has just been loaded; the start command is the first it takes. */
export const start = (
  operation_id: string,
  pages: readonly GraphPage[],
  command: CommandMessage<'start'>,
  at: number,
): State => {
  const s = blank(operation_id, pages)
  takeCommand(s, command, at, isKnown(command))
  // A start that came too late is only reported: record_changes undoes it, and no node begins.
  const expired = s.changes.some((change) => change.t === 'command' && change.status === 'expired')
  if (!expired) s.touched = s.nodes.map((_, i) => s.nodes.length - 1 - i)
  return s
}

/**
 * Takes events in order and returns the next effects. Deterministic: the same state and events give the same result. It
 * changes the state in place, so that a step costs no more than the nodes it moves.
 */
export const step = (s: State, ...events: Event[]): { state: State; effects: Effect[] } => {
  for (const event of events) take(s, event)
  const last = events.at(-1)
  if (last) schedule(s, last.at)
  const effects = s.out
  s.out = []
  return { state: s, effects }
}

export const isDone = (s: State): boolean => s.stage === 'ended'

export const outcome = (s: State): OperationOutcome => ({
  status: s.end?.status ?? 'cancelled',
  end_reason: s.end?.end_reason ?? null,
  evidence_head: s.evidence_head,
})

const take = (s: State, event: Event) => {
  switch (event.type) {
    case 'command':
      takeCommand(s, event.command, event.at, isKnown(event.command))
      return unpark(s)
    case 'attempt_ended':
      return attemptEnded(s, event)
    case 'catalog_ended':
      return catalogEnded(s, event)
    case 'loaded':
      s.activities -= 1
      return regraft(s, event.pages, event.at)
    case 'recorded':
      return recorded(s, event.result, event.at)
    case 'closed':
      s.activities -= 1
      if (event.result.status === 'ended') {
        s.stage = 'ended'
        s.evidence_head = event.result.evidence_head
      } else {
        s.stage = 'open'
        s.close_seq = event.result.seq
        s.end = null
      }
      return
    case 'cancel_requested':
      if (s.control === 'cancel' || (s.out_of_order && s.wanted?.to === 'cancel')) return
      s.wanted = {
        to: 'cancel',
        mode: 'graceful',
        ending: { status: 'cancelled', reason: 'cancelled_in_engine' },
        node: -1,
        asked: false,
        after_seq: 0,
        by: event.by,
      }
      return
    case 'roll':
      s.rolling = true
      return
    case 'due':
      return
  }
}

/** Takes the rows' answer: conditions, gates, swaps. */
const recorded = (s: State, result: RecordResult, at: number) => {
  s.activities -= 1
  s.recording = false
  s.taking_back = false
  if (result.withdrawn) {
    s.stage = 'ended'
    s.end = { status: 'cancelled', end_reason: 'start_withdrawn' }
    return
  }
  s.wanted_revision = Math.max(s.wanted_revision, result.plan_revision ?? 0)
  leasesRecorded(s, result)
  if (result.control) swapped(s, result.control.swapped, result.control.seq, at)
  for (const gate of result.gates) gateRecorded(s, gate, at)
  const anew = s.trusts_answers ? [] : s.changes.flatMap((change) => (change.t === 'when' ? [change.id] : []))
  for (const [id, verdict] of Object.entries(result.whens)) if (!anew.includes(id)) whenKnown(s, id, verdict, at)
}

/** The condition of a node is true, false, or could not be evaluated (the message says why). */
const whenKnown = (s: State, id: string, verdict: boolean | string, at: number) => {
  const i = s.graph.index.get(id)
  if (i === undefined || item(s.nodes, i).doing !== 'when') return
  if (verdict === true) toGate(s, i, at)
  else if (verdict === false) {
    enter(s, i, 'skipped', at)
    settle(s, i, GOOD)
  } else fail(s, i, { class: 'expression_error', message: verdict, retryable: false }, at)
}

/**
 * Returns which invariant is broken, whatever happened before. It runs after each step, and its cost depends only on
 * the step's effects (operations.md 8). The rows would refuse such a claim as well. Here it means that the state itself
 * is wrong, so none of the step is carried out.
 */
export const brokenInvariant = (s: State, effects: readonly Effect[]): string | undefined => {
  if (s.in_flight < 0 || s.running < 0 || s.unsettled < 0 || s.activities < 0) return 'a counter is below zero'
  let counted = 0
  for (const count of Object.values(s.counts)) counted += count
  if (counted !== s.nodes.length) return `${counted} nodes are counted, ${s.nodes.length} are there`
  for (const effect of effects) {
    if (effect.type !== 'run') continue
    const { node, role, slice, node_id, attempt } = effect
    const run = item(s.nodes, node)
    const [last, state] = role === 'run' ? [run.attempt, 'running'] : [run.undo_attempt, 'compensating']
    if (run.state !== state || run.doing !== 'attempt' || last !== attempt) return `${node_id} is out twice`
    if (role === 'run' && slice === 0 && s.control !== 'run') return `${node_id} starts while ${s.control} is wanted`
    if (role === 'run' && slice === 0 && run.closed_gates > 0) return `${node_id} starts before its gates are passed`
  }
  return undefined
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/**
 * Whether a signal has the form that the relay gives to all: the Temporal UI lets anyone send anything under this name,
 * and a message that the workflow cannot read would stop it for good.
 */
export const isCommand = (sent: unknown): sent is CommandMessage => {
  if (!isRecord(sent)) return false
  const { command_id, seq, kind, not_after, trace, body } = sent
  return (
    isText(command_id) &&
    UUID.test(command_id) &&
    isCount(seq) &&
    isText(kind) &&
    (not_after === null || isTime(not_after)) &&
    (trace == null || isText(trace)) &&
    isRecord(body)
  )
}

/** Whether this build knows the command; one that it does not is refused, because its row waits for an answer. */
const isKnown = ({ v, kind, body }: CommandMessage): boolean =>
  v === 1 && Object.hasOwn(BODIES, kind) && hasForm(BODIES[kind] as Record<string, Check>)(body)

type Check = (value: unknown) => boolean
const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const isText = (value: unknown): value is string => typeof value === 'string'
const isFlag: Check = (value) => typeof value === 'boolean'
const isCount = (value: unknown): value is number => Number.isInteger(value) && Math.abs(value as number) < 2 ** 31
const isTime: Check = (value) => isText(value) && !Number.isNaN(Date.parse(value))
const isOneOf =
  (known: readonly string[]): Check =>
  (value) =>
    known.includes(value as string)
const maybe =
  (check: Check): Check =>
  (value) =>
    value === undefined || check(value)
const nullable =
  (check: Check): Check =>
  (value) =>
    value === null || check(value)
const listOf =
  (check: Check): Check =>
  (value) =>
    Array.isArray(value) && value.every(check)
const mapOf =
  (check: Check): Check =>
  (value) =>
    isRecord(value) && Object.values(value).every(check)
const hasForm =
  (form: Record<string, Check>): Check =>
  (value) =>
    isRecord(value) && Object.entries(form).every(([name, check]) => check(value[name]))

const isStatus = isOneOf(GATE_STATUSES)
const areTexts = listOf(isText)
const areGates = mapOf(hasForm({ status: isStatus, round: isCount, deadline_at: maybe(nullable(isTime)) }))
const areGenerations = mapOf(isCount)
const isPayload = hasForm({
  max_parallel: maybe(isCount),
  message: maybe(isText),
  add_s: maybe(isCount),
  attempt: maybe(isCount),
})

/** The members that the reducer reads. */
const BODIES: { [K in keyof CommandBodies]: { [M in keyof CommandBodies[K]]?: Check } } = {
  start: {},
  pause: { reason: maybe(isText) },
  resume: { gates: maybe(areGates), guarding: maybe(mapOf(areTexts)) },
  cancel: { mode: isOneOf(['graceful', 'compensate', 'force']) },
  gate_decided: { gate_id: isText, round: isCount, status: isStatus },
  retry_node: { node_id: isText, generations: areGenerations, gates: areGates, guarded_by: maybe(areTexts) },
  intervene: {
    type: isOneOf([...NODE_INTERVENTIONS, 'set_limits', 'extend_deadline', 'override_freeze']),
    node_id: nullable(isText),
    generation: maybe(isCount),
    generations: maybe(areGenerations),
    gates: maybe(areGates),
    guarded_by: maybe(areTexts),
    payload: maybe(isPayload),
  },
  node_result: {
    node_id: isText,
    role: maybe(isOneOf(['run', 'undo'])),
    attempt: isCount,
    status: isOneOf(['succeeded', 'failed', 'unknown', 'again']),
    class: maybe(isText),
    message: maybe(isText),
    retryable: maybe(isFlag),
  },
  node_signal: { name: isText },
  patch_proposed: { patch_id: isText, node_ids: areTexts },
  patch_closed: { patch_id: isText, plan_revision: maybe(isCount) },
  patch_applied: {
    patch_id: isText,
    plan_revision: isCount,
    generations: areGenerations,
    gates: areGates,
    closed: areTexts,
  },
  catalog_drift: {},
  lease_granted: {},
  calendar_changed: {},
  place_free: { node_ids: areTexts },
}
