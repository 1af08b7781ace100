import { prefixed } from '../shared/events/events.ts'
import { holdNats } from '../shared/events/holder.ts'
import type { Logger } from '../shared/telemetry.ts'

/** The connection of operations to NATS. */
export const createNatsHolder = (url: string, prefix: string, log: Logger) => {
  const holder = holdNats(url, 'operations', log)
  return {
    ...holder,
    /** Tells listeners that there is something to look at. Best effort: everyone also polls. */
    wake: (what: 'operations' | 'operations_outcome'): void => holder.publish(prefixed(prefix, `wake.${what}`)),
  }
}
export type NatsHolder = ReturnType<typeof createNatsHolder>
