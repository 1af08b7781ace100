import type { SQL } from 'drizzle-orm'
import { heldOf } from '../../../db/catalog/held/rows.ts'
import { type ClaimRow, listOffers, type OfferRow } from '../../../db/catalog/providers.ts'
import type { ResourceRow } from '../../../db/catalog/rows.ts'
import type { Queryable, Tx } from '../../../db/client.ts'
import type { Provider, Rejection } from '../../shared/contracts/catalog/capabilities.ts'
import type { Uses } from '../deps.ts'
import type { Types } from '../packs/registry.ts'
import { placedThen, scopesOf } from '../read/access.ts'
import { timeOrNull } from '../read/documents.ts'
import { tooExpensive } from '../read/expensive.ts'
import { healthOf } from '../read/health.ts'
import { freeOf, type Mismatch, type Offer, statusOf } from '../rules/matching.ts'

/** How many providers one question may rank. */
const MAX_CANDIDATES = 20_000
const MAX_REASONS = 20

/** The relationship type of claims, defined by pack core. */
export const usesCapability = (types: Types): number => types.relationship('uses_capability')?.id ?? -1

/** A provider as read now: its view, and the members that matching needs. */
export type Candidate = { view: Provider; offer: Offer }

/** What reading offers requires; `db` may be a command's transaction. */
export type Reading = Uses<'registry' | 'clock'> & { db: Queryable }

/** Whether a claim satisfies a requirement: it names the requirement and an existing offer of that capability. */
export const isBinding = (
  { properties, offered }: Pick<ClaimRow, 'properties' | 'offered'>,
  requirement: { requirement_key: string; capability_key: string },
): boolean => properties.requirement_key === requirement.requirement_key && offered === requirement.capability_key

/** Providers under these conditions, from truth, now or at a given time; 422 if there are too many to rank. */
export const readOffers = async (deps: Reading, where: readonly SQL[], at?: string): Promise<Candidate[]> => {
  const { types } = deps.registry
  const found = await listOffers(deps.db, usesCapability(types), where, MAX_CANDIDATES + 1, at)
  const rows = at === undefined ? found : (await placedThen(deps.db, types, found, at)).map(asThen(types))
  if (rows.length > MAX_CANDIDATES) {
    throw tooExpensive(`More than ${MAX_CANDIDATES} providers match.`, 'Narrow by capability_key and region_id.')
  }
  return rankable(deps, rows, at === undefined ? deps.clock.now() : new Date(at))
}

/** The offers of an owner, in a transaction that holds it. */
export const heldOffers = (tx: Tx, types: Types, owner: ResourceRow): OfferRow[] => {
  const held = heldOf(tx).offers
  return held.of(owner.rid).map((offer) => ({ ...owner, ...offer, ...held.claimed(offer, usesCapability(types)) }))
}

/** Offers with the members that matching needs, the best first. */
export const rankable = async (deps: Reading, rows: readonly OfferRow[], now: Date): Promise<Candidate[]> => {
  const { types } = deps.registry
  const scopeOf = await scopesOf(deps.db, types, rows)
  const health = await healthOf(deps.db, rows, now)
  return rows.map((row) => candidateOf(row, { types, now, scope: scopeOf(row), health })).sort(byRank)
}

/** A past resource counts as it was then: open unless its lifecycle had ended. */
const asThen =
  (types: Types) =>
  (row: OfferRow): OfferRow => ({ ...row, is_open: !types.ended.has(`${row.type_id} ${row.lifecycle_status}`) })

type Known = { types: Types; now: Date; scope: Provider['scope']; health: Awaited<ReturnType<typeof healthOf>> }

const candidateOf = (row: OfferRow, { types, now, scope, health }: Known): Candidate => {
  const definition = types.capability(row.capability_key, row.version)
  const own = health.get(row.rid) ?? { status: row.health_status, reason: row.health_reason }
  const withdrawn = row.withdrawn_at !== null
  const claims = { reserved: row.reserved, n: row.claims }
  const { total, used } = row.capacity ?? {}
  const free = freeOf(definition?.sharing ?? 'shared', row.capacity, claims)
  const status = statusOf({ withdrawn, expires_at: row.expires_at }, { ...row, health: own }, now)
  const capacity = { total: total ?? null, reserved: row.reserved, used: used ?? null, unit: definition?.unit ?? null }
  const view: Provider = {
    provider_id: row.provider_id,
    resource_id: row.resource_id,
    type_key: types.keyOf(row.type_id),
    capability_key: row.capability_key,
    version: row.version,
    attributes: row.attributes,
    capacity: row.capacity === null && row.claims === 0 ? null : capacity,
    free,
    overcommitted: total !== undefined && row.reserved > total,
    ...status,
    priority: row.priority,
    expires_at: timeOrNull(row.expires_at),
    last_command_id: row.last_command_id,
    rev: row.rev,
    scope,
  }
  return { view, offer: { ...view, match_rules: definition?.match_rules ?? {} } }
}

export type Matched = { providers: Provider[]; rejected: Rejection[]; rejected_count: Record<string, number> }

/** Splits ranked candidates into those that match and those that do not, with the first reasons and the counts of all. */
export const matchOffers = (
  candidates: readonly Candidate[],
  refuse: (offer: Offer) => Mismatch | undefined,
): Matched => {
  const matched: Matched = { providers: [], rejected: [], rejected_count: {} }
  for (const { view, offer } of candidates) {
    const mismatch = refuse(offer)
    if (!mismatch) {
      matched.providers.push(view)
      continue
    }
    matched.rejected_count[mismatch.rule] = (matched.rejected_count[mismatch.rule] ?? 0) + 1
    const { provider_id, resource_id } = view
    if (matched.rejected.length < MAX_REASONS) matched.rejected.push({ provider_id, resource_id, ...mismatch })
  }
  return matched
}

/** Orders by priority, then most free capacity, then id (catalog.md 5, "Matching"). */
const byRank = ({ view: a }: Candidate, { view: b }: Candidate): number => {
  const free = (view: Provider) => view.free ?? Number.POSITIVE_INFINITY
  if (a.priority !== b.priority) return a.priority - b.priority
  if (free(a) !== free(b)) return free(a) > free(b) ? -1 : 1
  if (a.resource_id !== b.resource_id) return a.resource_id < b.resource_id ? -1 : 1
  return a.provider_id < b.provider_id ? -1 : 1
}
