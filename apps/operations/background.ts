import { prefixed } from '../shared/events/events.ts'
import { repeatUntilDone } from '../shared/process/repeat.ts'
import { startCatalogConsumer } from './catalog/consumer.ts'
import type { OperationsDeps } from './deps.ts'
import { startNotifier } from './notifications/loop.ts'
import { completeLibrary } from './packs/open.ts'
import { startSchedules } from './schedules/fire.ts'
import { startSweeper } from './upkeep/sweeper.ts'

/**
 * The background work of one process: the sweeper, schedules, the notifier, the catalog's consumer, and waking requests
 * that wait for outcomes, and loading packs whose registry was away.
 */
export const startBackground = (deps: OperationsDeps) => {
  const { config, nats, outcomes, projection, telemetry } = deps
  const end = new AbortController()
  const prefix = config.SIGNALBOX__NATS__PREFIX
  const consumer = startCatalogConsumer({ projection, log: telemetry.log, prefix, fence: deps.fence })
  nats.onConnect((nc) => {
    nc.subscribe(prefixed(prefix, 'wake.operations_outcome'), { callback: (_error, { data }) => outcomes.hear(data) })
    consumer.subscribe(nc)
  })
  const sweeper = startSweeper(deps)
  const schedules = startSchedules(deps)
  const notifier = startNotifier(deps)
  const complete = repeatUntilDone(
    () => completeLibrary(config, deps.db, deps.library),
    end.signal,
    ({ message }) => {
      deps.library.away = [message]
      telemetry.log.warn({ why: message }, 'packs are missing')
    },
  )
  return {
    stop: async () => {
      end.abort()
      await Promise.all([sweeper.stop(), schedules.stop(), notifier.stop(), consumer.stop(), complete])
    },
  }
}
