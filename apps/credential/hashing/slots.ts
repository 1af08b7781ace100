import { AppError } from '../../shared/errors.ts'

export type SlotSettings = {
  concurrency: number
  queue_max: number
  /** Nobody waits longer than this for a slot. */
  wait_ms: number
  per_key: number
  /** Nobody is without an answer for longer than this, its own hash included; what it started runs to its end. */
  answer_ms: number
  monotonic?: () => number
}

type Waiting = { start: () => void; leave: () => void }

/** Refused: too many hashes run and wait. Answered as `resource_exhausted`. */
export const hashQueueFull = () =>
  new AppError('rate_limited', 'login_busy', 'Too many passwords are being checked just now.', {
    retryable: true,
    retry_after_ms: 2000,
  })

/** How much of the average the latest hash is. */
const LATEST = 0.2

/**
 * Bounds how many hashes run and wait at once, and how many of them one key (an address) may hold, so that a flood of
 * logins costs a bounded amount of memory and processor time and one source cannot take all of it. Whose turn would not
 * come in time, by how long hashes take just now, is told so at once instead of after the wait.
 */
export const createSlots = (settings: SlotSettings) => {
  const { concurrency, queue_max, wait_ms, per_key, answer_ms, monotonic = () => performance.now() } = settings
  const queue: Waiting[] = []
  const held = new Map<string, number>()
  let running = 0
  let average_ms = 0

  const hold = (key: string) => {
    const count = held.get(key) ?? 0
    if (key !== '' && count >= per_key) throw hashQueueFull()
    held.set(key, count + 1)
  }
  const release = (key: string) => {
    const count = (held.get(key) ?? 1) - 1
    if (count === 0) held.delete(key)
    else held.set(key, count)
  }

  const turn = (signal: AbortSignal | undefined): Promise<void> => {
    if (signal?.aborted) return Promise.reject(hashQueueFull())
    if (running < concurrency) {
      running += 1
      return Promise.resolve()
    }
    const expected_ms = ((queue.length + 1) * average_ms) / concurrency
    if (queue.length >= queue_max || expected_ms > wait_ms) return Promise.reject(hashQueueFull())
    return new Promise((resolve, reject) => {
      const leave = () => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', giveUp)
        queue.splice(queue.indexOf(waiting), 1)
      }
      const giveUp = () => {
        leave()
        reject(hashQueueFull())
      }
      const waiting: Waiting = { start: resolve, leave }
      const timer = setTimeout(giveUp, wait_ms)
      signal?.addEventListener('abort', giveUp)
      queue.push(waiting)
    })
  }

  /** Runs the task in the slot that is taken, and hands the slot on without its being free in between. */
  const occupy = async <T>(task: () => Promise<T>): Promise<T> => {
    const begun = monotonic()
    try {
      return await task()
    } finally {
      const took = monotonic() - begun
      average_ms = average_ms === 0 ? took : average_ms + LATEST * (took - average_ms)
      const [next] = queue
      if (next) {
        next.leave()
        next.start()
      } else running -= 1
    }
  }

  return {
    /** Runs the task when a slot is free; throws `hashQueueFull` when there is no answer in time, or the caller has gone. */
    run: async <T>(key: string, task: () => Promise<T>, signal?: AbortSignal): Promise<T> => {
      hold(key)
      const outcome = turn(signal)
        .then(() => occupy(task))
        .finally(() => release(key))
      return within(outcome, answer_ms)
    },
    running: () => running,
    waiting: () => queue.length,
  }
}
export type Slots = ReturnType<typeof createSlots>

/** The outcome, or `hashQueueFull` once the time is over: on a machine that is far too busy one hash takes seconds. */
const within = <T>(outcome: Promise<T>, left_ms: number): Promise<T> =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(hashQueueFull()), left_ms)
    outcome.then(resolve, reject).finally(() => clearTimeout(timer))
  })
