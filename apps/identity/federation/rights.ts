import { and, eq, inArray } from 'drizzle-orm'
import { appendAuditTo } from '../../../db/audit.ts'
import type { Queryable, Tx } from '../../../db/client.ts'
import { rightsAtSignIn } from '../../../db/identity/external.ts'
import { grants, group_members, user_events } from '../../../db/identity/tables.ts'
import { giverOf, isAbove, type Provider } from '../../shared/auth/providers.ts'
import { AppError } from '../../shared/errors.ts'
import { uuidv7 } from '../../shared/ids.ts'
import { keepingAnAdmin, lockControl, noteDual } from '../control/dual.ts'
import type { Uses } from '../deps.ts'
import { rolesChanged } from '../mutations.ts'

/**
 * The missing rights that the file gives to a sign-in's groups, and those that the provider gave earlier and no longer
 * gives. Never gives a group that has a role above the provider's ceiling; leaves rights from elsewhere alone.
 */
const differenceOf = async (db: Queryable, provider: Provider, user_id: string, named: readonly string[]) => {
  const map = new Map(Object.entries(provider.groups?.map ?? {}))
  const mapped = named.flatMap((name) => map.get(name) ?? [])
  const keys = [...new Set(mapped.flatMap(({ groups = [] }) => groups))]
  const roles = [...new Set(mapped.flatMap((one) => one.roles ?? []))]
  const { memberships, held, groups } = await rightsAtSignIn(db, user_id, keys)
  const wanted: string[] = groups.flatMap((group) =>
    group.roles.some((role) => isAbove(provider, role)) ? [] : [group.group_key],
  )
  const everywhere = held.filter(({ scope, expires_at }) => Object.keys(scope).length === 0 && expires_at === null)
  const isOurs = (by: string | null) => by === giverOf(provider.id)
  return {
    join: wanted.filter((key) => !memberships.some(({ group_key }) => group_key === key)),
    leave: memberships.flatMap(({ group_key, added_by }) =>
      isOurs(added_by) && !wanted.includes(group_key) ? [group_key] : [],
    ),
    grant: roles.filter((role) => !everywhere.some((one) => one.role === role)),
    revoke: held.filter(({ role, created_by }) => isOurs(created_by) && !roles.some((one) => one === role)),
  }
}
type Difference = Awaited<ReturnType<typeof differenceOf>>
const isEmpty = (difference: Difference) => Object.values(difference).every(({ length }) => length === 0)

/**
 * Aligns the rights that this provider gives with its latest statement. The file is the installation's own decision, so
 * no second administrator is asked; the provider's ceiling bounds it. A sign-in that changes no rights takes no lock.
 * One that does asks again under the lock which groups count; `undefined`: they are unknown, so rights stay.
 */
export const alignRights = async (
  deps: Uses<'db' | 'keys'>,
  provider: Provider,
  user_id: string,
  groupsIn: (db: Queryable) => Promise<readonly string[] | undefined>,
  request_id: string,
): Promise<void> => {
  const before = await groupsIn(deps.db)
  if (!before || isEmpty(await differenceOf(deps.db, provider, user_id, before))) return
  await deps.db.transaction(async (tx) => {
    await lockControl(deps, tx)
    const named = await groupsIn(tx)
    if (named) await alignIn(deps, tx, provider, user_id, named, request_id)
  })
}

/** `alignRights` under the lock that the caller holds. */
export const alignIn = async (
  deps: Uses<'keys'>,
  tx: Tx,
  provider: Provider,
  user_id: string,
  named: readonly string[],
  request_id: string | null,
): Promise<void> => {
  const giver = giverOf(provider.id)
  const difference = await differenceOf(tx, provider, user_id, named)
  if (isEmpty(difference)) return
  const kept = await take(tx, giver, user_id, difference)
  await give(tx, giver, user_id, difference)
  await rolesChanged(tx, undefined, [user_id])
  await noteDual(deps, tx)
  const { join, leave, grant, revoke } = difference
  await appendAuditTo(tx, user_events, deps.keys.audit, {
    actor: giver,
    action: 'user.provider_rights',
    object: `user:${user_id}`,
    outcome: 'done',
    reason: kept ? 'last_admin' : null,
    before: { groups: leave, roles: revoke.map(({ role }) => role) },
    after: { groups: join, roles: grant },
    request_id,
  })
}

/** Takes lost rights away. If that would remove the last administrator, nothing is taken, and the audit row says so. */
const take = async (tx: Tx, giver: string, user_id: string, { leave, revoke }: Difference): Promise<boolean> => {
  const own = and(eq(group_members.user_id, user_id), eq(group_members.added_by, giver))
  try {
    await tx.transaction((inner) =>
      keepingAnAdmin(inner, async () => {
        if (leave.length > 0) await inner.delete(group_members).where(and(own, inArray(group_members.group_key, leave)))
        const ids = revoke.map(({ id }) => id)
        if (ids.length > 0) await inner.delete(grants).where(inArray(grants.id, ids))
      }),
    )
    return false
  } catch (error) {
    if (error instanceof AppError && error.code === 'last_admin') return true
    throw error
  }
}

const give = async (tx: Tx, giver: string, user_id: string, { join, grant }: Difference): Promise<void> => {
  const members = join.map((group_key) => ({ group_key, user_id, added_by: giver, confirmed_by: null }))
  if (members.length > 0) await tx.insert(group_members).values(members).onConflictDoNothing()
  const rows = grant.map((role) => ({
    id: uuidv7(),
    subject_type: 'user' as const,
    subject_id: user_id,
    role,
    created_by: giver,
    confirmed_by: null,
  }))
  if (rows.length > 0) await tx.insert(grants).values(rows).onConflictDoNothing()
}
