import { Worker } from 'node:worker_threads'
import type { Rehearsal } from '../../shared/contracts/operations/plans.ts'
import { AppError, overloaded, unavailable } from '../../shared/errors.ts'
import type { RehearsalAnswer, RehearsalInput } from './types.ts'

/** Wall time of a thread including its start; processor time normally bounds its work first (rehearse.ts). */
const LIMIT_MS = 7000
const AT_ONCE = 2
const HEAP_MB = 256

let running = 0

/**
 * Rehearses in a separate thread, two at a time. Throws validation_error/too_large for a plan that exceeds the
 * rehearsal's limits, and 503 if the machine is too busy for another rehearsal.
 */
export const rehearseApart = async (input: RehearsalInput): Promise<Rehearsal> => {
  if (running >= AT_ONCE) throw overloaded('internal_error')
  running += 1
  try {
    const answer = await inThread(input)
    if ('rehearsal' in answer) return answer.rehearsal
    throw new AppError('validation_error', 'too_large', `The rehearsal is too large: ${answer.too_long}.`, {
      status: 422,
      hint: 'Preview without a rehearsal, or rehearse a smaller plan.',
    })
  } finally {
    running -= 1
  }
}

const inThread = (input: RehearsalInput): Promise<RehearsalAnswer> =>
  new Promise((resolve, reject) => {
    const worker = new Worker(new URL('./rehearse.worker.ts', import.meta.url), {
      workerData: input,
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MB },
    })
    const end = (settle: () => void) => {
      clearTimeout(timer)
      settle()
      void worker.terminate()
    }
    const timer = setTimeout(() => end(() => reject(unavailable('The rehearsal did not end in time.'))), LIMIT_MS)
    worker.once('message', (answer: RehearsalAnswer) => end(() => resolve(answer)))
    worker.once('error', (error) => end(() => reject(error)))
  })
