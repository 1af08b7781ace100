import { getResources } from '../../../db/catalog/resources/rows.ts'
import type { ResourceRow } from '../../../db/catalog/rows.ts'
import type { Tx } from '../../../db/client.ts'
import type { Answer, Given } from '../../../db/command/run.ts'
import type { OperationRef, ResourceView } from '../../shared/contracts/catalog/resources.ts'
import { mergeDiff, mergePatch } from '../../shared/data/merge-patch.ts'
import { pick, pluck } from '../../shared/data/pick.ts'
import { equalJson } from '../../shared/data/pointer.ts'
import { AppError, type Violation } from '../../shared/errors.ts'
import { runChange } from '../changes/run.ts'
import { type Cause, managerOf, recordAudit } from '../command/outbox.ts'
import {
  asObject,
  type Causing,
  causing,
  commandOf,
  NO_COMMAND,
  preconditionOf,
  splitPatch,
  type Write,
} from '../command/request.ts'
import { type Stamp, stampOf } from '../command/run.ts'
import type { CatalogDeps } from '../deps.ts'
import { jsonPatch, type PatchOperation } from '../document/json-patch.ts'
import { changedPaths, escapeToken, isObject, type JsonObject, parsePointer } from '../document/pointers.ts'
import { documentOf, viewOf } from '../read/documents.ts'
import { currentView } from '../read/health.ts'
import { checkReadOnly, fittingChange, refuseTerminal, violated } from '../rules/change.ts'
import { refuseOwned } from '../rules/field-owners.ts'
import { checkNotes, composed, NOTES, type Notes } from '../rules/notes.ts'
import { tried, written } from './create.ts'
import { requestIntent } from './intents.ts'
import { lockToWrite, refuseVersion } from './lock.ts'
import type { Change } from './versions.ts'
import { applyChange, type Locked } from './write.ts'

export type PatchBody = Record<string, unknown> | PatchOperation[]
type Precondition = { versions: readonly number[]; status: 409 | 412 }

/**
 * Changes a resource by merge patch or JSON patch (catalog.md 7.4). Notes are written at once. desired_state of an
 * operation type becomes an intent, unless the caller states facts (record_only) or the type's writes apply at once.
 */
export const patchResource = async (
  deps: CatalogDeps,
  resource_id: string,
  body: PatchBody,
  if_match: string | undefined,
  write: Write,
): Promise<Answer> => {
  const given = Array.isArray(body) ? undefined : splitPatch(body as JsonObject)
  const patch = given ? given.patch : (body as PatchOperation[])
  refuseUnknown(patch)
  const command = write.query.validate_only ? undefined : commandOf(deps, write)
  const precondition = preconditionOf(if_match, write.query.expected_version, given?.expected_version)
  const change = async (tx: Tx, command_id: string, stamp: Stamp) =>
    changeResource(tx, deps, { resource_id, patch, precondition, write }, causing(write, command_id, stamp))

  const wish = { resource_id, edges: [], lifecycle_status: lifecycleIn(patch) }
  if (!command) {
    const run = async (tx: Tx) => {
      const { row, scope, asked, ...changed } = await change(tx, NO_COMMAND, stampOf(deps))
      const { view } = await currentView(tx, deps, row, scope)
      return { ...changed, resource: asked ? { ...view, desired_state: asked } : view }
    }
    return tried(deps, { wish, run })
  }
  const work = async (tx: Tx, stamp: Stamp): Promise<Given> => {
    const { row, scope, intent } = await change(tx, command.command_id, stamp)
    const { view, etag } = await currentView(tx, deps, row, scope)
    const answer = written(200, row, view, intent)
    return { ...answer, headers: { ...answer.headers, etag } }
  }
  return runChange(deps, { command, wish, work })
}

