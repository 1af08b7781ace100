import type { PlanDocument } from '../../../db/operations/tables/index.ts'
import type { PlanNode } from '../../shared/contracts/operations/graph.ts'
import { byText } from '../graph/graph.ts'
import type { Lane, PlannerInput, Target } from '../graph/types.ts'

type Leases = PlanDocument['leases']

/**
 * Returns the leases of the operation while it runs: its targets, and the places that contain them, shared. A change of
 * the whole and one of a part therefore exclude each other (operations.md 3.5).
 */
export const leasesOf = ({ targets, intent }: PlannerInput, lanes: Lane[], nodes: PlanNode[]): Leases => {
  const touched = new Set(nodes.flatMap((node) => (node.target_id === undefined ? [] : [node.target_id])))
  const ruleOf = new Map(
    lanes.flatMap((lane) => lane.targets.map((target) => [target.resource_id, lane.procedure.lease])),
  )
  return leasesBy(
    targets,
    ({ resource_id }) =>
      ruleOf.get(resource_id) ?? (intent.kind === 'graph' && touched.has(resource_id) ? WHOLE : undefined),
  )
}

/** Returns the leases for nodes of a graph on these targets. */
export const wholeOf = (targets: readonly Target[]): Leases => leasesBy(targets, () => WHOLE)

const leasesBy = (
  targets: readonly Target[],
  ruleOf: (target: Target) => Lane['procedure']['lease'] | undefined,
): Leases => {
  const wanted = new Map<string, Leases[number]['mode']>()
  const take = (resource_id: string, mode: Leases[number]['mode']) => {
    if (wanted.get(resource_id) !== 'exclusive') wanted.set(resource_id, mode)
  }
  for (const target of targets) {
    const rule = ruleOf(target)
    if (!rule) continue
    take(target.resource_id, rule.mode)
    if (rule.ancestors === 'shared') for (const id of target.ancestors) take(id, 'shared')
  }
  return [...wanted]
    .map(([resource_id, mode]) => ({ resource_id, mode }))
    .sort((a, b) => byText(a.resource_id, b.resource_id))
}

const WHOLE = { mode: 'exclusive', ancestors: 'shared' } as const
