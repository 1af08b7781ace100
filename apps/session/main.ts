import { requireMigrations } from '../../db/migrate.ts'
import { listen } from '../shared/http/app.ts'
import { runApp, waitFor } from '../shared/http/lifecycle.ts'
import { buildApp } from './app.ts'
import { loadSessionConfig } from './config.ts'
import { checkRedisSettings } from './store/revocations.ts'
import { createDeps } from './wire.ts'

await runApp('session', async () => {
  const config = loadSessionConfig()
  const deps = createDeps(config)
  const { redis, telemetry } = deps
  await waitFor('Redis', async () => {
    if (redis.status === 'wait' || redis.status === 'end') await redis.connect()
    await redis.ping()
  })
  await waitFor('Postgres', () => requireMigrations(deps.db.$client, 'session'))
  await checkRedisSettings(redis, config.production, telemetry.log)
  await waitFor('Redis or Postgres', deps.revocations.check)
  await deps.jwks.start()
  const { app, internal, health } = buildApp(deps)
  await listen(app, config.SESSION__LISTEN__HOST, config.SESSION__HTTP__PORT)
  await listen(internal, config.SESSION__LISTEN__HOST, config.SESSION__RPC__PORT)
  return {
    telemetry,
    part: { redis_url: config.SESSION__REDIS__URL, prefix: config.AUTH__REDIS__PREFIX, read: health.read },
    stop: async () => {
      await health.drain()
      deps.revocations.stop()
      await app.close()
      await internal.close()
      await deps.close()
    },
  }
})
