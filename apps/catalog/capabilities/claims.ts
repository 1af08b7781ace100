import { heldOf } from '../../../db/catalog/held/rows.ts'
import { wishLock } from '../../../db/catalog/resources/rows.ts'
import type { EdgeRow, LockMode, ResourceRow } from '../../../db/catalog/rows.ts'
import type { Tx } from '../../../db/client.ts'
import type { Provider } from '../../shared/contracts/catalog/capabilities.ts'
import type { RelationshipChange } from '../../shared/contracts/catalog/relationships.ts'
import { AppError, type CodeOf } from '../../shared/errors.ts'
import type { Resolved } from '../command/edges.ts'
import type { StoredRelationshipType, Types } from '../packs/registry.ts'
import { scopesOf } from '../read/access.ts'
import { violated } from '../rules/change.ts'
import { type Mismatch, mismatchOf, type ProviderStatus } from '../rules/matching.ts'
import { heldOffers, matchOffers, type Reading, rankable, usesCapability } from './offers.ts'
import { FIT, FIT_DEGRADED, requirementsOf } from './requirements.ts'

/** The changes to claims, by provider, each with the provider's owner. */
export type Claimed = Map<string, { owner: string; op: 'added' | 'updated' | 'removed' }>

/** Whether edges of this type are claims, so that a change must lock the provider's owner. */
export const isClaim = (relation: Pick<StoredRelationshipType, 'type_key'>): boolean =>
  relation.type_key === 'uses_capability'

/** The error code for the first rule that fails; `unknown` for rules not listed. */
const CODES: Partial<Record<Mismatch['rule'], CodeOf<'invalid_capability'>>> = {
  version: 'version',
  attribute: 'attributes',
  capacity: 'no_capacity',
}

const invalid = (
  code: CodeOf<'invalid_capability'>,
  pointer: string,
  message: string,
  extra: Record<string, unknown> = {},
) =>
  new AppError('invalid_capability', code, `${pointer} ${message}.`, {
    violations: [{ pointer, code, message }],
    extra,
    hint: 'GET /v1/capabilities/providers?requirement_of=<resource>/<requirement>&explain=true lists the providers that match, and why the others do not.',
  })

/**
 * Binds a claim to a provider of its target, under the owner's lock: the provider that the caller names, or the best
 * match. It must satisfy the requirement's version, attributes and scope, and have room, with all earlier changes of the
 * command applied. An existing claim stays claimed and may shrink. Returns the change with provider_id and the required
 * amount in its properties; other changes as they are.
 */
export const bindClaim = async (
  reading: Reading & { db: Tx },
  { at, change, relation, peer }: Resolved,
  own: ResourceRow,
): Promise<RelationshipChange> => {
  if (!relation || !peer || change.op === 'remove' || !isClaim(relation)) return change
  const [from, owner] = change.direction === 'in' ? [peer, own] : [own, peer]
  const asked = askedFor(reading.registry.types, from, change.properties ?? {}, at)
  const held = heldOf(reading.db).edges.get({ src: from.rid, reltype_id: relation.id, dst: owner.rid })
  const until = expiryOf(change.properties ?? {}, `${at}/properties/expires_at`, reading.clock.now())
  const bound = await bind(reading, { asked, from, owner, held, at })
  return { ...change, properties: { ...change.properties, ...bound, ...until } }
}

const MAX_RESERVED_MS = 7 * 86_400_000

/** When a reservation expires, in UTC; a claim without `expires_at` does not expire. */
const expiryOf = ({ expires_at }: Record<string, unknown>, pointer: string, now: Date): { expires_at?: string } => {
  if (typeof expires_at !== 'string') return {}
  const ms = Date.parse(expires_at) - now.getTime()
  if (ms > 0 && ms <= MAX_RESERVED_MS) return { expires_at: new Date(expires_at).toISOString() }
  throw violated([{ pointer, code: 'out_of_range', message: 'must be in the future, by at most 7 days' }])
}

type Claim = ReturnType<typeof askedFor>

