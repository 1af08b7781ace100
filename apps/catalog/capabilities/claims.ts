import { claimedOwners, listOffers, moveCapabilities, type OfferRow, offers } from '../../../db/catalog/providers.ts'
import { getResourcesByRid, type LockMode, wishLock } from '../../../db/catalog/resources/rows.ts'
import type { Tx } from '../../../db/client.ts'
import { AppError, type CodeOf } from '../../shared/errors.ts'
import { type Cause, eventOf, tell, partsOf } from '../command/outbox.ts'
import type { StoredRelationshipType, Types } from '../packs/registry.ts'
import type { EdgePlan } from '../relationships/edges.ts'
import { freeOf } from '../rules/matching.ts'
import { type ProviderEvent, toldOf } from './declare.ts'
import { usesCapability } from './offers.ts'

/** An edge that claims what a provider offers: its `to` end owns the provider that the properties name. */
type Claim = { at: string; provider_id: string; capability_key: string; owner_rid: string }
/** What became of the claims on providers, by provider. */
export type Claimed = Map<string, 'added' | 'updated' | 'removed'>
export type ClaimCheck = { claims: Claim[]; before: Map<string, OfferRow> }

/** Whether changes of these edges claim something, so that the owner of the provider is locked for them. */
export const isClaim = (relation: Pick<StoredRelationshipType, 'type_key'>): boolean =>
  relation.type_key === 'uses_capability'

const claimsIn = (plan: EdgePlan, own_rid: string): Claim[] =>
  plan.resolved.flatMap(({ at, change, relation, peer }) => {
    const { provider_id, capability_key } = change.properties ?? {}
    if (!relation || !peer || change.op === 'remove' || !isClaim(relation) || typeof provider_id !== 'string') return []
    const owner_rid = change.direction === 'in' ? own_rid : peer.rid
    return [{ at, provider_id, capability_key: String(capability_key), owner_rid }]
  })

const readAll = async (tx: Tx, types: Types, claims: readonly Claim[]): Promise<Map<string, OfferRow>> => {
  const ids = [...new Set(claims.map(({ provider_id }) => provider_id))]
  if (ids.length === 0) return new Map()
  const rows = await listOffers(tx, usesCapability(types), [offers.ids(ids), offers.open], ids.length)
  return new Map(rows.map((row) => [row.provider_id, row]))
}

const invalid = (code: CodeOf<'invalid_capability'>, pointer: string, message: string) =>
  new AppError('invalid_capability', code, `${pointer} ${message}.`, {
    violations: [{ pointer, code, message }],
    hint: 'GET /v1/capabilities/providers lists what is offered and free.',
  })

/** Before edges change, under the locks of the owners: what is claimed already. Refuses claims on what is not offered. */
export const readClaims = async (tx: Tx, types: Types, plan: EdgePlan, own_rid: string): Promise<ClaimCheck> => {
  const claims = claimsIn(plan, own_rid)
  const before = await readAll(tx, types, claims)
  for (const { at, provider_id, capability_key, owner_rid } of claims) {
    const row = before.get(provider_id)
    if (row?.rid !== owner_rid)
      throw invalid('unknown', `${at}/properties/provider_id`, `${provider_id} is not a provider of that resource`)
    if (row.capability_key !== capability_key)
      throw invalid('unknown', `${at}/properties/capability_key`, `${provider_id} provides ${row.capability_key}`)
  }
  return { claims, before }
}

/**
 * After edges changed: what was claimed in addition must have been free (catalog.md 5). An exclusive provider takes one
 * claim. Shrinking a claim, or capacity below the claims, is no refusal.
 */
export const checkClaims = async (tx: Tx, types: Types, { claims, before }: ClaimCheck): Promise<void> => {
  const after = await readAll(tx, types, claims)
  for (const { at, provider_id } of claims) {
    const [was, is] = [before.get(provider_id), after.get(provider_id)]
    if (!was || !is) continue
    const sharing = types.capability(is.capability_key, is.version)?.sharing ?? 'shared'
    const more = sharing === 'exclusive' ? is.claims - was.claims : is.reserved - was.reserved
    const free = freeOf(sharing, was.capacity, { reserved: was.reserved, n: was.claims })
    if (more > 0 && free !== null && more > free)
      throw invalid('no_capacity', at, `asks for ${more} more of ${provider_id}, which has ${free} free`)
  }
}

/** What ends releases its claims: their owners are told, so they are locked with it. */
export const lockClaimed = async (tx: Tx, types: Types, rids: readonly string[], locks: Map<string, LockMode>) => {
  for (const owner of await claimedOwners(tx, rids, usesCapability(types))) wishLock(locks, owner, 'no key update')
}

/**
 * Tells what is claimed of providers now (`capability.changed`), each owner under its lock with a number of its own; its
 * version stays. What the commanded resource itself owns is given back, to be told with its own change; `leaving` says
 * by its end that nothing can be claimed any more.
 */
export const tellClaims = async (
  tx: Tx,
  types: Types,
  claimed: Claimed,
  { own_rid, leaving, cause }: { own_rid: string; leaving?: ReadonlySet<string>; cause: Cause },
): Promise<ProviderEvent[]> => {
  if (claimed.size === 0) return []
  const rows = await listOffers(tx, usesCapability(types), [offers.ids([...claimed.keys()]), offers.open], claimed.size)
  const byOwner = Map.groupBy(rows, ({ rid }) => rid)
  const eventsOf = (rid: string) =>
    (byOwner.get(rid) ?? []).map((row): ProviderEvent => {
      const change = claimed.get(row.provider_id) === 'removed' ? 'released' : 'claimed'
      return { provider: { ...toldOf(row.capability_key, row), reserved: row.reserved }, change }
    })
  const others = [...byOwner.keys()].filter((rid) => rid !== own_rid && !leaving?.has(rid))
  for (const owner of await getResourcesByRid(tx, others)) {
    const told = eventsOf(owner.rid)
    const capability_revision = await moveCapabilities(tx, owner.rid, partsOf(told).length)
    const subject = { ...owner, type_key: types.keyOf(owner.type_id), capability_revision }
    await tell(tx, ...capabilityEventsOf(cause, subject, owner.version, told))
  }
  return leaving?.has(own_rid) ? [] : eventsOf(own_rid)
}

type Owner = { resource_id: string; type_key: string; version: number; generation: number; capability_revision: number }

/**
 * The events of one change of what a resource offers, or of what is claimed of it: one, or as many as it takes parts. The
 * last has the number that the resource is at.
 */
export const capabilityEventsOf = (
  cause: Cause,
  { capability_revision, ...owner }: Owner,
  previous_version: number | null,
  providers: readonly ProviderEvent[],
) => {
  const parts = partsOf(providers)
  return parts.map((part, index) =>
    eventOf(cause, owner, previous_version, {
      type: 'capability.changed',
      agg_type: 'capability',
      agg_id: owner.resource_id,
      agg_version: capability_revision - parts.length + 1 + index,
      payload: { providers: part },
    }),
  )
}
