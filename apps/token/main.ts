import { listen } from '../shared/http/app.ts'
import { runApp } from '../shared/http/lifecycle.ts'
import { buildApp } from './app.ts'
import { loadTokenConfig } from './config.ts'
import { createDeps } from './wire.ts'

await runApp('token', async () => {
  const config = loadTokenConfig()
  const deps = await createDeps(config)
  const { app, internal, health } = buildApp(deps)
  await listen(internal, config.TOKEN__LISTEN__HOST, config.TOKEN__RPC__PORT)
  await listen(app, config.TOKEN__LISTEN__HOST, config.TOKEN__HTTP__PORT)
  return {
    telemetry: deps.telemetry,
    part: { redis_url: config.TOKEN__REDIS__URL, prefix: config.AUTH__REDIS__PREFIX, read: health.read },
    stop: async () => {
      await health.drain()
      await app.close()
      await internal.close()
      await deps.close()
    },
  }
})
