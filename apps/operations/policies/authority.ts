import { refuseCancel, refusePause, refuseResume } from '../../../workflows/operation/rules/control.ts'
import type { OperationFacts } from '../../../workflows/operation/rules/facts.ts'
import { refusePatch } from '../../../workflows/operation/rules/patches.ts'
import type { Caller } from '../../shared/auth/caller.ts'
import { missingWords, type Permission } from '../../shared/auth/permissions.ts'
import type { Place } from '../../shared/auth/scope.ts'
import type { Clock } from '../../shared/clock.ts'
import type { AllowedAction, RefusalCode } from '../../shared/contracts/operations/graph.ts'
import { AppError, refusal } from '../../shared/errors.ts'
import type { Policies, PolicyAction, PolicyObject } from './cedar.ts'
import { isInScope } from './visibility.ts'

/** The permission that each act needs over every target (auth.md 9). */
const PERMISSION_OF: Record<PolicyAction, Permission> = {
  'operation.pause': 'operation:control',
  'operation.resume': 'operation:control',
  'operation.cancel': 'operation:control',
  'operation.force_cancel': 'operation:control',
  'operation.intervene': 'operation:intervene',
  'operation.signal': 'signal:send',
  'node.retry': 'operation:control',
  'node.intervene': 'operation:intervene',
  'gate.approve': 'gate:decide',
  'gate.reject': 'gate:decide',
  'gate.break_glass': 'gate:decide',
  'plan.start': 'plan:start',
  'patch.propose': 'patch:propose',
  'patch.approve': 'patch:decide',
  'patch.reject': 'patch:decide',
}

export type Authority = { policies: Policies; clock: Clock }

/** An operation as policies see it; a gate adds its groups and whether it requires four eyes. */
export type Governed = {
  operation_id: string
  requester_id: string
  involved: readonly string[]
  risk_level: string
  environment: string | null
  labels: Readonly<Record<string, string>>
  places: readonly Place[]
}

export const operationObject = (operation: Governed): PolicyObject => ({
  type: 'Operation',
  id: operation.operation_id,
  requester: operation.requester_id,
  behind: [],
  involved: operation.involved,
  four_eyes: false,
  groups: [],
  risk: operation.risk_level,
  environment: operation.environment,
  types: distinct(operation.places.map(({ type_key }) => type_key)),
  regions: distinct(operation.places.map(({ region_id }) => region_id)),
  labels: operation.labels,
})

const distinct = (values: readonly (string | null | undefined)[]): string[] => [
  ...new Set(values.filter((value): value is string => typeof value === 'string')),
]

/** Checks the permission over every target, then the Cedar policies; returns the refusal or `undefined`. */
export const refuseByPolicy = (
  { policies, clock }: Authority,
  caller: Caller,
  action: PolicyAction,
  object: PolicyObject,
  places: readonly Place[],
  as_groups: readonly string[] = caller.groups,
): RefusalCode | undefined => {
  const permission = PERMISSION_OF[action]
  if (!caller.permissions.has(permission))
    return refusal('policy_denied', 'permission_missing', missingWords([permission]), { extra: { permission } })
  return policies.refuse({
    action,
    user_id: caller.user_id,
    kind: caller.kind,
    groups: caller.groups,
    object,
    granted: isInScope(caller, permission, places),
    both: isInScope(caller, 'operation:control', places) && isInScope(caller, 'gate:decide', places),
    as_groups,
    auth_age_s: clock.now().getTime() / 1000 - caller.auth_time,
  })
}

/** A refusal as the error that crosses the layers. */
export const refused = ({ category, code, detail, status, extra, available_at }: RefusalCode): AppError =>
  new AppError(category, code, detail, {
    ...(status !== undefined && { status }),
    extra: { ...extra, ...(available_at !== undefined && { available_at }) },
    ...(code === 'reauth_required' && {
      hint: 'Send your password to POST /v1/token/reauth and repeat the request with the new access token.',
    }),
  })

export const throwIfRefused = (refusal: RefusalCode | undefined): void => {
  if (refusal) throw refused(refusal)
}

/** Returns one entry of `allowed_actions`; the first refusal is the reason. */
export const allowedAction = (action: string, ...refusals: (RefusalCode | undefined)[]): AllowedAction => {
  const first = refusals.find((candidate) => candidate !== undefined)
  return {
    action,
    allowed: first === undefined,
    reason_category: first?.category ?? null,
    reason_code: first?.code ?? null,
    reason: first?.detail ?? null,
    available_at: first?.available_at ?? null,
  }
}

/** Returns what the caller may do with the whole operation, by the rules that decide the commands. */
export const operationActions = (
  authority: Authority & { cooloff_s: number },
  caller: Caller,
  operation: Governed,
  facts: OperationFacts,
): AllowedAction[] => {
  const object = operationObject(operation)
  const now = authority.clock.now().toISOString()
  const may = (action: PolicyAction, on = object) => refuseByPolicy(authority, caller, action, on, operation.places)
  const cancel = (mode: 'graceful' | 'compensate' | 'force') =>
    refuseCancel(facts, { mode, now, cooloff_s: authority.cooloff_s })
  return [
    allowedAction('pause', may('operation.pause'), refusePause(facts)),
    allowedAction('resume', may('operation.resume'), refuseResume(facts, { acknowledge_drift: true })),
    allowedAction('cancel', may('operation.cancel'), cancel('graceful')),
    allowedAction('cancel_compensate', may('operation.cancel'), cancel('compensate')),
    allowedAction('cancel_force', may('operation.force_cancel'), cancel('force')),
    allowedAction('propose_patch', may('patch.propose', { ...object, type: 'Patch' }), refusePatch(facts)),
  ]
}

/** Above medium risk one person alone must not override the plan (operations.md 5.4). */
export const needsSecondPerson = (risk_level: string): boolean => risk_level === 'high' || risk_level === 'critical'
