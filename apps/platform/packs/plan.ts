import { PLACE } from '../../operations/graph/graph.ts'
import { PlanRefusal } from '../../operations/graph/refusal.ts'
import type { PlannedIntent, PlannerInput, ResourceType, Scope, Target } from '../../operations/graph/types.ts'
import { type Made, makePlan } from '../../operations/planner/plan.ts'
import type { PackFolder } from './folder.ts'
import type { PackTest } from './format.ts'

/** The input of a test, as the server would give it to the planner. */

/** The limits of an installation that sets none. */
const LIMITS = { nodes: 5000, edges: 20_000, graph_nodes: 5000 }
const AT = '2026-01-01T00:00:00.000Z'
const INTENT_ID = '00000000-0000-7000-8000-000000000001'

type Given = PackTest['given']
export type Planned =
  | { input: PlannerInput; made: Made }
  | { input?: PlannerInput; refused: { code: string; message: string } }

export const planTest = ({ library, model }: PackFolder, { given }: PackTest): Planned => {
  const named = new Set((given.intent.targets ?? []).map(({ resource_id }) => resource_id))
  for (const node of given.intent.graph?.nodes ?? []) if (node.target_id !== undefined) named.add(node.target_id)
  const all = new Map(given.resources.map((resource) => [resource.id, resource]))
  const missing = [...named].find((id) => !all.has(id))
  if (missing !== undefined)
    return { refused: { code: 'target_not_found', message: `There is no resource "${missing}".` } }
  const input: PlannerInput = {
    intent: {
      intent_id: INTENT_ID,
      ...given.intent,
      labels: given.intent.labels ?? {},
      constraints: given.intent.constraints ?? {},
    } as PlannedIntent,
    targets: [...named].sort().map((id) => targetOf(all, id, model.types)),
    relationships: (given.relationships ?? []).map(({ type, from, to }) => ({
      type_key: type,
      from_id: from,
      to_id: to,
    })),
    relationship_types: model.relationship_types,
    types: model.types as unknown as ResourceType[],
    library,
    durations: new Map(),
    limits: LIMITS,
    at: given.at ?? AT,
  }
  try {
    return { input, made: makePlan(input) }
  } catch (error) {
    if (!(error instanceof PlanRefusal)) throw error
    return { input, refused: { code: error.code, message: error.message } }
  }
}

const targetOf = (
  all: Map<string, Given['resources'][number]>,
  id: string,
  types: PackFolder['model']['types'],
): Target => {
  const resource = all.get(id) as Given['resources'][number]
  const scope: Scope = { region_id: null, datacenter_id: null, layer_id: null, segment_id: null }
  const ancestors: string[] = []
  for (let at = resource.parent; at !== undefined && !ancestors.includes(at); at = all.get(at)?.parent) {
    ancestors.push(at)
    const place = PLACE[all.get(at)?.type ?? '']
    if (place) scope[place] ??= at
  }
  return {
    resource_id: id,
    type_key: resource.type,
    type_version: types.find(({ type_key }) => type_key === resource.type)?.version ?? 1,
    name: id,
    parent_id: resource.parent ?? null,
    version: resource.version ?? 1,
    lifecycle_status: resource.lifecycle_status ?? 'active',
    health_status: resource.health_status ?? 'healthy',
    labels: resource.labels ?? {},
    annotations: resource.annotations ?? {},
    desired_state: resource.desired_state ?? {},
    observed_state: resource.observed_state ?? {},
    scope,
    ancestors,
  }
}
