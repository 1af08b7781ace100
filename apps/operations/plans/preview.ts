import type { Queryable, Tx } from '../../../db/client.ts'
import { appendAudit } from '../../../db/operations/facts/state.ts'
import { loadVersions } from '../../../db/operations/plans/planning.ts'
import {
  getIntent,
  getPlan,
  type Intent,
  lockIntent,
  lockOpenPlan,
  moveIntent,
  movePlan,
  type Plan,
  savePlan,
  saveRehearsal,
} from '../../../db/operations/plans/rows.ts'
import type { Caller } from '../../shared/auth/caller.ts'
import type { PreviewBody } from '../../shared/contracts/operations/intents.ts'
import type { PlanView } from '../../shared/contracts/operations/plans.ts'
import { pick, pluck } from '../../shared/data/pick.ts'
import { AppError, notFound } from '../../shared/errors.ts'
import { uuidv7 } from '../../shared/ids.ts'
import { requireFresh } from '../catalog/consumer.ts'
import { type Mutation, mutate } from '../command/mutate.ts'
import type { PlanningDeps, Uses } from '../deps.ts'
import { previewAction, refusePreview, requireScopeOver } from '../intents/create.ts'
import type { Made } from '../planner/plan.ts'
import {
  allowedAction,
  impactFor,
  isInScope,
  isVisible,
  placesFor,
  refuseByPolicy,
  throwIfRefused,
} from '../policies/authority.ts'
import { refuseHard } from '../policies/plans.ts'
import { assumptionsOf } from '../rehearsal/input.ts'
import { rehearseApart } from '../rehearsal/thread.ts'
import { warnOfAgents } from './agents.ts'
import { listConflicts } from './conflicts.ts'
import { askAffected, PlanOutdated, planIntent, storedRequest } from './make.ts'
import { gateView, planObject, refuseStart, statusNow, warnOfApprovers } from './rules.ts'
import type { PlanReport } from './types.ts'

const OPEN = ['open', 'previewed', 'unfulfilled'] as const
const REPLACEABLE = ['ready', 'blocked_by_policy', 'stale'] as const

/**
 * Makes the plan of an intent on the catalog's current state. If it would do the same as the previous plan, that plan
 * stays; otherwise the new plan replaces it (operations.md 2.2).
 */
export const previewPlan = async (
  deps: PlanningDeps & Uses<'db' | 'keys' | 'policies' | 'projection' | 'trust'>,
  mutation: Mutation,
  intent_id: string,
  body: PreviewBody,
) => {
  const fresh = await requireFresh(deps.projection, {
    max_lag_ms: deps.config.OPERATIONS__PROJECTION__MAX_LAG_MS,
    ...(body.min_watermark !== undefined && { min_watermark: body.min_watermark }),
  }).catch((error: unknown) => error)
  const approvers = await deps.trust.approvers.list()
  const exclude = body.exclude_targets ?? []
  const asked = await affectedAhead(deps, intent_id, exclude)
  return mutate(deps, mutation, async (tx) => {
    // A repeat gets its stored answer first, however old the projection is.
    if (typeof fresh !== 'string') throw fresh
    const intent = await lockVisibleIntent(tx, mutation.caller, intent_id)
    await requireScopeOver(tx, mutation, 'intent:create', intent.resource_ids)
    throwIfRefused(refusePreview(intent))
    if ('error' in asked) throw asked.error
    const at = deps.clock.now().toISOString()
    const { rehearsable, ...made } = await planIntent(tx, deps, intent, {
      exclude,
      at,
      affected: asked.affected,
      assumed: body.rehearse && assumptionsOf(body.rehearse),
    })
    // Its selectors may find other targets than when it was created.
    await requireScopeOver(tx, mutation, 'intent:create', pluck(made.document.catalog_pins, 'resource_id'))
    const rehearsal = rehearsable && (await rehearseApart(rehearsable))
    const effect = { ...pick(made, 'counts', 'risk', 'plan_hash'), ...(rehearsal && { rehearsal }) }
    const keep = async () => {
      const warnings = [
        ...made.warnings,
        ...warnOfApprovers(made.document.gates, approvers, intent),
        ...(await warnOfAgents(tx, made.document.nodes, deps.fetchesWork)),
      ]
      const kept = await keepPlan(deps, tx, mutation, intent, { ...made, warnings }, fresh)
      const { plan_id, superseded_plan_id, is_new } = kept
      if (rehearsal) await saveRehearsal(tx, plan_id, rehearsal)
      const view = await renderPlan(deps, tx, mutation.caller, plan_id)
      return {
        status: is_new ? 201 : 200,
        headers: { location: `/v1/plans/${plan_id}` },
        body: { ...view, superseded_plan_id },
      }
    }
    return { effect, keep }
  })
}

