import { updateRows } from '../../../db/client.ts'
import { deletePasskeys } from '../../../db/identity/passkeys.ts'
import { getUserByFolded, heldGrants } from '../../../db/identity/queries.ts'
import { users } from '../../../db/identity/tables.ts'
import { NOW } from '../../../db/rows.ts'
import { foldUsername } from '../../shared/auth/username.ts'
import { AppError } from '../../shared/errors.ts'
import { type By, type Cause, type Measure, roleSensitivity } from '../control/changes.ts'
import { handedOut, resetBy } from '../control/links.ts'
import { endWaysIn, identitiesOf } from '../federation/unlink.ts'
import { announce, rolesChanged, statusEventOf } from '../mutations.ts'
import { refuseClosedLogin, refuseDeleted, refusePassword, refuseSelfAction, refuseStatus, throwIf } from '../rules.ts'
import { detailOf, findUser, lockFound, setStatus, viewOf } from './change.ts'
import { insertUser, refuseNewUser, usernameTaken } from './new.ts'

/** A new account: two administrators give its link, whatever its roles. */
export const createMeasure: Measure<'user.create'> = async ({ deps, tx }, wanted) => {
  const now = deps.clock.now()
  const name = refuseNewUser(wanted, now)
  throwIf(refuseClosedLogin(deps.config.break_glass, name))
  if (await getUserByFolded(tx, foldUsername(name))) throw usernameTaken(wanted.username)
  return {
    sensitive: true,
    accounts: [],
    apply: async (by: By) => {
      const user = await insertUser(tx, wanted, by, now)
      const detail = await detailOf(tx, user)
      return {
        status: 201,
        body: { user: detail },
        action: 'user.created',
        object: `user:${user.id}`,
        after: detail,
        details: { username: detail.username, roles: detail.roles, groups: detail.groups },
        user_id: user.id,
      }
    },
  }
}

/**
 * Locks the account and checks that its person can get in again: by a new link or through the `provider` that it returns.
 * No one enrols themselves.
 */
const lockEnrollable = async ({ deps, tx, requester }: Cause, user_id: string) => {
  const user = await lockFound(tx, user_id)
  throwIf(refuseSelfAction(requester, user.id, 'enrol'))
  if (user.kind === 'machine')
    throw new AppError('validation_error', 'not_for_machines', `${user.username} is a machine and has no password.`)
  throwIf(refuseDeleted(user))
  if (user.status !== 'ACTIVE')
    throw new AppError('version_conflict', 'user_disabled', `${user.username} is disabled.`, {
      hint: 'Enable the user first.',
    })
  const closed = user.provider === null ? refuseClosedLogin(deps.config.break_glass, user.username) : undefined
  if (!closed) return user
  // Its person signs in through that provider alone, as to an account that it created.
  const linked = (await identitiesOf(tx, user.id)).find((one) => deps.providers.get(one.provider))
  if (!linked) throw closed
  return { ...user, provider: linked.provider }
}

const handOut = async ({ tx, req }: Cause, user_id: string, by: By, more: { recovering?: true } = {}) => {
  await updateRows(tx, { id: user_id }, users, { ...handedOut(by), ...more })
  await rolesChanged(tx, req, [user_id])
  return { status: 201, body: { user_id }, object: `user:${user_id}`, user_id }
}

/** A new enrolment link for an account that already has one. */
export const resetMeasure: Measure<'user.reset'> = async (cause, { user_id }) => {
  const user = await lockEnrollable(cause, user_id)
  throwIf(refusePassword(user))
  const { id } = user
  return {
    sensitive: true,
    accounts: [id],
    renews: true,
    apply: async (by: By) => ({ ...(await handOut(cause, id, by)), action: 'user.enrolment_created' }),
  }
}

/**
 * Resets an account whose person lost every passkey: passkeys, identities at providers, sessions and the password end at
 * once, and only the new link lets the person in. The evidence keeps the key of any vote that a lost passkey signed. An
 * account that only a provider signs in loses its factors alone, and a closed password: its person signs in there, and
 * sets up new ones.
 */
export const recoverMeasure: Measure<'user.recover'> = async (cause, { user_id }) => {
  const user = await lockEnrollable(cause, user_id)
  const { id } = user
  return {
    sensitive: true,
    accounts: [id],
    renews: true,
    apply: async (by: By) => {
      const { deps, tx, req } = cause
      const local = user.provider === null
      const actor = { by: by.confirmed_by ?? by.requested_by, request_id: req ? String(req.id) : null }
      const lost = local ? await endWaysIn(deps, tx, user, actor) : await deletePasskeys(tx, id)
      const done = local ? await handOut(cause, id, by, { recovering: true }) : await endFactors(cause, id, by)
      // On this event the relay ends the sessions.
      await announce(tx, req, 'auth.user.recovery_started.v1', { user_id: id })
      return { ...done, action: 'user.recovery_started', reason: `passkeys ended: ${lost.length}`, before: lost }
    },
  }
}

const endFactors = async ({ tx, req }: Cause, user_id: string, by: By) => {
  const ended = { factors_ended_at: NOW }
  await updateRows(tx, { id: user_id }, users, { ...resetBy(by), ...ended })
  await rolesChanged(tx, req, [user_id])
  return { status: 200, body: { user: await detailOf(tx, await findUser(tx, user_id)) }, object: `user:${user_id}` }
}

/** Enables an account, which restores the rights that it held. */
export const enableMeasure: Measure<'user.enable'> = async ({ deps, tx, req }, { user_id, reason }) => {
  const user = await lockFound(tx, user_id)
  throwIf(refuseStatus(user, 'ACTIVE'))
  const held = user.status === 'ACTIVE' ? [] : await heldGrants(tx, [user.id])
  return {
    sensitive: held.map(({ role }) => role).some(roleSensitivity(deps)),
    accounts: [user.id],
    renews: true,
    apply: async () => {
      const moved = user.status === 'ACTIVE' ? user : await setStatus(deps, tx, statusEventOf(req), user, 'ACTIVE')
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
