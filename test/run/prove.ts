import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { QUICK_IMPORTS, ROOT } from '../../apps/platform/base/paths.ts'
import type { Screen } from '../../apps/platform/base/screen.ts'
import { FAST_POSTGRES, withTestServers } from './test-servers.ts'

const runFile = (file: string, env: NodeJS.ProcessEnv): Promise<number> =>
  new Promise((resolve) => {
    const options = { SIGNALBOX_LOG_LEVEL: 'silent', NODE_ENV: 'test', NODE_OPTIONS: `--import=${QUICK_IMPORTS}` }
    const child = spawn(process.execPath, [join(ROOT, file)], {
      cwd: ROOT,
      stdio: ['ignore', 'inherit', 'inherit'],
      env: { ...process.env, ...options, ...env },
    })
    child.on('exit', (code) => resolve(code ?? 1))
  })

/** Runs a third-party tool's test next to its own servers. `bring` fetches the tool and returns where it is. */
export const prove = async (screen: Screen, name: string, file: string, bring: () => Promise<NodeJS.ProcessEnv>) => {
  const code = await bring()
    .then((tool) => withTestServers(screen, (env) => runFile(file, { ...env, ...tool }), FAST_POSTGRES))
    .catch((error: Error) => {
      screen.line(name, error.message, 'red')
      return 1
    })
  screen.line(name, code === 0 ? 'proved' : 'failed', code === 0 ? 'green' : 'red')
  process.exitCode = code
}
