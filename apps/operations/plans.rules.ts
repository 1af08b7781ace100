import type { Intent, Plan } from '../../db/operations/plans.ts'
import type { Place } from '../shared/auth/scope.ts'
import type { Risk } from './planner/risk.ts'
import type { PolicyObject } from './policy.ts'

const texts = (values: (string | null | undefined)[]): string[] => [
  ...new Set(values.filter((value): value is string => typeof value === 'string')),
]

/** What the authorization policies know of a plan. */
export const planObject = (
  plan: Pick<Plan, 'plan_id' | 'report'>,
  intent: Intent,
  places: readonly Place[],
): PolicyObject => ({
  type: 'Plan',
  id: plan.plan_id,
  requester: intent.requester_id,
  involved: [intent.requester_id],
  four_eyes: false,
  groups: [],
  risk: (plan.report as { risk?: Risk }).risk?.level ?? 'low',
  environment: intent.labels.environment ?? null,
  types: texts(places.map(({ type_key }) => type_key)),
  regions: texts(places.map(({ region_id }) => region_id)),
  labels: intent.labels,
})
