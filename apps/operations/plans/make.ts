import type { Queryable } from '../../../db/client.ts'
import { loadDurations, loadRelationships, loadTypes } from '../../../db/operations/plans/planning.ts'
import type { Intent, Plan } from '../../../db/operations/plans/rows.ts'
import type { Affected } from '../../shared/contracts/catalog/affected.ts'
import type { IntentBody } from '../../shared/contracts/operations/intents.ts'
import { pick, pluck } from '../../shared/data/pick.ts'
import { AppError, wrongAt } from '../../shared/errors.ts'
import { allWithinTime, CEL_LIMITS, CelError } from '../../shared/expressions/cel.ts'
import { refuseHeld } from '../catalog/consumer.ts'
import { unanswered } from '../catalog/heads.ts'
import type { OperationsConfig } from '../config.ts'
import type { Uses } from '../deps.ts'
import type { ProgramRules } from '../graph/executors.ts'
import { PlanRefusal } from '../graph/refusal.ts'
import type { Among, Library, PlannedIntent, PlannerInput, ResourceType, Target } from '../graph/types.ts'
import type { SecretRules } from '../packs/executors.ts'
import { refuseIncomplete } from '../packs/open.ts'
import { refuseCeiling, unaskedPolicies, weigh } from '../planner/bind.ts'
import { laneName } from '../planner/match.ts'
import { type Made, makePlan } from '../planner/plan.ts'
import type { Risk } from '../planner/risk.ts'
import { throwIfRefused } from '../policies/authority.ts'
import { type PlanPolicies, refuseHard } from '../policies/plans.ts'
import { rehearsalOf } from '../rehearsal/input.ts'
import type { Assumptions, RehearsalInput } from '../rehearsal/types.ts'
import { libraryNow } from '../targets/calendar.ts'
import { loadTargets, resolveTargets, type TargetRequest } from '../targets/resolve.ts'
import { askCalendar } from '../targets/windows.ts'
import { refuseLost } from './reservations.ts'

export type PlanningDeps = {
  library: Library
  config: OperationsConfig
  planPolicies: PlanPolicies
  mayResolve: SecretRules
  programs: ProgramRules
  hasPool: (pool: string) => boolean
}

/** The parts of an intent that a plan needs; the intent need not be stored yet. */
export type Plannable = Pick<Intent, 'intent_id' | 'requester_id' | 'kind' | 'labels' | 'constraints' | 'request'>

/** How far order and impact look beyond the targets. */
const DEPTH = 4
/** How far risk looks: the dependents of the targets, and their dependents. */
const IMPACT_DEPTH = 2

type Planning = {
  exclude?: readonly string[]
  at: string
  assumed?: Assumptions | undefined
  /** The catalog's earlier answer on what depends on the targets. */
  affected?: Affected | null
  among?: Among
}

/** Plans an intent on the current projection; `assumed` adds its rehearsal's input. Throws refusals as AppErrors. */
export const planIntent = async (
  db: Queryable,
  deps: PlanningDeps,
  intent: Plannable,
  { exclude = [], at, assumed, affected = null, among }: Planning,
): Promise<Made & { rehearsable?: RehearsalInput }> => {
  const input = { ...(await loadInput(db, deps, intent, exclude, at)), affected, ...(among && { among }) }
  try {
    const made = inTime(() => makePlan(input))
    await refuseLost(db, made.document.nodes, at)
    return { ...made, ...(assumed && { rehearsable: rehearsalOf(input, made.document, assumed) }) }
  } catch (error) {
    if (error instanceof PlanRefusal) throw asAppError(error)
    throw error
  }
}

/** A plan whose later expressions had no time left would be made from half of them: it is refused. */
export const inTime = <T>(work: () => T): T => {
  try {
    return allWithinTime(CEL_LIMITS.plan_ms, work)
  } catch (error) {
    if (error instanceof CelError) throw asAppError(new PlanRefusal('expression_error', `${error.message}.`))
    throw error
  }
}

/** Asks the catalog, in one request, what depends on the targets of a request. Call it outside a transaction. */
export const askAffected = async (
  { config, db, trust }: Uses<'config' | 'db' | 'trust'>,
  request: TargetRequest,
  exclude: readonly string[] = [],
): Promise<Affected | null> => {
  const targets = await resolveTargets(db, request, config.OPERATIONS__LIMITS__TARGETS)
  refuseExcluded(request, pluck(targets, 'resource_id'), exclude)
  const ids = targets.map(({ resource_id }) => resource_id).filter((id) => !exclude.includes(id))
  return ids.length === 0 ? null : await trust.catalog.affected(ids).catch(unanswered)
}

/** A mistyped id would change the very target that it should spare. */
const refuseExcluded = (
  { graph, runbook }: TargetRequest,
  targets: readonly string[],
  exclude: readonly string[],
): void => {
  const used = new Map(graph?.nodes.map(({ node_id, target_id }) => [target_id, node_id]))
  for (const [i, id] of exclude.entries()) {
    if (!targets.includes(id))
      throw wrongAt(`/exclude_targets/${i}`, `names no target of the intent: "${id}"`, {
        ...{ code: 'target_not_found', status: 422 },
        hint: 'The intent lists its targets in targets_resolved.',
      })
    if (used.has(id))
      throw wrongAt(`/exclude_targets/${i}`, `names the target of the node "${used.get(id)}"`, {
        ...{ code: 'parameters_invalid', status: 422 },
        hint: 'Leave the node out of the graph.',
      })
  }
  // A runbook may need no target; the planner refuses one that does.
  if (!runbook && targets.length > 0 && exclude.length === targets.length)
    throw wrongAt('/exclude_targets', 'leaves no target', { code: 'no_targets', status: 422 })
}

