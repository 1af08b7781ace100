import { requireMigrations } from '../../db/migrate.ts'
import { listen } from '../shared/http/app.ts'
import { runApp, waitFor } from '../shared/http/lifecycle.ts'
import { buildApp } from './app.ts'
import { loadCredentialConfig } from './config.ts'
import { createDeps } from './deps.ts'

await runApp('credential', async () => {
  const config = loadCredentialConfig()
  const deps = await createDeps(config)
  await waitFor('Postgres', () => requireMigrations(deps.pool, 'credential'))
  const { app, health } = buildApp(deps)
  await listen(app, config.CREDENTIAL__LISTEN__HOST, config.CREDENTIAL__RPC__PORT)
  return {
    telemetry: deps.telemetry,
    part: { redis_url: config.CREDENTIAL__REDIS__URL, prefix: config.AUTH__REDIS__PREFIX, read: health.read },
    stop: async () => {
      await health.drain()
      await app.close()
      await deps.close()
    },
  }
})
