import type { GateStatus, NodeError, NodeState } from '../../apps/shared/contracts/operations/graph.ts'
import { Heap } from './heap.ts'
import { beginUndo, FORCE_DUE } from './state/compensate.ts'
import type { GraphPage } from './state/events.ts'
import { gatesOf, graphOf, item, NO_COUNTS, newNode } from './state/graph.ts'
import { move, setDue, toReady } from './state/nodes.ts'
import { BAD, type Doing, GOOD, OPEN, type Settled, type State } from './state/types.ts'

/** Members that a snapshot carries unchanged. */
const PLAIN = [
  'operation_id',
  'plan_revision',
  'control',
  'mode',
  'pause_reason',
  'ending',
  'wanted',
  'paused_seq',
  'overspent',
  'max_parallel',
  'deadline',
  'deadline_left',
  'loaded_seq',
  'on_deadline',
  'not_before',
  'pause_on_failure',
  'failure_budget',
  'force_grace_ms',
  'force_at',
  'cancelled_at',
  'halt_seq',
  'halt_until',
  'close_seq',
  'signals',
  'holds',
  'insisted',
  'shut',
  'calendar_seq',
  'leases',
  'lease_blockers',
  'overridden',
  'wanted_revision',
  'last_seq',
  'seen',
  'record_seq',
  'reported',
  'evidence_head',
] as const

/** State that continue-as-new carries; the graph is reloaded. About two bytes per node, and a line per special one. */
export type Snapshot = Pick<State, (typeof PLAIN)[number]> & {
  v: 1
  undoing: boolean
  /** One character per node, in order of position. */
  states: string
  gates: [status: GateStatus, round: number, deadline: number, escalation?: number][]
  generations: Record<number, number>
  attempts: Record<number, [attempt: number, tries: number, undo_attempt: number, undo_tries: number]>
  slices: Record<number, number>
  dues: Record<number, number>
  wait_seqs: Record<number, number>
  reopen: number[]
  exceptions: number[]
  errors: Record<number, NodeError>
}

/** Character, state, activity, settled value. At a snapshot no activity is in flight. */
const CODES: readonly [string, NodeState, Doing, Settled][] = [
  ['p', 'pending', 'idle', OPEN],
  ['g', 'gated', 'idle', OPEN],
  ['r', 'ready', 'idle', OPEN],
  ['y', 'ready', 'delay', OPEN],
  ['z', 'ready', 'parked', OPEN],
  ['h', 'ready', 'held', OPEN],
  ['w', 'ready', 'shut', OPEN],
  ['b', 'backoff', 'idle', OPEN],
  ['o', 'running', 'poll', OPEN],
  ['q', 'running', 'catalog_wait', OPEN],
  ['v', 'running', 'wait', OPEN],
  ['s', 'succeeded', 'idle', GOOD],
  ['f', 'failed', 'idle', OPEN],
  ['t', 'failed', 'idle', GOOD],
  ['F', 'failed', 'idle', BAD],
  ['u', 'outcome_unknown', 'idle', OPEN],
  ['k', 'skipped', 'idle', GOOD],
  ['x', 'skipped', 'idle', BAD],
  ['c', 'cancelled', 'idle', OPEN],
  ['C', 'compensating', 'idle', GOOD],
  ['E', 'compensating', 'delay', GOOD],
  ['P', 'compensating', 'poll', GOOD],
  ['K', 'compensating', 'shut', GOOD],
  ['Q', 'compensating', 'catalog_wait', GOOD],
  ['d', 'compensated', 'idle', GOOD],
  ['D', 'compensation_failed', 'idle', GOOD],
  // Undone at a person's request: nodes after it can never start.
  ['G', 'compensating', 'idle', BAD],
  ['H', 'compensating', 'delay', BAD],
  ['I', 'compensating', 'poll', BAD],
  ['L', 'compensating', 'shut', BAD],
  ['R', 'compensating', 'catalog_wait', BAD],
  ['j', 'compensated', 'idle', BAD],
  ['J', 'compensation_failed', 'idle', BAD],
  ['m', 'removed', 'idle', GOOD],
]
const CHARACTER = new Map(CODES.map(([char, state, doing, settled]) => [`${state} ${doing} ${settled}`, char]))
const MEANING = new Map(CODES.map(([char, state, doing, settled]) => [char, { state, doing, settled }]))