const loadInput = async (
  db: Queryable,
  deps: PlanningDeps,
  intent: Plannable,
  exclude: readonly string[],
  at: string,
): Promise<PlannerInput> => {
  const { config, mayResolve } = deps
  const resolved = await resolveTargets(db, storedRequest(intent), config.OPERATIONS__LIMITS__TARGETS)
  const left_out = new Set(exclude)
  const targets = resolved.filter(({ resource_id }) => !left_out.has(resource_id))
  await refuseHeld(db, pluck(targets, 'resource_id'))
  return { intent: requestOf(intent), mayResolve, ...(await loadWorld(db, deps, targets, at)) }
}

/** Loads the basis for plans of any intent on these targets: the catalog's projection and this installation's rules. */
export const loadWorld = async (
  db: Queryable,
  { library, config, planPolicies, programs, hasPool }: PlanningDeps,
  targets: Target[],
  at: string,
) => {
  refuseIncomplete(library)
  const { types, relationship_types } = await loadTypes(db)
  const inverse = new Map(relationship_types.map(({ type_key, inverse_key }) => [inverse_key, type_key]))
  const procedures = library.packs.flatMap((pack) => pack.procedures)
  const followed = new Set(['depends_on'])
  for (const { order } of procedures)
    for (const key of order?.relationship_types ?? []) followed.add(inverse.get(key) ?? key)
  const ids = targets.map(({ resource_id }) => resource_id)
  const current = await libraryNow(db, library)
  return {
    targets,
    relationships: await loadRelationships(db, ids, [...followed].sort(), DEPTH),
    relationship_types,
    types: types.map(({ document }) => document as unknown as ResourceType),
    library: current,
    covers: await askCalendar(current, targets, Date.parse(at)),
    durations: await loadDurations(
      db,
      procedures.flatMap((procedure) => procedure.steps.map((step) => `${laneName(procedure)}.${step.id}`)),
    ),
    limits: {
      nodes: config.OPERATIONS__LIMITS__PLAN_NODES,
      edges: config.OPERATIONS__LIMITS__PLAN_EDGES,
      graph_nodes: config.OPERATIONS__LIMITS__GRAPH_NODES,
    },
    at,
    judge: planPolicies.judge,
    programs,
    hasPool,
  }
}

/** What an intent asked for when it was made: the targets that it names were known then. */
export const storedRequest = ({ request }: Pick<Intent, 'request'>): IntentBody & TargetRequest => ({
  ...(request as unknown as IntentBody & TargetRequest),
  is_made: true,
})

const requestOf = (intent: Plannable): PlannedIntent => {
  const { change, action, runbook, graph } = storedRequest(intent)
  return {
    ...pick(intent, 'intent_id', 'requester_id', 'labels', 'constraints'),
    kind: intent.kind as PlannedIntent['kind'],
    ...(change && { change }),
    ...(action && { action }),
    ...(runbook && { runbook }),
    ...(graph && { graph }),
  } as PlannedIntent
}

export type Measured = Pick<Made, 'diff' | 'procedure_risk'> & Pick<Made['impact'], 'affected'>

/** Returns what a stored plan was measured by. */
export const measuredOf = (report: unknown): Measured => {
  const { diff = [], procedure_risk, risk, impact } = (report ?? {}) as Partial<Made>
  // Plans made before it was stored show it among the factors, together with the risk of their nodes.
  const shown = risk?.factors.find(({ factor }) => factor === 'procedure')?.points ?? 0
  return { diff, procedure_risk: procedure_risk ?? shown, affected: impact?.affected ?? null }
}

/**
 * Measures an earlier plan again by the rules of a preview, because policies, catalog and risk may have moved. Throws
 * the refusal of its ceiling, of a hard policy, or of a policy that asks for a gate that the plan lacks.
 */
export const bindAgain = async (
  db: Queryable,
  { library, planPolicies }: PlanningDeps,
  intent: Intent,
  { document, report }: Plan,
): Promise<Risk> => {
  refuseIncomplete(library)
  const { diff, procedure_risk, affected } = measuredOf(report)
  const ids = document.catalog_pins.map(({ resource_id }) => resource_id)
  const input = {
    intent: requestOf(intent),
    targets: await loadTargets(db, ids),
    relationships: await loadRelationships(db, ids, ['depends_on'], IMPACT_DEPTH),
    judge: planPolicies.judge,
    affected,
  }
  const weight = weigh(input, { nodes: document.nodes, diff, procedure_risk })
  throwIfRefused(refuseCeiling(document.constraints, weight.risk) ?? refuseHard(weight.judged))
  const [first, ...more] = unaskedPolicies(library, document, weight)
  if (first) throw new PlanOutdated([first, ...more])
  return weight.risk
}

/** The refusal of a plan that lacks a gate which a plan made now would have. */
export class PlanOutdated extends AppError {
  constructor(policies: string[]) {
    super(
      'invalid_state_transition',
      'plan_not_ready',
      `The policy ${policies[0]} now requires a gate that this plan does not have.`,
      { hint: 'Preview the intent again and review the plan with its gates.', extra: { policies } },
    )
  }
}

const HINTS: Record<string, string> = {
  risk_ceiling: 'Raise the ceiling in the intent, or make the change smaller.',
  secret_not_allowed: 'Use another pool, or have the secret added to the executor policy of this one.',
}

const asAppError = ({ category, code, message, violations }: PlanRefusal): AppError =>
  new AppError(category, code, message, {
    status: category === 'policy_denied' ? 403 : 422,
    ...(violations.length > 0 && { violations }),
    ...(code in HINTS && { hint: HINTS[code] }),
  })
