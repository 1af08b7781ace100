import { type ChildProcess, spawn } from 'node:child_process'
import { ROOT } from './paths.ts'

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
/** A Ctrl-C reaches every process of the terminal directly; a signal that only one of them receives is passed on. */
const PASS_ON_MS = 500

/** Passes signals on to a child that still runs a moment later. */
const passOn = (child: ChildProcess): void => {
  for (const signal of SIGNALS)
    process.on(signal, () => {
      setTimeout(() => child.kill(signal), PASS_ON_MS)
    })
}

/** Runs a Node script in this terminal and returns its exit code. */
export const runChild = (args: string[], env: NodeJS.ProcessEnv = process.env): Promise<number> =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, { cwd: ROOT, stdio: 'inherit', env })
    passOn(child)
    child.once('error', reject)
    child.once('exit', (code) => resolve(code ?? 1))
  })
