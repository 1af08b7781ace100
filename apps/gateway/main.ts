import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { listen } from '../shared/http/app.ts'
import { idleConnections, runApp } from '../shared/http/lifecycle.ts'
import { buildApp } from './app.ts'
import { loadGatewayConfig } from './config.ts'
import { followEdgePair } from './edge/tls.ts'
import { createDeps } from './wire.ts'

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  version: string
}

/** How long requests in flight may take at shutdown. */
const IN_FLIGHT_MS = 20_000

await runApp('gateway', async () => {
  const config = loadGatewayConfig()
  const deps = createDeps(config, { version })
  await deps.settled()
  const { server, internal, health } = buildApp(deps)
  if (config.tls) followEdgePair(config.tls, config)
  const endIdle = idleConnections(server)
  server.listen(config.GATEWAY__HTTP__PORT, config.GATEWAY__LISTEN__HOST)
  await once(server, 'listening')
  await listen(internal, config.GATEWAY__LISTEN__HOST, config.GATEWAY__INTERNAL__PORT)
  return {
    telemetry: deps.telemetry,
    part: { redis_url: config.GATEWAY__REDIS__URL, prefix: config.AUTH__REDIS__PREFIX, read: health.read },
    stop: async () => {
      deps.drain()
      await health.drain()
      deps.streams.endAll()
      setTimeout(() => server.closeAllConnections(), IN_FLIGHT_MS).unref()
      const closed = once(server, 'close')
      server.close()
      server.closeIdleConnections()
      endIdle()
      await closed
      await internal.close()
      await deps.close()
    },
  }
})
