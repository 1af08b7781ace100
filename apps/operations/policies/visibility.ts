import { type SQL, type SQLWrapper, sql } from 'drizzle-orm'
import type { Queryable } from '../../../db/client.ts'
import type { Permission } from '../../shared/auth/permissions.ts'
import {
  type Grant,
  givesPermission,
  isGranted,
  type Place,
  SCOPE_FIELDS,
  type Scope,
} from '../../shared/auth/scope.ts'

/** The viewer: a person with their grants. */
export type Viewer = { user_id: string; grants: readonly Grant[] }

const isEverywhere = (scope: Scope): boolean => SCOPE_FIELDS.every((field) => scope[field] === undefined)
const grantsOf = ({ grants }: Viewer, permission: Permission) =>
  grants.filter((grant) => givesPermission(grant, permission))

/** Whether the places of objects matter for this person: grants without scope hold everywhere. */
export const hasScopes = ({ grants }: Viewer): boolean => grants.some(({ scope }) => !isEverywhere(scope))

/**
 * Returns the condition under which a row may be read (auth.md 9): a grant covers at least one of its targets, or the
 * viewer requested it. Only grants without scope cover a row without targets. `undefined` if all rows may be read.
 */
export const visibleSql = (
  viewer: Viewer,
  columns: { requester_id: SQLWrapper; resource_ids: SQLWrapper },
  permission: Permission = 'operation:read',
): SQL | undefined => {
  const scopes = grantsOf(viewer, permission).map(({ scope }) => scope)
  if (scopes.some(isEverywhere)) return undefined
  const own = sql`${columns.requester_id} = ${viewer.user_id}`
  if (scopes.length === 0) return own
  const covered = sql.join(scopes.map(coversSql), sql` or `)
  return sql`(${own} or exists (select 1 from unnest(${columns.resource_ids}) as target(id) cross join lateral operations.place_of(target.id) as place where ${covered}))`
}

/** Returns the condition under which a command may be given: the permission covers every target of the row. */
export const coversAllSql = (
  viewer: Viewer,
  columns: { resource_ids: SQLWrapper },
  permission: Permission,
): SQL | undefined => {
  const scopes = grantsOf(viewer, permission).map(({ scope }) => scope)
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
export const loadPlaces = async (db: Queryable, resource_ids: readonly string[]): Promise<Place[]> => {
  if (resource_ids.length === 0) return [{}]
  const ids = sql`${sql.param(resource_ids)}::text[]`
  const { rows } = await db.execute<Place & Record<string, unknown>>(
    sql`select distinct place.* from unnest(${ids}) as target(id) cross join lateral operations.place_of(target.id) as place`,
  )
  return rows
}

/** Like loadPlaces, without a query if the places do not matter for this person. */
export const placesFor = (db: Queryable, viewer: Viewer, resource_ids: readonly string[]): Promise<Place[]> =>
  hasScopes(viewer) ? loadPlaces(db, resource_ids) : Promise.resolve([{}])

/** Reading: one covered target is enough, and a requester always sees their own request. */
export const isVisible = (viewer: Viewer, requester_id: string, places: readonly Place[]): boolean =>
  requester_id === viewer.user_id || places.some((place) => isGranted(viewer.grants, 'operation:read', place))

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

/** Whether this person may read a resource, wherever it is. */
export const maySeeResource = async (db: Queryable, viewer: Viewer, resource_id: string): Promise<boolean> => {
  if (isGranted(viewer.grants, 'catalog:read', {})) return true
  const places = await loadPlaces(db, [resource_id])
  return places.some((place) => isGranted(viewer.grants, 'catalog:read', place))
}
