import { readTextFile } from '../shared/config.ts'
import { listen } from '../shared/http/app.ts'
import { runApp } from '../shared/http/lifecycle.ts'
import { createServiceSigner } from '../shared/service/tokens.ts'
import { createTelemetry } from '../shared/telemetry.ts'
import { buildApp } from './app.ts'
import { loadFleetConfig } from './config.ts'
import { createHosts } from './hosts.ts'
import { startReports } from './reports.ts'
import { openStore } from './store.ts'

await runApp('fleet', async () => {
  const config = loadFleetConfig()
  const telemetry = createTelemetry('fleet')
  const { log } = telemetry
  const store = openStore(config.FLEET__DATA__FILE)
  const token =
    config.FLEET__AUTH__TOKEN_FILE && readTextFile('FLEET__AUTH__TOKEN_FILE', config.FLEET__AUTH__TOKEN_FILE)
  const hosts = createHosts(store, {
    address: config.FLEET__LISTEN__HOST,
    known_as: config.FLEET__HOSTS__ADDRESS ?? config.FLEET__LISTEN__HOST,
    port_base: config.FLEET__HOSTS__PORT_BASE,
    token,
    log,
  })
  await hosts.openAll()
  const { app } = buildApp({ telemetry, store, hosts })
  await listen(app, config.FLEET__LISTEN__HOST, config.FLEET__HTTP__PORT)
  const signer = config.FLEET__SERVICE__KEY_FILE
    ? createServiceSigner({ name: 'fleet', key_file: config.FLEET__SERVICE__KEY_FILE })
    : undefined
  const reports =
    signer && config.FLEET__HEALTH__REPORT_S > 0
      ? startReports({
          store,
          catalog_url: config.FLEET__CATALOG__URL,
          token: async () => signer('catalog-internal'),
          every_s: config.FLEET__HEALTH__REPORT_S,
          log,
        })
      : undefined
  return {
    telemetry,
    stop: async () => {
      await app.close()
      await reports?.stop()
      await hosts.closeAll()
      store.close()
    },
  }
})
