import Type, { type Static } from 'typebox'
import { ArrayOf, text } from '../shapes.ts'

/** Resource types as the catalog serves them: derived types are flattened, so no base type has to be looked up. */
const Open = Type.Object({}, { additionalProperties: true })
const Texts = Type.Array(Type.String())

export const Lifecycle = Type.Object({
  states: Texts,
  initial: text('planned'),
  terminal: Texts,
  transitions: ArrayOf({
    from: text('planned'),
    to: text('provisioning'),
    by: Type.Array(Type.Enum(['user', 'operation', 'import'])),
  }),
})

export const RelationshipRule = Type.Object({
  type_key: text('fleet.host'),
  direction: Type.Enum(['out', 'in']),
  peer_types: Texts,
  min: Type.Integer(),
  max: Type.Union([Type.Integer(), Type.Null()], { description: 'null: no separate limit.' }),
})

export const Action = Type.Object({
  action_key: text('restart'),
  title: text('Fleet host'),
  mode: Type.Enum(['operation', 'record']),
  intent_kind: text('action'),
  allowed_in: Texts,
  risk: Type.Enum(['low', 'medium', 'high']),
  input_schema: Open,
})

/** A number that observations of this type may carry in their `attributes`, under `key`. */
export const HealthMetric = Type.Object({
  key: text('p95_ms'),
  title: text('p95'),
  unit: text('ms'),
  better: Type.Enum(['lower', 'higher']),
})
export type HealthMetric = Static<typeof HealthMetric>

export const ResourceType = Type.Object({
  type_key: text('fleet.host'),
  version: Type.Integer(),
  pack: text('fleet'),
  pack_version: text('1.0.0'),
  title: text('Fleet host'),
  icon: Type.Optional(text('server', { description: 'The name of a lucide icon.' })),
  abstract: Type.Boolean({ description: 'Only a base for others: no resource can have it.' }),
  derived_from: Type.Union([Type.String(), Type.Null()]),
  ancestors: Type.Array(Type.String(), { description: 'All bases, the nearest first.' }),
  status: Type.Enum(['active', 'deprecated']),
  writes: Type.Enum(['operation', 'record'], {
    description: 'operation: changes of desired_state become intents; record: they are written at once.',
  }),
  lifecycle: Lifecycle,
  desired_state_schema: Open,
  observed_state_schema: Open,
  field_classes: Type.Object({
    immutable: Texts,
    read_only: Texts,
    sensitive: Type.Array(Type.String(), { description: 'Pointers to fields that hold a secret reference only.' }),
  }),
  identity: Texts,
  drift_paths: Texts,
  indexed_paths: Texts,
  relationships: Type.Array(RelationshipRule),
  provides: Type.Array(Type.Object({ capability_key: text('compute.slots'), version_range: text('^1.0.0') })),
  requires: Type.Array(
    Type.Object(
      {
        requirement_key: text('room'),
        capability_key: text('compute.slots'),
        version_range: text('^1.0.0'),
        min: Type.Integer(),
        scope: Type.Enum(['any', 'same_region', 'same_datacenter', 'same_segment']),
      },
      { additionalProperties: true },
    ),
  ),
  actions: Type.Array(Action),
  health: Type.Object({
    default_ttl_s: Type.Union([Type.Integer(), Type.Null()]),
    metrics: Type.Optional(Type.Array(HealthMetric)),
  }),
  checksum: text('5f2b8e0c41d7a693'),
})
export type ResourceType = Static<typeof ResourceType>

export const RelationshipType = Type.Object({
  type_key: text('fleet.host'),
  pack: text('fleet'),
  inverse_key: text('contains'),
  from: Texts,
  to: Texts,
  from_max: Type.Union([Type.Integer(), Type.Null()]),
  to_max: Type.Union([Type.Integer(), Type.Null()]),
  symmetric: Type.Boolean(),
  acyclic: Type.Boolean(),
  containment: Type.Boolean(),
  on_delete: Type.Enum(['restrict', 'cascade', 'detach']),
  properties_schema: Open,
  health: Type.Object({
    flows: Type.Enum(['none', 'to_from', 'from_to']),
    mode: Type.Enum(['worst', 'quorum']),
    k: Type.Number(),
    cap: Type.Union([Type.Enum(['degraded', 'unhealthy']), Type.Null()]),
  }),
  checksum: text('5f2b8e0c41d7a693'),
})
export type RelationshipType = Static<typeof RelationshipType>

export const Capability = Type.Object({
  capability_key: text('compute.slots'),
  version: text('1.0.0'),
  pack: text('fleet'),
  title: text('Fleet host'),
  category: text('compute'),
  status: Type.Enum(['active', 'deprecated']),
  sharing: Type.Enum(['shared', 'exclusive', 'counted']),
  unit: Type.Union([Type.String(), Type.Null()]),
  attributes_schema: Open,
  match_rules: Type.Record(Type.String(), Type.String()),
  checksum: text('5f2b8e0c41d7a693'),
})
export type Capability = Static<typeof Capability>
