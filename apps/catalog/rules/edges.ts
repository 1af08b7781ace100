import type { Violation } from '../../shared/errors.ts'
import type { JsonObject } from '../document/pointers.ts'
import { violationsOf } from '../document/schemas.ts'
import type { StoredRelationshipType, StoredType, Types } from '../packs/registry.ts'
import { stateViolations } from './state.ts'

const MAX_PROPERTIES_BYTES = 8192

type Direction = 'out' | 'in'

/** A resource type's rule for its edges of one relationship type and direction; a symmetric edge leaves both ends. */
const ruleOf = (type: StoredType, { type_key, symmetric }: StoredRelationshipType, direction: Direction) => {
  const written = symmetric ? 'out' : direction
  return type.relationships.find((rule) => rule.type_key === type_key && rule.direction === written)
}

/** Whether both ends may be connected: the relationship type allows them, and neither end's type excludes the other. */
export const isAllowed = (
  types: Types,
  relation: StoredRelationshipType,
  from: StoredType,
  to: StoredType,
): boolean => {
  const oneOf = (type: StoredType, keys: readonly string[]) => keys.some((key) => types.isA(type.type_key, key))
  const fits = (a: StoredType, b: StoredType) => oneOf(a, relation.from) && oneOf(b, relation.to)
  if (!fits(from, to) && !(relation.symmetric && fits(to, from))) return false
  const narrowed = [
    { rule: ruleOf(from, relation, 'out'), peer: to },
    { rule: ruleOf(to, relation, 'in'), peer: from },
  ]
  return narrowed.every(({ rule, peer }) => !rule || oneOf(peer, rule.peer_types))
}

export type Bound = { min: number; max: number | null }

/** How many edges of a type one end may and must have: the tighter limits of both types. */
export const boundOf = (relation: StoredRelationshipType, type: StoredType, direction: Direction): Bound => {
  const rule = ruleOf(type, relation, direction)
  const { symmetric, from_max, to_max } = relation
  const own = symmetric ? [from_max, to_max] : [direction === 'out' ? from_max : to_max]
  const maxima = [...own, rule?.max ?? null].filter((max) => max !== null)
  return { min: rule?.min ?? 0, max: maxima.length > 0 ? Math.min(...maxima) : null }
}

/** Whether a change at this end needs the end's own lock because it could break one of its limits. */
export const isBounded = (relation: StoredRelationshipType, type: StoredType, direction: Direction): boolean => {
  const { min, max } = boundOf(relation, type, direction)
  return max !== null || min > 0
}

export const propertyViolations = (
  relation: StoredRelationshipType,
  properties: JsonObject,
  at: string,
): Violation[] => {
  if (Buffer.byteLength(JSON.stringify(properties)) > MAX_PROPERTIES_BYTES)
    return [{ pointer: at, code: 'schema_violation', message: 'is larger than 8 KiB' }]
  const general = stateViolations(properties, at)
  return general.length > 0 ? general : violationsOf(relation.properties_schema, properties, at)
}
