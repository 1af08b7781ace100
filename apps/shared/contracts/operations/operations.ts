import Type, { type Static } from 'typebox'
import {
  ActorSchema,
  AllowedActionSchema,
  BlockedOnSchema,
  CommandView,
  DryRun,
  GateStatusSchema,
  Json,
  ListOf,
  NodeStateSchema,
  Nullable,
  NullableText,
  OperationStatusSchema,
  PageQuery,
  Reason,
  Time,
} from './common.ts'

/** Operations: lists, one operation, its graph, history and evidence, and the commands on the whole of it. */
const summary = {
  operation_id: Type.String(),
  intent_id: Type.String(),
  plan_id: Type.String(),
  title: Type.String(),
  kind: Type.String(),
  status: OperationStatusSchema,
  pause_reason: NullableText,
  end_reason: NullableText,
  blocked_on: Type.Array(BlockedOnSchema),
  progress: Type.Object({
    total: Type.Integer(),
    done: Type.Integer(),
    running: Type.Integer(),
    failed: Type.Integer(),
    waiting: Type.Integer(),
  }),
  requester: ActorSchema,
  risk_level: Type.String(),
  environment: NullableText,
  labels: Type.Record(Type.String(), Type.String()),
  ticket: NullableText,
  open_gates: Type.Integer(),
  created_at: Time,
  started_at: NullableText,
  ended_at: NullableText,
  updated_at: Time,
  eta_at: NullableText,
  revision: Type.Integer(),
  change_seq: Type.Integer(),
}
export const OperationSummary = Type.Object(summary)
export type OperationSummary = Static<typeof OperationSummary>
export const OperationList = ListOf(OperationSummary)
export type OperationList = Static<typeof OperationList>

const single = {
  ...summary,
  plan_revision: Type.Integer(),
  plan_hash: Type.String(),
  control: Type.Enum(['run', 'pause', 'cancel']),
  cancel_mode: NullableText,
  resource_ids: Type.Array(Type.String()),
  leases: Type.Array(Type.Object({ resource_id: Type.String(), mode: Type.String(), since: Time })),
  open_gates: Type.Array(
    Type.Object({
      gate_id: Type.String(),
      question: Type.String(),
      status: GateStatusSchema,
      round: Type.Integer(),
      waiting_since: NullableText,
      deadline_at: NullableText,
    }),
    { description: 'Gates that wait for a decision now.' },
  ),
  open_patches: Type.Array(Type.Unknown()),
  pending_commands: Type.Array(CommandView),
  constraints: Json,
  deadline_at: NullableText,
  max_parallel: Type.Integer(),
  exceptions: Type.Array(Type.Unknown()),
  evidence_head: Type.Object({ seq: Type.Integer(), hash: Type.String() }),
  retry_of: NullableText,
  engine_ref: Type.Optional(
    Type.Object({
      namespace: Type.String(),
      workflow_id: Type.String(),
      run_id: Type.String(),
      ui_url: Type.String(),
    }),
  ),
  allowed_actions: Type.Array(AllowedActionSchema),
}
export const Operation = Type.Object(single)
export type Operation = Static<typeof Operation>
export const OperationReply = Type.Object({ ...single, command: CommandView })
export type OperationReply = Static<typeof OperationReply>

export const OPERATION_SORTS = ['-created_at', '-updated_at', 'title'] as const
const list = {
  status: Type.Optional(Type.Array(OperationStatusSchema)),
  status_group: Type.Optional(Type.Enum(['open', 'ended', 'needs_attention'])),
  kind: Type.Optional(Type.String({ maxLength: 100 })),
  requester: Type.Optional(Type.String({ maxLength: 100, description: 'A user id, or `me`.' })),
  label: Type.Optional(Type.Array(Type.String({ maxLength: 400, description: '`key` or `key=value`.' }))),
  gate_for: Type.Optional(Type.Literal('me')),
  q: Type.Optional(Type.String({ minLength: 1, maxLength: 200, description: 'Part of title or ticket.' })),
  created_after: Type.Optional(Type.String({ format: 'date-time' })),
  created_before: Type.Optional(Type.String({ format: 'date-time' })),
  sort: Type.Optional(Type.Enum([...OPERATION_SORTS])),
  ...PageQuery,
}
export const OperationListQuery = Type.Object(
  { ...list, resource_id: Type.Optional(Type.String({ maxLength: 128 })) },
  { additionalProperties: false },
)
export type OperationListQuery = Static<typeof OperationListQuery>
export const ResourceOperationsQuery = Type.Object(list, { additionalProperties: false })

