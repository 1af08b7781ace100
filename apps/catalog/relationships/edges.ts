import { type HeldEdge, statementsOf } from '../../../db/catalog/held/edges.ts'
import { heldOf } from '../../../db/catalog/held/rows.ts'
import { MAX_EDGES } from '../../../db/catalog/relationships/rows.ts'
import { getResources, getResourcesByRid, wishLock } from '../../../db/catalog/resources/rows.ts'
import type { EdgeKey, EdgeRow, LockMode, ResourceRow } from '../../../db/catalog/rows.ts'
import type { Queryable, Tx } from '../../../db/client.ts'
import type { RelationshipEvent } from '../../shared/contracts/catalog/events.ts'
import type { RelationshipChange } from '../../shared/contracts/catalog/relationships.ts'
import { equalJson } from '../../shared/data/pointer.ts'
import { AppError, type Violation } from '../../shared/errors.ts'
import { bindClaim, type Claimed, isClaim } from '../capabilities/claims.ts'
import type { EdgePlan, Resolved } from '../command/edges.ts'
import type { Cause } from '../command/outbox.ts'
import type { Uses } from '../deps.ts'
import type { JsonObject } from '../document/pointers.ts'
import type { StoredRelationshipType, StoredType, Types } from '../packs/registry.ts'
import type { MayWrite } from '../read/access.ts'
import { relationshipId } from '../read/documents.ts'
import { violated } from '../rules/change.ts'
import { isAllowed, isBounded, propertyViolations } from '../rules/edges.ts'
import { ownedByOthers } from '../rules/field-owners.ts'
import { followParent } from './tree.ts'

/** From this number on, a metric counts every new edge, because a group resource between the ends is missing. */
const MANY_EDGES = 1000

export type Ignored = { pointer: string; code: string }
/** `claimed`: providers whose claims changed. `moved`: other resources with a new parent, as they were before. */
type EdgeOutcome = { events: RelationshipEvent[]; ignored: Ignored[]; claimed: Claimed; moved: ResourceRow[] }

const idsWith = (types: Types, on_delete: 'restrict' | 'cascade') =>
  types.relationships.filter((relation) => relation.on_delete === on_delete).map(({ id }) => id)
/** Edge types along which other resources end together with a resource. */
export const cascading = (types: Types): number[] => idsWith(types, 'cascade')
/** Edge types that keep their target from ending. */
export const restricting = (types: Types): number[] => idsWith(types, 'restrict')

/** What edge changes will touch, determined before anything is locked (catalog.md 3, "Locks"). */
export const planEdges = async (
  db: Queryable,
  types: Types,
  changes: readonly RelationshipChange[],
  { is_new, pointer, mayWrite }: { is_new: boolean; pointer: string; mayWrite: MayWrite | undefined },
): Promise<EdgePlan> => {
  const peers = await getResources(db, [...new Set(changes.map(({ target_id }) => target_id))])
  const rows = new Map(peers.map((row) => [row.resource_id, row]))
  const locks = new Map<string, LockMode>()
  const type_locks = new Map<number, 'shared' | 'exclusive'>()
  const resolved = changes.map((change, index): Resolved => {
    const relation = types.relationship(change.type_key)
    const peer = rows.get(change.target_id)
    if (relation && peer) {
      const peer_type = types.byId(peer.type_id)
      const peer_direction = change.direction === 'in' ? 'out' : 'in'
      const bounded = peer_type !== undefined && isBounded(relation, peer_type, peer_direction)
      const moves = relation.containment && change.direction === 'in'
      const claims = isClaim(relation) && change.direction !== 'in'
      wishLock(locks, peer.rid, bounded || moves || claims ? 'no key update' : 'key share')
    }
    // An edge out of a new resource cannot close a cycle: no edge points at it yet.
    if (relation?.acyclic && type_locks.get(relation.id) !== 'exclusive')
      type_locks.set(relation.id, is_new && change.direction !== 'in' ? 'shared' : 'exclusive')
    const at = `${pointer}/${index}`
    return { at, target_at: `${at}/target_id`, change, relation, peer }
  })
  return { resolved, locks, type_locks, mayWrite }
}

export type Place = { types: Types; row: ResourceRow; type: StoredType }
/** Which of these resources the caller may see, by row number; a hidden one counts as missing. */
export type Sees = (rows: readonly ResourceRow[]) => Promise<ReadonlySet<string>>