const WRITABLE: readonly string[] = [...NOTES, 'desired_state']
const FACTS: readonly string[] = ['lifecycle_status', 'observed_state']
const FIXED = new Set([
  'resource_id',
  'type_key',
  'type_version',
  'name',
  'parent_id',
  'scope',
  'lifecycle_status',
  'health_status',
  'observed_state',
  'version',
  'health_revision',
  'generation',
  'observed_generation',
  'drift',
  'conditions',
  'last_operation',
  'created_at',
  'created_by',
  'updated_at',
  'updated_by',
  'change_token',
])

/** The pointers that a patch writes. */
const touchedBy = (patch: JsonObject | PatchOperation[]): string[] =>
  Array.isArray(patch)
    ? patch.flatMap(({ op, path, from }) => [
        ...(op === 'test' ? [] : [path]),
        ...(op === 'move' && typeof from === 'string' ? [from] : []),
      ])
    : Object.keys(patch).map((key) => `/${escapeToken(key)}`)

/** 400 for members that no resource has: part of the shape, so it comes before the key. */
export const refuseUnknown = (patch: JsonObject | PatchOperation[]): void => {
  const violations = touchedBy(patch).flatMap((pointer): Violation[] => {
    const path = parsePointer(pointer)
    if (!path) return [{ pointer, code: 'unknown_field', message: 'is not a JSON pointer' }]
    const [member] = path
    if (member === undefined || WRITABLE.includes(member) || FIXED.has(member)) return []
    return [{ pointer, code: 'unknown_field', message: 'is not a field of a resource' }]
  })
  const [first] = violations
  if (first)
    throw new AppError('validation_error', 'unknown_field', `${first.pointer} ${first.message}.`, { violations })
}

/** 422 for members that this patch may not write: after policy and version, like every rule about content. */
const refuseReadOnly = (patch: JsonObject | PatchOperation[], record_only: boolean): void => {
  const allowed = record_only ? [...WRITABLE, ...FACTS] : WRITABLE
  const violations = touchedBy(patch).flatMap((pointer): Violation[] => {
    const member = parsePointer(pointer)?.[0]
    if (member !== undefined && allowed.includes(member)) return []
    const message =
      member === undefined ? 'the whole document cannot be replaced: name a field' : 'cannot be written here'
    return [{ pointer, code: 'read_only_field', message }]
  })
  if (violations.length > 0) throw violated(violations)
}

type Wanted = { resource_id: string; patch: JsonObject | PatchOperation[]; precondition: Precondition; write: Write }

/** Applies one patch of a resource inside a transaction. */
export const changeResource = async (
  tx: Tx,
  deps: CatalogDeps,
  { resource_id, patch, precondition, write }: Wanted,
  by: Causing,
) => {
  const { types } = deps.registry
  const lock = (lifecycle_status?: string) => lockToWrite(tx, deps, write, resource_id, { lifecycle_status })
  const named = lifecycleIn(patch)
  let locked = await lock(named)
  const { row, scope } = locked
  const cause = by(row)
  const type = types.byId(row.type_id)
  const conflict = refuseVersion(row, precondition.versions, precondition.status)
  if (conflict) throw conflict
  refuseReadOnly(patch, write.query.mode === 'record_only')
  if (!type) throw new AppError('unsupported_resource_type', 'unknown', 'The type of this resource is unknown here.')

  const next = changeOf(row, applyPatch(viewOf(row, scope, types), patch))
  // An operation of the patch may have copied the state from another member.
  if (next.lifecycle_status !== (named ?? row.lifecycle_status)) locked = await lock(next.lifecycle_status)
  const desired = next.desired_state
  const by_intent = write.query.mode !== 'record_only' && type.writes === 'operation'
  if (desired && write.query.mode !== 'record_only') checkReadOnly(type, row.desired_state as JsonObject, desired)
  const { manager, force = manager === undefined } = write.query
  if (!force) refuseOwned(row, next, managerOf(cause))
  const asked = by_intent && desired && !equalJson(desired, row.desired_state) ? desired : undefined
  if (asked) {
    checkAsked(deps, locked, asked)
    delete next.desired_state
  }
  const together = pluck(await getResources(tx, write.together ?? []), 'rid')
  const changed = await applyChange(tx, deps, { ...locked, together }, next, cause)
  const intent = asked && (await askForIntent(tx, deps, changed.row, asked, write, cause))
  const asked_paths = asked ? changedPaths(row.desired_state, asked, '/desired_state') : []
  const changed_paths = [...changed.changed_paths, ...asked_paths]
  return { ...pick(changed, 'row', 'applied'), scope, intent, asked, changed_paths }
}

