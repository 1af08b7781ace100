import type { FastifyRequest } from 'fastify'
import type { Queryable, Tx } from '../../../db/client.ts'
import { fingerprintOf, type IdempotentRequest, once } from '../../../db/idempotency.ts'
import { appendAudit } from '../../../db/operations/facts/audit.ts'
import { getOwned } from '../../../db/operations/operations/read.ts'
import { getIntent, type Intent, saveIntent } from '../../../db/operations/plans/rows.ts'
import { idempotency } from '../../../db/operations/tables/index.ts'
import type { Caller } from '../../shared/auth/caller.ts'
import { missingWords, type Permission } from '../../shared/auth/permissions.ts'
import type { Actor, AllowedAction, RefusalCode } from '../../shared/contracts/operations/graph.ts'
import { INTENT_KINDS, type IntentBody, type IntentView } from '../../shared/contracts/operations/intents.ts'
import { AppError, type CodeOf, notFound } from '../../shared/errors.ts'
import { uuidv7 } from '../../shared/ids.ts'
import { requireFresh } from '../catalog/consumer.ts'
import type { OperationsDeps } from '../deps.ts'
import type { Target } from '../graph/types.ts'
import { findRunbook } from '../planner/match.ts'
import { allowedAction } from '../policies/authority.ts'
import { isInScope, isVisible, placesFor } from '../policies/visibility.ts'
import { resolveTargets, TargetsMissing } from '../targets/resolve.ts'

const WEEK_S = 604_800

/** A mutation that is no command on an operation: who, under which key. */
export type Mutation = { caller: Caller; actor: Actor; request: IdempotentRequest; request_id: string }

export const mutationOf = ({ keys }: Pick<OperationsDeps, 'keys'>, req: FastifyRequest): Mutation => {
  const { caller, headers, params, query, body } = req
  return {
    caller,
    actor: { kind: 'user', id: caller.user_id, name: caller.username, roles: caller.roles },
    request_id: String(req.id),
    request: {
      caller: `user:${caller.user_id}`,
      route: `${req.method} ${req.routeOptions.url ?? ''}`,
      key: String(headers['idempotency-key']),
      fingerprint: fingerprintOf(keys.fingerprint, { params, query, body: body ?? null }),
    },
  }
}

/** A dry run takes everything back by leaving the transaction. */
export class DryRun extends Error {
  readonly effect: Record<string, unknown>
  constructor(effect: Record<string, unknown>) {
    super('dry run')
    this.effect = effect
  }
}

/** Runs a mutation once per key; `dry_run` goes through all checks and stores nothing. */
export const mutate = async (
  deps: OperationsDeps,
  mutation: Mutation,
  run: (tx: Tx) => Promise<{ status: number; headers?: Record<string, string>; body: unknown }>,
) => {
  try {
    return await deps.db.transaction((tx) => once(tx, idempotency, mutation.request, () => run(tx)))
  } catch (error) {
    if (error instanceof AppError && error.category === 'policy_denied') await auditDenial(deps, mutation, error)
    if (!(error instanceof DryRun)) throw error
    const body = { dry_run: true, effect: error.effect, allowed_actions: [] }
    return { status: 200, headers: {}, body: Buffer.from(JSON.stringify(body)), replayed: false }
  }
}

/** A 403 leaves a row of its own: its transaction is gone. */
const auditDenial = (
  deps: OperationsDeps,
  { request, caller, request_id }: Mutation,
  { code }: AppError,
): Promise<void> =>
  deps.db.transaction((tx) =>
    appendAudit(tx, deps.keys.audit, {
      actor: request.caller,
      roles: caller.roles,
      action: request.route,
      object: request.route,
      outcome: 'denied',
      reason: code,
      request_id,
    }),
  )

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
    hint: 'Leave out the targets outside your scope, or ask somebody whose roles cover them.',
    extra: { policy_ids: [] },
  })
}

