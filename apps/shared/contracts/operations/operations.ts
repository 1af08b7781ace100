import Type, { type Static } from 'typebox'
import { ArrayOf, Closed, text } from '../shapes.ts'
import {
  ActorSchema,
  AllowedActionSchema,
  BlockedOnSchema,
  CommandView,
  DryRun,
  Executed,
  GateStatusSchema,
  InRegion,
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
import { ResolvedTarget } from './intents.ts'

/** Operations: lists, one operation, its graph, history and evidence, and the commands on the whole operation. */
export const Progress = Type.Object({
  total: Type.Integer(),
  done: Type.Integer(),
  running: Type.Integer(),
  failed: Type.Integer(),
  waiting: Type.Integer(),
})
const summary = {
  operation_id: text('0195f0c2-0000-7000-8000-000000000001'),
  intent_id: text('0195f0c2-0000-7000-8000-000000000002'),
  plan_id: text('0195f0c2-0000-7000-8000-000000000004'),
  title: text('web 2.4.0 on eu1'),
  kind: text('change'),
  status: OperationStatusSchema,
  pause_reason: NullableText,
  end_reason: NullableText,
  blocked_on: Type.Array(BlockedOnSchema),
  progress: Progress,
  requester: ActorSchema,
  risk_level: text('low'),
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

export const HeldLease = Type.Object({ resource_id: text('eu1-web-01'), mode: text('exclusive'), since: Time })
export const OpenGate = Type.Object({
  gate_id: text('go'),
  question: text('Shall the rest follow?'),
  status: GateStatusSchema,
  round: Type.Integer(),
  waiting_since: NullableText,
  deadline_at: NullableText,
})
export const OpenPatch = Type.Object({
  patch_id: text('0195f0c2-0000-7000-8000-00000000000a'),
  proposer: ActorSchema,
  reason: text('The targets are slow today.'),
  base_revision: Type.Integer(),
  held_nodes: Type.Array(Type.String()),
  expires_at: Time,
})
export const Steering = Type.Object(
  { kind: Type.Enum(['pause', 'resume', 'cancel']), actor: ActorSchema, reason: NullableText, accepted_at: Time },
  { description: 'The newest pause, resume or cancel by a person: who, why and when.' },
)
/** Where the engine shows the workflow of the operation. */
export const EngineRef = Type.Object({
  namespace: text('default'),
  workflow_id: text('0195f0c2-0000-7000-8000-000000000001'),
  run_id: text('0195f0c2-0000-7000-8000-000000000006'),
  ui_url: text(
    'http://127.0.0.1:8233/namespaces/default/workflows/0195f0c2-0000-7000-8000-000000000001/0195f0c2-0000-7000-8000-000000000006/history',
  ),
})
const single = {
  ...summary,
  plan_revision: Type.Integer(),
  plan_hash: text('sha256:0000000000000000000000000000000000000000000000000000000000000000'),
  control: Type.Enum(['run', 'pause', 'cancel']),
  cancel_mode: NullableText,
  resource_ids: Type.Array(Type.String()),
  leases: Type.Array(HeldLease, { description: 'At most 100, by resource.' }),
  open_gates: Type.Array(OpenGate, { description: 'Gates that wait for a decision now.' }),
  open_patches: Type.Array(OpenPatch, { description: 'Patches that wait for a decision now.' }),
  pending_commands: Type.Array(CommandView),
  steering: Nullable(Steering),
  constraints: Json,
  deadline_at: {
    ...NullableText,
    description:
      'Null without a deadline, and while its time stands: paused, being cancelled, or before it holds its first leases.',
  },
  max_parallel: Type.Integer(),
  exceptions: Type.Array(Type.Unknown()),
  evidence_head: Type.Object({
    seq: Type.Integer(),
    hash: text('sha256:9999999999999999999999999999999999999999999999999999999999999999'),
  }),
  retry_of: NullableText,
  engine_ref: Type.Optional(EngineRef),
  allowed_actions: Type.Array(AllowedActionSchema),
}
export const Operation = Type.Object(single)
export type Operation = Static<typeof Operation>
export const OperationReply = Type.Object({ ...single, command: CommandView })
export type OperationReply = Static<typeof OperationReply>

export const RollbackQuery = Closed({
  anyway: Type.Optional(
    Type.Boolean({ description: 'Also if targets have changed since; their new values are lost.' }),
  ),
  resource_id: Type.Optional(
    Type.Array(Type.String({ minLength: 1, maxLength: 128 }), {
      maxItems: 500,
      description: 'Only these targets; by default all that the operation changed.',
    }),
  ),
})
export type RollbackQuery = Static<typeof RollbackQuery>
/** Targets with different values before, and more than 100, need different intents. */
export const Rollback = Type.Object({
  intents: Type.Array(
    Type.Object({
      request: { ...Json, description: 'A body for POST /v1/intents.' },
      targets_resolved: Type.Array(ResolvedTarget),
    }),
  ),
})
export type Rollback = Static<typeof Rollback>

export const OPERATION_SORTS = ['-created_at', '-updated_at', 'title'] as const
const list = {
  status: Type.Optional(Type.Array(OperationStatusSchema)),
  status_group: Type.Optional(
    Type.Enum(['open', 'ended', 'needs_attention'], {
      description: 'needs_attention: blocked, with a failed node or an unknown outcome, or waiting at a gate.',
    }),
  ),
  kind: Type.Optional(Type.String({ maxLength: 100 })),
  requester: Type.Optional(Type.String({ maxLength: 100, description: 'A user id, a name, or `me`.' })),
  environment: Type.Optional(Type.String({ maxLength: 200 })),
  region_id: InRegion,
  label: Type.Optional(Type.Array(Type.String({ maxLength: 400, description: '`key` or `key=value`.' }))),
  gate_for: Type.Optional(Type.Literal('me', { description: 'Only those with a gate that the caller may decide.' })),
  q: Type.Optional(
    Type.String({ minLength: 1, maxLength: 200, description: 'Part of title or ticket, or the end of the id.' }),
  ),
  created_after: Type.Optional(Type.String({ format: 'date-time' })),
  created_before: Type.Optional(Type.String({ format: 'date-time' })),
  ended_after: Type.Optional(Type.String({ format: 'date-time' })),
  ended_before: Type.Optional(Type.String({ format: 'date-time' })),
  sort: Type.Optional(Type.Enum([...OPERATION_SORTS])),
  ...PageQuery,
}
export const OperationListQuery = Closed({ ...list, resource_id: Type.Optional(Type.String({ maxLength: 128 })) })
export type OperationListQuery = Static<typeof OperationListQuery>
export const ResourceOperationsQuery = Closed(list)

export const GraphQuery = Closed({
  collapse: Type.Optional(Type.Enum(['auto', 'none', 'groups'])),
  revision: Type.Optional(Type.Integer({ minimum: 1, maximum: 2_147_483_647 })),
})
export const OperationGraph = Type.Object({
  plan_revision: Type.Integer(),
  plan_hash: text('sha256:0000000000000000000000000000000000000000000000000000000000000000'),
  nodes: ArrayOf({
    node_id: text('drain.eu1-web-01'),
    name: text('Drain eu1-web-01'),
    kind: text('change'),
    executor: text('http'),
    target_id: NullableText,
    group: NullableText,
    state: NodeStateSchema,
    attempt: Type.Integer(),
    generation: Type.Integer(),
    depends_on: Type.Array(Type.String()),
    join: text('all'),
    gates: Type.Array(Type.String()),
    risk: Type.Number(),
    on_failure: text('hold'),
    has_compensation: Type.Boolean(),
    estimate_s: Type.Number(),
    held_by_patch: Type.Boolean(),
    exception: NullableText,
    ran_ms: Nullable(Type.Integer({ description: 'The time of the newest attempt; null until it has ended.' })),
  }),
  groups: ArrayOf({
    group_id: text('canary'),
    name: text('Drain eu1-web-01'),
    kind: text('change'),
    counts: Type.Record(Type.String(), Type.Integer()),
  }),
  gates: ArrayOf({
    gate_id: text('go'),
    question: text('Shall the rest follow?'),
    guards: Type.Array(Type.String()),
    state: GateStatusSchema,
  }),
  critical_path: Type.Array(Type.String()),
  change_seq: Type.Integer(),
  as_of: Time,
})
export type OperationGraph = Static<typeof OperationGraph>

export const TimelineQuery = Closed({
  after_seq: Type.Optional(Type.Integer({ minimum: 0, default: 0 })),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000, default: 200 })),
  types: Type.Optional(Type.Array(Type.String({ maxLength: 100 }), { maxItems: 50 })),
  actor: Type.Optional(Type.String({ maxLength: 100 })),
  node_id: Type.Optional(Type.String({ maxLength: 96 })),
  wait_ms: Type.Optional(Type.Integer({ minimum: 0, maximum: 5000, default: 0 })),
})
export const TimelineEventView = Type.Object({
  seq: Type.Integer(),
  at: Time,
  type: text('operation.started'),
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
export const Timeline = Type.Object({
  events: Type.Array(TimelineEventView),
  last_seq: Type.Integer({
    description: 'The newest event of the operation. Continue after the seq of the last event of the page.',
  }),
})
export type Timeline = Static<typeof Timeline>

export const EvidenceQuery = Closed({
  after_seq: Type.Optional(Type.Integer({ minimum: 0, default: 0 })),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000, default: 200 })),
  format: Type.Optional(
    Type.Enum(['json', 'jsonl'], {
      description:
        'jsonl: the whole chain as a file of canonical JSON lines with a signed head (application/jsonl), for the requester of the operation and for auditors.',
    }),
  ),
})
export const EvidenceRecordView = Type.Object({
  v: Type.Literal(1),
  operation_id: text('0195f0c2-0000-7000-8000-000000000001'),
  seq: Type.Integer(),
  kind: text('change'),
  statement: text('olga started the plan.'),
  subject: Type.Object(
    {
      type: text('gate'),
      id: text('go'),
      round: Type.Optional(Type.Integer()),
      status: Type.Optional(Type.String()),
      digest: Type.Optional(Type.String()),
      began_at: Type.Optional(Time),
      executed: Type.Optional(Executed),
    },
    {
      additionalProperties: true,
      description:
        'A vote contains round, digest and decision; a decided gate contains round, status and digest; a node that ran behind gates names those gates; one that an agent ran names the program. The hash covers all of it.',
    },
  ),
  subject_digest: text('sha256:5555555555555555555555555555555555555555555555555555555555555555'),
  // The hash covers all of it, also members that other replies leave out.
  actor: Type.Object(ActorSchema.properties, { additionalProperties: true }),
  at: Time,
  prev_hash: text('sha256:8888888888888888888888888888888888888888888888888888888888888888'),
  hash: text('sha256:9999999999999999999999999999999999999999999999999999999999999999'),
})
export const Evidence = Type.Object({
  records: Type.Array(EvidenceRecordView),
  head: Type.Object({
    seq: Type.Integer(),
    hash: text('sha256:9999999999999999999999999999999999999999999999999999999999999999'),
  }),
})
export type Evidence = Static<typeof Evidence>
export const EvidenceKeys = Type.Object({
  keys: ArrayOf({
    kty: Type.Literal('OKP'),
    crv: Type.Literal('Ed25519'),
    alg: Type.Literal('EdDSA'),
    use: Type.Literal('sig'),
    x: text('11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo'),
    kid: text('kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k'),
  }),
})

export const PauseBody = Closed(
  { reason: Reason, dry_run: DryRun },
  { examples: [{ reason: 'The load is higher than expected.' }] },
)
export const ResumeBody = Closed({
  reason: Reason,
  acknowledge_drift: Type.Optional(Type.Boolean({ description: 'Take the new values of targets that have changed.' })),
  dry_run: DryRun,
})
export const CancelBody = Closed(
  {
    mode: Type.Optional(
      Type.Enum(['graceful', 'compensate', 'force'], {
        description:
          'graceful (default): running nodes finish and are not undone. compensate: succeeded nodes are then undone in reverse order. force: stop at once, outcomes unknown.',
      }),
    ),
    reason: Reason,
    dry_run: DryRun,
  },
  { examples: [{ mode: 'graceful', reason: 'The release has a fault.' }] },
)
