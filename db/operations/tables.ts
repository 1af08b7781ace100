import { sql } from 'drizzle-orm'
import {
  bigint,
  boolean,
  customType,
  index,
  integer,
  jsonb,
  pgSchema,
  primaryKey,
  text,
  timestamp,
  unique,
  uniqueIndex,
  uuid,
} from 'drizzle-orm/pg-core'
import type { OperationCalendar } from '../../apps/shared/calendar.ts'
import type {
  Actor,
  BlockedOn,
  GateSubject,
  NodeError,
  PlanGate,
  PlanGraph,
  PlanNode,
} from '../../apps/shared/contracts/operations/graph.ts'
import { auditTable } from '../audit.ts'
import { idempotencyTable } from '../idempotency.ts'
import { inboxTables } from '../inbox.ts'
import { outboxTables } from '../outbox.ts'
import type { EvidenceSubject } from './evidence.ts'

/**
 * Rows of the operations app (operations.md 1.1, 6.1). Postgres decides: whatever a refusal can depend on is a column
 * here. `operation_control` stands apart from `operations`, because claims share-lock it while record_changes updates
 * `operations` at every step, and neither may wait for the other.
 */
export const operationsSchema = pgSchema('operations')
const t = operationsSchema.table

const bytea = customType<{ data: Buffer; driverData: Buffer }>({ dataType: () => 'bytea' })
const at = (name: string) => timestamp(name, { withTimezone: true, mode: 'string' })
const now = (name: string) => at(name).notNull().default(sql`clock_timestamp()`)
const json = <T>(name: string) => jsonb(name).$type<T>()
const count = (name: string) => integer(name).notNull().default(0)
const big = (name: string) => bigint(name, { mode: 'number' })

export const { outbox, relay_state } = outboxTables(operationsSchema)
export const inboxOf = inboxTables(operationsSchema)
export const { inbox, projection_version, dead_letter, projection } = inboxOf
export const idempotency = idempotencyTable(operationsSchema)

export const intents = t(
  'intents',
  {
    intent_id: uuid('intent_id').primaryKey(),
    status: text('status').notNull().default('open'),
    revision: integer('revision').notNull().default(1),
    kind: text('kind').notNull(),
    title: text('title').notNull(),
    reason: text('reason').notNull(),
    /** The request as it came: targets, change, action or graph. */
    request: json<Record<string, unknown>>('request').notNull(),
    targets_resolved:
      json<{ resource_id: string; type_key: string; name: string; version: number }[]>('targets_resolved').notNull(),
    /** All targets: what the scope of grants is compared with. */
    resource_ids: text('resource_ids').array().notNull().default(sql`'{}'`),
    requester: json<Actor>('requester').notNull(),
    requester_id: text('requester_id').notNull(),
    labels: json<Record<string, string>>('labels').notNull(),
    constraints: json<Record<string, unknown>>('constraints').notNull(),
    ticket: text('ticket'),
    retry_of: uuid('retry_of'),
    latest_plan_id: uuid('latest_plan_id'),
    operation_id: uuid('operation_id'),
    created_at: now('created_at'),
    updated_at: now('updated_at'),
    expires_at: at('expires_at').notNull(),
  },
  (c) => [index().on(c.requester_id, c.created_at), index().on(c.status, c.expires_at)],
)

