import Type, { type Static, type TProperties } from 'typebox'
import type { Capability, RelationshipType, ResourceType } from '../../shared/contracts/catalog/types.ts'

/** The format `signalbox.types/v1` of a type pack (catalog.md 2): shape only; check.ts checks the references. */
const closed = <P extends TProperties>(properties: P) => Type.Object(properties, { additionalProperties: false })
const list = <T extends Parameters<typeof Type.Array>[0]>(item: T, maxItems = 200) => Type.Array(item, { maxItems })

const TYPE_KEY = '^[a-z][a-z0-9_]*(\\.[a-z][a-z0-9_]*)+$'
const KEY = '^[a-z][a-z0-9_.-]{0,63}$'
const SEMVER = '^(0|[1-9]\\d*)\\.(0|[1-9]\\d*)\\.(0|[1-9]\\d*)$'

const typeKey = () => Type.String({ pattern: TYPE_KEY, maxLength: 64 })
const key = () => Type.String({ pattern: KEY, maxLength: 64 })
const title = () => Type.String({ minLength: 1, maxLength: 253 })
const semverText = () => Type.String({ pattern: SEMVER, maxLength: 64 })
const range = () => Type.String({ minLength: 1, maxLength: 128 })
const schema = () => Type.Object({}, { additionalProperties: true })
const pointer = () => Type.String({ pattern: '^(/[^/]*)+$', maxLength: 512 })
const status = () => Type.Enum(['active', 'deprecated'])
const count = () => Type.Union([Type.Integer({ minimum: 0 }), Type.Null()])

export const RelationshipTypeEntry = closed({
  type_key: key(),
  inverse_key: key(),
  from: list(typeKey()),
  to: list(typeKey()),
  from_max: Type.Optional(count()),
  to_max: Type.Optional(count()),
  symmetric: Type.Optional(Type.Boolean()),
  acyclic: Type.Optional(Type.Boolean()),
  containment: Type.Optional(Type.Boolean()),
  on_delete: Type.Enum(['restrict', 'cascade', 'detach']),
  properties_schema: Type.Optional(schema()),
  health: Type.Optional(
    closed({
      flows: Type.Enum(['none', 'to_from', 'from_to']),
      mode: Type.Optional(Type.Enum(['worst', 'quorum'])),
      k: Type.Optional(Type.Number({ exclusiveMinimum: 0 })),
      cap: Type.Optional(Type.Enum(['degraded', 'unhealthy'])),
    }),
  ),
})

export const CapabilityEntry = closed({
  capability_key: typeKey(),
  version: semverText(),
  title: title(),
  category: key(),
  status: Type.Optional(status()),
  sharing: Type.Enum(['shared', 'exclusive', 'counted']),
  unit: Type.Optional(Type.String({ minLength: 1, maxLength: 32 })),
  attributes_schema: Type.Optional(schema()),
  match_rules: Type.Optional(
    Type.Record(Type.String(), Type.Enum(['eq', 'gte', 'lte', 'superset', 'semver']), { maxProperties: 64 }),
  ),
})

const LifecycleEntry = Type.Union([
  Type.Enum(['managed', 'record']),
  closed({
    states: list(key(), 50),
    initial: key(),
    terminal: list(key(), 50),
    transitions: list(closed({ from: key(), to: key(), by: list(Type.Enum(['user', 'operation', 'import']), 3) }), 200),
  }),
])

export const TypeEntry = closed({
  type_key: typeKey(),
  version: Type.Integer({ minimum: 1 }),
  title: title(),
  /** The name of a lucide icon; a type without one inherits its base's. */
  icon: Type.Optional(Type.String({ pattern: '^[a-z][a-z0-9-]{0,62}$' })),
  abstract: Type.Optional(Type.Boolean()),
  derived_from: Type.Optional(typeKey()),
  status: Type.Optional(status()),
  writes: Type.Optional(Type.Enum(['operation', 'record'])),
  lifecycle: Type.Optional(LifecycleEntry),
  desired_state_schema: Type.Optional(schema()),
  observed_state_schema: Type.Optional(schema()),
  field_classes: Type.Optional(
    closed({
      immutable: Type.Optional(list(pointer())),
      read_only: Type.Optional(list(pointer())),
      sensitive: Type.Optional(list(pointer())),
    }),
  ),
  identity: Type.Optional(list(pointer(), 10)),
  drift_paths: Type.Optional(list(pointer(), 50)),
  indexed_paths: Type.Optional(list(pointer(), 50)),
  relationships: Type.Optional(
    list(
      closed({
        type_key: key(),
        direction: Type.Enum(['out', 'in']),
        peer_types: list(typeKey()),
        min: Type.Optional(Type.Integer({ minimum: 0 })),
        max: Type.Optional(count()),
      }),
    ),
  ),
  provides: Type.Optional(list(closed({ capability_key: typeKey(), version_range: range() }))),
  requires: Type.Optional(
    list(
      closed({
        requirement_key: key(),
        capability_key: typeKey(),
        version_range: range(),
        where: Type.Optional(schema()),
        amount: Type.Optional(Type.Union([Type.Number({ exclusiveMinimum: 0 }), closed({ $from: Type.String() })])),
        min: Type.Optional(Type.Integer({ minimum: 0 })),
        scope: Type.Optional(Type.Enum(['any', 'same_region', 'same_datacenter', 'same_segment'])),
      }),
    ),
  ),
  actions: Type.Optional(
    list(
      closed({
        action_key: key(),
        title: title(),
        mode: Type.Enum(['operation', 'record']),
        intent_kind: Type.Optional(Type.Enum(['action', 'change', 'runbook'])),
        allowed_in: Type.Optional(list(key(), 50)),
        risk: Type.Optional(Type.Enum(['low', 'medium', 'high'])),
        input_schema: Type.Optional(schema()),
      }),
    ),
  ),
  health: Type.Optional(
    closed({
      default_ttl_s: Type.Optional(Type.Integer({ minimum: 10, maximum: 604_800 })),
      metrics: Type.Optional(
        list(
          closed({
            key: key(),
            title: Type.String({ minLength: 1, maxLength: 32 }),
            unit: Type.String({ minLength: 1, maxLength: 16 }),
            better: Type.Enum(['lower', 'higher']),
          }),
          8,
        ),
      ),
    }),
  ),
})

export const PackFile = closed({
  format: Type.Literal('signalbox.types/v1'),
  pack: Type.String({ pattern: '^[a-z][a-z0-9-]{0,62}$' }),
  version: semverText(),
  title: title(),
  requires: Type.Optional(Type.Record(Type.String(), range(), { maxProperties: 50 })),
  relationship_types: Type.Optional(list(RelationshipTypeEntry)),
  capabilities: Type.Optional(list(CapabilityEntry, 500)),
  types: Type.Optional(list(TypeEntry, 1000)),
})

export type PackFile = Static<typeof PackFile>
export type TypeEntry = Static<typeof TypeEntry>
export type RelationshipTypeEntry = Static<typeof RelationshipTypeEntry>
export type CapabilityEntry = Static<typeof CapabilityEntry>

/** Everything that a deployment's packs define, flattened. */
export type TypeModel = {
  packs: { pack: string; version: string; title: string }[]
  types: ResourceType[]
  relationship_types: RelationshipType[]
  capabilities: Capability[]
}

/** One broken rule: where (a path into one pack), which rule, what is wrong and how to fix it. */
export type Fault = { pack: number; path: (string | number)[]; rule: string; message: string; fix: string }
export type Report = (path: Fault['path'], rule: string, message: string, fix: string) => void
