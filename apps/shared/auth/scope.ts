import type { Principal as PrincipalMessage } from '../contracts/gen/auth_pb.ts'
import { type Permission, PLACELESS, permissionsOf, roleHas } from './permissions.ts'

/** Where a grant holds. All given fields must match; none given means everywhere. */
export type Scope = {
  region_id?: string
  datacenter_id?: string
  layer_id?: string
  segment_id?: string
  type_key?: string
}
export const SCOPE_FIELDS = ['region_id', 'datacenter_id', 'layer_id', 'segment_id', 'type_key'] as const

/** A subject's role. `expires_at` is RFC 3339; null never ends. `via_group_key` names the group that grants it. */
export type Grant = {
  id: string
  role: string
  scope: Scope
  expires_at: string | null
  via_group_key?: string
  /** When it was granted, and by whom: ids of users. Unknown to a caller of an older build. */
  since?: string | null
  by?: readonly string[]
  /** Limits the role to these permissions: those of a machine's credential. */
  only?: ReadonlySet<string>
}

export const givesPermission = ({ role, only }: Pick<Grant, 'role' | 'only'>, permission: Permission): boolean =>
  roleHas(role, permission) && (only === undefined || only.has(permission))

export const permissionsIn = (grants: readonly Grant[]): ReadonlySet<Permission> =>
  new Set(grants.flatMap((grant) => [...permissionsOf([grant.role])].filter((one) => givesPermission(grant, one))))

/** Returns the place where both scopes hold; `undefined` if there is none. */
const meet = (a: Scope, b: Scope): Scope | undefined => {
  const both: Scope = { ...a }
  for (const field of SCOPE_FIELDS) {
    const [mine, other] = [a[field], b[field]]
    if (other === undefined || mine === other) continue
    if (mine === undefined || (field === 'type_key' && isBelow(other, mine))) both[field] = other
    else if (field !== 'type_key' || !isBelow(mine, other)) return undefined
  }
  return both
}
const isBelow = (type_key: string, pattern: string): boolean =>
  pattern.endsWith('.*') && type_key.startsWith(pattern.slice(0, -1))

/** Returns a machine's grants as limited by a credential: never more than either, and in a place only what has one. */
export const narrowed = (grants: readonly Grant[], permissions: readonly string[], place: Scope = {}): Grant[] => {
  const everywhere = Object.keys(place).length === 0
  const only = new Set(permissions.filter((one) => everywhere || !PLACELESS.has(one)))
  return grants.flatMap((grant) => {
    const scope = meet(grant.scope, place)
    return scope ? [{ ...grant, scope, only }] : []
  })
}

/** The place of an object: the values of its scope fields. A missing field matches no scope that names it. */
export type Place = { [F in keyof Scope]?: string | null }

/** Whether every field that the scope names matches the place; `type_key` may end in `.*` for all types below. */
export const scopeCovers = (scope: Scope, place: Place): boolean =>
  SCOPE_FIELDS.every((field) => {
    const wanted = scope[field]
    if (wanted === undefined) return true
    const found = place[field]
    if (found === undefined || found === null) return false
    if (field === 'type_key' && wanted.endsWith('.*')) return found.startsWith(wanted.slice(0, -1))
    return found === wanted
  })

/** Whether one of these scopes covers the place; without scopes every place is covered. */
export const isWithin = (scopes: readonly Scope[] | undefined, place: Place): boolean =>
  scopes === undefined || scopes.some((scope) => scopeCovers(scope, place))

/** Whether any of the grants gives the permission at this place (grants add up). */
export const isGranted = (grants: readonly Grant[], permission: Permission, place: Place): boolean =>
  grants.some((grant) => givesPermission(grant, permission) && scopeCovers(grant.scope, place))

/** Reads where rights hold from identity's message. */
export const scopeOf = (scope: PrincipalMessage['grants'][number]['scope']): Scope => ({
  ...(scope?.regionId !== undefined && { region_id: scope.regionId }),
  ...(scope?.datacenterId !== undefined && { datacenter_id: scope.datacenterId }),
  ...(scope?.layerId !== undefined && { layer_id: scope.layerId }),
  ...(scope?.segmentId !== undefined && { segment_id: scope.segmentId }),
  ...(scope?.typeKey !== undefined && { type_key: scope.typeKey }),
})
