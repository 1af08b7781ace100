import { Code, ConnectError } from '@connectrpc/connect'
import { eq } from 'drizzle-orm'
import { appendAuditTo } from '../../../db/audit.ts'
import type { Tx } from '../../../db/client.ts'
import { fingerprintOf, readKey } from '../../../db/command/keys.ts'
import { keysIn, runAnswered } from '../../../db/command/run.ts'
import { getUser, lockUser } from '../../../db/identity/queries.ts'
import { idempotency, type UserRow, user_events, users } from '../../../db/identity/tables.ts'
import { wakeRelay } from '../../../db/outbox.ts'
import { AppError, weakPassword } from '../../shared/errors.ts'
import { isUuid, uuidv5 } from '../../shared/ids.ts'
import { fromRpc, throwFromRpc, withRequestId } from '../../shared/rpc/client.ts'
import { lockControl, noteDual } from '../control/dual.ts'
import { isNewest } from '../control/links.ts'
import type { ChangeDeps, Uses } from '../deps.ts'
import { endWaysIn } from '../federation/unlink.ts'
import { announce, inControl, marked, rolesChanged } from '../mutations.ts'

export type Enrolment = { enrolment_token: string; new_password: string }
export type EnrolRequest = { request_id: string; queue_key: string; key: string; route: string }

/**
 * POST users/enrol: the first password, or a reset. The token identifies the user and works once. Its id is the caller
 * of the idempotency key. The key is looked up before and written after the call to credential, so no transaction stays
 * open during a hash. Until then, `change_id` makes a repeat harmless in credential. Returns whether it is a repeat.
 */
export const enrol = async (deps: ChangeDeps, body: Enrolment, request: EnrolRequest): Promise<boolean> => {
  if (!body.new_password.isWellFormed()) {
    throw new AppError('validation_error', 'schema_violation', 'The password contains half a surrogate pair.')
  }
  const [, user_id = '', token_id = ''] = body.enrolment_token.split('.')
  const user = isUuid(user_id) && isUuid(token_id) ? await getUser(deps.db, user_id) : undefined
  if (user?.status !== 'ACTIVE') throw tokenInvalid()
  const command = {
    caller: `enrolment:${token_id}`,
    route: request.route,
    key: request.key,
    fingerprint: fingerprintOf(deps.keys.fingerprint, body),
  }
  if (await readKey(deps.db, idempotency, command)) return true
  const link = await setPassword(deps, user, body, token_id, request)
  await endTotp(deps, user.id, link, request)
  await endEarlier(deps, user.id, link, request)
  const keep = async (tx: Tx) => {
    await lockControl(deps, tx)
    await renewed(deps, tx, user, link, request)
    await noteDual(deps, tx)
    await appendAuditTo(tx, user_events, deps.keys.audit, eventOf(user, request, 'done'))
    return { status: 204, body: undefined }
  }
  const kernel = { db: deps.db, keys: keysIn(idempotency) }
  const decide = async (tx: Tx) => ({ effect: undefined, keep: () => keep(tx) })
  const { replayed } = await inControl(deps.db, () => runAnswered(kernel, { request: command }, decide))
  return replayed
}

/**
 * Whether this link ends every other way into the account. It must be the newest link, of an account in recovery, or of
 * one into which someone else could sign in. The latter asks for a link that no administrator saw whole.
 */
const ownsAlone = (user: UserRow, link: string): boolean =>
  user.recovering ? isNewest(user, link) : user.reset_link === link && (user.link_shown || user.reset_by === 'system')

/** The authenticator app is removed like passkeys, before the account opens, because another app stores it. */
const endTotp = async (deps: ChangeDeps, user_id: string, link: string, { request_id }: EnrolRequest) => {
  const user = await getUser(deps.db, user_id)
  if (!user || !ownsAlone(user, link)) return
  await deps.credential.removeTotp({ userId: user_id }, withRequestId(request_id)).catch(throwFromRpc('credential'))
}

/**
 * Ends the sessions of such an account, and waits for that, while its other ways in are closed already: a session of
 * someone else could otherwise add one right after `renewed`.
 */
const endEarlier = async (deps: ChangeDeps, user_id: string, link: string, request: EnrolRequest): Promise<void> => {
  const end = async (tx: Tx) => {
    await lockControl(deps, tx)
    const user = await lockUser(tx, user_id)
    if (!user || !ownsAlone(user, link)) return
    await endWaysIn(deps, tx, user, causeOf(user, request))
    return announce(tx, undefined, 'auth.user.recovery_started.v1', { user_id })
  }
  const event_id = await inControl(deps.db, () => deps.db.transaction(end))
  if (event_id === undefined) return
  void wakeRelay(deps.db, 'identity')
  await marked(deps, { event_id })
}

const causeOf = ({ id }: UserRow, { request_id }: EnrolRequest) => ({ by: `user:${id}`, request_id })

/**
 * After the newest link, which no administrator saw whole, only the person knows the credential. Earlier passkeys and
 * identities at providers might belong to that administrator, so they are deleted. A link made on the machine, the last
 * administrator's way back, deletes them too. The newest link also ends a recovery. Other links leave the account
 * unchanged.
 */
const renewed = async (deps: ChangeDeps, tx: Tx, { id }: UserRow, link: string, request: EnrolRequest) => {
  const user = await lockUser(tx, id)
  if (!user) return
  if (ownsAlone(user, link)) await endWaysIn(deps, tx, user, causeOf(user, request))
  const link_shown = user.link_shown && user.reset_link !== link
  // Earlier builds store none for a link that one administrator saw.
  const recovering = user.recovering && !isNewest(user, link) && user.reset_link !== null
  const moved = link_shown !== user.link_shown || recovering !== user.recovering
  if (!moved && user.enrolled) return
  await tx.update(users).set({ link_shown, recovering, enrolled: true }).where(eq(users.id, id))
  if (moved) await rolesChanged(tx, undefined, [id])
}

const eventOf = (user: UserRow, { request_id }: EnrolRequest, outcome: 'done' | 'denied', reason?: string) => ({
  actor: outcome === 'done' ? `user:${user.id}` : 'unknown',
  action: 'user.enrolled',
  object: `user:${user.id}`,
  outcome,
  reason: reason ?? null,
  request_id,
})

const setPassword = async (
  deps: Uses<'credential' | 'db' | 'keys'>,
  user: UserRow,
  { enrolment_token, new_password }: Enrolment,
  token_id: string,
  request: EnrolRequest,
): Promise<string> => {
  try {
    const { violations, enrolmentChangeId } = await deps.credential.setPassword(
      {
        userId: user.id,
        newPassword: new_password,
        enrolmentToken: enrolment_token,
        changeId: uuidv5(user.id, `enrol ${token_id} ${request.key}`),
        username: user.username,
        queueKey: request.queue_key,
      },
      withRequestId(request.request_id),
    )
    if (violations[0]) throw weakPassword(violations)
    return enrolmentChangeId
  } catch (error) {
    const code = error instanceof ConnectError ? error.code : undefined
    if (code !== Code.FailedPrecondition && code !== Code.InvalidArgument) throw fromRpc('credential', error)
    const refused = eventOf(user, request, 'denied', 'enrolment_token_invalid')
    await deps.db.transaction((tx) => appendAuditTo(tx, user_events, deps.keys.audit, refused))
    throw tokenInvalid(error)
  }
}

const tokenInvalid = (cause?: unknown) =>
  new AppError('validation_error', 'enrolment_token_invalid', 'This enrolment link is invalid, used or expired.', {
    cause,
  })
