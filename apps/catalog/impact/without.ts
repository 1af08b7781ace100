import { listClaims, offers } from '../../../db/catalog/providers.ts'
import { getResources } from '../../../db/catalog/resources/rows.ts'
import type { ResourceRow } from '../../../db/catalog/rows.ts'
import type { Without } from '../../shared/contracts/topology/impact.ts'
import { pluck } from '../../shared/data/pick.ts'
import { AppError } from '../../shared/errors.ts'
import { assessNeeds, type Need } from '../capabilities/needs.ts'
import { readOffers, usesCapability } from '../capabilities/offers.ts'
import { FIT } from '../capabilities/requirements.ts'
import type { CatalogDeps } from '../deps.ts'
import { seesOf } from '../drawing/sees.ts'
import type { Store } from '../graph/store.ts'
import { scopesOf } from '../read/access.ts'
import { tooExpensive } from '../read/expensive.ts'
import type { Reader } from '../read/lists.ts'
import { restricting } from '../relationships/edges.ts'

/** How many resources that use its capabilities one answer examines. */
const MAX_USERS = 1000

type Root = { rid: number; resource_id: string }

/**
 * The needs that a resource meets, each with the other available providers that are left without it, and the resources
 * that prevent its retirement. A provider that the reader may not see does not count as left. Each need is judged alone.
 */
export const readWithout = async (deps: CatalogDeps, store: Store, root: Root, reader: Reader): Promise<Without> => {
  const { types } = deps.registry
  const restricts = new Set(restricting(types))
  const [users, blockers] = [new Set<number>(), new Set<number>()]
  store.eachArc(root.rid, (type, out, peer) => {
    if (out || !store.isOpen(peer)) return
    if (type === usesCapability(types)) users.add(peer)
    if (restricts.has(type)) blockers.add(peer)
  })
  const seen = [...users].filter(seesOf(store, reader.access, types)).map((rid) => store.idOf(rid))
  const rows = await getResources(deps.db, seen.sort().slice(0, MAX_USERS))
  const needs = await needsMet(deps, rows, root, reader).catch((error) => {
    if (!(error instanceof AppError) || error.code !== 'query_too_expensive') throw error
    const hint = 'Leave assume out to read its dependents alone.'
    throw tooExpensive('Too many providers could meet the needs of its users.', hint, error)
  })
  const items = needs
    .map(({ row, requirement: { requirement_key, capability_key, min }, providers, bound_to }) => {
      const others = new Set([...pluck(providers, 'resource_id'), ...pluck(bound_to, 'peer_id')])
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

/** The needs whose claims name the resource, each with its claims on available providers only. */
const needsMet = async (deps: CatalogDeps, rows: readonly ResourceRow[], { resource_id }: Root, reader: Reader) => {
  const { db, registry } = deps
  const claims = await listClaims(db, pluck(rows, 'rid'), usesCapability(registry.types))
  // Other capabilities that its users need may have far more providers.
  const met = claims.filter(({ peer_id, offered }) => peer_id === resource_id && offered !== null)
  const scopeOf = await scopesOf(db, registry.types, rows)
  const needs: Need[] = []
  for (const capability_key of new Set(met.map(({ offered }) => offered as string))) {
    const assessed = await assessNeeds(deps, rows, scopeOf, { capability_key }, reader)
    needs.push(...assessed.filter(({ bound_to }) => bound_to.some(({ peer_id }) => peer_id === resource_id)))
  }
  const named = needs.flatMap(({ bound_to }) => bound_to.map(({ properties }) => String(properties.provider_id)))
  const held = await readOffers(deps, [offers.open, offers.ids([...new Set(named)])])
  const fit = new Set(held.filter(({ offer }) => FIT.includes(offer.status)).map(({ view }) => view.provider_id))
  return needs.map((need) => ({
    ...need,
    bound_to: need.bound_to.filter(({ properties }) => fit.has(String(properties.provider_id))),
  }))
}
