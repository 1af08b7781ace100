import Type, { type Static } from 'typebox'
import { Affected } from '../catalog/affected.ts'
import { ArrayOf, Closed, text } from '../shapes.ts'
import { AllowedActionSchema, Digest, DryRun, Json, Nullable, NullableText, Time } from './common.ts'
import { GATE_STATUSES } from './graph.ts'

/** Plans: how an intent would be carried out, and what it would change (operations.md 5.2). */
export const PLAN_STATUSES = [
  'ready',
  'blocked_by_policy',
  'locked',
  'started',
  'superseded',
  'stale',
  'expired',
] as const
export type PlanStatus = (typeof PLAN_STATUSES)[number]

export const PlanParams = Type.Object({ plan_id: Type.String({ format: 'uuid' }) })
export const PlanQuery = Closed({
  diff_after: Type.Optional(Type.String({ maxLength: 128, description: 'The last resource_id that is known.' })),
})
export const PlanGraphQuery = Closed({ collapse: Type.Optional(Type.Enum(['auto', 'none', 'groups'])) })

const FieldChange = Type.Object({
  path: text('/desired_state/release'),
  before: Type.Unknown(),
  after: Type.Unknown(),
  sensitive: Type.Boolean(),
  noise: Type.Boolean(),
})
const Seconds = Type.Number({ description: 'Seconds since the start.' })
/** The result of running the plan under the engine's own rules on a virtual clock (operations.md 10). */
export const Rehearsal = Type.Object({
  seed: Type.Integer(),
  approval_delay_s: Nullable(Type.Integer()),
  failures: ArrayOf({
    node_id: text('deploy.eu1-web-01'),
    attempt: Type.Integer(),
    class: text('refused'),
    undo: Type.Optional(Type.Boolean()),
  }),
  ends: Type.Enum(['succeeded', 'succeeded_with_exceptions', 'failed', 'cancelled', 'timed_out', 'blocked', 'paused'], {
    description: 'How it ends; blocked or paused: it waits for a person.',
  }),
  duration_s: Seconds,
  critical_path: Type.Array(Type.String()),
  gates: ArrayOf({
    gate_id: text('go'),
    status: Type.Enum([...GATE_STATUSES]),
    at: Nullable(Seconds),
    decided_at: Nullable(Seconds),
    escalations: Type.Array(Type.Object({ at: Seconds, add_groups: Type.Array(Type.String()) })),
  }),
  lanes: Type.Array(
    Type.Object({
      node_id: text('deploy.eu1-web-01'),
      from_s: Seconds,
      to_s: Seconds,
      attempt: Type.Integer({ description: '0: a wait, which has no attempts.' }),
      undo: Type.Boolean(),
      failure: Nullable(Type.String()),
    }),
    { description: 'When each node runs, by start time; at most 1000.' },
  ),
  lanes_count: Type.Integer(),
  compensations: Type.Array(Type.String(), { description: 'Nodes that are undone, in that order.' }),
  warnings: Type.Array(
    Type.Object({ code: text('gate_expires'), message: text('The gate go expires without approval.') }),
  ),
})
export type Rehearsal = Static<typeof Rehearsal>

/** The names and numbers in a text, so that a client can say it in another language by its code. */
export const TextValues = Type.Record(Type.String(), Type.Union([Type.String(), Type.Number()]))

export const Risk = Type.Object({
  level: Type.Enum(['low', 'medium', 'high', 'critical']),
  score: Type.Integer(),
  factors: ArrayOf({
    factor: text('production'),
    points: Type.Integer(),
    detail: text('It runs in production.'),
    values: Type.Optional(TextValues),
  }),
})

