import { eq } from 'drizzle-orm'
import type { Queryable } from '../../../db/client.ts'
import { getIntent, getPlan, type Intent, type Plan } from '../../../db/operations/plans/rows.ts'
import { operations } from '../../../db/operations/tables/index.ts'
import type { GateAsked } from '../../shared/contracts/operations/graph.ts'
import { pick } from '../../shared/data/pick.ts'
import type { Subject } from '../command/command.ts'
import type { TargetDiff } from '../graph/types.ts'
import { type Measured, measuredOf } from './make.ts'

export type Planned = Measured & { asked: GateAsked }

/** What the plan of an operation came to: its changes as they were approved or taken over since, and its procedures' risk. */
export const plannedOf = async (
  db: Queryable,
  { operation_id, plan_id, intent_id }: Pick<Subject, 'operation_id' | 'plan_id' | 'intent_id'>,
): Promise<Planned> => {
  const [plan, intent, [row]] = await Promise.all([
    getPlan(db, plan_id),
    getIntent(db, intent_id),
    db.select({ moved: operations.diff_moved }).from(operations).where(eq(operations.operation_id, operation_id)),
  ])
  if (!plan || !intent) throw new Error(`operation ${operation_id} has no plan`)
  const { diff, ...measured } = measuredOf(plan.report)
  const moved = (row?.moved ?? []) as TargetDiff[]
  const newer = new Set(moved.map(({ resource_id }) => resource_id))
  return {
    diff: [...diff.filter(({ resource_id }) => !newer.has(resource_id)), ...moved],
    asked: askedOf(intent, plan),
    ...measured,
  }
}

/** Returns the plan's changes to its targets. */
export const diffOf = async (db: Queryable, operation: Parameters<typeof plannedOf>[1]): Promise<TargetDiff[]> =>
  (await plannedOf(db, operation)).diff

/** Who asks for an operation and why, as its gates bind it. */
export const askedOf = (intent: Intent, { plan_hash }: Pick<Plan, 'plan_hash'>): GateAsked => ({
  requester: pick(intent.requester, 'kind', 'id', 'name'),
  ...pick(intent, 'title', 'reason', 'ticket'),
  plan_hash,
})
