import { getImported, lockSource, outTargets, saveImported } from '../../../db/catalog/imports.ts'
import { findTwin, getResource, getResourcesByRid } from '../../../db/catalog/resources/rows.ts'
import type { ResourceRow } from '../../../db/catalog/rows.ts'
import type { Tx } from '../../../db/client.ts'
import { attempt } from '../../../db/command/attempt.ts'
import { type Answer, answerOf } from '../../../db/command/run.ts'
import type { ImportItem, ImportOutcome, ImportRequest, ImportResult } from '../../shared/contracts/imports/imports.ts'
import type { RelationshipChange } from '../../shared/contracts/catalog/relationships.ts'
import type { ImportItem, ImportOutcome, ImportRequest, ImportResult } from '../../shared/contracts/imports/imports.ts'
import { mergePatch } from '../../shared/data/merge-patch.ts'
import { AppError } from '../../shared/errors.ts'
import { base32Id } from '../../shared/ids.ts'
import { makeEach } from '../changes/each.ts'
import type { Wish } from '../changes/hold.ts'
import { refuseLate } from '../command/late.ts'
import {
  asObject,
  type Causing,
  causing,
  commandOf,
  mayWriteOf,
  NO_COMMAND,
  readAccess,
  type Write,
} from '../command/request.ts'
import { alreadyExists, runCommand, stampOf } from '../command/run.ts'
import type { CatalogDeps } from '../deps.ts'
import { refusedAs } from '../document/names.ts'
import type { JsonObject } from '../document/pointers.ts'
import type { StoredRelationshipType, Types } from '../packs/registry.ts'
import { outOfScope, scopeOfRow, visibleOf } from '../read/access.ts'
import { documentOf } from '../read/documents.ts'
import { insertNew } from '../resources/create.ts'
import { lockResource } from '../resources/lock.ts'
import type { Change } from '../resources/versions.ts'
import { applyChange } from '../resources/write.ts'
import { identityHash } from '../rules/change.ts'
import { checkNotes, type Notes } from '../rules/notes.ts'
import { deferred, differences, merged, problemFor, rehearsed, replyOf } from './results.ts'

/** Set by importers on what their source no longer names; an item that comes again takes it off. */
const MISSING_LABEL = 'signalbox/import-missing'

/**
 * Takes what another system says that exists (catalog.md 13). Items are independent: each is created, updated, found
 * unchanged, in conflict or refused by itself; edges whose target comes later are tried again at the end. The request as
 * a whole has one key, so an interrupted import goes on by repeating it. Items that its time does not suffice for are
 * deferred; all of it is rolled back when the caller has been told that it took too long.
 */
export const importItems = async (deps: CatalogDeps, body: ImportRequest, write: Write): Promise<Answer> => {
  if (write.query.validate_only) {
    const by = causing(write, NO_COMMAND, stampOf(deps))
    const made = new Map<string, string>()
    const taken = await attempt(deps.db, (tx) => takeAll(tx, deps, body, write, by, made))
    const reply = rehearsed(replyOf(taken.map(({ result }) => result)), made)
    return { ...answerOf({ status: 200, body: reply }), replayed: false }
  }
  const command = commandOf(deps, write)
  return runCommand(deps, command, async (tx, stamp) => {
    const taken = await takeAll(tx, deps, body, write, causing(write, command.command_id, stamp))
    return { status: 200, body: replyOf(taken.map(({ result }) => result)) }
  })
}

type Taking = {
  deps: CatalogDeps
  request: ImportRequest
  write: Write
  by: Causing
  /** Ids of this source that are known by now. */
  known: Map<string, string>
  /** The ids of what it names: those that are known, and those that new ones will have. */
  ids: Map<string, string>
  /** What this request made, by our ids: a refusal calls it as the source does. */
  made: Map<string, string>
}

