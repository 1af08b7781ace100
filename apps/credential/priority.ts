import { readdirSync, readFileSync } from 'node:fs'
import { getPriority, setPriority } from 'node:os'

const HASHING_NICE = 10

/**
 * Lets the threads that hash give way to everything else on the machine: ten hashes of four lanes each would otherwise
 * take every core from those who are signed in already, and from this process's own answers. Call it after the first
 * hash, when the pool has its threads. Linux only; elsewhere, and where it is not allowed, nothing changes.
 */
export const yieldHashThreads = (): void => {
  try {
    for (const thread of readdirSync('/proc/self/task')) {
      const name = readFileSync(`/proc/self/task/${thread}/comm`, 'utf8')
      if (name.startsWith('libuv-worker') && getPriority(Number(thread)) < HASHING_NICE)
        setPriority(Number(thread), HASHING_NICE)
    }
  } catch {
    // Another operating system, or a thread that has just ended.
  }
}
