import { sql } from 'drizzle-orm'
import type { Filter } from '../../../db/catalog/resources/filter.ts'
import { healthsThen } from '../../../db/catalog/resources/health-now.ts'
import { meeting, revisionsAt } from '../../../db/catalog/resources/history.ts'
import { accessSql, conditions, type ListRow, listResources } from '../../../db/catalog/resources/lists.ts'
import type { ResourceListQuery, ResourceView } from '../../shared/contracts/catalog/resources.ts'
import { pluck } from '../../shared/data/pick.ts'
import type { CatalogDeps } from '../deps.ts'
import { pickFields } from '../document/fields.ts'
import { filterInvalid, parseFilter } from '../document/filter.ts'
import { placedThen, scopesOf } from '../read/access.ts'
import {
  affordable,
  asOf,
  fieldsOf,
  includedOf,
  invalid,
  LEVEL_PARAMETERS,
  openPage,
  parseSort,
  type Reader,
  valuesOf,
  whereOf,
} from '../read/lists.ts'
import { documentThen, hasEnded, pastTime, viewThen } from '../read/past.ts'

/** How many resources one page examines. The page may therefore be short; its token continues where it stopped. */
const MOST_EXAMINED = 2000
/** How many documents are rebuilt at once: one may be half a mebibyte. */
const CHUNK = 100

/** Names and creation times never change, so the past order is the current order. */
const SORTABLE = ['resource_id', 'name', 'created_at']
/** Parameters about data that is not kept over time, or not kept with the resource. */
const PRESENT = ['health_status', 'layer_kind', 'owned_by', 'count', 'min_change', 'max_lag_ms'] as const
const PRESENT_FIELDS = new Set(['health_status', 'health_revision', 'layer_kind', 'provides'])

type Found = { row: ListRow; view: ResourceView }

/**
 * One page of resources as of a given time (catalog.md 7.1). Candidates come in the order of an immutable key; each is
 * rebuilt from its history, then matched against the parameters. A resource's current place decides who may see it.
 */
export const listPast = async (deps: CatalogDeps, query: ResourceListQuery & { at: string }, reader: Reader) => {
  const { types } = deps.registry
  const { page_size, page_token, include, fields, at, ...filters } = query
  await refusePresent(deps, query)
  const selected = fieldsOf(fields)
  const with_state = includedOf(include).has('state') || selected !== undefined
  const list = { route: 'resources', at, ...filters }
  const { place, size, turn } = openPage(deps, query, list, reader)
  const sort = parseSort(query.sort).map(({ key, descending }) => ({ key, descending: descending !== place.back }))
  const [ids, type_keys] = [valuesOf(query.ids, 'ids'), valuesOf(query.type_key, 'type_key')]
  const where = [
    accessSql(reader.access, types.topologyIds),
    sql`r.created_at <= ${at}::timestamptz`,
    ...(ids ? [conditions.ids(ids)] : []),
    ...(type_keys ? [conditions.types(types.idsOf(type_keys))] : []),
  ]
  const found: Found[] = []
  const now = deps.clock.now()
  let after = place.key as string[] | undefined
  let more = true
  for (let examined = 0; more && found.length <= size && examined < MOST_EXAMINED; examined += CHUNK) {
    const candidates = await affordable(listResources(deps.db, { where, sort, now, after, limit: CHUNK, lean: true }))
    more = candidates.length === CHUNK
    after = candidates.at(-1)?.sort_keys ?? after
    found.push(...(await thoseThen(deps, candidates, query)))
  }
  const { items, ...tokens } = turn(found, ({ row }) => row.sort_keys, more ? after : undefined)
  return {
    items: items.map(({ view }) =>
      selected ? (pickFields(view, selected) as ResourceView) : itemThen(view, with_state),
    ),
    selected,
    ...tokens,
    as_of: await asOf(deps.db, deps),
  }
}

const refusePresent = async (deps: CatalogDeps, query: ResourceListQuery & { at: string }): Promise<void> => {
  await pastTime(deps, query.at, deps.config.history_d)
  for (const name of PRESENT)
    if (query[name] !== undefined && query[name] !== 'none') throw invalid(name, 'cannot be combined with at')
  const foreign = [...includedOf(query.include)].find((name) => name !== 'state')
  if (foreign !== undefined) throw invalid('include', `${foreign} cannot be combined with at`)
  const unsortable = parseSort(query.sort).find(({ key }) => !SORTABLE.includes(key))
  if (unsortable)
    throw invalid('sort', `${unsortable.key} cannot be combined with at; it can be ${SORTABLE.join(', ')}`)
  if (query.filter !== undefined) refuseFields(parseFilter(query.filter))
}

const refuseFields = (filter: Filter): void => {
  if (filter.kind === 'not') refuseFields(filter.item)
  else if (filter.kind !== 'test') for (const item of filter.items) refuseFields(item)
  else if (PRESENT_FIELDS.has(filter.field[0] ?? ''))
    throw filterInvalid(filter.offset, `${filter.field[0]} has no history`)
}

/** The candidates that existed then and matched the parameters, in order. */
const thoseThen = async (deps: CatalogDeps, candidates: ListRow[], query: ResourceListQuery & { at: string }) => {
  const { types } = deps.registry
  const { at } = query
  const revisions = await revisionsAt(deps.db, pluck(candidates, 'rid'), at)
  const there = await placedThen(
    deps.db,
    types,
    candidates.filter(({ rid }) => revisions.has(rid)),
    at,
  )
  const scopeOf = await scopesOf(deps.db, types, there)
  const then = there.map((row) => {
    const document = documentThen(revisions.get(row.rid) ?? [])
    return { row, document, is_open: !hasEnded(types, row.type_id, document), scope: scopeOf(row) }
  })
  const { filter, label, lifecycle_status, drift, stale_since, parent_id, include_retired } = query
  const asked = { filter, label, lifecycle_status, drift, stale_since, parent_id, include_retired }
  const met = await affordable(
    meeting(
      deps.db,
      then.map(({ row: { rid, path, type_id }, document, is_open }) => {
        const { annotations, desired_state, observed_state, ...facts } = document
        // Only filters read the states.
        return { rid, path, type_id, is_open, document: filter === undefined ? facts : document }
      }),
      [sql`true`, ...whereOf(types, asked as ResourceListQuery, new Date(at))],
    ),
  )
  const shown = then.filter(
    ({ row, scope }) => met.has(row.rid) && LEVEL_PARAMETERS.every((level) => isAt(query[level], scope[level])),
  )
  const states = shown.map(({ row: { rid }, document: { lifecycle_status } }) => ({ rid, lifecycle_status }))
  const health = await affordable(healthsThen(deps.db, states, at))
  return shown.map(({ row, document, scope }) => ({ row, view: viewThen(document, scope, health.get(row.rid)) }))
}

const isAt = (asked: string | undefined, at: string | null): boolean => asked === undefined || asked === at

const itemThen = (view: ResourceView, with_state: boolean) => {
  if (with_state) return view
  const { annotations, desired_state, observed_state, conditions, ...item } = view
  return item
}