/** Records what should be true. Targets are resolved now, and again for each plan. */
export const createIntent = async (deps: OperationsDeps, mutation: Mutation, body: IntentBody) => {
  refuseShape(body)
  const attempt = () =>
    mutate(deps, mutation, async (tx) => {
      if (body.runbook) refuseRunbook(deps, body.runbook)
      refuseWindow(deps, body.constraints?.window_id)
      if (body.retry_of !== undefined) await refuseRetryOf(tx, mutation.caller, body.retry_of)
      const targets = await resolveTargets(tx, body, deps.config.OPERATIONS__LIMITS__TARGETS)
      if (targets.length === 0 && body.kind !== 'graph' && (body.targets ?? []).length > 0)
        throw new AppError('validation_error', 'no_targets', 'The selectors match nothing.', { status: 422 })
      const ids = targets.map(({ resource_id }) => resource_id)
      await requireScopeOver(tx, mutation, 'intent:create', ids)
      if (body.dry_run) throw new DryRun({ targets_resolved: resolvedOf(targets) })
      const { dry_run: _, ...request } = body
      const intent_id = uuidv7()
      await saveIntent(
        tx,
        {
          intent_id,
          kind: body.kind,
          title: body.title,
          reason: body.reason,
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
      await appendAudit(tx, deps.keys.audit, {
        actor: mutation.request.caller,
        roles: mutation.caller.roles,
        action: 'intent.create',
        object: `intent:${intent_id}`,
        outcome: 'done',
        reason: body.reason,
        after: request,
        request_id: mutation.request_id,
      })
      const intent = await getIntent(tx, intent_id)
      if (!intent) throw new Error(`intent ${intent_id} is gone`)
      return {
        status: 201,
        headers: { location: `/v1/intents/${intent_id}`, etag: `"${intent.revision}"` },
        body: intentView(intent, mutation.caller, true),
      }
    })
  try {
    return await attempt()
  } catch (error) {
    if (!(error instanceof TargetsMissing)) throw error
    // What was just created in the catalog may still be on its way: a look at the end of its log brings most of it, and
    // what the log has not numbered yet is asked for by name.
    await requireFresh(deps.projection, { max_lag_ms: 0 })
    await Promise.all(error.resource_ids.slice(0, ASKED).map((id) => deps.projection.followOne('resource', id)))
    return attempt()
  }
}

/** The most resources that one request asks the catalog for by name. */
const ASKED = 20

const resolvedOf = (targets: Target[]) =>
  targets.map(({ resource_id, type_key, name, version }) => ({ resource_id, type_key, name, version }))

/** A name that no loaded pack has is said at once, not only when it is planned. */
const refuseRunbook = ({ library }: Pick<OperationsDeps, 'library'>, wanted: NonNullable<IntentBody['runbook']>) => {
  const found = findRunbook(library, wanted)
  if (typeof found !== 'string') return
  const violation = { pointer: '/runbook/procedure', code: 'unknown_procedure', message: found }
  throw new AppError('validation_error', 'unknown_procedure', found, { status: 422, violations: [violation] })
}

const unknown = (pointer: string, message: string) =>
  new AppError('validation_error', 'unknown_reference', message, {
    status: 422,
    violations: [{ pointer, code: 'unknown_reference', message }],
  })

const refuseWindow = ({ library }: Pick<OperationsDeps, 'library'>, wanted: string | undefined) => {
  if (wanted !== undefined && !library.windows.some(({ window_id }) => window_id === wanted))
    throw unknown('/constraints/window_id', `There is no window "${wanted}".`)
}

/** What is done again must be there for whoever asks: a name in a history that leads nowhere misleads. */
const refuseRetryOf = async (db: Queryable, caller: Caller, operation_id: string) => {
  const owned = await getOwned(db, operation_id)
  const places = owned ? await placesFor(db, caller, owned.resource_ids) : []
  if (!owned || !isVisible(caller, owned.requester_id, places))
    throw unknown('/retry_of', `There is no operation "${operation_id}", or you may not see it.`)
}

/** Which parts each kind has; what does not belong is refused rather than passed over. */
const refuseShape = (body: IntentBody): void => {
  const wrong = (
    pointer: string,
    message: string,
    code: CodeOf<'validation_error'> = 'schema_violation',
    status = 400,
  ) => {
    throw new AppError('validation_error', code, `${pointer} ${message}.`, {
      status,
      violations: [{ pointer, code, message }],
    })
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
    wrong('/targets', 'must name a target', 'no_targets', 422)
}

/** The intent, when the caller may see it. */
export const readIntent = async (deps: OperationsDeps, caller: Caller, intent_id: string): Promise<Intent> => {
  const intent = await getIntent(deps.db, intent_id)
  const visible =
    intent && isVisible(caller, intent.requester_id, await placesFor(deps.db, caller, intent.resource_ids))
  if (!intent || !visible) throw notFound('intent', intent_id)
  return intent
}

const CLOSED = new Set(['fulfilled', 'expired'])

/** Why an intent cannot be previewed now, or nothing (operations.md 2.1). */
export const refusePreview = ({
  status,
  operation_id,
}: Pick<Intent, 'status' | 'operation_id'>): RefusalCode | undefined => {
  if (status === 'executing')
    return {
      category: 'plan_locked',
      code: 'already_started',
      detail: 'A plan of this intent has been started.',
      extra: { operation_id },
    }
  if (CLOSED.has(status))
    return {
      category: 'invalid_state_transition',
      code: 'intent_closed',
      detail: `The intent is ${status}; make a new one, with retry_of where it repeats another.`,
    }
  return undefined
}

export const intentView = (intent: Intent, caller: Caller, in_scope: boolean): IntentView => {
  const { resource_ids: _ids, requester_id: _requester, ...view } = intent
  const allowed: AllowedAction[] = [
    allowedAction(
      'preview',
      caller.permissions.has('intent:create') ? undefined : MISSING,
      in_scope ? undefined : OUTSIDE,
      refusePreview(intent),
    ),
  ]
  return {
    ...view,
    status: intent.status as IntentView['status'],
    links: linksOf(intent),
    allowed_actions: allowed,
  }
}
const MISSING: RefusalCode = {
  category: 'policy_denied',
  code: 'permission_missing',
  detail: missingWords(['intent:create']),
}
const OUTSIDE: RefusalCode = {
  category: 'policy_denied',
  code: 'out_of_scope',
  detail: 'Your roles do not cover every target.',
}

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
