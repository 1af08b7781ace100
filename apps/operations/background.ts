import { prefixed } from '../shared/events/events.ts'
import { startCatalogConsumer } from './catalog/consumer.ts'
import type { OperationsDeps } from './deps.ts'
import { startNotifier } from './notifications/loop.ts'
import { startSchedules } from './schedules/fire.ts'
import { startSweeper } from './upkeep/sweeper.ts'

/**
 * The background work of one process: the sweeper, schedules, the notifier, the catalog's consumer, and waking requests
 * that wait for outcomes.
 */
export const startBackground = (deps: OperationsDeps) => {
  const { config, nats, outcomes, projection, telemetry } = deps
  const prefix = config.SIGNALBOX__NATS__PREFIX
  const consumer = startCatalogConsumer({ projection, log: telemetry.log, prefix, fence: deps.fence })
  nats.onConnect((nc) => {
    nc.subscribe(prefixed(prefix, 'wake.operations_outcome'), { callback: (_error, { data }) => outcomes.hear(data) })
    consumer.subscribe(nc)
  })
  const sweeper = startSweeper(deps)
  const schedules = startSchedules(deps)
  const notifier = startNotifier(deps)
  return {
    stop: async () => {
      await Promise.all([sweeper.stop(), schedules.stop(), notifier.stop(), consumer.stop()])
    },
  }
}
