import Type, { type Static } from 'typebox'
import { Closed, LINE, NAME, OptionalText, text } from '../shapes.ts'
import {
  Annotations,
  EvidenceRef,
  FreshnessQuery,
  JsonObject,
  Labels,
  many,
  nullable,
  PageQuery,
  pageOf,
  ResourceId,
  said,
  TextMap,
  Time,
  TypeKey,
  Uuid,
} from './common.ts'

export const HEALTH_STATUSES = ['healthy', 'degraded', 'unhealthy', 'unknown', 'maintenance'] as const
export type HealthStatus = (typeof HEALTH_STATUSES)[number]
export const Health = Type.Enum([...HEALTH_STATUSES])
export const manyHealths = many(`${HEALTH_STATUSES.join(', ')}.`, undefined, {
  pattern: `^((${HEALTH_STATUSES.join('|')})(,|$))*$`,
  ...said(HEALTH_STATUSES),
})

export const Scope = Type.Object({
  region_id: nullable(Type.String()),
  datacenter_id: nullable(Type.String()),
  layer_id: nullable(Type.String()),
  segment_id: nullable(Type.String()),
})
export type Scope = Static<typeof Scope>

export const Condition = Type.Object({
  type: Type.Enum(['active', 'in_sync', 'healthy']),
  status: Type.Enum(['true', 'false', 'unknown']),
  reason: text('reason'),
  message: text('It waits for the gate go.'),
  observed_generation: Type.Integer(),
  last_transition_at: Time,
})

const identity = {
  resource_id: text('eu1-web-01'),
  type_key: text('fleet.host'),
  type_version: Type.Integer(),
  name: text('eu1-web-01'),
  display_name: text('eu1-web-01'),
  owner: nullable(Type.String()),
  labels: TextMap,
  parent_id: nullable(Type.String()),
  lifecycle_status: text('active'),
  health_status: Health,
}
export const Drift = Type.Object({
  status: Type.Enum(['in_sync', 'drifted', 'unknown']),
  paths: Type.Array(Type.String()),
})
export const LastOperation = Type.Object({
  operation_id: text('0195f0c2-0000-7000-8000-000000000001'),
  command_id: text('0195f0c2-0000-7000-8000-000000000003'),
  at: Time,
})
const counters = {
  version: Type.Integer({ description: 'Counts decided changes; health never changes it.' }),
  health_revision: Type.Integer(),
  generation: Type.Integer({ description: 'Grows when desired_state really changes.' }),
  observed_generation: Type.Integer({ description: 'The generation that observed_state was written for; 0 = never.' }),
  drift: Drift,
  last_operation: nullable(LastOperation),
  created_at: Time,
  created_by: text('user:0195f0c2-7c1d-7e38-9d55-2b1c8a4f7e10', { description: '`user:<uuid>` or `svc:<name>`.' }),
  updated_at: Time,
  updated_by: text('svc:worker'),
}
const state = { annotations: TextMap, desired_state: JsonObject, observed_state: JsonObject }

export const OwnHealth = Type.Object({
  status: Health,
  reason: text('observed'),
  since: Time,
  expires_at: nullable(Time),
})
export const CapabilityCounts = Type.Object({ provided: Type.Integer(), required: Type.Integer() })
/** Who manages a field, in words for people, and when it was last set. */
export const ManagedField = Type.Object({
  path: text('/labels/env', { description: 'Pointer; "" stands for all fields that are not named.' }),
  owner: text('user:0195f0c2-7c1d-7e38-9d55-2b1c8a4f7e10'),
  name: text('olga'),
  since: nullable(Time),
})
export type ManagedField = Static<typeof ManagedField>

/** Parts that are present if `include` names them. */
const included = {
  health: Type.Optional(OwnHealth),
  relationships: Type.Optional(
    Type.Object(
      { out: Type.Integer(), in: Type.Integer() },
      { description: 'Open edges to resources that the caller may see.' },
    ),
  ),
  capabilities: Type.Optional(CapabilityCounts),
  field_owners: Type.Optional(
    Type.Record(Type.String(), Type.String(), {
      description:
        'Managers by pointer: the nearest pointer above a field names who set it last; "" holds for the rest.',
    }),
  ),
  managed_fields: Type.Optional(
    Type.Array(ManagedField, { description: 'The same with names and times; by include=owners, of one resource.' }),
  ),
}

const historical = Type.Optional(Type.Boolean({ description: 'True when an older version was asked for.' }))