export const plans = t(
  'plans',
  {
    plan_id: uuid('plan_id').primaryKey(),
    intent_id: uuid('intent_id').notNull(),
    status: text('status').notNull(),
    status_reason: text('status_reason'),
    /** Version of the aggregate on the outbox: one per change of status. */
    revision: integer('revision').notNull().default(1),
    plan_hash: text('plan_hash').notNull(),
    semantic_digest: text('semantic_digest').notNull(),
    /** What the hash covers and the readers see: pins, packs, nodes, gates, leases, windows, constraints. */
    document: json<PlanDocument>('document').notNull(),
    /** What the reader sees besides: diff, counts, impact, risk, conflicts, policy_results, warnings, estimates. */
    report: json<Record<string, unknown>>('report').notNull(),
    graph: json<PlanGraph>('graph').notNull(),
    requester_id: text('requester_id').notNull(),
    operation_id: uuid('operation_id'),
    superseded_by: uuid('superseded_by'),
    created_at: now('created_at'),
    updated_at: now('updated_at'),
    expires_at: at('expires_at').notNull(),
  },
  (c) => [index().on(c.intent_id, c.created_at), index().on(c.status, c.expires_at)],
)
export type PlanDocument = {
  intent_id: string
  kind: string
  packs: { pack: string; version: string; digest: string }[]
  catalog_pins: { resource_id: string; version: number }[]
  policies: { key: string; digest: string }[]
  nodes: PlanNode[]
  gates: PlanGate[]
  leases: { resource_id: string; mode: 'exclusive' | 'shared' }[]
  windows: string[]
  constraints: Record<string, unknown>
}

/** `given_back` by a person until the resume; `released` while a gate waits; `waiting` for others to end. */
export type LeaseState = 'held' | 'given_back' | 'released' | 'waiting'

/** What is wanted of an operation: written by command transactions (and by swaps from `run` in record_changes). */
export const operation_control = t('operation_control', {
  operation_id: uuid('operation_id').primaryKey(),
  control: text('control').$type<'run' | 'pause' | 'cancel'>().notNull().default('run'),
  cancel_mode: text('cancel_mode').$type<'graceful' | 'compensate' | 'force'>(),
  cancelled_at: at('cancelled_at'),
  pause_reason: text('pause_reason'),
  /** Counts decided changes; the first half of the ETag. */
  revision: big('revision').notNull().default(1),
  /** The last number given to a command of this operation. */
  command_seq: big('command_seq').notNull().default(0),
  ended: boolean('ended').notNull().default(false),
  lease_epoch: integer('lease_epoch').notNull().default(0),
  /** Whether it holds the leases it needs; anything but `held` refuses claims (leases.ts). */
  lease_state: text('lease_state').$type<LeaseState>().notNull().default('held'),
  /** Windows and freezes that bind its nodes; null: none does. The claim asks it. */
  calendar: jsonb('calendar').$type<OperationCalendar>(),
})

/** A freeze as it was put: `applies` is CEL over `target`, times are RFC 3339. */
export type FreezeEntry = { title: string; applies: string; from: string; to: string; approvers: string[] }

/**
 * Freezes that control planes put beside those of the files (operations.md 9.3). A withdrawn one keeps its row, so that
 * running operations are told of it whatever dies in between: all changes up to `told_revision` have reached them.
 */
export const calendar_entries = t('calendar_entries', {
  freeze_id: text('freeze_id').primaryKey(),
  entry: json<FreezeEntry>('entry').notNull(),
  withdrawn: boolean('withdrawn').notNull().default(false),
  put_by: text('put_by').notNull(),
  revision: integer('revision').notNull().default(1),
  told_revision: integer('told_revision').notNull().default(0),
  updated_at: now('updated_at'),
})

/** Something that went on in spite of the plan; `command_id` of what a person decided. */
export type Exception = {
  kind: string
  freeze_id?: string
  node_id?: string
  gate_id?: string
  actor: Actor
  at: string
  command_id?: string
}

