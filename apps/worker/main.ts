import { requireMigrations } from '../../db/migrate.ts'
import { createHttpApp, listen } from '../shared/http/app.ts'
import { OPERATIONS_CODES } from '../shared/http/edge-codes.ts'
import { holds, serveHealth } from '../shared/http/health.ts'
import { runApp, waitFor } from '../shared/http/lifecycle.ts'
import { createTelemetry } from '../shared/telemetry.ts'
import { loadWorkerConfig } from './config.ts'
import { createDeps } from './deps.ts'
import { startWorkers } from './workers.ts'

await runApp('worker', async () => {
  const config = loadWorkerConfig()
  const telemetry = createTelemetry('worker')
  const deps = createDeps(config, telemetry)
  await waitFor('Postgres', () => requireMigrations(deps.pool, 'operations'))
  const workers = startWorkers(deps)
  const app = await createHttpApp({ telemetry, codes: OPERATIONS_CODES, internal: true })
  const health = serveHealth(app, telemetry, {
    postgres: { critical: true, run: () => deps.pool.query('select 1') },
    temporal: { critical: true, run: holds(workers.isPolling, 'not polling') },
  })
  await listen(app, config.WORKER__LISTEN__HOST, config.WORKER__INTERNAL__PORT)
  return {
    telemetry,
    part: { redis_url: config.WORKER__REDIS__URL, prefix: config.AUTH__REDIS__PREFIX, read: health.read },
    stop: async () => {
      await health.drain()
      await workers.stop()
      await app.close()
      await deps.close()
    },
  }
})
