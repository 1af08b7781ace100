import type { GateSubject } from '../api/types.ts'

type Release = GateSubject['releases'][number]
/** The node's name without its target's, which is before it. */
export const stepOf = ({ name, target_id, step }: Release): string => {
  const rest = target_id === null ? name : name.replace(target_id, '').trim()
  return rest === '' || (target_id !== null && rest === name) ? (step ?? name) : rest
}

/** Released nodes in the order of the plan, in which the subject itself has them unless it is an old one. */
export const inOrder = ({ v, releases }: GateSubject, order: readonly string[]): Release[] => {
  if (v === 2) return releases
  const ranks = new Map(order.map((node_id, rank) => [node_id, rank]))
  return [...releases].sort((a, b) => (ranks.get(a.node_id) ?? 0) - (ranks.get(b.node_id) ?? 0))
}

export type Places = {
  types: readonly { type_key: string; count: number }[]
  regions: readonly string[]
  batches: readonly (number | '…')[]
}

/** Types, regions and sizes of batches, as the digest covers them. Of a subject that is cut the last batch may be too. */
export const placesOf = ({ changes, releases, releases_count }: GateSubject): Places => {
  const inBatch = releases.filter(({ target_id, batch }) => target_id !== null && batch)
  const batches = [...Map.groupBy(inBatch, ({ batch }) => batch).values()].map(
    (members) => new Set(members.map(({ target_id }) => target_id)).size,
  )
  return {
    types: [...Map.groupBy(changes, ({ type_key }) => type_key ?? '')].flatMap(([type_key, { length: count }]) =>
      type_key === '' ? [] : [{ type_key, count }],
    ),
    regions: [...new Set(changes.flatMap(({ region_id }) => region_id ?? []))],
    batches: releases_count ? [...batches.slice(0, -1), '…'] : batches,
  }
}
