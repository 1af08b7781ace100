import { appendAuditTo } from '../../../db/audit.ts'
import type { Db } from '../../../db/client.ts'
import { ableAdmins, lockAdmins, lockUser } from '../../../db/identity/queries.ts'
import { type UserStatus, user_events } from '../../../db/identity/tables.ts'
import { uuidv7 } from '../../shared/ids.ts'
import { setStatus } from './change.ts'

/** The result for a person or a key whose end a database restore has undone. */
export type ShutOut = 'done' | 'as it is' | 'unknown' | 'the last administrator'

export const RESTORED = { actor: { type: 'system', id: 'accept-restore' }, request_id: null }
export const BEFORE = 'Its state before the database was restored.'
const WORDS: Partial<Record<UserStatus, string>> = { DISABLED: 'user.disabled', DELETED: 'user.deleted' }

/** Ends a person again (reliability.md 4.13) whom a restore revived; never the last administrator, who can repair. */
export const shutOutAgain = (
  db: Db,
  audit_key: Uint8Array,
  user_id: string,
  to: 'DISABLED' | 'DELETED',
  actor: string,
): Promise<ShutOut> =>
  db.transaction(async (tx) => {
    await lockAdmins(tx)
    const user = await lockUser(tx, user_id)
    if (!user) return 'unknown'
    if (user.status !== 'ACTIVE') return 'as it is'
    const admins = await ableAdmins(tx)
    if (admins.includes(user_id) && admins.length === 1) return 'the last administrator'
    await setStatus({ keys: { audit: audit_key } }, tx, { event_id: uuidv7(), ...RESTORED }, user, to)
    await appendAuditTo(tx, user_events, audit_key, {
      actor,
      action: WORDS[to] ?? to,
      object: `user:${user_id}`,
      outcome: 'done',
      reason: BEFORE,
    })
    return 'done'
  })
