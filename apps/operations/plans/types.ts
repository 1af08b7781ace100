import type { Rehearsal } from '../../shared/contracts/operations/plans.ts'
import type { Made } from '../planner/plan.ts'

/** The parts of a plan that readers see, besides those its hash covers. */
export type PlanReport = Pick<
  Made,
  | 'diff'
  | 'counts'
  | 'impact'
  | 'risk'
  | 'procedure_risk'
  | 'warnings'
  | 'estimates'
  | 'policy_facts'
  | 'policy_results'
> & { watermark: string; rehearsal?: Rehearsal }
