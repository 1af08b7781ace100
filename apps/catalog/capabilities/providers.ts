import type { SQL } from 'drizzle-orm'
import semver from 'semver'
import { type ClaimRow, offers } from '../../../db/catalog/providers.ts'
import { accessSql, conditions } from '../../../db/catalog/resources/lists.ts'
import { PROVIDER_STATUSES, type Provider, type ProvidersQuery } from '../../shared/contracts/catalog/capabilities.ts'
import { notFound } from '../../shared/errors.ts'
import { rowsFrom } from '../../shared/http/pages.ts'
import type { CatalogDeps } from '../deps.ts'
import { relationshipId } from '../read/documents.ts'
import { awaitChange } from '../read/freshness.ts'
import { asOf, invalid, LEVEL_PARAMETERS, openPage, type Reader, valuesOf } from '../read/lists.ts'
import { pastTime, readAt } from '../read/past.ts'
import { findVisible } from '../read/visible.ts'
import {
  type Asker,
  distanceOf,
  type Mismatch,
  meets,
  mismatchOf,
  type Offer,
  type ProviderStatus,
  type Wanted,
} from '../rules/matching.ts'
import { assessNeeds, openOnly } from './needs.ts'
import { matchOffers, readOffers } from './offers.ts'
import { FIT, FIT_DEGRADED, requirementsOf, wishOf } from './requirements.ts'

const OPEN: readonly ProviderStatus[] = ['available', 'degraded', 'stale']

const statusesOf = (given: readonly string[] | undefined): readonly ProviderStatus[] | undefined => {
  const statuses = valuesOf(given, 'status')
  const unknown = statuses?.find((status) => !(PROVIDER_STATUSES as readonly string[]).includes(status))
  if (unknown) throw invalid('status', `does not know ${unknown}; it can be ${PROVIDER_STATUSES.join(', ')}`)
  return statuses as ProviderStatus[] | undefined
}

const visible = (deps: CatalogDeps, { access }: Reader): SQL => accessSql(access, deps.registry.types.topologyIds)

/** What a resource provides, and whether each of its requirements is bound or could be, and if not, why. */
export const readCapabilities = async (
  deps: CatalogDeps,
  resource_id: string,
  query: { status?: string[]; allow_degraded?: boolean; min_change?: string; max_lag_ms?: number; at?: string },
  reader: Reader,
) => {
  const statuses = statusesOf(query.status)
  await awaitChange(deps, query, reader)
  const at = await pastTime(deps, query.at, deps.config.history_d)
  if (at !== undefined && (query.min_change ?? query.max_lag_ms) !== undefined)
    throw invalid('at', 'cannot be combined with min_change and max_lag_ms: the past does not change')
  const { row, scope } = await findAt(deps, resource_id, at, reader)
  const own = await readOffers(deps, [offers.of(row.rid), ...openOnly(statuses, at)], at)
  const needs = await assessNeeds(deps, [row], () => scope, query, reader, at)
  const required = needs.map(({ requirement, state, bound_to, providers, rejected, rejected_count }) => ({
    ...{ requirement, state, rejected_count },
    bound_to: bound_to.map(claimView),
    providers: providers.slice(0, 5),
    why_not: rejected,
  }))
  const provided = own.map(({ view }) => view).filter(({ status }) => (statuses ?? OPEN).includes(status))
  return { provided, required, as_of: await asOf(deps.db, deps) }
}

/** A resource that the reader may see, as it is now or was at a given time. */
const findAt = async (deps: CatalogDeps, resource_id: string, at: string | undefined, reader: Reader) => {
  const found = await findVisible(deps, resource_id, reader)
  if (at === undefined) return found
  const { desired_state, observed_state, type_version, lifecycle_status, scope } = await readAt(deps, found.row, at)
  return { row: { ...found.row, desired_state, observed_state, type_version, lifecycle_status }, scope }
}

const claimView = ({ rel_no, peer_id, properties }: ClaimRow) => ({
  relationship_id: relationshipId(rel_no),
  resource_id: peer_id,
  provider_id: typeof properties.provider_id === 'string' ? properties.provider_id : null,
  amount: typeof properties.amount === 'number' ? properties.amount : null,
})

type Asked = { wanted: Wanted; asker: Asker | undefined; capability_key: string | undefined }

/** Providers by their offers, ranked; with `explain`, also those that do not match, and why. */
export const listProviders = async (deps: CatalogDeps, query: ProvidersQuery, reader: Reader) => {
  const { types } = deps.registry
  const { page_size, page_token, min_change, max_lag_ms, explain, ...filters } = query
  const { wanted, asker, capability_key } = await askedFor(deps, query, reader)
  const attributes = attributeTests(query)
  const near = query.near === undefined ? asker?.scope : (await findVisible(deps, query.near, reader)).scope
  const order = parseOrder(query.sort, near !== undefined)
  const { place, size, turn } = openPage(deps, query, { route: 'providers', ...filters }, reader)
  await awaitChange(deps, { ...(min_change !== undefined && { min_change }) }, reader)

  const versions = capability_key === undefined ? undefined : types.capabilityVersions(capability_key)
  const where = [visible(deps, reader), ...openOnly(wanted.statuses)]
  if (versions) where.push(offers.capability(versions[0]?.id ?? -1))
  for (const level of LEVEL_PARAMETERS) {
    const id = query[level]
    if (id !== undefined) where.push(conditions.below(id, [...types.levelIds[level]]))
  }
  const matched = matchOffers(await readOffers(deps, where), (offer) => refuse(offer, wanted, asker, attributes, query))
  const found = matched.providers
    .map((view) => (near ? { ...view, distance: distanceOf(near, view.scope) } : view))
    .sort((a, b) => compareTo(order, a, keyOf(order, b)))
  const rows = rowsFrom(found, place, size, (view, key) => compareTo(order, view, key))
  return {
    ...turn(rows, (view) => keyOf(order, view)),
    ...(explain && { rejected: matched.rejected, rejected_count: matched.rejected_count }),
    as_of: await asOf(deps.db, deps),
  }
}

