import Type, { type Static } from 'typebox'
import { Closed, OptionalClosed, text } from '../shapes.ts'
import { EvidenceRef, InputTime, JsonObject, nullable, Uuid } from './common.ts'
import { RelationshipChange } from './relationships.ts'
import { Health } from './resources.ts'

/** Internal commands of the control plane. Unknown fields are refused, so that no operation history can come in. */
const CommandBase = {
  command_id: Uuid,
  idempotency_key: Type.String({ minLength: 1, maxLength: 255, pattern: '^[\\x20-\\x7e]+$' }),
  resource_id: text('eu1-web-01', { minLength: 1, maxLength: 128 }),
}

const EXAMPLE = {
  command_id: '0195f0c2-0000-7000-8000-000000000003',
  idempotency_key: '0195f0c2-0000-7000-8000-000000000001/deploy.eu1-web-01/1',
  resource_id: 'eu1-web-01',
}

export const CapabilityChange = Closed({
  op: Type.Enum(['add', 'update', 'remove']),
  capability_key: text('compute.slots', { minLength: 1, maxLength: 64 }),
  version: text('1.0.0', { minLength: 1, maxLength: 64 }),
  attributes: Type.Optional(JsonObject),
  capacity: OptionalClosed({
    total: Type.Optional(Type.Number({ minimum: 0 })),
    used: Type.Optional(Type.Number({ minimum: 0 })),
  }),
  priority: Type.Optional(Type.Integer({ minimum: 0, maximum: 1000 })),
  expires_at: Type.Optional(nullable(InputTime)),
})
export type CapabilityChange = Static<typeof CapabilityChange>

export const EXAMPLE_RESULT = {
  ...EXAMPLE,
  operation_id: '0195f0c2-0000-7000-8000-000000000001',
  expected_version: 1,
  changes: { observed_state_patch: { release: '2.4.0' } },
}

/** ResourceUpdateCommand of the specification: the result of an operation. Patches are merge patches. */
export const ResourceUpdateCommand = Closed(
  {
    ...CommandBase,
    operation_id: Uuid,
    expected_version: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }),
    changes: Closed({
      lifecycle_status: Type.Optional(Type.String({ minLength: 1, maxLength: 64 })),
      health_status: Type.Optional(Health),
      desired_state_patch: Type.Optional(JsonObject),
      observed_state_patch: Type.Optional(JsonObject),
      relationship_changes: Type.Optional(Type.Array(RelationshipChange, { maxItems: 100 })),
      provided_capability_changes: Type.Optional(Type.Array(CapabilityChange, { maxItems: 100 })),
    }),
    evidence_refs: Type.Optional(Type.Array(EvidenceRef, { maxItems: 50 })),
  },
  { examples: [EXAMPLE_RESULT] },
)
export type ResourceUpdateCommand = Static<typeof ResourceUpdateCommand>

export const CapabilitiesCommand = Closed(
  {
    ...CommandBase,
    operation_id: Type.Optional(Uuid),
    expected_version: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }),
    mode: Type.Optional(Type.Enum(['merge', 'replace'], { description: 'replace withdraws what is not listed.' })),
    provided_capability_changes: Type.Array(CapabilityChange, { maxItems: 100 }),
    evidence_refs: Type.Optional(Type.Array(EvidenceRef, { maxItems: 50 })),
  },
  {
    examples: [
      {
        ...EXAMPLE,
        expected_version: 1,
        provided_capability_changes: [
          { op: 'add', capability_key: 'compute.slots', version: '1.0.0', capacity: { total: 8, used: 0 } },
        ],
      },
    ],
  },
)
export type CapabilitiesCommand = Static<typeof CapabilitiesCommand>

export const HealthObservation = Closed(
  {
    ...CommandBase,
    operation_id: Type.Optional(Uuid),
    expected_version: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
    source: Type.String({ pattern: '^[a-z0-9._-]{1,64}$' }),
    check_key: Type.String({ pattern: '^[a-z0-9._-]{1,64}$' }),
    status: Health,
    observed_at: InputTime,
    ttl_s: Type.Optional(Type.Integer({ minimum: 10, maximum: 604_800 })),
    summary: Type.Optional(Type.String({ maxLength: 1024 })),
    attributes: Type.Optional(JsonObject),
    evidence_refs: Type.Optional(Type.Array(EvidenceRef, { maxItems: 20 })),
  },
  {
    examples: [
      {
        ...EXAMPLE,
        source: 'probe',
        check_key: 'http',
        status: 'healthy',
        observed_at: '2026-01-31T12:00:00Z',
        ttl_s: 60,
        summary: '200 in 12 ms',
      },
    ],
  },
)
export type HealthObservation = Static<typeof HealthObservation>

/** `ignored`: parts of the command that were already true. */
export const CommandResult = Type.Object({
  resource_id: text('eu1-web-01'),
  version: Type.Integer(),
  previous_version: Type.Integer(),
  health_revision: Type.Integer(),
  applied: Type.Boolean(),
  code: Type.Optional(Type.String()),
  change_token: text('cmVzb3VyY2UgZXUxLXdlYi0wMSAz'),
  ignored: Type.Array(
    Type.Object({ pointer: text('/observed_state/release'), code: text('no_change') }, { additionalProperties: true }),
  ),
})
export type CommandResult = Static<typeof CommandResult>