export const ResourceView = Type.Object({
  ...identity,
  scope: Scope,
  ...state,
  ...counters,
  conditions: Type.Array(Condition),
  change_token: text('cmVzb3VyY2UgZXUxLXdlYi0wMSAz', { description: 'Names this write, for min_change.' }),
  ...included,
  historical,
})
export type ResourceView = Static<typeof ResourceView>

export const ResourceItem = Type.Object({
  ...identity,
  scope: Scope,
  ...counters,
  change_token: text('cmVzb3VyY2UgZXUxLXdlYi0wMSAz'),
  annotations: Type.Optional(state.annotations),
  desired_state: Type.Optional(state.desired_state),
  observed_state: Type.Optional(state.observed_state),
  conditions: Type.Optional(Type.Array(Condition)),
  ...included,
  historical,
})
export const ResourceList = pageOf(ResourceItem)

/** The resource as events, revisions and the snapshot show it: without values derived from other resources. */
export const ResourceDocument = Type.Object({
  ...identity,
  health_status: Type.Optional(Health),
  health_revision: Type.Optional(Type.Integer()),
  ...state,
  version: counters.version,
  generation: counters.generation,
  observed_generation: counters.observed_generation,
  drift: counters.drift,
  last_operation: counters.last_operation,
  created_at: Time,
  created_by: text('user:0195f0c2-7c1d-7e38-9d55-2b1c8a4f7e10'),
  updated_at: Time,
  updated_by: text('svc:worker'),
})
export type ResourceDocument = Static<typeof ResourceDocument>

export const INCLUDABLE = ['state', 'health', 'relationships', 'capabilities', 'owners'] as const
export const Selection = {
  fields: many(
    'Fields to return, such as name,labels.environment; resource_id, version and historical are always included. The reply then lacks all other members, also those that its schema requires.',
  ),
  include: many(
    '`state` (annotations, states, conditions), `health`, `relationships` and `capabilities` (counts), `owners` (of fields).',
    undefined,
    said(INCLUDABLE),
  ),
}

/** A team or person of pack `org`. */
export const OwnerId = Type.String({ maxLength: 128, description: 'A team or person: only resources owned_by it.' })

export const ResourceListQuery = Closed({
  ...PageQuery,
  type_key: many('Types, including derived types.'),
  region_id: Type.Optional(Type.String({ maxLength: 128 })),
  datacenter_id: Type.Optional(Type.String({ maxLength: 128 })),
  layer_id: Type.Optional(Type.String({ maxLength: 128 })),
  layer_kind: Type.Optional(Type.String({ maxLength: 32 })),
  segment_id: Type.Optional(Type.String({ maxLength: 128 })),
  parent_id: Type.Optional(Type.String({ maxLength: 128 })),
  owned_by: Type.Optional(OwnerId),
  lifecycle_status: many('Naming a terminal state includes retired resources.'),
  health_status: manyHealths,
  label: many('`key` or `key=value`; all must hold.'),
  drift: Type.Optional(Type.Enum(['in_sync', 'drifted', 'unknown'])),
  ids: many('At most 200 resource ids.'),
  include_retired: Type.Optional(Type.Boolean()),
  filter: OptionalText({
    maxLength: 2048,
    description: 'AIP-160 style: name:web AND labels.env=prod AND NOT health_status=healthy.',
  }),
  sort: OptionalText({
    maxLength: 200,
    description:
      'At most 3 of resource_id, type_key, name, created_at, updated_at, lifecycle_status, health_status; `-` = descending.',
  }),
  stale_since: OptionalText({
    format: 'date-time',
    maxLength: 40,
    description: 'Only resources last changed before this time.',
  }),
  at: OptionalText({
    format: 'date-time',
    maxLength: 40,
    description:
      'Resources as they were at this time: sorted by resource_id, name or created_at only; a page may be short. Health comes from the observations of 30 days, before that it is unknown; health_revision is 0 and conditions are empty.',
  }),
  ...Selection,
  ...FreshnessQuery,
  count: Type.Optional(Type.Enum(['none', 'capped', 'exact'])),
})
export type ResourceListQuery = Static<typeof ResourceListQuery>

const writable = {
  display_name: Type.Optional(Type.String({ minLength: 1, maxLength: 253, pattern: LINE })),
  labels: Type.Optional(Labels),
  annotations: Type.Optional(Annotations),
  owner: Type.Optional(Type.String({ minLength: 1, maxLength: 128, pattern: LINE })),
}

export const RelationshipInput = Closed({
  type_key: text('fleet.host', { minLength: 1, maxLength: 64 }),
  direction: Type.Optional(Type.Enum(['out', 'in'])),
  target_id: Type.String({ minLength: 1, maxLength: 128 }),
  properties: Type.Optional(JsonObject),
})

