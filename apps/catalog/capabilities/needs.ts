import { setImmediate as turn } from 'node:timers/promises'
import { type SQL, sql } from 'drizzle-orm'
import { type ClaimRow, listClaims, offers } from '../../../db/catalog/providers.ts'
import { accessSql, conditions, listResources } from '../../../db/catalog/resources/lists.ts'
import { array, getResourcesByRid } from '../../../db/catalog/resources/rows.ts'
import type { ResourceRow } from '../../../db/catalog/rows.ts'
import type { Requirement } from '../../shared/contracts/catalog/capabilities.ts'
import type { Scope } from '../../shared/contracts/catalog/resources.ts'
import type { CapabilityGraphQuery } from '../../shared/contracts/topology/capability-graphs.ts'
import { pluck } from '../../shared/data/pick.ts'
import { notFound } from '../../shared/errors.ts'
import type { CatalogDeps } from '../deps.ts'
import { type Placed, visibleOf } from '../read/access.ts'
import { tooExpensive } from '../read/expensive.ts'
import { withHealth } from '../read/health.ts'
import { invalid, type Reader, valuesOf } from '../read/lists.ts'
import { mismatchOf, type ProviderStatus } from '../rules/matching.ts'
import { type Candidate, isBinding, type Matched, matchOffers, readOffers, usesCapability } from './offers.ts'
import { FIT, FIT_DEGRADED, requirementsOf, wishOf } from './requirements.ts'

const MAX_ROOTS = 20
/** How many pairs of a requirement and a provider one answer may compare. */
const MAX_PAIRS = 2_000_000

/** Pairs between two yields to the event loop. */
const PART = 20_000

/** One requirement of one resource with its current state, and the reasons why other providers do not match. */
export type Need = Matched & {
  row: ResourceRow
  requirement: Requirement
  state: 'bound' | 'satisfiable' | 'unsatisfied'
  bound_to: ClaimRow[]
}

type Narrowing = Omit<CapabilityGraphQuery, 'min_change' | 'max_lag_ms'>
type Asked = Pick<Narrowing, 'capability_key' | 'allow_degraded'>

/** Conditions for resources that need capabilities or, unless only unmet needs are asked for, provide them. */
export const needing = (deps: CatalogDeps, query: Narrowing, { access }: Reader): SQL[] => {
  const { types } = deps.registry
  const { capability_key, region_id, unsatisfied_only } = query
  if (capability_key !== undefined && !types.hasCapability(capability_key)) throw notFound('capability', capability_key)
  const roots = valuesOf(query.root_id, 'root_id')
  if (roots && roots.length > MAX_ROOTS) throw invalid('root_id', `has more than ${MAX_ROOTS} ids`)
  const requiring = types.all
    .filter(({ requires }) =>
      requires.some((use) => capability_key === undefined || use.capability_key === capability_key),
    )
    .map(({ id }) => id)
  const needs = sql`r.type_id = any(${array(requiring, 'smallint')})`
  const id = capability_key === undefined ? undefined : types.capabilityVersions(capability_key)[0]?.id
  const offered = id === undefined ? sql`true` : offers.capability(id)
  const provides = sql`exists (select from catalog.provider v where v.rid = r.rid and v.withdrawn_at is null and ${offered})`
  return [
    accessSql(access, types.topologyIds),
    conditions.open,
    unsatisfied_only ? needs : sql`(${needs} or ${provides})`,
    ...(region_id === undefined ? [] : [conditions.below(region_id, [...types.levelIds.region_id])]),
    ...(roots ? [conditions.ids(roots)] : []),
  ]
}

/** At most `limit` of these resources by id, starting after a position. */
export const listNeeding = async (
  { db, clock }: CatalogDeps,
  where: SQL[],
  limit: number,
  after?: readonly string[],
  back = false,
) => {
  const now = clock.now()
  const sort = [{ key: 'resource_id' as const, descending: back }]
  return withHealth(db, await listResources(db, { where, sort, now, after, limit }), now)
}

const tooManyNeeds = () =>
  tooExpensive('Too many providers could meet too many needs.', 'Narrow by capability_key, region_id or root_id.')

/** An offer at a past time counts, even if its resource has ended since. */
export const openOnly = (statuses: readonly ProviderStatus[] | undefined, at?: string): SQL[] =>
  at !== undefined || statuses?.includes('withdrawn') ? [] : [offers.open]

/** The state of every requirement of these resources, now or at a given time, with providers that the reader may see. */
export const assessNeeds = async (
  deps: CatalogDeps,
  rows: readonly ResourceRow[],
  scopeOf: (row: Placed) => Scope,
  { capability_key, allow_degraded }: Asked,
  reader: Reader,
  at?: string,
): Promise<Need[]> => {
  const { types } = deps.registry
  const asked = rows.flatMap((row) =>
    requirementsOf(types, row)
      .filter((one) => capability_key === undefined || one.capability_key === capability_key)
      .map((requirement) => ({ row, requirement })),
  )
  const offered = new Map<string, Candidate[]>()
  let pairs = 0
  for (const key of new Set(asked.map(({ requirement }) => requirement.capability_key))) {
    const id = types.capabilityVersions(key)[0]?.id ?? -1
    const seen = accessSql(reader.access, types.topologyIds)
    const candidates = await readOffers(deps, [...openOnly(undefined, at), offers.capability(id), seen], at)
    offered.set(key, candidates)
    pairs += candidates.length * asked.filter(({ requirement }) => requirement.capability_key === key).length
    if (pairs > MAX_PAIRS) throw tooManyNeeds()
  }
  const rids = [...new Set(asked.map(({ row }) => row.rid))]
  const claims = await listClaims(deps.db, rids, usesCapability(types), at)
  const peers = await getResourcesByRid(deps.db, pluck(claims, 'peer_rid'))
  const visible = await visibleOf(deps.db, types, reader.access, peers)
  const claimed = Map.groupBy(claims, ({ rid }) => rid)
  const needs: Need[] = []
  let compared = 0
  for (const { row, requirement } of asked) {
    const candidates = offered.get(requirement.capability_key) ?? []
    compared += candidates.length
    if (compared > PART) {
      await turn()
      compared = 0
    }
    const asker = { resource_id: row.resource_id, scope: scopeOf(row) }
    const wanted = wishOf(requirement, allow_degraded ? FIT_DEGRADED : FIT)
    const matched = matchOffers(candidates, (offer) => mismatchOf(wanted, offer, asker))
    const bound = (claimed.get(row.rid) ?? []).filter((claim) => isBinding(claim, requirement))
    const satisfiable = matched.providers.length >= requirement.min
    const state = bound.length > 0 ? 'bound' : satisfiable ? 'satisfiable' : 'unsatisfied'
    const bound_to = bound.filter(({ peer_rid }) => visible.has(peer_rid))
    needs.push({ ...matched, row, requirement, state, bound_to })
  }
  return needs
}
