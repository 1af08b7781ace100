import { listOffers, type OfferRow, offers } from '../../db/catalog/providers.ts'
import type { Tx } from '../../db/client.ts'
import { AppError } from '../shared/errors.ts'
import type { EdgePlan } from './edges.service.ts'
import { usesCapability } from './offers.service.ts'
import { freeOf } from './rules/matching.ts'
import type { StoredRelationshipType, Types } from './types.registry.ts'

/** An edge that claims what a provider offers: its `to` end owns the provider that the properties name. */
type Claim = { at: string; provider_id: string; capability_key: string; owner_rid: string }
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

const invalid = (code: string, pointer: string, message: string) =>
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
