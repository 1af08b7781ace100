import Type, { type Static } from 'typebox'

/** Resource types as the catalog serves them: derived types are flattened, nothing has to be looked up in a base. */
const Open = Type.Object({}, { additionalProperties: true })
const Texts = Type.Array(Type.String())

export const Lifecycle = Type.Object({
  states: Texts,
  initial: Type.String(),
  terminal: Texts,
  transitions: Type.Array(
    Type.Object({
      from: Type.String(),
      to: Type.String(),
      by: Type.Array(Type.Enum(['user', 'operation', 'import'])),
    }),
  ),
})

export const RelationshipRule = Type.Object({
  type_key: Type.String(),
  direction: Type.Enum(['out', 'in']),
  peer_types: Texts,
  min: Type.Integer(),
  max: Type.Union([Type.Integer(), Type.Null()], { description: 'null: no limit of its own.' }),
})

export const Action = Type.Object({
  action_key: Type.String(),
  title: Type.String(),
  mode: Type.Enum(['operation', 'record']),
  intent_kind: Type.String(),
  allowed_in: Texts,
  risk: Type.Enum(['low', 'medium', 'high']),
  input_schema: Open,
})

export const ResourceType = Type.Object({
  type_key: Type.String(),
  version: Type.Integer(),
  pack: Type.String(),
  pack_version: Type.String(),
  title: Type.String(),
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
  provides: Type.Array(Type.Object({ capability_key: Type.String(), version_range: Type.String() })),
  requires: Type.Array(
    Type.Object(
      {
        requirement_key: Type.String(),
        capability_key: Type.String(),
        version_range: Type.String(),
        min: Type.Integer(),
        scope: Type.Enum(['any', 'same_region', 'same_datacenter', 'same_segment']),
      },
      { additionalProperties: true },
    ),
  ),
  actions: Type.Array(Action),
  health: Type.Object({ default_ttl_s: Type.Union([Type.Integer(), Type.Null()]) }),
  checksum: Type.String(),
})
export type ResourceType = Static<typeof ResourceType>

export const RelationshipType = Type.Object({
  type_key: Type.String(),
  pack: Type.String(),
  inverse_key: Type.String(),
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
  checksum: Type.String(),
})
export type RelationshipType = Static<typeof RelationshipType>

export const Capability = Type.Object({
  capability_key: Type.String(),
  version: Type.String(),
  pack: Type.String(),
  title: Type.String(),
  category: Type.String(),
  status: Type.Enum(['active', 'deprecated']),
  sharing: Type.Enum(['shared', 'exclusive', 'counted']),
  unit: Type.Union([Type.String(), Type.Null()]),
  attributes_schema: Open,
  match_rules: Type.Record(Type.String(), Type.String()),
  checksum: Type.String(),
})
export type Capability = Static<typeof Capability>
