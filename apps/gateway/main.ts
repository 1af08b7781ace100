import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { listen } from '../shared/http.ts'
import { endIdleConnections, runApp } from '../shared/lifecycle.ts'
import { buildApp } from './app.ts'
import { loadGatewayConfig } from './config.ts'
import { createDeps } from './deps.ts'

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  version: string
}

await runApp('gateway', async () => {
  const config = loadGatewayConfig()
  const deps = createDeps(config, { version })
  await deps.settled()
  const { server, internal, health } = buildApp(deps)
  server.listen(config.GATEWAY__HTTP__PORT, config.GATEWAY__LISTEN__HOST)
  await once(server, 'listening')
  await listen(internal, config.GATEWAY__LISTEN__HOST, config.GATEWAY__INTERNAL__PORT)
  return {
    log: deps.telemetry.log,
    stop: async () => {
      health.drain()
      deps.drain()
      deps.streams.endAll()
      const closed = once(server, 'close')
      server.close()
      server.closeIdleConnections()
      endIdleConnections(server)
      await closed
      await internal.close()
      await deps.close()
    },
  }
})
