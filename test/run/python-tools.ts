import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { cacheDir } from '../../apps/platform/base/paths.ts'
import type { Screen } from '../../apps/platform/base/screen.ts'
import { run } from '../../apps/platform/servers/sources.ts'

const INSTALL_MS = 600_000

/** Installs programs of PyPI, `name==version`, once into the cache; returns the folder of their programs. */
export const pythonTools = async (tools: readonly string[], screen: Screen): Promise<string> => {
  const home = join(cacheDir(), `python-${tools.join('-').replaceAll('==', '-')}`)
  if (existsSync(home)) return join(home, 'bin')
  screen.line('python', `installing ${tools.join(', ')}`)
  mkdirSync(dirname(home), { recursive: true })
  rmSync(`${home}.making`, { recursive: true, force: true })
  await run('python3', ['-m', 'venv', `${home}.making`], { timeout_ms: INSTALL_MS })
  // A venv knows its own location: it is moved before pip writes that location into the programs.
  renameSync(`${home}.making`, home)
  try {
    await run(join(home, 'bin/python'), ['-m', 'pip', 'install', '-q', ...tools], { timeout_ms: INSTALL_MS })
  } catch (error) {
    rmSync(home, { recursive: true, force: true })
    throw error
  }
  return join(home, 'bin')
}
