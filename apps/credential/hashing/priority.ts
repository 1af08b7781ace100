import { readdirSync } from 'node:fs'
import { setPriority } from 'node:os'

/**
 * Lets every thread of this process give way to others, for on Linux niceness belongs to a thread. Threads that are made
 * later have that of their maker. Elsewhere, and where it is not allowed, the priority stays.
 */
export const yieldThreads = (nice: number): void => {
  if (nice === 0) return
  try {
    for (const thread of readdirSync('/proc/self/task')) setPriority(Number(thread), nice)
  } catch {
    // Another operating system, or a thread that has just ended.
  }
}
