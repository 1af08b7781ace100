import type { Store } from '../graph/store.ts'
import type { Types } from '../packs/registry.ts'
import type { Access } from '../read/access.ts'

/**
 * Whether a caller may see a resource of the store: the same rule as `accessSql` for rows (catalog.md 12). Resources
 * under one parent share the answer, so a hub's ancestors are not climbed once per neighbor.
 */
export const seesOf = (store: Store, access: Access, types: Types): ((rid: number) => boolean) => {
  if (access === 'all') return () => true
  const topology = new Set(types.topologyIds)
  const limits = access.map(({ place_ids, type_ids }) => ({
    places: place_ids.map((id) => store.ridOf(id) ?? -1),
    type_ids: type_ids === null ? null : new Set(type_ids),
  }))
  const named = new Set(limits.flatMap(({ places }) => places))
  const decide = (rid: number): boolean => {
    const way: number[] = []
    for (let at = rid; at !== 0 && way.length < 1000; at = store.parentOf(at)) way.push(at)
    const nowhere = !way.some((step) => topology.has(store.typeOf(step)))
    const type = store.typeOf(rid)
    return limits.some(
      ({ places, type_ids }) =>
        (type_ids === null || type_ids.has(type)) &&
        (places.length === 0 || nowhere || places.every((place) => way.includes(place))),
    )
  }
  const known = new Map<number, boolean>()
  return (rid) => {
    const type = store.typeOf(rid)
    if (topology.has(type) || named.has(rid)) return decide(rid)
    const key = store.parentOf(rid) * 65_536 + type
    let answer = known.get(key)
    if (answer === undefined) {
      answer = decide(rid)
      known.set(key, answer)
    }
    return answer
  }
}