/** What is reported of an operation: written by record_changes and by the transactions that state a fact. */
export const operations = t(
  'operations',
  {
    operation_id: uuid('operation_id').primaryKey(),
    intent_id: uuid('intent_id').notNull(),
    plan_id: uuid('plan_id').notNull(),
    title: text('title').notNull(),
    kind: text('kind').notNull(),
    /** queued, running, blocked, paused, cancelling, or one of the ends; read through status_of(control, engine_status). */
    engine_status: text('engine_status').notNull().default('queued'),
    end_reason: text('end_reason'),
    blocked_on: json<BlockedOn[]>('blocked_on').notNull().default([]),
    total: count('total'),
    done: count('done'),
    running: count('running'),
    failed: count('failed'),
    waiting: count('waiting'),
    requester: json<Actor>('requester').notNull(),
    requester_id: text('requester_id').notNull(),
    starter_id: text('starter_id').notNull(),
    /** Users that four eyes excludes: requester, starter, proposers of patches. */
    involved: text('involved').array().notNull().default(sql`'{}'`),
    risk_level: text('risk_level').notNull(),
    environment: text('environment'),
    labels: json<Record<string, string>>('labels').notNull(),
    ticket: text('ticket'),
    retry_of: uuid('retry_of'),
    resource_ids: text('resource_ids').array().notNull().default(sql`'{}'`),
    open_gates: count('open_gates'),
    plan_revision: integer('plan_revision').notNull().default(1),
    plan_hash: text('plan_hash').notNull(),
    constraints: json<Record<string, unknown>>('constraints').notNull(),
    max_parallel: integer('max_parallel').notNull(),
    deadline_at: at('deadline_at'),
    pins: json<Record<string, number>>('pins').notNull(),
    /** Newer versions of targets that have been looked at and found to be drift. */
    drift_looked: json<Record<string, number>>('drift_looked').notNull().default({}),
    /** What the plan changes, where a person has taken newer values of the targets over. */
    diff_moved: json<object[]>('diff_moved').notNull().default([]),
    exceptions: json<Exception[]>('exceptions').notNull().default([]),
    timeline_seq: big('timeline_seq').notNull().default(0),
    evidence_seq: big('evidence_seq').notNull().default(0),
    evidence_hash: text('evidence_hash').notNull(),
    /** Counts all changes a reader can see; the second half of the ETag. */
    change_seq: big('change_seq').notNull().default(1),
    /** Version of the aggregate on the outbox: dense, one per transaction that states facts. */
    agg_version: big('agg_version').notNull().default(0),
    /** Guard of record_changes: the last recorded batch and its stored result. */
    record_seq: big('record_seq').notNull().default(0),
    record_result: json<Record<string, unknown>>('record_result'),
    engine_ref: json<{ namespace: string; workflow_id: string; run_id: string }>('engine_ref'),
    created_at: now('created_at'),
    started_at: at('started_at'),
    ended_at: at('ended_at'),
    updated_at: now('updated_at'),
    eta_at: at('eta_at'),
  },
  (c) => [
    // One operation a plan; a start that was withdrawn never was one.
    uniqueIndex().on(c.plan_id).where(sql`end_reason is distinct from 'start_withdrawn'`),
    index().on(c.created_at, c.operation_id),
    index().on(c.updated_at, c.operation_id),
    index().on(c.engine_status, c.created_at),
    index().on(c.requester_id, c.created_at),
    index().using('gin', c.resource_ids),
  ],
)

export const nodes = t(
  'nodes',
  {
    operation_id: uuid('operation_id').notNull(),
    node_id: text('node_id').notNull(),
    /** Position in rank order: equal data gives equal order everywhere. */
    ordinal: integer('ordinal').notNull(),
    name: text('name').notNull(),
    kind: text('kind').notNull(),
    executor: text('executor').notNull(),
    target_id: text('target_id'),
    group_id: text('group_id'),
    depends_on: text('depends_on').array().notNull().default(sql`'{}'`),
    gate_ids: text('gate_ids').array().notNull().default(sql`'{}'`),
    spec: json<PlanNode>('spec').notNull(),
    spec_digest: text('spec_digest').notNull(),
    state: text('state').notNull().default('pending'),
    generation: integer('generation').notNull().default(1),
    attempt: integer('attempt').notNull().default(0),
    hold_patch_id: uuid('hold_patch_id'),
    removed: boolean('removed').notNull().default(false),
    input_overrides: json<Record<string, unknown>>('input_overrides'),
    outputs: json<Record<string, unknown>>('outputs'),
    error: json<NodeError>('error'),
    exception: text('exception'),
    catalog: json<{ command_id: string; status: string; version?: number; detail?: string }>('catalog'),
    ready_at: at('ready_at'),
    gated_at: at('gated_at'),
    started_at: at('started_at'),
    ended_at: at('ended_at'),
    due_at: at('due_at'),
    updated_at: now('updated_at'),
  },
  (c) => [primaryKey({ columns: [c.operation_id, c.node_id] }), index().on(c.operation_id, c.ordinal)],
)

