import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { getPriority, setPriority } from 'node:os'

const HASHING_NICE = 15
const GROUP_NICE = 5

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

/**
 * Where each session of processes is a group of the scheduler (autogroup), niceness counts inside the group only, and
 * every group gets as much as every other one: then this process, if the group is its own, makes the group give way.
 * In containers it is the operator who gives credential a small share (`cpu.weight`).
 */
export const yieldGroup = (): void => {
  try {
    // What follows the name, which may hold spaces: state, parent, process group, session.
    const session = readFileSync('/proc/self/stat', 'utf8').split(') ').at(-1)?.split(' ')[3]
    if (Number(session) === process.pid) writeFileSync('/proc/self/autogroup', String(GROUP_NICE))
  } catch {
    // Another operating system, or a kernel without such groups.
  }
}
