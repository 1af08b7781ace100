import { Worker } from 'node:worker_threads'
import { AppError } from '../../shared/errors.ts'

export type Strength = { score: number; warning: string; suggestion: string; is_breached: boolean }
export type StrengthQuestion = { password: string; inputs: string[] }
/** The thread sends `ready` once, then answers one question after another. */
export type StrengthAnswer = 'ready' | Strength

const LIMIT_MS = 500
const START_MS = 30_000
const MAX_PENDING = 20

type Pending = StrengthQuestion & { resolve: (strength: Strength) => void; reject: (error: Error) => void }

const unavailable = () =>
  new AppError('unavailable', 'login_busy', 'The strength of the password could not be estimated in time.', {
    retryable: true,
    retry_after_ms: 2000,
  })

/**
 * Estimates passwords in a worker thread, one at a time, each within 500 ms. A slower thread is terminated and
 * replaced, and its question is refused as unavailable; queued questions go to the next thread.
 */
export const createStrengthEstimator = ({
  file = new URL('./strength.worker.ts', import.meta.url),
  breached_file,
}: {
  file?: URL
  breached_file?: string | undefined
} = {}) => {
  const queue: Pending[] = []
  let worker: Worker | undefined
  let asked: Pending | undefined
  let ready = false
  let timer: NodeJS.Timeout | undefined

  const limit = (ms: number) => {
    clearTimeout(timer)
    timer = setTimeout(replace, ms)
  }
  const askNext = () => {
    clearTimeout(timer)
    asked = queue.shift()
    if (!asked) return
    limit(LIMIT_MS)
    worker?.postMessage({ password: asked.password, inputs: asked.inputs } satisfies StrengthQuestion)
  }
  const start = () => {
    ready = false
    const fresh = new Worker(file, { workerData: { breached_file } })
    fresh.unref()
    limit(START_MS)
    timer?.unref()
    fresh.on('message', (answer: StrengthAnswer) => {
      if (worker !== fresh) return
      if (answer === 'ready') ready = true
      else asked?.resolve(answer)
      askNext()
    })
    fresh.on('error', () => {
      if (worker === fresh) replace()
    })
    worker = fresh
  }
  const end = () => {
    clearTimeout(timer)
    const ended = worker
    worker = undefined
    asked?.reject(unavailable())
    if (!ready) for (const { reject } of queue.splice(0)) reject(unavailable())
    asked = undefined
    return ended?.terminate()
  }
  /** A thread that never became ready is replaced only at the next question, so that a broken one does not spin. */
  const replace = () => {
    const worked = ready
    void end()
    if (worked) start()
  }

  start()
  return {
    /** Estimates a password; `inputs` are words that it should not consist of. */
    estimate: (password: string, inputs: string[]): Promise<Strength> => {
      if (queue.length >= MAX_PENDING) return Promise.reject(unavailable())
      return new Promise((resolve, reject) => {
        queue.push({ password: password.normalize('NFC'), inputs, resolve, reject })
        if (!worker) start()
        else if (ready && !asked) askNext()
      })
    },
    close: async () => {
      await end()
      for (const { reject } of queue.splice(0)) reject(unavailable())
    },
  }
}