/** Takes items in one transaction, set by set (catalog.md 8, "Bulk"); gives the result of each, and what it lacks. */
export const takeAll = async (
  tx: Tx,
  deps: CatalogDeps,
  request: ImportRequest,
  write: Write,
  as: Causing,
  made = new Map<string, string>(),
): Promise<Taken[]> => {
  const { source, items } = request
  await lockSource(tx, source.name)
  const known = await getImported(tx, source.name, idsIn(items))
  const by: Causing = (locked) => ({ ...as(locked), source: 'import' })
  // Fixed here: an item may be looked at twice.
  const ids = new Map(items.map(({ external_id }) => [external_id, known.get(external_id) ?? base32Id('res')]))
  const taking: Taking = { deps, request, write, by, known, made, ids }
  const look = async (indices: readonly number[]): Promise<Taken[]> => {
    const changes = indices.map((index) => {
      const item = items[index] as ImportItem
      return { wish: wishOf(taking, item), run: (inner: Tx) => takeOne(inner, taking, item, index) }
    })
    const check = () => refuseLate(write.ends_at)
    const before = new Map(known)
    const again = () => {
      known.clear()
      for (const [external_id, resource_id] of before) known.set(external_id, resource_id)
    }
    const outcomes = await makeEach(tx, deps.registry.types, changes, { check, again })
    return outcomes.map((outcome, at) => {
      const index = indices[at] as number
      return outcome instanceof AppError ? refusedItem(taking, items[index] as ImportItem, index, outcome) : outcome
    })
  }
  const taken: Taken[] = []
  const pace = paceOf(write)
  for (let size = 1; size > 0 && taken.length < items.length; size = pace(taken.length, size)) {
    refuseLate(write.ends_at)
    const first = taken.length
    const count = Math.min(size, items.length - first)
    taken.push(...(await look(Array.from({ length: count }, (_, at) => first + at))))
  }
  const again = taken.flatMap(({ missing }, index) => (missing.length > 0 ? [index] : []))
  for (const [at, second] of (again.length > 0 ? await look(again) : []).entries()) {
    const index = again[at] as number
    const first = taken[index] as Taken
    taken[index] = { ...second, result: merged(first.result, second.result, second.missing, write) }
  }
  refuseLate(write.ends_at)
  const late = items.slice(taken.length).map((item, at) => ({ result: deferred(item, taken.length + at), missing: [] }))
  return [...taken, ...late]
}

/** Of the time of a request, what its items are begun in; the rest is for their second look and the commit. */
const FOR_ITEMS = 0.4

/** How much larger the next part is, as long as the time suffices. */
const GROWTH = 8

/** How many items come next, by the time that those before them took; 0: the rest is left for another request. */
const paceOf = ({ ends_at }: Write) => {
  const began = performance.now()
  const until = began + (ends_at - began) * FOR_ITEMS
  return (done: number, size: number): number => {
    const now = performance.now()
    return Math.max(0, Math.min(size * GROWTH, Math.floor(((until - now) * done) / (now - began))))
  }
}

const idsIn = (items: readonly ImportItem[]): string[] => [
  ...new Set(
    items.flatMap(({ external_id, parent_external_id, relationships = [] }) => [
      external_id,
      ...(parent_external_id === undefined ? [] : [parent_external_id]),
      ...relationships.flatMap(({ target_external_id }) => target_external_id ?? []),
    ]),
  ),
]

export type Taken = { result: ImportResult; missing: string[]; writes?: never }

