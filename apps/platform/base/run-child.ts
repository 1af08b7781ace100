import { type ChildProcess, spawn } from 'node:child_process'
import { ROOT } from './paths.ts'

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
/** A Ctrl-C reaches every process of the terminal by itself; what one of them alone hears is passed on. */
const PASS_ON_MS = 500

/** Passes signals on to a child that still runs a moment later. */
export const passOn = (child: ChildProcess): void => {
  for (const signal of SIGNALS)
    process.on(signal, () => {
      setTimeout(() => child.kill(signal), PASS_ON_MS)
    })
}

/** Runs a script of Node in this terminal and answers its exit code. */
export const runChild = (args: string[], env: NodeJS.ProcessEnv = process.env): Promise<number> =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, { cwd: ROOT, stdio: 'inherit', env })
    passOn(child)
    child.once('error', reject)
    child.once('exit', (code) => resolve(code ?? 1))
  })
