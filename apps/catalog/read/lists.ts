import type { SQL } from 'drizzle-orm'
import { countProviders } from '../../../db/catalog/providers.ts'
import { getDegrees } from '../../../db/catalog/relationships/graph.ts'
import { FilterMismatch, type FilterTypes, filterSql } from '../../../db/catalog/resources/filter.ts'
import {
  accessSql,
  conditions,
  countResources,
  isSortKey,
  type ListRow,
  lastPubSeq,
  listResources,
  type Sort,
} from '../../../db/catalog/resources/lists.ts'
import type { ResourceRow } from '../../../db/catalog/rows.ts'
import type { Queryable } from '../../../db/client.ts'
import { INCLUDABLE, ResourceItem, type ResourceListQuery } from '../../shared/contracts/catalog/resources.ts'
import { isTime } from '../../shared/data/formats.ts'
import { wrongAt } from '../../shared/errors.ts'
import type { CatalogDeps, Uses } from '../deps.ts'
import { type Fields, parseFields, pickFields } from '../document/fields.ts'
import { filterInvalid, parseFilter } from '../document/filter.ts'
import type { Types } from '../packs/registry.ts'
import { type Access, scopesOf } from './access.ts'
import { itemOf, timeOrNull, timeText } from './documents.ts'
import { tooExpensive } from './expensive.ts'
import { awaitChange } from './freshness.ts'
import { withHealth } from './health.ts'
import { ownedWhere } from './owned.ts'

/** The reader: rows are limited to the access, page tokens are bound to the name. */
export type Reader = { name: string; access: Access }

type Asked = { page_size?: number | undefined; page_token?: string | undefined }
/** One page of a list: where it begins, its size, and `turn`, which makes it of the rows read from there. */
export const openPage = (deps: Uses<'config' | 'pages'>, asked: Asked, list: object, { name: caller }: Reader) => {
  const place = deps.pages.place(asked.page_token, list, caller)
  const size = Math.min(asked.page_size || deps.config.page_default, deps.config.page_max)
  const turn = <R>(rows: readonly R[], keyOf: (row: R) => (string | null)[], stopped?: string[]) =>
    deps.pages.turn(rows, { size, place, list, caller, keyOf, ...(stopped && { stopped }) })
  return { place, size, turn }
}

const COUNT_CAP = 10_000

/** The values of a parameter that may be repeated or contain commas. Throws 400 for an empty one: it is not "all". */
export const valuesOf = (given: readonly string[] | undefined, name: string): string[] | undefined => {
  const values = given?.flatMap((text) => text.split(',')).filter((text) => text !== '')
  if (values?.length === 0) throw invalid(name, 'is empty: name a value, or leave it out')
  return values
}

/** 400 for an invalid query parameter. */
export const invalid = (pointer: string, message: string) =>
  wrongAt(`/querystring/${pointer}`, message, { detail: `${pointer} ${message}.` })

/** Runs a read whose cost the caller determines; 422 if the database aborted it by timeout. */
export const affordable = async <T>(read: Promise<T>): Promise<T> => {
  try {
    return await read
  } catch (error) {
    if ((error as { cause?: { code?: string } }).cause?.code !== '57014') throw error
    throw tooExpensive(
      'The query took too long and was stopped.',
      'Narrow by type_key, a place or ids; of states, equality on desired_state and indexed_paths of the type are fast.',
      error,
    )
  }
}

/** The age of an answer from truth: zero. `watermark`: that of the statement that read it, if known. */
export const asOf = async (db: Queryable, deps: CatalogDeps, watermark?: string) => ({
  watermark: watermark ?? (await lastPubSeq(db)),
  time: deps.clock.now().toISOString().replace('Z', '000Z'),
  lag_ms: 0,
})

export type Included = ReadonlySet<(typeof INCLUDABLE)[number]>

/** The parts named by `include`; 400 for an unknown one. */
export const includedOf = (given: readonly string[] | undefined): Included => {
  const names = valuesOf(given, 'include') ?? []
  const unknown = names.find((name) => !(INCLUDABLE as readonly string[]).includes(name))
  if (unknown) throw invalid('include', `does not know ${unknown}; it can be ${INCLUDABLE.join(', ')}`)
  return new Set(names as (typeof INCLUDABLE)[number][])
}

