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
    | 'provider_trial'
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

const TELL_MS = 60_000

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
  let gone = 0
  let told_ms = 0
  /** States at most once a minute how many older rows had to go. */
  const tellGone = async (rows: number): Promise<void> => {
    gone += rows
    const now = clock.now().getTime()
    if (gone === 0 || now - told_ms < TELL_MS) return
    const details = { rows: gone }
    gone = 0
    told_ms = now
    log.error(details, 'audit rows were dropped, because the relay has stored none for long')
    await write({
      action: 'data_loss',
      outcome: 'noted',
      actor: 'system',
      request_id: uuidv7(),
      reason: 'full',
      details,
    })
  }

  const write = async (event: AuthEvent): Promise<void> => {
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
      await tellGone(await store.appendAudit(JSON.stringify({ ...row, ...signed })))
    } catch (error) {
      log.error({ err: error, action, outcome }, 'an audit event could not be written')
    }
  }
  return write
}
export type Audit = ReturnType<typeof createAudit>
