import type { Sinks } from '@temporalio/workflow'
import type { Actor, CancelMode, GateStatus, NodeIntervention } from '../../apps/shared/contracts/operations/graph.ts'

/** Workflow type and message names: defined once for relay, worker and tests. */
export const WORKFLOW_TYPE = 'operation'
export const COMMAND_SIGNAL = 'command'
export const STATE_QUERY = 'state'
export const NODE_QUERY = 'node'
export const REFUSE_QUERY = 'refuse'

/** The worker's act for a workflow that cannot continue: the only message that bypasses the history. */
export interface OperationSinks extends Sinks {
  engine: { mismatch: (message: string) => void }
}

/**
 * Task queues of one environment. Bookkeeping has its own, so that slow targets never starve decisions; node work
 * shares the queue of the workflows. Only a shared queue lets the server hand an attempt to the worker that requested
 * it (eager dispatch), which saves a third of the server's work. Workflow and activity slots are separate in any case.
 */
export const operationQueue = (prefix: string) => `${prefix}operation`
export const bookkeepingQueue = (prefix: string) => `${prefix}bookkeeping`

/** Search attributes that an engineer filters by in the Temporal UI. */
export const SEARCH_ATTRIBUTES = {
  OpStatus: 'Keyword',
  OpKind: 'Keyword',
  PlanId: 'Keyword',
  Requester: 'Keyword',
  WaitingGates: 'KeywordList',
  FailedNodes: 'Int',
} as const

/** Interventions that the reducer carries out (operations.md 5.4); the command transaction has decided them. */
export type Intervention = NodeIntervention | 'set_limits' | 'extend_deadline' | 'override_freeze'

/** The current state of gates in the rows; `deadline_at` for a waiting one. */
export type GatesNow = Record<string, { status: GateStatus; round: number; deadline_at?: string | null }>

/** Bodies of commands by kind (operations.md 8). `start` is never sent as a signal: it starts the workflow. */
export type CommandBodies = {
  start: Record<string, never>
  /** `reason`: a mismatch recorded in the rows, not a person's pause. */
  pause: { reason?: 'engine_mismatch' }
  /** `gates`, `guarding`: gates that ask again because values of guarded nodes have moved, and all nodes they guard. */
  resume: { acknowledged: string[]; gates?: GatesNow; guarding?: Record<string, string[]> }
  cancel: { mode: CancelMode }
  gate_decided: { gate_id: string; round: number; status: GateStatus; digest: string }
  /**
   * `generations`: exactly the nodes to reset, with their new generation. `gates`: the new state of the gates that
   * guard them. `guarded_by`: gates that guard the node from now on, because they had approved other inputs.
   */
  retry_node: {
    node_id: string
    scope: 'downstream' | 'node'
    generations: Record<string, number>
    gates: GatesNow
    guarded_by?: string[]
  }
  /** `generation`: the node's new one; `generations`: those of other affected nodes. */
  intervene: {
    type: Intervention
    node_id: string | null
    generation?: number
    generations?: Record<string, number>
    gates?: GatesNow
    guarded_by?: string[]
    /** `attempt`: the running one, which has been given up. */
    payload?: { max_parallel?: number; message?: string; add_s?: number; attempt?: number }
  }
  node_result: {
    node_id: string
    /** `run` if absent. */
    role?: 'run' | 'undo'
    attempt: number
    fence: number
    /** `again`: the attempt is handed over once more. */
    status: 'succeeded' | 'failed' | 'unknown' | 'again'
    class?: string
    message?: string
    retryable?: boolean
  }
  node_signal: { name: string }
  /** Nodes that an open patch would change: none of them starts until it is closed or applied. */
  patch_proposed: { patch_id: string; node_ids: string[] }
  /** `plan_revision`: the graph now in force, if an approval was taken back. */
  patch_closed: { patch_id: string; plan_revision?: number }
  /** `generations`: exactly the changed nodes, with their new generation; `closed`: other patches that this ends. */
  patch_applied: {
    patch_id: string
    plan_revision: number
    generations: Record<string, number>
    gates: Record<string, { status: GateStatus; round: number; deadline_at: string | null }>
    closed: string[]
  }
  catalog_drift: { node_ids: string[] }
  lease_granted: { lease_epoch: number }
  /** Windows and freezes that were added, removed or moved; the rows have them. */
  calendar_changed: { entry_ids: string[] }
  /** Agents of their pools can take more work: these nodes claim again. */
  place_free: { node_ids: string[] }
}
export type CommandKind = keyof CommandBodies

/** The only signal: sent by the relay with requestId = command_id, strictly in `seq` order per operation. */
export type CommandMessage<K extends CommandKind = CommandKind> = {
  [P in K]: {
    v: 1
    command_id: string
    seq: number
    kind: P
    at: string
    /** A start-class command that arrives later is answered `expired`. */
    not_after: string | null
    actor: Actor
    request_id: string | null
    trace: string | null
    reason: string | null
    body: CommandBodies[P]
  }
}[K]

/** Input of the workflow; `carried` is the snapshot of the previous run (continue-as-new). */
export type OperationInput = {
  v: 1
  operation_id: string
  title: string
  plan_id: string
  plan_hash: string
  requester: string
  kind: string
  /** The operation's page in the console; absent in operations of older code. */
  page?: string
  /** The start command, whose outcome the first record_changes reports. */
  start: CommandMessage<'start'>
  bookkeeping_queue: string
  search_attributes: boolean
  /** Tests roll after this many events. */
  test_roll_events?: number
  carried?: unknown
  /** The trace of the command that the previous run took last, if its spans are recorded. */
  trace?: string
}

export type OperationOutcome = {
  status: string
  end_reason: string | null
  evidence_head: { seq: number; hash: string } | null
}