const MEMBERS = Object.keys(ResourceItem.properties)
const STATES = ['annotations', 'desired_state', 'observed_state', 'conditions']
export const fieldsOf = (given: readonly string[] | undefined): Fields | undefined =>
  parseFields(valuesOf(given, 'fields'), MEMBERS)

/** One page of resources by all structural parameters and the filter, forward or backward (catalog.md 7.1). */
export const listPage = async (
  deps: CatalogDeps,
  route: string,
  query: ResourceListQuery,
  reader: Reader,
  fixed: SQL[] = [],
) => {
  const { types } = deps.registry
  const { page_size, page_token, include, fields, count, min_change, max_lag_ms, ...filters } = query
  const included = includedOf(include)
  const selected = fieldsOf(fields)
  const sort = parseSort(query.sort)
  const owned = await ownedWhere(deps, query.owned_by, reader.access)
  const now = deps.clock.now()
  const where = [...fixed, accessSql(reader.access, types.topologyIds), ...whereOf(types, query, now), ...owned]
  const list = { route, ...filters }
  const { place, size, turn } = openPage(deps, query, list, reader)
  await awaitChange(deps, { ...(min_change !== undefined && { min_change }) }, reader)
  const turned = place.back ? sort.map(({ key, descending }) => ({ key, descending: !descending })) : sort
  const after = place.key as string[] | undefined
  const lean = !showsState({ included, selected }) && !included.has('owners')
  // Together: one after the other, two slow ones would end as a timeout of the request, without the hint.
  const [listed, counted] = await Promise.all([
    affordable(listResources(deps.db, { where, sort: turned, now, after, limit: size + 1, lean })),
    count && count !== 'none' ? countOf(deps, where, count) : undefined,
  ])
  const rows = await withHealth(deps.db, listed, now)
  const { items: shown, ...tokens } = turn(rows, (row) => row.sort_keys)
  return {
    rows: shown,
    items: await itemsOf(deps, shown, { included, selected }, reader),
    selected,
    ...tokens,
    ...(counted && { count: counted }),
    as_of: await asOf(deps.db, deps, rows[0]?.watermark),
  }
}

type Shown = { included: Included; selected: Fields | undefined }

const showsState = ({ included, selected }: Shown): boolean =>
  included.has('state') || (selected?.some(([name]) => STATES.includes(name as string)) ?? false)

const itemsOf = async (deps: CatalogDeps, rows: ListRow[], { included, selected }: Shown, reader: Reader) => {
  const { types } = deps.registry
  const scopeOf = await scopesOf(deps.db, types, rows)
  const parts = await partsOf(deps, rows, included, reader)
  const with_state = showsState({ included, selected })
  return rows.map((row) => {
    const item = itemOf(row, scopeOf(row), types, with_state)
    // A selection is part of an item; its route serializes such a page without the full schema.
    const shown = selected ? (pickFields(item, selected) as typeof item) : item
    return { ...shown, ...parts.get(row.rid) }
  })
}

type Part = {
  field_owners?: Record<string, string>
  health?: { status: ResourceRow['health_status']; reason: string; since: string; expires_at: string | null }
  relationships?: { out: number; in: number }
  capabilities?: { provided: number; required: number }
}

/** What `include` adds to rows besides their states: own health, and counts of the rows the reader sees. */
export const partsOf = async (
  deps: CatalogDeps,
  rows: readonly ResourceRow[],
  included: Included,
  reader: Reader,
): Promise<Map<string, Part>> => {
  const { types } = deps.registry
  const parts = new Map<string, Part>(rows.map(({ rid }) => [rid, {}]))
  const rids = [...parts.keys()]
  const partOf = (rid: string) => parts.get(rid) as Part
  for (const row of included.has('owners') ? rows : []) partOf(row.rid).field_owners = row.field_owners
  for (const row of included.has('health') ? rows : []) {
    const { health_status: status, health_reason: reason, health_at, health_expires_at } = row
    partOf(row.rid).health = { status, reason, since: timeText(health_at), expires_at: timeOrNull(health_expires_at) }
  }
  if (included.has('relationships')) {
    const { access } = reader
    const reach = {
      access,
      topology_type_ids: types.topologyIds,
      reltype_ids: null,
      type_ids: null,
      now: deps.clock.now(),
    }
    for (const { rid, out, in: incoming } of await getDegrees(deps.db, rids, reach))
      partOf(rid).relationships = { out, in: incoming }
  }
  if (included.has('capabilities')) {
    const provided = await countProviders(deps.db, rids)
    for (const { rid, type_id } of rows) {
      const required = types.byId(type_id)?.requires.length ?? 0
      partOf(rid).capabilities = { provided: provided.get(rid) ?? 0, required }
    }
  }
  return parts
}

