import { requireMigrations } from '../../db/migrate.ts'
import { listen } from '../shared/http/app.ts'
import { insist, runApp, waitFor } from '../shared/http/lifecycle.ts'
import { createTelemetry } from '../shared/telemetry.ts'
import { buildApp } from './app.ts'
import { startBackground } from './background.ts'
import { loadOperationsConfig } from './config.ts'
import { createLags } from './metrics.ts'
import { openLibrary } from './packs/open.ts'
import { recordLibrary } from './packs/record.ts'
import { createDeps, createTrust } from './wire.ts'

await runApp('operations', async () => {
  const config = loadOperationsConfig()
  const telemetry = createTelemetry('operations')
  const library = await openLibrary(config)
  const trust = createTrust(config, telemetry)
  const deps = createDeps(config, trust, library, { telemetry })
  await waitFor('Postgres', () => requireMigrations(deps.pool, 'operations'))
  await insist(() => recordLibrary(deps.db, deps.library))
  const { app, internal, health } = await buildApp(deps)
  const background = startBackground(deps)
  await listen(internal, config.OPERATIONS__LISTEN__HOST, config.OPERATIONS__INTERNAL__PORT)
  await listen(app, config.OPERATIONS__LISTEN__HOST, config.OPERATIONS__HTTP__PORT)
  return {
    telemetry,
    part: {
      redis_url: config.OPERATIONS__REDIS__URL,
      prefix: config.AUTH__REDIS__PREFIX,
      read: health.read,
      lags: createLags(deps.projection, telemetry),
    },
    stop: async () => {
      await health.drain()
      await app.close()
      await background.stop()
      await internal.close()
      deps.outcomes.close()
      trust.close()
      await deps.nats.close()
      await deps.closeDb()
    },
  }
})
