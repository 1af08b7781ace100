import {
  changersOf,
  countMembers,
  type DifferingRow,
  edgesTurned,
  listDiffering,
  type TurnedEdge,
} from '../../../db/catalog/resources/difference.ts'
import { type RevisionRow, revisionsAt } from '../../../db/catalog/resources/history.ts'
import { accessSql, visibleRids } from '../../../db/catalog/resources/lists.ts'
import { type Queryable, SNAPSHOT } from '../../../db/client.ts'
import type { ResourceDocument } from '../../shared/contracts/catalog/resources.ts'
import type { Difference, DifferenceItem, DifferenceQuery } from '../../shared/contracts/topology/difference.ts'
import { pick, pluck } from '../../shared/data/pick.ts'
import type { CatalogDeps, Uses } from '../deps.ts'
import { valueAt } from '../document/pointers.ts'
import type { Types } from '../packs/registry.ts'
import { factsChanged, timeText } from '../read/documents.ts'
import { tooExpensive } from '../read/expensive.ts'
import { affordable, asOf, invalid, openPage, type Reader } from '../read/lists.ts'
import { documentThen, hasEnded, pastTime } from '../read/past.ts'
import { findVisible } from '../read/visible.ts'

/** How many resources may be below the requested one. */
const MAX_MEMBERS = 20_000
const MAX_CHANGES = 100
const MAX_OPERATIONS = 20

/**
 * What differs between two times in a resource and everything below it (catalog.md 7.2): resources that were added,
 * removed, changed or moved, and by whom. Both times are settled, so the answer never changes. A resource's current
 * place decides who may see it, as in all lists of the past. 422 `query_too_expensive` for a subtree of more than
 * 20,000 resources.
 */
export const readDifference = async (
  deps: CatalogDeps,
  resource_id: string,
  query: DifferenceQuery,
  reader: Reader,
): Promise<Difference> => {
  const { types } = deps.registry
  const list = { route: 'difference', resource_id, from: query.from, to: query.to ?? null }
  const { place, size, turn } = openPage(deps, query, list, reader)
  const [after, held] = (place.key ?? []) as string[]
  const to = held ?? query.to ?? deps.clock.now().toISOString()
  const { row } = await findVisible(deps, resource_id, reader)
  const between = {
    rid: row.rid,
    containment_id: types.relationships.find(({ containment }) => containment)?.id ?? -1,
    from: (await pastTime(deps, query.from, deps.config.history_d, 'from')) as string,
    to: (await pastTime(deps, to, undefined, 'to')) as string,
    most: MAX_MEMBERS + 1,
  }
  if (new Date(between.from) >= new Date(between.to)) throw invalid('from', 'must be earlier than to')
  const { rows, items } = await affordable(
    deps.db.transaction(async (tx) => {
      if ((await countMembers(tx, between)) > MAX_MEMBERS)
        throw tooExpensive(`More than ${MAX_MEMBERS} resources are below ${resource_id}.`, 'Compare a smaller subtree.')
      const where = accessSql(reader.access, types.topologyIds)
      const rows = await listDiffering(tx, { ...between, where, after, back: place.back, limit: size + 1 })
      return { rows, items: await itemsOf(tx, deps, rows.slice(0, size), between, reader) }
    }, SNAPSHOT),
  )
  const { items: _, ...tokens } = turn(rows, ({ resource_id }) => [resource_id, to])
  if (place.back) items.reverse()
  return { from: timeText(between.from), to: timeText(between.to), items, ...tokens, as_of: await asOf(deps.db, deps) }
}

type Between = { containment_id: number; from: string; to: string }

const itemsOf = async (
  db: Queryable,
  { registry }: Uses<'registry'>,
  rows: readonly DifferingRow[],
  between: Between,
  { access }: Reader,
): Promise<DifferenceItem[]> => {
  const { types } = registry
  const rids = rows.map(({ rid }) => rid)
  const [was, now] = [await revisionsAt(db, rids, between.from), await revisionsAt(db, rids, between.to)]
  const changers = await changersOf(db, rids, between.from, between.to)
  const turned = await edgesTurned(db, rids, between)
  const seen = await visibleRids(db, [...new Set(turned.map(({ dst }) => dst))], access, types.topologyIds)
  const edges = Map.groupBy(turned, ({ src }) => src)
  return rows.map((row) => {
    const [before, after] = [thenOf(was.get(row.rid)), thenOf(now.get(row.rid))]
    const { actors = [], operation_ids = [], last_change_at } = changers.get(row.rid) ?? {}
    const own = edges.get(row.rid) ?? []
    const last = [last_change_at, ...pluck(own, 'at')]
      .filter((at) => at !== undefined)
      .sort(byTime)
      .at(-1)
    return {
      ...pick(row, 'resource_id', 'name', 'version_from', 'version_to'),
      type_key: types.keyOf(row.type_id),
      kind: kindOf(types, row, before, after),
      ...changesOf(before, after),
      relationships: own.slice(0, MAX_CHANGES).map((edge) => relationshipOf(types, edge, seen)),
      actors: known([...actors, ...pluck(own, 'actor')]),
      operation_ids: known([...operation_ids, ...pluck(own, 'operation_id')]).slice(0, MAX_OPERATIONS),
      last_change_at: last === undefined ? null : timeText(last),
    }
  })
}

const byTime = (a: string, b: string): number => Date.parse(a) - Date.parse(b)
const known = (names: readonly (string | null)[]): string[] =>
  [...new Set(names.filter((name) => name !== null))].sort()

const thenOf = (revisions: readonly RevisionRow[] | undefined): ResourceDocument | undefined =>
  revisions && documentThen(revisions)

const kindOf = (
  types: Types,
  { was_in, is_in, type_id }: DifferingRow,
  before: ResourceDocument | undefined,
  after: ResourceDocument | undefined,
): DifferenceItem['kind'] => {
  const ended = (document: ResourceDocument | undefined) => document !== undefined && hasEnded(types, type_id, document)
  // Also one that was not there before: its end says more than its arrival.
  if (ended(after) && !ended(before)) return 'removed'
  if (before === undefined) return 'added'
  if (was_in !== is_in) return is_in ? 'moved_in' : 'moved_out'
  return before.parent_id === after?.parent_id ? 'changed' : 'moved'
}

/** Members that differ; empty for an added or removed resource, which differs as a whole. */
const changesOf = (before: ResourceDocument | undefined, after: ResourceDocument | undefined) => {
  if (before === undefined || after === undefined) return { changes: [], more_changes: 0 }
  const paths = factsChanged(before, after)
  const changes = paths.slice(0, MAX_CHANGES).map((path) => {
    const [old, value] = [valueAt(before, path), valueAt(after, path)]
    return { path, ...(old !== undefined && { before: old }), ...(value !== undefined && { after: value }) }
  })
  return { changes, more_changes: paths.length - changes.length }
}

const relationshipOf = (types: Types, { op, reltype_id, dst, to_id }: TurnedEdge, seen: ReadonlySet<string>) => ({
  op,
  type_key: types.relationshipById(reltype_id)?.type_key ?? '',
  to_id: seen.has(dst) ? to_id : null,
})