/** Refuses peers that do not exist, are retired or have the wrong type; called under the locks, with fresh rows. */
export const checkPeers = async (
  db: Queryable,
  { types, type }: Pick<Place, 'types' | 'type'>,
  plan: EdgePlan,
  sees: Sees,
): Promise<void> => {
  const rids = plan.resolved.flatMap(({ peer }) => (peer ? [peer.rid] : []))
  const fresh = new Map((await getResourcesByRid(db, rids)).map((row) => [row.rid, row]))
  const visible = await sees([...fresh.values()])
  const violations: Violation[] = []
  for (const item of plan.resolved) {
    const { at, target_at, change, relation } = item
    if (item.peer) item.peer = fresh.get(item.peer.rid)
    const refuse = (code: string, where: string, message: string) => violations.push({ pointer: where, code, message })
    if (!relation) {
      refuse('schema_violation', `${at}/type_key`, `${change.type_key} is not a relationship type`)
      continue
    }
    if (!item.peer || !visible.has(item.peer.rid)) {
      refuse('target_not_found', target_at, `there is no resource ${change.target_id}`)
      continue
    }
    if (change.op !== 'remove') {
      if (!item.peer.is_open) refuse('target_not_found', target_at, `${change.target_id} is retired`)
      const peer_type = types.byId(item.peer.type_id)
      const [from, to] = change.direction === 'in' ? [peer_type, type] : [type, peer_type]
      if (!from || !to || !isAllowed(types, relation, from, to)) {
        const ends = `${from?.type_key} ${relation.type_key} ${to?.type_key}`
        refuse('target_type_not_allowed', target_at, `this relationship is not allowed: ${ends}`)
      }
      violations.push(...propertyViolations(relation, (change.properties ?? {}) as JsonObject, `${at}/properties`))
    }
  }
  if (violations.length > 0) throw violated(violations)
}

const keyOf = (rid: string, relation: StoredRelationshipType, peer: ResourceRow, change: RelationshipChange) => {
  const [src, dst] = change.direction === 'in' ? [peer.rid, rid] : [rid, peer.rid]
  return relation.symmetric && BigInt(src) > BigInt(dst)
    ? { src: dst, reltype_id: relation.id, dst: src }
    : { src, reltype_id: relation.id, dst }
}

/** Names an edge change as events and projections read it. */
export const edgeEvent = (
  op: RelationshipEvent['op'],
  edge: EdgeRow,
  type_key: string,
  ids: ReadonlyMap<string, string>,
): RelationshipEvent => ({
  op,
  relationship_id: relationshipId(edge.rel_no),
  rev: edge.rev,
  type_key,
  from_id: ids.get(edge.src) ?? '',
  to_id: ids.get(edge.dst) ?? '',
  properties: edge.properties,
})

/** Who states an edge, and of which of its ends: the other end does not list it. */
export const statedBy = (manager: string, end: 'src' | 'dst'): string => (end === 'src' ? manager : `${manager}:in`)

/**
 * Applies edge changes in order and refuses cycles; the caller then checks the limits (limits.ts).
 * Containment moves the subtree. The commanded resource gets a new version, as does each child that it gains or loses,
 * because the parent is part of the child.
 */
export const applyEdges = async (
  tx: Tx,
  deps: Uses<'telemetry' | 'config' | 'registry' | 'clock'>,
  { types, row }: Pick<Place, 'types' | 'row'>,
  plan: EdgePlan,
  cause: Cause,
): Promise<EdgeOutcome> => {
  const crowded = deps.telemetry.counter(
    'signalbox_relationships_crowded_total',
    `Relationships opened where a resource had ${MANY_EDGES} of their type.`,
    ['type_key'],
  )
  const started = heldOf(tx).journal.length
  const outcome: EdgeOutcome = { events: [], ignored: [], claimed: new Map(), moved: [] }
  const violations: Violation[] = []
  const ids = new Map([[row.rid, row.resource_id]])
  const reading = { db: tx, registry: deps.registry, clock: deps.clock }
  for (const item of plan.resolved) {
    const { at, target_at, relation, peer } = item
    if (!relation || !peer) continue
    ids.set(peer.rid, peer.resource_id)
    const key = keyOf(row.rid, relation, peer, item.change)
    if (key.src === key.dst) {
      violations.push({ pointer: target_at, code: 'cycle', message: 'a resource cannot be related to itself' })
      continue
    }
    const change = await bindClaim(reading, item, row)
    const applied = applyOne(tx, row, change, key, cause)
    if ('ignored' in applied) outcome.ignored.push({ pointer: at, code: applied.ignored })
    else if ('violation' in applied)
      violations.push({ pointer: at, code: 'target_not_found', message: applied.violation })
    else {
      if (applied.crowded) crowded.inc({ type_key: relation.type_key })
      outcome.events.push(edgeEvent(applied.op, applied.edge, relation.type_key, ids))
      if (isClaim(relation)) {
        for (const { provider_id } of [applied.before?.properties ?? {}, applied.edge.properties])
          if (typeof provider_id === 'string') outcome.claimed.set(provider_id, { owner: key.dst, op: applied.op })
      }
    }
  }
  if (violations.length > 0) throw violated(violations)
  checkCycles(tx, row, plan)
  for (const [child_rid, pointer] of childrenMoved(row, plan)) {
    const before = await followParent(tx, deps, types, { child_rid, pointer, mayWrite: plan.mayWrite })
    if (before && before.rid !== row.rid) outcome.moved.push(before)
  }
  return cameAndWent(outcome) ? undone(tx, started) : outcome
}

