import type { Rehearsal } from '../../shared/contracts/operations/plans.ts'
import type { Made } from '../planner/plan.ts'

/** What readers of a plan see besides what its hash covers. */
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
