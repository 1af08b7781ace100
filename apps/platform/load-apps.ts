import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { APP_NAMES } from './apps.ts'
import { ROOT } from './paths.ts'

/** Loads the modules of all apps and ends: run with NODE_COMPILE_CACHE it leaves them compiled. Nothing is started. */
const EFFECTS = /^(main|admin)\.ts$|\.worker\.ts$/

for (const app of APP_NAMES) {
  const folder = join(ROOT, 'apps', app)
  const modules = readdirSync(folder).filter((file) => file.endsWith('.ts') && !EFFECTS.test(file))
  for (const file of modules) await import(join(folder, file))
}
