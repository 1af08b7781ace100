import Type, { type Static } from 'typebox'
import { Closed, OptionalInteger, OptionalText, text } from '../shapes.ts'
import {
  AllowedActionSchema,
  CommandView,
  Comment,
  DryRun,
  GateId,
  GateStatusSchema,
  Json,
  ListOf,
  LogLevel,
  NodeId,
  NodeStateSchema,
  Nullable,
  NullableText,
  PageQuery,
  Reason,
  Time,
} from './common.ts'
import { NODE_INTERVENTIONS, OPERATION_INTERVENTIONS } from './graph.ts'

/** Nodes of an operation: rows, one node with its attempts, and the commands on a node. */
const summary = {
  operation_id: text('0195f0c2-0000-7000-8000-000000000001'),
  node_id: text('drain.eu1-web-01'),
  name: text('Drain eu1-web-01'),
  kind: text('task'),
  executor: text('http'),
  target_id: NullableText,
  group_id: NullableText,
  state: NodeStateSchema,
  generation: Type.Integer(),
  attempt: Type.Integer(),
  error_class: NullableText,
  error_message: NullableText,
  ready_at: NullableText,
  gated_at: NullableText,
  started_at: NullableText,
  ended_at: NullableText,
  waited_ms: Nullable(Type.Integer()),
  ran_ms: Nullable(Type.Integer()),
  progress: Nullable(Json),
  artifacts: Type.Integer(),
  log_lines: Type.Integer(),
  exception: NullableText,
  held_by_patch: Type.Boolean(),
}
export const NodeSummary = Type.Object(summary)
export type NodeSummary = Static<typeof NodeSummary>
export const NodeList = ListOf(NodeSummary)

export const NodeListQuery = Closed({
  state: Type.Optional(Type.Array(NodeStateSchema)),
  group: Type.Optional(Type.String({ maxLength: 200 })),
  target_id: Type.Optional(Type.String({ maxLength: 128 })),
  failed_first: Type.Optional(Type.Boolean({ default: false })),
  ...PageQuery,
})

export const AttemptView = Type.Object({
  attempt: Type.Integer(),
  role: Type.Enum(['run', 'undo']),
  generation: Type.Integer(),
  fences: Type.Array(Type.String()),
  executor: text('http'),
  pool: NullableText,
  phase: text('succeeded'),
  started_at: Time,
  ended_at: NullableText,
  error: Nullable(
    Type.Object({
      class: text('unavailable'),
      message: text('It waits for the gate go.'),
      retryable: Type.Boolean(),
      hint: Type.Optional(Type.String()),
    }),
  ),
  heartbeat_at: NullableText,
  progress: Nullable(Json),
  log: Type.Object({ lines: Type.Integer(), bytes: Type.Integer(), complete: Type.Boolean() }),
})

export const ArtifactView = Type.Object({
  artifact_id: text('0195f0c2-0000-7000-8000-000000000007'),
  node_id: text('drain.eu1-web-01'),
  attempt: Type.Integer(),
  name: text('Drain eu1-web-01'),
  kind: text('task'),
  media_type: text('text/plain'),
  size: Type.Integer(),
  sha256: text('7777777777777777777777777777777777777777777777777777777777777777'),
  status: text('stored'),
  uri: NullableText,
  created_at: Time,
  expires_at: NullableText,
})
export type ArtifactView = Static<typeof ArtifactView>
export const ArtifactQuery = Closed({
  node_id: Type.Optional(NodeId),
  kind: Type.Optional(Type.String({ maxLength: 100 })),
  ...PageQuery,
})
export const ArtifactList = ListOf(ArtifactView)

export const NodeInputs = Type.Object({ effective: Type.Unknown(), overridden: Type.Array(Type.String()) })
export const NodeGate = Type.Object({
  gate_id: text('go'),
  question: text('Shall the rest follow?'),
  status: GateStatusSchema,
})
const single = {
  ...summary,
  spec: Json,
  inputs: NodeInputs,
  outputs: Nullable(Json),
  attempts: Type.Array(AttemptView),
  artifacts: Type.Array(ArtifactView),
  gates: Type.Array(NodeGate),
  catalog: Nullable(Json),
  change_seq: Type.Integer(),
  allowed_actions: Type.Array(AllowedActionSchema),
}
export const NodeQuery = Closed({
  attempt: Type.Optional(Type.Integer({ minimum: 1, description: 'Only this attempt.' })),
})
export const Node = Type.Object(single)
export type Node = Static<typeof Node>

const InputOverrides = Type.Record(Type.String(), Type.Unknown(), {
  description:
    "Merge patch on the plan's `with`; it stays until another one replaces it. Gates that approved other inputs ask again.",
})

