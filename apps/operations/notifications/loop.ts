import { setTimeout as delay } from 'node:timers/promises'
import { deleteDevice } from '../../../db/operations/notifications/destinations.ts'
import { prefixed } from '../../shared/events/events.ts'
import { type Loop, startLoop } from '../../shared/process/repeat.ts'
import type { Uses } from '../deps.ts'
import { findNotices } from './find.ts'
import { queueSecurity } from './security.ts'
import { countMessages, sendDue } from './send.ts'

type Deps = Uses<'channels' | 'clock' | 'config' | 'db' | 'fence' | 'nats' | 'notifyKeys' | 'telemetry' | 'trust'>

/** A slower receiver holds up no message to others. */
const PATIENCE_MS = 1000

/** Tells people about decisions that wait and changes to their accounts, until stopped; only if NOTIFY__ENABLED. */
export const startNotifier = (deps: Deps): Pick<Loop, 'stop'> => {
  const { channels } = deps
  for (const result of ['sent', 'again', 'dead'] as const) countMessages(deps.telemetry).inc({ result }, 0)
  if (!channels) return { stop: async () => {} }
  const options = {
    every_ms: deps.config.OPERATIONS__SWEEP__INTERVAL_MS,
    failed: (err: unknown) => deps.telemetry.log.warn({ err }, 'a turn of the notifier failed'),
  }
  forgetDevices(deps)
  const finder = startLoop('find notices', () => findNotices(deps), options)
  const security = startLoop('tell of accounts', () => queueSecurity(deps), options)
  const sending = new Set<Promise<void>>()
  const turn = () => Promise.race([sendDue({ ...deps, channels }, sending), delay(PATIENCE_MS)])
  const sender = startLoop('send messages', turn, options)
  return {
    stop: async () => {
      await Promise.all([finder.stop(), security.stop(), sender.stop()])
      await Promise.allSettled(sending)
      await channels.close()
    },
  }
}

/** Removes a browser from its owner's list when its session ends. If missed, the next push removes it. */
const forgetDevices = ({ config, db, nats, telemetry }: Deps) =>
  nats.onConnect((nc) => {
    nc.subscribe(prefixed(config.SIGNALBOX__NATS__PREFIX, 'auth.session.revoked.v1'), {
      callback: (error, message) => {
        if (error) return
        deleteDevice(db, message.json<{ session_id: string }>().session_id).catch((err: unknown) =>
          telemetry.log.warn({ err }, 'the browser of an ended session stays until the next push'),
        )
      },
    })
  })
