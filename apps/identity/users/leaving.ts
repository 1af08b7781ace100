import { appendAuditTo } from '../../../db/audit.ts'
import type { Tx } from '../../../db/client.ts'
import { ownersOf, secretsSeenBy } from '../../../db/identity/machines.ts'
import { lastingAdmins } from '../../../db/identity/queries.ts'
import { type UserRow, user_events } from '../../../db/identity/tables.ts'

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
export const tellerOf = async (deps: Audited, tx: Tx, machine_ids: string[], action: string) => {
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
