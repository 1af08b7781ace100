import Type, { type Static } from 'typebox'
import { Assertion } from '../session/passkeys.ts'
import { Closed, text } from '../shapes.ts'
import {
  ActorSchema,
  AllowedActionSchema,
  Batch,
  CommandView,
  Comment,
  Digest,
  DryRun,
  GateId,
  Json,
  ListOf,
  NodeId,
  NodeStateSchema,
  Nullable,
  NullableText,
  OperationId,
  OperationStatusSchema,
  PageQuery,
  Reason,
  Time,
} from './common.ts'
import { GraphGate, GraphNode } from './intents.ts'

/** Patches: changes to the graph of a running operation, proposed, read and decided (operations.md 2.6, 5.5). */
export const PATCH_STATUSES = [
  'awaiting_approval',
  'approved',
  'applied',
  'rejected',
  'not_applicable',
  'expired',
  'withdrawn',
] as const
export type PatchStatus = (typeof PATCH_STATUSES)[number]

export const PatchId = text('0195f0c2-0000-7000-8000-00000000000a', { format: 'uuid' })
export const PatchParams = Type.Object({ operation_id: OperationId, patch_id: PatchId })

const op = <K extends string>(name: K) => Type.Literal(name)
const dependency = { node_id: NodeId, depends_on: NodeId }
/** A merge patch on a node of the graph. */
export const NodeMergePatch = Type.Record(
  Type.String({
    pattern:
      '^(name|executor|pool|with|join|when|idempotent|outputs|outputs_schema|timeouts|retry|on_failure|compensate|catalog|secrets|skippable|tags|risk|estimate_s)$',
  }),
  Type.Unknown(),
  {
    minProperties: 1,
    additionalProperties: false,
    description: 'A merge patch on the node; not on its id, kind, target or dependencies.',
  },
)
export const PatchChange = Type.Union([
  Closed({ op: op('add_node'), node: GraphNode }),
  Closed({ op: op('remove_node'), node_id: NodeId }),
  Closed({ op: op('update_node'), node_id: NodeId, set: NodeMergePatch }),
  Closed({ op: op('add_dependency'), ...dependency }),
  Closed({ op: op('remove_dependency'), ...dependency }),
  Closed({ op: op('add_gate'), gate: GraphGate }),
  Closed({ op: op('remove_gate'), gate_id: GateId }),
  Closed({ op: op('set_limits'), max_parallel: Type.Integer({ minimum: 1, maximum: 500 }) }),
])
export type PatchChange = Static<typeof PatchChange>

export const ProposeBody = Closed(
  {
    base_revision: Type.Integer({ minimum: 1, description: 'The plan_revision that you read.' }),
    changes: Type.Array(PatchChange, { minItems: 1, maxItems: 200 }),
    reason: Reason,
    ticket: Type.Optional(Type.String({ minLength: 1, maxLength: 200 })),
    expires_in_s: Type.Optional(Type.Integer({ minimum: 60, maximum: 2_592_000 })),
    dry_run: DryRun,
  },
  {
    examples: [
      { base_revision: 1, changes: [{ op: 'set_limits', max_parallel: 2 }], reason: 'The targets are slow today.' },
    ],
  },
)
export type ProposeBody = Static<typeof ProposeBody>

export const ApprovePatchBody = Closed(
  {
    reviewed_digest: Digest,
    comment: Type.Optional(Comment),
    assertion: Type.Optional(Assertion),
    batch: Type.Optional(Batch),
    dry_run: DryRun,
  },
  { examples: [{ reviewed_digest: `sha256:${'0'.repeat(64)}`, comment: 'Reviewed.' }] },
)
export type ApprovePatchBody = Static<typeof ApprovePatchBody>
export const RejectPatchBody = Closed(
  { comment: Comment, batch: Type.Optional(Batch), dry_run: DryRun },
  { examples: [{ comment: 'The check must stay.' }] },
)
export type RejectPatchBody = Static<typeof RejectPatchBody>

