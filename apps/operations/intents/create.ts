import type { Queryable, Tx } from '../../../db/client.ts'
import { getOwned } from '../../../db/operations/operations/read.ts'
import { getIntent, type Intent, saveIntent } from '../../../db/operations/plans/rows.ts'
import type { Caller } from '../../shared/auth/caller.ts'
import { missingWords, type Permission } from '../../shared/auth/permissions.ts'
import type { AllowedAction, RefusalCode } from '../../shared/contracts/operations/graph.ts'
import { INTENT_KINDS, type IntentBody, type IntentView } from '../../shared/contracts/operations/intents.ts'
import { pick } from '../../shared/data/pick.ts'
import { AppError, notFound, refusal, wrongAt } from '../../shared/errors.ts'
import { uuidv7 } from '../../shared/ids.ts'
import { requireFresh } from '../catalog/consumer.ts'
import { auditDone, type Mutation, mutate } from '../command/mutate.ts'
import type { Uses } from '../deps.ts'
import type { Target } from '../graph/types.ts'
import { refuseIncomplete } from '../packs/open.ts'
import { findRunbook } from '../planner/match.ts'
import { allowedAction, isInScope, isVisible, placesFor, scopesFor } from '../policies/authority.ts'
import { resolveTargets, type TargetRequest, TargetsMissing, type Unjudged } from '../targets/resolve.ts'
import { WEEK_S } from './requested.ts'

/** Refuses an act on targets that the caller's roles do not cover. */
export const requireScopeOver = async (
  db: Queryable,
  { caller }: Pick<Mutation, 'caller'>,
  permission: Permission,
  resource_ids: readonly string[],
): Promise<void> => {
  const places = await placesFor(db, caller, resource_ids)
  if (isInScope(caller, permission, places)) return
  throw new AppError('policy_denied', 'out_of_scope', 'Your roles do not cover every target.', {
    hint: 'Leave out the targets outside your scope, or ask someone whose roles cover them.',
    extra: { policy_ids: [] },
  })
}

/** The plan of an intent that is only tried; asks other apps before the transaction. `undefined` if none is wanted. */
export type Outline = (
  mutation: Mutation,
  body: IntentBody & TargetRequest,
) => Promise<((tx: Tx, targets: Target[]) => Promise<object>) | undefined>

/** Records an intent: the state that should be true. Targets are resolved now, and again for each plan. */
export const createIntent = async (
  deps: Uses<'config' | 'db' | 'keys' | 'library' | 'projection'>,
  mutation: Mutation,
  body: IntentBody,
  outline?: Outline,
  unjudged?: Unjudged,
) => {
  refuseShape(body)
  const request = knownTo(mutation.caller, body)
  const create = async () => {
    const plan = await outline?.(mutation, request)
    return mutate(deps, mutation, async (tx) => {
      const targets = await targetsOf(deps, tx, mutation, request, unjudged)
      return {
        effect: { targets_resolved: resolvedOf(targets), ...(plan && { plan: await plan(tx, targets) }) },
        keep: () => keepIntent(deps, tx, mutation, request, targets),
      }
    })
  }
  try {
    return await create()
  } catch (error) {
    if (!(error instanceof TargetsMissing)) throw error
    // A resource that was just created may not have arrived. A look at the end of the catalog's log brings most of
    // them, and those that the log has not numbered yet are requested by name.
    await requireFresh(deps.projection, { max_lag_ms: 0 })
    await Promise.all(error.resource_ids.slice(0, ASKED).map((id) => deps.projection.followOne('resource', id)))
    return create()
  }
}

/**
 * Limits an intent to the resources that its maker may know: those that it names now, those that it selects in all its
 * plans. So it means the same whoever plans it, and no refusal tells of others.
 */
export const knownTo = <B extends object>(caller: Caller, body: B): B & Pick<TargetRequest, 'within'> => {
  const within = scopesFor(caller, 'catalog:read', 'intent:create')
  return { ...body, ...(within && { within }) }
}

/** Returns the targets of a new intent; refuses one with wrong references, targets or scope. */
const targetsOf = async (
  deps: Uses<'config' | 'library'>,
  tx: Tx,
  mutation: Mutation,
  body: IntentBody & TargetRequest,
  unjudged?: Unjudged,
) => {
  if (body.runbook) refuseRunbook(deps, body.runbook)
  refuseWindow(deps, body.constraints?.window_id)
  if (body.retry_of !== undefined) await refuseRetryOf(tx, mutation.caller, body.retry_of)
  const targets = await resolveTargets(tx, body, deps.config.OPERATIONS__LIMITS__TARGETS, unjudged)
  if (targets.length === 0 && body.kind !== 'graph' && (body.targets ?? []).length > 0)
    throw new AppError('validation_error', 'no_targets', 'The selectors match no resource.')
  const ids = targets.map(({ resource_id }) => resource_id)
  await requireScopeOver(tx, mutation, 'intent:create', ids)
  return targets
}

const keepIntent = async (
  deps: Uses<'keys'>,
  tx: Tx,
  mutation: Mutation,
  { dry_run: _, preview: _preview, ...request }: IntentBody & TargetRequest,
  targets: Target[],
) => {
  const intent_id = uuidv7()
  const { within: _within, ...body } = request
  await saveIntent(
    tx,
    {
      intent_id,
      ...pick(body, 'kind', 'title', 'reason'),
      request,
      targets_resolved: resolvedOf(targets),
      requester: mutation.actor,
      labels: body.labels ?? {},
      constraints: body.constraints ?? {},
      ticket: body.ticket ?? null,
      retry_of: body.retry_of ?? null,
      expires_in_s: body.expires_in_s ?? WEEK_S,
    },
    { actor: mutation.actor, reason: body.reason, request_id: mutation.request_id },
  )
  const done = { action: 'intent.create', object: `intent:${intent_id}`, reason: body.reason, after: body }
  await auditDone(deps, tx, mutation, done)
  const intent = await getIntent(tx, intent_id)
  if (!intent) throw new Error(`intent ${intent_id} is gone`)
  return {
    status: 201,
    headers: { location: `/v1/intents/${intent_id}`, etag: `"${intent.revision}"` },
    body: intentView(intent, mutation.caller, true),
  }
}

