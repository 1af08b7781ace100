import { heldOf } from '../../../db/catalog/held/rows.ts'
import { getResource } from '../../../db/catalog/resources/rows.ts'
import type { ResourceRow } from '../../../db/catalog/rows.ts'
import type { Tx } from '../../../db/client.ts'
import type { RelationshipChange } from '../../shared/contracts/catalog/relationships.ts'
import type { ImportItem, ImportOutcome, ImportRequest, ImportResult } from '../../shared/contracts/imports/imports.ts'
import { mergePatch } from '../../shared/data/merge-patch.ts'
import { AppError } from '../../shared/errors.ts'
import { base32Id } from '../../shared/ids.ts'
import { asObject, type Causing, type Write } from '../command/request.ts'
import type { CatalogDeps } from '../deps.ts'
import type { JsonObject } from '../document/pointers.ts'
import { documentOf } from '../read/documents.ts'
import { insertNew, isInto, refuseForeignPlace, twinExists, twinOf } from '../resources/create.ts'
import { lockResource, lockToWrite } from '../resources/lock.ts'
import { applyChange } from '../resources/write.ts'
import { refuseOwned } from '../rules/field-owners.ts'
import { edgesOf, moved, parentOf, superfluous } from './edges.ts'
import { changeOf, managerOf } from './fields.ts'
import { differences } from './results.ts'

/** Imports one item: created, changed, unchanged or refused. */

export type Taking = {
  deps: CatalogDeps
  request: ImportRequest
  write: Write
  by: Causing
  /** Already known ids of this source. */
  known: Map<string, string>
  /** Those of them that the caller may not see. */
  hidden: ReadonlySet<string>
  /** Resources whose lifecycle has ended, of items that say so. */
  ended: ReadonlyMap<string, string>
  /** The ids of the resources that it names: known ones, and those assigned to new ones. */
  ids: Map<string, string>
  /** Resources that this request created, by our ids: a refusal uses the source's names. */
  made: Map<string, string>
}

type Settled = { outcome: ImportOutcome; row: ResourceRow; diff: ImportResult['diff']; missing: string[] }

/** Brings the catalog in line with one item. */
export const settle = async (tx: Tx, taking: Taking, item: ImportItem): Promise<Settled> => {
  const over = taking.ended.get(item.external_id)
  const done = await (over === undefined ? settleOpen(tx, taking, item) : settleEnded(tx, taking, item, over))
  const { source } = taking.request
  const seen = { source_name: source.name, external_id: item.external_id, last_seen_at: taking.by().at }
  heldOf(tx).saveImported({ ...seen, resource_id: done.row.resource_id })
  return done
}

const settleOpen = async (tx: Tx, taking: Taking, item: ImportItem): Promise<Settled> => {
  const { known, hidden } = taking
  const seen = { get: (external_id: string) => (hidden.has(external_id) ? undefined : known.get(external_id)) }
  const { found, missing } = edgesOf(item, seen)
  const parent_id = parentOf(item, seen)
  const place = parent_id ?? found.find((edge) => isInto(taking.deps.registry.types, edge))?.target_id
  const mine = known.get(item.external_id)
  const resource_id = mine ?? (await adoptable(tx, taking, item, place))
  if (resource_id === undefined) return { ...(await create(tx, taking, item, parent_id, found)), missing }
  const move = await moved(tx, resource_id, place)
  const edges = [
    // A place that the item states as an edge is already among its edges.
    ...(parent_id === undefined ? move.filter(({ op }) => op === 'remove') : move),
    ...found,
    ...(await superfluous(tx, taking, resource_id, item)),
  ]
  return { ...(await change(tx, taking, item, { resource_id, adopted: mine === undefined, edges })), missing }
}

/** Its end closed its edges and withdrew its capabilities, so only notes and states can differ. */
const settleEnded = async (tx: Tx, taking: Taking, item: ImportItem, resource_id: string): Promise<Settled> => {
  const { provided_capabilities: _, ...rest } = item
  return { ...(await change(tx, taking, rest, { resource_id, adopted: false, edges: [] })), missing: [] }
}

/**
 * The existing resource where the item belongs: adopted with `adopt`, else a conflict for a person to resolve. Only those
 * who may write there learn of it, and only those who may see it adopt it.
 */
const adoptable = async (tx: Tx, { deps, request, write }: Taking, item: ImportItem, parent_id: string | undefined) => {
  const parent = parent_id === undefined ? undefined : await getResource(tx, parent_id)
  const type = deps.registry.types.newest(item.type_key)
  await refuseForeignPlace(tx, deps, { name: item.external_id, type, parent }, factsOf(write))
  const twin = twinOf(tx, { ...item, resource_id: '' }, type, parent)
  if (!twin) return undefined
  const refusal = await twinExists(tx, deps, twin, write)
  if (request.options?.adopt && refusal.options.extra?.existing_resource_id !== undefined) return twin.resource_id
  throw refusal
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

type Found = { resource_id: string; adopted: boolean; edges: RelationshipChange[] }

const change = async (
  tx: Tx,
  { deps, request, write, by }: Taking,
  item: ImportItem,
  { resource_id, adopted, edges: relationship_changes }: Found,
): Promise<Omit<Settled, 'missing'>> => {
  const { types } = deps.registry
  const { lifecycle_status } = item
  const wish = { relationship_changes, pointer: '/relationships', lifecycle_status }
  const locked = await lockToWrite(tx, deps, factsOf(write), resource_id, wish)
  const { row } = locked
  if (types.keyOf(row.type_id) !== item.type_key) throw typeChanged(row, types.keyOf(row.type_id), item.type_key)
  const wanted = changeOf(row, item, request)
  const force = adopted || request.options?.force
  if (!force) refuseOwned(row, wanted, managerOf(request))
  const written = await applyChange(tx, deps, locked, wanted, { ...by(row), force })
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
  new AppError(
    'version_conflict',
    'type_changed',
    `${row.resource_id} is a ${is}, but the source gives it the type ${wanted}.`,
    {
      extra: { existing_resource_id: row.resource_id },
      hint: 'A resource keeps its type: retire it, or map the kind to its current type.',
    },
  )