/** Whether a run can be left here: no effect is in flight and every fact is recorded. */
export const canLeave = (s: State): boolean =>
  s.stage === 'open' &&
  s.activities === 0 &&
  s.patching.length === 0 &&
  s.wanted_revision <= s.plan_revision &&
  !s.recording &&
  s.changes.length === 0 &&
  s.fresh.size === 0

/** Characters of one message, and of all: thousands of long ones would exceed the engine's limit. Rows keep them whole. */
const MOST_SHOWN = 300
const MOST_SAID = 100_000

export const snapshot = (s: State): Snapshot => {
  const plain = Object.fromEntries(PLAIN.map((name) => [name, s[name]])) as Pick<State, (typeof PLAIN)[number]>
  const carried: Snapshot = {
    v: 1,
    ...plain,
    undoing: s.undoing,
    states: '',
    gates: s.gates.map(({ status, round, deadline, escalation }) => [status, round, deadline, escalation]),
    generations: {},
    attempts: {},
    slices: {},
    dues: {},
    wait_seqs: {},
    reopen: [],
    exceptions: [],
    errors: {},
  }
  let left = MOST_SAID
  const characters = s.nodes.map((node, i) => {
    const { attempt, tries, undo_attempt, undo_tries } = node
    if (node.generation !== 1) carried.generations[i] = node.generation
    if (attempt !== ONCE[node.state] || tries !== attempt || undo_attempt + undo_tries > 0)
      carried.attempts[i] = [attempt, tries, undo_attempt, undo_tries]
    if (node.slice > 0) carried.slices[i] = node.slice
    if (node.due > 0) carried.dues[i] = node.due
    if (node.wait_seq > 0) carried.wait_seqs[i] = node.wait_seq
    if (node.reopen) carried.reopen.push(i)
    if (node.exception) carried.exceptions.push(i)
    if (node.error) {
      const { class: name, message, retryable } = node.error
      carried.errors[i] = { class: name, message: message.slice(0, Math.min(MOST_SHOWN, left)), retryable }
      left -= Math.min(message.length, MOST_SHOWN, left)
    }
    const character = CHARACTER.get(`${node.state} ${node.doing} ${node.settled}`)
    if (!character) throw new Error(`a node that is ${node.state} (${node.doing}) cannot be carried over`)
    return character
  })
  carried.states = characters.join('')
  return carried
}

/** The usual number of attempts of a node in this state; only other numbers are stored. */
const ONCE: Partial<Record<NodeState, number>> = {
  ...NO_COUNTS(),
  running: 1,
  succeeded: 1,
  failed: 1,
  outcome_unknown: 1,
  compensating: 1,
  compensated: 1,
  compensation_failed: 1,
}

/** None of the ways in which operations that began under older code continue. */
const AS_NEW = {
  closes_apart: false,
  expires_unsaid: false,
  opens_early: false,
  gates_once: false,
  starts_early: false,
  out_of_order: false,
  trusts_answers: false,
  as_it_came: false,
}