/** The lifecycle state that a patch may set, for the locks; the actual result is checked afterwards. */
const lifecycleIn = (patch: JsonObject | PatchOperation[]): string | undefined => {
  const value = Array.isArray(patch)
    ? patch.findLast(({ path, op }) => path === '/lifecycle_status' && op !== 'test')?.value
    : patch.lifecycle_status
  return typeof value === 'string' ? value : undefined
}

/** The document after the patch; only writable members count, which `refuseReadOnly` has ensured. */
const applyPatch = (document: ResourceView, patch: JsonObject | PatchOperation[]): JsonObject => {
  if (Array.isArray(patch)) return asObject(jsonPatch(document as unknown as JsonObject, patch))
  return asObject(mergePatch(document, patch))
}

const changeOf = (row: ResourceRow, result: JsonObject): Change => {
  const wrong: Violation[] = []
  const object = (name: 'desired_state' | 'observed_state'): JsonObject => {
    const value = result[name] ?? {}
    if (!isObject(value)) wrong.push({ pointer: `/${name}`, code: 'schema_violation', message: 'must be an object' })
    return asObject(value)
  }
  const notes: Notes = {
    display_name: (result.display_name ?? row.name) as string,
    owner: (result.owner ?? null) as string | null,
    labels: (result.labels ?? {}) as Record<string, string>,
    annotations: (result.annotations ?? {}) as Record<string, string>,
  }
  const { lifecycle_status } = result
  if (typeof lifecycle_status !== 'string')
    wrong.push({ pointer: '/lifecycle_status', code: 'schema_violation', message: 'must be a string' })
  const desired_state = object('desired_state')
  const observed_state = object('observed_state')
  if (wrong.length > 0) throw violated(wrong)
  // Unchanged notes are not checked again: they passed the rules in force when they were written.
  const moved = NOTES.filter((name) => !equalJson(notes[name], row[name])).map((name) => [name, notes[name]])
  const fresh: Partial<Notes> = composed(Object.fromEntries(moved))
  checkNotes(fresh)
  return {
    ...notes,
    ...fresh,
    desired_state,
    lifecycle_status: lifecycle_status as string,
    ...(!equalJson(observed_state, row.observed_state) && { observed_state }),
  }
}

/** Checks the desired state of an intent as if it were written now. */
const checkAsked = (deps: CatalogDeps, { row }: Locked, desired_state: JsonObject): void => {
  const { types } = deps.registry
  const newest = types.byId(row.type_id)
  if (!newest) return
  const refusal = refuseTerminal(newest, row.lifecycle_status, true)
  if (refusal) throw refusal
  fittingChange(types, newest, row, { desired_state, observed_state: row.observed_state as JsonObject })
}

const askForIntent = async (
  tx: Tx,
  deps: CatalogDeps,
  row: ResourceRow,
  asked: JsonObject,
  write: Write,
  cause: Cause,
): Promise<OperationRef> => {
  const { types } = deps.registry
  const desired_state_patch = mergeDiff(row.desired_state as JsonObject, asked)
  await recordAudit(tx, deps, cause, {
    object: `resource:${row.resource_id}`,
    outcome: 'intent_requested',
    details: {
      base_version: row.version,
      type_key: documentOf(row, types).type_key,
      paths: changedPaths(row.desired_state, asked, '/desired_state'),
    },
  })
  return requestIntent(tx, types, row, write.caller, cause, { op: 'update', desired_state_patch })
}
