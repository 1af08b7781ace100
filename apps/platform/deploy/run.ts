import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { loadAppEnv } from '../run/app-env.ts'
import { APP_NAMES, entryOf } from '../run/apps.ts'

/** The command of an app's container: `node apps/platform/deploy/run.ts <app>`, with the environment that the setup wrote. */
const [app = ''] = process.argv.slice(2)
if (!APP_NAMES.includes(app)) {
  console.error(`usage: node apps/platform/deploy/run.ts <app>   apps: ${APP_NAMES.join(', ')}`)
  process.exit(2)
}
const dir = process.env.SIGNALBOX_DIR ?? '/data'
if (!loadAppEnv(dir, app)) {
  console.error(`${join(dir, 'keys/env', `${app}.json`)} is missing: the container "setup" writes it.`)
  process.exit(1)
}
await import(pathToFileURL(entryOf(app)).href)