/** A claim's requirement: the one that it names, or only room if its type declares none for the capability. */
const askedFor = (types: Types, from: ResourceRow, properties: Record<string, unknown>, at: string) => {
  const capability_key = String(properties.capability_key)
  const requirement_key = String(properties.requirement_key)
  const given = typeof properties.amount === 'number' ? properties.amount : undefined
  if (!types.hasCapability(capability_key))
    throw invalid('unknown', `${at}/properties/capability_key`, `${capability_key} is not a capability`)
  const declared = requirementsOf(types, from)
  const requirement = declared.find((one) => one.requirement_key === requirement_key)
  const rivals = declared.filter((one) => one.capability_key === capability_key)
  if (requirement ? requirement.capability_key !== capability_key : rivals.length > 0) {
    const known = rivals.map((one) => one.requirement_key).join(', ')
    const message = `${requirement_key} is not a requirement of ${from.resource_id} for ${capability_key}${known ? `; it can be ${known}` : ''}`
    throw invalid('unknown', `${at}/properties/requirement_key`, message)
  }
  const least = requirement?.amount ?? null
  if (given !== undefined && least !== null && given < least)
    throw invalid('no_capacity', `${at}/properties/amount`, `is less than ${least}, the amount of the requirement`)
  const amount = given ?? least ?? undefined
  const provider_id = typeof properties.provider_id === 'string' ? properties.provider_id : undefined
  const wish = requirement ?? { version_range: '*', where: {}, scope: 'any' as const, amount: null }
  return { capability_key, requirement_key, provider_id, amount, wish }
}

type Binding = { asked: Claim; from: ResourceRow; owner: ResourceRow; held: EdgeRow | undefined; at: string }

/** Returns the provider and the amount of one claim; 422 with the reasons if no provider fits. */
const bind = async (reading: Reading & { db: Tx }, { asked, from, owner, held, at }: Binding) => {
  const { types } = reading.registry
  const { capability_key, requirement_key, amount, wish } = asked
  const [has, had] = [amount ?? 1, Number(held?.properties.amount ?? 1)]
  const holds = (provider_id: string) => held?.properties.provider_id === provider_id
  const offered = heldOffers(reading.db, types, owner).filter((one) => one.capability_key === capability_key)
  const stays =
    held !== undefined &&
    offered.some((one) => one.provider_id === held.properties.provider_id) &&
    held.properties.requirement_key === requirement_key
  const provider_id = asked.provider_id ?? (stays ? String(held.properties.provider_id) : undefined)
  const bound = (id: string) => ({ provider_id: id, ...(amount !== undefined && { amount }) })
  // An existing claim that does not grow needs no room, even if the offer has changed since.
  if (provider_id !== undefined && stays && holds(provider_id) && has <= had) return bound(provider_id)

  const all = await rankable(reading, offered, reading.clock.now())
  const candidates = all.filter(({ view }) => provider_id === undefined || view.provider_id === provider_id)
  if (candidates.length === 0) {
    const message = provider_id
      ? `${provider_id} is not a provider of ${capability_key} at ${owner.resource_id}`
      : `${owner.resource_id} provides no ${capability_key}`
    throw invalid('unknown', `${at}/properties/provider_id`, message)
  }
  const scopeOf = await scopesOf(reading.db, types, [from])
  const asker = { resource_id: from.resource_id, scope: scopeOf(from) }
  const roomy = candidates.map(({ view, offer }) => ({
    view,
    offer: { ...offer, free: roomFor(types, view, holds(view.provider_id) ? had : undefined) },
  }))
  const matchBy = (statuses: readonly ProviderStatus[]) =>
    matchOffers(roomy, (offer) => mismatchOf({ ...wish, amount: has, statuses }, offer, asker))
  const matched = matchBy(FIT)
  const { providers, rejected, rejected_count } = matched.providers.length > 0 ? matched : matchBy(FIT_DEGRADED)
  const [best] = providers
  if (best) return bound(best.provider_id)
  const [why] = rejected
  const code = (why && CODES[why.rule]) ?? 'unknown'
  const message = `finds no matching ${capability_key} at ${owner.resource_id}: ${why?.rule} is ${JSON.stringify(why?.offered)}, but ${JSON.stringify(why?.wanted)} is required`
  throw invalid(code, at, message, { why_not: rejected, rejected_count })
}

/** A provider's room for one claim, including the claim's own share. */
const roomFor = (types: Types, view: Provider, own: number | undefined): number | null => {
  const { capability_key, version, capacity, free } = view
  if (types.capability(capability_key, version)?.sharing === 'exclusive')
    return own !== undefined || free === 1 ? null : 0
  if (free === null || !capacity || capacity.total === null) return null
  return Math.max(0, capacity.total - Math.max(capacity.reserved - (own ?? 0), capacity.used ?? 0))
}

/** A resource that ends releases its claims. Events then go out for the providers' owners, so they are locked too. */
export const lockClaimed = (tx: Tx, types: Types, rids: readonly string[], locks: Map<string, LockMode>): void => {
  const uses = [usesCapability(types)]
  for (const rid of rids) for (const { dst } of heldOf(tx).edges.from(rid, uses)) wishLock(locks, dst, 'no key update')
}
