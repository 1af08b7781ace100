import { and, eq } from 'drizzle-orm'
import type { Tx } from '../../../db/client.ts'
import { heldGrants, rolesOfGroup } from '../../../db/identity/queries.ts'
import { group_members, groups } from '../../../db/identity/tables.ts'
import { roleHas } from '../../shared/auth/permissions.ts'
import { notFound } from '../../shared/errors.ts'
import { type By, type Measure, roleSensitivity } from '../control/changes.ts'
import { rolesChanged } from '../mutations.ts'
import { refuseRolesOf, refuseSelfGrant, throwIf } from '../rules.ts'
import { findLivingUser } from '../users/change.ts'

/** Locks the group until the transaction ends, so that it is not removed while someone joins or receives rights. */
export const lockGroup = async (tx: Tx, group_key: string) => {
  const [group] = await tx.select().from(groups).where(eq(groups.group_key, group_key)).for('update')
  if (!group) throw notFound('group', group_key, 'not_found')
  return group
}

const DECIDES = ['gate:decide', 'patch:decide'] as const
const has = (role: string) => (permission: (typeof DECIDES)[number]) => roleHas(role, permission)

/** A new member, who receives the group's roles with the membership. */
export const memberMeasure: Measure<'member.add'> = async ({ deps, tx, req, requester }, { group_key, user_id }) => {
  throwIf(refuseSelfGrant(requester, [user_id]))
  await lockGroup(tx, group_key)
  const user = await findLivingUser(tx, user_id)
  const own = and(eq(group_members.group_key, group_key), eq(group_members.user_id, user_id))
  const there = await tx.select({ user_id: group_members.user_id }).from(group_members).where(own)
  const roles = there.length > 0 ? [] : await rolesOfGroup(tx, group_key)
  throwIf(refuseRolesOf([user], roles))
  // Groups of gates need no role: a decider who joins one fills its votes.
  const decides = there.length === 0 && (await heldGrants(tx, [user_id])).some(({ role }) => DECIDES.some(has(role)))
  return {
    sensitive: decides || roles.some(roleSensitivity(deps)),
    accounts: [user_id],
    apply: async ({ requested_by, confirmed_by }: By) => {
      const added = await tx
        .insert(group_members)
        .values({ group_key, user_id, added_by: requested_by, confirmed_by })
        .onConflictDoNothing()
        .returning()
      if (added.length > 0) await rolesChanged(tx, req, [user_id])
      return {
        status: 204,
        body: undefined,
        action: 'group.member_added',
        object: `group:${group_key}`,
        after: { user_id },
        details: { user_id },
      }
    },
  }
}
