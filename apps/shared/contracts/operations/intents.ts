import Type, { type Static } from 'typebox'
import { Closed, LINE, OptionalClosed, OptionalInteger, OptionalText, text } from '../shapes.ts'
import {
  ActorSchema,
  AllowedActionSchema,
  DryRun,
  GateId,
  Json,
  ListOf,
  NodeId,
  Nullable,
  NullableText,
  PageQuery,
  Reason,
  Time,
} from './common.ts'
import { RETRYABLE } from './graph.ts'

/** Intents: the state that should be true, and why (operations.md 3.1). */
const Uuid = Type.String({ format: 'uuid' })
const ResourceId = Type.String({ minLength: 1, maxLength: 128, pattern: '^[a-z0-9][a-z0-9._:-]*$' })
const Key = Type.String({ minLength: 1, maxLength: 63, pattern: '^[a-z][a-z0-9_-]*$' })
const Cel = Type.String({ minLength: 1, maxLength: 2048, description: 'A CEL expression.' })
const Group = Type.String({ pattern: '^[a-z][a-z0-9-]{1,62}$' })

export const INTENT_KINDS = ['change', 'action', 'runbook', 'graph'] as const
export const INTENT_STATUSES = ['open', 'previewed', 'executing', 'fulfilled', 'unfulfilled', 'expired'] as const
const Labels = Type.Record(
  Type.String({ pattern: '^[a-z0-9]([a-z0-9._/-]{0,61}[a-z0-9])?$' }),
  Type.String({ maxLength: 63 }),
  { additionalProperties: false, maxProperties: 32 },
)

const Target = Type.Union([
  Closed({ resource_id: ResourceId }),
  Closed({
    selector: Closed({
      type_key: text('fleet.host', { maxLength: 64, pattern: '^[a-z][a-z0-9_]*(\\.[a-z][a-z0-9_]*)+$' }),
      when: Type.Optional(Cel),
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 5000 })),
    }),
  }),
])

export const Constraints = Closed({
  window_id: Type.Optional(Key),
  not_before: Type.Optional(Type.String({ format: 'date-time' })),
  deadline_s: Type.Optional(Type.Integer({ minimum: 60, maximum: 2_592_000 })),
  on_deadline: Type.Optional(Type.Enum(['graceful', 'compensate'])),
  max_parallel: Type.Optional(Type.Integer({ minimum: 1, maximum: 500 })),
  risk_ceiling: Type.Optional(Type.Enum(['low', 'medium', 'high'])),
  pause_on_failure: Type.Optional(Type.Boolean()),
  failure_budget: OptionalInteger({
    minimum: 0,
    maximum: 5000,
    description:
      'How many nodes may fail or end unknown; one more pauses the operation. Above 0 a failed target is skipped, except in a canary. After a resume each further failure pauses again.',
  }),
  on_drift: Type.Optional(Type.Enum(['pause', 'ignore'])),
  batch: OptionalClosed({
    size: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000 })),
    canary: Type.Optional(Type.Integer({ minimum: 0, maximum: 100 })),
    by: Type.Optional(Type.String({ maxLength: 200, pattern: '^[a-z_]+(/[^/]+)*$' })),
  }),
})

