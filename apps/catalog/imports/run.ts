import { getImported, lockSource } from '../../../db/catalog/imports/rows.ts'
import { getResources } from '../../../db/catalog/resources/rows.ts'
import type { Tx } from '../../../db/client.ts'
import { attempt } from '../../../db/command/attempt.ts'
import { type Answer, answerOf } from '../../../db/command/run.ts'
import type { ImportItem, ImportRequest, ImportResult } from '../../shared/contracts/imports/imports.ts'
import { pluck } from '../../shared/data/pick.ts'
import { AppError } from '../../shared/errors.ts'
import { base32Id } from '../../shared/ids.ts'
import { makeEach } from '../changes/each.ts'
import { createWish, type Wish } from '../changes/hold.ts'
import type { Denied } from '../command/audit.ts'
import { refuseLate } from '../command/deadline.ts'
import { type Causing, causing, commandOf, NO_COMMAND, readAccess, type Write } from '../command/request.ts'
import { runCommand, stampOf } from '../command/run.ts'
import type { CatalogDeps } from '../deps.ts'
import { isTerminal } from '../document/lifecycle.ts'
import { refusedAs } from '../document/names.ts'
import { visibleOf } from '../read/access.ts'
import { isInto } from '../resources/create.ts'
import { composed } from '../rules/notes.ts'
import { edgesOf, readsEdges } from './edges.ts'
import { managerOf } from './fields.ts'
import { settle, type Taking } from './item.ts'
import { type CheckItem, deferred, inOrder, merged, problemFor, refusedIn, rehearsed, replyOf } from './results.ts'

/**
 * Imports what another system reports (catalog.md 13). Items are independent: each is created, updated, found
 * unchanged, in conflict or refused on its own. Edges whose target comes later are retried at the end. The whole
 * request has one key, so repeating it continues an interrupted import. Items that do not fit into its time are
 * deferred. Everything is rolled back if the caller has already received a timeout.
 */
export const importItems = async (
  deps: CatalogDeps,
  body: ImportRequest,
  write: Write,
  check: CheckItem,
): Promise<{ answer: Answer; denied: Denied[] }> => {
  const refused = refusedIn(body.items, check, write)
  const rest = { ...body, items: body.items.filter((_, index) => !refused.has(index)) }
  const replyTo = (taken: readonly Taken[]) => replyOf(inOrder(body.items.length, refused, pluck(taken, 'result')))
  if (write.query.validate_only) {
    const by = causing(write, NO_COMMAND, stampOf(deps))
    const made = new Map<string, string>()
    const taken = await attempt(deps.db, (tx) => takeAll(tx, deps, rest, write, by, made))
    const reply = rehearsed(replyTo(taken), made)
    return { answer: { ...answerOf({ status: 200, body: reply }), replayed: false }, denied: deniedIn(taken) }
  }
  const command = commandOf(deps, write)
  let taken: Taken[] = []
  const answer = await runCommand(deps, command, async (tx, stamp) => {
    taken = await takeAll(tx, deps, rest, write, causing(write, command.command_id, stamp))
    return { status: 200, body: replyTo(taken) }
  })
  return { answer, denied: deniedIn(taken) }
}

/** The refusals by policy, for the audit. */
export const deniedIn = (taken: readonly Taken[]): Denied[] => taken.flatMap(({ denied }) => denied ?? [])

