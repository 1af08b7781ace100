import { AREAS, requireMigrations } from '../../db/migrate.ts'
import { listen } from '../shared/http/app.ts'
import { runApp, waitFor } from '../shared/http/lifecycle.ts'
import { peerOf } from '../shared/links.ts'
import { followServers } from '../shared/tls/peer.ts'
import { buildApp, startRelay } from './app.ts'
import { loadRelayConfig } from './config.ts'
import { createLags } from './lags.ts'
import { measureRoom } from './room.ts'
import { createDeps } from './wire.ts'

await runApp('relay', async () => {
  const config = loadRelayConfig()
  const deps = await createDeps(config)
  await waitFor('Postgres', () => requireMigrations(deps.pool, ...AREAS))
  const { app, health } = buildApp(deps)
  const relay = startRelay(deps)
  measureRoom(deps.telemetry, deps.pool, deps.nats, config.SIGNALBOX__NATS__PREFIX)
  followServers({
    postgres: () => peerOf('postgres', config.RELAY__DATABASE__URL),
    redis: () => peerOf('redis', config.RELAY__REDIS__URL),
    nats: () => peerOf('nats', config.RELAY__NATS__URL),
    temporal: () => peerOf('temporal', config.RELAY__TEMPORAL__ADDRESS),
  })
  await listen(app, config.RELAY__LISTEN__HOST, config.RELAY__INTERNAL__PORT)
  return {
    telemetry: deps.telemetry,
    part: {
      redis_url: config.RELAY__REDIS__URL,
      prefix: config.AUTH__REDIS__PREFIX,
      read: health.read,
      lags: createLags(deps.pool, deps.telemetry, { siem: config.RELAY__SIEM__URL !== undefined }),
    },
    stop: async () => {
      await health.drain()
      await relay.stop()
      await app.close()
      await deps.nats.close()
      await deps.engine.close()
      deps.redis.disconnect()
      deps.redisReader.disconnect()
      await deps.pool.end()
    },
  }
})
