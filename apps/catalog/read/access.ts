import { pathsAt } from '../../../db/catalog/resources/history.ts'
import { getFixed } from '../../../db/catalog/resources/rows.ts'
import type { Fixed, ResourceRow } from '../../../db/catalog/rows.ts'
import type { Queryable } from '../../../db/client.ts'
import type { Caller } from '../../shared/auth/caller.ts'
import type { Permission } from '../../shared/auth/permissions.ts'
import { givesPermission } from '../../shared/auth/scope.ts'
import type { Clock } from '../../shared/clock.ts'
import type { Scope } from '../../shared/contracts/catalog/resources.ts'
import { AppError } from '../../shared/errors.ts'
import { LEVELS, type Level, type Types } from '../packs/registry.ts'

/** One grant as a limit on rows: below all of these places, and of one of these types (null: any). */
export type Limit = { place_ids: string[]; type_ids: number[] | null }
/** What a caller may reach with one permission: everything, or the union of the limits. */
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
  for (const grant of caller.grants) {
    const { scope, expires_at } = grant
    if (!givesPermission(grant, permission) || (expires_at !== null && new Date(expires_at) <= now)) continue
    const place_ids = (Object.keys(LEVELS) as Level[]).map((level) => scope[level]).filter((id) => id !== undefined)
    const type_ids = scope.type_key === undefined ? null : idsOfScope(types, scope.type_key)
    if (place_ids.length === 0 && type_ids === null) return 'all'
    limits.push({ place_ids, type_ids })
  }
  return limits
}

/** A scope's type covers all types derived from it; `a.*` covers the types whose key starts with `a.`. */
const idsOfScope = (types: Types, type_key: string): number[] =>
  type_key.endsWith('.*')
    ? types.idsOf(
        types.all.filter((type) => type.type_key.startsWith(type_key.slice(0, -1))).map((type) => type.type_key),
      )
    : types.idsOf([type_key])

/** A resource with the row numbers from the root to it. */
export type Placed = Fixed & { path: string }

/** The topology levels above these resources. Ancestors are read once per process: a row's id and type never change. */
export const scopesOf = async (
  db: Queryable,
  types: Types,
  rows: readonly Placed[],
): Promise<(row: Placed) => Scope> => {
  const steps = new Map(
    rows.map(({ rid, resource_id, type_id }) => [rid, { resource_id, level: types.levelOf(type_id) }]),
  )
  const unknown = new Set<string>()
  for (const { path } of rows) {
    for (const rid of path.split('.')) {
      if (steps.has(rid)) continue
      const step = types.steps.get(rid)
      if (step) steps.set(rid, step)
      else unknown.add(rid)
    }
  }
  for (const { rid, resource_id, type_id } of unknown.size > 0 ? await getFixed(db, [...unknown]) : []) {
    const step = { resource_id, level: types.levelOf(type_id) }
    steps.set(rid, step)
    types.steps.set(rid, step)
  }
  return ({ path }) => {
    const scope: Scope = { region_id: null, datacenter_id: null, layer_id: null, segment_id: null }
    for (const rid of path.split('.')) {
      const step = steps.get(rid)
      if (step?.level) scope[step.level] = step.resource_id
    }
    return scope
  }
}

/** These resources with their places at a given time. */
export const placedThen = async <R extends Placed>(db: Queryable, types: Types, rows: readonly R[], at: string) => {
  const containment = types.relationship('contained_in')
  const rids = rows.map(({ rid }) => rid)
  const paths = containment ? await pathsAt(db, rids, containment.id, at) : new Map<string, string>()
  return rows.map((row) => ({ ...row, path: paths.get(row.rid) ?? row.path }))
}

/**
 * Whether the access reaches a resource at this place. Outside any topology, a resource is readable by its type alone
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

/** The permission that a caller lacks to write a resource of a type at a place; `undefined` if they may. */
export type MayWrite = (type_id: number, scope: Scope) => Permission | undefined

/** The refusal of a caller who may not write the resource called `name`. */
export const outOfScope = (name: string, permission: Permission): AppError =>
  new AppError('policy_denied', 'out_of_scope', `Your grants of ${permission} do not cover ${name}.`, {
    extra: { permission },
    hint: `Ask an administrator for ${permission} for this place and type.`,
  })

/** The row numbers of those resources that an access may read. */
export const visibleOf = async (
  db: Queryable,
  types: Types,
  access: Access,
  rows: readonly ResourceRow[],
): Promise<ReadonlySet<string>> => {
  if (access === 'all') return new Set(rows.map(({ rid }) => rid))
  const scopeOf = await scopesOf(db, types, rows)
  return new Set(rows.filter((row) => reaches(access, row.type_id, scopeOf(row), 'read')).map(({ rid }) => rid))
}

export const scopeOfRow = async (db: Queryable, types: Types, row: Placed): Promise<Scope> =>
  (await scopesOf(db, types, [row]))(row)
