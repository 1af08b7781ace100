import { inArray } from 'drizzle-orm'
import { appendAuditTo } from '../../../db/audit.ts'
import { type Tx, updateRows } from '../../../db/client.ts'
import { lockEnding, ownersOf, secretsSeenBy } from '../../../db/identity/machines.ts'
import { lastingAdmins } from '../../../db/identity/queries.ts'
import { machine_credentials, type UserRow, user_events, users } from '../../../db/identity/tables.ts'
import type { Uses } from '../deps.ts'

/** How many days before a credential expires its owners and the administrators are notified. */
const NOTICE_DAYS = [14, 2] as const
const DAY_MS = 86_400_000

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
    if (due.length === 0) return 0
    const ids = [...new Set(due.map(({ machine_id }) => machine_id))]
    const machines = await tx.select().from(users).where(inArray(users.id, ids))
    const tell = await tellerOf(deps, tx, ids, 'machine.credential_ending')
    for (const { id, machine_id, name, kind, expires_at } of due) {
      await updateRows(tx, { id }, machine_credentials, { told: noticesDue(expires_at, now) })
      const machine = machines.find((one) => one.id === machine_id)?.username
      await tell(machine_id, `${machine}, ${kind} ${name}, until ${new Date(expires_at).toISOString()}`)
    }
    return due.length
  })

type Audited = { keys: { audit: Uint8Array } }

/** Records, for those who stay, which secrets of machines someone who leaves has seen. */
export const noteSeen = async (deps: Audited, tx: Tx, { id, username }: UserRow): Promise<void> => {
  const seen = Map.groupBy(await secretsSeenBy(tx, id), ({ machine_id }) => machine_id)
  if (seen.size === 0) return
  const tell = await tellerOf(deps, tx, [...seen.keys()], 'machine.credential_seen')
  for (const [machine_id, secrets] of seen) {
    const names = secrets.map(({ kind, name }) => `${kind} ${name}`)
    await tell(machine_id, `${[secrets[0]?.username, ...names].join(', ')}; ${username} left`)
  }
}

/** Tells the active owners of one of these machines and all administrators, each by an audit row. */
const tellerOf = async (deps: Audited, tx: Tx, machine_ids: string[], action: string) => {
  const [owners, admins] = [await ownersOf(tx, machine_ids), await lastingAdmins(tx)]
  return async (machine_id: string, reason: string): Promise<void> => {
    const own = owners.filter((owner) => owner.machine_id === machine_id && owner.status === 'ACTIVE')
    const rows = [...new Set([...own.map(({ user_id }) => user_id), ...admins])].map((user_id) => ({
      ...{ actor: 'system', action, object: `user:${user_id}` },
      ...{ outcome: 'done' as const, reason },
    }))
    await appendAuditTo(tx, user_events, deps.keys.audit, rows)
  }
}
