import { heldOf } from '../../../db/catalog/held/rows.ts'
import { getResourcesByRid, updateState } from '../../../db/catalog/resources/rows.ts'
import type { ResourceRow } from '../../../db/catalog/rows.ts'
import type { Tx } from '../../../db/client.ts'
import { type Cause, eventOf, partsOf, tell } from '../command/outbox.ts'
import type { Types } from '../packs/registry.ts'
import type { Claimed } from './claims.ts'
import { type ProviderEvent, toldOf } from './declare.ts'
import { heldOffers } from './offers.ts'

/**
 * Emits the current claims on providers (`capability.changed`), for each owner under its lock and with its own number;
 * the owner's version stays. Returns the events of the commanded resource itself, to be sent with its own change.
 * Owners in `leaving` need none: their end implies that nothing more can be claimed.
 */
export const tellClaims = async (
  tx: Tx,
  types: Types,
  claimed: Claimed,
  { own_rid, leaving, cause }: { own_rid: string; leaving?: ReadonlySet<string>; cause: Cause },
): Promise<ProviderEvent[]> => {
  const eventsOf = (owner: ResourceRow) =>
    heldOffers(tx, types, owner).flatMap((row): ProviderEvent[] => {
      const op = claimed.get(row.provider_id)?.op
      const provider = { ...toldOf(row.capability_key, row), reserved: row.reserved }
      return op === undefined ? [] : [{ provider, change: op === 'removed' ? 'released' : 'claimed' }]
    })
  const owners = new Set([...claimed.values()].map(({ owner }) => owner))
  const others = [...owners].filter((rid) => rid !== own_rid && !leaving?.has(rid))
  for (const owner of await getResourcesByRid(tx, others)) {
    const events = eventsOf(owner)
    if (events.length > 0) await tellCapabilities(tx, types, owner, events, cause)
  }
  return leaving?.has(own_rid) || !owners.has(own_rid) ? [] : eventsOf(heldOf(tx).rowOf(own_rid))
}

/** Emits the changes to an owner's capabilities, each event with its own number. */
export const tellCapabilities = async (
  tx: Tx,
  types: Types,
  owner: ResourceRow,
  told: readonly ProviderEvent[],
  cause: Cause,
): Promise<void> => {
  const capability_revision = owner.capability_revision + partsOf(told).length
  await updateState(tx, owner.rid, { capability_revision })
  const subject = { ...owner, type_key: types.keyOf(owner.type_id), capability_revision }
  await tell(tx, ...capabilityEventsOf(cause, subject, owner.version, told))
}

type Owner = { resource_id: string; type_key: string; version: number; generation: number; capability_revision: number }

/** The events of one change to offers or claims: one, or one per part, of which the last has the current number. */
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
