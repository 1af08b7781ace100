import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { ROOT, signalboxDir } from './base/paths.ts'
import { loadAppEnv } from './run/app-env.ts'
import { APP_NAMES } from './run/apps.ts'

/** `npm run admin -- <app> <verb> [arguments]`: actions that need an app's keys or database. */
type Verb = (args: string[]) => Promise<number>

const adminFile = (app: string) => join(ROOT, 'apps', app, 'admin.ts')
const [app = '', verb = '', ...args] = process.argv.slice(2)
const known = APP_NAMES.filter((name) => existsSync(adminFile(name)))
if (!known.includes(app)) {
  console.error(`usage: npm run admin -- <app> <verb> [arguments]   apps: ${known.join(', ')}`)
  process.exit(2)
}
loadAppEnv(signalboxDir(), app)
const { verbs } = (await import(pathToFileURL(adminFile(app)).href)) as { verbs: Record<string, Verb> }
const act = Object.hasOwn(verbs, verb) ? verbs[verb] : undefined
if (!act) {
  console.error(`usage: npm run admin -- ${app} <verb> [arguments]   verbs: ${Object.keys(verbs).join(', ')}`)
  process.exit(2)
}
try {
  process.exitCode = await act(args)
} catch (error) {
  // The message of a failed query is only its text; the cause has the reason.
  const { cause, message } = error as Error
  console.error(`${app} ${verb}: ${cause instanceof Error ? cause.message : message}`)
  process.exitCode = 1
}
