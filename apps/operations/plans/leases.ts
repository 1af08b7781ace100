import type { Queryable } from '../../../db/client.ts'
import type { Blocker } from '../../../db/operations/leases/rows.ts'
import type { Coming } from '../../../db/operations/plans/planning.ts'
import type { BlockedOn } from '../../shared/contracts/operations/graph.ts'
import type { PlanView } from '../../shared/contracts/operations/plans.ts'
import { pick, pluck } from '../../shared/data/pick.ts'
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

/** Who will hold these resources once it may, each operation once; one that this person may not see, without its wait. */
export const comingFor = async (db: Queryable, viewer: Viewer, coming: readonly Coming[]): Promise<Conflict[]> => {
  const seen = await seenOperations(db, viewer, pluck(coming, 'operation_id'))
  return coming.map(({ operation_id, title, resource_id, count, waits_for }) => {
    const held = count > 1 ? `${resource_id} and ${count - 1} more` : resource_id
    return seen.has(operation_id)
      ? {
          ...{ kind: 'waits', id: operation_id, resource_id, title },
          message: `"${title}" is waiting for ${waits_for}, and will then hold ${held}.`,
        }
      : {
          ...{ kind: 'waits', id: '', resource_id, title: null },
          message: `Another operation is waiting, and will then hold ${held}.`,
        }
  })
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

/** What is stored of leases for all readers: in a row's `blocked_on`, in an event's `data`. */
export type Waits = { blocked_on?: BlockedOn[]; blockers?: Blocker[] }

/** The same rows or events, without the names of other operations that this person may not see. */
export const withoutHidden = async <T extends Waits>(
  db: Queryable,
  viewer: Viewer,
  rows: readonly T[],
): Promise<T[]> => {
  const ids = rows.flatMap(({ blocked_on = [], blockers = [] }) => [
    ...blocked_on.flatMap(holderIn),
    ...pluck(blockers, 'operation_id'),
  ])
  const seen = await seenOperations(db, viewer, [...new Set(ids)])
  const isSeen = (id: string) => seen.has(id)
  return rows.map((row) => ({
    ...row,
    ...(row.blocked_on && {
      blocked_on: row.blocked_on.map((one) => (holderIn(one).every(isSeen) ? one : nameless(one))),
    }),
    ...(row.blockers && {
      blockers: row.blockers.map((one) => (isSeen(one.operation_id) ? one : pick(one, 'resource_id', 'mode'))),
    }),
  }))
}

const holderIn = ({ kind, href = '' }: BlockedOn): string[] =>
  kind === 'lease' && href !== '' ? [href.slice(href.lastIndexOf('/') + 1)] : []

const nameless = ({ href: _, ...one }: BlockedOn): BlockedOn => ({
  ...one,
  message: `Another operation holds or waits for ${one.id}.`,
})
