import { heldOf } from '../../../db/catalog/held/rows.ts'
import type { Tx } from '../../../db/client.ts'
import type { RelationshipEvent } from '../../shared/contracts/catalog/events.ts'
import type { Violation } from '../../shared/errors.ts'
import type { EdgePlan } from '../command/edges.ts'
import type { StoredRelationshipType, StoredType } from '../packs/registry.ts'
import { violated } from '../rules/change.ts'
import { boundOf } from '../rules/edges.ts'
import type { Place } from './edges.ts'

type Counted = { rid: string; resource_id: string; type: StoredType; active: boolean }
type Direction = 'out' | 'in'

/**
 * Checks the edge counts that a command leaves behind: max where it added edges, min while active. Covers the changed
 * relationship types at both ends and, when the resource becomes active, every type that its own type requires.
 */
export const checkCardinality = (
  tx: Tx,
  { types, row, type }: Place,
  { lifecycle_status, entered }: { lifecycle_status: string; entered: boolean },
  plan: EdgePlan,
  events: readonly RelationshipEvent[],
): void => {
  const own: Counted = { rid: row.rid, resource_id: row.resource_id, type, active: lifecycle_status === 'active' }
  const violations: Violation[] = []
  const touched = new Map<number, { relation: StoredRelationshipType; at: string }>()
  for (const { at, change, relation, peer } of plan.resolved) {
    const peer_type = peer && types.byId(peer.type_id)
    if (!relation || !peer || !peer_type) continue
    touched.set(relation.id, { relation, at })
    const end = { ...peer, type: peer_type, active: peer.lifecycle_status === 'active' }
    const direction = change.direction === 'in' ? 'out' : 'in'
    violations.push(...countViolations(tx, relation, end, { direction, events, pointer: at }))
  }
  if (own.active && entered) {
    for (const rule of type.relationships) {
      const relation = rule.min > 0 ? types.relationship(rule.type_key) : undefined
      if (relation && !touched.has(relation.id)) touched.set(relation.id, { relation, at: '/relationships' })
    }
  }
  for (const { relation, at } of touched.values()) {
    const directions: Direction[] = relation.symmetric ? ['out'] : ['out', 'in']
    for (const direction of directions)
      violations.push(...countViolations(tx, relation, own, { direction, events, pointer: at }))
  }
  if (violations.length > 0) throw violated(violations)
}

/** How many edges at one end a command opened, less those that it closed. */
const gainedBy = (
  events: readonly RelationshipEvent[],
  { type_key, symmetric }: StoredRelationshipType,
  { resource_id }: Counted,
  direction: Direction,
): number => {
  const touches = ({ from_id, to_id }: RelationshipEvent) =>
    symmetric ? [from_id, to_id].includes(resource_id) : (direction === 'out' ? from_id : to_id) === resource_id
  const own = events.filter((event) => event.type_key === type_key && touches(event))
  return own.filter(({ op }) => op === 'added').length - own.filter(({ op }) => op === 'removed').length
}

type Counting = { direction: Direction; events: readonly RelationshipEvent[]; pointer: string }

const countViolations = (
  tx: Tx,
  relation: StoredRelationshipType,
  end: Counted,
  { direction, events, pointer }: Counting,
): Violation[] => {
  const bound = boundOf(relation, end.type, direction)
  const min = end.active ? bound.min : 0
  if (bound.max === null && min === 0) return []
  const at = relation.symmetric ? 'either' : direction === 'out' ? 'src' : 'dst'
  const count = heldOf(tx).edges.count(relation.id, end.rid, at)
  const name = direction === 'out' ? relation.type_key : relation.inverse_key
  const refuse = (message: string) => [{ pointer, code: 'cardinality', message: `${end.resource_id} ${message}` }]
  // A pack may have lowered the limit since: what stands then stays, and may be removed.
  if (bound.max !== null && count > bound.max && gainedBy(events, relation, end, direction) > 0)
    return refuse(`may have at most ${bound.max} ${name}, not ${count}`)
  if (count < min) return refuse(`needs at least ${min} ${name} while it is active`)
  return []
}
