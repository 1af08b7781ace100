import { prepareDatabase } from '../base/database.ts'
import { ensureInstallation } from '../base/installation.ts'
import { createScreen } from '../base/screen.ts'
import { writeAppEnv } from '../run/app-env.ts'
import { APPS } from '../run/apps.ts'
import { containerContext } from '../run/containers.ts'
import { ensureKeys } from '../run/keys.ts'
import { startServers } from '../servers/up.ts'

/**
 * The first container of docker-compose.yml: creates the development keys, brings the database up to date, writes each
 * app's environment, and ends. The environment names the servers; apps reach one another by name.
 */
const dir = process.env.SIGNALBOX_DIR ?? '/data'
const keys = ensureKeys(dir)
const programs = { postgres: undefined, redis: undefined, nats: undefined, temporal: undefined }
const installation = ensureInstallation(dir)
const servers = await startServers({ dir, installation, programs, secrets: keys.servers, screen: createScreen() })
const { admin_url, password } = servers.postgres
const roles = await prepareDatabase({ admin_url, database: 'signalbox', password })
writeAppEnv(APPS, containerContext(dir, keys, servers, roles))
console.log(`The environments of ${APPS.length} apps are in ${dir}/keys/env.`)
