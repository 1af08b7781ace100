import { prefixed } from '../shared/events/events.ts'
import { holdNats } from '../shared/events/holder.ts'
import type { Logger } from '../shared/telemetry.ts'

/** A woken relay takes everything that waits, so it need not be notified of each command in a burst. */
const WAKE_MS = 5

/** The catalog's connection to NATS. */
export const createNats = (url: string, prefix: string, log: Logger) => {
  const holder = holdNats(url, 'catalog', log)
  let resting: NodeJS.Timeout | undefined
  let more = false

  const wake = () => {
    more = resting !== undefined
    if (more) return
    holder.publish(prefixed(prefix, 'wake.catalog'))
    resting = setTimeout(() => {
      resting = undefined
      if (more) wake()
    }, WAKE_MS)
  }

  return {
    ...holder,
    prefix,
    /** Wakes the relay for outbox rows: at once, or within 5 ms of the last time. Best effort: the relay also polls. */
    wake,
    close: async () => {
      clearTimeout(resting)
      await holder.close()
    },
  }
}
