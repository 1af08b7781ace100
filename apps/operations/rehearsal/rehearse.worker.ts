import { parentPort, workerData } from 'node:worker_threads'
import { rehearse } from './rehearse.ts'
import type { RehearsalInput } from './types.ts'

/** One rehearsal in a separate thread: a large plan may keep this thread busy, but never the process. */
const begun = process.threadCpuUsage()
const used = () => {
  const { user, system } = process.threadCpuUsage(begun)
  return (user + system) / 1000
}
parentPort?.postMessage(rehearse(workerData as RehearsalInput, used))
