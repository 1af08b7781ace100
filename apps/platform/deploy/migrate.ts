import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { prepareDatabase } from '../base/database.ts'
import { passwordsIn } from './production.ts'

/**
 * `npm run migrate -- --config DIR [--owner-url URL]`: creates the database of a production installation, brings its tables
 * up to date, and gives each app's role the rights on its own schema. May run again at any time. The environment may have
 * the URL instead, as OWNER_URL: a list of processes does not show its password there.
 */
const { values } = parseArgs({
  options: {
    config: { type: 'string' },
    'owner-url': { type: 'string', default: process.env.OWNER_URL ?? '' },
    database: { type: 'string', default: 'signalbox' },
  },
})
const { config = '', 'owner-url': admin_url, database } = values
if (!existsSync(join(config, 'keys/secrets.json')) || !URL.canParse(admin_url)) {
  console.error('usage: npm run migrate -- --config DIR --owner-url postgres://OWNER:PASSWORD@HOST:5432/postgres')
  console.error('The URL may be in the environment instead, as OWNER_URL.')
  console.error('DIR is the folder that "npm run setup -- production" wrote.')
  process.exit(2)
}
try {
  const roles = await prepareDatabase({ admin_url, database, password: passwordsIn(config) })
  if (!roles) throw new Error('the owner may not create roles: use an account with CREATEROLE')
  console.log(`The database "${database}" is up to date, and each app's role has rights on its own schema.`)
} catch (error) {
  console.error(`migrate: ${(error as Error).message}`)
  process.exitCode = 1
}
