import { randomUUID } from 'node:crypto'
import { type Client, Code, ConnectError } from '@connectrpc/connect'
import { appendAuditTo } from '../../../db/audit.ts'
import type { Db } from '../../../db/client.ts'
import { getUser, getUserByFolded, lastingAdmins, lockAdmins } from '../../../db/identity/queries.ts'
import { user_events } from '../../../db/identity/tables.ts'
import { foldUsername } from '../../shared/auth/username.ts'
import type { Credential } from '../../shared/contracts/gen/auth_pb.ts'
import { insertUser } from './change.ts'

export type BootstrapDeps = {
  db: Db
  audit_key: Buffer
  credential: Pick<Client<typeof Credential>, 'createEnrolmentToken'>
}
export type Enrolled = { username: string; token: string }

/** Refused for a reason that the person at the keyboard should read. */
export class Refused extends Error {}

/**
 * Makes the first administrator. Refused once there is one; but the only one, as long as no password was set, gets a new
 * link under the same name.
 */
export const bootstrapAdmin = async (
  deps: BootstrapDeps,
  username: string,
  roles: readonly string[],
): Promise<Enrolled> => {
  const [only, ...others] = await lastingAdmins(deps.db)
  const there = only === undefined ? undefined : await getUser(deps.db, only)
  if (there) {
    const same = others.length === 0 && there.folded === foldUsername(username)
    const token = same ? await enrolmentToken(deps, there.id, true) : undefined
    if (token !== undefined) return { username: there.username, token }
    throw new Refused('there is an administrator already; to let one in again use --recover NAME')
  }
  const user = await deps.db.transaction(async (tx) => {
    await lockAdmins(tx)
    if ((await lastingAdmins(tx)).length > 0) throw new Refused('somebody else has just made an administrator')
    const made = await insertUser(tx, { username, grants: roles.map((role) => ({ role })) }, 'system')
    await record(deps, tx, 'user.bootstrapped', made.id, { username: made.username, roles })
    return made
  })
  const token = await enrolmentToken(deps, user.id, false)
  return { username: user.username, token: token ?? '' }
}

/** A new link for an administrator who cannot get in any more. */
export const recoverAdmin = async (deps: BootstrapDeps, username: string): Promise<Enrolled> => {
  const user = await getUserByFolded(deps.db, foldUsername(username))
  if (!user || !(await lastingAdmins(deps.db)).includes(user.id)) {
    throw new Refused(`there is no active administrator with the name "${username}"`)
  }
  await deps.db.transaction((tx) => record(deps, tx, 'user.recovered', user.id, { username: user.username }))
  const token = await enrolmentToken(deps, user.id, false)
  return { username: user.username, token: token ?? '' }
}

type Tx = Parameters<Parameters<Db['transaction']>[0]>[0]

const record = ({ audit_key }: BootstrapDeps, tx: Tx, action: string, user_id: string, after: object) =>
  appendAuditTo(tx, user_events, audit_key, {
    actor: 'system',
    action,
    object: `user:${user_id}`,
    outcome: 'done',
    after,
  })

/** Nothing when the user has a password and that is a reason not to. */
const enrolmentToken = async (
  { credential }: BootstrapDeps,
  userId: string,
  onlyIfNoPassword: boolean,
): Promise<string | undefined> => {
  try {
    const { enrolmentToken: token } = await credential.createEnrolmentToken({
      userId,
      changeId: randomUUID(),
      onlyIfNoPassword,
    })
    return token
  } catch (error) {
    const { code } = ConnectError.from(error)
    if (code === Code.FailedPrecondition) return undefined
    if (code === Code.Unavailable || code === Code.DeadlineExceeded)
      throw new Refused('the credential app does not answer; start it first')
    throw error
  }
}
