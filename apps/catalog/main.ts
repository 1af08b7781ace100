import { systemClock } from '../shared/clock.ts'
import { listen } from '../shared/http/app.ts'
import { runApp } from '../shared/http/lifecycle.ts'
import { createTelemetry } from '../shared/telemetry.ts'
import { buildApp } from './app.ts'
import { loadCatalogConfig } from './config.ts'
import { startImporter } from './imports/worker.ts'
import { startSweeper } from './jobs.ts'
import { startOperationsConsumer } from './operations/consumer.ts'
import { startSearch } from './search/follow.ts'
import { createDeps, createTrust } from './wire.ts'

await runApp('catalog', async () => {
  const config = loadCatalogConfig()
  const telemetry = createTelemetry('catalog')
  const trust = createTrust(config, telemetry)
  const deps = await createDeps(config, trust, { telemetry, clock: systemClock })
  const { app, internal, health } = await buildApp(deps)
  deps.graph.start()
  const sweeper = startSweeper(deps)
  const search = startSearch(deps)
  const importer = startImporter(deps)
  const consumer = deps.config.projector_enabled ? startOperationsConsumer(deps) : undefined
  await listen(app, config.CATALOG__LISTEN__HOST, config.CATALOG__HTTP__PORT)
  await listen(internal, config.CATALOG__LISTEN__HOST, config.CATALOG__INTERNAL__PORT)
  return {
    telemetry,
    part: { redis_url: config.CATALOG__REDIS__URL, prefix: config.AUTH__REDIS__PREFIX, read: health.read },
    stop: async () => {
      await health.drain()
      await app.close()
      await internal.close()
      await Promise.all([sweeper.stop(), importer.stop(), search.stop(), consumer?.stop()])
      await deps.close()
    },
  }
})
