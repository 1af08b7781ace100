import { type AuditEntry, appendAuditTo, listAudit } from '../../../db/audit.ts'
import type { Queryable, Tx } from '../../../db/client.ts'
import { listUngiven, rightsAtSignIn, type Ungiven } from '../../../db/identity/external.ts'
import { peopleOf } from '../../../db/identity/scim.ts'
import { user_events } from '../../../db/identity/tables.ts'
import { giverOf, isAbove, type Provider } from '../../shared/auth/providers.ts'
import { digest } from '../../shared/data/digest.ts'
import { lockControl, noteDual } from '../control/dual.ts'
import type { Uses } from '../deps.ts'
import { inControl, rolesChanged } from '../mutations.ts'
import { refuseGivenRight } from '../rules.ts'
import { type Difference, give, take } from './give.ts'

/** Of each person, the names of the groups that the provider states. */
export type Stated = ReadonlyMap<string, readonly string[]>

/**
 * Of each person whose rights differ: the missing ones that the file gives to the stated groups, and those that the
 * provider gave earlier and no longer gives. Never gives a group that has a role above the provider's ceiling; leaves
 * rights from elsewhere alone.
 */
const differencesOf = async (db: Queryable, provider: Provider, stated: Stated): Promise<Map<string, Difference>> => {
  const map = new Map(Object.entries(provider.groups?.map ?? {}))
  const given = new Map([...stated].map(([id, named]) => [id, named.flatMap((name) => map.get(name) ?? [])]))
  const keysOf = (id: string) => [...new Set(given.get(id)?.flatMap(({ groups = [] }) => groups))]
  const ids = [...stated.keys()]
  const { memberships, held, groups } = await rightsAtSignIn(db, ids, [...new Set(ids.flatMap(keysOf))])
  const allowed = new Set(
    groups.flatMap(({ group_key, roles }) => (roles.some((role) => isAbove(provider, role)) ? [] : [group_key])),
  )
  const membershipsOf = Map.groupBy(memberships, ({ user_id }) => user_id)
  const heldBy = Map.groupBy(held, ({ user_id }) => user_id)
  const isOurs = (by: string | null) => by === giverOf(provider.id)
  const differences = ids.map((id): [string, Difference] => {
    const [joined = [], own = []] = [membershipsOf.get(id), heldBy.get(id)]
    const wanted = keysOf(id).filter((key) => allowed.has(key))
    const roles = [...new Set(given.get(id)?.flatMap((one) => one.roles ?? []))]
    const everywhere = own.filter(({ scope, expires_at }) => Object.keys(scope).length === 0 && expires_at === null)
    const difference = {
      join: wanted.filter((key) => !joined.some(({ group_key }) => group_key === key)),
      leave: joined.flatMap(({ group_key, added_by }) =>
        isOurs(added_by) && !wanted.includes(group_key) ? [group_key] : [],
      ),
      grant: roles.filter((role) => !everywhere.some((one) => one.role === role)),
      revoke: own.filter(({ role, created_by }) => isOurs(created_by) && !roles.some((one) => one === role)),
    }
    return [id, difference]
  })
  return new Map(differences.filter(([, one]) => Object.values(one).some(({ length }) => length > 0)))
}

/**
 * Aligns the rights that this provider gives with its latest statement. The file is the installation's own decision, so
 * no second administrator is asked; the provider's ceiling bounds it. A sign-in that changes no rights takes no lock.
 * One that does asks again under the lock which groups count; `undefined`: they are unknown, so rights stay.
 */
export const alignRights = async (
  deps: Uses<'keys'> & { db: Queryable },
  provider: Provider,
  user_id: string,
  groupsIn: (db: Queryable) => Promise<readonly string[] | undefined>,
  request_id: string,
): Promise<void> => {
  const before = await groupsIn(deps.db)
  if (!before || (await differencesOf(deps.db, provider, new Map([[user_id, before]]))).size === 0) return
  const align = async (tx: Tx) => {
    await lockControl(deps, tx)
    const named = await groupsIn(tx)
    if (named) await alignIn(deps, tx, provider, new Map([[user_id, named]]), request_id)
  }
  await inControl(deps.db, () => deps.db.transaction(align))
}

