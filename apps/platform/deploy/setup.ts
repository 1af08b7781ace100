import { writeAppEnv } from '../app-env.ts'
import { APPS } from '../apps.ts'
import { prepareDatabase } from '../database.ts'
import { ensureKeys } from '../keys.ts'
import { createScreen } from '../screen.ts'
import { startServers } from '../servers.ts'
import { containerContext } from './containers.ts'

/**
 * The first container of docker-compose.yml: makes the development keys, brings the database up to date and writes each
 * app's environment, then ends. The servers are those that the environment names; apps reach one another by name.
 */
const dir = process.env.SIGNALBOX_DIR ?? '/data'
const keys = ensureKeys(dir)
const programs = { postgres: undefined, redis: undefined, nats: undefined, temporal: undefined }
const servers = await startServers({ dir, programs, secrets: keys.servers, screen: createScreen() })
const { admin_url, password } = servers.postgres
const roles = await prepareDatabase({ admin_url, database: 'signalbox', password })
writeAppEnv(APPS, containerContext(dir, keys, servers, roles))
console.log(`The environment of ${APPS.length} apps stands in ${dir}/keys/env.`)
