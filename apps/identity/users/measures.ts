import { eq } from 'drizzle-orm'
import { getUserByFolded, heldGrants } from '../../../db/identity/queries.ts'
import { users } from '../../../db/identity/tables.ts'
import { foldUsername } from '../../shared/auth/username.ts'
import { AppError } from '../../shared/errors.ts'
import { type By, type Measure, roleSensitivity } from '../control/changes.ts'
import { handedOut } from '../control/links.ts'
import { rolesChanged, statusEventOf } from '../mutations.ts'
import { refusePassword, refuseSelfAction, refuseStatus, throwIf } from '../rules.ts'
import { detailOf, lockFound, setStatus, viewOf } from './change.ts'
import { insertUser, refuseNewUser, usernameTaken } from './new.ts'

/** A new account: two administrators give its link, whatever its roles. */
export const createMeasure: Measure<'user.create'> = async ({ tx }, wanted) => {
  const name = refuseNewUser(wanted)
  if (await getUserByFolded(tx, foldUsername(name))) throw usernameTaken(wanted.username)
  return {
    sensitive: true,
    accounts: [],
    apply: async (by: By) => {
      const user = await insertUser(tx, wanted, by)
      const detail = await detailOf(tx, user)
      return {
        status: 201,
        body: { user: detail },
        action: 'user.created',
        object: `user:${user.id}`,
        after: detail,
        user_id: user.id,
      }
    },
  }
}

/** A new enrolment link for an account that has one already. Nobody enrols themselves. */
export const resetMeasure: Measure<'user.reset'> = async ({ tx, req, requester }, { user_id }) => {
  const user = await lockFound(tx, user_id)
  throwIf(refuseSelfAction(requester, user.id, 'enrol'))
  if (user.kind === 'machine')
    throw new AppError('validation_error', 'not_for_machines', `${user.username} is a machine and has no password.`, {
      status: 422,
      hint: 'Give it a credential.',
    })
  if (user.status !== 'ACTIVE')
    throw new AppError('version_conflict', 'user_deleted', `${user.username} is ${user.status}.`, {
      hint: 'Enable the user first.',
    })
  throwIf(refusePassword(user))
  return {
    sensitive: true,
    accounts: [user.id],
    renews: true,
    apply: async (by: By) => {
      await tx.update(users).set(handedOut(by)).where(eq(users.id, user.id))
      await rolesChanged(tx, req, [user.id])
      return { status: 201, body: { user_id }, action: 'user.enrolment_created', object: `user:${user_id}`, user_id }
    },
  }
}

/** Enables an account: with it come the rights that it held. */
export const enableMeasure: Measure<'user.enable'> = async ({ deps, tx, req }, { user_id, reason }) => {
  const user = await lockFound(tx, user_id)
  throwIf(refuseStatus(user, 'ACTIVE'))
  const held = user.status === 'ACTIVE' ? [] : await heldGrants(tx, [user.id])
  return {
    sensitive: held.map(({ role }) => role).some(roleSensitivity(deps)),
    accounts: [user.id],
    renews: true,
    apply: async () => {
      const moved = user.status === 'ACTIVE' ? user : await setStatus(tx, statusEventOf(req), user, 'ACTIVE')
      return {
        status: 200,
        body: { user: await detailOf(tx, moved) },
        action: 'user.enabled',
        object: `user:${user.id}`,
        reason,
        before: viewOf(user),
        after: viewOf(moved),
      }
    },
  }
}
