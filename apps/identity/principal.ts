import { create } from '@bufbuild/protobuf'
import { timestampFromDate } from '@bufbuild/protobuf/wkt'
import type { Queryable } from '../../db/client.ts'
import { behindMachines } from '../../db/identity/machines.ts'
import {
  dualSince,
  getUser,
  type HeldGrant,
  heldGrants,
  type MembershipRow,
  membershipsOf,
} from '../../db/identity/queries.ts'
import type { ScopeColumn, UserRow } from '../../db/identity/tables.ts'
import {
  GrantSchema,
  MembershipSchema,
  type Principal,
  PrincipalSchema,
  ScopeSchema,
  type User,
  UserKind,
  UserSchema,
  UserStatus,
} from '../shared/contracts/gen/auth_pb.ts'

/** The user id in such a name; other names, such as "system", stay as they are. */
export const userOf = (actor: string): string => actor.replace(/^user:/, '')

const STATUS = { ACTIVE: UserStatus.ACTIVE, DISABLED: UserStatus.DISABLED, DELETED: UserStatus.DELETED } as const

/** The user for a sign-in or a request: an account under recovery has no status, and only ACTIVE may make one. */
export const signingIn = (user: UserRow): User =>
  Object.assign(userMessage(user), user.recovering && { status: UserStatus.UNSPECIFIED })

/** The User message of the specification. */
export const userMessage = (user: UserRow): User =>
  create(UserSchema, {
    id: user.id,
    username: user.username,
    status: STATUS[user.status],
    kind: user.kind === 'machine' ? UserKind.MACHINE : UserKind.PERSON,
    createdAt: timestampFromDate(new Date(user.created_at)),
    ...(user.disabled_at && { disabledAt: timestampFromDate(new Date(user.disabled_at)) }),
  })

/** Who granted it and who confirmed that: users by id, or "system". */
const giversOf = (...by: (string | null)[]): string[] => by.flatMap((actor) => (actor === null ? [] : [userOf(actor)]))
const timeOf = (text: string) => timestampFromDate(new Date(text))

const membershipMessage = ({ group_key, added_at, added_by, confirmed_by }: MembershipRow) =>
  create(MembershipSchema, { groupKey: group_key, since: timeOf(added_at), by: giversOf(added_by, confirmed_by) })

export const scopeMessage = (scope: ScopeColumn) =>
  create(ScopeSchema, {
    ...(scope.region_id && { regionId: scope.region_id }),
    ...(scope.datacenter_id && { datacenterId: scope.datacenter_id }),
    ...(scope.layer_id && { layerId: scope.layer_id }),
    ...(scope.segment_id && { segmentId: scope.segment_id }),
    ...(scope.type_key && { typeKey: scope.type_key }),
  })

const grantMessage = ({
  id,
  role,
  scope,
  expires_at,
  via_group_key,
  created_at,
  created_by,
  confirmed_by,
}: HeldGrant) =>
  create(GrantSchema, {
    id,
    role,
    scope: scopeMessage(scope),
    ...(expires_at && { expiresAt: timeOf(expires_at) }),
    ...(via_group_key && { viaGroupKey: via_group_key }),
    since: timeOf(created_at),
    by: giversOf(created_by, confirmed_by),
  })

/** A user with all current rights; a user who is not ACTIVE has none. */
export const principalMessage = async (db: Queryable, user_id: string): Promise<Principal | undefined> => {
  const user = await getUser(db, user_id)
  return user && (await principalsOf(db, [user]))[0]
}

export const principalsOf = async (db: Queryable, users: UserRow[]): Promise<Principal[]> => {
  const ids = users.map((user) => user.id)
  const machines = users.filter(({ kind }) => kind === 'machine').map(({ id }) => id)
  const [held, joined, dual, behind] = await Promise.all([
    heldGrants(db, ids),
    membershipsOf(db, ids),
    dualSince(db),
    behindMachines(db, machines),
  ])
  return users.map((user) => {
    const own = <R extends { user_id: string }>(rows: R[]) =>
      user.status === 'ACTIVE' ? rows.filter(({ user_id }) => user_id === user.id) : []
    const memberships = own(joined)
    return create(PrincipalSchema, {
      user: signingIn(user),
      grants: own(held).map(grantMessage),
      groupKeys: memberships.map(({ group_key }) => group_key),
      version: BigInt(user.version),
      memberships: memberships.map(membershipMessage),
      ...(user.reset_at && {
        reset: { at: timeOf(user.reset_at), by: giversOf(user.reset_by, user.reset_confirmed_by) },
      }),
      behind: [...new Set(behind.filter(({ machine_id }) => machine_id === user.id).map(({ by }) => userOf(by)))],
      renewalRequired: dual !== undefined && user.link_shown,
    })
  })
}
