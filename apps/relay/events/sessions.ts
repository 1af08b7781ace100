import { timestampFromDate } from '@bufbuild/protobuf/wkt'
import type { Client } from '@connectrpc/connect'
import type { Session } from '../../shared/contracts/gen/auth_pb.ts'
import type { OutboxRow } from './publisher.ts'

/** Events after which a user's sessions must be gone before anyone hears of them (auth.md 1, 4). */
const REASONS: Record<string, string> = { DISABLED: 'user_disabled', DELETED: 'user_deleted' }
const ENDING = new Set(['auth.user.recovery_started.v1', 'auth.user.identity_unlinked.v1'])

/**
 * Calls session for rows that end sessions; false for other rows. A late message ends no session that began after its
 * cause; one about a password, none that proved the new one.
 */
export const endSessions = async (
  session: Client<typeof Session>,
  schema: string,
  row: OutboxRow,
): Promise<boolean> => {
  const payload = row.payload as {
    user_id?: string
    credential_id?: string
    keep_session_id?: string
    to?: string
    actor?: { id?: string }
  }
  if (!payload.user_id) return false
  const common = { userId: payload.user_id, requestId: row.request_id ?? '', actorId: payload.actor?.id ?? '' }
  const occurredAt = timestampFromDate(row.occurred_at)
  if (schema === 'identity') {
    const changed = row.type === 'auth.user.status_changed.v1' ? REASONS[payload.to ?? ''] : undefined
    const reason = ENDING.has(row.type) ? 'admin' : changed
    const keepSessionId = payload.keep_session_id ?? ''
    if (reason) await session.revokeUserSessions({ ...common, reason, occurredAt, keepSessionId })
    // The session of a machine's credential has the credential's id.
    if (payload.credential_id !== undefined)
      await session.revokeSession({ ...common, sessionId: payload.credential_id, reason: 'credential_revoked' })
    return reason !== undefined || payload.credential_id !== undefined
  }
  // The aggregate is the user's credential, so its version is the password's version.
  const passwordVersion = Number(row.agg_version)
  const changed = { ...common, reason: 'password_changed', passwordVersion, occurredAt }
  if (row.type === 'password_set') await session.revokeUserSessions({ ...changed, clearLockout: true })
  if (row.type === 'password_changed')
    await session.revokeUserSessions({ ...changed, keepSessionId: payload.keep_session_id ?? '' })
  return true
}
