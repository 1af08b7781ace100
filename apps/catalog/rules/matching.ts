import semver from 'semver'
import type { Provider, Rejection } from '../../shared/contracts/catalog/capabilities.ts'
import type { Scope } from '../../shared/contracts/catalog/resources.ts'
import { equalJson } from '../../shared/data/pointer.ts'
import { isObject, valueAt } from '../document/pointers.ts'

export type ProviderStatus = 'available' | 'degraded' | 'stale' | 'withdrawn'

/** What one provider can offer now, as far as matching needs it (catalog.md 5). */
export type Offer = Pick<Provider, 'resource_id' | 'version' | 'attributes' | 'status' | 'scope' | 'free'> & {
  match_rules: Record<string, string>
}

export type MatchScope = 'any' | 'same_region' | 'same_datacenter' | 'same_segment'
export type Wanted = {
  version_range: string
  where: Record<string, unknown>
  /** `null`: any capacity matches, even none. */
  amount: number | null
  scope: MatchScope
  statuses: readonly ProviderStatus[]
}
/** The requesting resource, if any. A provider may have to be near it, and is never the resource itself. */
export type Asker = { resource_id: string; scope: Scope }

export type Mismatch = Omit<Rejection, 'provider_id' | 'resource_id'>

/** The first rule that an offer fails, or `undefined`: status, version, scope, attributes as asked, capacity, self. */
export const mismatchOf = (wanted: Wanted, offer: Offer, asker: Asker | undefined): Mismatch | undefined => {
  if (!wanted.statuses.includes(offer.status)) return { rule: 'status', wanted: wanted.statuses, offered: offer.status }
  if (!satisfies(offer.version, wanted.version_range))
    return { rule: 'version', wanted: wanted.version_range, offered: offer.version }
  const far = asker && scopeMismatch(wanted.scope, asker.scope, offer.scope)
  if (far) return far
  for (const [attribute, value] of Object.entries(wanted.where)) {
    const match_rule = Object.hasOwn(offer.match_rules, attribute) ? (offer.match_rules[attribute] ?? 'eq') : 'eq'
    const offered = Object.hasOwn(offer.attributes, attribute) ? offer.attributes[attribute] : undefined
    if (!meets(match_rule, value, offered))
      return { rule: 'attribute', attribute, match_rule, wanted: value, offered: offered ?? null }
  }
  if (offer.free !== null && wanted.amount !== null && wanted.amount > offer.free)
    return { rule: 'capacity', wanted: wanted.amount, offered: offer.free }
  if (asker?.resource_id === offer.resource_id)
    return { rule: 'self', wanted: 'another resource', offered: offer.resource_id }
  return undefined
}

/** Answers for versions and ranges, of which packs define few: parsing them takes most of the time of a comparison. */
const known = new Map<string, boolean>()
const MAX_KNOWN = 10_000

const satisfies = (version: string, range: string): boolean => {
  const key = `${version} ${range}`
  const found = known.get(key) ?? semver.satisfies(version, range)
  if (known.size >= MAX_KNOWN) known.clear()
  known.set(key, found)
  return found
}

const SCOPES = { same_region: 'region_id', same_datacenter: 'datacenter_id', same_segment: 'segment_id' } as const

const scopeMismatch = (scope: MatchScope, mine: Scope, theirs: Scope): Mismatch | undefined => {
  if (scope === 'any') return undefined
  const level = SCOPES[scope]
  // A resource without a place is near nothing.
  return mine[level] !== null && mine[level] === theirs[level]
    ? undefined
    : { rule: 'scope', wanted: { [level]: mine[level] }, offered: { [level]: theirs[level] } }
}

/** Whether an offered value satisfies a wanted one by a match rule of the definition. A missing value never does. */
export const meets = (rule: string, wanted: unknown, offered: unknown): boolean => {
  if (offered === undefined) return false
  if (rule === 'gte' || rule === 'lte') {
    if (typeof offered !== 'number' || typeof wanted !== 'number') return false
    return rule === 'gte' ? offered >= wanted : offered <= wanted
  }
  if (rule === 'superset') {
    const all = Array.isArray(wanted) ? wanted : [wanted]
    return Array.isArray(offered) && all.every((item) => offered.some((one) => equalJson(one, item)))
  }
  if (rule === 'semver') {
    const version = typeof offered === 'string' ? (semver.valid(offered) ?? semver.coerce(offered)?.version) : undefined
    return typeof wanted === 'string' && version !== undefined && satisfies(version, wanted)
  }
  return equalJson(offered, wanted)
}

/** The capacity left to claim: an exclusive provider once, a counted one up to its total; null is unlimited. */
export const freeOf = (
  sharing: string,
  capacity: { total?: number; used?: number } | null,
  claims: { reserved: number; n: number },
): number | null => {
  if (sharing === 'exclusive') return claims.n > 0 ? 0 : 1
  if (capacity?.total === undefined) return null
  return Math.max(0, capacity.total - Math.max(claims.reserved, capacity.used ?? 0))
}

/** The effective status of a provider, the first that applies, and the reason (catalog.md 5). */
export const statusOf = (
  provider: { withdrawn: boolean; expires_at: string | null },
  resource: { is_open: boolean; lifecycle_status: string; health: { status: string; reason: string } },
  now: Date,
): { status: ProviderStatus; status_reason: string } => {
  if (!resource.is_open) return { status: 'withdrawn', status_reason: 'resource_retired' }
  if (provider.withdrawn) return { status: 'withdrawn', status_reason: 'removed' }
  if (provider.expires_at !== null && new Date(provider.expires_at) <= now)
    return { status: 'stale', status_reason: 'expired' }
  const { lifecycle_status, health } = resource
  if (lifecycle_status !== 'active' && lifecycle_status !== 'updating')
    return { status: 'degraded', status_reason: `lifecycle_${lifecycle_status}` }
  if (health.status === 'degraded' || health.status === 'unhealthy')
    return { status: 'degraded', status_reason: `health_${health.status}` }
  if (health.reason === 'expired') return { status: 'degraded', status_reason: 'health_expired' }
  return { status: 'available', status_reason: 'ok' }
}

/** 0 same segment, 1 same data center, 2 same region, 3 elsewhere. */
export const distanceOf = (a: Scope, b: Scope): number => {
  const same = (level: keyof Scope) => a[level] !== null && a[level] === b[level]
  return same('segment_id') ? 0 : same('datacenter_id') ? 1 : same('region_id') ? 2 : 3
}

/**
 * The wanted values of a requirement for one resource: `{"$from": "target/desired_state/…"}` is read from it. A value
 * that the resource lacks is not required.
 */
export const fillIn = (where: Record<string, unknown>, target: object): Record<string, unknown> => {
  const filled = Object.entries(where).flatMap(([name, value]): [string, unknown][] => {
    const found = fillOne(value, target)
    return found === undefined ? [] : [[name, found]]
  })
  return Object.fromEntries(filled)
}

export const fillOne = (value: unknown, target: object): unknown => {
  if (!isObject(value) || typeof value.$from !== 'string') return value
  return valueAt(target, value.$from.replace(/^target/, ''))
}
