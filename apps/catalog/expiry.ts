import { heldOf } from '../../db/catalog/held/rows.ts'
import { expiredClaims, expiredProviders, listOffers, markProvidersSwept, offers } from '../../db/catalog/providers.ts'
import { getResourcesByRid, lockStates } from '../../db/catalog/resources/rows.ts'
import type { Tx } from '../../db/client.ts'
import { tellCapabilities } from './capabilities/claims.ts'
import { toldOf } from './capabilities/declare.ts'
import { usesCapability } from './capabilities/offers.ts'
import { makeHere } from './changes/each.ts'
import type { CatalogDeps } from './deps.ts'
import { sweepCause } from './health/observe.ts'
import { lockResource } from './resources/lock.ts'
import { applyChange } from './resources/write.ts'

const SWEEP_BATCH = 200

/**
 * Emits once for each provider that it expired (`capability.changed`); every read computes staleness itself. One turn;
 * returns true if there may be more.
 */
export const sweepProviders = async (deps: CatalogDeps): Promise<boolean> => {
  const { types } = deps.registry
  const now = deps.clock.now().toISOString()
  const rids = await expiredProviders(deps.db, now, SWEEP_BATCH)
  for (const rid of rids) {
    await deps.db.transaction(async (tx) => {
      await lockStates(tx, new Map([[rid, 'no key update']]))
      const ids = await markProvidersSwept(tx, rid, now)
      const [owner] = await getResourcesByRid(tx, [rid])
      if (!owner || ids.length === 0) return
      const rows = await listOffers(tx, usesCapability(types), [offers.ids(ids)], ids.length)
      const providers = rows.map((row) => ({ provider: toldOf(row.capability_key, row), change: 'expired' as const }))
      await tellCapabilities(tx, types, owner, providers, sweepCause(now, 'capabilities.sweep'))
    })
  }
  if (rids.length > 0) deps.wake()
  return rids.length === SWEEP_BATCH
}

/** Ends expired reservations, each as a change of the resource that made it. One turn; true if there may be more. */
export const sweepReservations = async (deps: CatalogDeps): Promise<boolean> => {
  const { types } = deps.registry
  const now = deps.clock.now().toISOString()
  const reltype_id = usesCapability(types)
  const expired = await expiredClaims(deps.db, reltype_id, now, SWEEP_BATCH)
  for (const { src, dst, resource_id, target_id } of expired) {
    const relationship_changes = [{ op: 'remove' as const, type_key: 'uses_capability', target_id }]
    const run = async (tx: Tx) => {
      const locked = await lockResource(tx, types, resource_id, { relationship_changes, read: 'all' })
      // It may have been confirmed or ended meanwhile.
      const until = heldOf(tx).edges.get({ src, reltype_id, dst })?.properties.expires_at
      if (typeof until === 'string' && until <= now)
        await applyChange(tx, deps, locked, {}, sweepCause(now, 'reservations.sweep'))
    }
    const change = { wish: { resource_id, edges: relationship_changes }, run }
    // A reservation that cannot be ended does not block the rest.
    await deps.db
      .transaction((tx) => makeHere(tx, types, change))
      .catch((err) => deps.telemetry.log.warn({ err, resource_id, target_id }, 'a reservation could not be ended'))
  }
  if (expired.length > 0) deps.wake()
  return expired.length === SWEEP_BATCH
}
