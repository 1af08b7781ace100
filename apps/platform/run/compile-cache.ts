import { createHash } from 'node:crypto'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { QUICK_IMPORTS, ROOT } from '../base/paths.ts'
import { elapsed, type Screen } from '../base/screen.ts'
import { run } from '../servers/sources.ts'

/** Where Node keeps compiled modules of this checkout: the same folder for every verb, app and test (bootstrap.mjs). */
export const compileCacheDir = (): string => join(ROOT, '.signalbox/cache/compile')

const LOAD_MS = 120_000

/**
 * Fills the cache in one process before ten start. A process that finds it empty writes all of its modules when it
 * ends, and ten of them at once delayed a Ctrl-C by 20 s. Not fatal: without a cache everything works, only slower.
 */
export const fillCompileCache = async (screen: Screen): Promise<void> => {
  const dir = compileCacheDir()
  const stamp = `${dir}.stamp`
  const wanted = createHash('sha256')
    .update(readFileSync(join(ROOT, 'package-lock.json')))
    .update(process.version)
    .digest('hex')
  if (existsSync(dir) && existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return
  const started = performance.now()
  try {
    rmSync(dir, { recursive: true, force: true })
    const args = ['--disable-warning=ExperimentalWarning', '--import', QUICK_IMPORTS]
    const env = { NODE_COMPILE_CACHE: dir, NODE_OPTIONS: '' }
    await run(process.execPath, [...args, join(ROOT, 'apps/platform/run/load-apps.ts')], { timeout_ms: LOAD_MS, env })
    writeFileSync(stamp, wanted)
    screen.line('apps', `compiled once in ${elapsed(performance.now() - started)}`)
  } catch (error) {
    screen.line('apps', `could not be compiled ahead: ${(error as Error).message}`, 'yellow')
  }
}
