import Type, { type TSchema } from 'typebox'
import type { CatalogEvent } from '../../shared/contracts/catalog/events.ts'
import { INTENT_KINDS } from '../../shared/contracts/operations/intents.ts'
import { compileSchema, type SchemaCheck } from '../../shared/data/json-schema.ts'
import type { Violation } from '../../shared/errors.ts'

/** Parts of catalog events that the projection uses. Extra members are ignored; a missing or mistyped one fails. */
const Id = Type.String({ minLength: 1, maxLength: 128 })
const Text = Type.String({ maxLength: 1000 })
const Members = Type.Record(Type.String(), Type.Unknown())
const OrNull = <T extends TSchema>(type: T) => Type.Union([type, Type.Null()])

const Document = Type.Object({
  resource_id: Id,
  type_key: Text,
  type_version: Type.Integer(),
  name: Text,
  parent_id: OrNull(Id),
  version: Type.Integer({ minimum: 1 }),
  lifecycle_status: Text,
  labels: Members,
  annotations: Members,
  desired_state: Members,
  observed_state: Members,
})
const Change = Type.Object({
  op: Type.Enum(['added', 'updated', 'removed']),
  relationship_id: Id,
  rev: Type.Integer({ minimum: 0 }),
  type_key: Text,
  from_id: Id,
  to_id: Id,
  properties: Members,
})
const aggregate = { agg_version: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }) }
/** The catalog now splits larger changes; before, one event could hold all relationships of a resource. */
const Changes = Type.Array(Change, { maxItems: 200_000 })
const Resource = Type.Object({
  ...aggregate,
  agg_type: Type.Literal('resource'),
  agg_id: Id,
  relationship_changes: Changes,
  relationship_parts: Type.Optional(Type.Integer({ minimum: 1 })),
  document: Type.Optional(Document),
  /** A path of the catalog, never one that would send our token to another host. */
  fetch_href: Type.Optional(Type.String({ pattern: '^/(internal/)?v1/resources/[A-Za-z0-9._:~-]+$', maxLength: 300 })),
})
const Relationships = Type.Object({
  ...aggregate,
  agg_type: Type.Literal('relationships'),
  agg_id: Type.String({ format: 'uuid' }),
  resource_id: Id,
  version: Type.Integer({ minimum: 1 }),
  relationship_changes: Changes,
})
const Health = Type.Object({ ...aggregate, agg_type: Type.Literal('health'), agg_id: Id, status: Text })
const Intent = Type.Object({
  ...aggregate,
  agg_type: Type.Literal('intent'),
  intent_id: Type.String({ format: 'uuid' }),
  kind: Type.Enum([...INTENT_KINDS]),
  op: Type.Enum(['create', 'update', 'delete']),
  resource_id: Id,
  base_version: Type.Integer({ minimum: 0 }),
  desired_state_patch: Type.Optional(OrNull(Members)),
  requester: Type.Object({ kind: Type.Literal('user'), id: Id, name: Text }),
  title: Type.String({ minLength: 1, maxLength: 1000 }),
  reason: Type.String({ minLength: 1, maxLength: 2000 }),
})

const PAYLOADS: Record<string, SchemaCheck> = {
  'resource.created': compileSchema(Resource),
  'resource.updated': compileSchema(Resource),
  'resource.retired': compileSchema(Resource),
  'resource.relationships': compileSchema(Relationships),
  'health.changed': compileSchema(Health),
  'intent.requested': compileSchema(Intent),
  'type.pack_loaded': compileSchema(Type.Object({ ...aggregate, agg_type: Type.Literal('type') })),
}

/** Returns the first fault that makes an event of a known type impossible to apply; `undefined` if there is none. */
export const payloadFault = (event: CatalogEvent): Pick<Violation, 'pointer' | 'message'> | undefined => {
  const [fault] = PAYLOADS[event.type]?.(event) ?? []
  if (fault) return fault
  if (event.agg_type !== 'resource') return undefined
  const { document, fetch_href } = event as { document?: { resource_id: string; version: number }; fetch_href?: string }
  if (!document) return fetch_href === undefined ? { pointer: '/document', message: 'is required' } : undefined
  if (document.resource_id !== event.agg_id) return { pointer: '/document/resource_id', message: 'is another resource' }
  return undefined
}
