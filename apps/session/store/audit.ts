import type { Logger } from 'pino'
import { signAudit } from '../../../db/audit.ts'
import type { Clock } from '../../shared/clock.ts'
import { deriveKey, hmacSha256 } from '../../shared/data/digest.ts'
import { uuidv7 } from '../../shared/ids.ts'
import type { Store } from './store.ts'

/** One security event (auth.md 9). `reason` is the true cause, which the caller of a login never learns. */
export type AuthEvent = {
  action:
    | 'login'
    | 'machine_token'
    | 'logout'
    | 'refresh'
    | 'revoke_session'
    | 'revoke_user'
    | 'change_password'
    | 'set_totp'
    | 'remove_totp'
    | 'totp_locked'
    | 'reauth'
    | 'unlock'
    | 'spray_suspected'
    | 'link_identity'
    | 'device_grant'
    | 'provider_logout'
    | 'forbidden'
    | 'data_loss'
  outcome: 'done' | 'denied' | 'noted'
  reason?: string
  /** The user whom it concerns, if known. */
  user_id?: string | undefined
  session_id?: string | undefined
  actor: string
  request_id: string
  ip_address?: string | undefined
  user_agent?: string | undefined
  details?: Record<string, unknown>
}

/**
 * Writes security events to the stream `auth:audit`, from which the relay fills `session.auth_events`. A failed write
 * is logged and does not fail the request: the authoritative event log of sessions is the revocation stream.
 */
export const createAudit = ({
  store,
  secrets,
  clock,
  log,
}: {
  store: Pick<Store, 'appendAudit'>
  secrets: readonly [Buffer, ...Buffer[]]
  clock: Clock
  log: Logger
}) => {
  const key = deriveKey(secrets[0], 'audit')
  const hidden = (session_id: string) => hmacSha256(key, `session:${session_id}`).toString('hex').slice(0, 32)
  return async (event: AuthEvent): Promise<void> => {
    const { action, outcome, reason, user_id, session_id, actor, request_id, ip_address, user_agent, details } = event
    const row = {
      event_id: uuidv7(),
      at: clock.now().toISOString(),
      actor,
      action,
      object: user_id ? `user:${user_id}` : 'unknown',
      outcome,
      reason: reason ?? null,
      request_id,
    }
    const signed = signAudit('session.auth_events', key, {
      ...row,
      ...(session_id && { session: hidden(session_id) }),
      ...(ip_address && { ip_address }),
      ...(user_agent && { user_agent }),
      ...(details && { details }),
    })
    try {
      await store.appendAudit(JSON.stringify({ ...row, ...signed }))
    } catch (error) {
      log.error({ err: error, action, outcome }, 'an audit event could not be written')
    }
  }
}
export type Audit = ReturnType<typeof createAudit>
