import { eq, inArray } from 'drizzle-orm'
import { type Tx, updateRows } from '../../../db/client.ts'
import { credentialsOf, lockEnding, lockUnused, markedForExpired } from '../../../db/identity/machines.ts'
import { type MachineCredentialRow, machine_credentials, users } from '../../../db/identity/tables.ts'
import { lockControl } from '../control/dual.ts'
import type { Uses } from '../deps.ts'
import { tellerOf } from '../users/leaving.ts'

/** How many days before a credential expires its owners and the administrators are notified. */
const NOTICE_DAYS = [14, 3] as const
export const DAY_MS = 86_400_000

/** How many notices are due for a credential with this expiry; one created this late needs no notice from the past. */
export const noticesDue = (expires_at: string | Date, now: Date): number =>
  NOTICE_DAYS.filter((days) => new Date(expires_at).getTime() - now.getTime() <= days * DAY_MS).length

/**
 * Records which credentials expire soon, once per notice across all processes, because it locks the credential's row.
 * Each recipient gets an audit row, which the relay passes to the notifier.
 */
export const noteEnding = async (deps: Uses<'db' | 'clock' | 'keys'>): Promise<number> =>
  deps.db.transaction(async (tx) => {
    const now = deps.clock.now()
    const soon = await lockEnding(tx, now, new Date(now.getTime() + NOTICE_DAYS[0] * DAY_MS))
    const due = soon.filter((row) => row.told < noticesDue(row.expires_at, now))
    for (const { id, expires_at } of due)
      await updateRows(tx, { id }, machine_credentials, { told: noticesDue(expires_at, now) })
    await tellOf(deps, tx, due, 'machine.credential_ending')
    return due.length
  })

/** Tells the owners of these credentials and the administrators, by the name and the end of each. */
const tellOf = async (deps: Uses<'keys'>, tx: Tx, rows: readonly MachineCredentialRow[], action: string) => {
  if (rows.length === 0) return
  const ids = [...new Set(rows.map(({ machine_id }) => machine_id))]
  const machines = await tx.select().from(users).where(inArray(users.id, ids))
  const tell = await tellerOf(deps, tx, ids, action)
  for (const { machine_id, name, kind, expires_at } of rows) {
    const machine = machines.find((one) => one.id === machine_id)?.username
    await tell(machine_id, `${machine}, ${kind} ${name}, until ${new Date(expires_at).toISOString()}`)
  }
}

/** After how many days without use its owners are told that a credential may be superfluous. */
const UNUSED_DAYS = 90
const unusedBefore = (now: Date) => new Date(now.getTime() - UNUSED_DAYS * DAY_MS)

/** Whether its owners were told that it is not used, and it still is not, though valid. */
export const isUnused = (row: MachineCredentialRow, now: Date): boolean => {
  const { unused_told_at, last_used_at, created_at, revoked_at, expires_at } = row
  if (unused_told_at === null || revoked_at !== null || new Date(expires_at) <= now) return false
  return new Date(unused_told_at) >= new Date(last_used_at ?? created_at)
}

/** So many at a time: a long list of old credentials must not hold a transaction, nor flood the administrators. */
const MOST_UNUSED = 100

/** Records which valid credentials are not used, once until the next use of each. */
export const noteUnused = async (deps: Uses<'db' | 'clock' | 'keys'>): Promise<number> =>
  deps.db.transaction(async (tx) => {
    const now = deps.clock.now()
    const unused = await lockUnused(tx, now, unusedBefore(now), MOST_UNUSED)
    for (const { id } of unused)
      await updateRows(tx, { id }, machine_credentials, { unused_told_at: now.toISOString() })
    await tellOf(deps, tx, unused, 'machine.credential_unused')
    return unused.length
  })

/** While a credential made by one administrator is valid, the machine gets no sensitive role under dual control. */
export const noteShown = async (tx: Tx, machine_id: string, now: Date): Promise<void> => {
  const alone = (await credentialsOf(tx, [machine_id])).some(
    ({ confirmed_by, revoked_at, expires_at }) =>
      confirmed_by === null && revoked_at === null && new Date(expires_at) > now,
  )
  await tx.update(users).set({ link_shown: alone }).where(eq(users.id, machine_id))
}

/** Such a credential also ends by expiring, which no command records. */
export const noteExpired = async (deps: Uses<'db' | 'clock' | 'keys'>): Promise<void> => {
  const now = deps.clock.now()
  if ((await markedForExpired(deps.db, now)).length === 0) return
  await deps.db.transaction(async (tx) => {
    await lockControl(deps, tx)
    for (const { id } of await markedForExpired(tx, now)) await noteShown(tx, id, now)
  })
}
