import type { Category, Code } from '../codes.ts'

/**
 * The nouns that planner, API, workflow and console share: nodes and gates of a plan, their states, actors, and the
 * subject a gate decision is bound to. Types only: the workflow bundle may hold no schema library.
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
/** What the engine reports; `pausing` is derived from control and this (operations.md 2.3). */
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

export const GATE_STATUSES = ['armed', 'waiting', 'approved', 'rejected', 'expired', 'bypassed', 'cancelled'] as const
export type GateStatus = (typeof GATE_STATUSES)[number]

/** Who did something, and (for people) with which roles at that moment. */
export type Actor = {
  kind: 'user' | 'service' | 'executor' | 'engine' | 'system'
  id: string
  name: string
  roles?: string[]
  /** Of a machine: the people who answer for it. */
  behind?: readonly string[]
}

/** These actors and the people behind them: whom four eyes excludes. */
export const partiesOf = (...actors: readonly Pick<Actor, 'id' | 'behind'>[]): string[] => [
  ...new Set(actors.flatMap(({ id, behind = [] }) => [id, ...behind])),
]

/** Classes of definite failures that are tried again unless the node says otherwise (operations.md 7.1). */
export const RETRYABLE: ReadonlySet<string> = new Set([
  'unreachable',
  'remote_error',
  'timeout',
  'not_picked_up',
  'condition_timeout',
  'unexpected_response',
])

/** The class of a target that is not as it was planned: its node had no effect, and the operation pauses. */
export const TARGET_DRIFTED = 'target_drifted'

export type NodeError = { class: string; message: string; retryable: boolean; hint?: string }

/** What keeps a ready node from starting, the calendar or agents who have enough to do, and when to look again (milliseconds since 1970). */
export type Closure = { kind: 'freeze' | 'window' | 'executor' | 'catalog' | 'identity'; id: string; until: number }

/** A reason why an operation is blocked: shown to people as it is. */
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
/** `catalog`: what an undo writes there; none where the step's own write leaves no field to restore. */
export type Compensation = {
  executor: string
  with: Value
  idempotent?: boolean
  when?: string
  catalog?: CatalogWrite
}

/** What is read at a target before its first effect: each place of the raw result must hold the value of the plan. */
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

/** A fully expanded node of a plan: the worker reads only this. Defaults are filled in. */
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
  /** The batch it stands in. */
  group?: string
  /** `pack@version/procedure.step`: key of duration estimates. */
  step?: string
  /** Of a barrier: it holds when more nodes of its batch failed. */
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
  /** It is not approved together with others. */
  bulk?: false
  deadline_s: number
  escalation: { after_s: number; add_groups: string[] }[]
  on_timeout: 'reject' | 'hold' | 'approve'
  on_reject: 'fail_nodes' | 'hold' | 'cancel_operation'
  lease_policy: 'hold' | 'release'
  /** What becomes of a used approval whose voter lost the right; asked anew (reask) unless said. */
  on_voter_loss?: 'reask' | 'keep_after_start'
  binds: string[]
  /** The service that answers instead of people: a gate of kind external_check. */
  check?: { service: string; timeout_s: number }
}

export type PlanGate = {
  gate_id: string
  kind: 'approval' | 'freeze' | 'policy_override' | 'external_check' | 'intervention'
  question: string
  policy: GatePolicy
  /** Nodes that may not start before it is approved. */
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
  /** Of a gate of kind intervention: what is done when a second person agrees. */
  intervention?: {
    type: string
    node_id: string | null
    payload: Record<string, unknown>
    reason: string | null
    ticket: string | null
    author: { id: string; name: string; behind?: readonly string[] }
  }
}

/** The drawing of a plan or operation; nodes in rank order. The states are laid over it by the reader. */
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
  /** Where it differs from the category's own. */
  status?: number
  available_at?: string
  extra?: Record<string, unknown>
}
/** What a person may do with an object now, with the reason when not. */
export type AllowedAction = {
  action: string
  allowed: boolean
  reason_category: string | null
  reason_code: string | null
  reason: string | null
  available_at: string | null
}