/** What an item will ask for, as far as it can be told before anything is locked. */
const wishOf = ({ deps, request, known, ids }: Taking, item: ImportItem): Wish => {
  const type = deps.registry.types.newest(item.type_key)
  const named = new Map([...ids, ...known])
  const { found: edges } = edgesOf(item, named)
  const { external_id, name, parent_external_id, desired_state, lifecycle_status } = item
  const resource_id = ids.get(external_id) ?? external_id
  const parent_id = parent_external_id === undefined ? item.parent_id : named.get(parent_external_id)
  const about = {
    resource_id,
    edges,
    around: (request.options?.complete_relationship_types ?? []).length > 0,
    ...(parent_id !== undefined && { also: [parent_id] }),
  }
  if (known.has(external_id)) return { ...about, ...(lifecycle_status !== undefined && { lifecycle_status }) }
  const identity_hash = type ? identityHash(type, asObject(desired_state)) : null
  return { ...about, create: { type_id: type?.id ?? -1, name, parent_id, identity_hash } }
}

/** One item, refused by itself: what it is refused for leaves the others alone. */
const takeOne = async (tx: Tx, taking: Taking, item: ImportItem, index: number): Promise<Taken> => {
  const { external_id } = item
  const { outcome, diff, missing, row } = await settle(tx, taking, item)
  taking.known.set(external_id, row.resource_id)
  const { resource_id, version } = row
  return { missing, result: { index, external_id, outcome, resource_id, version, diff } }
}

const refusedItem = ({ made, write }: Taking, { external_id }: ImportItem, index: number, error: AppError): Taken => {
  const refusal = refusedAs(error, made)
  const outcome = refusal.code === 'already_exists' || refusal.code === 'type_changed' ? 'conflict' : 'refused'
  const resource_id = error.options.extra?.existing_resource_id as string | undefined
  const problem = problemFor(refusal, write)
  return {
    missing: [],
    result: { index, external_id, outcome, ...(resource_id && { resource_id }), diff: [], problem },
  }
}

type Settled = { outcome: ImportOutcome; row: ResourceRow; diff: ImportResult['diff']; missing: string[] }

const settle = async (tx: Tx, taking: Taking, item: ImportItem): Promise<Settled> => {
  const { request, known, by } = taking
  const parent_id = parentOf(item, known)
  const edges = edgesOf(item, known)
  const found = known.get(item.external_id) ?? (await twinOf(tx, taking, item, parent_id))
  const done = found
    ? await change(tx, taking, item, found, parent_id, edges.found)
    : await create(tx, taking, item, parent_id, edges.found)
  await saveImported(tx, request.source.name, item.external_id, done.row.resource_id, by().at)
  return { ...done, missing: edges.missing }
}

const parentOf = (
  { parent_id, parent_external_id }: ImportItem,
  known: ReadonlyMap<string, string>,
): string | undefined => {
  if (parent_external_id === undefined) return parent_id
  const found = known.get(parent_external_id)
  if (found !== undefined) return found
  throw new AppError('validation_error', 'target_not_found', `${parent_external_id} has not been imported.`, {
    status: 422,
    violations: [
      { pointer: '/parent_external_id', code: 'target_not_found', message: 'names nothing that was imported' },
    ],
    hint: 'Put containers before what they contain.',
  })
}

const edgesOf = ({ relationships = [] }: ImportItem, known: ReadonlyMap<string, string>) => {
  const found: RelationshipChange[] = []
  const missing: string[] = []
  for (const [index, edge] of relationships.entries()) {
    const { target_external_id, target_id, type_key, direction, properties } = edge
    const target = target_external_id === undefined ? target_id : known.get(target_external_id)
    if (target === undefined) missing.push(`/relationships/${index}`)
    else
      found.push({
        op: 'add',
        type_key,
        target_id: target,
        ...(direction && { direction }),
        ...(properties && { properties }),
      })
  }
  return { found, missing }
}

