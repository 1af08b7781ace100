import { create } from '@bufbuild/protobuf'
import { timestampFromDate } from '@bufbuild/protobuf/wkt'
import type { Queryable } from '../../db/client.ts'
import { getUser, groupKeysOf, type HeldGrant, heldGrants } from '../../db/identity/queries.ts'
import type { UserRow } from '../../db/identity/tables.ts'
import {
  GrantSchema,
  type Principal,
  PrincipalSchema,
  ScopeSchema,
  type User,
  UserSchema,
  UserStatus,
} from '../shared/contracts/gen/auth_pb.ts'

const STATUS = { ACTIVE: UserStatus.ACTIVE, DISABLED: UserStatus.DISABLED, DELETED: UserStatus.DELETED } as const

/** The User message of the specification. */
export const userMessage = (user: UserRow): User =>
  create(UserSchema, {
    id: user.id,
    username: user.username,
    status: STATUS[user.status],
    createdAt: timestampFromDate(new Date(user.created_at)),
    ...(user.disabled_at && { disabledAt: timestampFromDate(new Date(user.disabled_at)) }),
  })

const grantMessage = ({ id, role, scope, expires_at, via_group_key }: HeldGrant) =>
  create(GrantSchema, {
    id,
    role,
    scope: create(ScopeSchema, {
      ...(scope.region_id && { regionId: scope.region_id }),
      ...(scope.datacenter_id && { datacenterId: scope.datacenter_id }),
      ...(scope.layer_id && { layerId: scope.layer_id }),
      ...(scope.segment_id && { segmentId: scope.segment_id }),
      ...(scope.type_key && { typeKey: scope.type_key }),
    }),
    ...(expires_at && { expiresAt: timestampFromDate(new Date(expires_at)) }),
    ...(via_group_key && { viaGroupKey: via_group_key }),
  })

/** A user with everything held now; a user who is not ACTIVE holds nothing. */
export const principalMessage = async (db: Queryable, user_id: string): Promise<Principal | undefined> => {
  const user = await getUser(db, user_id)
  return user && (await principalsOf(db, [user]))[0]
}

export const principalsOf = async (db: Queryable, users: UserRow[]): Promise<Principal[]> => {
  const ids = users.map((user) => user.id)
  const [held, groups] = await Promise.all([heldGrants(db, ids), groupKeysOf(db, ids)])
  return users.map((user) =>
    create(PrincipalSchema, {
      user: userMessage(user),
      grants: user.status === 'ACTIVE' ? held.filter((grant) => grant.user_id === user.id).map(grantMessage) : [],
      groupKeys: user.status === 'ACTIVE' ? (groups.get(user.id) ?? []) : [],
      version: BigInt(user.version),
    }),
  )
}
