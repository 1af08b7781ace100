import Type, { type Static } from 'typebox'
import { Closed, OptionalText, text } from '../shapes.ts'
import { FreshnessQuery, JsonObject, many, PageQuery, pageOf, Time } from './common.ts'
import { Health } from './resources.ts'

/** An edge as stored and published: once, from one end to the other. */
export const Relationship = Type.Object({
  relationship_id: text('rel_000000000000a'),
  rev: Type.Integer(),
  type_key: text('fleet.host'),
  from_id: text('eu1-web-01'),
  to_id: text('eu1-a-web'),
  properties: JsonObject,
})
export type Relationship = Static<typeof Relationship>

export const RelationshipItem = Type.Object({
  relationship: Type.Object({ ...Relationship.properties, valid_from: Time }),
  direction: Type.Enum(['out', 'in']),
  peer: Type.Object({
    resource_id: text('eu1-web-01'),
    type_key: text('fleet.host'),
    name: text('eu1-web-01'),
    lifecycle_status: text('active'),
    health_status: Health,
  }),
})
export const RelationshipList = pageOf(RelationshipItem)

export const RelationshipQuery = Closed({
  ...PageQuery,
  direction: Type.Optional(Type.Enum(['out', 'in', 'both'])),
  relationship_types: many('Relationship type keys.'),
  peer_types: many('Types of the other end, including derived types.'),
  at: OptionalText({ format: 'date-time', maxLength: 40, description: 'The edges as they were at this time.' }),
  ...FreshnessQuery,
})

/** One change of an edge inside a command; `direction` is seen from the commanded resource. */
export const RelationshipChange = Closed({
  op: Type.Enum(['add', 'remove', 'update']),
  type_key: text('fleet.host', { minLength: 1, maxLength: 64 }),
  direction: Type.Optional(Type.Enum(['out', 'in'])),
  target_id: Type.String({ minLength: 1, maxLength: 128 }),
  properties: Type.Optional(JsonObject),
})
export type RelationshipChange = Static<typeof RelationshipChange>
