import { getResources } from '../../../db/catalog/resources/rows.ts'
import type { Without } from '../../shared/contracts/topology/impact.ts'
import { assessNeeds } from '../capabilities/needs.ts'
import { usesCapability } from '../capabilities/offers.ts'
import type { CatalogDeps } from '../deps.ts'
import type { Store } from '../graph/store.ts'
import { scopesOf } from '../read/access.ts'
import type { Reader } from '../read/lists.ts'
import { restricting } from '../relationships/edges.ts'

/** How many resources that use its capabilities one answer examines. */
const MAX_USERS = 1000

/**
 * The needs that a resource meets, each with the other providers that are left without it, and the resources that
 * prevent its retirement. A provider that the reader may not see does not count as left.
 */
export const readWithout = async (
  deps: CatalogDeps,
  store: Store,
  root: { rid: number; resource_id: string },
  sees: (rid: number) => boolean,
  reader: Reader,
): Promise<Without> => {
  const { types } = deps.registry
  const restricts = new Set(restricting(types))
  const [users, blockers] = [new Set<number>(), new Set<number>()]
  store.eachArc(root.rid, (type, out, peer) => {
    if (out || !store.isOpen(peer)) return
    if (type === usesCapability(types)) users.add(peer)
    if (restricts.has(type)) blockers.add(peer)
  })
  const seen = [...users].filter(sees).map((rid) => store.idOf(rid))
  const rows = await getResources(deps.db, seen.sort().slice(0, MAX_USERS))
  const assessed = await assessNeeds(deps, rows, await scopesOf(deps.db, types, rows), {}, reader)
  const items = assessed
    .filter(({ bound_to }) => bound_to.some(({ peer_id }) => peer_id === root.resource_id))
    .map(({ row, requirement: { requirement_key, capability_key, min }, providers, bound_to }) => {
      const others = new Set([...providers.map((one) => one.resource_id), ...bound_to.map((one) => one.peer_id)])
      others.delete(root.resource_id)
      return {
        resource_id: row.resource_id,
        name: row.name,
        requirement_key,
        capability_key,
        needed: min,
        left: others.size,
      }
    })
    .sort((a, b) => a.left - a.needed - (b.left - b.needed) || (a.resource_id < b.resource_id ? -1 : 1))
  return {
    needs: items,
    unmet: items.filter(({ needed, left }) => left < needed).length,
    hidden: users.size - seen.length,
    cut: seen.length > MAX_USERS,
    prevent_retiring: blockers.size,
  }
}