/** Imports items set by set in one transaction (catalog.md 8, "Bulk"); returns results and missing targets by item. */
export const takeAll = async (
  tx: Tx,
  deps: CatalogDeps,
  request: ImportRequest,
  write: Write,
  as: Causing,
  made = new Map<string, string>(),
): Promise<Taken[]> => {
  const { source } = request
  const items = request.items.map(composed)
  await lockSource(tx, source.name)
  const { open: known, ended } = await getImported(tx, source.name, idsIn(items))
  const hidden = await hiddenOf(tx, deps, write, known)
  for (const item of items) if (!statesEnd(deps, item)) ended.delete(item.external_id)
  const by: Causing = (locked) => ({ ...as(locked), source: 'import', manager: managerOf(request) })
  // Fixed here because an item may be processed twice.
  const idOf = (external_id: string) => known.get(external_id) ?? ended.get(external_id) ?? base32Id('res')
  const ids = new Map(items.map(({ external_id }) => [external_id, idOf(external_id)]))
  const taking: Taking = { deps, request, write, by, known, hidden, ended, made, ids }
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

/** The source's names of resources that the caller may not see: as containers and targets they do not exist. */
const hiddenOf = async (tx: Tx, deps: CatalogDeps, { caller }: Write, known: ReadonlyMap<string, string>) => {
  const access = readAccess(deps, caller)
  if (access === 'all') return new Set<string>()
  const rows = await getResources(tx, [...known.values()])
  const seen = await visibleOf(tx, deps.registry.types, access, rows)
  const shown = new Set(rows.flatMap(({ rid, resource_id }) => (seen.has(rid) ? [resource_id] : [])))
  return new Set([...known].flatMap(([external_id, id]) => (shown.has(id) ? [] : [external_id])))
}

/** Whether an item says that its resource has ended. */
const statesEnd = ({ registry }: CatalogDeps, { type_key, lifecycle_status = '' }: ImportItem): boolean => {
  const type = registry.types.newest(type_key)
  return type !== undefined && isTerminal(type.lifecycle, lifecycle_status)
}

/** The share of the request's time in which items may start; the rest is for their second pass and the commit. */
const FOR_ITEMS = 0.4

/** The factor by which the next part may grow while time suffices. */
const GROWTH = 8

/** How many items come next, judged by the time of those before; 0 leaves the rest to another request. */
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

export type Taken = { result: ImportResult; missing: string[]; denied?: Denied }

/** The data that an item will need, as far as it is known before anything is locked. */
const wishOf = ({ deps, request, known, ended, ids }: Taking, item: ImportItem): Wish => {
  const named = new Map([...ids, ...known])
  const { found: edges } = edgesOf(item, named)
  const { external_id, parent_external_id, lifecycle_status } = item
  const resource_id = ids.get(external_id) ?? external_id
  if (ended.has(external_id)) return { resource_id, edges: [], lifecycle_status }
  const parent_id = parent_external_id === undefined ? item.parent_id : named.get(parent_external_id)
  const { types } = deps.registry
  const place = parent_id ?? edges.find((edge) => isInto(types, edge))?.target_id
  const { create } = createWish(types, { ...item, relationships: [], resource_id, parent_id: place })
  return {
    resource_id,
    edges,
    around: readsEdges(request),
    ...(place !== undefined && { also: [place] }),
    ...(known.has(external_id) ? { lifecycle_status } : { create }),
  }
}

/** Imports one item; its refusal does not affect the others. */
const takeOne = async (tx: Tx, taking: Taking, item: ImportItem, index: number): Promise<Taken> => {
  const { external_id } = item
  const { outcome, diff, missing, row } = await settle(tx, taking, item)
  if (row.is_open) taking.known.set(external_id, row.resource_id)
  const { resource_id, version } = row
  return { missing, result: { index, external_id, outcome, resource_id, version, diff } }
}

/** The source's names of all resources that it named: an importer may no longer see them. */
const namesIn = ({ made, known, ended }: Taking): Map<string, string> => {
  const named = [...known, ...ended].map(([external_id, resource_id]): [string, string] => [resource_id, external_id])
  return new Map([...named, ...made])
}

const CONFLICTS = new Set(['already_exists', 'type_changed', 'field_owned'])
const refusedItem = (taking: Taking, { external_id }: ImportItem, index: number, error: AppError): Taken => {
  const { made, write } = taking
  const unseen = error.category === 'not_found' || error.code === 'target_not_found'
  const refusal = refusedAs(error, unseen ? namesIn(taking) : made)
  const outcome = CONFLICTS.has(refusal.code) ? 'conflict' : 'refused'
  const resource_id = error.options.extra?.existing_resource_id as string | undefined
  const problem = problemFor(refusal, write)
  const id = taking.known.get(external_id) ?? taking.ended.get(external_id)
  const object = id === undefined ? `import:${taking.request.source.name}/${external_id}` : `resource:${id}`
  return {
    missing: [],
    result: { index, external_id, outcome, ...(resource_id && { resource_id }), diff: [], problem },
    ...(error.status === 403 && { denied: { code: error.code, object } }),
  }
}
