import { eq } from 'drizzle-orm'
import type { Queryable } from '../../../db/client.ts'
import { getPlan } from '../../../db/operations/plans/rows.ts'
import { operations } from '../../../db/operations/tables/index.ts'
import type { TargetDiff } from '../graph/types.ts'
import { type Measured, measuredOf } from './make.ts'

/** Returns the result of an operation's plan: its changes as approved or accepted since, and its procedures' risk. */
export const plannedOf = async (
  db: Queryable,
  { operation_id, plan_id }: { operation_id: string; plan_id: string },
): Promise<Measured> => {
  const [plan, [row]] = await Promise.all([
    getPlan(db, plan_id),
    db.select({ moved: operations.diff_moved }).from(operations).where(eq(operations.operation_id, operation_id)),
  ])
  const { diff, ...measured } = measuredOf(plan?.report)
  const moved = (row?.moved ?? []) as TargetDiff[]
  const newer = new Set(moved.map(({ resource_id }) => resource_id))
  return { diff: [...diff.filter(({ resource_id }) => !newer.has(resource_id)), ...moved], ...measured }
}

/** Returns the plan's changes to its targets. */
export const diffOf = async (db: Queryable, operation: Parameters<typeof plannedOf>[1]): Promise<TargetDiff[]> =>
  (await plannedOf(db, operation)).diff