/** What stands where the item wants to stand: taken over with `adopt`, else a conflict that a person decides. */
const twinOf = async (
  tx: Tx,
  { deps, request, write }: Taking,
  item: ImportItem,
  parent_id: string | undefined,
): Promise<string | undefined> => {
  const type = deps.registry.types.newest(item.type_key)
  const parent = parent_id === undefined ? undefined : await getResource(tx, parent_id)
  const twin = await findTwin(tx, {
    resource_id: '',
    type_id: type?.id ?? null,
    parent_rid: parent?.rid ?? null,
    name: item.name,
    identity_hash: type ? identityHash(type, asObject(item.desired_state)) : null,
  })
  if (!twin) return undefined
  if (request.options?.adopt) return twin.resource_id
  const rows = await getResourcesByRid(tx, [twin.rid])
  const seen = await visibleOf(tx, deps.registry.types, readAccess(deps, write.caller), rows)
  throw alreadyExists(twin.what, seen.has(twin.rid) ? twin.resource_id : undefined)
}

const create = async (
  tx: Tx,
  { deps, write, by, made: called, ids }: Taking,
  item: ImportItem,
  parent_id: string | undefined,
  relationships: RelationshipChange[],
): Promise<Omit<Settled, 'missing'>> => {
  const { name, type_key, display_name, labels, annotations, owner, lifecycle_status, observed_state } = item
  const body = {
    resource_id: ids.get(item.external_id) ?? base32Id('res'),
    type_key,
    name,
    desired_state: withoutNull(item.desired_state),
    ...(display_name !== undefined && { display_name }),
    ...(labels && { labels }),
    ...(annotations && { annotations }),
    ...(owner !== undefined && { owner }),
    ...(parent_id !== undefined && { parent_id }),
    ...(lifecycle_status !== undefined && { lifecycle_status }),
    ...(observed_state && { observed_state: withoutNull(observed_state) }),
    ...(relationships.length > 0 && { relationships: relationships.map(({ op: _, ...edge }) => edge) }),
  }
  called.set(body.resource_id, item.external_id)
  const made = await insertNew(tx, deps, body, factsOf(write), by)
  let { row } = made.row
  if (item.provided_capabilities) {
    const locked = await lockResource(tx, deps.registry.types, row.resource_id, { read: 'all' })
    row = (await applyChange(tx, deps, locked, { capability_changes: item.provided_capabilities }, by(row))).row
  }
  const document = documentOf(row, deps.registry.types)
  const diff = SHOWN.flatMap((name) => differences({}, asObject({ [name]: document[name] }))).concat(
    relationships.map(({ type_key: type, target_id }) => ({
      path: `/relationships/${type}/${target_id}`,
      after: 'added',
    })),
  )
  return { outcome: 'created', row, diff }
}

/** An import states facts. */
const factsOf = (write: Write): Write => ({ ...write, query: { ...write.query, mode: 'record_only' } })

const SHOWN = [
  'type_key',
  'name',
  'parent_id',
  'lifecycle_status',
  'labels',
  'desired_state',
  'observed_state',
] as const

const withoutNull = (state: Record<string, unknown> | undefined): JsonObject => asObject(mergePatch({}, state ?? {}))

const change = async (
  tx: Tx,
  { deps, request, write, by, known }: Taking,
  item: ImportItem,
  resource_id: string,
  parent_id: string | undefined,
  edges: RelationshipChange[],
): Promise<Omit<Settled, 'missing'>> => {
  const { types } = deps.registry
  const complete = request.options?.complete_relationship_types ?? []
  const relationship_changes = [
    ...(await moved(tx, resource_id, parent_id)),
    ...edges,
    ...(await superfluous(tx, resource_id, relationsOf(types, complete), item, known)),
  ]
  const mayWrite = mayWriteOf(deps, factsOf(write))
  const lock = { relationship_changes, pointer: '/relationships', read: readAccess(deps, write.caller), mayWrite }
  const locked = await lockResource(tx, types, resource_id, { ...lock, lifecycle_status: item.lifecycle_status })
  const { row } = locked
  const lacking = mayWrite(row.type_id, await scopeOfRow(tx, types, row))
  if (lacking !== undefined) throw outOfScope(row.resource_id, lacking)
  if (types.keyOf(row.type_id) !== item.type_key) throw typeChanged(row, types.keyOf(row.type_id), item.type_key)
  const written = await applyChange(tx, deps, locked, changeOf(row, item), by(row))
  const [before, after] = [row, written.row].map((one) => asObject(shownOf(documentOf(one, types))))
  const ignored = new Set(written.ignored.map(({ pointer }) => pointer))
  const diff = differences(before ?? {}, after ?? {}).concat(
    relationship_changes.flatMap(({ op, type_key, target_id }, index) => {
      const path = `/relationships/${type_key}/${target_id}`
      if (ignored.has(`/relationships/${index}`)) return []
      return [op === 'remove' ? { path, before: 'there' } : { path, after: 'added' }]
    }),
  )
  return { outcome: written.applied ? 'updated' : 'unchanged', row: written.row, diff }
}

