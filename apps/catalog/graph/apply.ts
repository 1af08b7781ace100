import type { GraphEventRow as GraphEvent } from '../../../db/catalog/relationships/graph-events.ts'
import type { Types } from '../packs/registry.ts'
import type { createCounts } from './counts.ts'
import { addEdge, type Edges, removeEdge } from './edges.ts'
import type { Nodes } from './nodes.ts'

/** An event names a type that this process does not know yet, or a resource that never arrived. */
export class UnknownName extends Error {}

/** The parts that events change; `counts` exists once places are counted. */
export type Parts = { nodes: Nodes; edges: Edges; counts?: ReturnType<typeof createCounts> }

/** Aggregates whose events carry a resource's versions. */
const RESOURCE = new Set(['resource', 'relationships'])

/**
 * Applies one event. An event already in the snapshot is recognized by its version and skipped whole, including its
 * edges, because both were written together. Throws UnknownName before a version or an edge has changed, so that the
 * event can be applied again.
 */
export const applyEvent = (parts: Parts, event: GraphEvent, types: Types): void => {
  if (event.rid === null) return
  if (RESOURCE.has(event.agg_type)) applyResource(parts, Number(event.rid), event, types)
  else if (event.agg_type === 'health') applyHealth(parts, Number(event.rid), event)
}

/** Applies the event of a version, or a part of its relationships, which precedes it. */
const applyResource = (parts: Parts, rid: number, event: GraphEvent, types: Types): void => {
  const { nodes } = parts
  const part = event.agg_type === 'relationships'
  const [version, type] = part ? [event.version ?? 0, event.of] : [event.agg_version, event.type]
  if (!nodes.knows(rid)) addNode(nodes, rid, event, types)
  if (version <= nodes.numberAt(rid, 'version')) return
  const moves = (event.changes ?? []).map((change) => resolve(nodes, change, types))
  for (const { op, relation, from, to, no } of moves) {
    if (op === 'added') addEdge(parts.edges, from, relation.id, to, no)
    else if (op === 'removed') removeEdge(parts.edges, from, relation.id, to)
    // Either end reports containment, so a child's place comes from its edge; a retired resource keeps its last place.
    if (!relation.containment) continue
    if (op === 'added') moveTo(parts, from, to)
    else if (op === 'removed' && type !== 'resource.retired' && nodes.numberAt(from, 'parent') === to)
      moveTo(parts, from, 0)
  }
  if (part) return
  changing(parts, rid, () => {
    if (type === 'resource.retired') nodes.close(rid)
    nodes.set(rid, 'lifecycle', nodes.lifecycles.numberOf(event.lifecycle_status ?? 'unknown'))
  })
  nodes.set(rid, 'version', version)
}

const addNode = (nodes: Nodes, rid: number, event: GraphEvent, types: Types): void => {
  const known = types.newest(event.type_key ?? '')
  if (!known) throw new UnknownName(`type ${event.type_key}`)
  const health = nodes.healths.numberOf(event.health_status ?? 'unknown')
  nodes.add(rid, { id: event.resource_id ?? '', name: event.name ?? '', type: known.id, health })
}

const resolve = (nodes: Nodes, change: NonNullable<GraphEvent['changes']>[number], types: Types) => {
  const { op, relationship_id, type_key, from_id, to_id } = change
  const relation = types.relationship(type_key)
  const [from, to] = [nodes.ridOf(from_id), nodes.ridOf(to_id)]
  if (!relation || from === undefined || to === undefined)
    throw new UnknownName(`${type_key} from ${from_id} to ${to_id}`)
  return { op, relation, from, to, no: numberOfRelationship(relationship_id) }
}

/** The number in a relationship's id (documents.ts, relationshipId). */
const numberOfRelationship = (id: string): number => Number.parseInt(id.slice('rel_'.length), 32)

const applyHealth = (parts: Parts, rid: number, event: GraphEvent): void => {
  const { nodes } = parts
  if (event.agg_version <= nodes.numberAt(rid, 'health_revision')) return
  changing(parts, rid, () => nodes.set(rid, 'health', nodes.healths.numberOf(event.health_status ?? 'unknown')))
  nodes.set(rid, 'health_revision', event.agg_version)
}

const changing = ({ counts }: Parts, rid: number, change: () => void): void =>
  counts ? counts.changing(rid, change) : change()

const moveTo = ({ nodes, counts }: Parts, rid: number, parent: number): void => {
  const move = () => nodes.set(rid, 'parent', parent)
  if (counts) counts.moving(rid, move)
  else move()
}