const countOf = async (deps: CatalogDeps, where: SQL[], count: 'capped' | 'exact') => {
  const limit = count === 'exact' ? 2_147_483_647 : COUNT_CAP + 1
  const value = await affordable(countResources(deps.db, where, limit))
  return { value, relation: count === 'capped' && value > COUNT_CAP ? ('gte' as const) : ('eq' as const) }
}

/** At most 3 keys, resource_id always last, so that the order is total. */
export const parseSort = (text: string | undefined): Sort => {
  const names = (text ?? 'name').split(',')
  if (names.length > 3) throw invalid('sort', 'has more than 3 keys')
  const sort = names.map((name) => {
    const descending = name.startsWith('-')
    const key = descending ? name.slice(1) : name
    if (key === '') throw invalid('sort', 'has an empty key')
    if (!isSortKey(key)) throw invalid('sort', `does not know ${key}`)
    return { key, descending }
  })
  if (!sort.some(({ key }) => key === 'resource_id')) {
    sort.push({ key: 'resource_id', descending: sort[0]?.descending ?? false })
  }
  return sort
}

export const LEVEL_PARAMETERS = ['region_id', 'datacenter_id', 'layer_id', 'segment_id'] as const

/** The conditions of the structural parameters and the filter, over r, s and p. */
export const whereOf = (types: Types, query: ResourceListQuery, now: Date): SQL[] => {
  const where: SQL[] = []
  const add = <T>(value: T | undefined, condition: (value: T) => SQL) => {
    if (value !== undefined) where.push(condition(value))
  }
  const lifecycle = valuesOf(query.lifecycle_status, 'lifecycle_status')
  const terminal = new Set(types.all.flatMap((type) => type.lifecycle.terminal))
  if (!query.include_retired && !lifecycle?.some((state) => terminal.has(state))) where.push(conditions.open)
  const ids = valuesOf(query.ids, 'ids')
  if (ids && ids.length > 200) throw invalid('ids', 'has more than 200 ids')
  add(ids, conditions.ids)
  add(valuesOf(query.type_key, 'type_key'), (keys) => conditions.types(types.idsOf(keys)))
  for (const level of LEVEL_PARAMETERS) add(query[level], (id) => conditions.below(id, [...types.levelIds[level]]))
  add(query.layer_kind, (kind) => conditions.layerKind(kind, [...types.levelIds.layer_id]))
  add(query.parent_id, conditions.parent)
  add(lifecycle, conditions.lifecycle)
  add(valuesOf(query.health_status, 'health_status'), (statuses) => conditions.health(now, statuses))
  add(query.drift, conditions.drift)
  add(query.stale_since, conditions.changedBefore)
  for (const label of valuesOf(query.label, 'label') ?? []) {
    const [key = '', ...value] = label.split('=')
    where.push(conditions.label(key, label.includes('=') ? value.join('=') : undefined))
  }
  add(query.filter, (text) => filterWhere(types, text, now))
  return where
}

/** The filter as a condition; a filter that does not parse or fit is 400 `filter_invalid` with the position. */
export const filterWhere = (types: Types, text: string, now: Date): SQL => {
  try {
    return filterSql(parseFilter(text), filterTypes(types, now))
  } catch (error) {
    if (error instanceof FilterMismatch) throw filterInvalid(error.offset, error.message)
    throw error
  }
}

const filterTypes = (types: Types, now: Date): FilterTypes => ({
  now,
  idsOf: types.idsOf,
  exactIds: (type_key) => types.all.filter((type) => type.type_key === type_key).map(({ id }) => id),
  isTime,
  levels: {
    region_id: [...types.levelIds.region_id],
    datacenter_id: [...types.levelIds.datacenter_id],
    layer_id: [...types.levelIds.layer_id],
    segment_id: [...types.levelIds.segment_id],
  },
})
