import { heldOf } from '../../../db/catalog/held/rows.ts'
import {
  getResource,
  getResourcesByRid,
  lockRelationshipTypes,
  lockStates,
} from '../../../db/catalog/resources/rows.ts'
import type { ResourceRow } from '../../../db/catalog/rows.ts'
import type { Tx } from '../../../db/client.ts'
import { attempt } from '../../../db/command/attempt.ts'
import { type Answer, answerOf, type Given } from '../../../db/command/run.ts'
import type { RelationshipChange } from '../../shared/contracts/catalog/relationships.ts'
import type { OperationRef, ResourceCreate, ResourceView } from '../../shared/contracts/catalog/resources.ts'
import { pick } from '../../shared/data/pick.ts'
import { AppError } from '../../shared/errors.ts'
import { base32Id } from '../../shared/ids.ts'
import { tellClaims } from '../capabilities/tell.ts'
import { type Change, makeHere } from '../changes/each.ts'
import { createWish } from '../changes/hold.ts'
import { runChange } from '../changes/run.ts'
import { type Cause, managerOf } from '../command/outbox.ts'
import {
  asObject,
  type Causing,
  causing,
  commandOf,
  headersOf,
  mayWriteOf,
  NO_COMMAND,
  readAccess,
  type Write,
} from '../command/request.ts'
import { alreadyExists, type Stamp, stampOf } from '../command/run.ts'
import type { CatalogDeps } from '../deps.ts'
import { driftOf } from '../document/common.ts'
import { refusedAs } from '../document/names.ts'
import type { JsonObject } from '../document/pointers.ts'
import type { StoredType, Types } from '../packs/registry.ts'
import { type MayWrite, outOfScope, scopeOfRow, visibleOf } from '../read/access.ts'
import { viewOf } from '../read/documents.ts'
import { applyEdges, checkPeers, planEdges, type Sees } from '../relationships/edges.ts'
import { checkCardinality } from '../relationships/limits.ts'
import { refuseForeignEdges } from '../relationships/rights.ts'
import { checkReadOnly, fittingType, identityHash, initialState, typeForCreate, violated } from '../rules/change.ts'
import { depthOf, depthViolations } from '../rules/depth.ts'
import { checkNotes, composed } from '../rules/notes.ts'
import { requestIntent } from './intents.ts'
import { versionMoved, writeVersion } from './write.ts'

/**
 * Creates a resource (catalog.md 7.4): at once for record types and for facts (record_only), else as `planned` with an
 * intent that the operations app creates. Order of checks: claim, scope, existing resource, type, fields.
 */
export const createResource = async (deps: CatalogDeps, body: ResourceCreate, write: Write): Promise<Answer> => {
  // A repeat without an id must create the same resource, so the id is fixed before the transaction may restart.
  const resource_id = body.resource_id ?? base32Id('res')
  const made = createAs(deps, { ...composed(body), resource_id }, write)
  if (body.resource_id !== undefined) return made
  return made.catch((error) => {
    throw error instanceof AppError ? refusedAs(error, new Map([[resource_id, body.name]])) : error
  })
}

const createAs = async (deps: CatalogDeps, body: Wanted, write: Write): Promise<Answer> => {
  const { types } = deps.registry
  const create = async (tx: Tx, command_id: string, stamp: Stamp) => {
    const { row, intent } = await insertNew(tx, deps, body, write, causing(write, command_id, stamp))
    return { row: row.row, intent, resource: viewOf(row.row, row.scope, types), changed_paths: row.changed_paths }
  }
  const wish = createWish(types, body)
  if (write.query.validate_only) return tried(deps, { wish, run: (tx) => create(tx, NO_COMMAND, stampOf(deps)) })
  const command = commandOf(deps, write)
  const work = async (tx: Tx, stamp: Stamp): Promise<Given> => {
    const { row, intent, resource } = await create(tx, command.command_id, stamp)
    return written(201, row, resource, intent)
  }
  return runChange(deps, { command, wish, work }).catch((error) => explainTwin(deps, body, write, error))
}

/** The answer to a write: the resource, or 202 with the intent that the write became. */
export const written = (status: number, row: ResourceRow, resource: ResourceView, intent?: OperationRef): Given => ({
  status: intent ? 202 : status,
  headers: headersOf(row, intent?.href),
  body: intent ? { resource, operation_ref: intent } : resource,
  about: row.resource_id,
})

type Rehearsed = { resource: object; changed_paths: string[]; intent: unknown }
/** The effect of a write, from a transaction that is rolled back. */
export const tried = async ({ db, registry }: CatalogDeps, change: Change<Rehearsed>): Promise<Answer> => {
  const { resource, changed_paths, intent } = await attempt(db, (tx) => makeHere(tx, registry.types, change))
  const body = { resource, changed_paths, would_create_intent: intent !== undefined }
  return { ...answerOf({ status: 200, body }), replayed: false }
}

