import { eq } from 'drizzle-orm'
import type { Queryable } from '../../../db/client.ts'
import { getPlan } from '../../../db/operations/plans/rows.ts'
import { operations } from '../../../db/operations/tables/index.ts'
import type { TargetDiff } from '../graph/types.ts'
import type { PlanReport } from './types.ts'

/** What the plan changes about its targets, as it was approved or taken over since. */
export const diffOf = async (
  db: Queryable,
  { operation_id, plan_id }: { operation_id: string; plan_id: string },
): Promise<TargetDiff[]> => {
  const [plan, [row]] = await Promise.all([
    getPlan(db, plan_id),
    db.select({ moved: operations.diff_moved }).from(operations).where(eq(operations.operation_id, operation_id)),
  ])
  const planned = ((plan?.report as unknown as PlanReport | undefined)?.diff ?? []) as TargetDiff[]
  const moved = (row?.moved ?? []) as TargetDiff[]
  const newer = new Set(moved.map(({ resource_id }) => resource_id))
  return [...planned.filter(({ resource_id }) => !newer.has(resource_id)), ...moved]
}