export const PlanView = Type.Object({
  plan_id: text('0195f0c2-0000-7000-8000-000000000004'),
  intent_id: text('0195f0c2-0000-7000-8000-000000000002'),
  title: text('web 2.4.0 on eu1'),
  kind: text('change'),
  status: Type.Enum([...PLAN_STATUSES]),
  status_reason: NullableText,
  plan_hash: Digest,
  semantic_digest: Digest,
  catalog_pins: Type.Array(Type.Object({ resource_id: text('eu1-web-01'), version: Type.Integer() })),
  pins_moved: ArrayOf({ resource_id: text('eu1-web-01'), planned: Type.Integer(), current: Nullable(Type.Integer()) }),
  watermark: text('1042'),
  packs: ArrayOf({
    pack: text('fleet'),
    version: text('1.0.0'),
    digest: text('sha256:3333333333333333333333333333333333333333333333333333333333333333'),
  }),
  counts: Type.Record(Type.String(), Type.Integer()),
  diff: Type.Array(
    Type.Object({
      resource_id: text('eu1-web-01'),
      name: text('eu1-web-01'),
      change: Type.Enum(['create', 'update', 'replace', 'delete', 'no_change', 'unknown']),
      fields: Type.Array(FieldChange),
    }),
    { description: 'At most 200; continue with diff_after.' },
  ),
  diff_next: NullableText,
  impact: Type.Object({
    dependents: Type.Array(Type.String()),
    dependents_count: Type.Integer(),
    compensable: Type.Boolean(),
    affected: Nullable(Affected),
  }),
  risk: Risk,
  conflicts: ArrayOf({
    kind: text('change'),
    id: text('0195f0c2-7c1d-7e38-9d55-2b1c8a4f7e10'),
    resource_id: NullableText,
    /** The title of the operation, intent or freeze; null, with an empty id, for a reader who may not see it. */
    title: NullableText,
    message: text('It waits for the gate go.'),
    error: Type.Optional(text('Port 80 is taken.', { description: 'Of a failure: its error.' })),
  }),
  policy_results: ArrayOf({
    policy_id: text('critical_risk'),
    level: Type.Enum(['hard', 'soft', 'advisory']),
    result: Type.Enum(['passed', 'forbids']),
    detail: text('The risk of this plan is critical.'),
  }),
  gates: ArrayOf({
    gate_id: text('go'),
    kind: text('change'),
    question: text('Shall the rest follow?'),
    policy: Json,
    guards: Type.Array(Type.String()),
    who: Type.Array(Type.String(), { description: 'Groups that may decide; empty: everyone with gate:decide.' }),
    can_i: Type.Boolean(),
  }),
  warnings: ArrayOf({
    code: text('no_change'),
    message: text('It waits for the gate go.'),
    values: Type.Optional(TextValues),
  }),
  estimates: Type.Object({ p50_s: Type.Number(), p90_s: Type.Number(), critical_path: Type.Array(Type.String()) }),
  leases: Type.Array(Type.Object({ resource_id: text('eu1-web-01'), mode: text('exclusive') })),
  windows: Type.Array(Type.String()),
  constraints: Json,
  rehearsal: Nullable(Rehearsal),
  created_at: Time,
  expires_at: Time,
  operation_id: NullableText,
  superseded_by: NullableText,
  superseded_plan_id: Type.Optional(NullableText),
  allowed_actions: Type.Array(AllowedActionSchema),
})
export type PlanView = Static<typeof PlanView>

export const StartBody = Closed(
  {
    reviewed_plan_hash: Digest,
    on_conflict: Type.Optional(
      Type.Enum(['queue', 'reject'], { description: 'What to do while another operation holds a resource.' }),
    ),
    not_before: Type.Optional(Type.String({ format: 'date-time' })),
    window_id: Type.Optional(Type.String({ minLength: 1, maxLength: 63 })),
    max_parallel: Type.Optional(Type.Integer({ minimum: 1, maximum: 500 })),
    deadline_s: Type.Optional(Type.Integer({ minimum: 60, maximum: 2_592_000 })),
    comment: Type.Optional(Type.String({ maxLength: 2000 })),
    dry_run: DryRun,
  },
  { examples: [{ reviewed_plan_hash: 'sha256:0000000000000000000000000000000000000000000000000000000000000000' }] },
)
export type StartBody = Static<typeof StartBody>

export const ProcedureStep = Type.Object({ id: text('drain'), name: text('drain'), executor: text('http') })
export const ProcedureView = Type.Object({
  pack: text('fleet'),
  version: text('1.0.0'),
  key: text('release'),
  kind: text('change'),
  title: text('web 2.4.0 on eu1'),
  scope: text('target'),
  match: Json,
  parameters: Json,
  steps: Type.Array(ProcedureStep),
  gates: Type.Array(Json),
})
export const ProcedureList = Type.Object({ items: Type.Array(ProcedureView) })

/** The packs of this deployment and their use (operations.md 4.4). */
const PackProcedure = Type.Object({
  key: text('release'),
  kind: Type.Enum(['change', 'action', 'runbook']),
  title: text('Roll out a release'),
  resource_type: Nullable(text('fleet.host')),
  steps: Type.Array(ProcedureStep),
  gates: Type.Array(text('cutover'), { description: 'The gate policies that it asks.' }),
})
export const PackView = Type.Object({
  pack: text('fleet'),
  version: text('1.4.0'),
  digest: text('sha256:1f3a9c02'),
  status: Type.Enum(['current', 'loaded', 'retired'], {
    description:
      'New plans take the procedures of the current version. One that is loaded can be named. One that is retired is known from a time before; running operations hold their own copy.',
  }),
  loaded_at: Nullable(Time),
  procedures: Type.Array(PackProcedure, { description: 'None of a version that is retired.' }),
  used_by: Type.Object({
    operations: Type.Integer({ description: 'Operations of its plans that have not ended.' }),
    schedules: Type.Integer({ description: 'Schedules of its runbooks that have not ended; of the current version.' }),
  }),
})
export type PackView = Static<typeof PackView>
export const PackList = Type.Object({ items: Type.Array(PackView) })
