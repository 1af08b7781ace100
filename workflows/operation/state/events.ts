import type {
  BlockedOn,
  CancelMode,
  Closure,
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
import type { CommandMessage } from '../messages.ts'

export type Role = 'run' | 'undo'

/** The common properties of similar nodes: sent once per page, so that a node costs less than 100 bytes. */
export type Profile = {
  kind: 'task' | 'barrier' | 'wait'
  executor: string
  join: Join
  on_failure: OnFailure
  retry: Retry
  /** Seconds that one activity of the node may take. */
  slice_s: number
  when: boolean
  catalog: boolean
  undo: boolean
  /** Its undo writes to the catalog; absent in older graphs. */
  undo_catalog?: true
  /** False if the plan says that it must not be skipped. */
  skippable?: boolean
  /** For a barrier: it fails if more of its dependencies failed. */
  max_failures: number | null
  wait: { duration_s?: number; until?: string; signal?: string } | null
}

export type GateSpec = {
  gate_id: string
  on_reject: GatePolicy['on_reject']
  status: GateStatus
  round: number
  /** While the gate waits and no attempt is in flight, the leases are given back. */
  release?: true
  /** The nodes whose outputs its subject holds, by position; absent in older graphs. */
  binds?: number[]
}

/**
 * One page of load_graph. Nodes refer to dependencies and gates by position; `profiles` are those of this page.
 * Positions never change: a patch appends nodes and gates, and removed ones keep their place.
 */
export type GraphPage = {
  plan_revision: number
  profiles: Profile[]
  nodes: [node_id: string, name: string, profile: number, depends_on: number[], gates: number[], removed?: 1][]
  next: number | null
  head?: {
    gates: GateSpec[]
    max_parallel: number
    /** What a person may set it to; absent in graphs of older code. */
    most_parallel?: number
    /** The number of the last command that these rows know; absent in graphs of older code. */
    command_seq?: number
    deadline_at: string | null
    on_deadline: 'graceful' | 'compensate'
    not_before: string | null
    pause_on_failure: boolean
    /** How many tasks may fail before the operation pauses; absent in graphs of older code. */
    failure_budget?: number | null
    force_grace_s: number
  }
}

/** Facts for record_changes, in the order in which they arose. */
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
      /** Not a new fact: the rows may differ because of a command without effect. */
      again?: true
    }
  | { t: 'catalog'; id: string; at: number; status: string; version?: number; role?: 'undo' }
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

/** The rows' answer: gates that moved, conditions, the control row after a swap. */
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
  /** After a requested swap: which swap was made, and the last command that the rows know of. */
  control: { swapped: 'pause' | 'cancel' | null; seq: number } | null
  /** The state of leases that were given back or requested, and who blocks them. */
  leases?: { state: 'held' | 'released' | 'waiting' | 'none'; blocked_on: BlockedOn[] }
  /** The start was too late and is undone, with no further effect. */
  withdrawn?: boolean
  /** An approved patch was taken back: the graph now in force. */
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
  /** An earlier try of this attempt had begun: its effect may exist. */
  repeated: boolean
  /** For frozen, window_closed, executor_busy, drifted and unproved: what blocks it, and until when. */
  closure?: Closure
}

export type AttemptResult =
  | { status: 'succeeded'; started_at: number; ended_at: number }
  | { status: 'failed'; started_at?: number; ended_at?: number; error: NodeError; retry_after_s?: number }
  | { status: 'unknown'; error: NodeError }
  | { status: 'pending'; started_at: number; poll_after_s: number }
  | { status: 'refused'; refusal: Refusal }
  /** Another fencing token took over, or the attempt was closed: its owner reports for it. */
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
  | { type: 'catalog_ended'; node: number; role: Role; generation: number; attempt: number; result: CatalogResult }
  | { type: 'recorded'; result: RecordResult }
  | { type: 'loaded'; pages: GraphPage[] }
  | { type: 'due' }
  | { type: 'closed'; result: CloseResult }
  /** A person canceled the workflow in the engine itself. */
  | { type: 'cancel_requested'; by: string }
  /** Stop launching and let work in flight return; the workflow then continues as new. */
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
  /** An external agent may have it, and is told to stop. */
  | { type: 'cancel_attempt'; node_id: string; role: Role; attempt: number }
  | { type: 'apply_catalog'; node: number; node_id: string; role: Role; generation: number; attempt: number }
  | { type: 'record'; batch: RecordBatch }
  | { type: 'load_graph' }
  /** `batch`: the last facts, recorded in the transaction that ends the operation. */
  | { type: 'close'; status: OperationEnd; end_reason: string | null; last_seq: number; batch?: RecordBatch }
  | { type: 'wake_at'; at: number }