/** One try of a node (role `run`) or of its compensation (role `undo`). Rows are added, never rewritten to another try. */
export const node_attempts = t(
  'node_attempts',
  {
    operation_id: uuid('operation_id').notNull(),
    node_id: text('node_id').notNull(),
    role: text('role').$type<'run' | 'undo'>().notNull().default('run'),
    attempt: integer('attempt').notNull(),
    generation: integer('generation').notNull(),
    /** The newest fence; a result counts only under it. */
    fence: big('fence').notNull(),
    fences: text('fences').array().notNull().default(sql`'{}'`),
    phase: text('phase').notNull(),
    executor: text('executor').notNull(),
    pool: text('pool'),
    key: text('key').notNull(),
    inputs: json<Record<string, unknown>>('inputs'),
    outputs: json<Record<string, unknown>>('outputs'),
    error: json<NodeError>('error'),
    /** The approvals that it began on, as the claim found them. */
    gates: json<{ gate_id: string; round: number; digest: string }[]>('gates'),
    /** Where a sliced executor goes on. */
    resume: json<Record<string, unknown>>('resume'),
    progress: json<Record<string, unknown>>('progress'),
    sequence: big('sequence').notNull().default(0),
    started_at: now('started_at'),
    ended_at: at('ended_at'),
    heartbeat_at: at('heartbeat_at'),
    deadline_at: at('deadline_at'),
    log_lines: count('log_lines'),
    log_bytes: count('log_bytes'),
    log_complete: boolean('log_complete').notNull().default(false),
  },
  (c) => [primaryKey({ columns: [c.operation_id, c.node_id, c.role, c.attempt] })],
)

/**
 * Work that was handed to an agent outside (operations.md 7.4): one row a dispatch, with the digest of its bearer token
 * and how far the agent is. The newest of an attempt speaks for it until it is closed.
 */
export const executions = t(
  'executions',
  {
    token_sha256: text('token_sha256').primaryKey(),
    operation_id: uuid('operation_id').notNull(),
    node_id: text('node_id').notNull(),
    role: text('role').$type<'run' | 'undo'>().notNull().default('run'),
    attempt: integer('attempt').notNull(),
    generation: integer('generation').notNull(),
    fence: big('fence').notNull(),
    pool: text('pool').notNull(),
    heartbeat_s: integer('heartbeat_s').notNull(),
    start_before: at('start_before').notNull(),
    deadline_at: at('deadline_at').notNull(),
    started_at: at('started_at'),
    heartbeat_at: at('heartbeat_at'),
    /** The last number that the agent gave to a message. */
    sequence: big('sequence').notNull().default(0),
    closed_at: at('closed_at'),
    created_at: now('created_at'),
  },
  (c) => [index().on(c.operation_id, c.node_id, c.attempt)],
)

/** Answers to messages of agents: a repeated one gets the same again. */
export const execution_results = t(
  'execution_results',
  {
    token_sha256: text('token_sha256').notNull(),
    result_id: uuid('result_id').notNull(),
    fingerprint: text('fingerprint').notNull(),
    answer: json<Record<string, unknown>>('answer').notNull(),
    at: now('at'),
  },
  (c) => [primaryKey({ columns: [c.token_sha256, c.result_id] })],
)

export type Delegation = { user_id: string; name: string; by: Actor; until: string }