/** The most resources that one request fetches from the catalog by name. */
const ASKED = 20

const resolvedOf = (targets: Target[]) =>
  targets.map(({ resource_id, type_key, name, version }) => ({ resource_id, type_key, name, version }))

/** An unknown runbook name is refused at once, not only at planning. */
const refuseRunbook = ({ library }: Uses<'library'>, wanted: NonNullable<IntentBody['runbook']>) => {
  refuseIncomplete(library)
  const found = findRunbook(library, wanted)
  if (typeof found === 'string')
    throw wrongAt('/runbook/procedure', found, { code: 'unknown_procedure', detail: found })
}

const unknownAt = (pointer: string, detail: string) => wrongAt(pointer, detail, { code: 'unknown_reference', detail })

const refuseWindow = ({ library }: Uses<'library'>, wanted: string | undefined) => {
  if (wanted !== undefined && !library.windows.some(({ window_id }) => window_id === wanted))
    throw unknownAt('/constraints/window_id', `There is no window "${wanted}".`)
}

/** The operation to be retried must exist for the caller: a name in a history that leads nowhere misleads. */
const refuseRetryOf = async (db: Queryable, caller: Caller, operation_id: string) => {
  const owned = await getOwned(db, operation_id)
  const places = owned ? await placesFor(db, caller, owned.resource_ids) : []
  if (!owned || !isVisible(caller, owned.requester_id, places))
    throw unknownAt('/retry_of', `There is no operation "${operation_id}", or you may not see it.`)
}

/** Refuses parts that do not belong to the intent's kind, instead of ignoring them. */
const refuseShape = (body: IntentBody): void => {
  const wrong = (pointer: string, message: string) => {
    throw wrongAt(pointer, message, { status: 400 })
  }
  for (const part of INTENT_KINDS) {
    if (part === body.kind && body[part] === undefined)
      wrong(`/${part}`, `is required for an intent of kind ${body.kind}`)
    if (part !== body.kind && body[part] !== undefined)
      wrong(`/${part}`, `does not belong to an intent of kind ${body.kind}`)
  }
  const { change } = body
  if (change?.op === 'update' && change.desired_state_patch === undefined)
    wrong('/change/desired_state_patch', 'is required for an update')
  if (change && change.op !== 'update' && change.desired_state_patch !== undefined)
    wrong('/change/desired_state_patch', 'belongs to updates only')
  if ((body.kind === 'change' || body.kind === 'action') && (body.targets ?? []).length === 0)
    throw wrongAt('/targets', 'must name a target', { code: 'no_targets', status: 422 })
}

/** Returns the intent if the caller may see it. */
export const readIntent = async (deps: Uses<'db'>, caller: Caller, intent_id: string): Promise<Intent> => {
  const intent = await getIntent(deps.db, intent_id)
  const visible =
    intent && isVisible(caller, intent.requester_id, await placesFor(deps.db, caller, intent.resource_ids))
  if (!intent || !visible) throw notFound('intent', intent_id)
  return intent
}

const CLOSED = new Set(['fulfilled', 'expired'])

/** Returns why an intent cannot be previewed now, or `undefined` (operations.md 2.1). */
export const refusePreview = ({
  status,
  operation_id,
}: Pick<Intent, 'status' | 'operation_id'>): RefusalCode | undefined => {
  if (status === 'executing')
    return refusal('plan_locked', 'already_started', 'A plan of this intent has been started.', {
      extra: { operation_id },
    })
  const detail = `The intent is ${status}. Create a new one; to repeat an operation, name it in retry_of.`
  return CLOSED.has(status) ? refusal('invalid_state_transition', 'intent_closed', detail) : undefined
}

/** Whether the caller may plan the intent, now or again; `in_scope`: their roles cover its targets. */
export const previewAction = (
  caller: Caller,
  intent: Pick<Intent, 'status' | 'operation_id'>,
  in_scope: boolean,
): AllowedAction =>
  allowedAction(
    'preview',
    caller.permissions.has('intent:create') ? undefined : MISSING,
    in_scope ? undefined : OUTSIDE,
    refusePreview(intent),
  )

export const intentView = (intent: Intent, caller: Caller, in_scope: boolean): IntentView => {
  const { resource_ids: _ids, requester_id: _requester, ...view } = intent
  const { within: _within, ...request } = intent.request as TargetRequest
  return {
    ...view,
    request,
    status: intent.status as IntentView['status'],
    links: linksOf(intent),
    allowed_actions: [previewAction(caller, intent, in_scope)],
  }
}
const MISSING = refusal('policy_denied', 'permission_missing', missingWords(['intent:create']))
const OUTSIDE = refusal('policy_denied', 'out_of_scope', 'Your roles do not cover every target.')

export const linksOf = ({
  intent_id,
  latest_plan_id,
  operation_id,
}: Pick<Intent, 'intent_id' | 'latest_plan_id' | 'operation_id'>) => ({
  self: `/v1/intents/${intent_id}`,
  plan_preview: `/v1/intents/${intent_id}/plan-preview`,
  ...(latest_plan_id && { latest_plan: `/v1/plans/${latest_plan_id}` }),
  ...(operation_id && { operation: `/v1/operations/${operation_id}` }),
})
