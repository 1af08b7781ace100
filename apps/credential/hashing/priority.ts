import { readdirSync } from 'node:fs'
import { setPriority } from 'node:os'

/**
 * Lowers the priority of every thread of this process, because on Linux niceness belongs to a thread. Later threads
 * inherit that of their creator. On other systems, or without permission, the priority stays.
 */
export const yieldThreads = (nice: number): void => {
  if (nice === 0) return
  try {
    for (const thread of readdirSync('/proc/self/task')) setPriority(Number(thread), nice)
  } catch {
    // Another operating system, or a thread that has just ended.
  }
}
