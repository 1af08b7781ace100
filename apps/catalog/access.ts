import { getPathSteps, type PathStep, type ResourceRow } from '../../db/catalog/resources.ts'
import type { Queryable } from '../../db/client.ts'
import type { Caller } from '../shared/auth/caller.ts'
import { type Permission, roleHas } from '../shared/auth/permissions.ts'
import type { Clock } from '../shared/clock.ts'
import type { Scope } from '../shared/contracts/catalog/resources.ts'
import { AppError } from '../shared/errors.ts'
import { LEVELS, type Level, type Types } from './types.registry.ts'

/** One grant as a limit on rows: below all of these places, and of one of these types (none named: any). */
export type Limit = { place_ids: string[]; type_ids: number[] | null }
/** What a caller may reach with one permission: everything, or what any of the limits lets through. */
export type Access = 'all' | Limit[]

/** The rows that a caller's grants open for a permission (auth.md 9). */
export const accessOf = (
  caller: Pick<Caller, 'grants'>,
  permission: Permission,
  types: Types,
  clock: Clock,
): Access => {
  const now = clock.now()
  const limits: Limit[] = []
  for (const { role, scope, expires_at } of caller.grants) {
    if (!roleHas(role, permission) || (expires_at !== null && new Date(expires_at) <= now)) continue
    const place_ids = (Object.keys(LEVELS) as Level[]).map((level) => scope[level]).filter((id) => id !== undefined)
    const type_ids = scope.type_key === undefined ? null : idsOfScope(types, scope.type_key)
    if (place_ids.length === 0 && type_ids === null) return 'all'
    limits.push({ place_ids, type_ids })
  }
  return limits
}

/** A type of a scope covers all that derive from it; `a.*` covers the types whose key starts so. */
const idsOfScope = (types: Types, type_key: string): number[] =>
  type_key.endsWith('.*')
    ? types.idsOf(
        types.all.filter((type) => type.type_key.startsWith(type_key.slice(0, -1))).map((type) => type.type_key),
      )
    : types.idsOf([type_key])

/** The topology levels among the steps of a path. */
export const scopeOf = (path: string, steps: ReadonlyMap<string, PathStep>, types: Types): Scope => {
  const scope: Scope = { region_id: null, datacenter_id: null, layer_id: null, segment_id: null }
  for (const rid of path.split('.')) {
    const step = steps.get(rid)
    const level = step && types.levelOf(step.type_id)
    if (step && level) scope[level] = step.resource_id
  }
  return scope
}

/**
 * Whether the access reaches a resource at this place. Outside any topology a resource is readable with its type alone
 * and writable only without a topology limit (catalog.md 12).
 */
export const reaches = (access: Access, type_id: number, scope: Scope, act: 'read' | 'write'): boolean => {
  if (access === 'all') return true
  const places = Object.values(scope).filter((id) => id !== null)
  return access.some(
    ({ place_ids, type_ids }) =>
      (type_ids === null || type_ids.includes(type_id)) &&
      (place_ids.every((id) => places.includes(id)) || (act === 'read' && places.length === 0)),
  )
}

export const outOfScope = (row: Pick<ResourceRow, 'resource_id'>, permission: Permission): AppError =>
  new AppError('policy_denied', 'out_of_scope', `Your grants of ${permission} do not reach ${row.resource_id}.`, {
    extra: { permission },
    hint: `Ask an administrator for ${permission} at this place and type.`,
  })

/** The row numbers of these resources that an access reaches for reading. */
export const visibleOf = async (
  db: Queryable,
  types: Types,
  access: Access,
  rows: readonly ResourceRow[],
): Promise<ReadonlySet<string>> => {
  if (access === 'all') return new Set(rows.map(({ rid }) => rid))
  const steps = await getPathSteps(
    db,
    rows.map(({ path }) => path),
  )
  return new Set(
    rows.filter((row) => reaches(access, row.type_id, scopeOf(row.path, steps, types), 'read')).map(({ rid }) => rid),
  )
}
