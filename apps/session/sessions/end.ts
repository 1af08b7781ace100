import { pick } from '../../shared/data/pick.ts'
import { notFound } from '../../shared/errors.ts'
import { isUuid } from '../../shared/ids.ts'
import type { SessionDeps, Uses } from '../deps.ts'
import type { Kept, RevokeReason, SessionRecord } from '../store/store.ts'

export type EndDeps = Uses<'audit' | 'revocations' | 'store'>

/** Who ends sessions, and in which request. */
export type By = { actor_type: 'user' | 'service' | 'system'; actor_id?: string; request_id: string }

export const actorOf = ({ actor_type, actor_id }: By) =>
  actor_id ? `${actor_type === 'service' ? 'svc' : actor_type}:${actor_id}` : actor_type

/** Ends one session. A repeat has no effect and emits no event. Returns true if this call ended it. */
export const endSession = async (
  deps: EndDeps,
  session: { session_id: string; user_id?: string },
  reason: RevokeReason,
  by: By,
): Promise<boolean> => {
  const revoked = await deps.store.revoke({ ...session, ...by, reason })
  if (revoked) {
    await deps.revocations.record([revoked])
    await deps.audit({
      action: reason === 'logout' ? 'logout' : 'revoke_session',
      outcome: 'done',
      reason,
      actor: actorOf(by),
      user_id: revoked.user_id,
      session_id: revoked.session_id,
      request_id: by.request_id,
    })
  }
  await deps.store.replicated()
  return revoked !== undefined
}

/** Ends all sessions of a user except those to keep, and returns how many it ended. */
export const endUserSessions = async (
  deps: SessionDeps,
  user: Kept,
  reason: RevokeReason,
  by: By,
  details: Record<string, string> = {},
): Promise<number> => {
  const rows = await deps.store.revokeUser({ ...user, ...by, reason })
  await deps.revocations.record(rows)
  const note = () =>
    deps.audit({
      action: 'revoke_user',
      outcome: 'done',
      reason,
      actor: actorOf(by),
      user_id: user.user_id,
      request_id: by.request_id,
      details: { ...details, revoked: rows.length },
    })
  if (rows.length > 0) await note()
  await deps.store.replicated()
  // While replicas are away the relay repeats this every few seconds, and each row stays for ever.
  if (rows.length === 0) await note()
  return rows.length
}

/** How to end a session of this user once; someone else's or an ended one is not found. */
export const endingOf = (
  deps: SessionDeps,
  { user_id, session_id }: { session_id: string; user_id: string },
  reason: RevokeReason,
  by: By,
) => ({
  there: async () => isUuid(session_id) && (await deps.store.get(user_id, session_id))?.state === 'active',
  remove: async () => isUuid(session_id) && (await endSession(deps, { user_id, session_id }, reason, by)),
  missing: () => notFound('session', session_id, 'not_found'),
})

/** Whether a session has ended by time: expired, or idle for too long. */
export const isOver = ({ clock, config }: SessionDeps, { expires_at, last_used_at }: SessionRecord): boolean => {
  const now_us = clock.now().getTime() * 1000
  const idle_us = config.SESSION__IDLE__LIMIT_S * 1_000_000
  return expires_at <= now_us || (idle_us > 0 && now_us - last_used_at > idle_us)
}

/** A session as its owner and administrators see it. */
export const viewOf = (record: SessionRecord, current?: string) => ({
  id: record.session_id,
  created_at: timeOf(record.created_at),
  last_used_at: timeOf(record.last_used_at),
  expires_at: timeOf(record.expires_at),
  ...pick(record, 'user_agent', 'ip_address', 'metadata', 'mode'),
  current: record.session_id === current,
})

/** RFC 3339 in UTC with microseconds. */
const timeOf = (us: number): string =>
  `${new Date(Math.floor(us / 1000)).toISOString().slice(0, 23)}${String(us % 1000).padStart(3, '0')}Z`
