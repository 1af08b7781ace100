import { appendAuditTo } from '../../../db/audit.ts'
import type { Db } from '../../../db/client.ts'
import { lockCredential } from '../../../db/identity/machines.ts'
import { lockAdmins, lockUser } from '../../../db/identity/queries.ts'
import { user_events } from '../../../db/identity/tables.ts'
import { BEFORE, RESTORED, type ShutOut } from '../users/restored.ts'
import { endRow } from './credentials.ts'
import { credentialView, detailsOf } from './measures.ts'

/** Ends a machine's credential again that a restore revived. */
export const revokeAgain = (
  db: Db,
  audit_key: Uint8Array,
  { user_id, credential_id }: { user_id: string; credential_id: string },
  actor: string,
): Promise<ShutOut> =>
  db.transaction(async (tx) => {
    await lockAdmins(tx)
    const machine = await lockUser(tx, user_id)
    const row = machine && (await lockCredential(tx, machine.id, credential_id))
    if (!row) return 'unknown'
    if (row.revoked_at !== null) return 'as it is'
    await endRow(tx, RESTORED, row)
    await appendAuditTo(tx, user_events, audit_key, {
      actor,
      action: 'machine.credential_revoked',
      object: `user:${user_id}`,
      outcome: 'done',
      reason: BEFORE,
      before: credentialView(row),
      details: detailsOf(row),
    })
    return 'done'
  })
