import argon2 from 'argon2'
import type { HashAnswer, HashJob } from './hasher.ts'
import { yieldThreads } from './priority.ts'

/** A process that only hashes, at its own priority. It ends with its parent. */
yieldThreads(Number(process.argv[2] ?? 0))
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => {})
process.on('disconnect', () => process.exit())

const run = ({ stored, password, options }: HashJob): Promise<boolean | string> =>
  stored === undefined ? argon2.hash(password, options) : argon2.verify(stored, password)

process.on('message', async (job: HashJob) => {
  const answer: HashAnswer = await run(job).then(
    (value) => ({ id: job.id, value }),
    (error: Error) => ({ id: job.id, error: error.message }),
  )
  if (process.connected) process.send?.(answer)
})
