import { and, eq, lte, sql } from 'drizzle-orm'
import type { Tx } from '../../../db/client.ts'
import { membersOf, usersByIds } from '../../../db/identity/queries.ts'
import { type GrantRow, grants } from '../../../db/identity/tables.ts'
import { NOW } from '../../../db/rows.ts'
import { pick } from '../../shared/data/pick.ts'
import { AppError } from '../../shared/errors.ts'
import { uuidv7 } from '../../shared/ids.ts'
import { type By, type Measure, roleSensitivity } from '../control/changes.ts'
import { lockGroup } from '../groups/measures.ts'
import { rolesChanged } from '../mutations.ts'
import { refuseGrant, refuseRolesOf, refuseSelfGrant, throwIf } from '../rules.ts'
import { findLivingUser } from '../users/change.ts'

export const viewOf = ({ id, subject_type, subject_id, role, scope, expires_at }: GrantRow) => ({
  id,
  subject_type,
  subject_id,
  role,
  scope,
  expires_at: expires_at && new Date(expires_at).toISOString(),
})

/** For the audit log: who holds which role, and where. */
export const detailsOf = (row: GrantRow) =>
  pick(viewOf(row), 'subject_type', 'subject_id', 'role', 'scope', 'expires_at')

type Wanted = Pick<GrantRow, 'subject_type' | 'subject_id' | 'role'>
const sameRole = (of: Wanted) =>
  and(eq(grants.subject_type, of.subject_type), eq(grants.subject_id, of.subject_id), eq(grants.role, of.role))

/** An expired grant does not block the same grant again. */
const removeEnded = (tx: Tx, of: Wanted) => tx.delete(grants).where(and(sameRole(of), lte(grants.expires_at, NOW)))

const isThere = async (tx: Tx, of: Wanted, scope: object) => {
  const same = and(sameRole(of), sql`${grants.scope} = ${JSON.stringify(scope)}::jsonb`)
  return (await tx.select({ id: grants.id }).from(grants).where(same)).length > 0
}

const grantExists = () => new AppError('version_conflict', 'grant_exists', 'This grant already exists.')

/** A role for a user, or for a group and its members. */
export const grantMeasure: Measure<'grant.create'> = async ({ deps, tx, req, requester }, wanted) => {
  const { subject_type, subject_id, role, scope = {}, expires_at } = wanted
  const toUser = subject_type === 'user'
  throwIf(refuseSelfGrant(requester, toUser ? [subject_id] : []))
  throwIf(refuseGrant(wanted, deps.clock.now()))
  if (!toUser) await lockGroup(tx, subject_id)
  const accounts = toUser ? [(await findLivingUser(tx, subject_id)).id] : await membersOf(tx, subject_id)
  throwIf(refuseRolesOf(await usersByIds(tx, accounts), [role]))
  throwIf(refuseSelfGrant(requester, accounts))
  const of = { subject_type, subject_id, role }
  await removeEnded(tx, of)
  if (await isThere(tx, of, scope)) throw grantExists()
  return {
    sensitive: roleSensitivity(deps)(role),
    accounts,
    apply: async ({ requested_by, confirmed_by }: By) => {
      const [row] = await tx
        .insert(grants)
        .values({ id: uuidv7(), ...of, scope, expires_at: expires_at ?? null, created_by: requested_by, confirmed_by })
        .onConflictDoNothing()
        .returning()
      if (!row) throw grantExists()
      await rolesChanged(tx, req, accounts)
      const after = viewOf(row)
      return {
        status: 201,
        body: after,
        action: 'grant.created',
        object: `grant:${row.id}`,
        after,
        details: detailsOf(row),
      }
    },
  }
}
