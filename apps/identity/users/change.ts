import { eq } from 'drizzle-orm'
import type { Queryable, Tx } from '../../../db/client.ts'
import { orphanedBy } from '../../../db/identity/machines.ts'
import { getUser, heldGrants, lockUser, membershipsOf } from '../../../db/identity/queries.ts'
import { outbox, scim_members, type UserRow, type UserStatus, users } from '../../../db/identity/tables.ts'
import { appendOutbox } from '../../../db/outbox.ts'
import { pick } from '../../shared/data/pick.ts'
import { notFound } from '../../shared/errors.ts'
import { isUuid } from '../../shared/ids.ts'
import { announce, ENDED_CREDENTIAL, type StatusEvent } from '../mutations.ts'
import { refuseDeleted, throwIf } from '../rules.ts'
import { noteSeen } from './leaving.ts'

const isoOf = (text: string | null) => (text === null ? null : new Date(text).toISOString())

export const viewOf = (user: UserRow) => ({
  ...pick(user, 'id', 'username', 'kind', 'status'),
  created_at: new Date(user.created_at).toISOString(),
  disabled_at: isoOf(user.disabled_at),
})

/** Users with all their current rights; a user who is not ACTIVE has none. */
export const detailsOf = async (db: Queryable, list: readonly UserRow[]) => {
  const ids = list.map(({ id }) => id)
  const [held, memberships] = await Promise.all([heldGrants(db, ids), membershipsOf(db, ids)])
  return list.map((user) => {
    const own = user.status === 'ACTIVE' ? held.filter(({ user_id }) => user_id === user.id) : []
    return {
      ...viewOf(user),
      roles: [...new Set(own.map((grant) => grant.role))].sort(),
      groups: memberships.flatMap(({ user_id, group_key }) => (user_id === user.id ? [group_key] : [])),
      grants: own.map(({ user_id: _, created_at: _at, created_by: _by, confirmed_by: _too, ...grant }) => grant),
    }
  })
}
export type UserDetail = Awaited<ReturnType<typeof detailsOf>>[number]

export const detailOf = async (db: Queryable, user: UserRow): Promise<UserDetail> => {
  const [detail] = await detailsOf(db, [user])
  if (!detail) throw new Error('one user has one detail')
  return detail
}

export const findUser = async (db: Queryable, id: string): Promise<UserRow> => {
  const user = isUuid(id) ? await getUser(db, id) : undefined
  if (!user) throw notFound('user', id, 'not_found')
  return user
}

/** A user who can receive something; a deleted one is refused. */
export const findLivingUser = async (db: Queryable, id: string): Promise<UserRow> => {
  const user = await findUser(db, id)
  throwIf(refuseDeleted(user))
  return user
}

export const lockFound = async (tx: Tx, id: string): Promise<UserRow> => {
  const user = isUuid(id) ? await lockUser(tx, id) : undefined
  if (!user) throw notFound('user', id, 'not_found')
  return user
}

/**
 * Changes the status and writes the events on which the relay ends sessions: the person's, and those of machines that
 * are left without an active owner. Those who stay are told which secrets of machines the person has seen.
 */
export const setStatus = async (
  deps: { keys: { audit: Uint8Array } },
  tx: Tx,
  { event_id, actor, request_id }: StatusEvent,
  user: UserRow,
  to: UserStatus,
): Promise<UserRow> => {
  const version = user.version + 1
  const [moved] = await tx
    .update(users)
    .set({ status: to, version, disabled_at: to === 'ACTIVE' ? null : (user.disabled_at ?? new Date().toISOString()) })
    .where(eq(users.id, user.id))
    .returning()
  await appendOutbox(tx, outbox, {
    event_id,
    agg_type: 'user',
    agg_id: user.id,
    agg_version: version,
    type: 'auth.user.status_changed.v1',
    payload: { user_id: user.id, from: user.status, to, user_version: version, actor },
    request_id,
  })
  if (to === 'DELETED') await tx.delete(scim_members).where(eq(scim_members.user_id, user.id))
  if (to !== 'ACTIVE') {
    await noteSeen(deps, tx, user)
    for (const { id, machine_id } of await orphanedBy(tx, user.id))
      await announce(tx, { actor, request_id }, ENDED_CREDENTIAL, { user_id: machine_id, credential_id: id })
  }
  return moved ?? user
}