/**
 * Returns what depends on the targets of an intent. The catalog is asked before the transaction, so that no lock waits
 * for it. A refusal is thrown inside the transaction, after not found, policy and state.
 */
const affectedAhead = async (deps: Uses<'config' | 'db' | 'trust'>, intent_id: string, exclude: readonly string[]) => {
  const intent = await getIntent(deps.db, intent_id)
  if (!intent) return { affected: null }
  try {
    return { affected: await askAffected(deps, storedRequest(intent), exclude) }
  } catch (error) {
    return { error }
  }
}

const lockVisibleIntent = async (tx: Tx, caller: Caller, intent_id: string): Promise<Intent> => {
  const intent = await lockIntent(tx, intent_id)
  const visible = intent && isVisible(caller, intent.requester_id, await placesFor(tx, caller, intent.resource_ids))
  if (!intent || !visible) throw notFound('intent', intent_id)
  return intent
}

const keepPlan = async (
  deps: Uses<'config' | 'keys'>,
  tx: Tx,
  { actor, caller, request, request_id }: Mutation,
  intent: Intent,
  made: Made,
  watermark: string,
): Promise<{ plan_id: string; superseded_plan_id: string | null; is_new: boolean }> => {
  const origin = { actor, request_id, data: { intent_id: intent.intent_id } }
  const before = await lockOpenPlan(tx, intent.intent_id)
  const blocked = refuseHard(made.policy_results)
  const state = blocked
    ? { status: 'blocked_by_policy', status_reason: blocked.detail }
    : { status: 'ready', status_reason: null }
  if (before && !before.is_due && before.semantic_digest === made.semantic_digest) {
    if (before.status !== state.status) await movePlan(tx, before.plan_id, REPLACEABLE, state, origin)
    return { plan_id: before.plan_id, superseded_plan_id: null, is_new: false }
  }
  const plan_id = uuidv7()
  if (before) await movePlan(tx, before.plan_id, REPLACEABLE, { status: 'superseded', superseded_by: plan_id }, origin)
  const { document, graph, plan_hash, semantic_digest, ...report } = made
  await savePlan(
    tx,
    {
      plan_id,
      intent_id: intent.intent_id,
      ...state,
      plan_hash,
      semantic_digest,
      document,
      report: { ...report, watermark } satisfies PlanReport,
      graph,
      requester_id: intent.requester_id,
      ttl_s: deps.config.OPERATIONS__PLANS__TTL_S,
    },
    { ...origin, data: { ...origin.data, plan_hash } },
  )
  const previewed = { status: 'previewed', latest_plan_id: plan_id, resource_ids: targetsOf(intent, { document }) }
  await moveIntent(tx, intent.intent_id, OPEN, previewed, { actor, request_id })
  await appendAudit(tx, deps.keys.audit, {
    actor: request.caller,
    roles: caller.roles,
    action: 'plan.preview',
    object: `plan:${plan_id}`,
    outcome: 'done',
    after: { plan_hash, semantic_digest },
    request_id,
  })
  return { plan_id, superseded_plan_id: before?.plan_id ?? null, is_new: true }
}

/** The targets that decide who may see and start a plan: its own, and those of the intent that it leaves out. */
export const targetsOf = ({ resource_ids }: Pick<Intent, 'resource_ids'>, { document }: Pick<Plan, 'document'>) => [
  ...new Set([...resource_ids, ...pluck(document.catalog_pins, 'resource_id')]),
]

/** Returns the plan and its intent, if the caller may see them. */
export const readPlan = async (
  db: Queryable,
  caller: Caller,
  plan_id: string,
): Promise<{ plan: Plan; intent: Intent }> => {
  const plan = await getPlan(db, plan_id)
  const intent = plan && (await getIntent(db, plan.intent_id))
  if (!plan || !intent) throw notFound('plan', plan_id)
  const places = await placesFor(db, caller, targetsOf(intent, plan))
  if (!isVisible(caller, intent.requester_id, places)) throw notFound('plan', plan_id)
  return { plan, intent }
}

