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
  /** Nodes that a patch has taken out. */
  removed: Set<number>
}

/** Which answer or time a node waits for within its state, if any. */
export type Doing =
  | 'idle'
  | 'when' // record_changes evaluates its condition
  | 'attempt' // an activity is out
  | 'poll' // between two slices of one attempt
  | 'catalog' // its result is being written to the catalog
  | 'catalog_wait' // the catalog is away
  | 'wait' // a wait node waits for its time or signal
  | 'delay' // the claim said no for a reason that no command explains: asked again soon
  | 'parked' // the claim said no because of a command that is on its way
  | 'held' // an open patch would change it
  | 'shut' // a window is closed, a freeze holds it, the agents of its pool have enough to do, or its target moved

/** Settled: it does not change by itself. Good ones release their dependents. */
export const OPEN = 0
export const GOOD = 1
export const BAD = 2
export type Settled = typeof OPEN | typeof GOOD | typeof BAD

export type NodeRun = {
  state: NodeState
  doing: Doing
  generation: number
  /** The last number given to an attempt; `tries` counts those of this generation. */
  attempt: number
  tries: number
  undo_attempt: number
  undo_tries: number
  slice: number
  /** An attempt of this number has begun and is still open: the next dispatch resumes it. */
  reopen: boolean
  due: number
  /** Command that a parked node waits for. */
  wait_seq: number
  settled: Settled
  /** Dependencies by their settled value. */
  open: number
  good: number
  bad: number
  /** Guarding gates that are not passed. */
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

/** An approved patch whose graph the reducer has yet to take over. */
export type Patching = CommandBodies['patch_applied'] & { command_id: string }

/**
 * State of one operation in the reducer. It is changed in place by `step` and belongs to one caller: whoever needs an
 * older state keeps a snapshot.
 */
export type State = {
  operation_id: string
  plan_revision: number
  stage: 'open' | 'closing' | 'ended'
  /** Begun by code that recorded the last facts before it asked for the end. */
  closes_apart: boolean
  /** Begun by code that started nodes while the rows of a refused command were not put back yet. */
  starts_early: boolean
  graph: Graph
  nodes: NodeRun[]
  gates: GateRun[]
  control: Control
  mode: CancelMode | null
  pause_reason: string | null
  ending: Ending | null
  wanted: Wanted | null
  max_parallel: number
  deadline: number
  /** Milliseconds left of the deadline while the operation is paused. */
  deadline_left: number
  on_deadline: 'graceful' | 'compensate'
  not_before: number
  pause_on_failure: boolean
  failure_budget: number | null
  force_grace_ms: number
  force_at: number
  /** When the first cancel came; 0: none has. */
  cancelled_at: number
  /** No node is dispatched before this command has come, which a claim knew of already, or this time has passed. */
  halt_seq: number
  halt_until: number
  /** The close transaction waits for this command. */
  close_seq: number
  in_flight: number
  /** Attempts of role run among them: compensation begins when none is left. */
  running: number
  unsettled: number
  undo_left: number
  undoing: boolean
  counts: Record<NodeState, number>
  attention: Set<number>
  parked: Set<number>
  waits: Set<number>
  /** Ready, but under an open patch. */
  held: Set<number>
  /** A person has overridden a freeze: it can at best succeed with exceptions. */
  overridden: boolean
  /** Whether what starts holds what it needs; `none`: there is no lease to give back. */
  leases: 'held' | 'giving' | 'released' | 'taking' | 'waiting' | 'none'
  lease_blockers: BlockedOn[]
  /** The last command that changed what the calendar allows, or told of free places. */
  calendar_seq: number
  /** Ready, or to be undone, but the calendar or its pool lets it start later: by position of the node. */
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
  /** Ready since the last record: written only if they still are when it is made. */
  fresh: Set<number>
  ready: Heap
  instant: Heap
  undo_ready: Heap
  dues: Heap
  last_seq: number
  seen: string[]
  record_seq: number
  recording: boolean
  /** What is being recorded takes back what a command wrote. */
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
