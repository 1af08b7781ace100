import { appendAuditTo } from '../../../db/audit.ts'
import type { Queryable, Tx } from '../../../db/client.ts'
import { ableAdmins, dualSince, lockAdmins, provenAdmins, shownUsers } from '../../../db/identity/queries.ts'
import { dual_control, user_events } from '../../../db/identity/tables.ts'
import type { Role } from '../../shared/auth/permissions.ts'
import type { Uses } from '../deps.ts'
import { rolesChanged } from '../mutations.ts'
import { refuseLastAdmin, throwIf } from '../rules.ts'

/** Roles that need two administrators to grant; a deployment can add roles but not remove these. */
const SENSITIVE: readonly Role[] = ['approver', 'operator', 'admin', 'controller']

export type ControlDeps = Uses<'clock' | 'config' | 'credential' | 'keys' | 'providers'>

export const isSensitive = ({ config }: Pick<ControlDeps, 'config'>, role: string): boolean =>
  [...SENSITIVE, ...config.IDENTITY__DUAL__ROLES].includes(role as Role)

/** Takes the lock for changes of users, groups and grants. Returns whether two administrators check each other. */
export const lockControl = async (deps: Pick<ControlDeps, 'keys'>, tx: Tx): Promise<boolean> => {
  await lockAdmins(tx)
  return noteDual(deps, tx)
}

/**
 * Records permanently that two administrators exist who alone know their credential. Call it under the lock, after
 * anything that may have made the second. Accounts whose link was shown change version too, so every cache notices.
 */
export const noteDual = async ({ keys }: Pick<ControlDeps, 'keys'>, tx: Tx): Promise<boolean> => {
  if (await dualSince(tx)) return true
  const admins = await provenAdmins(tx)
  if (admins.length < 2) return false
  await tx.insert(dual_control).values({})
  await appendAuditTo(tx, user_events, keys.audit, {
    actor: 'system',
    action: 'dual_control.started',
    object: 'identity',
    outcome: 'done',
    after: { admins },
  })
  await rolesChanged(tx, undefined, await shownUsers(tx))
  return true
}

/** The notice for an installation with one administrator; null once two check each other. */
const noticeOf = (since: string | undefined): string | null =>
  since === undefined ? 'There is only one administrator, so no one checks these changes.' : null

export const controlOf = async (db: Queryable) => {
  const since = await dualSince(db)
  return { dual_since: since === undefined ? null : new Date(since).toISOString(), notice: noticeOf(since) }
}

/** Takes rights away, and refuses if that would leave no administrator. The caller holds the lock. */
export const keepingAnAdmin = async <T>(tx: Tx, take: () => Promise<T>): Promise<T> => {
  const before = await ableAdmins(tx)
  const result = await take()
  throwIf(refuseLastAdmin(before, await ableAdmins(tx)))
  return result
}
