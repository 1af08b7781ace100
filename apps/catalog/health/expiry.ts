import { expiredProviders, listOffers, markProvidersSwept, offers } from '../../../db/catalog/providers.ts'
import { getResourcesByRid, lockStates } from '../../../db/catalog/resources/rows.ts'
import { tellCapabilities } from '../capabilities/claims.ts'
import { toldOf } from '../capabilities/declare.ts'
import { usesCapability } from '../capabilities/offers.ts'
import type { CatalogDeps } from '../deps.ts'
import { sweepCause } from './observe.ts'

const SWEEP_BATCH = 200

/**
 * Tells once of each provider that its time ran out (`capability.changed`); that it is stale is worked out at every read.
 * One turn; true when there may be more.
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
