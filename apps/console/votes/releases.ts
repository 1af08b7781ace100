import type { GateSubject } from '../api/types.ts'

type Release = GateSubject['releases'][number]
/** The node's name without the target's name, which is shown before it. */
export const stepOf = ({ name, target_id }: Release): string =>
  target_id === null ? name : name.replace(target_id, '').trim() || name

/** Released nodes in plan order. */
export const inOrder = (releases: readonly Release[], order: readonly string[]): Release[] => {
  const ranks = new Map(order.map((node_id, rank) => [node_id, rank]))
  return [...releases].sort((a, b) => (ranks.get(a.node_id) ?? 0) - (ranks.get(b.node_id) ?? 0))
}
