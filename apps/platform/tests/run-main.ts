import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { ROOT } from '../base/paths.ts'

/** Runs a script of the tests with our own arguments, and ends as it ends. */
export const runMain = (path: string): void => {
  const child = spawn(process.execPath, [join(ROOT, path), ...process.argv.slice(2)], { cwd: ROOT, stdio: 'inherit' })
  process.on('SIGINT', () => {})
  for (const signal of ['SIGTERM', 'SIGHUP'] as const) process.on(signal, () => child.kill(signal))
  child.on('exit', (code) => {
    process.exitCode = code ?? 1
  })
}