/** Whether all that was done is to open edges and close them again: such a command has no effect. */
const cameAndWent = ({ events, ignored }: EdgeOutcome): boolean => {
  const idsOf = (op: RelationshipEvent['op']) =>
    new Set(events.flatMap((event) => (event.op === op ? [event.relationship_id] : [])))
  const [added, removed] = [idsOf('added'), idsOf('removed')]
  const isGone = ({ relationship_id: id }: RelationshipEvent) => added.has(id) && removed.has(id)
  return events.length > 0 && ignored.length === 0 && events.every(isGone)
}

const undone = (tx: Tx, to: number): EdgeOutcome => {
  heldOf(tx).journal.back(to)
  return { events: [], ignored: [], claimed: new Map(), moved: [] }
}

type Applied =
  | { op: RelationshipEvent['op']; edge: EdgeRow; before?: EdgeRow; crowded?: boolean }
  | { ignored: string }
  | { violation: string }

const tooMany = () =>
  new AppError(
    'validation_error',
    'too_many_relationships',
    `A resource has at most ${MAX_EDGES} open relationships of one type.`,
  )

const applyOne = (tx: Tx, row: ResourceRow, change: RelationshipChange, key: EdgeKey, cause: Cause): Applied => {
  const { edges } = heldOf(tx)
  const known = edges.get(key)
  if (change.op === 'remove') {
    const edge = known && edges.close(key, cause)
    return edge ? { op: 'removed', edge } : { ignored: 'not_there' }
  }
  // Only importers and named managers ask later whether an edge is theirs: for others, their kind is enough.
  const manager = statedBy(cause.manager ?? cause.source, key.src === row.rid ? 'src' : 'dst')
  const stated = { ...cause, manager }
  const others = known ? othersOf(known, cause) : []
  const properties = change.properties ?? (others.length > 0 ? known?.properties : undefined) ?? {}
  if (!known && change.op === 'update') return { violation: 'the relationship to update does not exist' }
  if (!known) {
    const found = edges.crowding(key, { many: MANY_EDGES, most: MAX_EDGES })
    if (found === 'most') throw tooMany()
    return { op: 'added', edge: edges.add(key, properties, stated), crowded: found === 'many' }
  }
  if (equalJson(known.properties, properties)) {
    edges.join(key, manager)
    return { ignored: 'already_there' }
  }
  const path = `/relationships/${change.type_key}/${change.target_id}`
  const conflicts = others.map((owner) => ({ path, owner }))
  if (!cause.force) ownedByOthers(row.resource_id, conflicts)
  return { op: 'updated', edge: edges.revise(key, properties, stated), before: known }
}

/** The other managers of an edge, whose properties an import or a named manager may not change unless forced. */
const othersOf = (edge: Pick<HeldEdge, 'stated_by'>, { manager }: Cause): string[] => {
  if (manager === undefined) return []
  return [...new Set(statementsOf(edge).map((one) => one.replace(/:in$/, '')))].filter((one) => one !== manager)
}

const checkCycles = (tx: Tx, row: ResourceRow, plan: EdgePlan): void => {
  for (const { target_at, change, relation, peer } of plan.resolved) {
    if (!relation?.acyclic || !peer || change.op === 'remove') continue
    const key = keyOf(row.rid, relation, peer, change)
    if (heldOf(tx).edges.reaches(relation.id, key.dst, key.src)) {
      const message = `${row.resource_id} and ${peer.resource_id} would form a cycle of ${relation.type_key}`
      throw violated([{ pointer: target_at, code: 'cycle', message }])
    }
  }
}

/** Resources whose place changed, with the command's name for the new one. */
const childrenMoved = (row: ResourceRow, plan: EdgePlan): Map<string, string> =>
  new Map(
    plan.resolved.flatMap(({ change, relation, peer, target_at }): [string, string][] =>
      relation?.containment && peer ? [[change.direction === 'in' ? peer.rid : row.rid, target_at]] : [],
    ),
  )
