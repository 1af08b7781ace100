import type { Category, Code } from '../codes.ts'

/**
 * The nouns that planner, API, workflow and console share: nodes and gates of a plan, their states, actors, and the
 * subject that a gate decision is bound to. Types only: the workflow bundle must not contain a schema library.
 */
export const OPERATION_ENDS = ['succeeded', 'succeeded_with_exceptions', 'failed', 'cancelled', 'timed_out'] as const
export const OPERATION_STATUSES = [
  'queued',
  'running',
  'blocked',
  'pausing',
  'paused',
  'cancelling',
  ...OPERATION_ENDS,
] as const
export type OperationStatus = (typeof OPERATION_STATUSES)[number]
export type OperationEnd = (typeof OPERATION_ENDS)[number]
/** The status that the engine reports; `pausing` is derived from it and control (operations.md 2.3). */
export type EngineStatus = Exclude<OperationStatus, 'pausing'>
export type Control = 'run' | 'pause' | 'cancel'
export type CancelMode = 'graceful' | 'compensate' | 'force'

export const NODE_STATES = [
  'pending',
  'gated',
  'ready',
  'dispatched',
  'running',
  'backoff',
  'succeeded',
  'failed',
  'outcome_unknown',
  'skipped',
  'cancelled',
  'compensating',
  'compensated',
  'compensation_failed',
  'removed',
] as const
export type NodeState = (typeof NODE_STATES)[number]

/** The changes that a person can make to one node, and to the whole operation, besides its plan. */
export const NODE_INTERVENTIONS = [
  'skip',
  'mark_succeeded',
  'mark_failed',
  'mark_compensated',
  'set_output',
  'set_input',
  'trigger_compensation',
] as const
export type NodeIntervention = (typeof NODE_INTERVENTIONS)[number]
export const OPERATION_INTERVENTIONS = [
  'extend_deadline',
  'set_limits',
  'release_leases',
  'delegate_gate',
  'override_freeze',
] as const
export type OperationIntervention = (typeof OPERATION_INTERVENTIONS)[number]

export const GATE_STATUSES = ['armed', 'waiting', 'approved', 'rejected', 'expired', 'bypassed', 'cancelled'] as const
export type GateStatus = (typeof GATE_STATUSES)[number]

/** The author of an act, and (for people) their roles at that moment. */
export type Actor = {
  kind: 'user' | 'service' | 'executor' | 'engine' | 'system'
  id: string
  name: string
  roles?: string[]
  /** For a machine: the people who answer for it. */
  behind?: readonly string[]
  /** For a vote by delegation: the person who delegated, with whom it counts as one. */
  in_place_of?: string
}

/** Returns these actors and the people behind them: those whom four eyes excludes. */
export const partiesOf = (...actors: readonly Pick<Actor, 'id' | 'behind'>[]): string[] => [
  ...new Set(actors.flatMap(({ id, behind = [] }) => [id, ...behind])),
]

/** Classes of definite failures that are retried unless the node says otherwise (operations.md 7.1). */
export const RETRYABLE: ReadonlySet<string> = new Set([
  'unreachable',
  'remote_error',
  'timeout',
  'not_picked_up',
  'condition_timeout',
  'unexpected_response',
])

/** The class for a target that is not as planned: its node had no effect, and the operation pauses. */
export const TARGET_DRIFTED = 'target_drifted'

export type NodeError = { class: string; message: string; retryable: boolean; hint?: string }

/** What keeps a ready node from starting, such as the calendar or busy agents, and when to look again (epoch ms). */
export type Closure = { kind: 'freeze' | 'window' | 'executor' | 'catalog' | 'identity'; id: string; until: number }

/** A reason why an operation is blocked, shown to people unchanged. */
export type BlockedOn = {
  kind:
    | 'gate'
    | 'lease'
    | 'window'
    | 'freeze'
    | 'failed_node'
    | 'outcome_unknown'
    | 'patch'
    | 'executor'
    | 'identity'
    | 'catalog'
    | 'engine'
    | 'not_before'
    | 'paused'
  id: string
  href?: string
  since?: string
  until?: string
  message: string
}

/** Plain JSON, or `{"$from": …}`, `{"$join": …}`, `{"$secret": …}`, `{"$$": …}` (operations.md 4.1 "Values"). */
export type Value = unknown

export type Join = 'all' | 'any' | 'settled'
export type OnFailure = 'hold' | 'tolerate' | 'skip_dependents' | 'fail' | 'compensate'
export type Retry = { max_attempts: number; initial_s: number; factor: number; max_s: number; retry_on?: string[] }
export type Timeouts = { start_s?: number; run_s: number; heartbeat_s?: number }
/** `catalog`: the undo's catalog write; none if the step's own write leaves no field to restore. */
export type Compensation = {
  executor: string
  with: Value
  idempotent?: boolean
  when?: string
  catalog?: CatalogWrite
}

/** The read of a target before its first effect: each place of the raw result must hold the plan's value. */
export type TargetRead = { executor: string; with: Value; expect: Record<string, Value> }

/** The catalog write of a node: one ResourceUpdateCommand on success. Values may refer to outputs. */
export type CatalogWrite = {
  lifecycle_status?: Value
  health_status?: Value
  desired_state_patch?: Value
  observed_state_patch?: Value
  relationship_changes?: Value
  provided_capability_changes?: Value
}

