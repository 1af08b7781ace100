import { writeAppEnv } from '../app-env.ts'
import { APPS, type AppContext, type AppPorts } from '../apps.ts'
import { prepareDatabase } from '../database.ts'
import { ensureKeys } from '../keys.ts'
import { createScreen } from '../screen.ts'
import { startServers } from '../servers.ts'

/**
 * The first container of docker-compose.yml: makes the development keys, brings the database up to date and writes each
 * app's environment, then ends. The servers are those that the environment names; apps reach one another by name.
 */
const dir = process.env.SIGNALBOX_DIR ?? '/data'
const keys = ensureKeys(dir)
const programs = { postgres: undefined, redis: undefined, nats: undefined, temporal: undefined }
const servers = await startServers({ dir, programs, secrets: keys.servers, screen: createScreen() })
const database = 'signalbox'
const { admin_url, password } = servers.postgres
const roles = await prepareDatabase({ admin_url, database, password })
const ports: Record<string, AppPorts> = Object.fromEntries(
  APPS.map(({ name, http, internal }) => [name, { http: http?.[1], internal: internal[1] }]),
)
const context: AppContext = {
  dir,
  keys,
  servers,
  database,
  roles,
  ports,
  network: { host: (app) => app, listen: '0.0.0.0' },
  fleet_port_base: 17_200,
  prefix: { nats: '', redis: '', queue: '' },
  overrides: { GATEWAY__CONSOLE__DIR: '/signalbox/console' },
}
writeAppEnv(APPS, context)
console.log(`The environment of ${APPS.length} apps stands in ${dir}/keys/env.`)