export const GraphQuery = Type.Object(
  {
    collapse: Type.Optional(Type.Enum(['auto', 'none', 'groups'])),
    revision: Type.Optional(Type.Integer({ minimum: 1 })),
  },
  { additionalProperties: false },
)
export const OperationGraph = Type.Object({
  plan_revision: Type.Integer(),
  plan_hash: Type.String(),
  nodes: Type.Array(
    Type.Object({
      node_id: Type.String(),
      name: Type.String(),
      kind: Type.String(),
      executor: Type.String(),
      target_id: NullableText,
      group: NullableText,
      state: NodeStateSchema,
      attempt: Type.Integer(),
      generation: Type.Integer(),
      depends_on: Type.Array(Type.String()),
      join: Type.String(),
      gates: Type.Array(Type.String()),
      risk: Type.Number(),
      on_failure: Type.String(),
      has_compensation: Type.Boolean(),
      estimate_s: Type.Number(),
      held_by_patch: Type.Boolean(),
      exception: NullableText,
    }),
  ),
  groups: Type.Array(
    Type.Object({
      group_id: Type.String(),
      name: Type.String(),
      kind: Type.String(),
      counts: Type.Record(Type.String(), Type.Integer()),
    }),
  ),
  gates: Type.Array(
    Type.Object({
      gate_id: Type.String(),
      question: Type.String(),
      guards: Type.Array(Type.String()),
      state: GateStatusSchema,
    }),
  ),
  critical_path: Type.Array(Type.String()),
  change_seq: Type.Integer(),
  as_of: Time,
})
export type OperationGraph = Static<typeof OperationGraph>

export const TimelineQuery = Type.Object(
  {
    after_seq: Type.Optional(Type.Integer({ minimum: 0, default: 0 })),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000, default: 200 })),
    types: Type.Optional(Type.Array(Type.String({ maxLength: 100 }), { maxItems: 50 })),
    actor: Type.Optional(Type.String({ maxLength: 100 })),
    node_id: Type.Optional(Type.String({ maxLength: 96 })),
    wait_ms: Type.Optional(Type.Integer({ minimum: 0, maximum: 5000, default: 0 })),
  },
  { additionalProperties: false },
)
export const TimelineEventView = Type.Object({
  seq: Type.Integer(),
  at: Time,
  type: Type.String(),
  actor: ActorSchema,
  on_behalf_of: NullableText,
  reason: NullableText,
  node_id: NullableText,
  gate_id: NullableText,
  patch_id: NullableText,
  command_id: NullableText,
  data: Json,
  evidence_seq: Nullable(Type.Integer()),
})
export const Timeline = Type.Object({ events: Type.Array(TimelineEventView), last_seq: Type.Integer() })
export type Timeline = Static<typeof Timeline>

export const EvidenceQuery = Type.Object(
  {
    after_seq: Type.Optional(Type.Integer({ minimum: 0, default: 0 })),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000, default: 200 })),
  },
  { additionalProperties: false },
)
export const EvidenceRecordView = Type.Object({
  v: Type.Literal(1),
  operation_id: Type.String(),
  seq: Type.Integer(),
  kind: Type.String(),
  statement: Type.String(),
  subject: Type.Object({ type: Type.String(), id: Type.String() }),
  subject_digest: Type.String(),
  actor: ActorSchema,
  at: Time,
  prev_hash: Type.String(),
  hash: Type.String(),
})
export const Evidence = Type.Object({
  records: Type.Array(EvidenceRecordView),
  head: Type.Object({ seq: Type.Integer(), hash: Type.String() }),
})
export type Evidence = Static<typeof Evidence>

export const PauseBody = Type.Object(
  { reason: Reason, dry_run: DryRun },
  { additionalProperties: false, examples: [{ reason: 'The load is higher than expected.' }] },
)
export const ResumeBody = Type.Object(
  {
    reason: Reason,
    acknowledge_drift: Type.Optional(
      Type.Boolean({ description: 'Take the new values of targets that have changed.' }),
    ),
    dry_run: DryRun,
  },
  { additionalProperties: false },
)
export const CancelBody = Type.Object(
  {
    mode: Type.Optional(
      Type.Enum(['graceful', 'compensate', 'force'], {
        description:
          'graceful (default): what runs ends, nothing is undone. compensate: then undo in reverse order. force: stop at once, outcomes unknown.',
      }),
    ),
    reason: Reason,
    dry_run: DryRun,
  },
  { additionalProperties: false, examples: [{ mode: 'graceful', reason: 'The release has a fault.' }] },
)
