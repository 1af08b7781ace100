import type { Rehearsal } from '../../shared/contracts/operations/plans.ts'
import type { Made } from '../planner/plan.ts'

/** The parts of a plan that readers see, besides those its hash covers. */
export type PlanReport = Omit<Made, 'document' | 'graph' | 'plan_hash' | 'semantic_digest'> & {
  watermark: string
  rehearsal?: Rehearsal
}