/** A state as received: its bounds are checked on the complete state that results from a write. */
const State = Type.Optional(
  Type.Unsafe<Record<string, unknown>>({
    type: 'object',
    additionalProperties: true,
    description:
      'At most 256 KiB and 20 levels; one text in it at most 65,536 characters as spelled in JSON. No null, no integer beyond 2^53-1.',
  }),
)

export const ResourceCreate = Closed(
  {
    resource_id: Type.Optional(ResourceId),
    type_key: TypeKey,
    name: Type.String({ minLength: 1, maxLength: 253, pattern: NAME }),
    ...writable,
    parent_id: Type.Optional(Type.String({ minLength: 1, maxLength: 128 })),
    desired_state: State,
    relationships: Type.Optional(Type.Array(RelationshipInput, { maxItems: 100 })),
    lifecycle_status: OptionalText({ minLength: 1, maxLength: 64, description: 'Only with mode=record_only.' }),
    observed_state: State,
  },
  {
    examples: [
      {
        type_key: 'infra.service',
        name: 'eu1-search',
        labels: { environment: 'demo' },
        desired_state: { tier: 2, protocol: 'http' },
      },
    ],
  },
)
export type ResourceCreate = Static<typeof ResourceCreate>

export const WriteQuery = Closed({
  mode: Type.Optional(
    Type.Enum(['record_only'], { description: 'Records facts about existing resources; permission catalog:record.' }),
  ),
  validate_only: Type.Optional(Type.Boolean({ description: 'Runs all checks and stores nothing.' })),
  expected_version: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
  reason: Type.Optional(Type.String({ maxLength: 2000 })),
  manager: Type.Optional(
    text('site-config', {
      pattern: '^[a-z0-9]([a-z0-9._/-]{0,61}[a-z0-9])?$',
      description:
        'Owns the fields that it sets; 409 field_owned if another manager set one to another value. Not user, operation or import.',
    }),
  ),
  force: Type.Optional(
    Type.Boolean({
      description: 'Takes over fields of other managers; false refuses to, even if no manager is named.',
    }),
  ),
})
export type WriteQuery = Static<typeof WriteQuery>

/** Not closed: RFC 6902 requires that members an operation does not define are ignored. */
export const PatchOperation = Type.Object({
  op: Type.Enum(['add', 'remove', 'replace', 'move', 'copy', 'test']),
  path: text('/desired_state/release', { maxLength: 1024 }),
  from: Type.Optional(Type.Unknown({ description: 'A pointer; read by move and copy.' })),
  value: Type.Optional(Type.Unknown()),
})
export const PATCH_OPERATIONS = 1000
/** A merge patch (object) or a JSON patch (array), by Content-Type. */
export const ResourcePatch = Type.Union([JsonObject, Type.Array(PatchOperation, { maxItems: PATCH_OPERATIONS })], {
  examples: [
    { labels: { environment: 'demo', team: 'search' }, expected_version: 1 },
    [{ op: 'add', path: '/owner', value: 'team-search' }],
  ],
})

export const OperationRef = Type.Object({
  kind: Type.Literal('intent'),
  intent_id: text('0195f0c2-0000-7000-8000-000000000002'),
  href: text('/v1/intents/0195f0c2-0000-7000-8000-000000000002'),
  plan_preview_href: text('/v1/intents/0195f0c2-0000-7000-8000-000000000002/plan-preview'),
  status_href: text('/v1/intents/0195f0c2-0000-7000-8000-000000000002'),
  operation_id: Type.Union([Uuid, Type.Null()], { examples: [null], description: 'null: a started plan gets one.' }),
})
export type OperationRef = Static<typeof OperationRef>
export const Accepted = Type.Object({ resource: ResourceView, operation_ref: OperationRef })

/** The answer to validate_only: the resource as it would be, and whether an intent would be created. */
export const Validated = Type.Object({
  resource: ResourceView,
  changed_paths: Type.Array(Type.String()),
  would_create_intent: Type.Boolean(),
})

export const VersionItem = Type.Object({
  version: Type.Integer(),
  at: Time,
  actor: text('user:0195f0c2-7c1d-7e38-9d55-2b1c8a4f7e10'),
  actor_name: text('olga'),
  command_id: nullable(Type.String()),
  operation_id: nullable(Type.String()),
  lifecycle_status: text('active'),
  changed_paths: Type.Array(Type.String(), { description: 'Empty in version 1, which created the resource.' }),
  evidence_refs: Type.Array(EvidenceRef),
})
export const VersionList = pageOf(VersionItem)