export const gates = t(
  'gates',
  {
    operation_id: uuid('operation_id').notNull(),
    gate_id: text('gate_id').notNull(),
    kind: text('kind').notNull().default('approval'),
    question: text('question').notNull(),
    policy: json<PlanGate['policy']>('policy').notNull(),
    guards: text('guards').array().notNull(),
    status: text('status').notNull().default('armed'),
    /** Counts openings; a decided round never changes. */
    round: integer('round').notNull().default(1),
    subject: json<GateSubject>('subject').notNull(),
    /** Digest of subject: what a vote is bound to, and what the claim compares with approved_digest. */
    digest: text('digest').notNull(),
    approved_digest: text('approved_digest'),
    consumed_at: at('consumed_at'),
    waiting_since: at('waiting_since'),
    deadline_at: at('deadline_at'),
    escalation_level: count('escalation_level'),
    /** People who may vote like a member of the gate's groups, by whom and until when. */
    delegations: json<Delegation[]>('delegations').notNull().default([]),
    next_escalation_at: at('next_escalation_at'),
    decided_by: json<Actor>('decided_by'),
    decided_at: at('decided_at'),
    decided_command_id: uuid('decided_command_id'),
    /** The revision that brought it: with the id its place in the reducer, which never changes. */
    ordinal: integer('ordinal').notNull().default(1),
    updated_at: now('updated_at'),
  },
  (c) => [primaryKey({ columns: [c.operation_id, c.gate_id] }), index().on(c.status, c.deadline_at)],
)

/** Changes to a running graph that somebody proposed (operations.md 2.6). */
export const patches = t(
  'patches',
  {
    operation_id: uuid('operation_id').notNull(),
    patch_id: uuid('patch_id').notNull(),
    /** awaiting_approval, approved, applied, rejected, not_applicable, expired, withdrawn. */
    status: text('status').notNull().default('awaiting_approval'),
    status_reason: text('status_reason'),
    base_revision: integer('base_revision').notNull(),
    applied_revision: integer('applied_revision'),
    changes: json<Record<string, unknown>[]>('changes').notNull(),
    reason: text('reason').notNull(),
    ticket: text('ticket'),
    proposer: json<Actor>('proposer').notNull(),
    proposer_id: text('proposer_id').notNull(),
    /** Of patch_id, base_revision, changes and result_hash: what a vote is bound to. */
    digest: text('digest').notNull(),
    result_hash: text('result_hash').notNull(),
    diff_graph: json<Record<string, unknown>>('diff_graph').notNull(),
    held_nodes: text('held_nodes').array().notNull().default(sql`'{}'`),
    rearmed_gates: text('rearmed_gates').array().notNull().default(sql`'{}'`),
    /** Policies of the gates that it touches: each must be satisfied by the votes. */
    required: json<PlanGate['policy'][]>('required').notNull(),
    rebase: json<Record<string, unknown>>('rebase'),
    decided_by: json<Actor>('decided_by'),
    decided_at: at('decided_at'),
    expires_at: at('expires_at').notNull(),
    created_at: now('created_at'),
    updated_at: now('updated_at'),
  },
  (c) => [
    primaryKey({ columns: [c.operation_id, c.patch_id] }),
    index().on(c.expires_at).where(sql`status = 'awaiting_approval'`),
  ],
)

/** One person, one vote per patch; the newest counts. */
export const patch_votes = t(
  'patch_votes',
  {
    operation_id: uuid('operation_id').notNull(),
    patch_id: uuid('patch_id').notNull(),
    user_id: text('user_id').notNull(),
    decision: text('decision').$type<'approve' | 'reject'>().notNull(),
    comment: text('comment'),
    digest: text('digest').notNull(),
    /** The voter's groups at that moment: for which policies the vote counts. */
    groups: text('groups').array().notNull().default(sql`'{}'`),
    actor: json<Actor>('actor').notNull(),
    command_id: uuid('command_id').notNull(),
    at: now('at'),
  },
  (c) => [primaryKey({ columns: [c.operation_id, c.patch_id, c.user_id] })],
)

