import { createScreen } from '../../apps/platform/base/screen.ts'
import { run } from '../../apps/platform/servers/sources.ts'
import { prove } from './prove.ts'
import { pythonTools } from './python-tools.ts'

/**
 * `npm run test:clients [-- --quick]`: tests the document with third-party tools. A generated Python client and our
 * packed one sign in, list, approve and meet an ended token; then schemathesis sends what the document allows. With
 * --quick, as in CI, it sends only the examples of the reads. The tools need Python 3.10 or newer and are installed
 * once, into the cache. Without Python, only the packed client is tested: the run reports it, and CI refuses it.
 */
const TOOLS = ['openapi-python-client==0.29.1', 'schemathesis==4.32.5']
const INSTALL_MS = 600_000
const USABLE = 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))'

const screen = createScreen()

const hasPython = (): Promise<boolean> =>
  run('python3', ['-c', USABLE], { timeout_ms: INSTALL_MS }).then(
    () => true,
    () => false,
  )

const python = await hasPython()
const NEEDS = 'Python 3.10 or newer with venv (Debian: apt-get install python3-venv)'

await prove(screen, 'clients', 'test/contract/python/main.ts', async () => {
  if (!python && process.env.CI === 'true') throw new Error(`CI proves the Python client too: install ${NEEDS}.`)
  return {
    ...(python && { PYTHON_BIN: await pythonTools(TOOLS, screen) }),
    ...(process.argv.includes('--quick') && { CLIENTS_QUICK: 'true' }),
  }
})
if (!python)
  screen.line('python', `NOT RUN: the generated Python client and schemathesis. They need ${NEEDS}.`, 'yellow')