/** `alignRights` for many people, in few queries, under the lock that the caller holds. */
export const alignIn = async (
  deps: Uses<'keys'>,
  tx: Tx,
  provider: Provider,
  stated: Stated,
  request_id: string | null,
): Promise<void> => {
  await apply(deps, tx, giverOf(provider.id), await differencesOf(tx, provider, stated), request_id)
}

/** How many people's rights follow in one transaction: it holds the lock on all rights, and a request ends in time. */
export const MOST_AT_ONCE = 2000

/**
 * Revokes the rights that providers gave and the file no longer gives. Anyone who signs in by other means would keep
 * them. The entry or its provider was removed or switched off. Or the provider has not signed the person in for as long
 * as its longest session.
 */
export const revokeUngiven = async (deps: Uses<'db' | 'keys' | 'providers'>): Promise<void> => {
  const holders = [...new Set((await listUngiven(deps.db, deps.providers.list())).map(({ user_id }) => user_id))]
  for (let at = 0; at < holders.length; at += MOST_AT_ONCE)
    await deps.db.transaction(async (tx) => {
      await lockControl(deps, tx)
      const rows = await listUngiven(tx, deps.providers.list(), holders.slice(at, at + MOST_AT_ONCE))
      for (const [giver, given] of Map.groupBy(rows, (row) => row.giver)) {
        const byUser = Map.groupBy(given, ({ user_id }) => user_id)
        const differences = new Map([...byUser].map(([user_id, rights]) => [user_id, lossOf(rights)]))
        await apply(deps, tx, giver, differences, null)
      }
    })
}

/**
 * Refuses to take a right away by hand while a directory states the group that gives it: it would come back. A right of
 * the last sign-in alone may be taken away; the next one may give it again.
 */
export const keepGiven = async (
  deps: Uses<'providers'>,
  tx: Tx,
  { giver, user_id, group_key, id }: { giver: string | null; user_id: string; group_key?: string; id?: string },
): Promise<void> => {
  if (!giver?.startsWith(giverOf(''))) return
  const provider = giver.slice(giverOf('').length)
  if ((await peopleOf(tx, provider, [user_id])).every(({ deleted }) => deleted)) return
  const ungiven = await listUngiven(tx, deps.providers.list(), [user_id])
  if (!ungiven.some((one) => one.giver === giver && (id ? one.id === id : one.group_key === group_key)))
    throw refuseGivenRight(provider)
}

const lossOf = (rights: Ungiven[]): Difference => ({
  join: [],
  leave: rights.flatMap(({ group_key }) => group_key ?? []),
  grant: [],
  revoke: rights.flatMap(({ id, role }) => (id && role ? [{ id, role }] : [])),
})

const apply = async (
  deps: Uses<'keys'>,
  tx: Tx,
  giver: string,
  differences: Map<string, Difference>,
  request_id: string | null,
): Promise<void> => {
  if (differences.size === 0) return
  const kept = await take(tx, giver, differences)
  await give(tx, giver, differences)
  const changed: string[] = []
  const rows: AuditEntry[] = []
  for (const [user_id, { join, leave, grant, revoke }] of differences) {
    const roles = revoke.map(({ role }) => role)
    const row = {
      actor: giver,
      action: 'user.provider_rights',
      object: `user:${user_id}`,
      outcome: 'done' as const,
      reason: kept.has(user_id) ? 'last_admin' : null,
      before: { groups: leave.toSorted(), roles: roles.toSorted() },
      after: { groups: join, roles: grant },
      details: { joined: join, left: leave, granted: grant, revoked: roles },
      request_id,
    }
    if (kept.has(user_id) && (await isNoted(tx, row))) continue
    changed.push(user_id)
    rows.push(row)
  }
  await rolesChanged(tx, undefined, changed)
  await noteDual(deps, tx)
  await appendAuditTo(tx, user_events, deps.keys.audit, rows)
}

/** Whether the last row about this person's rights says the same: each hour and each sign-in find them again. */
const isNoted = async (tx: Tx, { actor, action, object, reason, before, after }: AuditEntry): Promise<boolean> => {
  const [last] = await listAudit(tx, user_events, { object, type: action }, 1)
  if (last?.actor !== actor || last.reason !== reason) return false
  return last.before_hash === digest(before) && last.after_hash === digest(after)
}
