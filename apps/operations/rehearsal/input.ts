import type { PlanDocument } from '../../../db/operations/tables/index.ts'
import type { PreviewBody } from '../../shared/contracts/operations/intents.ts'
import { timingOf } from '../graph/graph.ts'
import { PlanRefusal } from '../graph/refusal.ts'
import type { PlannerInput } from '../graph/types.ts'
import { calendarFor } from '../targets/windows.ts'
import type { Assumptions, RehearsalInput } from './types.ts'

/** Default limit of concurrent attempts of one operation. */
export const MAX_PARALLEL = 50

/** Returns the rehearsal's input for a plan. Throws a PlanRefusal if a failure names a node that the plan lacks. */
export const rehearsalOf = (
  input: PlannerInput,
  { nodes, gates, constraints }: Pick<PlanDocument, 'nodes' | 'gates' | 'constraints'>,
  assumed: Assumptions,
): RehearsalInput => {
  const known = new Set(nodes.map(({ node_id }) => node_id))
  const wrong = assumed.failures.flatMap(({ node_id }, i) =>
    known.has(node_id)
      ? []
      : [
          {
            pointer: `/rehearse/failures/${i}/node_id`,
            code: 'unknown_reference',
            message: `There is no node "${node_id}".`,
          },
        ],
  )
  const [first] = wrong
  if (first) throw new PlanRefusal('unknown_reference', first.message, wrong)
  return {
    ...assumed,
    at: input.at,
    nodes,
    gates,
    timings: nodes.map(timingOf(input)),
    constraints,
    max_parallel: Number(constraints.max_parallel ?? MAX_PARALLEL),
    calendar: calendarFor(input.library, input.targets, constraints.window_id, Date.parse(input.at), input.covers),
  }
}

export const assumptionsOf = ({
  seed = 1,
  approval_delay_s = 0,
  failures = [],
}: NonNullable<PreviewBody['rehearse']>): Assumptions => ({ seed, approval_delay_s, failures })
