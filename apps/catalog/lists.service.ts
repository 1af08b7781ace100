import type { SQL } from 'drizzle-orm'
import { FilterMismatch, type FilterTypes, filterSql } from '../../db/catalog/filter.ts'
import {
  accessSql,
  conditions,
  countResources,
  isSortKey,
  type ListRow,
  lastPubSeq,
  listResources,
  type Sort,
} from '../../db/catalog/lists.ts'
import { getPathSteps } from '../../db/catalog/resources.ts'
import type { Queryable } from '../../db/client.ts'
import type { ResourceListQuery } from '../shared/contracts/catalog/resources.ts'
import { AppError } from '../shared/errors.ts'
import { type Access, scopeOf } from './access.ts'
import type { CatalogDeps } from './deps.ts'
import { itemOf } from './documents.ts'
import { pageSizeOf } from './pages.ts'
import { filterInvalid, parseFilter } from './rules/filter.ts'
import type { Types } from './types.registry.ts'

/** Who reads: rows are limited to the access, page tokens are bound to the name. */
export type Reader = { name: string; access: Access }

const COUNT_CAP = 10_000

/** The values of a parameter that may be repeated or hold commas. */
export const valuesOf = (given: readonly string[] | undefined): string[] | undefined => {
  const values = given?.flatMap((text) => text.split(',')).filter((text) => text !== '')
  return values && values.length > 0 ? values : undefined
}

const invalid = (pointer: string, message: string) =>
  new AppError('validation_error', 'schema_violation', `${pointer} ${message}.`, {
    violations: [{ pointer: `/querystring/${pointer}`, code: 'schema_violation', message }],
  })

/** How old an answer from truth is: not at all. */
export const asOf = async (db: Queryable, deps: CatalogDeps) => ({
  watermark: await lastPubSeq(db),
  time: deps.clock.now().toISOString().replace('Z', '000Z'),
  lag_ms: 0,
})

/** One page of resources by all structural parameters and the filter (catalog.md 7.1). */
export const listPage = async (
  deps: CatalogDeps,
  route: string,
  query: ResourceListQuery,
  reader: Reader,
  fixed: SQL[] = [],
) => {
  const { types } = deps.registry
  const { page_size, page_token, include, count, ...filters } = query
  const included = valuesOf(include) ?? []
  const unknown = included.find((name) => name !== 'state')
  if (unknown) throw invalid('include', `does not know ${unknown}; it may be state`)
  const sort = parseSort(query.sort)
  const where = [...fixed, accessSql(reader.access, types.topologyIds), ...whereOf(types, query)]
  const list = { route, ...filters }
  const after = deps.pages.read(page_token, list, reader.name)
  const size = pageSizeOf(page_size, deps.config)
  const rows = await listResources(deps.db, { where, sort, after, limit: size + 1 })
  const shown = rows.slice(0, size)
  const last = shown.at(-1)
  const items = await itemsOf(deps, shown, included.includes('state'))
  return {
    rows: shown,
    items,
    next_page_token: rows.length > size && last ? deps.pages.write(last.sort_keys, list, reader.name) : null,
    prev_page_token: null,
    ...(count && count !== 'none' && { count: await countOf(deps, where, count) }),
    as_of: await asOf(deps.db, deps),
  }
}

const itemsOf = async (deps: CatalogDeps, rows: ListRow[], with_state: boolean) => {
  const steps = await getPathSteps(
    deps.db,
    rows.map(({ path }) => path),
  )
  const { types } = deps.registry
  return rows.map((row) => itemOf(row, scopeOf(row.path, steps, types), types, with_state))
}

const countOf = async (deps: CatalogDeps, where: SQL[], count: 'capped' | 'exact') => {
  const limit = count === 'exact' ? 2_147_483_647 : COUNT_CAP + 1
  const value = await countResources(deps.db, where, limit)
  return { value, relation: count === 'capped' && value > COUNT_CAP ? ('gte' as const) : ('eq' as const) }
}

/** At most 3 keys, resource_id always last, so that the order is total. */
const parseSort = (text: string | undefined): Sort => {
  const names = (text ?? 'name').split(',')
  if (names.length > 3) throw invalid('sort', 'has more than 3 keys')
  const sort = names.map((name) => {
    const descending = name.startsWith('-')
    const key = descending ? name.slice(1) : name
    if (!isSortKey(key)) throw invalid('sort', `does not know ${key}`)
    return { key, descending }
  })
  if (!sort.some(({ key }) => key === 'resource_id')) {
    sort.push({ key: 'resource_id', descending: sort[0]?.descending ?? false })
  }
  return sort
}

const LEVEL_PARAMETERS = ['region_id', 'datacenter_id', 'layer_id', 'segment_id'] as const

const whereOf = (types: Types, query: ResourceListQuery): SQL[] => {
  const where: SQL[] = []
  const add = <T>(value: T | undefined, condition: (value: T) => SQL) => {
    if (value !== undefined) where.push(condition(value))
  }
  const lifecycle = valuesOf(query.lifecycle_status)
  const terminal = new Set(types.all.flatMap((type) => type.lifecycle.terminal))
  if (!query.include_retired && !lifecycle?.some((state) => terminal.has(state))) where.push(conditions.open)
  const ids = valuesOf(query.ids)
  if (ids && ids.length > 200) throw invalid('ids', 'has more than 200 ids')
  add(ids, conditions.ids)
  add(valuesOf(query.type_key), (keys) => conditions.types(types.idsOf(keys)))
  for (const level of LEVEL_PARAMETERS) add(query[level], (id) => conditions.below(id, [...types.levelIds[level]]))
  add(query.layer_kind, (kind) => conditions.layerKind(kind, [...types.levelIds.layer_id]))
  add(query.parent_id, conditions.parent)
  add(lifecycle, conditions.lifecycle)
  add(valuesOf(query.health_status), conditions.health)
  add(query.drift, conditions.drift)
  for (const label of valuesOf(query.label) ?? []) {
    const [key = '', ...value] = label.split('=')
    where.push(conditions.label(key, label.includes('=') ? value.join('=') : undefined))
  }
  add(query.filter, (text) => filterWhere(types, text))
  return where
}

/** The filter as a condition; what does not parse or fit is 400 `filter_invalid` with its place. */
export const filterWhere = (types: Types, text: string): SQL => {
  try {
    return filterSql(parseFilter(text), filterTypes(types))
  } catch (error) {
    if (error instanceof FilterMismatch) throw filterInvalid(error.offset, error.message)
    throw error
  }
}

const filterTypes = (types: Types): FilterTypes => ({
  idsOf: types.idsOf,
  exactIds: (type_key) => types.all.filter((type) => type.type_key === type_key).map(({ id }) => id),
  levels: {
    region_id: [...types.levelIds.region_id],
    datacenter_id: [...types.levelIds.datacenter_id],
    layer_id: [...types.levelIds.layer_id],
    segment_id: [...types.levelIds.segment_id],
  },
})
