import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { cacheDir } from '../base/paths.ts'
import { createScreen } from '../base/screen.ts'
import { run } from '../servers/sources.ts'
import { prove } from './prove.ts'

/**
 * `npm run test:clients`: the document proved by tools that are not ours. Needs Python 3.10 or newer: the tools are
 * installed once, into the cache. `npm test` holds the same proof of our own client.
 */
const TOOLS = ['openapi-python-client==0.29.1', 'schemathesis==4.32.5']
const INSTALL_MS = 600_000

const screen = createScreen()

const pythonTools = async (): Promise<string> => {
  const home = join(cacheDir(), `python-${TOOLS.join('-').replaceAll('==', '-')}`)
  if (existsSync(home)) return join(home, 'bin')
  screen.line('python', `installing ${TOOLS.join(', ')}`)
  mkdirSync(dirname(home), { recursive: true })
  rmSync(`${home}.making`, { recursive: true, force: true })
  await run('python3', ['-m', 'venv', `${home}.making`], { timeout_ms: INSTALL_MS })
  // A venv knows its own place: it is moved before pip writes that place into the programs.
  renameSync(`${home}.making`, home)
  try {
    await run(join(home, 'bin/python'), ['-m', 'pip', 'install', '-q', ...TOOLS], { timeout_ms: INSTALL_MS })
  } catch (error) {
    rmSync(home, { recursive: true, force: true })
    throw error
  }
  return join(home, 'bin')
}

await prove(screen, 'clients', 'test/contract/python/main.ts', async () => ({ PYTHON_BIN: await pythonTools() }))
