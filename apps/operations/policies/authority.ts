import { and, inArray, type SQL, type SQLWrapper, sql } from 'drizzle-orm'
import type { Queryable } from '../../../db/client.ts'
import { operations } from '../../../db/operations/tables/index.ts'
import { refuseCancel, refusePause, refuseResume } from '../../../workflows/operation/rules/control.ts'
import type { OperationFacts } from '../../../workflows/operation/rules/facts.ts'
import { refusePatch } from '../../../workflows/operation/rules/patches.ts'
import { type Caller, REAUTH_HINT } from '../../shared/auth/caller.ts'
import { missingWords, type Permission } from '../../shared/auth/permissions.ts'
import {
  type Grant,
  givesPermission,
  isGranted,
  type Place,
  SCOPE_FIELDS,
  type Scope,
} from '../../shared/auth/scope.ts'
import type { Clock } from '../../shared/clock.ts'
import type { Affected } from '../../shared/contracts/catalog/affected.ts'
import type { AllowedAction, GatePolicy, RefusalCode } from '../../shared/contracts/operations/graph.ts'
import { digest } from '../../shared/data/digest.ts'
import { pick, pluck } from '../../shared/data/pick.ts'
import { AppError, refusal } from '../../shared/errors.ts'
import { PERMISSION_OF, type Policies, type PolicyAction, type PolicyObject } from './cedar.ts'

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
  ...pick(operation, 'involved', 'environment', 'labels'),
  four_eyes: false,
  groups: [],
  risk: operation.risk_level,
  ...spreadOf(operation.places),
})

/** The types and regions of these places. */
export const spreadOf = (places: readonly Place[]) => ({
  types: distinct(places.map(({ type_key }) => type_key)),
  regions: distinct(places.map(({ region_id }) => region_id)),
})

const distinct = (values: readonly (string | null | undefined)[]): string[] => [
  ...new Set(values.filter((value): value is string => typeof value === 'string')),
]

/** Delegating hands on a right to decide; every other intervention is an operator's. */
export const actionOf = (type: string | null) =>
  type === 'delegate_gate' ? 'operation.delegate' : 'operation.intervene'

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
    ...pick(caller, 'user_id', 'kind', 'groups'),
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
    ...(code === 'reauth_required' && { hint: REAUTH_HINT }),
  })

export const throwIfRefused = (refusal: RefusalCode | undefined): void => {
  if (refusal) throw refused(refusal)
}

