import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { ROOT } from '../base/paths.ts'

/** `npm run test:chaos -- --kills N [--seed N]`: a platform of its own whose processes are killed at random moments. */
const child = spawn(process.execPath, [join(ROOT, 'test/chaos/main.ts'), ...process.argv.slice(2)], {
  cwd: ROOT,
  stdio: 'inherit',
})
process.on('SIGINT', () => {})
for (const signal of ['SIGTERM', 'SIGHUP'] as const) process.on(signal, () => child.kill(signal))
child.on('exit', (code) => {
  process.exitCode = code ?? 1
})
