import { requireMigrations } from '../../db/migrate.ts'
import { listen } from '../shared/http/app.ts'
import { runApp, waitFor } from '../shared/http/lifecycle.ts'
import { buildApp } from './app.ts'
import { loadIdentityConfig } from './config.ts'
import { createDeps } from './wire.ts'

await runApp('identity', async () => {
  const config = loadIdentityConfig()
  const deps = createDeps(config)
  await waitFor('Postgres', () => requireMigrations(deps.pool, 'identity'))
  void deps.jwks.start()
  const { app, internal, health } = buildApp(deps)
  await listen(internal, config.IDENTITY__LISTEN__HOST, config.IDENTITY__RPC__PORT)
  await listen(app, config.IDENTITY__LISTEN__HOST, config.IDENTITY__HTTP__PORT)
  return {
    telemetry: deps.telemetry,
    part: { redis_url: config.IDENTITY__REDIS__URL, prefix: config.AUTH__REDIS__PREFIX, read: health.read },
    stop: async () => {
      await health.drain()
      await app.close()
      await internal.close()
      await deps.close()
    },
  }
})
