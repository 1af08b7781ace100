import type { Blocker } from '../../../db/operations/leases/rows.ts'
import { AppError } from '../../shared/errors.ts'

/** The error if another operation holds a needed lease, or has waited for it longer. */
export const leaseHeld = (blockers: Blocker[]) =>
  new AppError(
    'plan_locked',
    'resource_lease_held',
    `"${blockers[0]?.title}" holds ${blockers[0]?.resource_id}${blockers.length > 1 ? ` and ${blockers.length - 1} more` : ''}.`,
    {
      extra: {
        blockers: blockers.map(({ operation_id, resource_id, title }) => ({
          kind: 'lease',
          id: resource_id,
          operation_id,
          href: `/v1/operations/${operation_id}`,
          message: `"${title}" holds ${resource_id}.`,
        })),
      },
    },
  )