/** A fully expanded node of a plan, with defaults filled in; the worker reads only this. */
export type PlanNode = {
  node_id: string
  name: string
  kind: 'task' | 'barrier' | 'wait'
  /** http, noop, …; empty for barriers and waits. */
  executor: string
  pool?: string
  with: Value
  target_id?: string
  depends_on: string[]
  join: Join
  /** CEL, evaluated by record_changes when the join is satisfied; false: skipped. */
  when?: string
  idempotent: boolean
  /** Name to JSON pointer into the executor's raw result. */
  outputs?: Record<string, string>
  outputs_schema?: Record<string, unknown>
  timeouts: Timeouts
  retry: Retry
  on_failure: OnFailure
  compensate?: Compensation
  read?: TargetRead
  catalog?: CatalogWrite
  secrets?: Record<string, Value>
  skippable: boolean
  tags?: string[]
  risk?: number
  estimate_s?: number
  /** The batch that contains it. */
  group?: string
  /** `pack@version/procedure.step`: key of duration estimates. */
  step?: string
  /** For a barrier: it holds if more nodes of its batch failed. */
  max_failures?: number
}

export type GatePolicy = {
  key: string
  digest: string
  version?: number
  quorum: number
  groups: { group: string; min: number }[]
  four_eyes: boolean
  reject_rule: 'any' | 'majority'
  comment_on_approve: boolean
  /** An approval counts only with the voter's passkey over the digest. */
  signature?: 'required'
  /** Rights that a provider gave since the plan could be known do not count. */
  new_members?: 'refuse'
  /** It must not be approved together with others. */
  bulk?: false
  deadline_s: number
  escalation: { after_s: number; add_groups: string[] }[]
  on_timeout: 'reject' | 'hold' | 'approve'
  on_reject: 'fail_nodes' | 'hold' | 'cancel_operation'
  lease_policy: 'hold' | 'release'
  /** What happens to a used approval whose voter lost the right; by default it is asked again (reask). */
  on_voter_loss?: 'reask' | 'keep_after_start'
  binds: string[]
  /** The service that answers instead of people: a gate of kind external_check. */
  check?: { service: string; timeout_s: number }
  /** Policies that forbid what a preview shows, so that this gate asks for more than was planned. */
  raised_by?: string[]
}

export type PlanGate = {
  gate_id: string
  kind: 'approval' | 'freeze' | 'policy_override' | 'external_check' | 'intervention'
  question: string
  policy: GatePolicy
  /** Nodes that must not start before it is approved. */
  guards: string[]
}

export type FieldChange = { path: string; before: unknown; after: unknown; sensitive?: boolean; noise?: boolean }

/** Who asks for an operation, and why. */
export type GateAsked = {
  requester: Pick<Actor, 'kind' | 'id' | 'name'>
  title: string
  reason: string
  ticket: string | null
  plan_hash: string
}

/**
 * What an approval is bound to (operations.md 3.3); its digest covers exactly this. No versions: a version that moves
 * without a value asks nobody. `v: 2` binds who asks and the names, places, steps and batches too; the gates of an
 * operation that began without keep `v: 1` to its end.
 */
export type GateSubject = {
  v: 1 | 2
  asked?: GateAsked
  operation_id: string
  gate_id: string
  kind: string
  policy: { key: string; digest: string }
  releases: {
    node_id: string
    name: string
    executor: string
    target_id: string | null
    inputs: Value
    on_failure: OnFailure
    spec_digest: string
    step?: string | null
    batch?: string | null
  }[]
  releases_count?: number
  releases_digest?: string
  changes: {
    resource_id: string
    name?: string
    type_key?: string | null
    region_id?: string | null
    change: string
    fields: { path: string; before: unknown; after: unknown }[]
  }[]
  bound_outputs: { pointer: string; value: unknown }[]
  /** For a gate of kind intervention: the intervention that is carried out when a second person agrees. */
  intervention?: {
    type: string
    node_id: string | null
    payload: Record<string, unknown>
    reason: string | null
    ticket: string | null
    author: { id: string; name: string; behind?: readonly string[] }
  }
}

/** The drawing of a plan or operation; nodes in rank order. The reader adds the states. */
export type PlanGraph = {
  nodes: {
    node_id: string
    name: string
    kind: PlanNode['kind']
    executor: string
    target_id: string | null
    group: string | null
    depends_on: string[]
    join: Join
    gates: string[]
    risk: number
    on_failure: OnFailure
    has_compensation: boolean
    estimate_s: number
  }[]
  groups: { group_id: string; name: string; kind: string }[]
  gates: { gate_id: string; question: string; guards: string[] }[]
  critical_path: string[]
}

export type RefusalCode = {
  category: Category
  code: Code
  detail: string
  /** Set if it differs from the category's. */
  status?: number
  available_at?: string
  extra?: Record<string, unknown>
}
/** An action that a person may take on an object now, or why not. */
export type AllowedAction = {
  action: string
  allowed: boolean
  reason_category: string | null
  reason_code: string | null
  reason: string | null
  available_at: string | null
}
