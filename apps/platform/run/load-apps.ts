import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { ROOT } from '../base/paths.ts'
import { APP_NAMES } from './apps.ts'

/** Loads the modules of all apps and ends: run with NODE_COMPILE_CACHE, it leaves them compiled. It starts no app. */
const EFFECTS = /^(main|admin)\.ts$|\.worker\.ts$/

for (const app of APP_NAMES) {
  const folder = join(ROOT, 'apps', app)
  const modules = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(
    (file) => file.endsWith('.ts') && !EFFECTS.test(file),
  )
  for (const file of modules) await import(pathToFileURL(join(folder, file)).href)
}
