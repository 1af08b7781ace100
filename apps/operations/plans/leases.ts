import type { Queryable } from '../../../db/client.ts'
import type { Blocker } from '../../../db/operations/leases/rows.ts'
import type { PlanView } from '../../shared/contracts/operations/plans.ts'
import { pluck } from '../../shared/data/pick.ts'
import { AppError } from '../../shared/errors.ts'
import { seenOperations, type Viewer } from '../policies/authority.ts'

type Conflict = PlanView['conflicts'][number]

/** Who holds needed leases, or waits for them longer; of an operation that this person may not see, only that it does. */
export const holdersFor = async (
  db: Queryable,
  viewer: Viewer | undefined,
  blockers: readonly Blocker[],
): Promise<Conflict[]> => {
  const ids = pluck(blockers, 'operation_id')
  const seen = viewer ? await seenOperations(db, viewer, ids) : new Set(ids)
  const conflicts = blockers.map(({ operation_id, resource_id, ...holder }) => {
    const [id, title] = seen.has(operation_id) ? [operation_id, holder.title] : ['', null]
    const who = title === null ? 'Another operation' : `"${title}"`
    return { kind: 'lease', id, resource_id, title, message: `${who} holds ${resource_id}.` }
  })
  return [...new Map(conflicts.map((one) => [`${one.id} ${one.message}`, one])).values()]
}

/** Refuses if another operation holds a needed lease, or has waited for it longer. */
export const refuseLeaseHeld = async (
  db: Queryable,
  viewer: Viewer | undefined,
  blockers: readonly Blocker[],
): Promise<void> => {
  const [first, ...more] = await holdersFor(db, viewer, blockers)
  if (first === undefined) return
  const detail = more.length > 0 ? `${first.message.slice(0, -1)} and ${more.length} more.` : first.message
  throw new AppError('plan_locked', 'resource_lease_held', detail, {
    extra: {
      blockers: [first, ...more].map(({ kind, id: operation_id, resource_id: id, title, message }) => ({
        ...{ kind, id, message },
        ...(title !== null && { operation_id, title, href: `/v1/operations/${operation_id}` }),
      })),
    },
  })
}
