import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { cacheDir, QUICK_IMPORTS, ROOT } from '../base/paths.ts'
import { createScreen } from '../base/screen.ts'
import { run } from '../servers/sources.ts'
import { FAST_POSTGRES, withTestServers } from './test-servers.ts'

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

const prove = (env: NodeJS.ProcessEnv): Promise<number> =>
  new Promise((resolve) => {
    const child = spawn(process.execPath, [join(ROOT, 'test/contract/python/main.ts')], {
      cwd: ROOT,
      stdio: ['ignore', 'inherit', 'inherit'],
      env: { ...process.env, SIGNALBOX_LOG_LEVEL: 'silent', ...env },
    })
    child.on('exit', (code) => resolve(code ?? 1))
  })

const code = await pythonTools()
  .then((bin) =>
    withTestServers(
      screen,
      (env) => prove({ ...env, NODE_ENV: 'test', NODE_OPTIONS: `--import=${QUICK_IMPORTS}`, PYTHON_BIN: bin }),
      FAST_POSTGRES,
    ),
  )
  .catch((error: Error) => {
    screen.line('python', error.message, 'red')
    return 1
  })
screen.line('clients', code === 0 ? 'proved' : 'failed', code === 0 ? 'green' : 'red')
process.exitCode = code
