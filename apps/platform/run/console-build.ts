import { createHash, randomUUID } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { bin, ROOT } from '../base/paths.ts'
import { elapsed, type Screen } from '../base/screen.ts'
import { run } from '../servers/sources.ts'

const SOURCES = ['apps/console', 'apps/shared/contracts', 'package-lock.json']
const BUILD_MS = 300_000
/** Which sources a build is of. */
export const STAMP = '.vite/sources'
/** `undefined` is English, the language of the sources. */
const LANGUAGES = [undefined, 'de']

/** Builds the console into `out` unless it was built there from the same sources. */
export const buildConsole = async (out: string, screen: Screen): Promise<void> => {
  const wanted = sourceHash()
  const isBuilt = () => existsSync(join(out, STAMP)) && readFileSync(join(out, STAMP), 'utf8') === wanted
  if (isBuilt()) return
  const started = performance.now()
  screen.line('console', 'building with Vite …')
  const config = join(ROOT, 'apps/console/vite.config.ts')
  // Built beside the served build, which stays if this one fails. Other processes may build at the same time: tests do.
  const made = `${out}.${randomUUID()}`
  const drop = () => rmSync(made, { recursive: true, force: true })
  process.on('exit', drop) // Ctrl-C during a build
  const build = (language: string | undefined) =>
    run(process.execPath, [bin('vite'), 'build', '--config', config, '--logLevel', 'error'], {
      timeout_ms: BUILD_MS,
      cwd: ROOT,
      env: {
        SIGNALBOX_CONSOLE_DIR: made,
        NODE_ENV: 'production',
        ...(language && { SIGNALBOX_CONSOLE_LANGUAGE: language }),
      },
    })
  try {
    await Promise.all(LANGUAGES.map(build))
    if (isBuilt()) return
    writeFileSync(join(made, STAMP), wanted)
    replaceFolder(made, out)
  } catch (error) {
    throw new Error(`the console could not be built: ${(error as Error).message}`)
  } finally {
    drop()
    process.off('exit', drop)
  }
  screen.line('console', `built in ${elapsed(performance.now() - started)}`)
}

/** Moves a folder into the place of another, which other processes may do at the same moment: the last one stays. */
export const replaceFolder = (made: string, out: string): void => {
  const before = `${made}.before`
  for (;;)
    try {
      if (existsSync(out)) renameSync(out, before)
      renameSync(made, out)
      return
    } catch (error) {
      // Another process moved its own in, or the old one away, between the two steps.
      const { code = '' } = error as NodeJS.ErrnoException
      if (!existsSync(made) || !['ENOTEMPTY', 'EEXIST', 'ENOENT'].includes(code)) throw error
    } finally {
      rmSync(before, { recursive: true, force: true })
    }
}

/** The hash of the console's sources; a build of different ones is stale. */
export const sourceHash = (): string => {
  const hash = createHash('sha256')
  for (const path of SOURCES.flatMap((source) => filesOf(join(ROOT, source)))) {
    hash.update(path.slice(ROOT.length)).update(readFileSync(path))
  }
  return hash.digest('hex')
}

const filesOf = (path: string): string[] => {
  if (!existsSync(path)) return []
  if (statSync(path).isFile()) return [path]
  return readdirSync(path, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort()
}
