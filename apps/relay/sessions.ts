import type { Client } from '@connectrpc/connect'
import type { Session } from '../shared/contracts/gen/auth_pb.ts'
import type { OutboxRow } from './publisher.ts'

/** Events after which a user's sessions must be gone before anybody hears of them (auth.md 1, 4). */
const REASONS: Record<string, string> = { DISABLED: 'user_disabled', DELETED: 'user_deleted' }

/** Calls session for rows that end sessions; other rows pass. Revoking is idempotent, so a repeat is harmless. */
export const endSessions = async (session: Client<typeof Session>, schema: string, row: OutboxRow): Promise<void> => {
  const payload = row.payload as { user_id?: string; keep_session_id?: string; to?: string; actor?: { id?: string } }
  if (!payload.user_id) return
  const common = { userId: payload.user_id, requestId: row.request_id ?? '', actorId: payload.actor?.id ?? '' }
  if (schema === 'identity') {
    const reason = row.type === 'auth.user.status_changed.v1' ? REASONS[payload.to ?? ''] : undefined
    if (reason) await session.revokeUserSessions({ ...common, keepSessionId: '', reason, clearLockout: false })
    return
  }
  if (row.type === 'password_set')
    await session.revokeUserSessions({ ...common, keepSessionId: '', reason: 'password_changed', clearLockout: true })
  if (row.type === 'password_changed') {
    await session.revokeUserSessions({
      ...common,
      keepSessionId: payload.keep_session_id ?? '',
      reason: 'password_changed',
      clearLockout: false,
    })
  }
}