export type Wanted = ResourceCreate & { resource_id: string }

/** Inserts a new resource with its edges, first version and, if its type requires one, its intent. */
export const insertNew = async (tx: Tx, deps: CatalogDeps, body: Wanted, write: Write, by: Causing) => {
  const { types } = deps.registry
  const known = types.newest(body.type_key)
  const mayWrite = mayWriteOf(deps, write)
  const { plan, parent, parent_at } = await lockForCreate(tx, deps, body, mayWrite)
  const read = readAccess(deps, write.caller)
  const cause = by(parent)

  await refuseForeignPlace(tx, deps, { name: body.resource_id, type: known, parent }, write)
  const sees: Sees = (rows) => visibleOf(tx, types, read, rows)
  await refuseForeignEdges(tx, types, plan, sees)
  await refuseTwin(tx, deps, body, known, parent, write)
  const type = typeForCreate(types, body.type_key)
  const facts = checkFields(deps, type, body, write)

  await checkPeers(tx, { types, type }, plan, sees)
  const depth = parent ? depthOf(parent.path) + 1 : 1
  const violations = depthViolations(depth, 0, deps.config.tree_depth, parent_at)
  if (violations.length > 0) throw violated(violations)
  const rid = insertRows(tx, facts.type, body, facts, parent, cause)
  const [row] = await getResourcesByRid(tx, [rid])
  if (!row) throw new Error('the new resource is not there')
  const place = { types, row, type: facts.type }
  const edges = await applyEdges(tx, deps, place, plan, cause)
  checkCardinality(tx, place, { lifecycle_status: row.lifecycle_status, entered: true }, plan, edges.events)
  await versionMoved(tx, deps, edges.moved, cause)
  // A new resource cannot have claims on it yet: all these events are about others.
  await tellClaims(tx, types, edges.claimed, { own_rid: rid, cause })
  const [tied = row] = plan.resolved.some(({ relation }) => relation?.containment)
    ? await getResourcesByRid(tx, [rid])
    : []
  const told = { before: undefined, cause, edges: edges.events, providers: [], event: 'resource.created' as const }
  const made = await writeVersion(tx, deps, tied, told)
  const intent = await intentFor(tx, deps, type, made.row, write, cause)
  return { row: { ...made, scope: await scopeOfRow(tx, types, made.row) }, intent }
}

type Place = { name: string; type: StoredType | undefined; parent: ResourceRow | undefined }
/** Refuses a new resource where the caller may not write, before anything there is looked at. */
export const refuseForeignPlace = async (tx: Tx, deps: CatalogDeps, { name, type, parent }: Place, write: Write) => {
  const scope = parent ? await scopeOfRow(tx, deps.registry.types, parent) : NOWHERE
  const lacking = mayWriteOf(deps, write)(type?.id ?? -1, scope)
  if (lacking !== undefined) throw outOfScope(name, lacking)
}

const NOWHERE = { region_id: null, datacenter_id: null, layer_id: null, segment_id: null }

const lockForCreate = async (tx: Tx, { registry }: CatalogDeps, body: Wanted, mayWrite: MayWrite) => {
  const changes: RelationshipChange[] = (body.relationships ?? []).map((edge) => ({ op: 'add', ...edge }))
  const plan = await planEdges(tx, registry.types, changes, { is_new: true, pointer: '/relationships', mayWrite })
  if (body.parent_id !== undefined) {
    const change = { op: 'add' as const, type_key: 'contained_in', target_id: body.parent_id }
    const above = await planEdges(tx, registry.types, [change], { is_new: true, pointer: '/parent_id', mayWrite })
    plan.resolved.unshift(...above.resolved.map((item) => ({ ...item, at: '/parent_id', target_at: '/parent_id' })))
    for (const [rid, mode] of above.locks) if (!plan.locks.has(rid)) plan.locks.set(rid, mode)
    for (const [id, mode] of above.type_locks) if (!plan.type_locks.has(id)) plan.type_locks.set(id, mode)
  }
  await lockRelationshipTypes(tx, plan.type_locks)
  await lockStates(tx, plan.locks)
  const into = plan.resolved.find(({ change }) => isInto(registry.types, change))
  const parent = into && (await getResource(tx, into.change.target_id))
  return { plan, parent, parent_at: into?.target_at ?? '/parent_id' }
}

/** Whether an edge of a new resource names its parent. */
export const isInto = (
  types: Types,
  { type_key, direction }: { type_key: string; direction?: 'in' | 'out' },
): boolean => direction !== 'in' && types.relationship(type_key)?.containment === true