export const CatalogWrite = Closed({
  lifecycle_status: Type.Optional(Type.Unknown()),
  health_status: Type.Optional(Type.Unknown()),
  desired_state_patch: Type.Optional(Type.Unknown()),
  observed_state_patch: Type.Optional(Type.Unknown()),
  relationship_changes: Type.Optional(Type.Unknown()),
  provided_capability_changes: Type.Optional(Type.Unknown()),
})
const Compensate = Closed({
  executor: Type.Optional(Key),
  with: Type.Optional(Json),
  when: Type.Optional(Cel),
  idempotent: Type.Optional(Type.Boolean()),
  catalog: Type.Optional(CatalogWrite),
})
export const GraphNode = Closed({
  node_id: NodeId,
  name: Type.Optional(Type.String({ minLength: 1, maxLength: 200, pattern: LINE })),
  kind: Type.Optional(Type.Enum(['task', 'barrier', 'wait'])),
  executor: Type.Optional(Key),
  pool: Type.Optional(Key),
  with: Type.Optional(Json),
  target_id: Type.Optional(ResourceId),
  depends_on: Type.Optional(Type.Array(NodeId, { maxItems: 5000, uniqueItems: true })),
  join: Type.Optional(Type.Enum(['all', 'any', 'settled'])),
  when: Type.Optional(Cel),
  idempotent: Type.Optional(Type.Boolean()),
  outputs: Type.Optional(
    Type.Record(
      Type.String({ pattern: '^[a-z][a-z0-9_]{0,62}$' }),
      Type.String({ maxLength: 400, pattern: '^(/.*)?$' }),
      { additionalProperties: false },
    ),
  ),
  outputs_schema: Type.Optional(Json),
  timeouts: OptionalClosed({
    start_s: Type.Optional(Type.Integer({ minimum: 1, maximum: 86_400 })),
    run_s: Type.Optional(Type.Integer({ minimum: 1, maximum: 86_400 })),
    heartbeat_s: Type.Optional(Type.Integer({ minimum: 5, maximum: 600 })),
  }),
  retry: OptionalClosed({
    max_attempts: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
    initial_s: Type.Optional(Type.Number({ minimum: 0, maximum: 3600 })),
    factor: Type.Optional(Type.Number({ minimum: 1, maximum: 10 })),
    max_s: Type.Optional(Type.Number({ minimum: 0, maximum: 86_400 })),
    retry_on: Type.Optional(Type.Array(Type.String({ pattern: '^[a-z_]{1,40}$' }), { maxItems: 20 })),
  }),
  on_failure: Type.Optional(Type.Enum(['hold', 'tolerate', 'skip_dependents', 'fail', 'compensate'])),
  compensate: Type.Optional(Compensate),
  catalog: Type.Optional(CatalogWrite),
  secrets: Type.Optional(
    Type.Record(Type.String({ pattern: '^[a-z][a-z0-9_]{0,62}$' }), Type.Unknown(), { additionalProperties: false }),
  ),
  skippable: Type.Optional(Type.Boolean()),
  tags: Type.Optional(Type.Array(Type.String({ pattern: '^[a-z0-9][a-z0-9._-]{0,62}$' }), { maxItems: 20 })),
  risk: Type.Optional(Type.Integer({ minimum: 0, maximum: 100 })),
  estimate_s: Type.Optional(Type.Number({ minimum: 0, maximum: 86_400 })),
  group: Type.Optional(Type.String({ minLength: 1, maxLength: 64 })),
})
/** What a graph states about its own gate policy, and a policy file too. */
export const policyMembers = {
  approvals: OptionalClosed({
    quorum: Type.Optional(Type.Integer({ minimum: 1, maximum: 20 })),
    groups: Type.Optional(
      Type.Array(Closed({ group: Group, min: Type.Integer({ minimum: 0, maximum: 20 }) }), { maxItems: 20 }),
    ),
    four_eyes: Type.Optional(Type.Boolean()),
    reject_rule: Type.Optional(Type.Enum(['any', 'majority'])),
    comment_on_approve: Type.Optional(Type.Boolean()),
    signature: Type.Optional(Type.Literal('required', { description: 'Each approval needs a passkey.' })),
    new_members: Type.Optional(
      Type.Literal('refuse', {
        description: 'A right that an identity provider gave lately, since the plan could be known, does not count.',
      }),
    ),
  }),
  deadline_s: Type.Optional(Type.Integer({ minimum: 1, maximum: 2_592_000 })),
  on_timeout: Type.Optional(Type.Enum(['reject', 'hold'])),
  on_reject: Type.Optional(Type.Enum(['fail_nodes', 'hold', 'cancel_operation'])),
  lease_policy: Type.Optional(Type.Enum(['hold', 'release'])),
  bulk: Type.Optional(Type.Literal(false, { description: 'It cannot be approved in bulk.' })),
  on_voter_loss: Type.Optional(
    Type.Enum(['reask', 'keep_after_start'], {
      description:
        'What happens to a used approval if its voter loses the right: it is requested again, or stays valid.',
    }),
  ),
  check: Type.Optional(
    Closed(
      {
        service: Type.String({ pattern: '^(machine:)?[a-z][a-z0-9-]{1,62}$' }),
        timeout_s: Type.Integer({ minimum: 1, maximum: 2_592_000 }),
      },
      {
        description:
          'A service, or a machine (machine:NAME), that answers instead of people; not together with approvals.',
      },
    ),
  ),
}
export const GraphGate = Closed({
  gate_id: GateId,
  policy: Type.Union([Key, Closed(policyMembers)], {
    description: 'The key of a gate policy, or a policy of its own.',
  }),
  question: Type.Optional(Type.String({ minLength: 1, maxLength: 300, pattern: LINE })),
  guards: Type.Array(NodeId, { minItems: 1, maxItems: 5000, uniqueItems: true }),
})

