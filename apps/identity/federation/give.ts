import { and, eq, inArray } from 'drizzle-orm'
import type { Tx } from '../../../db/client.ts'
import { grants, group_members } from '../../../db/identity/tables.ts'
import type { Role } from '../../shared/auth/permissions.ts'
import { AppError } from '../../shared/errors.ts'
import { uuidv7 } from '../../shared/ids.ts'
import { keepingAnAdmin } from '../control/dual.ts'

export type Difference = { join: string[]; leave: string[]; grant: Role[]; revoke: { id: string; role: string }[] }

/** Takes lost rights away, but never from the last administrator: the audit row says so. Returns who keeps all. */
export const take = async (
  tx: Tx,
  giver: string,
  differences: ReadonlyMap<string, Difference>,
): Promise<Set<string>> => {
  const losing = [...differences].filter(([, { leave, revoke }]) => leave.length + revoke.length > 0)
  if (losing.length === 0 || (await takeFrom(tx, giver, losing))) return new Set()
  const kept = new Set<string>()
  for (const one of losing) if (!(await takeFrom(tx, giver, [one]))) kept.add(one[0])
  return kept
}

const takeFrom = async (tx: Tx, giver: string, losing: readonly (readonly [string, Difference])[]) => {
  const byGroup = Map.groupBy(
    losing.flatMap(([user_id, { leave }]) => leave.map((key) => ({ user_id, key }))),
    ({ key }) => key,
  )
  const ids = losing.flatMap(([, { revoke }]) => revoke.map(({ id }) => id))
  try {
    await tx.transaction((inner) =>
      keepingAnAdmin(inner, async () => {
        for (const [group_key, people] of byGroup) {
          const own = and(eq(group_members.group_key, group_key), eq(group_members.added_by, giver))
          const user_ids = people.map(({ user_id }) => user_id)
          await inner.delete(group_members).where(and(own, inArray(group_members.user_id, user_ids)))
        }
        if (ids.length > 0) await inner.delete(grants).where(inArray(grants.id, ids))
      }),
    )
    return true
  } catch (error) {
    if (error instanceof AppError && error.code === 'last_admin') return false
    throw error
  }
}

const MOST_ROWS = 5000

export const give = async (tx: Tx, giver: string, differences: ReadonlyMap<string, Difference>): Promise<void> => {
  const by = { confirmed_by: null }
  const members = [...differences].flatMap(([user_id, { join }]) =>
    join.map((group_key) => ({ group_key, user_id, added_by: giver, ...by })),
  )
  const rows = [...differences].flatMap(([subject_id, { grant }]) =>
    grant.map((role) => ({ id: uuidv7(), subject_type: 'user' as const, subject_id, role, created_by: giver, ...by })),
  )
  for (let at = 0; at < members.length; at += MOST_ROWS)
    await tx
      .insert(group_members)
      .values(members.slice(at, at + MOST_ROWS))
      .onConflictDoNothing()
  for (let at = 0; at < rows.length; at += MOST_ROWS)
    await tx
      .insert(grants)
      .values(rows.slice(at, at + MOST_ROWS))
      .onConflictDoNothing()
}