const shownOf = (document: ReturnType<typeof documentOf>) =>
  Object.fromEntries(
    [...SHOWN, 'display_name' as const, 'owner' as const, 'annotations' as const].map((name) => [name, document[name]]),
  )

const typeChanged = (row: ResourceRow, is: string, wanted: string) =>
  new AppError('version_conflict', 'type_changed', `${row.resource_id} is a ${is}, the source calls it a ${wanted}.`, {
    extra: { existing_resource_id: row.resource_id },
    hint: 'A resource keeps its type: retire it, or map the kind to the type it has.',
  })

/** The change of containment when the source says another container. */
const moved = async (tx: Tx, resource_id: string, parent_id: string | undefined): Promise<RelationshipChange[]> => {
  const row = await getResource(tx, resource_id)
  if (!row || parent_id === undefined || row.parent_id === parent_id) return []
  const into = { op: 'add' as const, type_key: 'contained_in', target_id: parent_id }
  return row.parent_id === null ? [into] : [{ op: 'remove', type_key: 'contained_in', target_id: row.parent_id }, into]
}

/** Edges of complete types that the source no longer lists. */
const superfluous = async (
  tx: Tx,
  resource_id: string,
  complete: readonly StoredRelationshipType[],
  { relationships = [] }: ImportItem,
  known: ReadonlyMap<string, string>,
): Promise<RelationshipChange[]> => {
  if (complete.length === 0) return []
  const listed = new Set(
    relationships.map((edge) => `${edge.type_key} ${edge.target_id ?? known.get(edge.target_external_id ?? '')}`),
  )
  const open = await outTargets(tx, resource_id, complete)
  return open
    .filter(({ type_key, target_id }) => type_key !== 'contained_in' && !listed.has(`${type_key} ${target_id}`))
    .map(({ type_key, target_id }) => ({ op: 'remove', type_key, target_id }))
}

const relationsOf = (types: Types, keys: readonly string[]): StoredRelationshipType[] =>
  keys.flatMap((key) => types.relationship(key) ?? [])

const changeOf = (row: ResourceRow, item: ImportItem): Change => {
  const { [MISSING_LABEL]: _, ...labels } = { ...row.labels, ...item.labels }
  const notes: Partial<Notes> = {
    labels,
    annotations: { ...row.annotations, ...item.annotations },
    ...(item.owner !== undefined && { owner: item.owner }),
    // A name is for ever (catalog.md 1): a new one in the source shows as the display name.
    ...(item.display_name !== undefined
      ? { display_name: item.display_name }
      : item.name !== row.name && { display_name: item.name }),
  }
  checkNotes(notes)
  return {
    ...notes,
    ...(item.desired_state && { desired_state: asObject(mergePatch(row.desired_state, item.desired_state)) }),
    ...(item.observed_state && { observed_state: asObject(mergePatch(row.observed_state, item.observed_state)) }),
    ...(item.lifecycle_status !== undefined && { lifecycle_status: item.lifecycle_status }),
    ...(item.provided_capabilities && { capability_changes: item.provided_capabilities }),
  }
}