/** Returns an operation of which only the graph is known yet. */
export const blank = (operation_id: string, pages: readonly GraphPage[]): State => {
  const graph = graphOf(pages)
  const head = pages[0]?.head
  const gates = gatesOf(pages, graph)
  const closed = (i: number) =>
    item(graph.gates_of, i).filter((g) => item(gates, g).status !== 'approved' && item(gates, g).status !== 'bypassed')
  return {
    operation_id,
    plan_revision: pages[0]?.plan_revision ?? 0,
    stage: 'open',
    ...AS_NEW,
    graph,
    nodes: graph.ids.map((_, i) => newNode(item(graph.deps, i).length, closed(i).length)),
    gates,
    control: 'run',
    mode: null,
    pause_reason: null,
    ending: null,
    wanted: null,
    ...{ asking: null, resumed_seq: 0, paused_seq: 0, overspent: false },
    max_parallel: head?.max_parallel ?? 1,
    most_parallel: head?.most_parallel ?? Number.MAX_SAFE_INTEGER,
    deadline: head?.deadline_at ? Date.parse(head.deadline_at) : 0,
    deadline_left: 0,
    loaded_seq: head?.command_seq ?? 0,
    on_deadline: head?.on_deadline ?? 'graceful',
    not_before: head?.not_before ? Date.parse(head.not_before) : 0,
    pause_on_failure: head?.pause_on_failure ?? false,
    failure_budget: head?.failure_budget ?? null,
    force_grace_ms: 1000 * (head?.force_grace_s ?? 30),
    force_at: 0,
    cancelled_at: 0,
    halt_seq: 0,
    halt_until: 0,
    close_seq: 0,
    in_flight: 0,
    running: 0,
    unsettled: graph.ids.length,
    undo_left: 0,
    undoing: false,
    counts: { ...NO_COUNTS(), pending: graph.ids.length },
    attention: new Set(),
    parked: new Set(),
    insisted: [],
    waits: new Set(),
    held: new Set(),
    holds: {},
    shut: {},
    calendar_seq: 0,
    leases: 'held',
    lease_blockers: [],
    overridden: false,
    patching: [],
    wanted_revision: 0,
    loading: false,
    touched: [],
    signals: [],
    fresh: new Set(),
    ready: new Heap(),
    instant: new Heap(),
    undo_ready: new Heap(),
    dues: new Heap(),
    last_seq: 0,
    seen: [],
    record_seq: 0,
    recording: false,
    taking_back: false,
    changes: [],
    urgent: false,
    flush_at: 0,
    reported: null,
    activities: 0,
    rolling: false,
    evidence_head: null,
    end: null,
    out: [],
  }
}

/** Restores the carried state onto the reloaded graph. */
export const restore = (carried: Snapshot, pages: readonly GraphPage[], at: number): State => {
  const s = blank(carried.operation_id, pages)
  s.loaded_seq = 0
  // A snapshot of older code lacks members that it did not know.
  for (const name of PLAIN) if (carried[name] !== undefined) Object.assign(s, { [name]: carried[name] })
  for (const [g, [status, round, deadline, escalation = 0]] of carried.gates.entries()) {
    Object.assign(item(s.gates, g), { status, round, deadline, escalation })
    for (const time of [deadline, escalation]) if (time > 0) s.dues.push(time, -1 - g)
  }
  // The rows may already have a newer graph: its new nodes are pending until the command that announces it arrives.
  for (let i = 0; i < carried.states.length; i++) restoreNode(s, carried, i)
  for (const [i, node] of s.nodes.entries()) {
    const settled = item(s.graph.deps, i).map((dep) => item(s.nodes, dep).settled)
    node.open = settled.filter((value) => value === OPEN).length
    node.good = settled.filter((value) => value === GOOD).length
    node.bad = settled.filter((value) => value === BAD).length
    node.closed_gates = item(s.graph.gates_of, i).filter((g) => !PASSED.has(item(s.gates, g).status)).length
  }
  s.unsettled = s.nodes.filter((node) => node.settled === OPEN).length
  if (s.force_at > 0) s.dues.push(s.force_at, FORCE_DUE)
  if (carried.undoing) beginUndo(s, at)
  return s
}

const PASSED: ReadonlySet<GateStatus> = new Set<GateStatus>(['approved', 'bypassed'])

const restoreNode = (s: State, carried: Snapshot, i: number): void => {
  const node = item(s.nodes, i)
  const meaning = MEANING.get(carried.states[i] ?? '')
  if (!meaning) throw new Error(`node ${i} has no state in the snapshot`)
  const once = ONCE[meaning.state] ?? 0
  const [attempt, tries, undo_attempt, undo_tries] = carried.attempts[i] ?? [once, once, 0, 0]
  if (meaning.state === 'ready' && meaning.doing === 'idle') toReady(s, i)
  else move(s, i, meaning.state, meaning.doing)
  s.fresh.delete(i)
  Object.assign(node, { attempt, tries, undo_attempt, undo_tries, settled: meaning.settled })
  node.generation = carried.generations[i] ?? 1
  node.slice = carried.slices[i] ?? 0
  node.wait_seq = carried.wait_seqs[i] ?? 0
  node.reopen = carried.reopen.includes(i)
  node.exception = carried.exceptions.includes(i)
  node.error = carried.errors[i] ?? null
  const due = carried.dues[i]
  if (due !== undefined) setDue(s, i, due)
  if (meaning.settled !== OPEN && meaning.state === 'failed') s.attention.delete(i)
  if (meaning.state === 'compensating' && meaning.doing === 'idle') s.undo_ready.push(i)
}
