import { prefixed } from '../../shared/events/events.ts'
import type { Uses } from '../deps.ts'
import { rightsChanged } from '../gates/standing.ts'
import type { Stream } from './stream.ts'

/** Ends streams whose rights have changed; they reconnect and are authorized again. `compare` finds missed changes. */
export const followRights = (
  deps: Uses<'config' | 'db' | 'lookback_s' | 'nats' | 'telemetry' | 'trust'>,
  streams: () => Stream[],
) => {
  deps.nats.onConnect((nc) => {
    const on = (subject: string, take: (message: Record<string, unknown>) => void) =>
      nc.subscribe(prefixed(deps.config.SIGNALBOX__NATS__PREFIX, subject), {
        callback: (error, message) => {
          if (!error) take(message.json<Record<string, unknown>>())
        },
      })
    on('auth.session.revoked.v1', ({ session_id }) => {
      for (const stream of streams()) if (stream.caller.session_id === session_id) stream.end('revoked')
    })
    const changed = ({ user_ids, user_id, all }: Record<string, unknown>) => {
      const ids = Array.isArray(user_ids) ? user_ids.map(String) : user_id === undefined ? [] : [String(user_id)]
      deps.trust.principals.drop(all === true ? 'all' : ids)
      deps.trust.approvers.drop()
      // Best effort: missed changes are found before the next vote counts and before the next node starts.
      rightsChanged(deps, all === true ? 'all' : ids).catch((error: unknown) =>
        deps.telemetry.log.warn({ err: error }, 'votes could not be proved again'),
      )
      // The stream's contents were authorized with the old rights.
      for (const stream of streams())
        if (all === true || ids.includes(stream.caller.user_id)) stream.end('shutdown', 100)
    }
    on('auth.user.roles_changed.v1', changed)
    on('auth.user.status_changed.v1', changed)
  })

  let comparing = false
  /** Asks identity for each reader, one after the other: a message that was sent while NATS was away never comes. */
  const compare = async () => {
    if (comparing) return
    comparing = true
    try {
      for (const [user_id, own] of Map.groupBy(streams(), ({ caller }) => caller.user_id)) {
        const now = await deps.trust.principals.ask(user_id)
        const old = own.filter(({ caller }) => caller.version !== now?.version)
        // Otherwise the stream that comes back would begin with the remembered rights.
        if (old.length > 0) deps.trust.principals.drop([user_id])
        for (const stream of old) stream.end('shutdown', 100)
      }
    } catch (error) {
      deps.telemetry.log.debug({ err: error }, 'the rights of live streams are unproved until identity answers')
    }
    comparing = false
  }
  deps.nats.onReconnect(() => void compare())
  return { compare }
}
