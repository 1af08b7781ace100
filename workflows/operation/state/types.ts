import type {
  BlockedOn,
  CancelMode,
  Closure,
  Control,
  NodeError,
  NodeState,
  OperationEnd,
} from '../../../apps/shared/contracts/operations/graph.ts'
import type { Heap } from '../heap.ts'
import type { CommandBodies } from '../messages.ts'
import type { Change, Effect, GateSpec, Profile, Report } from './events.ts'

export type Graph = {
  ids: string[]
  names: string[]
  index: Map<string, number>
  profiles: Profile[]
  deps: number[][]
  dependents: number[][]
  gates_of: number[][]
  gate_index: Map<string, number>
  /** Nodes that a patch has removed. */
  removed: Set<number>
}

/** Which answer or time a node waits for within its state, if any. */
export type Doing =
  | 'idle'
  | 'when' // record_changes evaluates its condition
  | 'attempt' // an activity is in flight
  | 'poll' // between two slices of one attempt
  | 'catalog' // its result is being written to the catalog
  | 'catalog_wait' // the catalog is away
  | 'wait' // a wait node waits for its time or signal
  | 'delay' // the claim was refused for a reason that no command explains: it claims again soon
  | 'parked' // the claim was refused because of a command that is in flight
  | 'held' // an open patch would change it
  | 'shut' // a window is closed, a freeze holds it, its pool's agents are busy, or its target moved

/** A settled node does not change on its own. Good ones release their dependents. */
export const OPEN = 0
export const GOOD = 1
export const BAD = 2
export type Settled = typeof OPEN | typeof GOOD | typeof BAD

export type NodeRun = {
  state: NodeState
  doing: Doing
  generation: number
  /** The last number assigned to an attempt; `tries` counts those of this generation. */
  attempt: number
  tries: number
  undo_attempt: number
  undo_tries: number
  slice: number
  /** An attempt of this number has begun and is still open: the next dispatch resumes it. */
  reopen: boolean
  due: number
  /** The command that a parked node waits for. */
  wait_seq: number
  settled: Settled
  /** Dependencies by their settled value. */
  open: number
  good: number
  bad: number
  /** Guarding gates that have not passed. */
  closed_gates: number
  /** Dependents whose undo is not over. */
  undo_open: number
  exception: boolean
  error: NodeError | null
}

export type GateRun = GateSpec & {
  guards: number[]
  deadline: number
  /** When more people are asked; 0: never. */
  escalation: number
  /** record_changes was asked to open, expire or escalate it. */
  asked: boolean
}

export type Ending = { status: Exclude<OperationEnd, 'succeeded' | 'succeeded_with_exceptions'>; reason: string }

/** A swap of the control row that the engine wants (operations.md 1.6): made only from `run`. */
export type Wanted =
  | { to: 'pause'; reason: string; node: number; asked: boolean; after_seq: number }
  | { to: 'cancel'; mode: CancelMode; ending: Ending; node: number; asked: boolean; after_seq: number; by?: string }

/** An approved patch whose graph the reducer has not taken over yet. */
export type Patching = CommandBodies['patch_applied'] & { command_id: string }

/** State of one operation. `step` changes it in place for its one caller: take a snapshot to keep an older state. */
export type State = {
  operation_id: string
  plan_revision: number
  stage: 'open' | 'closing' | 'ended'
  /** Begun by code that recorded the last facts before requesting the end. */
  closes_apart: boolean
  /** Begun by code that reported the expiry of a gate only with the next fact. */
  expires_unsaid: boolean
  /** Begun by code that opened a gate as soon as its first node came to it. */
  opens_early: boolean
  /** Begun by code that looked at the gates of a node only when the node came to them. */
  gates_once: boolean
  /** Begun by code that started nodes before the rows of a refused command were put back. */
  starts_early: boolean
  /** Begun by code that took an undo, a retry and a moved deadline as it found things, not as they had been decided. */
  as_it_came: boolean
  /** Begun by code that took the answer of a condition whatever had become of the nodes that it is about. */
  trusts_answers: boolean
  /** Begun by code that took a swap's answer, an undo and a failure during a pause without regard to their order. */
  out_of_order: boolean
  graph: Graph
  nodes: NodeRun[]
  gates: GateRun[]
  control: Control
  mode: CancelMode | null
  pause_reason: string | null
  ending: Ending | null
  wanted: Wanted | null
  /** The swap whose answer is due. */
  asking: Wanted | null
  /** The last resume taken while that answer is due: if it came after the pause, it has ended it already. */
  resumed_seq: number
  /** The last command before an engine-made pause: a resume up to it was given before the pause. */
  paused_seq: number
  /** More tasks have failed than the budget allows, and no pause has followed yet. */
  overspent: boolean
  max_parallel: number
  /** The worker's limit of it. */
  most_parallel: number
  deadline: number
  /** Milliseconds left of the deadline while the operation is paused. */
  deadline_left: number
  /** The last command that the rows of the first graph knew: its deadline has their extensions already. */
  loaded_seq: number
  on_deadline: 'graceful' | 'compensate'
  not_before: number
  pause_on_failure: boolean
  failure_budget: number | null
  force_grace_ms: number
  force_at: number
  /** When the first cancel came; 0: none yet. */
  cancelled_at: number
  /** No node is dispatched before this command, which a claim already knew of, has arrived or this time has passed. */
  halt_seq: number
  halt_until: number
  /** The close transaction waits for this command. */
  close_seq: number
  in_flight: number
  /** How many of those in flight are runs: compensation begins when none is left. */
  running: number
  unsettled: number
  undo_left: number
  undoing: boolean
  counts: Record<NodeState, number>
  attention: Set<number>
  parked: Set<number>
  /** Nodes that a person retried although one before them failed or was skipped: they wait for the rest before them. */
  insisted: number[]
  waits: Set<number>
  /** Ready, but held by an open patch. */
  held: Set<number>
  /** A freeze was overridden, or a bypassed gate asked again: at best it succeeds with exceptions. */
  overridden: boolean
  /** The last known state of the leases; `none`: there is no lease to give back. */
  leases: 'held' | 'giving' | 'released' | 'taking' | 'waiting' | 'none'
  lease_blockers: BlockedOn[]
  /** The last command that changed what the calendar allows, or announced free places. */
  calendar_seq: number
  /** Nodes that are ready, or to be undone, but that the calendar or their pool lets start only later, by position. */
  shut: Record<number, Closure>
  /** Open patch by position of the node. */
  holds: Record<number, string>
  patching: Patching[]
  /** The newest revision that the rows are known to have. */
  wanted_revision: number
  loading: boolean
  /** Nodes whose dependencies moved in this step. */
  touched: number[]
  signals: string[]
  /** Ready since the last record; recorded only if they are still ready then. */
  fresh: Set<number>
  ready: Heap
  instant: Heap
  undo_ready: Heap
  dues: Heap
  last_seq: number
  seen: string[]
  record_seq: number
  recording: boolean
  /** The batch being recorded takes back a command's writes. */
  taking_back: boolean
  changes: Change[]
  urgent: boolean
  flush_at: number
  reported: Report | null
  activities: number
  rolling: boolean
  evidence_head: { seq: number; hash: string } | null
  end: { status: OperationEnd; end_reason: string | null } | null
  out: Effect[]
}
