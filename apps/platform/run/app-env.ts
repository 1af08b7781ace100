import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { readIfThere } from '../base/record.ts'
import { type App, type AppContext, envFor } from './apps.ts'

const fileOf = (dir: string, app: string) => join(dir, 'keys/env', `${app}.json`)

/** Keeps the environment of each app (mode 0600), so that `npm run admin` can act with an app's keys and database. */
export const writeAppEnv = (apps: readonly App[], context: AppContext): void => {
  mkdirSync(join(context.dir, 'keys/env'), { recursive: true, mode: 0o700 })
  for (const app of apps) {
    const env = Object.fromEntries(Object.entries(envFor(app, context)).filter(([name]) => name.includes('__')))
    writeFileSync(fileOf(context.dir, app.name), JSON.stringify(env, null, 2), { mode: 0o600 })
  }
}

/** Loads an app's kept environment; this process's own takes precedence. Returns false if none is kept. */
export const loadAppEnv = (dir: string, app: string): boolean => {
  const kept = readAppEnv(dir, app)
  for (const [name, value] of Object.entries(kept ?? {})) process.env[name] ??= value
  return kept !== undefined
}

/** The kept environment of an app; `undefined` if there is none. */
export const readAppEnv = (dir: string, app: string): Record<string, string> | undefined =>
  readIfThere(fileOf(dir, app))
