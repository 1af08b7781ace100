import Type, { type Static } from 'typebox'
import { ArrayOf, Closed, OptionalText, text } from '../shapes.ts'
import { EvidenceRef, nullable } from './common.ts'
import { Relationship } from './relationships.ts'
import { ResourceDocument } from './resources.ts'

/** Messages of stream CATALOG (catalog.md 11). Consumers ignore unknown members; a breaking change is a new type. */
const envelope = {
  event_id: text('0195f0c2-0000-7000-8000-000000000005', { format: 'uuid' }),
  type: text('resource.updated'),
  schema_version: Type.Integer(),
  occurred_at: text('2026-01-31T12:00:00.000Z'),
  pub_seq: nullable(
    Type.String({ pattern: '^\\d{1,18}$', description: 'Position in the log; null until it is numbered.' }),
  ),
  agg_type: text('resource'),
  agg_id: text('eu1-web-01'),
  agg_version: Type.Integer(),
  request_id: nullable(Type.String()),
  resource_id: nullable(Type.String()),
  type_key: nullable(Type.String()),
  version: nullable(Type.Integer()),
  previous_version: nullable(Type.Integer()),
  generation: nullable(Type.Integer()),
  actor: text('user:0195f0c2-7c1d-7e38-9d55-2b1c8a4f7e10'),
  command_id: nullable(Type.String()),
  operation_id: nullable(Type.String()),
  evidence_refs: Type.Array(EvidenceRef),
  event_href: OptionalText({ description: 'Only on NATS: the event was too large and must be read here.' }),
}
export const CatalogEvent = Type.Object(envelope, { additionalProperties: true })
export type CatalogEvent = Static<typeof CatalogEvent>

export type RelationshipEvent = { op: 'added' | 'updated' | 'removed' } & Relationship

export type ResourceEventPayload = {
  summary: Record<string, unknown>
  changed_paths: string[]
  relationship_changes: RelationshipEvent[]
  /** The relationships came earlier, in this many events `resource.relationships` with this event's id as agg_id. */
  relationship_parts?: number
  document?: ResourceDocument
  fetch_href?: string
}

/** A part of the relationships that a version of a resource changed, sent before its own event. */
export type RelationshipsEventPayload = {
  /** The type of the resource's own event. */
  of: string
  summary: Record<string, unknown>
  relationship_changes: RelationshipEvent[]
}

export type IntentRequestedPayload = {
  intent_id: string
  kind: 'change'
  op: 'create' | 'update'
  resource_id: string
  base_version: number
  base_generation: number
  desired_state_patch: Record<string, unknown>
  requester: { kind: 'user'; id: string; name: string; roles: string[] }
  title: string
  reason: string
}

export const EventsQuery = Closed({
  after: OptionalText({ pattern: '^\\d{1,19}$', description: 'pub_seq of the last event that is known.' }),
  agg_type: Type.Optional(Type.String({ maxLength: 64 })),
  agg_id: Type.Optional(Type.String({ maxLength: 128 })),
  after_version: Type.Optional(Type.Integer({ minimum: 0 })),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 500, default: 500 })),
})
export const EventsPage = Type.Object({ items: Type.Array(CatalogEvent), last_pub_seq: text('1042') })

export const SnapshotQuery = Closed({
  after: Type.Optional(Type.String({ maxLength: 128, description: 'The last resource_id that is known.' })),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 500, default: 500 })),
})
export const Snapshot = Type.Object({
  items: ArrayOf({
    document: ResourceDocument,
    version: Type.Integer(),
    health_revision: Type.Integer(),
    relationships_out: Type.Array(Relationship),
  }),
  next: nullable(Type.String()),
  watermark: text('1042', { description: 'Events after this pub_seq may be newer than this page.' }),
})

export const VersionsQuery = Closed(
  { resource_ids: Type.Array(Type.String({ minLength: 1, maxLength: 128 }), { minItems: 1, maxItems: 5000 }) },
  { examples: [{ resource_ids: ['eu1-web-01'] }] },
)
export type VersionsQuery = Static<typeof VersionsQuery>
export const Versions = Type.Object(
  { items: Type.Array(Type.Object({ resource_id: text('eu1-web-01'), version: Type.Integer() })) },
  { description: 'Resources that do not exist are left out.' },
)
