import { randomUUID } from 'node:crypto'
import { Code, ConnectError } from '@connectrpc/connect'
import { appendAuditTo } from '../../../db/audit.ts'
import { type Db, type Tx, updateRows } from '../../../db/client.ts'
import { getUser, getUserByFolded, lastingAdmins, lockAdmins } from '../../../db/identity/queries.ts'
import { type UserRow, user_events, users } from '../../../db/identity/tables.ts'
import { foldUsername } from '../../shared/auth/username.ts'
import { handedOut, type LinkMaker, makeLink } from '../control/links.ts'
import { rolesChanged } from '../mutations.ts'
import { insertUser } from './new.ts'

export type BootstrapDeps = LinkMaker & { db: Db; audit_key: Buffer }
export type Enrolled = { username: string; token: string }

/** A refusal whose reason the person at the keyboard should read. */
export class Refused extends Error {}

/** The operator of this installation hands over the link; no administrator of the API sees it. */
const byMachine = (link: string) => ({ requested_by: 'system', confirmed_by: null, link })

/**
 * Creates the first administrator. Refused once one exists, except that the only administrator gets a new link under
 * the same name until a password is set; it invalidates the older link.
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
    const again = same ? await linkAgain(deps, there) : undefined
    if (again) return again
    throw new Refused('there is an administrator already; to let one in again use enrol --username NAME')
  }
  const link = randomUUID()
  const user = await deps.db.transaction(async (tx) => {
    await lockAdmins(tx)
    if ((await lastingAdmins(tx)).length > 0) throw new Refused('another administrator was made at the same time')
    return makeUser(deps, tx, 'user.bootstrapped', { username, roles, link })
  })
  return { username: user.username, token: await enrolmentToken(deps, user.id, link) }
}

/**
 * A link for any active account, or for a new one with these roles. It brings in a second administrator, or renews an
 * account whose link an administrator saw.
 */
export const enrolHere = async (
  deps: BootstrapDeps,
  username: string,
  roles: readonly string[] | undefined,
): Promise<Enrolled> => {
  const there = await getUserByFolded(deps.db, foldUsername(username))
  if (there && roles) throw new Refused(`the account ${there.username} already exists: leave out --roles`)
  if (there && there.status !== 'ACTIVE') throw new Refused(`${there.username} is ${there.status}`)
  if (there) return handOut(deps, there)
  if (!roles) throw new Refused(`there is no account with the name "${username}"; --roles creates one`)
  const link = randomUUID()
  const user = await deps.db.transaction(async (tx) => {
    await lockAdmins(tx)
    return makeUser(deps, tx, 'user.created', { username, roles, link })
  })
  return { username: user.username, token: await enrolmentToken(deps, user.id, link) }
}

const makeUser = async (
  deps: BootstrapDeps,
  tx: Tx,
  action: string,
  { username, roles, link }: { username: string; roles: readonly string[]; link: string },
): Promise<UserRow> => {
  const made = await insertUser(tx, { username, grants: roles.map((role) => ({ role })) }, byMachine(link))
  await record(deps, tx, action, made.id, { username: made.username, roles })
  return made
}

const handOut = async (deps: BootstrapDeps, { id, username }: UserRow): Promise<Enrolled> => {
  const link = randomUUID()
  await deps.db.transaction(async (tx) => {
    await lockAdmins(tx)
    await updateRows(tx, { id }, users, handedOut(byMachine(link)))
    await rolesChanged(tx, undefined, [id])
    await record(deps, tx, 'user.enrolment_created', id, { username })
  })
  return { username, token: await enrolmentToken(deps, id, link) }
}

/** Returns `undefined` if the user already has a password. */
const linkAgain = async (deps: BootstrapDeps, { id, username }: UserRow): Promise<Enrolled | undefined> => {
  const link = randomUUID()
  try {
    return await deps.db.transaction(async (tx) => {
      await updateRows(tx, { id }, users, handedOut(byMachine(link)))
      return { username, token: await tokenIn(deps, tx, id, link, { onlyIfNoPassword: true }) }
    })
  } catch (error) {
    if (error instanceof ConnectError && error.code === Code.FailedPrecondition) return undefined
    throw error
  }
}

const record = ({ audit_key }: BootstrapDeps, tx: Tx, action: string, user_id: string, after: object) =>
  appendAuditTo(tx, user_events, audit_key, {
    actor: 'system',
    action,
    object: `user:${user_id}`,
    outcome: 'done',
    after,
  })

const enrolmentToken = (deps: BootstrapDeps, user_id: string, link: string): Promise<string> =>
  deps.db.transaction((tx) => tokenIn(deps, tx, user_id, link))

const tokenIn = async (
  deps: BootstrapDeps,
  tx: Tx,
  userId: string,
  changeId: string,
  more: { onlyIfNoPassword?: true } = {},
): Promise<string> => {
  try {
    return (await makeLink(deps, tx, { userId, changeId, ...more })).enrolmentToken
  } catch (error) {
    const { code } = ConnectError.from(error)
    if (code === Code.Unavailable || code === Code.DeadlineExceeded)
      throw new Refused('the credential app does not answer; start it first')
    throw error
  }
}
