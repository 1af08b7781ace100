import { type ChildProcess, fork } from 'node:child_process'
import type argon2 from 'argon2'
import { hashQueueFull } from './slots.ts'

export type HashOptions = {
  type: typeof argon2.argon2id
  version: number
  memoryCost: number
  timeCost: number
  parallelism: number
}
/** A password to compare with `stored`, or to hash. */
export type HashJob = { id: number; stored?: string; password: string; options: HashOptions }
export type HashAnswer = { id: number; value: boolean | string } | { id: number; error: string }

type Pending = { resolve: (value: never) => void; reject: (error: Error) => void }

const RESTART_MS = 1000
/** The part of our environment passed to a hashing process: no secrets. */
const PASSED = ['PATH', 'UV_THREADPOOL_SIZE', 'NODE_COMPILE_CACHE', 'NODE_OPTIONS']

/**
 * Hashes in a separate process, whose niceness applies to all its threads: within one process, any pool thread takes
 * any hash, so none could have priority. A process that exits is replaced at the next hash.
 */
export const startHasher = (nice: number) => {
  const pending = new Map<number, Pending>()
  let last = 0
  let child: ChildProcess | undefined

  const start = (): ChildProcess => {
    const env = Object.fromEntries(PASSED.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])))
    const started = fork(new URL('./hasher.process.ts', import.meta.url), [String(nice)], { env, execArgv: [] })
    started.on('message', (answer: HashAnswer) => {
      const waiting = pending.get(answer.id)
      pending.delete(answer.id)
      if ('error' in answer) waiting?.reject(new Error(answer.error))
      else waiting?.resolve(answer.value as never)
    })
    started.on('error', () => {}) // `exit` reports the same.
    started.once('exit', () => {
      if (child === started) child = undefined
      for (const { reject } of pending.values()) reject(hashQueueFull(RESTART_MS))
      pending.clear()
    })
    started.unref()
    started.channel?.unref()
    return started
  }

  const run = <T extends boolean | string>(job: Omit<HashJob, 'id'>): Promise<T> =>
    new Promise<T>((resolve, reject) => {
      child ??= start()
      last += 1
      pending.set(last, { resolve, reject })
      child.channel?.ref()
      child.send({ id: last, ...job })
    }).finally(() => {
      if (pending.size === 0) child?.channel?.unref()
    })

  return {
    hash: (password: string, options: HashOptions): Promise<string> => run({ password, options }),
    verify: (stored: string, password: string, options: HashOptions): Promise<boolean> =>
      run({ stored, password, options }),
    close: () => {
      const ended = child
      child = undefined
      ended?.disconnect()
    },
  }
}