/** The requirement of a query: that of a resource, or the one that the parameters state directly. */
const askedFor = async (deps: CatalogDeps, query: ProvidersQuery, reader: Reader): Promise<Asked> => {
  const { types } = deps.registry
  const { capability_key, version_range = '*', requirement_of } = query
  if (semver.validRange(version_range) === null) throw invalid('version_range', 'is not a version range')
  if (capability_key !== undefined && !types.hasCapability(capability_key)) throw notFound('capability', capability_key)
  const statuses = statusesOf(query.status)
  if (requirement_of === undefined) {
    const wanted: Wanted = { version_range, where: {}, amount: null, scope: 'any', statuses: statuses ?? OPEN }
    return { wanted, asker: undefined, capability_key }
  }
  if (capability_key !== undefined || query.version_range !== undefined)
    throw invalid('requirement_of', 'already names capability and version')
  const [resource_id = '', requirement_key = ''] = requirement_of.split('/')
  const { row, scope } = await findVisible(deps, resource_id, reader)
  const requirement = requirementsOf(types, row).find((one) => one.requirement_key === requirement_key)
  if (!requirement) throw invalid('requirement_of', `does not name a requirement of ${resource_id}`)
  const wanted = wishOf(requirement, statuses ?? (query.allow_degraded ? FIT_DEGRADED : FIT))
  return { wanted, asker: { resource_id, scope }, capability_key: requirement.capability_key }
}

type AttributeTest = { attribute: string; match_rule: 'eq' | 'gte' | 'lte'; wanted: string | number }

const attributeTests = (query: object): AttributeTest[] =>
  Object.entries(query)
    .filter(([name]) => name.startsWith('attr.'))
    .flatMap(([name, values]) => (values as string[]).map((value) => attributeTest(name, value)))

const attributeTest = (name: string, text: string): AttributeTest => {
  const attribute = name.slice('attr.'.length)
  const [, rule, number] = /^(gte|lte):(.*)$/.exec(text) ?? []
  if (rule === undefined) return { attribute, match_rule: 'eq', wanted: text }
  if (!/^-?\d{1,15}(\.\d{1,15})?$/.test(number ?? '')) throw invalid(name, `needs a number after ${rule}:`)
  return { attribute, match_rule: rule as 'gte' | 'lte', wanted: Number(number) }
}

const refuse = (
  offer: Offer,
  wanted: Wanted,
  asker: Asker | undefined,
  tests: readonly AttributeTest[],
  { min_free }: ProvidersQuery,
): Mismatch | undefined => {
  const mismatch = mismatchOf(wanted, offer, asker)
  if (mismatch) return mismatch
  for (const { attribute, match_rule, wanted: value } of tests) {
    const offered = Object.hasOwn(offer.attributes, attribute) ? offer.attributes[attribute] : undefined
    // Query values have no types: a plain value is compared as text, and with each member of a list.
    const fits =
      match_rule === 'eq'
        ? offered !== undefined && [offered].flat().some((one) => String(one) === value)
        : meets(match_rule, value, offered)
    if (!fits) return { rule: 'attribute', attribute, match_rule, wanted: value, offered: offered ?? null }
  }
  if (min_free !== undefined && offer.free !== null && offer.free < min_free)
    return { rule: 'capacity', wanted: min_free, offered: offer.free }
  return undefined
}

const ORDER_KEYS = ['priority', 'free', 'distance'] as const
type Order = { key: (typeof ORDER_KEYS)[number]; descending: boolean }[]

const parseOrder = (text: string | undefined, has_distance: boolean): Order => {
  const names = (text ?? 'priority,-free').split(',')
  if (names.length > ORDER_KEYS.length) throw invalid('sort', 'has more than 3 keys')
  return names.map((name) => {
    const key = ORDER_KEYS.find((one) => one === name.replace(/^-/, ''))
    if (!key) throw invalid('sort', `does not know ${name}`)
    if (key === 'distance' && !has_distance) throw invalid('sort', 'needs near or requirement_of to measure from')
    return { key, descending: name.startsWith('-') }
  })
}

const rankOf = ({ priority, free, distance }: Provider, key: Order[number]['key']): number =>
  ({ priority, free: free ?? Number.POSITIVE_INFINITY, distance: distance ?? 3 })[key]

const keyOf = (order: Order, view: Provider): string[] => [
  ...order.map(({ key }) => String(rankOf(view, key))),
  view.resource_id,
  view.provider_id,
]

const compareTo = (order: Order, view: Provider, at: readonly (string | null)[]): number => {
  for (const [i, { key, descending }] of order.entries()) {
    const [mine, theirs] = [rankOf(view, key), Number(at[i])]
    if (mine !== theirs) return mine < theirs === descending ? 1 : -1
  }
  const [mine, theirs] = [`${view.resource_id}\n${view.provider_id}`, at.slice(order.length).join('\n')]
  return mine === theirs ? 0 : mine < theirs ? -1 : 1
}
