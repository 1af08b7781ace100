import type {
  BlockedOn,
  CancelMode,
  Closure,
  Control,
  EngineStatus,
  GatePolicy,
  GateStatus,
  Join,
  NodeError,
  NodeState,
  OnFailure,
  OperationEnd,
  Retry,
} from '../../../apps/shared/contracts/operations/graph.ts'
import type { Heap } from '../heap.ts'
import type { CommandBodies, CommandMessage } from '../messages.ts'

/** What nodes of one kind have in common: sent once a page, so that a node costs less than 100 bytes. */
export type Profile = {
  kind: 'task' | 'barrier' | 'wait'
  executor: string
  join: Join
  on_failure: OnFailure
  retry: Retry
  /** Seconds that one activity of it may take. */
  slice_s: number
  when: boolean
  catalog: boolean
  undo: boolean
  /** False where the plan says that it must not be skipped. */
  skippable?: boolean
  /** Of a barrier: it fails when more of its dependencies failed. */
  max_failures: number | null
  wait: { duration_s?: number; until?: string; signal?: string } | null
}

export type GateSpec = {
  gate_id: string
  on_reject: GatePolicy['on_reject']
  status: GateStatus
  round: number
  /** While it waits and nothing is in flight the leases are given back. */
  release?: true
}

/**
 * One page of load_graph. Nodes refer to dependencies and gates by position; `profiles` are those of this page. Positions
 * never change: a patch appends nodes and gates, and what it took out keeps its place as removed.
 */
export type GraphPage = {
  plan_revision: number
  profiles: Profile[]
  nodes: [node_id: string, name: string, profile: number, depends_on: number[], gates: number[], removed?: 1][]
  next: number | null
  head?: {
    gates: GateSpec[]
    max_parallel: number
    deadline_at: string | null
    on_deadline: 'graceful' | 'compensate'
    not_before: string | null
    pause_on_failure: boolean
    force_grace_s: number
  }
}

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

/** What a node does within its state: nothing, or which answer or time it waits for. */
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

export type Role = 'run' | 'undo'

/** Settled: nothing more will come of it by itself. Good ones let dependents go on. */
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
  /** An attempt of this number has begun and is still open: the next dispatch goes on with it. */
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

/** Facts for record_changes, in the order in which they came to be. */
export type Change =
  | {
      t: 'node'
      id: string
      state: NodeState
      at: number
      generation: number
      attempt: number
      role?: Role
      error?: NodeError
      due?: number
      exception?: string
      /** No news: the rows may have it otherwise, because of a command that came to nothing. */
      again?: true
    }
  | { t: 'catalog'; id: string; at: number; status: string; version?: number }
  | { t: 'when'; id: string }
  | { t: 'gate_open'; gate_id: string; round: number }
  | { t: 'gate_expire'; gate_id: string; round: number }
  | { t: 'gate_escalate'; gate_id: string; round: number }
  | { t: 'control'; to: 'pause' | 'cancel'; mode?: CancelMode; reason: string; by?: string }
  | {
      t: 'command'
      command_id: string
      status: 'applied' | 'refused' | 'expired'
      category?: string
      code?: string
      detail?: string
    }
  | { t: 'deadline'; deadline_at: number }
  | { t: 'leases'; to: 'release' | 'take' }

export type Report = {
  engine_status: EngineStatus
  blocked_on: BlockedOn[]
  total: number
  done: number
  running: number
  failed: number
  waiting: number
  open_gates: number
}

export type RecordBatch = { record_seq: number; changes: Change[]; report: Report }

/** What the rows said: gates that moved, conditions, the control row after a swap. */
export type RecordResult = {
  record_seq: number
  gates: {
    gate_id: string
    status: GateStatus
    round: number
    deadline_at: string | null
    escalates_at?: string | null
  }[]
  whens: Record<string, boolean | string>
  /** After a swap was asked for: which was made, and the last command that the rows know of. */
  control: { swapped: 'pause' | 'cancel' | null; seq: number } | null
  /** What became of the leases that were given back or asked for; who is in the way. */
  leases?: { state: 'held' | 'released' | 'waiting' | 'none'; blocked_on: BlockedOn[] }
  /** The start was too late and is undone: there is nothing to carry out. */
  withdrawn?: boolean
  /** An approved patch was taken back: the graph that holds now. */
  plan_revision?: number
}

/** Why a claim was refused (operations.md 1.5). `seq`: the last command the rows know of. */
export type Refusal = {
  reason:
    | 'stopped'
    | 'superseded'
    | 'held'
    | 'gate_open'
    | 'lease_lost'
    | 'frozen'
    | 'window_closed'
    | 'executor_busy'
    | 'drifted'
    | 'unproved'
  seq: number
  generation: number
  gates: { gate_id: string; status: GateStatus; round: number }[]
  /** An earlier try of this attempt had begun: its effect may be there. */
  repeated: boolean
  /** Of frozen, window_closed, executor_busy, drifted and unproved: by what, and until when. */
  closure?: Closure
}

export type AttemptResult =
  | { status: 'succeeded'; started_at: number; ended_at: number }
  | { status: 'failed'; started_at?: number; ended_at?: number; error: NodeError; retry_after_s?: number }
  | { status: 'unknown'; error: NodeError }
  | { status: 'pending'; started_at: number; poll_after_s: number }
  | { status: 'refused'; refusal: Refusal }
  /** Another fence took over, or the attempt was closed: its owner speaks for it. */
  | { status: 'dropped' }

export type CatalogResult =
  | { status: 'applied'; version: number }
  | { status: 'conflict' | 'refused'; message: string }
  | { status: 'away'; message: string }

export type CloseResult =
  | { status: 'ended'; evidence_head: { seq: number; hash: string } }
  | { status: 'not_yet'; seq: number }

export type Event = { at: number } & (
  | { type: 'command'; command: CommandMessage }
  | {
      type: 'attempt_ended'
      node: number
      role: Role
      generation: number
      attempt: number
      slice: number
      result: AttemptResult
    }
  | { type: 'catalog_ended'; node: number; generation: number; attempt: number; result: CatalogResult }
  | { type: 'recorded'; result: RecordResult }
  | { type: 'loaded'; pages: GraphPage[] }
  | { type: 'due' }
  | { type: 'closed'; result: CloseResult }
  /** Somebody cancelled the workflow in the engine itself. */
  | { type: 'cancel_requested'; by: string }
  /** Stop launching, let what is out come back, then the shell continues as new. */
  | { type: 'roll' }
)

export type RunEffect = {
  type: 'run'
  node: number
  node_id: string
  name: string
  role: Role
  generation: number
  attempt: number
  slice: number
  slice_s: number
}
export type Effect =
  | RunEffect
  | { type: 'cancel_attempts' }
  /** An agent outside may have it: it is told to stop. */
  | { type: 'cancel_attempt'; node_id: string; role: Role; attempt: number }
  | { type: 'apply_catalog'; node: number; node_id: string; generation: number; attempt: number }
  | { type: 'record'; batch: RecordBatch }
  | { type: 'load_graph' }
  /** `batch`: the last facts, recorded in the transaction that ends the operation. */
  | { type: 'close'; status: OperationEnd; end_reason: string | null; last_seq: number; batch?: RecordBatch }
  | { type: 'wake_at'; at: number }

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
  force_grace_ms: number
  force_at: number
  /** When the first cancel came; 0: none has. */
  cancelled_at: number
  /** Nothing is dispatched before this command has come, which a claim knew of already, or this time has passed. */
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
  /** Whether what starts holds what it needs; `none`: there is nothing to give back. */
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
