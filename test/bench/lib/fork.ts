import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'

export type Bare<T> = { child: ChildProcess; pid: number; first: T; stop: () => void }

/** Starts a program of `test/bench/bare` as a separate process and waits for its first message. */
export const forkBare = async <T>(name: string, args: string[] = [], env: NodeJS.ProcessEnv = {}): Promise<Bare<T>> => {
  const file = fileURLToPath(new URL(`../bare/${name}.ts`, import.meta.url))
  const child = fork(file, args, { stdio: ['ignore', 'ignore', 'inherit', 'ipc'], env: { ...process.env, ...env } })
  const first = await new Promise<T>((resolve, reject) => {
    child.once('message', (message) => resolve(message as T))
    child.once('exit', (code) => reject(new Error(`${name} ended with ${code}`)))
  })
  return { child, pid: child.pid ?? 0, first, stop: () => child.kill('SIGTERM') }
}

/** Sends a task to such a program and waits for its answer. */
export const ask = <T>({ child }: Bare<unknown>, task: object): Promise<T> =>
  new Promise((resolve) => {
    child.once('message', (message) => resolve(message as T))
    child.send(task)
  })