export const PatchVote = Type.Object({
  actor: ActorSchema,
  decision: Type.Enum(['approve', 'reject']),
  comment: NullableText,
  digest: Digest,
  at: Time,
})
export const PatchViolation = Type.Object({
  pointer: text('/nodes/b'),
  code: text('cycle'),
  message: text('is part of a cycle'),
})
const FieldView = Type.Object({ path: text('/with'), before: Type.Unknown(), after: Type.Unknown() })

export const GraphDifference = Type.Object({
  added: Type.Array(Type.String()),
  removed: Type.Array(Type.String()),
  changed: Type.Array(Type.Object({ node_id: NodeId, fields: Type.Array(FieldView) })),
  added_gates: Type.Array(Type.String()),
  removed_gates: Type.Array(Type.String()),
  max_parallel: Nullable(Type.Object({ before: Type.Integer(), after: Type.Integer() })),
  risk: Type.Optional(
    Nullable(
      Type.Object(
        { before: text('low'), after: text('high') },
        { description: 'The risk level of the operation, where the patch moves it.' },
      ),
    ),
  ),
})
export const PatchApproval = Type.Object({
  quorum: Type.Integer(),
  groups: Type.Array(Type.Object({ group: text('netops'), min: Type.Integer() })),
  policies: Type.Array(text('cutover')),
  four_eyes: Type.Boolean(),
  comment_on_approve: Type.Boolean({ description: 'An approval needs a comment.' }),
  signature: Nullable(text('required')),
})
export const PatchDecision = Type.Object({ by: ActorSchema, at: Time })
export const PatchRebase = Type.Object(
  { base_revision: Type.Integer(), changes: Type.Array(Json) },
  { description: 'The same changes against the current graph, if they are still sound: propose them again.' },
)

const Proposer = Type.Pick(ActorSchema, ['kind', 'id', 'name'])
export const PatchAsked = Type.Object(
  { proposer: Proposer, reason: text('The targets are slow today.'), ticket: NullableText },
  { description: 'Who proposes it and why, as the digest covers it; null if an older build took the proposal.' },
)

const patch = {
  patch_id: PatchId,
  operation_id: OperationId,
  status: Type.Enum([...PATCH_STATUSES]),
  status_reason: NullableText,
  base_revision: Type.Integer(),
  applied_revision: Nullable(Type.Integer()),
  changes: Type.Array(Json),
  reason: text('The targets are slow today.'),
  ticket: NullableText,
  proposer: ActorSchema,
  asked: Nullable(PatchAsked),
  digest: Digest,
  result_hash: Digest,
  diff_graph: GraphDifference,
  violations: Type.Array(PatchViolation),
  held_nodes: Type.Array(Type.String()),
  rearmed_gates: Type.Array(Type.String()),
  required: PatchApproval,
  votes: Type.Array(PatchVote),
  decided: Nullable(PatchDecision),
  expires_at: Time,
  created_at: Time,
  rebase: Nullable(PatchRebase),
  change_seq: Type.Integer(),
  allowed_actions: Type.Array(AllowedActionSchema),
}
export const Patch = Type.Object(patch)
export type Patch = Static<typeof Patch>
/** A failed node that a patch changes, or whose target it changes. */
export const MendedNode = Type.Object({
  node_id: NodeId,
  name: text('verify eu1-web-03'),
  state: NodeStateSchema,
  attempts: Type.Integer(),
  message: NullableText,
})
export const PatchDetail = Type.Object({
  ...patch,
  mends: Type.Array(MendedNode, { maxItems: 3, description: 'The failures that it mends, in their current state.' }),
})
export type PatchDetail = Static<typeof PatchDetail>
export const PatchList = ListOf(Patch)
export const PatchListQuery = Closed({
  status: Type.Optional(Type.Array(Type.Enum([...PATCH_STATUSES]))),
  ...PageQuery,
})
export const PatchReply = Type.Object({ ...patch, operation_status: OperationStatusSchema, command: CommandView })
export type PatchReply = Static<typeof PatchReply>