/** One person, one vote per round; the newest counts. */
export const votes = t(
  'votes',
  {
    operation_id: uuid('operation_id').notNull(),
    gate_id: text('gate_id').notNull(),
    round: integer('round').notNull(),
    user_id: text('user_id').notNull(),
    decision: text('decision').$type<'approve' | 'reject'>().notNull(),
    comment: text('comment'),
    digest: text('digest').notNull(),
    group_key: text('group_key'),
    actor: json<Actor>('actor').notNull(),
    command_id: uuid('command_id').notNull(),
    voided: boolean('voided').notNull().default(false),
    at: now('at'),
  },
  (c) => [primaryKey({ columns: [c.operation_id, c.gate_id, c.round, c.user_id] })],
)

/** Accepted commands: the relay's queue, one operation in order of `seq` (operations.md 1.3). */
export const operation_commands = t(
  'operation_commands',
  {
    command_id: uuid('command_id').primaryKey(),
    operation_id: uuid('operation_id').notNull(),
    seq: big('seq').notNull(),
    kind: text('kind').notNull(),
    class: text('class').$type<'stop' | 'start' | 'edit'>().notNull(),
    payload: json<Record<string, unknown>>('payload').notNull(),
    actor: json<Actor>('actor').notNull(),
    reason: text('reason'),
    request_id: text('request_id'),
    trace: text('trace'),
    not_after: at('not_after'),
    /** awaiting (a second person), pending, sending, delivered, applied, refused, expired, superseded, withdrawn. */
    status: text('status').notNull().default('pending'),
    attempts: count('attempts'),
    next_try_at: at('next_try_at'),
    last_error: text('last_error'),
    outcome: json<{ category?: string; code?: string; detail?: string }>('outcome'),
    /** Rows that a withdrawal puts back. */
    undo: json<Record<string, unknown>>('undo'),
    created_at: now('created_at'),
    outcome_at: at('outcome_at'),
  },
  (c) => [
    unique().on(c.operation_id, c.seq),
    index().on(c.operation_id, c.seq).where(sql`status in ('pending', 'sending')`),
    index().on(c.status, c.not_after),
  ],
)

export const engine_findings = t('engine_findings', {
  id: big('id').primaryKey().generatedAlwaysAsIdentity(),
  operation_id: uuid('operation_id').notNull(),
  found: text('found').notNull(),
  at: now('at'),
  handled_at: at('handled_at'),
})

export const leases = t(
  'leases',
  {
    resource_id: text('resource_id').notNull(),
    operation_id: uuid('operation_id').notNull(),
    mode: text('mode').$type<'exclusive' | 'shared'>().notNull(),
    since: now('since'),
  },
  (c) => [primaryKey({ columns: [c.resource_id, c.operation_id] }), index().on(c.operation_id)],
)
export const lease_waits = t('lease_waits', {
  operation_id: uuid('operation_id').primaryKey(),
  wanted: json<{ resource_id: string; mode: 'exclusive' | 'shared' }[]>('wanted').notNull(),
  since: now('since'),
})

export const operation_graph_view = t(
  'operation_graph_view',
  {
    operation_id: uuid('operation_id').notNull(),
    plan_revision: integer('plan_revision').notNull(),
    graph: json<PlanGraph>('graph').notNull(),
    plan_hash: text('plan_hash').notNull(),
    patch_id: uuid('patch_id'),
    created_at: now('created_at'),
  },
  (c) => [primaryKey({ columns: [c.operation_id, c.plan_revision] })],
)

