import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { prepareDatabase } from '../base/database.ts'
import { misused, readFlags } from '../base/screen.ts'
import { passwordsIn } from './production.ts'

/**
 * `OWNER_URL=URL npm run migrate -- --config DIR`: creates the database of a production installation, brings its tables up
 * to date, and gives each app's role the rights on its own schema. May run again at any time. The password of the owner is
 * in the URL or in PGPASSWORD, never an argument: every account of the host can list those.
 */
const refuse = misused(`usage: OWNER_URL=postgres://OWNER@HOST:5432/postgres npm run migrate -- --config DIR
PGPASSWORD has the password of the owner.
DIR is the folder that "npm run setup -- production" wrote.`)
const { values } = readFlags(
  { options: { config: { type: 'string', default: '' }, database: { type: 'string', default: 'signalbox' } } },
  refuse,
)
const { config, database } = values
const admin_url = process.env.OWNER_URL ?? ''
if (!existsSync(join(config, 'keys/secrets.json')) || !URL.canParse(admin_url)) refuse()
try {
  const roles = await prepareDatabase({ admin_url, database, password: passwordsIn(config) })
  if (!roles) throw new Error('the owner may not create roles: use an account with CREATEROLE')
  console.log(`The database "${database}" is up to date, and each app's role has rights on its own schema.`)
} catch (error) {
  console.error(`migrate: ${(error as Error).message}`)
  process.exitCode = 1
}