const DIFF_PAGE = 200

/** Returns the plan as a person reads it: what changes, how risky it is, who must agree, and what has moved since. */
export const renderPlan = async (
  deps: Uses<'clock' | 'library' | 'planPolicies' | 'policies'>,
  db: Queryable,
  caller: Caller,
  plan_id: string,
  diff_after = '',
): Promise<PlanView> => {
  const { plan, intent } = await readPlan(db, caller, plan_id)
  const { document, operation_id } = plan
  const report = plan.report as unknown as PlanReport
  const rest = report.diff.filter(({ resource_id }) => resource_id > diff_after)
  const diff = rest.slice(0, DIFF_PAGE)
  const status = statusNow(plan)
  return {
    plan_id,
    intent_id: plan.intent_id,
    ...pick(intent, 'title', 'kind'),
    status,
    ...pick(plan, 'status_reason', 'plan_hash', 'semantic_digest'),
    pins_moved: await movedPins(db, document.catalog_pins),
    ...pick(report, 'watermark', 'counts', 'risk', 'warnings', 'estimates'),
    diff: diff.map((entry) => ({
      ...entry,
      fields: entry.fields.map((field) => ({ sensitive: false, noise: false, ...field })),
    })),
    diff_next: rest.length > DIFF_PAGE ? (diff.at(-1)?.resource_id ?? null) : null,
    impact: await impactFor(db, caller, report.impact),
    conflicts:
      status === 'ready'
        ? await listConflicts(db, deps, caller, { ...plan, dependents: report.impact.dependents })
        : [],
    policy_results: report.policy_results ?? [],
    gates: document.gates.map((gate) => gateView(gate, caller, intent)),
    ...pick(document, 'leases', 'windows', 'constraints', 'catalog_pins', 'packs'),
    rehearsal: report.rehearsal ?? null,
    created_at: plan.created_at,
    expires_at: plan.expires_at,
    operation_id,
    superseded_by: plan.superseded_by,
    allowed_actions: [
      allowedAction(
        'start',
        await mayStart(deps, db, caller, plan, intent),
        refusePlanPolicy(deps, plan),
        refuseStart(plan, intent),
      ),
      previewAction(
        caller,
        intent,
        isInScope(caller, 'intent:create', await placesFor(db, caller, intent.resource_ids)),
      ),
    ],
  }
}

const mayStart = async (
  deps: Uses<'clock' | 'policies'>,
  db: Queryable,
  caller: Caller,
  plan: Plan,
  intent: Intent,
) => {
  const places = await placesFor(db, caller, targetsOf(intent, plan))
  return refuseByPolicy(deps, caller, 'plan.start', planObject(plan, intent, places), places)
}

/** Applies the current hard policies: a deploy may have brought another one since the plan was made. */
export const refusePlanPolicy = ({ planPolicies }: Uses<'planPolicies'>, { report }: Plan) => {
  const { policy_facts } = report as unknown as Partial<PlanReport>
  return policy_facts && refuseHard(planPolicies.judge(policy_facts))
}

export const movedPins = async (db: Queryable, pins: { resource_id: string; version: number }[]) => {
  const now = await loadVersions(db, pluck(pins, 'resource_id'))
  return pins.flatMap(({ resource_id, version }) => {
    const current = now.get(resource_id) ?? null
    return current === version ? [] : [{ resource_id, planned: version, current }]
  })
}

/** Marks a plan whose targets have changed in a way that matters: it must be made again. */
export const markStale = (
  deps: Uses<'db'>,
  { actor, request_id }: Pick<Mutation, 'actor' | 'request_id'>,
  plan_id: string,
  reason: string,
) =>
  deps.db.transaction((tx) =>
    movePlan(tx, plan_id, ['ready'], { status: 'stale', status_reason: reason }, { actor, request_id }),
  )

/** Whether a start was refused because targets or policies changed since the plan was made. */
export const isOutdated = (error: unknown): error is AppError =>
  error instanceof PlanOutdated ||
  (error instanceof AppError &&
    error.category === 'stale_catalog_projection' &&
    error.code === 'resource_version_moved')