export const operation_timeline_view = t(
  'operation_timeline_view',
  {
    operation_id: uuid('operation_id').notNull(),
    seq: big('seq').notNull(),
    at: at('at').notNull(),
    type: text('type').notNull(),
    actor: json<Actor>('actor').notNull(),
    on_behalf_of: text('on_behalf_of'),
    reason: text('reason'),
    node_id: text('node_id'),
    gate_id: text('gate_id'),
    patch_id: text('patch_id'),
    command_id: uuid('command_id'),
    data: json<Record<string, unknown>>('data').notNull().default({}),
    evidence_seq: big('evidence_seq'),
  },
  (c) => [primaryKey({ columns: [c.operation_id, c.seq] })],
)

/** One hash chain per operation (operations.md 6.3). */
export const operation_evidence_index = t(
  'operation_evidence_index',
  {
    operation_id: uuid('operation_id').notNull(),
    seq: big('seq').notNull(),
    kind: text('kind').notNull(),
    statement: text('statement').notNull(),
    subject: json<EvidenceSubject>('subject').notNull(),
    subject_digest: text('subject_digest').notNull(),
    actor: json<Actor>('actor').notNull(),
    /** As hashed: the text itself, not a timestamp that a driver may print otherwise. */
    at: text('at').notNull(),
    prev_hash: text('prev_hash').notNull(),
    hash: text('hash').notNull(),
  },
  (c) => [primaryKey({ columns: [c.operation_id, c.seq] })],
)

export const log_chunks = t(
  'log_chunks',
  {
    operation_id: uuid('operation_id').notNull(),
    node_id: text('node_id').notNull(),
    role: text('role').notNull().default('run'),
    attempt: integer('attempt').notNull(),
    chunk: integer('chunk').notNull(),
    lines:
      json<{ seq: number; time: string; stream: string; level: string; text: string; cut?: boolean }[]>(
        'lines',
      ).notNull(),
    /** The same lines as gzipped JSON once the log is archived; `lines` is empty then. */
    packed: bytea('packed'),
  },
  (c) => [
    primaryKey({ columns: [c.operation_id, c.node_id, c.role, c.attempt, c.chunk] }),
    index('log_chunks_hot').on(c.operation_id).where(sql`packed is null`),
  ],
)
export const operation_job_log_index = t(
  'operation_job_log_index',
  {
    /** Order of arrival over all logs of this database: what the live stream tails. */
    log_seq: big('log_seq').generatedAlwaysAsIdentity(),
    operation_id: uuid('operation_id').notNull(),
    node_id: text('node_id').notNull(),
    role: text('role').notNull().default('run'),
    attempt: integer('attempt').notNull(),
    chunk: integer('chunk').notNull(),
    generation: integer('generation').notNull(),
    first_seq: big('first_seq').notNull(),
    last_seq: big('last_seq').notNull(),
    first_at: at('first_at').notNull(),
    last_at: at('last_at').notNull(),
    lines: integer('lines').notNull(),
    bytes: integer('bytes').notNull(),
    levels: text('levels').array().notNull().default(sql`'{}'`),
    /** hot, archive, or gone when its time is over. */
    storage: text('storage').notNull().default('hot'),
  },
  (c) => [primaryKey({ columns: [c.operation_id, c.node_id, c.role, c.attempt, c.chunk] }), index().on(c.log_seq)],
)

export const operation_artifact_index = t(
  'operation_artifact_index',
  {
    artifact_id: uuid('artifact_id').primaryKey(),
    operation_id: uuid('operation_id').notNull(),
    node_id: text('node_id').notNull(),
    attempt: integer('attempt').notNull(),
    name: text('name').notNull(),
    kind: text('kind').notNull(),
    media_type: text('media_type').notNull(),
    size: big('size').notNull(),
    sha256: text('sha256').notNull(),
    status: text('status').notNull(),
    uri: text('uri'),
    /** Small artifacts stand in the row; larger ones in the content-addressed folder. */
    content: bytea('content'),
    created_at: now('created_at'),
    expires_at: at('expires_at'),
  },
  (c) => [index().on(c.operation_id)],
)