/** Returns one entry of `allowed_actions`; the first refusal is the reason, but one that a new sign-in lifts comes last. */
export const allowedAction = (action: string, ...refusals: (RefusalCode | undefined)[]): AllowedAction => {
  const all = refusals.filter((candidate) => candidate !== undefined)
  const first = all.find(({ code }) => code !== 'reauth_required') ?? all[0]
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

/** The policy of a gate that asks one person other than those involved. */
export const onePerson = (key: string): GatePolicy => {
  const rules = {
    ...{ key, quorum: 1, groups: [], four_eyes: true, reject_rule: 'any' as const, comment_on_approve: false },
    ...{ deadline_s: 4 * 3600, escalation: [], on_timeout: 'reject' as const, on_reject: 'hold' as const },
    ...{ lease_policy: 'hold' as const, binds: [] },
  }
  return { ...rules, digest: digest(rules) }
}

/** The viewer: a person with their grants. */
export type Viewer = { user_id: string; grants: readonly Grant[] }

const isEverywhere = (scope: Scope): boolean => SCOPE_FIELDS.every((field) => scope[field] === undefined)
const scopesOf = ({ grants }: Viewer, permission: Permission): Scope[] =>
  grants.flatMap((grant) => (givesPermission(grant, permission) ? [grant.scope] : []))

/** Whether the places of objects matter for this person: grants without scope hold everywhere. */
export const hasScopes = ({ grants }: Pick<Viewer, 'grants'>): boolean =>
  grants.some(({ scope }) => !isEverywhere(scope))

/** Where this person has any of these permissions; `undefined`: everywhere. */
export const scopesFor = (viewer: Viewer, ...permissions: Permission[]): Scope[] | undefined => {
  const scopes = permissions.flatMap((permission) => scopesOf(viewer, permission))
  return scopes.some(isEverywhere) ? undefined : scopes
}

/**
 * Returns the condition under which a row may be read (auth.md 9): a grant covers at least one of its targets, or the
 * viewer requested it. Only grants without scope cover a row without targets. `undefined` if all rows may be read.
 */
export const visibleSql = (
  viewer: Viewer,
  columns: { requester_id: SQLWrapper; resource_ids: SQLWrapper },
): SQL | undefined => {
  const scopes = scopesOf(viewer, 'operation:read')
  if (scopes.some(isEverywhere)) return undefined
  const own = sql`${columns.requester_id} = ${viewer.user_id}`
  if (scopes.length === 0) return own
  const covered = sql.join(scopes.map(coversSql), sql` or `)
  return sql`(${own} or exists (select 1 from unnest(${columns.resource_ids}) as target(id) cross join lateral operations.place_of(target.id) as place where ${covered}))`
}

/** Returns the condition under which at least one target of a row is in a region; `undefined` without a region. */
export const insideSql = (region_id: string | undefined, { resource_ids }: { resource_ids: SQLWrapper }) =>
  region_id === undefined
    ? undefined
    : sql`exists (select 1 from unnest(${resource_ids}) as target(id) cross join lateral operations.place_of(target.id) as place where place.region_id = ${region_id})`

/** Returns the condition under which a command may be given: the permission covers every target of the row. */
export const coversAllSql = (
  viewer: Viewer,
  columns: { resource_ids: SQLWrapper },
  permission: Permission,
): SQL | undefined => {
  const scopes = scopesOf(viewer, permission)
  if (scopes.some(isEverywhere)) return undefined
  if (scopes.length === 0) return sql`false`
  const covered = sql.join(scopes.map(coversSql), sql` or `)
  return sql`(cardinality(${columns.resource_ids}) > 0 and not exists (select 1 from unnest(${columns.resource_ids}) as target(id) cross join lateral operations.place_of(target.id) as place where (${covered}) is not true))`
}

const coversSql = (scope: Scope): SQL => {
  const parts = SCOPE_FIELDS.flatMap((field) => {
    const wanted = scope[field]
    if (wanted === undefined) return []
    if (field === 'type_key' && wanted.endsWith('.*')) return [sql`starts_with(place.type_key, ${wanted.slice(0, -1)})`]
    return [sql`place.${sql.identifier(field)} = ${wanted}`]
  })
  return sql`(${sql.join(parts, sql` and `)})`
}

/** Returns these resources' places as the catalog's projection knows them; a row without targets has no place. */
export const loadPlaces = async (db: Queryable, resource_ids: readonly string[]): Promise<Place[]> =>
  resource_ids.length === 0 ? [{}] : placesIn(db, sql`${sql.param(resource_ids)}::text[]`)

/** Like loadPlaces, of an operation's targets. */
export const placesOf = (db: Queryable, operation_id: string): Promise<Place[]> =>
  placesIn(db, sql`(select o.resource_ids from operations.operations o where o.operation_id = ${operation_id})`)

const placesIn = async (db: Queryable, ids: SQL): Promise<Place[]> => {
  const { rows } = await db.execute<Place & Record<string, unknown>>(
    sql`select distinct place.* from unnest(${ids}) as target(id) cross join lateral operations.place_of(target.id) as place`,
  )
  return rows.length === 0 ? [{}] : rows
}

/** Like loadPlaces, without a query if the places do not matter for this person. */
export const placesFor = (db: Queryable, viewer: Viewer, resource_ids: readonly string[]): Promise<Place[]> =>
  hasScopes(viewer) ? loadPlaces(db, resource_ids) : Promise.resolve([{}])

/** Like placesFor, for a reader and these others: a place matters as soon as it does for one of them. */
export const placesForAll = async (
  db: Queryable,
  people: readonly Pick<Viewer, 'grants'>[],
  resource_ids: readonly string[],
): Promise<Place[]> => (people.some(hasScopes) ? loadPlaces(db, resource_ids) : [{}])

/** Reading: one covered target is enough, and a requester always sees their own request. */
export const isVisible = (
  viewer: Viewer,
  requester_id: string,
  places: readonly Place[],
  permission: Permission = 'operation:read',
): boolean => requester_id === viewer.user_id || places.some((place) => isGranted(viewer.grants, permission, place))

/** Commanding: the permission must cover every target. */
export const isInScope = (viewer: Viewer, permission: Permission, places: readonly Place[]): boolean =>
  places.every((place) => isGranted(viewer.grants, permission, place))

/** Returns which of these resources this person may read, wherever they are. */
export const seenResources = async (
  db: Queryable,
  viewer: Viewer,
  resource_ids: readonly string[],
): Promise<ReadonlySet<string>> => {
  if (isGranted(viewer.grants, 'catalog:read', {})) return new Set(resource_ids)
  const { rows } = await db.execute<{ resource_id: string; place: Place }>(
    sql`select target.id as resource_id, to_jsonb(place) as place from unnest(${sql.param(resource_ids)}::text[]) as target(id) cross join lateral operations.place_of(target.id) as place`,
  )
  return new Set(
    rows.filter(({ place }) => isGranted(viewer.grants, 'catalog:read', place)).map(({ resource_id }) => resource_id),
  )
}

/** Returns which of these operations this person may see. */
export const seenOperations = async (
  db: Queryable,
  viewer: Viewer,
  operation_ids: readonly string[],
): Promise<ReadonlySet<string>> => {
  const visible = visibleSql(viewer, operations)
  if (visible === undefined || operation_ids.length === 0) return new Set(operation_ids)
  const rows = await db
    .select(pick(operations, 'operation_id'))
    .from(operations)
    .where(and(inArray(operations.operation_id, [...operation_ids]), visible))
  return new Set(pluck(rows, 'operation_id'))
}

/** Returns the impact of a plan, without names that its reader may not see. */
export const impactFor = async <I extends { affected: Affected | null; dependents: readonly string[] }>(
  db: Queryable,
  viewer: Viewer,
  impact: I,
) => {
  const { affected = null } = impact
  const named = affected?.groups.flatMap(({ nearest }) => pluck(nearest, 'resource_id')) ?? []
  const seen = await seenResources(db, viewer, [...impact.dependents, ...named])
  const dependents = impact.dependents.filter((id) => seen.has(id))
  const groups = affected?.groups.map((group) => ({
    ...group,
    nearest: group.nearest.filter(({ resource_id }) => seen.has(resource_id)),
  }))
  return { ...impact, dependents, affected: affected && groups ? { ...affected, groups } : null }
}

/** Whether this person may read a resource, wherever it is. */
export const maySeeResource = async (db: Queryable, viewer: Viewer, resource_id: string): Promise<boolean> =>
  (await seenResources(db, viewer, [resource_id])).has(resource_id)
