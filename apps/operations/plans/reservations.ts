import type { Queryable } from '../../../db/client.ts'
import { type HeldClaim, listClaims } from '../../../db/operations/plans/planning.ts'
import type { PlanNode } from '../../shared/contracts/operations/graph.ts'
import { isObject } from '../../shared/data/pointer.ts'
import { AppError } from '../../shared/errors.ts'

/** A node that confirms a reservation of its target: it relies on capacity held by the claim since before the plan. */
type Reliance = { from_id: string; to_id: string }

const CLAIM = 'uses_capability'

/**
 * Refuses nodes that are to confirm a reservation which is no longer held, because it ended or expired. Someone else
 * may have that capacity, and the catalog would refuse the confirmation only after the work is done.
 */
export const refuseLost = async (db: Queryable, nodes: readonly PlanNode[], at: string): Promise<void> => {
  const needed = nodes.flatMap(reliancesOf)
  if (needed.length === 0) return
  const held = await listClaims(db, CLAIM, [...new Set(needed.map(({ from_id }) => from_id))])
  const lost = needed.find(({ from_id, to_id }) => !held.some((claim) => holds(claim, from_id, to_id, at)))
  if (!lost) return
  throw new AppError(
    'stale_catalog_projection',
    'reservation_lost',
    `The reservation of "${lost.from_id}" at "${lost.to_id}" has ended, so others can use its capacity.`,
    { hint: 'Reserve the room again in the catalog, then send the same request.', extra: lost },
  )
}

export const isLost = (error: unknown): boolean => error instanceof AppError && error.code === 'reservation_lost'

const holds = ({ from_id, to_id, expires_at }: HeldClaim, from: string, to: string, at: string): boolean =>
  from_id === from && to_id === to && (expires_at === null || Date.parse(expires_at) > Date.parse(at))

const reliancesOf = ({ target_id, catalog }: PlanNode): Reliance[] => {
  const changes = catalog?.relationship_changes
  if (target_id === undefined || !Array.isArray(changes)) return []
  return changes.flatMap((change) =>
    isObject(change) && change.op === 'update' && change.type_key === CLAIM && typeof change.target_id === 'string'
      ? [{ from_id: target_id, to_id: change.target_id }]
      : [],
  )
}