const refuseTwin = async (
  tx: Tx,
  deps: CatalogDeps,
  body: Wanted,
  type: StoredType | undefined,
  parent: ResourceRow | undefined,
  write: Write,
): Promise<void> => {
  const twin = twinOf(tx, body, type, parent)
  if (twin) throw await twinExists(tx, deps, twin, write)
}

type Named = Pick<Wanted, 'resource_id' | 'name' | 'desired_state'>
/** The resource that stands where a new one would: by its id, its name in the parent, or its natural identity. */
export const twinOf = (tx: Tx, wanted: Named, type: StoredType | undefined, parent: ResourceRow | undefined) =>
  heldOf(tx).findTwin({
    ...pick(wanted, 'resource_id', 'name'),
    type_id: type?.id ?? null,
    parent_rid: parent?.rid ?? null,
    identity_hash: type ? identityHash(type, asObject(wanted.desired_state)) : null,
  })
type Twin = NonNullable<ReturnType<typeof twinOf>>

/** The refusal of a twin, which is named only to callers who may see it. */
export const twinExists = async (tx: Tx, deps: CatalogDeps, { rid, what, resource_id }: Twin, { caller }: Write) => {
  const rows = await getResourcesByRid(tx, [rid])
  const seen = await visibleOf(tx, deps.registry.types, readAccess(deps, caller), rows)
  return alreadyExists(what, seen.has(rid) ? resource_id : undefined)
}

/** Two concurrent creations: an index let one through; the other learns which one it collided with. */
const explainTwin = async (deps: CatalogDeps, body: Wanted, write: Write, error: unknown): Promise<never> => {
  if (error instanceof AppError && error.code === 'already_exists') {
    const { types } = deps.registry
    const parent_id = body.parent_id ?? body.relationships?.find((edge) => isInto(types, edge))?.target_id
    const run = async (tx: Tx) => {
      const parent = parent_id === undefined ? undefined : await getResource(tx, parent_id)
      await refuseTwin(tx, deps, body, types.newest(body.type_key), parent, write)
    }
    await attempt(deps.db, (tx) => makeHere(tx, types, { wish: { resource_id: body.resource_id, edges: [] }, run }))
  }
  throw error
}

const checkFields = (deps: CatalogDeps, newest: StoredType, body: Wanted, write: Write) => {
  const record_only = write.query.mode === 'record_only'
  for (const name of ['lifecycle_status', 'observed_state'] as const) {
    if (!record_only && body[name] !== undefined)
      throw violated([{ pointer: `/${name}`, code: 'read_only_field', message: 'requires mode=record_only' }])
  }
  checkNotes(body)
  const lifecycle_status = initialState(newest, body.lifecycle_status)
  const desired_state = (body.desired_state ?? {}) as JsonObject
  const observed_state = (body.observed_state ?? {}) as JsonObject
  const type = fittingType(deps.registry.types, newest, undefined, { desired_state, observed_state })
  if (!record_only) checkReadOnly(type, {}, desired_state)
  return { type, lifecycle_status, desired_state, observed_state }
}

type Facts = ReturnType<typeof checkFields>

const insertRows = (
  tx: Tx,
  type: StoredType,
  body: Wanted,
  { lifecycle_status, desired_state, observed_state }: Facts,
  parent: ResourceRow | undefined,
  cause: Cause,
): string => {
  const held = heldOf(tx)
  const rid = held.newRid()
  const { at, actor } = cause
  const drift = driftOf(type.drift_paths, desired_state, observed_state)
  const resource = {
    rid,
    resource_id: body.resource_id,
    type_id: type.id,
    type_version: type.version,
    name: body.name,
    display_name: body.display_name ?? body.name,
    owner: body.owner ?? null,
    labels: body.labels ?? {},
    annotations: body.annotations ?? {},
    parent_rid: parent?.rid ?? null,
    path: parent ? `${parent.path}.${rid}` : rid,
    desired_state,
    field_owners: { '': managerOf(cause) },
    identity_hash: identityHash(type, desired_state),
    created_at: at,
    created_by: actor,
  }
  const state = {
    version: 1,
    generation: 1,
    observed_generation: body.observed_state === undefined ? 0 : 1,
    lifecycle_status,
    observed_state,
    drift_status: drift.status,
    drift_paths: drift.paths,
    lifecycle_at: at,
    drift_at: at,
    health_at: at,
    updated_at: at,
    updated_by: actor,
  }
  held.insertResource(resource, state)
  return rid
}

const intentFor = (tx: Tx, deps: CatalogDeps, type: StoredType, row: ResourceRow, write: Write, cause: Cause) =>
  type.writes === 'operation' && write.query.mode !== 'record_only'
    ? requestIntent(tx, deps.registry.types, row, write.caller, cause, { op: 'create', desired_state_patch: {} })
    : undefined