export const IntentBody = Closed(
  {
    kind: Type.Enum([...INTENT_KINDS]),
    title: text('web 2.4.0 on eu1', { minLength: 1, maxLength: 200, pattern: LINE }),
    reason: Reason,
    targets: Type.Optional(Type.Array(Target, { maxItems: 100 })),
    labels: Type.Optional(Labels),
    ticket: Type.Optional(Type.String({ minLength: 1, maxLength: 200 })),
    retry_of: Type.Optional(Uuid),
    expires_in_s: Type.Optional(Type.Integer({ minimum: 60, maximum: 2_592_000 })),
    constraints: Type.Optional(Constraints),
    dry_run: DryRun,
    preview: Type.Optional(
      Type.Boolean({ description: 'With dry_run: the effect also contains the plan, or why there is none.' }),
    ),
    change: OptionalClosed({
      op: Type.Enum(['update', 'create', 'delete']),
      desired_state_patch: Type.Optional(Json),
      parameters: Type.Optional(Json),
    }),
    action: Type.Optional(Closed({ action_key: Key, parameters: Type.Optional(Json) })),
    runbook: OptionalClosed({
      pack: Key,
      procedure: Key,
      version: Type.Optional(Type.String({ maxLength: 64, description: 'The newest loaded version by default.' })),
      parameters: Type.Optional(Json),
    }),
    graph: OptionalClosed({
      nodes: Type.Array(GraphNode, { minItems: 1, maxItems: 5000 }),
      gates: Type.Optional(Type.Array(GraphGate, { maxItems: 200 })),
    }),
  },
  {
    examples: [
      {
        kind: 'change',
        title: 'web 2.4.0 on eu1',
        reason: 'Bring release 2.4.0 to these hosts',
        targets: [{ resource_id: 'eu1-web-01' }, { resource_id: 'eu1-web-02' }],
        change: { op: 'update', desired_state_patch: { release: '2.4.0' }, parameters: { drain_s: 2 } },
        labels: { environment: 'demo' },
      },
    ],
  },
)
export type IntentBody = Static<typeof IntentBody>

export const IntentParams = Type.Object({ intent_id: Uuid })
export const ResolvedTarget = Type.Object({
  resource_id: text('eu1-web-01'),
  type_key: text('fleet.host'),
  name: text('eu1-web-01'),
  version: Type.Integer(),
})
export const IntentView = Type.Object({
  intent_id: text('0195f0c2-0000-7000-8000-000000000002'),
  status: Type.Enum([...INTENT_STATUSES]),
  revision: Type.Integer(),
  kind: text('change'),
  title: text('web 2.4.0 on eu1'),
  reason: text('reason'),
  targets_resolved: Type.Array(ResolvedTarget),
  request: Json,
  requester: ActorSchema,
  labels: Type.Record(Type.String(), Type.String()),
  constraints: Json,
  ticket: NullableText,
  retry_of: NullableText,
  created_at: Time,
  updated_at: Time,
  expires_at: Time,
  latest_plan_id: NullableText,
  operation_id: NullableText,
  links: Type.Record(Type.String(), Type.String()),
  allowed_actions: Type.Array(AllowedActionSchema),
})
export type IntentView = Static<typeof IntentView>
const { request: _request, allowed_actions: _actions, targets_resolved: _targets, ...row } = IntentView.properties
export const IntentRow = Type.Object({ ...row, targets: Type.Integer() })
export type IntentRow = Static<typeof IntentRow>
export const IntentList = ListOf(IntentRow)

export const IntentListQuery = Closed({
  status: Type.Optional(Type.Array(Type.Enum([...INTENT_STATUSES]))),
  requester: Type.Optional(Type.String({ maxLength: 100, description: 'A user id, or `me`.' })),
  kind: Type.Optional(Type.Enum([...INTENT_KINDS])),
  q: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 200,
      description: 'Part of title or ticket, or the end of the id of the intent or of its newest plan.',
    }),
  ),
  ...PageQuery,
})

/** Ends of an attempt that a rehearsal can assume: the classes of failures, and an unknown outcome. */
export const REHEARSED_FAILURES = [
  ...RETRYABLE,
  'refused',
  'condition_failed',
  'exit_code',
  'outputs_invalid',
  'expression_error',
  'address_denied',
  'secret_missing',
  'outcome_unknown',
] as const
export const PreviewBody = Closed(
  {
    exclude_targets: Type.Optional(Type.Array(ResourceId, { maxItems: 5000, uniqueItems: true })),
    min_watermark: OptionalText({
      pattern: '^\\d{1,19}$',
      description: "Position in the catalog's log that the plan must know.",
    }),
    rehearse: Type.Optional(
      Closed(
        {
          seed: Type.Optional(Type.Integer({ minimum: 0, maximum: 2_147_483_647, description: '1 unless said.' })),
          approval_delay_s: Type.Optional(Nullable(Type.Integer({ minimum: 0, maximum: 2_592_000 }))),
          failures: Type.Optional(
            Type.Array(
              Closed({
                node_id: NodeId,
                attempt: Type.Integer({ minimum: 1, maximum: 100 }),
                class: Type.Enum([...REHEARSED_FAILURES]),
                undo: Type.Optional(
                  Type.Boolean({ description: 'For the compensation of the node; by default for its run.' }),
                ),
              }),
              { maxItems: 1000 },
            ),
          ),
        },
        {
          description:
            'Runs the plan on a virtual clock and stores the result with the plan. Gates are approved after approval_delay_s (0 by default; null: never).',
        },
      ),
    ),
    dry_run: DryRun,
  },
  { examples: [{}, { rehearse: { seed: 1, approval_delay_s: 3600 } }] },
)
export type PreviewBody = Static<typeof PreviewBody>