export const resource_operation_index = t(
  'resource_operation_index',
  {
    resource_id: text('resource_id').notNull(),
    operation_id: uuid('operation_id').notNull(),
    relation: text('relation').notNull().default('target'),
    change: text('change'),
    version_from: big('version_from'),
    version_to: big('version_to'),
    status: text('status').notNull(),
    kind: text('kind').notNull(),
    title: text('title').notNull(),
    started_at: at('started_at'),
    ended_at: at('ended_at'),
    last_command_id: uuid('last_command_id'),
  },
  (c) => [primaryKey({ columns: [c.resource_id, c.operation_id] }), index().on(c.operation_id)],
)

export const packs = t(
  'packs',
  {
    pack: text('pack').notNull(),
    version: text('version').notNull(),
    digest: text('digest').notNull(),
    document: json<Record<string, unknown>>('document').notNull(),
    loaded_at: now('loaded_at'),
  },
  (c) => [primaryKey({ columns: [c.pack, c.version] })],
)

/** The projection of the catalog that planner and claims read; fed by NATS and by its HTTP door alike. */
export const catalog_resources = t(
  'catalog_resources',
  {
    resource_id: text('resource_id').primaryKey(),
    type_key: text('type_key').notNull(),
    type_version: integer('type_version').notNull(),
    name: text('name').notNull(),
    parent_id: text('parent_id'),
    version: big('version').notNull(),
    lifecycle_status: text('lifecycle_status').notNull(),
    health_status: text('health_status').notNull().default('unknown'),
    labels: json<Record<string, string>>('labels').notNull(),
    annotations: json<Record<string, string>>('annotations').notNull().default({}),
    desired_state: json<Record<string, unknown>>('desired_state').notNull(),
    observed_state: json<Record<string, unknown>>('observed_state').notNull(),
    /** Grows with each change of this projection: what the live stream of resources tails. */
    change_seq: big('change_seq').notNull().default(0),
    updated_at: now('updated_at'),
  },
  (c) => [index().on(c.type_key, c.name), index().on(c.parent_id), index().on(c.change_seq)],
)
export const catalog_relationships = t(
  'catalog_relationships',
  {
    relationship_id: text('relationship_id').primaryKey(),
    rev: integer('rev').notNull(),
    type_key: text('type_key').notNull(),
    from_id: text('from_id').notNull(),
    to_id: text('to_id').notNull(),
    properties: json<Record<string, unknown>>('properties').notNull().default({}),
    open: boolean('open').notNull().default(true),
  },
  (c) => [index().on(c.from_id, c.type_key), index().on(c.to_id, c.type_key)],
)
export const catalog_types = t('catalog_types', {
  type_key: text('type_key').primaryKey(),
  version: integer('version').notNull(),
  document: json<Record<string, unknown>>('document').notNull(),
  updated_at: now('updated_at'),
})

/** Own health as last told, apart from the resource's row: the two are told by different events, in any order. */
export const catalog_health = t('catalog_health', {
  resource_id: text('resource_id').primaryKey(),
  status: text('status').notNull(),
})
export const catalog_relationship_types = t('catalog_relationship_types', {
  type_key: text('type_key').primaryKey(),
  inverse_key: text('inverse_key'),
})

/** Durations of past successes by step, for estimates. */
export const durations = t(
  'durations',
  {
    step: text('step').notNull(),
    operation_id: uuid('operation_id').notNull(),
    node_id: text('node_id').notNull(),
    ms: integer('ms').notNull(),
    at: now('at'),
  },
  (c) => [primaryKey({ columns: [c.step, c.operation_id, c.node_id] }), index().on(c.step, c.at)],
)

/** One row per mutation and per 403; sealed later by the relay (reliability.md 5.4). */
export const audit = auditTable(operationsSchema, 'audit')

/** Fences are drawn from one sequence: each claim gets a larger one, so that a late sleeper is recognised. */
export const fence_seq = operationsSchema.sequence('fence_seq')
export const catalog_change_seq = operationsSchema.sequence('catalog_change_seq')