export const RetryBody = Closed(
  {
    scope: Type.Optional(
      Type.Enum(['downstream', 'node'], { description: 'downstream (default) also resets every node after it.' }),
    ),
    reason: Reason,
    input_overrides: Type.Optional(InputOverrides),
    expected_generation: Type.Optional(Type.Integer({ minimum: 1 })),
    reconciliation: Type.Optional(
      Closed(
        { finding: Type.Enum(['effect_absent', 'effect_present', 'effect_partial']), note: Comment },
        { description: 'Your findings at the target when the outcome was unknown.' },
      ),
    ),
    dry_run: DryRun,
  },
  { examples: [{ scope: 'downstream', reason: 'The host answers again.' }] },
)
export type RetryBody = Static<typeof RetryBody>
export const NodeReply = Type.Object({
  ...single,
  reset_cone: Type.Array(Type.String()),
  rearmed_gates: Type.Array(Type.String()),
  command: CommandView,
})
export type NodeReply = Static<typeof NodeReply>

export const InterventionBody = Closed(
  {
    type: Type.Enum([...NODE_INTERVENTIONS, ...OPERATION_INTERVENTIONS]),
    node_id: Type.Optional(NodeId),
    payload: Closed(
      {
        outputs: Type.Optional(Json),
        note: Type.Optional(Comment),
        message: Type.Optional(Comment),
        input_overrides: Type.Optional(InputOverrides),
        of: Type.Optional(Type.Enum(['operation', 'gate', 'attempt'])),
        id: OptionalText({ minLength: 1, maxLength: 128, description: 'The gate, or the node of the attempt.' }),
        add_s: Type.Optional(Type.Integer({ minimum: 1, maximum: 86_400 })),
        max_parallel: Type.Optional(Type.Integer({ minimum: 1, maximum: 500 })),
        gate_id: Type.Optional(GateId),
        to_user: Type.Optional(Type.String({ minLength: 1, maxLength: 128, description: 'Id of a user.' })),
        until: Type.Optional(Type.String({ format: 'date-time' })),
        freeze_id: Type.Optional(Type.String({ minLength: 1, maxLength: 128 })),
      },
      { description: 'Exactly the fields that the type needs.' },
    ),
    reason: Reason,
    ticket: Type.Optional(Type.String({ maxLength: 200 })),
    dry_run: DryRun,
  },
  { examples: [{ type: 'skip', node_id: 'drain.eu1-web-03', payload: {}, reason: 'The host is out of service.' }] },
)
export type InterventionBody = Static<typeof InterventionBody>
export const InterventionReply = Type.Object({
  intervention: Type.Object({
    intervention_id: text('0195f0c2-0000-7000-8000-000000000003'),
    type: text('skip'),
    node_id: NullableText,
    status: Type.Enum(['applied', 'accepted', 'awaiting_second_person']),
    gate_id: NullableText,
  }),
  command: CommandView,
})
export type InterventionReply = Static<typeof InterventionReply>

/** Log of one attempt: line numbers without gaps, read forwards, backwards, from the end, or searched. */
export const LogQuery = Closed({
  attempt: Type.Optional(Type.Integer({ minimum: 1, description: 'The latest when left out.' })),
  role: Type.Optional(
    Type.Enum(['run', 'undo'], { description: 'The attempt of the node (default) or of its compensation.' }),
  ),
  stream: Type.Optional(Type.String({ maxLength: 50 })),
  level: Type.Optional(LogLevel),
  after_seq: Type.Optional(Type.Integer({ minimum: 0, description: 'Only lines after this one.' })),
  before_seq: Type.Optional(
    Type.Integer({ minimum: 1, description: 'Only lines before this one, the last ones first to fill the page.' }),
  ),
  tail: Type.Optional(Type.Boolean({ description: 'The page is filled from the end.' })),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 2000, default: 500 })),
  q: Type.Optional(Type.String({ minLength: 2, maxLength: 200, description: 'Plain text, any case.' })),
  match_before_seq: OptionalInteger({
    minimum: 1,
    description: 'With q: at most 200 matches before this line, the newest first.',
  }),
  wait_ms: Type.Optional(Type.Integer({ minimum: 0, maximum: 5000, default: 0 })),
})
export type LogQuery = Static<typeof LogQuery>

export const LogLineView = Type.Object({
  seq: Type.Integer(),
  time: text('2026-01-31T12:00:00.000000Z'),
  stream: text('stdout'),
  level: text('info'),
  text: text('drained: 0 connections left'),
  cut: Type.Optional(Type.Boolean()),
})
export type LogLineView = Static<typeof LogLineView>

export const LogPage = Type.Object({
  attempt: Type.Integer(),
  lines: Type.Array(LogLineView),
  first_seq: Nullable(Type.Integer()),
  last_seq: Nullable(Type.Integer()),
  total_lines: Type.Integer(),
  total_bytes: Type.Integer(),
  complete: Type.Boolean(),
  storage: Type.Enum(['hot', 'archive']),
  matches: Type.Optional(Type.Object({ count: Type.Integer(), seqs: Type.Array(Type.Integer()) })),
})
export type LogPage = Static<typeof LogPage>

export const RawLogQuery = Closed({
  attempt: Type.Optional(Type.Integer({ minimum: 1 })),
  role: Type.Optional(Type.Enum(['run', 'undo'])),
})
